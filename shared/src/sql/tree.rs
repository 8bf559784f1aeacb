//! A parsed SELECT: nodes in one bounded arena that refer to each other by number and to the text by place.
//!
//! Nothing here borrows, so that a board can keep a query beside its text between two steps of running it.

use crate::limits::{GROUP_KEYS_MAX, SELECT_ITEMS_MAX, SORT_KEYS_MAX, SQL_LIST_ITEMS_MAX, SQL_NODES_MAX};

/// A place in the text of the query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u16,
    /// How many bytes.
    pub len: u16,
}

impl Span {
    /// The text at this place; empty where it is not one of `text`.
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        let start = usize::from(self.start);
        text.get(start..start + usize::from(self.len)).unwrap_or_default()
    }
}

/// The number of a node in its tree.
pub type NodeId = u8;

/// One node of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// `NULL`
    Null,
    /// `TRUE`, `FALSE`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent, or too large for an integer.
    Float(f64),
    /// What stands between two quotes, as written: a quote in it is still two.
    Text(Span),
    /// `TIMESTAMP '2026-11-18T05:00:00Z'`: microseconds since 1970-01-01 UTC.
    Timestamp(i64),
    /// `3 days`, `interval '3 hours'`
    Interval(i32, Unit),
    /// A column's name, or that of an item, until it is resolved.
    Name(Span),
    /// Column `n` of the table. The parser makes none; resolving a [`Name`](Node::Name) does.
    Column(u8),
    /// Value `n` of a group: its keys, then its aggregates. The parser makes none; the planner does.
    Slot(u8),
    /// `now()`. The parser leaves it; whoever runs the query puts a timestamp here.
    Now,
    /// `- x`, `NOT x`
    Unary(UnaryOp, NodeId),
    /// `x + y`, `x = y`, `x AND y`, …
    Binary(BinaryOp, NodeId, NodeId),
    /// `x IS [NOT] NULL`
    IsNull(Negated, NodeId),
    /// `x [NOT] BETWEEN low AND high`
    Between(Negated, NodeId, NodeId, NodeId),
    /// `x [NOT] IN (…)`
    In(Negated, NodeId, List),
    /// `x [NOT] LIKE pattern`
    Like(Negated, NodeId, NodeId),
    /// `x::int`, `x::float(2)`, `x::text`, `CAST(x AS …)`
    Cast(CastTo, NodeId),
    /// `abs(x)`, `coalesce(x, y, …)`, …
    Function(Function, List),
    /// `count(*)` (without an argument), `sum([DISTINCT] x)`, …
    Aggregate(Aggregate, Distinct, Option<NodeId>),
    /// `increments(unit, n, x)`
    Increments(Unit, u16, NodeId),
    /// `period(unit, n, end, x)`: the end, then the column
    Period(Unit, u16, NodeId, NodeId),
}

/// Whether `NOT` stands before it.
pub type Negated = bool;
/// Whether `DISTINCT` stands before it.
pub type Distinct = bool;

/// Consecutive entries of [`Tree::list_items`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The first.
    pub start: u8,
    /// How many.
    pub len: u8,
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `NOT`
    Not,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// The comparison with its sides exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
            other => other,
        }
    }
}

/// What a cast makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastTo {
    /// `int`
    Int,
    /// `float`, `float(n)`: rounded to n decimals
    Float(Option<u8>),
    /// `text`
    Text,
}

/// A function of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Function {
    Abs,
    Round,
    Floor,
    Ceil,
    Lower,
    Upper,
    Length,
    Coalesce,
}

/// A function of many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Aggregate {
    Count,
    Sum,
    SumRest,
    Avg,
    Min,
    Max,
    Range,
    First,
    Last,
    FirstAt,
    LastAt,
    Stddev,
    Variance,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// One item of a SELECT's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The expression; none for `*`.
    pub node: Option<NodeId>,
    /// The name after AS.
    pub name: Option<Span>,
    /// The expression as it was written: its name where it has no other.
    pub source: Span,
}

/// One key of ORDER BY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The expression.
    pub node: NodeId,
    /// Whether the greatest comes first.
    pub descending: bool,
}

/// A SELECT.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// The nodes of all expressions.
    pub tree: Tree,
    /// Whether equal rows are given once.
    pub distinct: bool,
    /// What is selected.
    pub items: heapless::Vec<Item, SELECT_ITEMS_MAX>,
    /// The table's name.
    pub from: Span,
    /// WHERE
    pub filter: Option<NodeId>,
    /// GROUP BY
    pub group_by: heapless::Vec<NodeId, GROUP_KEYS_MAX>,
    /// HAVING
    pub having: Option<NodeId>,
    /// ORDER BY
    pub order_by: heapless::Vec<SortKey, SORT_KEYS_MAX>,
    /// LIMIT; none is no limit.
    pub limit: Option<u64>,
    /// OFFSET
    pub offset: u64,
}

/// The nodes of a SELECT's expressions.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The nodes.
    pub nodes: heapless::Vec<Node, SQL_NODES_MAX>,
    /// Where each node stands in the text: the byte at which a fault of it is reported.
    pub positions: heapless::Vec<u16, SQL_NODES_MAX>,
    /// The members of all lists.
    pub list_items: heapless::Vec<NodeId, SQL_LIST_ITEMS_MAX>,
}

impl Select {
    /// Nothing yet; for static memory.
    pub const fn new() -> Self {
        Self {
            tree: Tree {
                nodes: heapless::Vec::new(),
                positions: heapless::Vec::new(),
                list_items: heapless::Vec::new(),
            },
            distinct: false,
            items: heapless::Vec::new(),
            from: Span { start: 0, len: 0 },
            filter: None,
            group_by: heapless::Vec::new(),
            having: None,
            order_by: heapless::Vec::new(),
            limit: None,
            offset: 0,
        }
    }
}

impl Tree {
    /// The node with this number; [`Node::Null`] where there is none.
    pub fn node(&self, id: NodeId) -> Node {
        self.nodes.get(usize::from(id)).copied().unwrap_or(Node::Null)
    }

    /// The columns that any node is: bit i for column i.
    pub fn columns_used(&self) -> u32 {
        self.nodes.iter().fold(0, |used, node| match node {
            Node::Column(index) => used | 1_u32.checked_shl((*index).into()).unwrap_or(0),
            _ => used,
        })
    }

    /// Where a node stands in the text.
    pub fn position(&self, id: NodeId) -> usize {
        self.positions.get(usize::from(id)).copied().unwrap_or(0).into()
    }

    /// The members of a list.
    pub fn list(&self, list: List) -> &[NodeId] {
        let start = usize::from(list.start);
        self.list_items.get(start..start + usize::from(list.len)).unwrap_or_default()
    }
}
