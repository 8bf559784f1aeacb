//! From a parsed SELECT to a [`Plan`]: names become columns, types are checked, aggregates get their places.
//!
//! Text and numbers do not mix: what compares or adds them is refused here, so that no row can surprise.

use super::{
    calendar,
    plan::{AggregateUse, HIDDEN_COLUMNS, Key, Mode, Output, OutputName, Plan, TimeRange, column_at},
};
use crate::{
    command::nearest,
    limits::{COLUMNS_MAX, QUERY_TEXT_BYTES_MAX},
    message::{ErrorCode, Failure},
    schema::Column,
    sql::tree::{Aggregate, BinaryOp, CastTo, Function, List, Node, NodeId, Select, Span, UnaryOp},
    time,
    value::ColumnType,
};

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
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
    fn is_number(self) -> bool {
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
    fn column(self) -> ColumnType {
        match self {
            Type::Of(kind) => kind,
            Type::Null | Type::Interval => ColumnType::Int,
        }
    }
}

/// What a name may mean beside a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aliases {
    /// Nothing.
    No,
    /// An item of this name, if no column has it.
    AfterColumns,
    /// An item of this name, even if a column has it.
    First,
}

/// Plans `select`, whose places are in `text`. Texts that are made from it are added behind it.
pub(super) fn resolve(
    select: &mut Select,
    text: &mut heapless::String<QUERY_TEXT_BYTES_MAX>,
    columns: &[Column<'_>],
    now_us: i64,
    plan: &mut Plan,
) -> Result<(), Failure> {
    plan.kinds = columns.iter().map(|column| column.kind).collect();
    plan.mode = Mode::Stream;
    plan.outputs.clear();
    plan.keys.clear();
    plan.aggregates.clear();
    plan.order.clear();
    plan.time = TimeRange::default();
    plan.has_period = false;
    let mut resolver = Resolver { select, text, columns, now_us, plan };
    resolver.undo_quotes()?;
    resolver.outputs()?;
    resolver.filter()?;
    resolver.groups()?;
    resolver.order()?;
    resolver.mode()
}

struct Resolver<'r, 'c> {
    select: &'r mut Select,
    text: &'r mut heapless::String<QUERY_TEXT_BYTES_MAX>,
    columns: &'r [Column<'c>],
    now_us: i64,
    plan: &'r mut Plan,
}

impl Resolver<'_, '_> {
    fn fail(&self, code: ErrorCode, id: NodeId, hint: &str) -> Failure {
        Failure::new(code, self.select.tree.position(id), format_args!("{hint}"))
    }

    fn mismatch(&self, id: NodeId, hint: &str) -> Failure {
        self.fail(ErrorCode::Type, id, hint)
    }

