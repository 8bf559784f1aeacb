//! The values a cell can hold, and their types.

use serde::{Deserialize, Serialize};

/// The type of a column. Append-only: the number is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnType {
    /// True or false.
    Bool,
    /// A whole number, 64 bits with sign.
    Int,
    /// A binary float of 32 bits.
    Float32,
    /// A binary float of 64 bits.
    Float64,
    /// Microseconds since 1970-01-01 UTC.
    Timestamp,
    /// UTF-8 text.
    Text,
}

impl ColumnType {
    /// The name a person sees.
    pub const fn name(self) -> &'static str {
        match self {
            ColumnType::Bool => "bool",
            ColumnType::Int => "int",
            ColumnType::Float32 | ColumnType::Float64 => "float",
            ColumnType::Timestamp => "timestamp",
            ColumnType::Text => "text",
        }
    }
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// See [`ColumnType::Bool`].
    Bool(bool),
    /// See [`ColumnType::Int`].
    Int(i64),
    /// See [`ColumnType::Float32`].
    Float32(f32),
    /// See [`ColumnType::Float64`].
    Float64(f64),
    /// See [`ColumnType::Timestamp`].
    Timestamp(i64),
    /// See [`ColumnType::Text`].
    Text(&'a str),
}

impl Value<'_> {
    /// The type of the column this value belongs in; NULL belongs in any.
    pub const fn column_type(&self) -> Option<ColumnType> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(_) => ColumnType::Bool,
            Value::Int(_) => ColumnType::Int,
            Value::Float32(_) => ColumnType::Float32,
            Value::Float64(_) => ColumnType::Float64,
            Value::Timestamp(_) => ColumnType::Timestamp,
            Value::Text(_) => ColumnType::Text,
        })
    }
}
