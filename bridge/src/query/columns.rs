//! The columns of an answer, and how the columns of boards whose tables differ become one list.

use crate::fault::Fault;
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

/// The columns of an answer to which several boards contribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct United {
    /// By name, in the order in which they were met.
    pub columns: Vec<OwnedColumn>,
}

impl United {
    /// Adds the columns of a board; returns which of its columns each united one is, as far as they are known now.
    /// An int and a float are a float; other types that differ are a conflict.
    pub fn add(&mut self, board: &str, columns: &[OwnedColumn]) -> Result<Vec<usize>, Fault> {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
            return Ok((0..columns.len()).collect());
        }
        let mut taken = vec![false; self.columns.len()];
        let mut places = Vec::with_capacity(columns.len());
        for column in columns {
            let place = (0..taken.len())
                .find(|place| !taken[*place] && self.columns[*place].name == column.name)
                .unwrap_or(self.columns.len());
            match self.columns.get_mut(place) {
                None => {
                    self.columns.push(column.clone());
                    taken.push(true);
                }
                Some(united) => {
                    taken[place] = true;
                    united.kind = joined(united.kind, column.kind).ok_or_else(|| {
                        let message = format!(
                            "column `{}` is {} on board `{board}` and {} on others",
                            column.name,
                            column.kind.name(),
                            united.kind.name()
                        );
                        let action = "name boards that agree, or leave the column out";
                        Fault::new("schema_conflict", message, action).with("board", board)
                    })?;
                }
            }
            places.push(place);
        }
        Ok(places)
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
        assert_eq!(
            united.add("a", &columns(&[("t", ColumnType::Int), ("x", ColumnType::Text)])),
            Ok(vec![0, 1])
        );
        assert_eq!(
            united.add("b", &columns(&[("y", ColumnType::Bool), ("t", ColumnType::Float32)])),
            Ok(vec![2, 0])
        );
        assert_eq!(
            united.columns,
            columns(&[("t", ColumnType::Float64), ("x", ColumnType::Text), ("y", ColumnType::Bool)])
        );
        let fault = united.add("c", &columns(&[("x", ColumnType::Int)])).unwrap_err();
        assert_eq!((fault.code, fault.details["board"].as_str()), ("schema_conflict", Some("c")));
        assert_eq!(fitted(Value::Int(3), ColumnType::Float64), Value::Float64(3.0));
    }
}
