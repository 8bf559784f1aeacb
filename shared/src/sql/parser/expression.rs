//! Operators and their operands, by precedence. What is called with parentheses is in [`call`](super::call).

use super::{NO_SUBQUERY, Parser, deep};
use crate::{
    limits::EXPRESSION_DEPTH_MAX,
    sql::{
        fault::Fault,
        lexer::{Keyword, Kind, Sign},
        tree::{BinaryOp, CastTo, Node, NodeId, UnaryOp},
    },
};

/// How tightly an operator binds; as in SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Or,
    And,
    /// Before its operand: no [`Infix`] has it.
    Not,
    Equality,
    Comparison,
    Sum,
    Product,
}

/// An operator that stands after its first operand.
#[derive(Clone, Copy, Debug)]
enum Infix {
    Binary(BinaryOp),
    Is,
    /// `NOT` before IN, LIKE or BETWEEN.
    Not,
    In,
    Like,
    Between,
}

impl Infix {
    fn of(kind: Kind) -> Option<(Precedence, Infix)> {
        use {BinaryOp as B, Infix::Binary, Precedence as P};
        Some(match kind {
            Kind::Keyword(Keyword::Or) => (P::Or, Binary(B::Or)),
            Kind::Keyword(Keyword::And) => (P::And, Binary(B::And)),
            Kind::Sign(Sign::Equal) => (P::Equality, Binary(B::Equal)),
            Kind::Sign(Sign::NotEqual) => (P::Equality, Binary(B::NotEqual)),
            Kind::Keyword(Keyword::Is) => (P::Equality, Infix::Is),
            Kind::Keyword(Keyword::Not) => (P::Equality, Infix::Not),
            Kind::Keyword(Keyword::In) => (P::Equality, Infix::In),
            Kind::Keyword(Keyword::Like) => (P::Equality, Infix::Like),
            Kind::Keyword(Keyword::Between) => (P::Equality, Infix::Between),
            Kind::Sign(Sign::Less) => (P::Comparison, Binary(B::Less)),
            Kind::Sign(Sign::LessOrEqual) => (P::Comparison, Binary(B::LessOrEqual)),
            Kind::Sign(Sign::Greater) => (P::Comparison, Binary(B::Greater)),
            Kind::Sign(Sign::GreaterOrEqual) => (P::Comparison, Binary(B::GreaterOrEqual)),
            Kind::Sign(Sign::Plus) => (P::Sum, Binary(B::Add)),
            Kind::Sign(Sign::Minus) => (P::Sum, Binary(B::Subtract)),
            Kind::Sign(Sign::Star) => (P::Product, Binary(B::Multiply)),
            Kind::Sign(Sign::Slash) => (P::Product, Binary(B::Divide)),
            Kind::Sign(Sign::Percent) => (P::Product, Binary(B::Remainder)),
            _ => return None,
        })
    }
}

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self) -> Result<NodeId, Fault> {
        self.deeper(|parser| {
            let operand = parser.operand()?;
            parser.operators(operand, Precedence::Or)
        })
    }

    /// The operators that bind at least so tightly, after the first operand.
    fn operators(&mut self, mut left: NodeId, least: Precedence) -> Result<NodeId, Fault> {
        while let Some((precedence, infix)) = Infix::of(self.next.kind).filter(|(found, _)| *found >= least) {
            left = self.infix(left, precedence, infix)?;
        }
        Ok(left)
    }

    /// The right side of an operator: an operand, and what binds tighter than the operator.
    fn right_side(&mut self, of: Precedence) -> Result<NodeId, Fault> {
        let mut right = self.operand()?;
        while let Some((tighter, _)) = Infix::of(self.next.kind).filter(|(found, _)| *found > of) {
            right = self.deeper(|parser| parser.operators(right, tighter))?;
        }
        Ok(right)
    }

    /// Every way of the parser into itself goes through here: what bounds this bounds its stack.
    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<NodeId, Fault>) -> Result<NodeId, Fault> {
        if self.nesting >= EXPRESSION_DEPTH_MAX {
            return Err(deep(self.next.start));
        }
        self.nesting += 1;
        let id = read(self)?;
        self.nesting -= 1;
        Ok(id)
    }

    fn infix(&mut self, left: NodeId, precedence: Precedence, infix: Infix) -> Result<NodeId, Fault> {
        let position = self.take()?.start;
        match infix {
            Infix::Binary(op) => {
                let right = self.right_side(precedence)?;
                self.node(Node::Binary(op, left, right), position, &[left, right])
            }
            Infix::Is => {
                let is_negated = self.takes_keyword(Keyword::Not)?;
                if !self.takes_keyword(Keyword::Null)? {
                    return Err(self.fault("expected `NULL` after IS; values are compared with `=`"));
                }
                self.node(Node::IsNull(is_negated, left), position, &[left])
            }
            Infix::Not => {
                if self.takes_keyword(Keyword::In)? {
                    self.in_list(left, true, position)
                } else if self.takes_keyword(Keyword::Like)? {
                    self.like(left, true, position)
                } else if self.takes_keyword(Keyword::Between)? {
                    self.between(left, true, position)
                } else {
                    Err(self.fault("expected `IN`, `LIKE` or `BETWEEN` after NOT"))
                }
            }
            Infix::In => self.in_list(left, false, position),
            Infix::Like => self.like(left, false, position),
            Infix::Between => self.between(left, false, position),
        }
    }

    fn like(&mut self, left: NodeId, is_negated: bool, position: usize) -> Result<NodeId, Fault> {
        let pattern = self.right_side(Precedence::Equality)?;
        self.node(Node::Like(is_negated, left, pattern), position, &[left, pattern])
    }

    fn between(&mut self, left: NodeId, is_negated: bool, position: usize) -> Result<NodeId, Fault> {
        let low = self.right_side(Precedence::Equality)?;
        self.keyword(Keyword::And, "AND")?;
        let high = self.right_side(Precedence::Equality)?;
        self.node(Node::Between(is_negated, left, low, high), position, &[left, low, high])
    }

    fn in_list(&mut self, left: NodeId, is_negated: bool, position: usize) -> Result<NodeId, Fault> {
        self.sign(Sign::Open, "(")?;
        if self.next.kind == Kind::Sign(Sign::Close) {
            return Err(self.fault("expected a value: a list is not empty"));
        }
        let first = self.pending.len();
        self.list_members()?;
        let list = self.close_list(first);
        let deepest = self.deepest(list);
        self.node(Node::In(is_negated, left, list), position, &[left, deepest])
    }

    /// Expressions with commas between them, and the parenthesis that closes them.
    pub(super) fn list_members(&mut self) -> Result<(), Fault> {
        loop {
            let start = self.next.start;
            let member = self.expression()?;
            self.list_member(member, start)?;
            if !self.takes(Sign::Comma)? {
                return self.closing();
            }
        }
    }

    /// `)`
    pub(super) fn closing(&mut self) -> Result<(), Fault> {
        if self.takes(Sign::Close)? { Ok(()) } else { Err(self.fault("expected an operator or `)`")) }
    }

    /// What operators stand between: signs and NOT before it, casts after it.
    fn operand(&mut self) -> Result<NodeId, Fault> {
        while self.takes(Sign::Plus)? {}
        let position = self.next.start;
        if self.takes_keyword(Keyword::Not)? {
            let operand = self.deeper(|parser| parser.right_side(Precedence::Not))?;
            return self.node(Node::Unary(UnaryOp::Not, operand), position, &[operand]);
        }
        if self.takes(Sign::Minus)? {
            return self.minus(position);
        }
        let mut operand = self.primary()?;
        while self.next.kind == Kind::Sign(Sign::Cast) {
            let position = self.take()?.start;
            let to = self.cast_type()?;
            operand = self.cast(to, operand, position)?;
        }
        Ok(operand)
    }

    pub(super) fn cast(&mut self, to: CastTo, operand: NodeId, position: usize) -> Result<NodeId, Fault> {
        self.node(Node::Cast(to, operand), position, &[operand])
    }

    /// What follows a minus sign. A number takes the sign into itself, so that the least integer can be written.
    fn minus(&mut self, position: usize) -> Result<NodeId, Fault> {
        let (number, text) = (self.next, self.next_text());
        let operand = self.deeper(Self::operand)?;
        if matches!(number.kind, Kind::Integer | Kind::Decimal) {
            let negative = match self.select.tree.node(operand) {
                Node::Int(value) => Some(Node::Int(-value)),
                Node::Float(_) if text.parse() == Ok(i64::MIN.unsigned_abs()) => Some(Node::Int(i64::MIN)),
                Node::Float(value) => Some(Node::Float(-value)),
                Node::Interval(count, unit) => Some(Node::Interval(-count, unit)),
                _ => None, // a cast of a number
            };
            if let (Some(node), Some(place)) =
                (negative, self.select.tree.nodes.get_mut(usize::from(operand)))
            {
                *place = node;
                return Ok(operand);
            }
        }
        self.node(Node::Unary(UnaryOp::Minus, operand), position, &[operand])
    }

    fn primary(&mut self) -> Result<NodeId, Fault> {
        let (kind, position) = (self.next.kind, self.next.start);
        let literal = match kind {
            Kind::Integer | Kind::Decimal => return self.number(),
            Kind::Word => return self.word(),
            Kind::QuotedName => Node::Name(self.next.span()),
            Kind::Text => Node::Text(self.next.span()),
            Kind::Keyword(Keyword::Null) => Node::Null,
            Kind::Keyword(Keyword::True) => Node::Bool(true),
            Kind::Keyword(Keyword::False) => Node::Bool(false),
            Kind::Sign(Sign::Open) => return self.parentheses(),
            Kind::Sign(Sign::Star) => return Err(self.fault("`*` stands alone or in `count(*)`")),
            Kind::Keyword(Keyword::Select) => return Err(self.fault(NO_SUBQUERY)),
            Kind::Keyword(_) => {
                return Err(self.fault("expected a value; a keyword is a name only in double quotes"));
            }
            Kind::Sign(_) | Kind::End => return Err(self.fault("expected a value")),
        };
        self.take()?;
        self.one_table(kind)?;
        self.node(literal, position, &[])
    }

    /// Names of columns have no table before them.
    pub(super) fn one_table(&self, before: Kind) -> Result<(), Fault> {
        let is_name = matches!(before, Kind::Word | Kind::QuotedName);
        if is_name && self.next.kind == Kind::Sign(Sign::Dot) {
            return Err(self.fault("one table: its columns need no name before theirs"));
        }
        Ok(())
    }

    fn parentheses(&mut self) -> Result<NodeId, Fault> {
        self.take()?;
        let inner = self.expression()?;
        if self.next.kind == Kind::Sign(Sign::Comma) {
            return Err(self.fault("expected `)`: only IN takes a list"));
        }
        self.closing()?;
        Ok(inner)
    }
}
