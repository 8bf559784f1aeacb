//! What is called with parentheses: functions, aggregates, casts, and the functions of time.

use super::{NO_SUBQUERY, Parser, Place};
use crate::{
    message::ErrorCode,
    sql::{
        fault::{Fault, Hint},
        lexer::{Keyword, Kind, Sign},
        tree::{Aggregate, CastTo, Function, Node, NodeId, Unit},
    },
};

/// What a name before a parenthesis calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Callee {
    Function(Function),
    Aggregate(Aggregate),
    Cast,
    Now,
    Increments,
    Period,
}

const CALLEES: [(&str, Callee); 28] = [
    ("abs", Callee::Function(Function::Abs)),
    ("round", Callee::Function(Function::Round)),
    ("floor", Callee::Function(Function::Floor)),
    ("ceil", Callee::Function(Function::Ceil)),
    ("ceiling", Callee::Function(Function::Ceil)),
    ("lower", Callee::Function(Function::Lower)),
    ("upper", Callee::Function(Function::Upper)),
    ("length", Callee::Function(Function::Length)),
    ("coalesce", Callee::Function(Function::Coalesce)),
    ("count", Callee::Aggregate(Aggregate::Count)),
    ("sum", Callee::Aggregate(Aggregate::Sum)),
    ("sum_rest", Callee::Aggregate(Aggregate::SumRest)),
    ("avg", Callee::Aggregate(Aggregate::Avg)),
    ("min", Callee::Aggregate(Aggregate::Min)),
    ("max", Callee::Aggregate(Aggregate::Max)),
    ("range", Callee::Aggregate(Aggregate::Range)),
    ("first", Callee::Aggregate(Aggregate::First)),
    ("last", Callee::Aggregate(Aggregate::Last)),
    ("first_at", Callee::Aggregate(Aggregate::FirstAt)),
    ("last_at", Callee::Aggregate(Aggregate::LastAt)),
    ("stddev", Callee::Aggregate(Aggregate::Stddev)),
    ("stddev_samp", Callee::Aggregate(Aggregate::Stddev)),
    ("variance", Callee::Aggregate(Aggregate::Variance)),
    ("var_samp", Callee::Aggregate(Aggregate::Variance)),
    ("cast", Callee::Cast),
    ("now", Callee::Now),
    ("increments", Callee::Increments),
    ("period", Callee::Period),
];

const CALLEE_NAMES: [&str; CALLEES.len()] = {
    let mut names = [""; CALLEES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = CALLEES[index].0;
        index += 1;
    }
    names
};

const CAST_TYPES: [&str; 7] = ["int", "integer", "bigint", "float", "double", "text", "varchar"];
const UNITS: [&str; 9] =
    ["second", "minute", "hour", "day", "week", "month", "year", "millisecond", "microsecond"];
/// More decimals than these a float does not have.
const DECIMALS_MAX: u8 = 15;

