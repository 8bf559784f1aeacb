//! The types of expressions: what compares, adds or converts what. A text beside a moment becomes one here, and a
//! name its column.

use super::{Aliases, Resolver};
use crate::{
    command::nearest,
    engine::{calendar, plan::column_at},
    limits::{COLUMNS_MAX, EXPRESSION_DEPTH_MAX},
    message::{ErrorCode, Failure},
    schema::HIDDEN_COLUMNS,
    sql::tree::{Aggregate, BinaryOp, CastTo, Function, List, Node, NodeId, Span, UnaryOp},
    time,
    value::ColumnType,
};

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Nothing but NULL.
    Null,
    /// Values of a column's type.
    Of(ColumnType),
    /// A span of time, which only moves a moment.
    Interval,
}

const BOOL: Type = Type::Of(ColumnType::Bool);
const INT: Type = Type::Of(ColumnType::Int);
const FLOAT: Type = Type::Of(ColumnType::Float64);
const TIMESTAMP: Type = Type::Of(ColumnType::Timestamp);
const TEXT: Type = Type::Of(ColumnType::Text);

impl Type {
    pub(super) fn is_number(self) -> bool {
        matches!(
            self,
            Type::Null
                | Type::Of(ColumnType::Bool | ColumnType::Int | ColumnType::Float32 | ColumnType::Float64)
        )
    }

    fn is_float(self) -> bool {
        matches!(self, Type::Of(ColumnType::Float32 | ColumnType::Float64))
    }

    fn is(self, wanted: Type) -> bool {
        self == wanted || self == Type::Null
    }

    /// The type of a column that holds it.
    pub(super) fn column(self) -> ColumnType {
        match self {
            Type::Of(kind) => kind,
            Type::Null | Type::Interval => ColumnType::Int,
        }
    }
}

impl Resolver<'_, '_> {
    pub(super) fn type_of(&mut self, id: NodeId, aliases: Aliases) -> Result<Type, Failure> {
        Ok(match self.select.tree.node(id) {
            Node::Null => Type::Null,
            Node::Bool(_) => BOOL,
            Node::Int(_) => INT,
            Node::Float(_) => FLOAT,
            Node::Text(_) => TEXT,
            Node::Timestamp(_) => TIMESTAMP,
            Node::Interval(..) => Type::Interval,
            Node::Slot(_) => Type::Null,
            Node::Column(index) => {
                Type::Of(column_at(self.columns, index).map_or(ColumnType::Int, |c| c.kind))
            }
            Node::Name(name) => return self.name(id, name, aliases),
            Node::Now => {
                self.select.tree.nodes[usize::from(id)] = Node::Timestamp(self.now_us);
                TIMESTAMP
            }
            Node::Unary(op, x) => {
                let of = self.type_of(x, aliases)?;
                if !of.is_number() {
                    return Err(self.mismatch(x, "a number is needed here"));
                }
                match op {
                    UnaryOp::Not => BOOL,
                    UnaryOp::Minus if of.is_float() => FLOAT,
                    UnaryOp::Minus => INT,
                }
            }
            Node::Binary(op, a, b) => return self.binary(id, op, a, b, aliases),
            Node::IsNull(_, x) => {
                self.value(x, aliases)?;
                BOOL
            }
            // What is compared with several others is looked at once: chains of these must not multiply.
            Node::Between(_, x, low, high) => {
                let mut of = self.value(x, aliases)?;
                self.comparable(x, &mut of, low, aliases)?;
                self.comparable(x, &mut of, high, aliases)?;
                BOOL
            }
            Node::In(_, x, list) => {
                let mut of = self.value(x, aliases)?;
                self.each(list, |resolver, member| resolver.comparable(x, &mut of, member, aliases))?;
                BOOL
            }
            Node::Like(_, x, pattern) => {
                for side in [x, pattern] {
                    if !self.type_of(side, aliases)?.is(TEXT) {
                        return Err(self.mismatch(side, "LIKE compares text; cast it: x::text"));
                    }
                }
                BOOL
            }
            Node::Cast(to, x) => {
                self.value(x, aliases)?;
                match to {
                    CastTo::Int => INT,
                    CastTo::Float(_) => FLOAT,
                    CastTo::Text => TEXT,
                }
            }
            Node::Function(function, list) => return self.function(id, function, list, aliases),
            Node::Aggregate(aggregate, _, argument) => {
                return self.aggregate_type(aggregate, argument, aliases);
            }
            Node::Increments(_, _, x) => {
                if !self.type_of(x, aliases)?.is(TIMESTAMP) {
                    return Err(self.mismatch(x, "increments() needs a timestamp"));
                }
                TIMESTAMP
            }
            Node::Period(_, _, end, x) => {
                self.is_moment(end)?;
                if self.type_of(end, aliases)? != TIMESTAMP
                    || !matches!(self.select.tree.node(end), Node::Timestamp(_))
                {
                    return Err(self.mismatch(end, "period() ends at now() or at a moment"));
                }
                if self.type_of(x, aliases)? != TIMESTAMP
                    || !matches!(self.select.tree.node(x), Node::Column(_))
                {
                    return Err(self.mismatch(x, "period() needs a timestamp column"));
                }
                BOOL
            }
        })
    }

