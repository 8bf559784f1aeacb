//! A query from its text to its rows, in steps of bounded time and in fixed memory.
//!
//! ```text
//!   open ── Period? ──▶ Scan ──▶ (stream) rows go out as they are read
//!                         │
//!                         └────▶ Finish ──▶ Emit      groups, sorted or different rows
//! ```
//!
//! A step reads a page, or orders one record; between two steps others run, and pages may go. What was
//! overwritten before it could be read is counted.

mod computed;
mod explain;
mod joined;
mod period;
mod reading;

use super::{
    aggregate,
    eval::Fault,
    filter::Filter,
    plan::{Mode, Plan, column_at},
    records,
    resolve::resolve,
    scan::{Pages, ScanFault},
    workspace::{Memory, Workspace},
};
use crate::{
    limits::{QUERY_TEXT_BYTES_MAX, TABLE_COLUMNS_MAX, WORKSPACE_BYTES},
    message::{ErrorCode, Failure},
    page::Page,
    rowcode::RowError,
    schema::Column,
    sql::{
        self,
        tree::{Node, Select},
    },
    value::{ColumnType, Value},
};
use core::ops::Range;

pub use joined::PeriodEnd;

/// Where the rows of an answer go.
pub trait RowSink {
    /// Takes a row. [`RowError::Full`] asks to come again with an empty one.
    fn push(&mut self, cells: &[Value<'_>]) -> Result<(), RowError>;
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something, but there is nothing to show: go on.
    Working,
    /// The sink has rows. After them the answer goes on at this place: a row's number in a stream, the number of
    /// a row of the answer in what was computed.
    Rows(u64),
    /// There are no more rows.
    Done,
}

/// Its tag stands apart, so that [`Phase::Scan`] is all zeros: static memory of zeros takes no flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Scan,
    /// Looks for the row at which a `period` ends; the latest moment so far.
    Period(Option<i64>),
    /// Puts one record after the other in its order.
    Finish(usize),
    /// Gives one record after the other.
    Emit(u64),
}

/// A query and all it needs. Large: it stands in static memory.
#[derive(Clone, Debug)]
pub struct Query<M: Memory = Workspace<WORKSPACE_BYTES>> {
    pub(super) text: heapless::String<QUERY_TEXT_BYTES_MAX>,
    pub(super) select: Select,
    pub(super) plan: Plan,
    work: M,
    phase: Phase,
    /// The rows that are asked about: those of the table when the query came.
    rows: Range<u64>,
    /// The next row to read.
    next: u64,
    /// The next row to read for the end of a `period`.
    period_next: u64,
    /// Rows of a stream that are still left out, and those given.
    offset_left: u64,
    given: u64,
    /// Rows that were overwritten before they could be read, and not told yet.
    lost: u64,
}

impl<M: Memory + Default> Default for Query<M> {
    fn default() -> Self {
        Self::with(M::default())
    }
}

impl<const BYTES: usize> Query<Workspace<BYTES>> {
    /// No query yet, in a board's memory.
    pub const fn new() -> Self {
        Self::with(Workspace::new())
    }
}

impl<M: Memory> Query<M> {
    /// No query yet, in this memory.
    pub const fn with(work: M) -> Self {
        Self {
            text: heapless::String::new(),
            select: Select::new(),
            plan: Plan::new(),
            work,
            phase: Phase::Scan,
            rows: 0..0,
            next: 0,
            period_next: 0,
            offset_left: 0,
            given: 0,
            lost: 0,
        }
    }