    /// Two quotes in a text are one. Done once, before anything else looks at the texts.
    fn undo_quotes(&mut self) -> Result<(), Failure> {
        for index in 0..self.select.tree.nodes.len() {
            let Node::Text(span) = self.select.tree.nodes[index] else { continue };
            let (start, end) = (usize::from(span.start), usize::from(span.start) + usize::from(span.len));
            if !self.text.get(start..end).is_some_and(|text| text.contains("''")) {
                continue;
            }
            let made = self.text.len();
            let mut at = start;
            while at < end {
                let Some(c) = self.text[at..end].chars().next() else { break };
                at += c.len_utf8() + usize::from(c == '\''); // its second quote
                self.text.push(c).map_err(|_| {
                    let hint = format_args!("QUERY_TEXT_BYTES_MAX: at most {QUERY_TEXT_BYTES_MAX} bytes");
                    Failure::new(ErrorCode::Capacity, start, hint)
                })?;
            }
            let len = (self.text.len() - made) as u16;
            self.select.tree.nodes[index] = Node::Text(Span { start: made as u16, len });
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), Failure> {
        for index in 0..self.select.items.len() {
            let item = self.select.items[index];
            match item.node {
                None => {
                    for column in 0..self.columns.len() as u8 {
                        let node = self.add(Node::Column(column), item.source.start)?;
                        let kind = self.columns[usize::from(column)].kind;
                        self.output(Output { node, kind, name: OutputName::Column(column) })?;
                    }
                }
                Some(node) => {
                    let kind = self.type_of(node, Aliases::No)?.column();
                    let name = match (item.name, self.select.tree.node(node)) {
                        (Some(name), _) => OutputName::Text(name),
                        (None, Node::Column(column)) => OutputName::Column(column),
                        (None, _) => OutputName::Text(item.source),
                    };
                    self.output(Output { node, kind, name })?;
                }
            }
        }
        Ok(())
    }

    fn output(&mut self, output: Output) -> Result<(), Failure> {
        let position = self.select.tree.position(output.node);
        self.plan.outputs.push(output).map_err(|_| {
            Failure::new(
                ErrorCode::Capacity,
                position,
                format_args!("COLUMNS_MAX: at most {COLUMNS_MAX} columns"),
            )
        })
    }

    /// A node that the text does not have.
    fn add(&mut self, node: Node, position: u16) -> Result<NodeId, Failure> {
        let tree = &mut self.select.tree;
        let id = tree.nodes.len();
        let pushed = tree.nodes.push(node).is_ok() && tree.positions.push(position).is_ok();
        let full = || {
            Failure::new(
                ErrorCode::Capacity,
                position.into(),
                format_args!("SQL_NODES_MAX: shorten the query"),
            )
        };
        if pushed { NodeId::try_from(id).map_err(|_| full()) } else { Err(full()) }
    }

    fn filter(&mut self) -> Result<(), Failure> {
        if let Some(filter) = self.select.filter {
            self.condition(filter, Aliases::No)?;
            self.plan.time = TimeRange::of(&self.select.tree, filter);
            self.plan.has_period = self.select.tree.nodes.iter().any(|node| matches!(node, Node::Period(..)));
        }
        Ok(())
    }

    fn condition(&mut self, id: NodeId, aliases: Aliases) -> Result<(), Failure> {
        if self.type_of(id, aliases)?.is_number() {
            return Ok(());
        }
        Err(self.mismatch(id, "this is no condition; compare it with something"))
    }

    /// GROUP BY, then every aggregate and every key that stands elsewhere gets its slot.
    fn groups(&mut self) -> Result<(), Failure> {
        for index in 0..self.select.group_by.len() {
            let id = self.select.group_by[index];
            self.item_by_number(id)?;
            let kind = self.type_of(id, Aliases::AfterColumns)?.column();
            if self.has_aggregate(id) {
                return Err(self.fail(ErrorCode::Syntax, id, "an aggregate makes no group"));
            }
            let _ = self.plan.keys.push(Key { node: id, kind, descending: false }); // as many as the parser takes
        }
        if let Some(having) = self.select.having {
            self.condition(having, Aliases::AfterColumns)?;
        }
        for index in 0..self.select.order_by.len() {
            let id = self.select.order_by[index].node;
            self.item_by_number(id)?;
            let kind = self.type_of(id, Aliases::First)?.column();
            let descending = self.select.order_by[index].descending;
            let _ = self.plan.order.push(Key { node: id, kind, descending });
        }
        let has_aggregates = self.plan.outputs.iter().any(|output| self.has_aggregate(output.node))
            || self.select.having.is_some_and(|id| self.has_aggregate(id))
            || self.plan.order.iter().any(|key| self.has_aggregate(key.node));
        if !has_aggregates && self.plan.keys.is_empty() {
            if let Some(having) = self.select.having {
                return Err(self.fail(ErrorCode::Syntax, having, "HAVING needs groups; write WHERE"));
            }
            return Ok(());
        }
        self.plan.mode = Mode::Group;
        if self.plan.keys.is_empty() {
            self.implied_keys()?;
        }
        for index in 0..self.plan.outputs.len() {
            self.place(self.plan.outputs[index].node)?;
        }
        for index in 0..self.plan.order.len() {
            self.place(self.plan.order[index].node)?;
        }
        self.select.having.map_or(Ok(()), |having| self.place(having))
    }

    /// `SELECT increments(…), avg(x)` without GROUP BY groups by its buckets.
    fn implied_keys(&mut self) -> Result<(), Failure> {
        for index in 0..self.plan.outputs.len() {
            let Output { node, kind, .. } = self.plan.outputs[index];
            if let bucket @ Node::Increments(..) = self.select.tree.node(node)
                && !self.has_aggregate(node)
            {
                let key = self.add(bucket, self.select.tree.position(node) as u16)?;
                let _ = self.plan.keys.push(Key { node: key, kind, descending: false });
            }
        }
        Ok(())
    }

    /// ORDER BY 2 means the second item.
    fn item_by_number(&mut self, id: NodeId) -> Result<(), Failure> {
        let Node::Int(number) = self.select.tree.node(id) else { return Ok(()) };
        let output = usize::try_from(number)
            .ok()
            .and_then(|n| n.checked_sub(1))
            .and_then(|n| self.plan.outputs.get(n));
        let Some(output) = output else {
            return Err(self.fail(ErrorCode::Value, id, "there is no item of this number"));
        };
        self.select.tree.nodes[usize::from(id)] = self.select.tree.node(output.node);
        Ok(())
    }

    /// Puts slots where keys and aggregates stand; a column that is neither has no value in a group.
    fn place(&mut self, id: NodeId) -> Result<(), Failure> {
        if let Some(index) = self.plan.keys.iter().position(|key| self.is_same(key.node, id)) {
            self.select.tree.nodes[usize::from(id)] = Node::Slot(index as u8);
            return Ok(());
        }
        let node = self.select.tree.node(id);
        match node {
            Node::Aggregate(aggregate, distinct, argument) => {
                let kind = match argument {
                    Some(argument) => self.type_of(argument, Aliases::No)?.column(),
                    None => ColumnType::Int,
                };
                let index = self.aggregate(AggregateUse { aggregate, distinct, argument, kind, node: id })?;
                let slot = self.plan.keys.len() + index;
                self.select.tree.nodes[usize::from(id)] = Node::Slot(slot as u8);
                Ok(())
            }
            Node::Column(_) => Err(self.fail(
                ErrorCode::Syntax,
                id,
                "this column is neither grouped by nor inside an aggregate",
            )),
            _ => self.each_child(node, |resolver, child| resolver.place(child)),
        }
    }

    /// The place of an aggregate; one that is there already is shared.
    fn aggregate(&mut self, wanted: AggregateUse) -> Result<usize, Failure> {
        let is_same = |there: &AggregateUse| {
            there.aggregate == wanted.aggregate
                && there.distinct == wanted.distinct
                && match (there.argument, wanted.argument) {
                    (None, None) => true,
                    (Some(a), Some(b)) => self.is_same(a, b),
                    _ => false,
                }
        };
        if let Some(index) = self.plan.aggregates.iter().position(is_same) {
            return Ok(index);
        }
        let position = self.select.tree.position(wanted.node);
        self.plan.aggregates.push(wanted).map_err(|_| {
            Failure::new(
                ErrorCode::Capacity,
                position,
                format_args!("AGGREGATES_MAX: ask for fewer aggregates at once"),
            )
        })?;
        Ok(self.plan.aggregates.len() - 1)
    }

    fn order(&mut self) -> Result<(), Failure> {
        if !self.select.distinct || self.plan.mode == Mode::Group {
            return Ok(());
        }
        // Of equal rows one is kept: only what is selected is known of it.
        for index in 0..self.plan.order.len() {
            let id = self.plan.order[index].node;
            let Some(output) = self.plan.outputs.iter().position(|output| self.is_same(output.node, id))
            else {
                return Err(self.fail(ErrorCode::Syntax, id, "with DISTINCT, sort by what is selected"));
            };
            let position = self.select.tree.position(id) as u16;
            self.plan.order[index].node = self.add(Node::Slot(output as u8), position)?;
        }
        Ok(())
    }

    fn mode(&mut self) -> Result<(), Failure> {
        if self.plan.mode != Mode::Group {
            self.plan.mode = match (self.select.distinct, self.plan.order.is_empty()) {
                (true, _) => Mode::Distinct,
                (false, false) => Mode::Sort,
                (false, true) => Mode::Stream,
            };
        }
        Ok(())
    }

    fn has_aggregate(&self, id: NodeId) -> bool {
        let node = self.select.tree.node(id);
        matches!(node, Node::Aggregate(..))
            || children(self.select, node).any(|child| self.has_aggregate(child))
    }

    fn each_child(
        &mut self,
        node: Node,
        mut visit: impl FnMut(&mut Self, NodeId) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for nth in 0.. {
            let child = children(self.select, node).nth(nth);
            let Some(child) = child else { break };
            visit(self, child)?;
        }
        Ok(())
    }

    /// Whether two expressions are written alike.
    fn is_same(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.select.tree.node(a), self.select.tree.node(b));
        let alike = match (a, b) {
            (Node::Text(a), Node::Text(b)) => return a.of(self.text) == b.of(self.text),
            (Node::Unary(a, _), Node::Unary(b, _)) => a == b,
            (Node::Binary(a, ..), Node::Binary(b, ..)) => a == b,
            (Node::IsNull(a, _), Node::IsNull(b, _))
            | (Node::Between(a, ..), Node::Between(b, ..))
            | (Node::Like(a, ..), Node::Like(b, ..)) => a == b,
            (Node::In(a, _, list_a), Node::In(b, _, list_b)) => a == b && list_a.len == list_b.len,
            (Node::Cast(a, _), Node::Cast(b, _)) => a == b,
            (Node::Function(a, list_a), Node::Function(b, list_b)) => a == b && list_a.len == list_b.len,
            (Node::Aggregate(a, da, xa), Node::Aggregate(b, db, xb)) => {
                a == b && da == db && xa.is_some() == xb.is_some()
            }
            (Node::Increments(a, na, _), Node::Increments(b, nb, _)) => a == b && na == nb,
            _ => return a == b,
        };
        alike && children(self.select, a).zip(children(self.select, b)).all(|(a, b)| self.is_same(a, b))
    }

