//! A query from its text to its rows, in steps of bounded time and in fixed memory.
//!
//! ```text
//!   open ── Period? ──▶ Scan ──▶ (stream) rows go out as they are read
//!                         │
//!                         └────▶ Finish ──▶ Emit      groups, sorted or different rows
//! ```
//!
//! A step reads a page or two, or orders one record; between two steps others run, and pages may go. What was
//! overwritten before it could be read is counted.

use super::{
    calendar,
    eval::{Fault, Scope},
    filter::Filter,
    plan::{Mode, Plan, TimeRange, column_at},
    records::{self, Sorted},
    resolve::resolve,
    scan::{PageRows, Pages, ScanFault},
    workspace::Workspace,
};
use crate::{
    limits::{
        COLUMNS_MAX, DISTINCT_ROWS_MAX, DISTINCT_VALUES_MAX, EXPRESSION_TEXT_BYTES_MAX, GROUPS_MAX,
        QUERY_TEXT_BYTES_MAX, SORT_ROWS_MAX, WORKSPACE_BYTES,
    },
    message::{ErrorCode, Failure},
    page::Page,
    rowcode::RowError,
    schema::Column,
    sql::{
        self,
        tree::{BinaryOp, Node, NodeId, Select, Unit},
    },
    value::{ColumnType, Value},
};
use core::ops::Range;

/// Pages that one step of a stream reads at most.
const STREAM_PAGES_MAX: usize = 2;

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
pub struct Query<const BYTES: usize = WORKSPACE_BYTES> {
    text: heapless::String<QUERY_TEXT_BYTES_MAX>,
    select: Select,
    plan: Plan,
    work: Workspace<BYTES>,
    phase: Phase,
    /// The rows that are asked about: those of the table when the query came.
    rows: Range<u64>,
    /// The next row to read.
    next: u64,
    /// Rows of a stream that are still left out, and those given.
    offset_left: u64,
    given: u64,
    /// Rows that were overwritten before they could be read, and not told yet.
    lost: u64,
}