    /// Reads and plans a query over the rows `rows` of a table with these columns. It is now `now_us`.
    pub fn open(
        &mut self,
        text: &str,
        columns: &[Column<'_>],
        now_us: i64,
        rows: Range<u64>,
    ) -> Result<(), Failure> {
        self.text.clear();
        self.text.push_str(text).map_err(|_| {
            let hint = format_args!("a query has at most {QUERY_TEXT_BYTES_MAX} bytes");
            Failure::new(ErrorCode::TooLong, QUERY_TEXT_BYTES_MAX, hint)
        })?;
        sql::parse_into(text, &mut self.select)?;
        if columns.len() > TABLE_COLUMNS_MAX {
            let hint = format_args!("TABLE_COLUMNS_MAX: at most {TABLE_COLUMNS_MAX} columns");
            return Err(Failure::new(ErrorCode::Capacity, self.select.from.start.into(), hint));
        }
        resolve(&mut self.select, &mut self.text, columns, now_us, &mut self.plan)?;
        self.rows = rows;
        self.restart();
        Ok(())
    }

    /// The name of the table that a text asks about, read without planning it.
    pub fn table_of<'t>(&mut self, text: &'t str) -> Result<(&'t str, usize), Failure> {
        sql::parse_into(text, &mut self.select)?;
        Ok((self.select.from.of(text), self.select.from.start.into()))
    }

    fn restart(&mut self) {
        (self.next, self.period_next) = (self.rows.start, self.rows.start);
        self.offset_left = self.select.offset;
        (self.given, self.lost) = (0, 0);
        self.phase = if self.plan.has_period { Phase::Period(None) } else { Phase::Scan };
        self.plan.filter = Filter::of(&self.select.tree, self.select.filter);
        let needs_time = self.plan.aggregates.iter().any(|used| aggregate::is_by_time(used.aggregate));
        self.plan.columns_used = self.select.tree.columns_used() | u32::from(needs_time);
        let (record_bytes, value_bytes) = records::sizes(&self.plan);
        self.work.reset(record_bytes, value_bytes);
    }

    /// Whether it means something else a moment later: it has `now()` in it.
    pub fn depends_on_now(&self) -> bool {
        self.plan.has_now
    }

    /// Whether rows go out while they are read; otherwise the answer is computed first.
    pub fn is_stream(&self) -> bool {
        self.plan.mode == Mode::Stream
    }

    /// Whether the answer is there, so that its rows can be given.
    pub fn is_ready(&self) -> bool {
        match self.phase {
            Phase::Period(_) | Phase::Finish(_) => false,
            Phase::Scan => self.is_stream(),
            Phase::Emit(_) => true,
        }
    }