    /// Anything but an interval, which is no value.
    pub(super) fn value(&mut self, id: NodeId, aliases: Aliases) -> Result<Type, Failure> {
        match self.type_of(id, aliases)? {
            Type::Interval => Err(self.mismatch(id, "an interval only moves a moment: now() - 3 days")),
            of => Ok(of),
        }
    }

    fn each(
        &mut self,
        list: List,
        mut visit: impl FnMut(&mut Self, NodeId) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for nth in 0..usize::from(list.len) {
            let member = self.select.tree.list(list)[nth];
            visit(self, member)?;
        }
        Ok(())
    }

    fn name(&mut self, id: NodeId, name: Span, aliases: Aliases) -> Result<Type, Failure> {
        let wanted = name.of(self.text);
        let all = self.columns.iter().chain(&HIDDEN_COLUMNS);
        let column = all.clone().position(|column| column.name == wanted);
        let alias =
            self.select.items.iter().find(|item| item.name.is_some_and(|name| name.of(self.text) == wanted));
        let alias = alias.and_then(|item| item.node).filter(|node| *node != id);
        let node = match (column, alias, aliases) {
            (_, Some(item), Aliases::First) | (None, Some(item), Aliases::AfterColumns) => {
                self.copied(item, EXPRESSION_DEPTH_MAX)?
            }
            (Some(column), ..) => Node::Column(column as u8),
            (None, ..) => {
                let mut names = heapless::Vec::<&str, COLUMNS_MAX>::new();
                names.extend(all.map(|column| column.name).take(COLUMNS_MAX));
                let position = self.select.tree.position(id);
                return Err(match nearest(wanted, &names) {
                    Some(near) => Failure::new(
                        ErrorCode::UnknownColumn,
                        position,
                        format_args!("did you mean `{near}`?"),
                    ),
                    None => Failure::new(
                        ErrorCode::UnknownColumn,
                        position,
                        format_args!("no column `{wanted}`; see: get columns"),
                    ),
                });
            }
        };
        self.select.tree.nodes[usize::from(id)] = node;
        self.type_of(id, aliases)
    }