impl Parser<'_, '_> {
    /// The parenthesis is the next token.
    pub(super) fn call(&mut self, name: &str, position: usize) -> Result<NodeId, Fault> {
        let Some((name, callee)) = CALLEES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) else {
            let is_subquery = ["exists", "any", "all"].iter().any(|word| word.eq_ignore_ascii_case(name));
            let otherwise = if is_subquery { NO_SUBQUERY } else { "there is no such function" };
            return Err(Fault::word(position, name, &CALLEE_NAMES, otherwise));
        };
        self.take()?;
        let id = match callee {
            Callee::Function(function) => self.function(*function, name, position)?,
            Callee::Aggregate(aggregate) => self.aggregate(*aggregate, name, position)?,
            Callee::Cast => {
                let operand = self.expression()?;
                self.keyword(Keyword::As, "AS")?;
                let to = self.cast_type()?;
                self.sign(Sign::Close, ")")?;
                self.cast(to, operand, position)?
            }
            Callee::Now => {
                if !self.takes(Sign::Close)? {
                    return Err(arguments(self.next.start, name, "nothing: `now()`"));
                }
                self.node(Node::Now, position, &[])?
            }
            Callee::Increments => self.increments(position)?,
            Callee::Period => self.period(position)?,
        };
        if self.next_text().eq_ignore_ascii_case("over") {
            return Err(self.fault("windows run on the gateway"));
        }
        Ok(id)
    }

    fn function(&mut self, function: Function, name: &'static str, position: usize) -> Result<NodeId, Fault> {
        let (counts, takes) = match function {
            Function::Round => (1..=2, "a number and, if you like, how many decimals"),
            Function::Coalesce => (2..=usize::MAX, "two values or more"),
            _ => (1..=1, "one value"),
        };
        let first = self.pending.len();
        if !self.takes(Sign::Close)? {
            self.list_members()?;
        }
        let list = self.close_list(first);
        if !counts.contains(&list.len.into()) {
            return Err(arguments(position, name, takes));
        }
        let deepest = self.deepest(list);
        self.node(Node::Function(function, list), position, &[deepest])
    }

    fn aggregate(
        &mut self,
        aggregate: Aggregate,
        name: &'static str,
        position: usize,
    ) -> Result<NodeId, Fault> {
        let refused = match self.place {
            Place::Where => Some("an aggregate does not stand in WHERE; use HAVING"),
            Place::GroupBy => Some("an aggregate does not stand in GROUP BY"),
            Place::Aggregate => Some("an aggregate does not stand in an aggregate"),
            Place::Item | Place::Having | Place::OrderBy => None,
        };
        if let Some(hint) = refused {
            return Err(Fault::syntax(position, hint));
        }
        if aggregate == Aggregate::Count && self.takes(Sign::Star)? {
            self.closing()?;
            return self.node(Node::Aggregate(Aggregate::Count, false, None), position, &[]);
        }
        let distinct_position = self.next.start;
        let is_distinct = self.takes_keyword(Keyword::Distinct)?;
        let takes_distinct = matches!(
            aggregate,
            Aggregate::Count | Aggregate::Sum | Aggregate::Avg | Aggregate::Min | Aggregate::Max
        );
        if is_distinct && !takes_distinct {
            let hint = "DISTINCT stands in count, sum, avg, min and max only";
            return Err(Fault::syntax(distinct_position, hint));
        }
        if self.next.kind == Kind::Sign(Sign::Close) {
            let takes = if aggregate == Aggregate::Count { "`*` or one value" } else { "one value" };
            return Err(arguments(self.next.start, name, takes));
        }
        let outer = core::mem::replace(&mut self.place, Place::Aggregate);
        let operand = self.expression()?;
        self.place = outer;
        if self.next.kind == Kind::Sign(Sign::Comma) {
            let takes = "one value: it is of many rows, not of many columns";
            return Err(arguments(self.next.start, name, takes));
        }
        self.closing()?;
        self.node(Node::Aggregate(aggregate, is_distinct, Some(operand)), position, &[operand])
    }

    /// `unit, n, x)`
    fn increments(&mut self, position: usize) -> Result<NodeId, Fault> {
        let (unit, count) = self.units()?;
        let operand = self.expression()?;
        self.closing()?;
        self.node(Node::Increments(unit, count, operand), position, &[operand])
    }

    /// `unit, n, end, column)`
    fn period(&mut self, position: usize) -> Result<NodeId, Fault> {
        if self.place != Place::Where {
            return Err(Fault::syntax(position, "`period` stands in WHERE only"));
        }
        let (unit, count) = self.units()?;
        let end = self.expression()?;
        if let Node::Text(place) = self.select.tree.node(end) {
            let moment = self.moment(place)?;
            if let Some(node) = self.select.tree.nodes.get_mut(usize::from(end)) {
                *node = Node::Timestamp(moment);
            }
        }
        self.sign(Sign::Comma, ",")?;
        let column_position = self.next.start;
        let column = self.expression()?;
        if !matches!(self.select.tree.node(column), Node::Name(_)) {
            return Err(Fault::syntax(column_position, "a period is of a column: expected its name"));
        }
        self.closing()?;
        self.node(Node::Period(unit, count, end, column), position, &[end, column])
    }

    /// `unit, n,`
    fn units(&mut self) -> Result<(Unit, u16), Fault> {
        let Some(unit) = self.takes_unit()? else {
            return Err(self.unexpected(&UNITS, "expected a unit of time such as `minute`"));
        };
        self.sign(Sign::Comma, ",")?;
        const EXPECTED: &str = "expected a number of units, 1 to 65535";
        if self.next.kind != Kind::Integer {
            return Err(self.fault(EXPECTED));
        }
        let count: u16 = self.next_text().parse().unwrap_or(0);
        if count == 0 {
            return Err(Fault::value(self.next.start, EXPECTED));
        }
        self.take()?;
        self.sign(Sign::Comma, ",")?;
        Ok((unit, count))
    }

    /// The type that a cast makes.
    pub(super) fn cast_type(&mut self) -> Result<CastTo, Fault> {
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(self.next_text()));
        let to = if is_one_of(&["int", "integer", "bigint"]) {
            CastTo::Int
        } else if is_one_of(&["float", "double"]) {
            CastTo::Float(None)
        } else if is_one_of(&["text", "varchar"]) {
            CastTo::Text
        } else {
            return Err(self.unexpected(&CAST_TYPES, "a cast is to `int`, `float` or `text`"));
        };
        self.take()?;
        if to != CastTo::Float(None) || !self.takes(Sign::Open)? {
            return Ok(to);
        }
        let decimals = self.next_text().parse().ok().filter(|decimals| *decimals <= DECIMALS_MAX);
        if decimals.is_none() || self.next.kind != Kind::Integer {
            return Err(self.fault("expected a number of decimals, 0 to 15"));
        }
        self.take()?;
        self.sign(Sign::Close, ")")?;
        Ok(CastTo::Float(decimals))
    }
}

fn arguments(position: usize, name: &'static str, takes: &'static str) -> Fault {
    Fault { code: ErrorCode::Syntax, position, hint: Hint::Arguments(name, takes) }
}
