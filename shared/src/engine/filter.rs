//! Filters of the common kind: comparisons of columns with constants, all of which must hold. They are read from the
//! tree once, not walked for every row; any other filter is evaluated as an expression.

use super::{
    eval::{Bump, Fault, Scope, compared, known},
    number::order,
};
use crate::{
    limits::FILTER_TERMS_MAX,
    sql::tree::{BinaryOp, Node, NodeId, Tree},
    value::Value,
};
use core::cmp::Ordering;

/// What rows must fulfil.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    /// The condition, if there is one.
    condition: Option<NodeId>,
    /// What the condition is, if it is nothing else.
    terms: heapless::Vec<Term, FILTER_TERMS_MAX>,
}

/// `column op constant`
#[derive(Clone, Copy, Debug)]
struct Term {
    column: u8,
    /// Bit 0: less is accepted, bit 1: equal, bit 2: greater.
    accepts: u8,
    /// How `near` compares with the constant.
    tie: Ordering,
    /// The 32-bit float nearest to the constant: no other lies between the two.
    near: f32,
    constant: Value<'static>,
}

/// The condition is of another kind, or has too many terms.
struct Other;

impl Filter {
    /// Lets every row pass.
    pub(super) const fn new() -> Self {
        Self { condition: None, terms: heapless::Vec::new() }
    }

    /// Reads a condition.
    pub(super) fn of(tree: &Tree, condition: Option<NodeId>) -> Self {
        let mut filter = Self { condition, terms: heapless::Vec::new() };
        if let Some(condition) = condition
            && filter.collect(tree, condition).is_err()
        {
            filter.terms.clear();
        }
        filter
    }

    /// Whether a row passes, if that can be told from its cells alone.
    #[inline(always)]
    pub(super) fn passes_at_once(&self, cells: &[Value<'_>]) -> Option<bool> {
        match self.condition {
            Some(_) if self.terms.is_empty() => None,
            _ => Some(self.terms.iter().all(|term| term.holds(cells))),
        }
    }

    /// Whether a row passes: the condition is neither false nor unknown.
    #[inline(never)]
    pub(super) fn passes<'v>(&self, scope: &Scope<'_, 'v>, bump: &mut Bump<'v>) -> Result<bool, Fault> {
        match self.condition {
            Some(condition) => scope.holds(condition, bump),
            None => Ok(true),
        }
    }

    fn collect(&mut self, tree: &Tree, condition: NodeId) -> Result<(), Other> {
        match tree.node(condition) {
            Node::Binary(BinaryOp::And, a, b) => {
                self.collect(tree, a)?;
                self.collect(tree, b)
            }
            Node::Binary(op, a, b) => match (tree.node(a), tree.node(b)) {
                (Node::Column(column), constant) => self.push(column, op, constant),
                (constant, Node::Column(column)) => self.push(column, op.mirrored(), constant),
                _ => Err(Other),
            },
            Node::Between(false, x, low, high) => match tree.node(x) {
                Node::Column(column) => {
                    self.push(column, BinaryOp::GreaterOrEqual, tree.node(low))?;
                    self.push(column, BinaryOp::LessOrEqual, tree.node(high))
                }
                _ => Err(Other),
            },
            _ => Err(Other),
        }
    }

    fn push(&mut self, column: u8, op: BinaryOp, constant: Node) -> Result<(), Other> {
        let accepts = match op {
            BinaryOp::Less => 0b001,
            BinaryOp::Equal => 0b010,
            BinaryOp::LessOrEqual => 0b011,
            BinaryOp::Greater => 0b100,
            BinaryOp::NotEqual => 0b101,
            BinaryOp::GreaterOrEqual => 0b110,
            _ => return Err(Other),
        };
        let (constant, near) = match constant {
            Node::Int(v) => (Value::Int(v), v as f32),
            Node::Timestamp(v) => (Value::Timestamp(v), v as f32),
            Node::Float(v) if !v.is_nan() => (Value::Float64(v), v as f32),
            _ => return Err(Other),
        };
        let tie = order(Value::Float32(near), constant);
        self.terms.push(Term { column, accepts, tie, near, constant }).map_err(|_| Other)
    }
}

impl Term {
    #[inline(always)]
    fn holds(&self, cells: &[Value<'_>]) -> bool {
        let ordering = match (cells.get(usize::from(self.column)), self.constant) {
            (Some(Value::Int(a)), Value::Int(b)) | (Some(Value::Timestamp(a)), Value::Timestamp(b)) => {
                Some(a.cmp(&b))
            }
            (Some(Value::Float32(a)), _) => a.partial_cmp(&self.near).map(|ordering| ordering.then(self.tie)),
            _ => self.compared_otherwise(cells),
        };
        ordering.is_some_and(|ordering| self.accepts >> (ordering as i8 + 1) & 1 != 0)
    }

    #[inline(never)]
    fn compared_otherwise(&self, cells: &[Value<'_>]) -> Option<Ordering> {
        compared(*known(cells, self.column), self.constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_compares_with_a_constant_between_two_floats() {
        let cell = |v: f32| [Value::Float32(v)];
        let holds = |op, constant, v: f32| {
            let mut filter = Filter::new();
            assert!(filter.push(0, op, constant).is_ok());
            filter.terms[0].holds(&cell(v))
        };
        for constant in [Node::Float(0.1), Node::Int((1 << 24) + 1), Node::Float(1e300), Node::Int(50)] {
            let exact = match constant {
                Node::Float(v) => Value::Float64(v),
                Node::Int(v) => Value::Int(v),
                _ => Value::Null,
            };
            for v in
                [0.1, 0.099_999_99, 0.100_000_01, 50.0, 16_777_216.0, 16_777_218.0, f32::MAX, f32::INFINITY]
            {
                let ordering = order(Value::Float32(v), exact);
                assert_eq!(holds(BinaryOp::Less, constant, v), ordering.is_lt(), "{v} < {constant:?}");
                assert_eq!(
                    holds(BinaryOp::GreaterOrEqual, constant, v),
                    ordering.is_ge(),
                    "{v} >= {constant:?}"
                );
                assert_eq!(holds(BinaryOp::Equal, constant, v), ordering.is_eq(), "{v} = {constant:?}");
            }
            assert!(!holds(BinaryOp::NotEqual, constant, f32::NAN));
        }
    }
}