    /// The columns of the answer. `columns` are those that the query was opened with.
    pub fn columns<'q>(&'q self, columns: &'q [Column<'q>]) -> impl Iterator<Item = Column<'q>> {
        self.plan.outputs.iter().map(|output| {
            let unit = match self.select.tree.node(output.node) {
                Node::Column(index) => column_at(columns, index).map_or("", |column| column.unit),
                _ => "",
            };
            Column { name: self.plan.output_name(output, columns, &self.text), kind: output.kind, unit }
        })
    }

    /// The types of the answer's columns.
    pub fn kinds(&self) -> impl Iterator<Item = ColumnType> + '_ {
        self.plan.outputs.iter().map(|output| output.kind)
    }

    /// The rows of a stream that are still to be read, or of a computed answer that are to be given.
    pub fn remaining(&self) -> Range<u64> {
        match self.phase {
            Phase::Emit(at) => at..self.rows_computed(),
            _ => self.next..self.rows.end,
        }
    }

    /// Goes on with a stream at row `next`, after `given` rows of the answer; with a computed answer, at its row
    /// `next`. False if that cannot be.
    pub fn resume(&mut self, next: u64, end: u64, given: u64) -> bool {
        if let Phase::Emit(at) = &mut self.phase {
            *at = next;
            self.lost = 0; // was told with the head, which must have arrived
            return end == self.rows_computed() && next <= end;
        }
        if !self.is_stream() || end > self.rows.end || next > end {
            return false;
        }
        self.rows.end = end;
        self.next = next;
        self.lost = 0; // what was not told is counted again
        self.given = given;
        self.offset_left = if given == 0 { self.select.offset } else { 0 };
        true
    }

    /// Goes back to the beginning of the answer; what was computed stays.
    pub fn rewind(&mut self) {
        match &mut self.phase {
            Phase::Emit(at) => *at = 0,
            Phase::Scan if self.plan.mode == Mode::Stream => {
                self.next = self.rows.start;
                self.lost = 0; // what was not told is counted again
                self.offset_left = self.select.offset;
                self.given = 0;
            }
            _ => {}
        }
    }

    /// Rows of the answer that were given so far.
    pub fn given(&self) -> u64 {
        match self.phase {
            Phase::Emit(at) => at,
            _ => self.given,
        }
    }

    /// Rows that were overwritten before they could be read, and not told yet.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Rows that were overwritten before they could be read, since this was last asked.
    pub fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }

    /// Counts what is gone from the front of what is still to be read.
    pub fn skip_lost(&mut self, pages: &impl Pages) {
        if !matches!(self.phase, Phase::Emit(_) | Phase::Finish(_)) {
            let first = pages.page(self.next).and_then(|bytes| Page::read(bytes).ok());
            self.skip_to(first.map_or(self.next, |page| page.first_row_id()));
        }
    }

    fn skip_to(&mut self, first: u64) {
        let first = first.min(self.rows.end);
        if first > self.next {
            self.lost += first - self.next;
            self.next = first;
        }
    }

    /// Does a little.
    pub fn step(&mut self, pages: &impl Pages, sink: &mut impl RowSink) -> Result<Progress, Failure> {
        match self.phase {
            Phase::Period(latest) => self.look_for_period(pages, latest)?,
            Phase::Scan if self.is_stream() => return self.stream(pages, sink),
            Phase::Scan => self.gather(pages)?,
            Phase::Finish(record) => self.finish(record)?,
            Phase::Emit(at) => return self.emit(at, sink),
        }
        Ok(Progress::Working)
    }

    /// Takes what another query of the same text has gathered from other pages, whose rows come after these. Both
    /// have read all their rows, and neither has given any.
    pub fn merge<F: Memory>(&mut self, from: &Query<F>) -> Result<(), Failure> {
        let (mine, theirs) = (self.phase, from.phase);
        if self.plan.mode != Mode::Group || [mine, theirs] != [Phase::Finish(0); 2] {
            return Err(Failure::new(ErrorCode::Unsupported, 0, format_args!("only gathered groups merge")));
        }
        self.lost += from.lost;
        records::merge(&self.plan, &mut self.work, &from.work).map_err(|fault| self.failure(fault))
    }

    /// Whether all rows are read, so that groups can be [merged](Self::merge).
    pub fn is_gathered(&self) -> bool {
        self.phase == Phase::Finish(0)
    }

    /// The failure that a fault of an expression is.
    fn failure(&self, fault: Fault) -> Failure {
        Failure::new(fault.code, self.select.tree.position(fault.node), format_args!("{}", fault.hint))
    }

    fn scan_failure(&self, fault: ScanFault) -> Failure {
        match fault {
            ScanFault::Expression(fault) => self.failure(fault),
            ScanFault::Damaged => damaged(),
        }
    }
}

/// A value as its column has it: what the types promised is widened, nothing else changes.
pub(super) fn fitted(value: Value<'_>, kind: ColumnType) -> Value<'_> {
    match (kind, value) {
        (ColumnType::Int, Value::Bool(v)) => Value::Int(v.into()),
        (ColumnType::Int, Value::Timestamp(v)) => Value::Int(v),
        (ColumnType::Timestamp, Value::Int(v)) => Value::Timestamp(v),
        (ColumnType::Float64, Value::Float32(v)) => Value::Float64(v.into()),
        (ColumnType::Float64, Value::Int(v)) => Value::Float64(v as f64),
        (ColumnType::Float64, Value::Bool(v)) => Value::Float64(v.into()),
        (_, value) => value,
    }
}

fn damaged() -> Failure {
    Failure::new(ErrorCode::Damaged, 0, format_args!("a page of the table cannot be read"))
}

fn capacity(hint: &str) -> Failure {
    Failure::new(ErrorCode::Capacity, 0, format_args!("{hint}"))
}

/// A row that the sink does not take even when it is empty.
fn sink_failure(error: RowError) -> Failure {
    let hint = match error {
        RowError::Full => "a row does not fit a frame; select fewer columns",
        _ => "TEXT_BYTES_MAX: a text of the answer is too long",
    };
    Failure::new(ErrorCode::TooLong, 0, format_args!("{hint}"))
}
