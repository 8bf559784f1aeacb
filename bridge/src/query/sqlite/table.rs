//! A table of pages as a virtual table of SQLite, which can only read it.
//!
//! ```text
//!   columns   those of the table, then _board, _epoch, _row_id, which `*` leaves out
//!   types     a timestamp is an integer (µs), a bool 0 or 1, a float of 32 bits the same of 64
//!   skips     pages by `timestamp` and `_row_id`, sources by `_board` and `_epoch`; SQLite looks at each row again
//! ```
//!
//! SQLite reads a virtual table twice for an OR, and once for each value of an IN that it is given: an IN is not taken.

use super::{
    reading::{Bounds, Reading, Stored},
    source::TableRows,
    stop::Stop,
};
use rusqlite::{
    Connection, Error, Result,
    types::{Null, Value},
    vtab::{
        Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
        sqlite3_vtab, sqlite3_vtab_cursor,
    },
};
use shared::{schema::HIDDEN_COLUMNS, value::ColumnType};
use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_int},
    fmt::Write as _,
    sync::Arc,
};

/// What a reading costs beside its rows.
const COST_BASE: f64 = 10.0;
/// The share of rows that a bound of time or of ids is thought to leave.
const BOUND_SHARE: f64 = 0.25;
/// Rows that one moment or one id is thought to have.
const EQUAL_ROWS: f64 = 2.0;

/// A table and who watches over the statement that reads it.
struct Shared {
    table: Arc<TableRows>,
    stop: Arc<Stop>,
}

/// The virtual table.
#[repr(C)]
struct PagesTable {
    /// Must be first.
    base: sqlite3_vtab,
    table: Arc<TableRows>,
    stop: Arc<Stop>,
}

/// One reading of it.
#[repr(C)]
struct PagesCursor {
    /// Must be first.
    base: sqlite3_vtab_cursor,
    table: Arc<TableRows>,
    stop: Arc<Stop>,
    reading: Reading,
}

/// Gives the connection a table of this name.
pub(super) fn add(
    connection: &Connection,
    name: &str,
    table: &Arc<TableRows>,
    stop: &Arc<Stop>,
) -> Result<()> {
    const MODULE: &Module<'_, PagesTable> = &Module::eponymous_only_module();
    let shared = Shared { table: Arc::clone(table), stop: Arc::clone(stop) };
    connection.create_module(name, MODULE, Some(shared))
}

// SAFETY: the struct is laid out as in C, and SQLite's part of it comes first.
#[expect(unsafe_code, reason = "a virtual table cannot be had otherwise")]
unsafe impl VTab<'_> for PagesTable {
    type Aux = Shared;
    type Cursor = PagesCursor;

    fn connect(
        _: &mut VTabConnection,
        shared: Option<&Shared>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let Some(Shared { table, stop }) = shared else {
            return Err(Error::ModuleError("the table has no rows behind it".into()));
        };
        let mut columns = String::new();
        for column in &table.columns {
            let _ = write!(columns, "{} {}, ", quoted_name(&column.name), type_name(column.kind));
        }
        for (index, column) in HIDDEN_COLUMNS.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(columns, "{comma}{} {} HIDDEN", quoted_name(column.name), type_name(column.kind));
        }
        let declared = CString::new(format!("CREATE TABLE x({columns})"))
            .map_err(|_| Error::ModuleError("a column has a NUL in its name".into()))?;
        let (table, stop) = (Arc::clone(table), Arc::clone(stop));
        Ok((declared.into(), Self { base: sqlite3_vtab::default(), table, stop }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut plan = format!("{:x}:", info.col_used());
        let mut rows = self.table.sources.iter().map(|source| source.row_count() as f64).sum::<f64>();
        let mut taken = Vec::new();
        for (index, constraint) in info.constraints().enumerate() {
            let Some(sign) = sign(&constraint.operator()).filter(|_| constraint.is_usable()) else {
                continue;
            };
            let Some(bound) = self.bound(constraint.column()) else { continue };
            let is_range = matches!(bound, 't' | 'r');
            let is_exact = info.collation(index).is_ok_and(|collation| collation == "BINARY");
            if info.is_in_constraint(index)? || !is_range && (sign != '=' || !is_exact) {
                continue;
            }
            taken.push(index);
            plan.extend([bound, sign]);
            rows = match (is_range, sign) {
                (true, '=') => rows.min(EQUAL_ROWS),
                (true, _) => rows * BOUND_SHARE,
                _ => rows / self.table.sources.len().max(1) as f64,
            };
        }
        for (argument, index) in (1..).zip(taken) {
            info.constraint_usage(index).set_argv_index(argument);
        }
        let mut order = info.order_bys();
        // One epoch's time never runs back.
        let is_by_time = matches!((order.next(), order.next()), (Some(by), None) if by.column() == 0 && !by.is_order_by_desc());
        info.set_order_by_consumed(is_by_time && self.table.sources.len() <= 1);
        info.set_idx_str(&plan);
        info.set_estimated_rows(rows as i64);
        info.set_estimated_cost(COST_BASE + rows);
        Ok(true)
    }

    fn open(&mut self) -> Result<PagesCursor> {
        let (table, stop) = (Arc::clone(&self.table), Arc::clone(&self.stop));
        Ok(PagesCursor { base: sqlite3_vtab_cursor::default(), table, stop, reading: Reading::default() })
    }
}

