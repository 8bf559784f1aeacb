//! Conditions of a statement that boards can look at before they send a row. Only what is certainly right: comparisons of
//! one table's columns with constants, ANDed in the WHERE that reads the table, not where an outer join adds NULLs.

use super::{limits::FILTER_BYTES_MAX, moment};
use crate::query::LargeMemory;
use shared::{
    engine::Query,
    schema::{Column, is_name},
    sql,
    time::Utc,
    value::ColumnType,
};
use sqlparser::ast::{
    BinaryOperator, Expr, JoinOperator, Select, TableFactor, TableWithJoins, UnaryOperator, Value,
};

/// A relation of a FROM: what it is called, and whether an outer join can put NULLs in the place of its rows.
pub(super) struct Relation<'s> {
    pub(super) called: &'s str,
    pub(super) factor: &'s TableFactor,
    pub(super) is_nullable: bool,
}

/// The relations of a SELECT; empty where that is not simple.
pub(super) fn relations(select: &Select) -> Vec<Relation<'_>> {
    let mut found = Vec::new();
    for from in &select.from {
        if add_relations(from, &mut found).is_none() {
            return Vec::new();
        }
    }
    found
}

fn add_relations<'s>(from: &'s TableWithJoins, found: &mut Vec<Relation<'s>>) -> Option<()> {
    found.push(relation(&from.relation, false)?);
    for join in &from.joins {
        let is_nullable = match join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => false,
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => true,
            _ => return None, // what stands before it can become NULL
        };
        found.push(relation(&join.relation, is_nullable)?);
    }
    Some(())
}

fn relation(factor: &TableFactor, is_nullable: bool) -> Option<Relation<'_>> {
    let called = match factor {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => &alias.name.value,
            None => &name.0.last()?.as_ident()?.value,
        },
        TableFactor::Derived { alias, .. } => alias.as_ref().map_or("", |alias| &alias.name.value),
        _ => return None,
    };
    Some(Relation { called, factor, is_nullable })
}

