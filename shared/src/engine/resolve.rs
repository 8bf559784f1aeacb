//! From a parsed SELECT to a [`Plan`]: names become columns, types are checked, aggregates get their places.
//!
//! Text and numbers do not mix: what compares or adds them is refused here, so that no row can surprise.

mod types;

use super::plan::{AggregateUse, Key, Mode, Output, OutputName, Plan, TimeRange};
use crate::{
    limits::{COLUMNS_MAX, EXPRESSION_DEPTH_MAX, QUERY_TEXT_BYTES_MAX, SQL_LIST_ITEMS_MAX},
    message::{ErrorCode, Failure},
    schema::Column,
    sql::tree::{List, Node, NodeId, Select, Span},
    value::ColumnType,
};

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
    plan.has_now = select.tree.nodes.contains(&Node::Now);
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
                    let kind = self.value(node, Aliases::No)?.column();
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
            let kind = self.value(id, Aliases::AfterColumns)?.column();
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
            // A key that is a name means the item of that name; within an expression a name means the column.
            let is_name = matches!(self.select.tree.node(id), Node::Name(_));
            let kind = self.value(id, if is_name { Aliases::First } else { Aliases::AfterColumns })?.column();
            let descending = self.select.order_by[index].descending;
            let _ = self.plan.order.push(Key { node: id, kind, descending });
        }
        self.check_depths()?;
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
                self.select.tree.nodes[usize::from(key)] = self.copied(node, EXPRESSION_DEPTH_MAX)?;
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
        let Some(output) = output.copied() else {
            return Err(self.fail(ErrorCode::Value, id, "there is no item of this number"));
        };
        self.select.tree.nodes[usize::from(id)] = self.copied(output.node, EXPRESSION_DEPTH_MAX)?;
        Ok(())
    }

    /// A node whose children are copies: it can be changed without changing what it was copied from.
    fn copied(&mut self, id: NodeId, depth: usize) -> Result<Node, Failure> {
        let node = self.select.tree.node(id);
        if depth == 0 {
            return Err(self.too_deep(id));
        }
        let copy = |resolver: &mut Self, child: NodeId| {
            let copy = resolver.copied(child, depth - 1)?;
            resolver.add(copy, resolver.select.tree.position(child) as u16)
        };
        Ok(match node {
            Node::Unary(op, x) => Node::Unary(op, copy(self, x)?),
            Node::Binary(op, a, b) => Node::Binary(op, copy(self, a)?, copy(self, b)?),
            Node::IsNull(negated, x) => Node::IsNull(negated, copy(self, x)?),
            Node::Between(negated, x, low, high) => {
                Node::Between(negated, copy(self, x)?, copy(self, low)?, copy(self, high)?)
            }
            Node::Like(negated, x, pattern) => Node::Like(negated, copy(self, x)?, copy(self, pattern)?),
            Node::Cast(to, x) => Node::Cast(to, copy(self, x)?),
            Node::Increments(unit, count, x) => Node::Increments(unit, count, copy(self, x)?),
            Node::Aggregate(aggregate, distinct, Some(x)) => {
                Node::Aggregate(aggregate, distinct, Some(copy(self, x)?))
            }
            Node::In(negated, x, list) => Node::In(negated, copy(self, x)?, self.copied_list(list, depth)?),
            Node::Function(function, list) => Node::Function(function, self.copied_list(list, depth)?),
            leaf => leaf,
        })
    }

    fn copied_list(&mut self, list: List, depth: usize) -> Result<List, Failure> {
        let mut members = heapless::Vec::<NodeId, SQL_LIST_ITEMS_MAX>::new();
        for nth in 0..usize::from(list.len) {
            let member = self.select.tree.list(list)[nth];
            let copy = self.copied(member, depth - 1)?;
            let copy = self.add(copy, self.select.tree.position(member) as u16)?;
            let _ = members.push(copy); // no more than the list has
        }
        let start = self.select.tree.list_items.len();
        self.select.tree.list_items.extend_from_slice(&members).map_err(|_| {
            let hint = format_args!("SQL_LIST_ITEMS_MAX: shorten the query");
            Failure::new(ErrorCode::Capacity, 0, hint)
        })?;
        Ok(List { start: start as u8, len: list.len })
    }

    fn too_deep(&self, id: NodeId) -> Failure {
        let position = self.select.tree.position(id);
        let hint = format_args!("EXPRESSION_DEPTH_MAX: at most {EXPRESSION_DEPTH_MAX} levels");
        Failure::new(ErrorCode::Capacity, position, hint)
    }

    /// Names of items made expressions deeper than they were written.
    fn check_depths(&self) -> Result<(), Failure> {
        let keys = self.plan.keys.iter().chain(&self.plan.order).map(|key| key.node);
        for root in keys.chain(self.select.having) {
            if !self.is_within(root, EXPRESSION_DEPTH_MAX) {
                return Err(self.too_deep(root));
            }
        }
        Ok(())
    }

    fn is_within(&self, id: NodeId, depth: usize) -> bool {
        let node = self.select.tree.node(id);
        depth > 0 && children(self.select, node).all(|child| self.is_within(child, depth - 1))
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