impl PagesTable {
    /// The letter of a column by which something can be left out.
    fn bound(&self, column: c_int) -> Option<char> {
        let column = usize::try_from(column).ok()?;
        let own = self.table.columns.len();
        match column.checked_sub(own) {
            None if column == 0 => Some('t'),
            None => None,
            Some(hidden) => ['b', 'e', 'r'].get(hidden).copied(),
        }
    }
}

// SAFETY: the struct is laid out as in C, and SQLite's part of it comes first.
#[expect(unsafe_code, reason = "a virtual table cannot be had otherwise")]
unsafe impl VTabCursor for PagesCursor {
    fn filter(&mut self, _: c_int, plan: Option<&str>, arguments: &Filters<'_>) -> Result<()> {
        let (used, letters) = plan.and_then(|plan| plan.split_once(':')).unwrap_or(("", ""));
        let columns_used = u64::from_str_radix(used, 16).unwrap_or(u64::MAX);
        let mut bounds = Bounds::default();
        let letters: Vec<char> = letters.chars().collect();
        for (index, pair) in letters.chunks_exact(2).enumerate().take(arguments.len()) {
            take_bound(&mut bounds, pair[0], pair[1], &arguments.get::<Value>(index)?);
        }
        let Self { table, stop, reading, .. } = self;
        reading.begin(table, columns_used, bounds, stop).map_err(|fault| failed(stop, fault))
    }

    fn next(&mut self) -> Result<()> {
        let Self { table, stop, reading, .. } = self;
        reading.advance(table, stop).map_err(|fault| failed(stop, fault))
    }

    fn eof(&self) -> bool {
        self.reading.is_at_end()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let source = self.table.sources.get(self.reading.source());
        match (column.checked_sub(self.table.columns.len()), source) {
            (Some(0), Some(source)) => context.set_result(&source.board),
            (Some(1), Some(source)) => context.set_result(source.epoch.cast_signed()),
            (Some(2), _) => context.set_result(self.reading.row_id().cast_signed()),
            _ => match self.reading.cell(column) {
                Stored::Null => context.set_result(Null),
                Stored::Int(value) => context.set_result(value),
                Stored::Float(value) => context.set_result(value),
                Stored::Text(start, len) => context.set_result(self.reading.text(start, len)),
            },
        }
    }

    fn rowid(&self) -> Result<i64> {
        self.reading.number().map_err(|fault| failed(&self.stop, fault))
    }
}

fn failed(stop: &Stop, fault: crate::fault::Fault) -> Error {
    let error = Error::ModuleError(fault.message.clone());
    stop.fail(fault);
    error
}

fn sign(operator: &IndexConstraintOp) -> Option<char> {
    Some(match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => '=',
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => '>',
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => 'g',
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => '<',
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => 'l',
        _ => return None,
    })
}

/// Narrows what is read. SQLite looks at each row again, so a bound may be too wide, never too narrow.
fn take_bound(bounds: &mut Bounds, letter: char, sign: char, value: &Value) {
    let (low, high) = match value {
        Value::Null => {
            bounds.is_empty = true; // nothing is equal to it, below or above
            return;
        }
        Value::Integer(value) => (*value, *value),
        Value::Real(value) => (value.floor() as i64, value.ceil() as i64),
        Value::Text(text) if letter == 'b' => {
            bounds.board = Some(text.clone());
            return;
        }
        Value::Text(_) | Value::Blob(_) => return, // SQLite knows what that means
    };
    let wanted = &mut bounds.wanted;
    match letter {
        'e' if matches!(value, Value::Integer(_)) => bounds.epoch = Some(low),
        't' => {
            let (mut first, mut last) = (*wanted.times_us.start(), *wanted.times_us.end());
            if matches!(sign, '=' | '>' | 'g') {
                first = first.max(low);
            }
            if matches!(sign, '=' | '<' | 'l') {
                last = last.min(high);
            }
            wanted.times_us = first..=last;
        }
        'r' => {
            if matches!(sign, '=' | '>' | 'g') {
                wanted.row_ids.start = wanted.row_ids.start.max(low.max(0).cast_unsigned());
            }
            if matches!(sign, '=' | '<' | 'l') {
                let end = high.max(-1).wrapping_add(1).cast_unsigned(); // behind the last; 2^63 has room
                wanted.row_ids.end = wanted.row_ids.end.min(end);
            }
        }
        _ => {}
    }
}

/// A name as SQLite takes any.
pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The declared type of a column, which decides how SQLite compares it.
fn type_name(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Int => "INTEGER",
        ColumnType::Float32 | ColumnType::Float64 => "REAL",
        ColumnType::Timestamp => "TIMESTAMP",
        ColumnType::Text => "TEXT",
    }
}