impl<const BYTES: usize> Default for Query<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BYTES: usize> Query<BYTES> {
    /// No query yet.
    pub const fn new() -> Self {
        Self {
            text: heapless::String::new(),
            select: Select::new(),
            plan: Plan::new(),
            work: Workspace::new(),
            phase: Phase::Scan,
            rows: 0..0,
            next: 0,
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
        self.next = self.rows.start;
        self.offset_left = self.select.offset;
        (self.given, self.lost) = (0, 0);
        self.phase = if self.plan.has_period { Phase::Period(None) } else { Phase::Scan };
        self.plan.filter = Filter::of(&self.select.tree, self.select.filter);
        self.plan.columns_used = self.select.tree.columns_used();
        let (record_bytes, value_bytes) = records::sizes(&self.plan);
        self.work.reset(record_bytes, value_bytes);
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
            if !matches!(self.phase, Phase::Period(_)) {
                self.lost += first - self.next;
            }
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
    pub fn merge<const FROM: usize>(&mut self, from: &Query<FROM>) -> Result<(), Failure> {
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

    // ---- The ends of periods ----

    #[inline(never)]
    fn look_for_period(&mut self, pages: &impl Pages, latest: Option<i64>) -> Result<(), Failure> {
        let is_period = |node: &Node| matches!(node, Node::Period(..));
        let Some(id) = self.select.tree.nodes.iter().position(is_period) else {
            self.next = self.rows.start;
            self.phase = Phase::Scan;
            if let Some(filter) = self.select.filter {
                self.plan.time = TimeRange::of(&self.select.tree, filter);
                self.plan.filter = Filter::of(&self.select.tree, Some(filter));
            }
            return Ok(());
        };
        let Node::Period(unit, count, end, column) = self.select.tree.nodes[id] else { return Ok(()) };
        let Some(page) = self.next_page(pages)? else {
            self.set_period(id, unit, count, column, latest)?;
            self.next = self.rows.start;
            self.phase = Phase::Period(None);
            return Ok(());
        };
        let (Node::Timestamp(end_us), Node::Column(column)) =
            (self.select.tree.node(end), self.select.tree.node(column))
        else {
            return Ok(());
        };
        let mut found = latest;
        let mut note = |us: i64| {
            if us <= end_us {
                found = Some(found.map_or(us, |before: i64| before.max(us)));
            }
        };
        let after = page.next_row_id();
        let is_whole = page.first_row_id() >= self.next && after <= self.rows.end;
        let newest_us = pages.utc_us(page.time_max_us());
        if column == 0 && is_whole && newest_us <= end_us {
            note(newest_us); // no need to look inside
        } else {
            let mut rows = PageRows::new(pages, &page, &self.plan, self.next..self.rows.end);
            while rows.advance(pages).map_err(|_| damaged())? {
                if let Some(Value::Timestamp(us)) = rows.cells().get(usize::from(column)) {
                    note(*us);
                }
            }
        }
        self.next = after.min(self.rows.end);
        self.phase = Phase::Period(found);
        Ok(())
    }

    /// `period(…)` becomes `column > from AND column <= latest`.
    fn set_period(
        &mut self,
        id: usize,
        unit: Unit,
        count: u16,
        column: NodeId,
        latest: Option<i64>,
    ) -> Result<(), Failure> {
        let tree = &mut self.select.tree;
        let Some(latest) = latest else {
            tree.nodes[id] = Node::Bool(false);
            return Ok(());
        };
        let from = calendar::moved(latest, unit, -i64::from(count)).unwrap_or(i64::MIN);
        let position = tree.positions[id];
        let first = tree.nodes.len() as NodeId;
        let made = [
            Node::Timestamp(from),
            Node::Timestamp(latest),
            Node::Binary(BinaryOp::Greater, column, first),
            Node::Binary(BinaryOp::LessOrEqual, column, first + 1),
        ];
        for node in made {
            if tree.nodes.push(node).is_err() || tree.positions.push(position).is_err() {
                let hint = format_args!("SQL_NODES_MAX: shorten the query");
                return Err(Failure::new(ErrorCode::Capacity, position.into(), hint));
            }
        }
        tree.nodes[id] = Node::Binary(BinaryOp::And, first + 2, first + 3);
        Ok(())
    }

    // ---- Scanning ----

    /// The page at which reading goes on; none at the end. Counts what is gone.
    fn next_page<'p>(&mut self, pages: &'p impl Pages) -> Result<Option<Page<'p>>, Failure> {
        if self.next >= self.rows.end {
            return Ok(None);
        }
        let Some(bytes) = pages.page(self.next) else {
            self.skip_to(self.rows.end);
            return Ok(None);
        };
        let page = Page::read(bytes).map_err(|_| damaged())?;
        self.skip_to(page.first_row_id());
        Ok(if self.next < self.rows.end { Some(page) } else { None })
    }

    /// The next page that may have rows for the filter, within so many pages.
    fn next_page_in_time<'p>(&mut self, pages: &'p impl Pages) -> Result<Option<Page<'p>>, Failure> {
        while let Some(page) = self.next_page(pages)? {
            let (first_us, last_us) = (pages.utc_us(page.time_min_us()), pages.utc_us(page.time_max_us()));
            if self.plan.time.touches(first_us, last_us) {
                return Ok(Some(page));
            }
            let after = page.next_row_id();
            self.next = after.max(self.next + 1).min(self.rows.end);
        }
        Ok(None)
    }

    fn stream(&mut self, pages: &impl Pages, sink: &mut impl RowSink) -> Result<Progress, Failure> {
        let given_before = self.given;
        for _ in 0..STREAM_PAGES_MAX {
            if self.select.limit.is_some_and(|limit| self.given >= limit) {
                self.next = self.rows.end;
            }
            let Some(page) = self.next_page_in_time(pages)? else { break };
            if !self.stream_page(pages, &page, sink, given_before)? {
                break; // the sink is full
            }
        }
        Ok(if self.given > given_before {
            Progress::Rows(self.next)
        } else if self.next >= self.rows.end {
            Progress::Done
        } else {
            Progress::Working
        })
    }

    /// Gives the rows of a page; false if the sink, empty before `given_before`, has no room for the next.
    fn stream_page(
        &mut self,
        pages: &impl Pages,
        page: &Page<'_>,
        sink: &mut impl RowSink,
        given_before: u64,
    ) -> Result<bool, Failure> {
        let mut rows = PageRows::new(pages, page, &self.plan, self.next..self.rows.end);
        let streamed = self.stream_rows(pages, &mut rows, sink);
        self.next = rows.next();
        match streamed.map_err(|fault| self.scan_failure(fault))? {
            Ok(()) => Ok(true),
            Err(error) => {
                self.next -= 1; // this row comes again
                match error {
                    RowError::Full if self.given > given_before => Ok(false),
                    error => Err(sink_failure(error)),
                }
            }
        }
    }

    /// Gives rows until there are no more, there are enough, or the sink refuses one.
    #[inline(never)]
    fn stream_rows(
        &mut self,
        pages: &impl Pages,
        rows: &mut PageRows<'_>,
        sink: &mut impl RowSink,
    ) -> Result<Result<(), RowError>, ScanFault> {
        let Self { select, plan, text, given, offset_left, .. } = self;
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        while select.limit.is_none_or(|limit| *given < limit) && rows.advance(pages)? {
            let passes = plan.filter.passes_at_once(rows.cells());
            if passes == Some(false) {
                continue;
            }
            let mut bump = &mut scratch[..];
            let scope = Scope { tree: &select.tree, text, cells: rows.cells(), slots: &[] };
            if passes.is_none() && !plan.filter.passes(&scope, &mut bump)? {
                continue;
            }
            if *offset_left > 0 {
                *offset_left -= 1;
                continue;
            }
            let mut row = heapless::Vec::<_, COLUMNS_MAX>::new();
            for output in &plan.outputs {
                let _ = row.push(fitted(scope.value(output.node, &mut bump)?, output.kind)); // as many as outputs
            }
            if let Err(error) = sink.push(&row) {
                return Ok(Err(error));
            }
            *given += 1;
        }
        Ok(Ok(()))
    }

    /// Reads one page into the workspace.
    fn gather(&mut self, pages: &impl Pages) -> Result<(), Failure> {
        if self.plan.mode == Mode::Group && self.plan.keys.is_empty() && self.work.records() == 0 {
            // Without GROUP BY there is one group, even of no rows.
            self.work.push().map_err(|_| capacity("WORKSPACE_BYTES: ask for fewer aggregates at once"))?;
        }
        let Some(page) = self.next_page_in_time(pages)? else {
            self.phase = Phase::Finish(0);
            return Ok(());
        };
        if self.counts_only() {
            let after = page.next_row_id();
            let counted = after.min(self.rows.end) - self.next;
            records::count_rows(&self.plan, &mut self.work, counted);
            self.next += counted;
            return Ok(());
        }
        let mut rows = PageRows::new(pages, &page, &self.plan, self.next..self.rows.end);
        let is_enough = self.gather_rows(pages, &mut rows).map_err(|fault| self.scan_failure(fault))?;
        self.next = if is_enough { self.rows.end } else { rows.next() };
        Ok(())
    }

    /// Takes all rows of a page; true if no more are needed.
    #[inline(never)]
    fn gather_rows(&mut self, pages: &impl Pages, rows: &mut PageRows<'_>) -> Result<bool, ScanFault> {
        let Self { select, plan, text, work, .. } = self;
        let keep = Plan::rows_kept(select);
        let mut scratch = [0; EXPRESSION_TEXT_BYTES_MAX];
        let mut last_group = 0;
        while rows.advance(pages)? {
            let passes = plan.filter.passes_at_once(rows.cells());
            if passes == Some(false) {
                continue;
            }
            let mut bump = &mut scratch[..];
            let scope = Scope { tree: &select.tree, text, cells: rows.cells(), slots: &[] };
            if passes.is_none() && !plan.filter.passes(&scope, &mut bump)? {
                continue;
            }
            match plan.mode {
                Mode::Group => records::take_row(plan, work, &scope, &mut bump, &mut last_group)?,
                Mode::Sort => records::sort_row(plan, work, &scope, &mut bump, keep)?,
                Mode::Distinct => {
                    records::distinct_row(plan, work, &scope, &mut bump)?;
                    if plan.order.is_empty() && keep.is_some_and(|keep| work.records() as u64 >= keep) {
                        return Ok(true);
                    }
                }
                Mode::Stream => {}
            }
        }
        Ok(false)
    }

    /// Whether only rows are counted, so that pages need not be opened.
    fn counts_only(&self) -> bool {
        self.plan.mode == Mode::Group
            && self.plan.keys.is_empty()
            && self.select.filter.is_none()
            && self.plan.aggregates.iter().all(|aggregate| aggregate.argument.is_none())
    }

    // ---- What was computed ----

    /// Puts one record in its place.
    #[inline(never)]
    fn finish(&mut self, record: usize) -> Result<(), Failure> {
        if record >= self.work.records() || self.plan.mode == Mode::Sort {
            self.phase = Phase::Emit(0);
            return Ok(());
        }
        let sorted = Sorted { select: &self.select, plan: &self.plan, text: &self.text };
        let place = sorted.place(&self.work, record).map_err(|fault| self.failure(fault))?;
        if let Some(place) = place {
            // As many as there are records fit.
            let _ = self.work.order.insert(place, record as u16);
        }
        self.phase = Phase::Finish(record + 1);
        Ok(())
    }

    fn rows_computed(&self) -> u64 {
        let all = self.work.order.len() as u64;
        let left = all.saturating_sub(self.select.offset);
        self.select.limit.map_or(left, |limit| left.min(limit))
    }

    #[inline(never)]
    fn emit(&mut self, at: u64, sink: &mut impl RowSink) -> Result<Progress, Failure> {
        let (mut at, begun, end) = (at, at, self.rows_computed());
        let sorted = Sorted { select: &self.select, plan: &self.plan, text: &self.text };
        while at < end {
            let place = (self.select.offset + at) as usize;
            let record = self.work.order.get(place).copied().map_or(0, usize::from);
            let mut pushed = Ok(());
            sorted
                .row(&self.work, record, &mut |cells| pushed = sink.push(cells))
                .map_err(|fault| self.failure(fault))?;
            match pushed {
                Ok(()) => at += 1,
                Err(RowError::Full) if at > begun => break,
                Err(error) => return Err(sink_failure(error)),
            }
        }
        self.phase = Phase::Emit(at);
        Ok(if at > begun { Progress::Rows(at) } else { Progress::Done })
    }

    /// Says how the query is run, a step at a time.
    #[inline(never)]
    pub fn explain(&self, pages: &impl Pages, mut say: impl FnMut(&'static str, core::fmt::Arguments<'_>)) {
        let (mut read, mut skipped, mut next) = (0_u32, 0_u32, self.rows.start);
        while next < self.rows.end
            && let Some(page) = pages.page(next).and_then(|bytes| Page::read(bytes).ok())
        {
            let (first_us, last_us) = (pages.utc_us(page.time_min_us()), pages.utc_us(page.time_max_us()));
            let inside = self.plan.time.touches(first_us, last_us);
            *(if inside { &mut read } else { &mut skipped }) += 1;
            next = (page.next_row_id()).max(next + 1);
        }
        say("scan", format_args!("{read} pages read, {skipped} skipped by time"));
        say("rows", format_args!("{} to {}", self.rows.start, self.rows.end));
        if self.select.filter.is_some() {
            say("filter", format_args!("{} nodes in all expressions", self.select.tree.nodes.len()));
        }
        if self.plan.has_period {
            say("period", format_args!("a first scan finds its last row"));
        }
        let (record_bytes, _) = records::sizes(&self.plan);
        let records_max = BYTES.checked_div(record_bytes).unwrap_or(0);
        match self.plan.mode {
            Mode::Stream => say("answer", format_args!("a stream; nothing is kept")),
            Mode::Sort => say(
                "answer",
                format_args!("sorted; up to {} rows of {record_bytes} bytes", records_max.min(SORT_ROWS_MAX)),
            ),
            Mode::Distinct => say(
                "answer",
                format_args!(
                    "different rows; up to {} of {record_bytes} bytes",
                    records_max.min(DISTINCT_ROWS_MAX)
                ),
            ),
            Mode::Group => say(
                "answer",
                format_args!(
                    "groups by {} keys with {} aggregates; up to {} of {record_bytes} bytes",
                    self.plan.keys.len(),
                    self.plan.aggregates.len(),
                    records_max.min(GROUPS_MAX),
                ),
            ),
        }
        if self.plan.aggregates.iter().any(|aggregate| aggregate.distinct) {
            say("distinct", format_args!("up to {DISTINCT_VALUES_MAX} values"));
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
