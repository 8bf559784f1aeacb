//! Expressions as trees, before they are written in anybody's words.

use shared::sql::tree::Unit;

/// What an expression gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Kind {
    Bool,
    Int,
    Float,
    Text,
    Moment,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// `TIMESTAMP '…'`
    Moment(i64),
    /// `'…'` where a moment is compared with it.
    MomentText(i64),
    Now,
    Column(&'static str),
    /// `_row_id`
    RowId,
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
    IsNull(bool, Box<Expression>),
    Between(bool, Box<[Expression; 3]>),
    In(bool, Box<Expression>, Vec<Expression>),
    Like(bool, Box<Expression>, Box<Expression>),
    Cast(CastTo, Box<Expression>),
    /// A function that both sides know by this name.
    Call(&'static str, Vec<Expression>),
    /// A moment and so many units later.
    Later(Box<Expression>, i32, Unit),
    Increments(Unit, u16, Box<Expression>),
    /// Units, the end, and the column.
    Period(Unit, u16, Box<Expression>, &'static str),
    /// `count(*)` has no argument.
    Aggregate(&'static str, bool, Option<Box<Expression>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CastTo {
    Int,
    Float,
    Decimals(u8),
    Text,
}

impl Expression {
    pub(super) fn boxed(self) -> Box<Self> {
        Box::new(self)
    }

    pub(super) fn children(&self) -> Vec<&Expression> {
        match self {
            Expression::Negative(x)
            | Expression::Not(x)
            | Expression::IsNull(_, x)
            | Expression::Cast(_, x)
            | Expression::Later(x, ..)
            | Expression::Increments(_, _, x)
            | Expression::Period(_, _, x, _) => vec![x],
            Expression::Binary(_, x, y) | Expression::Like(_, x, y) => vec![x, y],
            Expression::Between(_, all) => all.iter().collect(),
            Expression::In(_, x, list) => [&**x].into_iter().chain(list).collect(),
            Expression::Call(_, list) => list.iter().collect(),
            Expression::Aggregate(_, _, x) => x.iter().map(|x| &**x).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it, or anything in it, is such.
    pub(super) fn has(&self, is_such: &dyn Fn(&Expression) -> bool) -> bool {
        is_such(self) || self.children().into_iter().any(|child| child.has(is_such))
    }

    pub(super) fn has_aggregate(&self) -> bool {
        self.has(&|node| matches!(node, Expression::Aggregate(..)))
    }

    /// Whether it is different in different rows: what is not may be taken for the number of an item.
    pub(super) fn has_column(&self) -> bool {
        self.has(&|node| {
            matches!(node, Expression::Column(_) | Expression::RowId | Expression::Aggregate(..))
        })
    }

    /// Whether it is computed from how far values lie apart: floats that are the same only nearly.
    pub(super) fn has_spread(&self) -> bool {
        self.has(&|node| matches!(node, Expression::Aggregate("stddev" | "variance", ..)))
    }
}