/// The conditions of a WHERE, each with the relation that it is about.
pub(super) fn conditions<'r>(
    filter: &Expr,
    relations: &'r [Relation<'r>],
    now_us: i64,
) -> Vec<(&'r Relation<'r>, String)> {
    let mut found = Vec::new();
    let mut open = vec![filter];
    while let Some(condition) = open.pop() {
        match condition {
            Expr::Nested(inner) => open.push(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => open.extend([&**right, &**left]),
            _ => {
                let mut writer = Writer { relations, now_us, relation: None, text: String::new() };
                let is_written = writer.condition(condition).is_some();
                let select = format!("SELECT * FROM t WHERE {}", writer.text);
                match writer.relation {
                    Some(relation) if is_written && !relation.is_nullable && sql::parse(&select).is_ok() => {
                        found.push((relation, writer.text));
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

/// Those of the conditions that a table with these columns can look at.
pub(super) fn filter(conditions: &[String], columns: &[(&str, ColumnType)]) -> Option<String> {
    let columns: Vec<Column<'_>> =
        columns.iter().map(|(name, kind)| Column { name, kind: *kind, unit: "" }).collect();
    let is_taken = |condition: &str| {
        let select = format!("SELECT * FROM t WHERE {condition}");
        Query::<LargeMemory>::default().open(&select, &columns, 0, 0..0).is_ok()
    };
    let mut filter = String::new();
    for condition in conditions.iter().filter(|condition| is_taken(condition)) {
        let both = if filter.is_empty() { condition.clone() } else { format!("{filter} AND {condition}") };
        if both.len() <= FILTER_BYTES_MAX && is_taken(&both) {
            filter = both;
        }
    }
    (!filter.is_empty()).then_some(filter)
}

/// Writes a condition in the board's words. None: it has something in it that is not simple.
struct Writer<'r> {
    relations: &'r [Relation<'r>],
    now_us: i64,
    /// The one relation that it is about.
    relation: Option<&'r Relation<'r>>,
    text: String,
}

impl Writer<'_> {
    fn condition(&mut self, condition: &Expr) -> Option<()> {
        self.text.push('(');
        match condition {
            Expr::Nested(inner) => self.condition(inner)?,
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                self.condition(left)?;
                self.text.push_str(if *op == BinaryOperator::And { " AND " } else { " OR " });
                self.condition(right)?;
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                self.text.push_str("NOT ");
                self.condition(expr)?;
            }
            Expr::BinaryOp { left, op, right } => {
                let sign = match op {
                    BinaryOperator::Eq => " = ",
                    BinaryOperator::NotEq => " <> ",
                    BinaryOperator::Lt => " < ",
                    BinaryOperator::LtEq => " <= ",
                    BinaryOperator::Gt => " > ",
                    BinaryOperator::GtEq => " >= ",
                    _ => return None,
                };
                self.operand(left)?;
                self.text.push_str(sign);
                self.operand(right)?;
            }
            Expr::IsNull(inner) => {
                self.operand(inner)?;
                self.text.push_str(" IS NULL");
            }
            Expr::IsNotNull(inner) => {
                self.operand(inner)?;
                self.text.push_str(" IS NOT NULL");
            }
            Expr::Between { expr, negated, low, high } => {
                self.operand(expr)?;
                self.text.push_str(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
                self.operand(low)?;
                self.text.push_str(" AND ");
                self.operand(high)?;
            }
            Expr::InList { expr, list, negated } if !list.is_empty() => {
                self.operand(expr)?;
                self.text.push_str(if *negated { " NOT IN (" } else { " IN (" });
                for (index, member) in list.iter().enumerate() {
                    self.text.push_str(if index == 0 { "" } else { ", " });
                    self.operand(member)?;
                }
                self.text.push(')');
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                self.operand(expr)?;
                self.text.push_str(if *negated { " NOT LIKE " } else { " LIKE " });
                self.operand(pattern)?;
            }
            _ => return None,
        }
        self.text.push(')');
        Some(())
    }

    /// A column or a constant.
    fn operand(&mut self, operand: &Expr) -> Option<()> {
        if let Some(us) = moment::fixed(operand, self.now_us) {
            self.text.push_str(&format!("TIMESTAMP '{}'", Utc(us)));
            return Some(());
        }
        match operand {
            Expr::Nested(inner) => return self.operand(inner),
            Expr::Identifier(name) => {
                // With several relations, whose it is shows only when their columns are known.
                let [relation] = self.relations else { return None };
                self.column(relation, &name.value)?;
            }
            Expr::CompoundIdentifier(parts) => {
                let [.., qualifier, name] = &parts[..] else { return None };
                let mut meant = self
                    .relations
                    .iter()
                    .filter(|relation| relation.called.eq_ignore_ascii_case(&qualifier.value));
                let (Some(relation), None) = (meant.next(), meant.next()) else { return None };
                self.column(relation, &name.value)?;
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                let Expr::Value(value) = &**expr else { return None };
                let Value::Number(number, false) = &value.value else { return None };
                self.text.push('-');
                self.text.push_str(number);
            }
            Expr::Value(value) => match &value.value {
                Value::Number(number, false) => self.text.push_str(number),
                Value::SingleQuotedString(text) => self.text.push_str(&format!("'{text}'")),
                Value::Boolean(truth) => self.text.push_str(if *truth { "TRUE" } else { "FALSE" }),
                _ => return None,
            },
            _ => return None,
        }
        Some(())
    }

    fn column(&mut self, relation: &'_ Relation<'_>, name: &str) -> Option<()> {
        let relation = self.relations.iter().find(|other| std::ptr::eq(*other, relation))?;
        let is_other = self.relation.is_some_and(|other| !std::ptr::eq(other, relation));
        if is_other || !is_name(name) {
            return None;
        }
        self.relation = Some(relation);
        self.text.push_str(&format!("\"{name}\""));
        Some(())
    }
}
