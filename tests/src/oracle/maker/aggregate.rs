//! Aggregates of a wanted kind, and the numbers that they can add up without a row's overflowing.

use super::Maker;
use crate::oracle::expression::{Expression, Kind};

impl Maker<'_> {
    pub(super) fn aggregate(&mut self, kind: Kind) -> Expression {
        let outer = self.keys.take();
        let made = self.aggregate_of_rows(kind);
        self.keys = outer;
        made
    }

    fn aggregate_of_rows(&mut self, kind: Kind) -> Expression {
        let aggregate =
            |name, is_distinct, x: Expression| Expression::Aggregate(name, is_distinct, Some(x.boxed()));
        let is_distinct = self.dice.percent(20);
        let choices = match kind {
            Kind::Int => 12,
            Kind::Float => 10,
            Kind::Bool | Kind::Text | Kind::Moment => 4,
        };
        let choice = self.dice.below(choices);
        if kind == Kind::Moment && self.dice.percent(30) {
            let (of, name) = (self.kind(), self.dice.pick(&["first_at", "last_at"]));
            return aggregate(name, false, self.of(of, 1));
        }
        if choice < 4 {
            let name = self.dice.pick(&["min", "max", "min", "max", "first", "last"]);
            return aggregate(name, is_distinct && name.starts_with('m'), self.of(kind, 1));
        }
        match (kind, choice) {
            (Kind::Int, 4) => Expression::Aggregate("count", false, None),
            (Kind::Int, 5..8) => {
                let of = self.kind();
                let x = self.of(of, 1);
                aggregate("count", is_distinct || self.dice.percent(30), x)
            }
            (Kind::Int, 8..10) => {
                aggregate("sum", is_distinct, self.summand(&[Kind::Int, Kind::Int, Kind::Bool]))
            }
            (Kind::Int, 10) => aggregate("range", false, self.summand(&[Kind::Int])),
            (Kind::Int, _) => aggregate("range", false, self.of(Kind::Moment, 0)),
            (_, 4 | 5) => {
                let numbers = [Kind::Int, Kind::Float, Kind::Float, Kind::Bool];
                aggregate("avg", is_distinct, self.summand(&numbers))
            }
            (_, 6) => aggregate("sum", is_distinct, self.summand(&[Kind::Float])),
            (_, 7) => aggregate("range", false, self.summand(&[Kind::Float])),
            _ if self.takes_spread => {
                let name = self.dice.pick(&["stddev", "variance"]);
                aggregate(name, false, self.summand(&[Kind::Int, Kind::Float]))
            }
            _ => aggregate("sum", false, self.summand(&[Kind::Float])),
        }
    }

    /// What is added up: of a column alone where that has extremes, so that no row of it overflows.
    fn summand(&mut self, kinds: &[Kind]) -> Expression {
        let kind = self.dice.pick(kinds);
        if self.has_extremes() || self.dice.percent(50) {
            return self.column(kind).map_or_else(|| self.small(kind), Expression::Column);
        }
        match (kind, self.column(kind)) {
            (Kind::Int | Kind::Float, Some(name)) => {
                let operator = self.dice.pick(&["+", "-", "*"]);
                let by = Expression::Int(self.dice.between(-9, 9));
                Expression::Binary(operator, Expression::Column(name).boxed(), by.boxed())
            }
            _ => self.small(kind),
        }
    }

    /// A number that is not large: a column only where there are no extremes.
    pub(super) fn of_small(&mut self, kind: Kind) -> Expression {
        match self.leaf(kind) {
            Expression::Int(_) => self.small(kind),
            Expression::Aggregate(..) => Expression::Aggregate("count", false, None),
            _ if self.has_extremes() => self.small(kind),
            leaf => leaf,
        }
    }

    /// A literal that adds up to nothing large.
    fn small(&mut self, kind: Kind) -> Expression {
        let small = self.dice.between(-9, 9);
        match kind {
            Kind::Bool => Expression::Bool(small > 0),
            Kind::Float => Expression::Float(small as f64 / 4.0),
            _ => Expression::Int(small),
        }
    }
}
