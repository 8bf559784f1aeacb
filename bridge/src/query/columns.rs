//! The columns of an answer, and how the columns of boards whose tables differ become one list.

use crate::{fault::Fault, field::ColumnInfo};
use shared::{
    schema::Column,
    value::{ColumnType, Value},
};

/// A column that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedColumn {
    /// Its name.
    pub name: String,
    /// What its cells hold.
    pub kind: ColumnType,
    /// Its unit, empty where there is none.
    pub unit: String,
}

impl From<&Column<'_>> for OwnedColumn {
    fn from(column: &Column<'_>) -> Self {
        Self { name: column.name.into(), kind: column.kind, unit: column.unit.into() }
    }
}

impl OwnedColumn {
    /// As the formatter takes it.
    pub fn borrowed(&self) -> Column<'_> {
        Column { name: &self.name, kind: self.kind, unit: &self.unit }
    }
}

impl From<&ColumnInfo> for OwnedColumn {
    fn from(column: &ColumnInfo) -> Self {
        Self { name: column.name.clone(), kind: column.column_type, unit: column.unit.clone() }
    }
}

/// The columns of a table that several boards have.
#[derive(Clone, Debug, Default)]
pub struct United {
    /// By name, in the order in which they were met.
    pub columns: Vec<OwnedColumn>,
    /// Columns whose types do not go together, by their place: a fault only where they are used.
    conflicts: Vec<(usize, Fault)>,
    /// The board on which each was met first.
    met_on: Vec<String>,
}

impl United {
    /// Adds the columns of a board. An int and a float are a float; other types that differ are a conflict.
    pub fn add(&mut self, board: &str, columns: &[OwnedColumn]) {
        for column in columns {
            let Some(place) = self.columns.iter().position(|united| united.name == column.name) else {
                self.columns.push(column.clone());
                self.met_on.push(board.into());
                continue;
            };
            let united = &mut self.columns[place];
            match joined(united.kind, column.kind) {
                Some(kind) => united.kind = kind,
                None => {
                    let first = &self.met_on[place];
                    let message = format!(
                        "column `{}` is {} on board `{first}` and {} on board `{board}`",
                        column.name,
                        united.kind.name(),
                        column.kind.name()
                    );
                    let action = "name boards that agree, or leave the column out";
                    let fault = Fault::new("schema_conflict", message, action);
                    self.conflicts.push((place, fault.with("boards", vec![first.as_str(), board])));
                }
            }
        }
    }

    /// Why the column at a place cannot be used.
    pub fn conflict(&self, place: usize) -> Option<Fault> {
        self.conflicts.iter().find(|(conflicting, _)| *conflicting == place).map(|(_, fault)| fault.clone())
    }
}

fn joined(a: ColumnType, b: ColumnType) -> Option<ColumnType> {
    use ColumnType::{Float32, Float64, Int};
    match (a, b) {
        (a, b) if a == b => Some(a),
        (Int | Float32 | Float64, Int | Float32 | Float64) => Some(Float64),
        _ => None,
    }
}

/// A cell as its united column has it. A narrow float keeps its shortest text: it is not widened.
pub(super) fn fitted<'v>(value: Value<'v>, kind: ColumnType) -> Value<'v> {
    match (value, kind) {
        (Value::Int(int), ColumnType::Float64) => Value::Float64(int as f64),
        (value, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(list: &[(&str, ColumnType)]) -> Vec<OwnedColumn> {
        list.iter()
            .map(|(name, kind)| OwnedColumn { name: (*name).into(), kind: *kind, unit: String::new() })
            .collect()
    }

    #[test]
    fn columns_unite_by_name() {
        let mut united = United::default();
        united.add("a", &columns(&[("t", ColumnType::Int), ("x", ColumnType::Text)]));
        united.add("b", &columns(&[("y", ColumnType::Bool), ("t", ColumnType::Float32)]));
        assert_eq!(
            united.columns,
            columns(&[("t", ColumnType::Float64), ("x", ColumnType::Text), ("y", ColumnType::Bool)])
        );
        assert_eq!(united.conflict(1), None);
        united.add("c", &columns(&[("x", ColumnType::Int)]));
        let fault = united.conflict(1).unwrap();
        assert_eq!(
            (fault.code, &fault.details["boards"]),
            ("schema_conflict", &serde_json::json!(["a", "c"]))
        );
        assert_eq!(fitted(Value::Int(3), ColumnType::Float64), Value::Float64(3.0));
    }
}