    // ---- Types ----

    fn type_of(&mut self, id: NodeId, aliases: Aliases) -> Result<Type, Failure> {
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
            Node::Between(_, x, low, high) => {
                self.comparable(x, low, aliases)?;
                self.comparable(x, high, aliases)?;
                BOOL
            }
            Node::In(_, x, list) => {
                self.value(x, aliases)?;
                self.each(list, |resolver, member| resolver.comparable(x, member, aliases))?;
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
                self.as_moment(end)?;
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
    fn value(&mut self, id: NodeId, aliases: Aliases) -> Result<Type, Failure> {
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
                self.select.tree.node(item)
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
                self.comparable(a, b, aliases)?;
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

    /// Two sides of a comparison; a text beside a moment is read as one.
    fn comparable(&mut self, a: NodeId, b: NodeId, aliases: Aliases) -> Result<(), Failure> {
        let (mut of_a, mut of_b) = (self.value(a, aliases)?, self.value(b, aliases)?);
        if of_a == TIMESTAMP && of_b == TEXT {
            self.as_moment(b)?;
            of_b = self.type_of(b, aliases)?;
        } else if of_a == TEXT && of_b == TIMESTAMP {
            self.as_moment(a)?;
            of_a = self.type_of(a, aliases)?;
        }
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

    /// Makes a moment of a text that stands in the query.
    fn as_moment(&mut self, id: NodeId) -> Result<(), Failure> {
        let Node::Text(span) = self.select.tree.node(id) else { return Ok(()) };
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
        Ok(())
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
        let is_sum =
            matches!(aggregate, Aggregate::Sum | Aggregate::Avg | Aggregate::Stddev | Aggregate::Variance);
        let is_range_of_text = aggregate == Aggregate::Range && of == TEXT;
        if is_sum && !of.is_number() || is_range_of_text {
            return Err(self.mismatch(argument, "this aggregate takes numbers"));
        }
        Ok(match aggregate {
            Aggregate::Count => INT,
            Aggregate::Avg | Aggregate::Stddev | Aggregate::Variance => FLOAT,
            Aggregate::Sum | Aggregate::Range => {
                if of.is_float() {
                    FLOAT
                } else {
                    INT
                }
            }
            Aggregate::Min | Aggregate::Max | Aggregate::First | Aggregate::Last => of,
        })
    }
}

/// What stands right below a node.
fn children(select: &Select, node: Node) -> impl Iterator<Item = NodeId> + Clone + '_ {
    let (direct, list): ([Option<NodeId>; 3], List) = match node {
        Node::Unary(_, x) | Node::IsNull(_, x) | Node::Cast(_, x) | Node::Increments(_, _, x) => {
            ([Some(x), None, None], List::default())
        }
        Node::Binary(_, a, b) | Node::Like(_, a, b) | Node::Period(_, _, a, b) => {
            ([Some(a), Some(b), None], List::default())
        }
        Node::Between(_, x, low, high) => ([Some(x), Some(low), Some(high)], List::default()),
        Node::In(_, x, list) => ([Some(x), None, None], list),
        Node::Function(_, list) => ([None; 3], list),
        Node::Aggregate(_, _, argument) => ([argument, None, None], List::default()),
        _ => ([None; 3], List::default()),
    };
    direct.into_iter().flatten().chain(select.tree.list(list).iter().copied())
}