    fn binary(
        &mut self,
        id: NodeId,
        op: BinaryOp,
        a: NodeId,
        b: NodeId,
        aliases: Aliases,
    ) -> Result<Type, Failure> {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                self.condition(a, aliases)?;
                self.condition(b, aliases)?;
                return Ok(BOOL);
            }
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual => {
                let mut of = self.value(a, aliases)?;
                self.comparable(a, &mut of, b, aliases)?;
                return Ok(BOOL);
            }
            _ => {}
        }
        let (of_a, of_b) = (self.type_of(a, aliases)?, self.type_of(b, aliases)?);
        if of_a == TIMESTAMP && matches!(op, BinaryOp::Add | BinaryOp::Subtract) {
            if of_b == Type::Interval {
                return self.fold_moment(id, op, a, b);
            }
            if of_b == TIMESTAMP && op == BinaryOp::Subtract {
                return Ok(INT);
            }
            if of_b.is(INT) {
                return Ok(TIMESTAMP);
            }
        }
        for (side, of) in [(a, of_a), (b, of_b)] {
            if !of.is_number() {
                return Err(self.mismatch(side, "a number is needed here; cast it: x::float"));
            }
        }
        Ok(if of_a.is_float() || of_b.is_float() { FLOAT } else { INT })
    }

    /// A fixed moment and an interval are another fixed moment.
    fn fold_moment(&mut self, id: NodeId, op: BinaryOp, a: NodeId, b: NodeId) -> Result<Type, Failure> {
        if let (Node::Timestamp(us), Node::Interval(count, unit)) =
            (self.select.tree.node(a), self.select.tree.node(b))
        {
            let count = if op == BinaryOp::Subtract { i64::from(count).wrapping_neg() } else { count.into() };
            let Some(moved) = calendar::moved(us, unit, count) else {
                return Err(self.fail(ErrorCode::Overflow, id, "the moment is outside the calendar"));
            };
            self.select.tree.nodes[usize::from(id)] = Node::Timestamp(moved);
        }
        Ok(TIMESTAMP)
    }

    /// Two sides of a comparison, the type of the first known; a text beside a moment is read as one.
    fn comparable(&mut self, a: NodeId, of_a: &mut Type, b: NodeId, aliases: Aliases) -> Result<(), Failure> {
        let mut of_b = self.value(b, aliases)?;
        if *of_a == TIMESTAMP && of_b == TEXT && self.is_moment(b)? {
            of_b = TIMESTAMP;
        } else if *of_a == TEXT && of_b == TIMESTAMP && self.is_moment(a)? {
            *of_a = TIMESTAMP;
        }
        let of_a = *of_a;
        let alike = of_a.is(of_b)
            || of_b == Type::Null
            || of_a.is_number() && of_b.is_number()
            || of_a == TIMESTAMP && of_b == INT
            || of_a == INT && of_b == TIMESTAMP;
        if alike {
            return Ok(());
        }
        let (name_a, name_b) = (of_a.column().name(), of_b.column().name());
        let position = self.select.tree.position(b);
        let hint = format_args!("{name_a} and {name_b} do not compare; cast one of them");
        Err(Failure::new(ErrorCode::Type, position, hint))
    }

    /// Makes a moment of a text that stands in the query; false if it is no such text.
    fn is_moment(&mut self, id: NodeId) -> Result<bool, Failure> {
        let Node::Text(span) = self.select.tree.node(id) else { return Ok(false) };
        match time::parse_timestamp(span.of(self.text)) {
            Ok(us) => self.select.tree.nodes[usize::from(id)] = Node::Timestamp(us),
            Err(_) => {
                return Err(self.fail(
                    ErrorCode::Value,
                    id,
                    "expected a time such as '2026-11-18T05:00:00Z'",
                ));
            }
        }
        Ok(true)
    }

    fn function(
        &mut self,
        id: NodeId,
        function: Function,
        list: List,
        aliases: Aliases,
    ) -> Result<Type, Failure> {
        if function == Function::Coalesce {
            return self.coalesce(list, aliases);
        }
        let Some(first) = self.select.tree.list(list).first().copied() else {
            return Err(self.fail(ErrorCode::Syntax, id, "an argument is missing"));
        };
        let of = self.type_of(first, aliases)?;
        let takes_text = matches!(function, Function::Lower | Function::Upper | Function::Length);
        if takes_text && !of.is(TEXT) {
            return Err(self.mismatch(first, "this takes text; cast it: x::text"));
        }
        if !takes_text && !of.is_number() {
            return Err(self.mismatch(first, "this takes a number"));
        }
        if let Some(decimals) = self.select.tree.list(list).get(1).copied()
            && !self.type_of(decimals, aliases)?.is_number()
        {
            return Err(self.mismatch(decimals, "how many decimals is a number"));
        }
        Ok(match function {
            Function::Round => FLOAT,
            Function::Lower | Function::Upper => TEXT,
            Function::Length => INT,
            _ if of.is_float() => FLOAT,
            _ => INT,
        })
    }

    /// All arguments of one type; numbers of different types are floats.
    fn coalesce(&mut self, list: List, aliases: Aliases) -> Result<Type, Failure> {
        let mut all = Type::Null;
        self.each(list, |resolver, member| {
            let of = resolver.value(member, aliases)?;
            all = match (all, of) {
                (Type::Null, of) => of,
                (all, Type::Null) => all,
                (all, of) if all == of => all,
                (all, of) if all.is_number() && of.is_number() => {
                    if all.is_float() || of.is_float() {
                        FLOAT
                    } else {
                        INT
                    }
                }
                _ => return Err(resolver.mismatch(member, "all arguments must be of one type")),
            };
            Ok(())
        })?;
        Ok(all)
    }

    fn aggregate_type(
        &mut self,
        aggregate: Aggregate,
        argument: Option<NodeId>,
        aliases: Aliases,
    ) -> Result<Type, Failure> {
        let Some(argument) = argument else { return Ok(INT) };
        let of = self.value(argument, aliases)?;
        if self.has_aggregate(argument) {
            return Err(self.fail(ErrorCode::Syntax, argument, "an aggregate cannot stand in another"));
        }
        let is_sum = matches!(
            aggregate,
            Aggregate::Sum | Aggregate::SumRest | Aggregate::Avg | Aggregate::Stddev | Aggregate::Variance
        );
        let is_range_of_text = aggregate == Aggregate::Range && of == TEXT;
        if is_sum && !of.is_number() || is_range_of_text {
            return Err(self.mismatch(argument, "this aggregate takes numbers"));
        }
        Ok(match aggregate {
            Aggregate::Count => INT,
            Aggregate::SumRest | Aggregate::Avg | Aggregate::Stddev | Aggregate::Variance => FLOAT,
            Aggregate::Sum | Aggregate::Range => {
                if of.is_float() {
                    FLOAT
                } else {
                    INT
                }
            }
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => of,
            Aggregate::FirstAt | Aggregate::LastAt => TIMESTAMP,
        })
    }
}
