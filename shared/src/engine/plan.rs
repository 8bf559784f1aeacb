//! How a query is run: what it gives, what it keeps meanwhile, and which time it needs. Made by the resolver.

use super::filter::Filter;
use crate::{
    limits::{AGGREGATES_MAX, COLUMNS_MAX, GROUP_KEYS_MAX, SORT_KEYS_MAX, TABLE_COLUMNS_MAX},
    schema::{Column, HIDDEN_COLUMNS},
    sql::tree::{Aggregate, BinaryOp, Node, NodeId, Select, Span, Tree},
    value::ColumnType,
};

/// Cells of a row with the hidden ones.
pub(super) const CELLS_MAX: usize = TABLE_COLUMNS_MAX + HIDDEN_COLUMNS.len();

/// What is kept of the rows until the last one is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing: rows go out as they are read.
    #[default]
    Stream,
    /// The first rows in the order that was asked for.
    Sort,
    /// One of each.
    Distinct,
    /// Groups with their aggregates.
    Group,
}

/// How a query is run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What is kept meanwhile.
    pub mode: Mode,
    /// The types of the table's columns.
    pub kinds: heapless::Vec<ColumnType, TABLE_COLUMNS_MAX>,
    /// Bit i: some expression uses column i.
    pub columns_used: u32,
    /// What is given.
    pub outputs: heapless::Vec<Output, COLUMNS_MAX>,
    /// What makes a group.
    pub keys: heapless::Vec<Key, GROUP_KEYS_MAX>,
    /// What is computed for each group.
    pub aggregates: heapless::Vec<AggregateUse, AGGREGATES_MAX>,
    /// What the answer is sorted by.
    pub order: heapless::Vec<Key, SORT_KEYS_MAX>,
    /// The times that the filter lets through.
    pub time: TimeRange,
    /// Whether the query has `now()` in it.
    pub has_now: bool,
    /// What the filter is; read when the scan begins.
    pub filter: Filter,
    /// Whether the filter has a `period` whose end must be found first.
    pub has_period: bool,
}

/// One column of the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// Its value.
    pub node: NodeId,
    /// Its type.
    pub kind: ColumnType,
    /// Its name.
    pub name: OutputName,
}

/// What a column of the answer is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum OutputName {
    /// Like this column of the table.
    Column(u8),
    /// Like this place of the query.
    Text(Span),
}

/// An expression that rows are grouped or sorted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its value.
    pub node: NodeId,
    /// Its type.
    pub kind: ColumnType,
    /// Whether the greatest comes first.
    pub descending: bool,
}

/// One aggregate of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AggregateUse {
    /// Which.
    pub aggregate: Aggregate,
    /// Of different values only.
    pub distinct: bool,
    /// Of what; none for `count(*)`.
    pub argument: Option<NodeId>,
    /// The type of the argument.
    pub kind: ColumnType,
    /// Where it stands in the query.
    pub node: NodeId,
}

/// Times from `min_us` to `max_us`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeRange {
    /// The first.
    pub min_us: i64,
    /// The last.
    pub max_us: i64,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self { min_us: i64::MIN, max_us: i64::MAX }
    }
}

impl TimeRange {
    /// Whether any moment from `first_us` to `last_us` is inside.
    pub(super) fn touches(&self, first_us: i64, last_us: i64) -> bool {
        first_us <= self.max_us && last_us >= self.min_us
    }

    fn narrow(&mut self, op: BinaryOp, us: i64) {
        match op {
            BinaryOp::Equal => (self.min_us, self.max_us) = (self.min_us.max(us), self.max_us.min(us)),
            BinaryOp::Less => self.max_us = self.max_us.min(us.saturating_sub(1)),
            BinaryOp::LessOrEqual => self.max_us = self.max_us.min(us),
            BinaryOp::Greater => self.min_us = self.min_us.max(us.saturating_add(1)),
            BinaryOp::GreaterOrEqual => self.min_us = self.min_us.max(us),
            _ => {}
        }
    }

    /// The times that a condition lets through: what its ANDed parts say of column 0.
    pub(super) fn of(tree: &Tree, condition: NodeId) -> Self {
        let mut range = Self::default();
        range.collect(tree, condition);
        range
    }

    fn collect(&mut self, tree: &Tree, condition: NodeId) {
        match tree.node(condition) {
            Node::Binary(BinaryOp::And, a, b) => {
                self.collect(tree, a);
                self.collect(tree, b);
            }
            Node::Binary(op, a, b) => match (tree.node(a), tree.node(b)) {
                (Node::Column(0), Node::Timestamp(us)) => self.narrow(op, us),
                (Node::Timestamp(us), Node::Column(0)) => self.narrow(op.mirrored(), us),
                _ => {}
            },
            Node::Between(false, x, low, high) => {
                if let (Node::Column(0), Node::Timestamp(low), Node::Timestamp(high)) =
                    (tree.node(x), tree.node(low), tree.node(high))
                {
                    self.narrow(BinaryOp::GreaterOrEqual, low);
                    self.narrow(BinaryOp::LessOrEqual, high);
                }
            }
            _ => {}
        }
    }
}

impl Plan {
    /// Nothing yet; for static memory.
    pub(super) const fn new() -> Self {
        Self {
            mode: Mode::Stream,
            kinds: heapless::Vec::new(),
            columns_used: 0,
            outputs: heapless::Vec::new(),
            keys: heapless::Vec::new(),
            aggregates: heapless::Vec::new(),
            order: heapless::Vec::new(),
            time: TimeRange { min_us: 0, max_us: 0 }, // all zeros, so that static memory takes no flash
            has_now: false,
            filter: Filter::new(),
            has_period: false,
        }
    }

    /// The name of an output.
    pub(super) fn output_name<'n>(&self, output: &Output, columns: &[Column<'n>], text: &'n str) -> &'n str {
        match output.name {
            OutputName::Text(span) => span.of(text),
            OutputName::Column(index) => column_at(columns, index).map_or("", |column| column.name),
        }
    }

    /// Rows that must be kept to answer with `limit` after `offset`; none is all.
    pub(super) fn rows_kept(select: &Select) -> Option<u64> {
        select.limit.map(|limit| limit.saturating_add(select.offset))
    }
}

/// A column of the table, or a hidden one behind them.
pub(super) fn column_at<'c>(columns: &[Column<'c>], index: u8) -> Option<Column<'c>> {
    let index = usize::from(index);
    columns.get(index).or_else(|| HIDDEN_COLUMNS.get(index - columns.len().min(index))).copied()
}
