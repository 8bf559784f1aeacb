//! Makes expressions of a wanted kind from dice: over the columns of a row, or over the keys and aggregates of a group.

mod aggregate;

use super::{
    Dice, calendar,
    expression::{CastTo, Expression, Kind},
    table::Table,
};
use shared::{sql::tree::Unit, value::ColumnType};

const UNITS: [Unit; 9] = [
    Unit::Second,
    Unit::Minute,
    Unit::Hour,
    Unit::Day,
    Unit::Week,
    Unit::Month,
    Unit::Year,
    Unit::Millisecond,
    Unit::Microsecond,
];
const COMPARISONS: [&str; 8] = ["=", "==", "<>", "!=", "<", "<=", ">", ">="];
const KINDS: [Kind; 5] = [Kind::Bool, Kind::Int, Kind::Float, Kind::Text, Kind::Moment];

/// Makes expressions about one table.
pub(super) struct Maker<'t> {
    pub(super) dice: Dice,
    pub(super) table: &'t Table,
    /// What a group has: its keys. None: expressions are of a row.
    pub(super) keys: Option<Vec<(Expression, Kind)>>,
    /// Whether `stddev` and `variance` fit: not where a value decides about rows, because theirs are near ones.
    pub(super) takes_spread: bool,
}

impl Maker<'_> {
    pub(super) fn kind(&mut self) -> Kind {
        self.dice.pick(&KINDS)
    }

    /// An expression of this kind; deeper ones have more in them.
    pub(super) fn of(&mut self, kind: Kind, depth: u32) -> Expression {
        if depth == 0 || self.dice.percent(25) {
            return self.leaf(kind);
        }
        match kind {
            Kind::Bool => self.truth(depth - 1),
            Kind::Int => self.int(depth - 1),
            Kind::Float => self.float(depth - 1),
            Kind::Text => self.text(depth - 1),
            Kind::Moment => self.moment(depth - 1),
        }
    }

    /// An expression of this kind, or if none comes of another, that is not the same in every row or group.
    pub(super) fn varying(&mut self, kind: Kind, depth: u32) -> Expression {
        for _ in 0..8 {
            let expression = self.of(kind, depth);
            if expression.has_column() {
                return expression;
            }
        }
        match (kind, self.keys.is_some()) {
            (Kind::Bool, true) => {
                let count = Expression::Aggregate("count", false, None);
                Expression::Binary(">", count.boxed(), Expression::Int(1).boxed())
            }
            (_, true) => Expression::Aggregate("count", false, None),
            (Kind::Bool, false) => Expression::IsNull(true, Expression::Column("timestamp").boxed()),
            (_, false) => Expression::Column("timestamp"),
        }
    }

    /// A column of the table of this kind.
    pub(super) fn column(&mut self, kind: Kind) -> Option<&'static str> {
        let fits = |column: &ColumnType| kind_of(*column) == kind;
        let all: Vec<&'static str> =
            self.table.columns.iter().filter(|column| fits(&column.kind)).map(|column| column.name).collect();
        if all.is_empty() { None } else { Some(self.dice.pick(&all)) }
    }

    fn has_extremes(&self) -> bool {
        self.table.columns.iter().any(|column| column.is_extreme)
    }

    // ---- Leaves ----

    fn leaf(&mut self, kind: Kind) -> Expression {
        if self.dice.percent(5) {
            return self.null(kind);
        }
        if self.dice.percent(20) {
            return self.literal(kind);
        }
        if let Some(keys) = &self.keys {
            let fitting: Vec<Expression> =
                keys.iter().filter(|(_, of)| *of == kind).map(|(key, _)| key.clone()).collect();
            if !fitting.is_empty() && self.dice.percent(50) {
                return self.dice.pick(&fitting);
            }
            return self.aggregate(kind);
        }
        if kind == Kind::Int && self.dice.percent(5) {
            return Expression::RowId;
        }
        match self.column(kind) {
            Some(name) => Expression::Column(name),
            None => self.literal(kind),
        }
    }

    /// NULL has no type: where one decides about more than NULLs, it is given one.
    fn null(&mut self, kind: Kind) -> Expression {
        match kind {
            Kind::Moment => self.literal(kind),
            Kind::Float => Expression::Cast(CastTo::Float, Expression::Null.boxed()),
            _ => Expression::Null,
        }
    }

    pub(super) fn literal(&mut self, kind: Kind) -> Expression {
        let dice = &mut self.dice;
        match kind {
            Kind::Bool => Expression::Bool(dice.percent(50)),
            Kind::Int => Expression::Int(match dice.below(12) {
                0 => dice.pick(&[i64::MAX, i64::MIN, i64::MIN + 1, 1 << 53, (1 << 53) + 1]),
                1..3 => dice.between(-1000, 1000),
                _ => dice.between(-4, 4),
            }),
            Kind::Float => Expression::Float(match dice.below(8) {
                0 => dice.pick(&[0.1, 20.15, -2.675, 1e300, 9.223372036854775e18, 1e-9]),
                _ => dice.between(-40, 40) as f64 / 8.0,
            }),
            Kind::Text => {
                let texts = ["idle", "running", "RUNNING", "", "it's", "12abc", "überhitzt", "a_b", "zzz"];
                Expression::Text(dice.pick(&texts).to_string())
            }
            Kind::Moment => match dice.below(3) {
                0 => Expression::Now,
                _ => Expression::Moment(self.fixed_moment()),
            },
        }
    }

    /// A moment that is in the table, or near one.
    fn fixed_moment(&mut self) -> i64 {
        let rows = &self.table.rows;
        let us = match rows.get(self.dice.below(rows.len().max(1) as u64) as usize).map(|row| &row[0]) {
            Some(super::Cell::Timestamp(us)) => *us,
            _ => self.table.now_us,
        };
        match self.dice.below(4) {
            0 => us + self.dice.between(-1, 1),
            1 => calendar::later(us, self.dice.between(-2, 2), self.dice.pick(&UNITS)),
            2 => us - us.rem_euclid(1_000_000),
            _ => us,
        }
    }

    // ---- Numbers ----

    fn int(&mut self, depth: u32) -> Expression {
        match self.dice.below(12) {
            0..5 => {
                let operator = self.dice.pick(&["+", "-", "*", "/", "%"]);
                let left = self.dice.pick(&[Kind::Int, Kind::Int, Kind::Int, Kind::Bool]);
                let right = self.dice.pick(&[Kind::Int, Kind::Int, Kind::Int, Kind::Bool]);
                Expression::Binary(operator, self.of(left, depth).boxed(), self.of(right, depth).boxed())
            }
            5 => Expression::Negative(self.of(Kind::Int, depth).boxed()),
            // abs() of the least integer is an error, and which rows meet it is nobody's business.
            6 => Expression::Call("abs", vec![self.of_small(Kind::Int)]),
            7 => Expression::Call("length", vec![self.of(Kind::Text, depth)]),
            8 => {
                let of = self.kind();
                Expression::Cast(CastTo::Int, self.of(of, depth).boxed())
            }
            9 => Expression::Call("coalesce", vec![self.of(Kind::Int, depth), self.of(Kind::Int, depth)]),
            10 => {
                let name = self.dice.pick(&["floor", "ceil"]);
                Expression::Call(name, vec![self.of(Kind::Int, depth)])
            }
            _ => {
                let (left, right) = (self.of(Kind::Moment, depth), self.of(Kind::Moment, depth));
                Expression::Binary("-", left.boxed(), right.boxed())
            }
        }
    }

    fn float(&mut self, depth: u32) -> Expression {
        match self.dice.below(12) {
            0..5 => {
                let operator = self.dice.pick(&["+", "-", "*", "/", "%"]);
                let other = self.dice.pick(&[Kind::Float, Kind::Int, Kind::Bool]);
                let (float, other) = (self.of(Kind::Float, depth).boxed(), self.of(other, depth).boxed());
                let (left, right) = if self.dice.percent(50) { (float, other) } else { (other, float) };
                Expression::Binary(operator, left, right)
            }
            5 => Expression::Negative(self.of(Kind::Float, depth).boxed()),
            6 => {
                let name = self.dice.pick(&["abs", "floor", "ceil"]);
                Expression::Call(name, vec![self.of(Kind::Float, depth)])
            }
            7 => Expression::Call("round", vec![self.number(depth)]),
            8 => {
                let decimals = Expression::Int(self.dice.between(0, 4));
                Expression::Call("round", vec![self.number(depth), decimals])
            }
            9 => {
                let to = self.dice.pick(&[CastTo::Float, CastTo::Decimals(0), CastTo::Decimals(2)]);
                let of = self.dice.pick(&[Kind::Int, Kind::Float, Kind::Bool, Kind::Text]);
                Expression::Cast(to, self.of(of, depth).boxed())
            }
            10 => {
                Expression::Call("coalesce", vec![self.of(Kind::Float, depth), self.of(Kind::Float, depth)])
            }
            // A column of integers and floats has floats, which are not as exact as the largest integers.
            _ if self.has_extremes() => self.of(Kind::Float, depth),
            _ => Expression::Call("coalesce", vec![self.of_small(Kind::Int), self.of(Kind::Float, depth)]),
        }
    }

    fn number(&mut self, depth: u32) -> Expression {
        let kind = self.dice.pick(&[Kind::Int, Kind::Float, Kind::Float, Kind::Bool]);
        self.of(kind, depth)
    }

    // ---- Text and time ----

    fn text(&mut self, depth: u32) -> Expression {
        match self.dice.below(5) {
            0 => Expression::Call("lower", vec![self.of(Kind::Text, depth)]),
            1 => Expression::Call("upper", vec![self.of(Kind::Text, depth)]),
            2 => Expression::Call("coalesce", vec![self.of(Kind::Text, depth), self.of(Kind::Text, depth)]),
            // What overflowed into a float is written in another way.
            3 => Expression::Cast(CastTo::Text, self.of_small(Kind::Int).boxed()),
            _ => Expression::Cast(CastTo::Text, self.of(Kind::Text, depth).boxed()),
        }
    }

    fn moment(&mut self, depth: u32) -> Expression {
        match self.dice.below(6) {
            0..3 => {
                let count = self.dice.pick(&[1, 2, 3, 5, -1, -3, -7]);
                Expression::Later(self.of(Kind::Moment, depth).boxed(), count, self.dice.pick(&UNITS))
            }
            3 => self.increments(depth),
            4 => {
                Expression::Call("coalesce", vec![self.of(Kind::Moment, depth), self.of(Kind::Moment, depth)])
            }
            _ => {
                let us = Expression::Int(self.dice.between(-5_000_000, 5_000_000));
                Expression::Binary("+", self.of(Kind::Moment, depth).boxed(), us.boxed())
            }
        }
    }

    pub(super) fn increments(&mut self, depth: u32) -> Expression {
        let count = self.dice.pick(&[1, 1, 1, 2, 3, 5, 10, 15]);
        Expression::Increments(self.dice.pick(&UNITS), count, self.of(Kind::Moment, depth).boxed())
    }

    // ---- Conditions ----

    fn truth(&mut self, depth: u32) -> Expression {
        let is_negated = self.dice.percent(30);
        match self.dice.below(20) {
            0..5 => self.comparison(depth),
            5..8 => {
                let operator = self.dice.pick(&["AND", "OR"]);
                let (left, right) = (self.of(Kind::Bool, depth), self.of(Kind::Bool, depth));
                Expression::Binary(operator, left.boxed(), right.boxed())
            }
            8..10 => Expression::Not(self.of(Kind::Bool, depth).boxed()),
            10..12 => {
                let kind = self.kind();
                Expression::IsNull(is_negated, self.of(kind, depth).boxed())
            }
            12..14 => {
                let (kind, other) = self.comparable();
                let all = [self.of(kind, depth), self.of(other, depth), self.of(kind, depth)];
                Expression::Between(is_negated, Box::new(all))
            }
            14..16 => {
                let (kind, other) = self.comparable();
                let members = (0..=self.dice.below(4)).map(|_| match self.dice.below(4) {
                    0 => self.of(other, depth),
                    _ => self.literal(kind),
                });
                let members = members.collect();
                Expression::In(is_negated, self.of(kind, depth).boxed(), members)
            }
            16..19 => {
                let patterns =
                    ["%", "%n%", "r%", "_dle", "RUN%", "%_", "", "100%", "a_b", "%É%", "%%g", "ü%", "1_a%"];
                let pattern = match self.dice.below(5) {
                    0 => self.of(Kind::Text, depth),
                    _ => Expression::Text(self.dice.pick(&patterns).to_string()),
                };
                Expression::Like(is_negated, self.of(Kind::Text, depth).boxed(), pattern.boxed())
            }
            _ => self.number_as_truth(depth),
        }
    }

    /// A number where a condition is asked for: true unless it is 0.
    fn number_as_truth(&mut self, depth: u32) -> Expression {
        let number = self.number(depth);
        Expression::Not(Expression::Not(number.boxed()).boxed())
    }

    fn comparison(&mut self, depth: u32) -> Expression {
        let operator = self.dice.pick(&COMPARISONS);
        if self.dice.percent(4) {
            return self.large_comparison(operator);
        }
        let (kind, other) = self.comparable();
        let (left, right) = (self.of(kind, depth), self.of(other, depth));
        if kind == Kind::Moment && matches!(left, Expression::Column(_)) && self.dice.percent(40) {
            let text = Expression::MomentText(self.fixed_moment());
            return Expression::Binary(operator, left.boxed(), text.boxed());
        }
        let (left, right) = if self.dice.percent(80) { (left, right) } else { (right, left) };
        Expression::Binary(operator, left.boxed(), right.boxed())
    }

    /// An integer with a float that is its neighbour, and would be the same if the integer were a float.
    fn large_comparison(&mut self, operator: &'static str) -> Expression {
        let (int, float) = self.dice.pick(&[
            ((1 << 53) + 1, 9_007_199_254_740_992.0),
            (-(1 << 53) - 1, -9_007_199_254_740_992.0),
            (i64::MAX, 9_223_372_036_854_775_808.0),
            (i64::MIN + 1, -9_223_372_036_854_775_808.0),
            (i64::MIN, -9_223_372_036_854_775_808.0),
        ]);
        let large = self.table.columns.iter().find(|column| column.is_extreme && self.keys.is_none());
        let int = large.map_or(Expression::Int(int), |column| Expression::Column(column.name));
        Expression::Binary(operator, int.boxed(), Expression::Float(float).boxed())
    }

    /// Two kinds that compare.
    fn comparable(&mut self) -> (Kind, Kind) {
        let number = [Kind::Int, Kind::Float, Kind::Bool];
        match self.dice.below(8) {
            0..4 => (self.dice.pick(&number), self.dice.pick(&number)),
            4 => (Kind::Bool, Kind::Bool),
            5 => (Kind::Text, Kind::Text),
            _ => (Kind::Moment, Kind::Moment),
        }
    }

    /// `period(…)`, which stands in WHERE only.
    pub(super) fn period(&mut self) -> Expression {
        if self.dice.percent(50)
            && let Some(period) = self.touching_period()
        {
            return period;
        }
        let column = self.column(Kind::Moment).unwrap_or("timestamp");
        let end = match self.dice.below(3) {
            0 => Expression::Now,
            1 => Expression::Moment(self.fixed_moment()),
            _ => Expression::MomentText(self.fixed_moment()),
        };
        let count = self.dice.pick(&[1, 1, 2, 3, 10, 60]);
        Expression::Period(self.dice.pick(&UNITS), count, end.boxed(), column)
    }

    /// A period that is exactly as long as the time between two rows, so that its bounds are told apart.
    fn touching_period(&mut self) -> Option<Expression> {
        let rows = &self.table.rows;
        let mut moment = || match rows.get(self.dice.below(rows.len().max(1) as u64) as usize)?.first()? {
            super::Cell::Timestamp(us) => Some(*us),
            _ => None,
        };
        let (one, other) = (moment()?, moment()?);
        let (first, last) = (one.min(other), one.max(other));
        let fits = |unit: &Unit| {
            let unit_us = calendar::unit_us(*unit)?;
            let count = u16::try_from((last - first) / unit_us).ok().filter(|count| *count > 0)?;
            ((last - first) % unit_us == 0).then_some((*unit, count))
        };
        let (unit, count) = UNITS.iter().find_map(fits)?;
        Some(Expression::Period(unit, count, Expression::Moment(last).boxed(), "timestamp"))
    }
}

/// What a column gives.
pub(super) fn kind_of(column: ColumnType) -> Kind {
    match column {
        ColumnType::Bool => Kind::Bool,
        ColumnType::Int => Kind::Int,
        ColumnType::Float32 | ColumnType::Float64 => Kind::Float,
        ColumnType::Timestamp => Kind::Moment,
        ColumnType::Text => Kind::Text,
    }
}
