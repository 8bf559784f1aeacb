//! The pages of a query's answer: the first takes a snapshot, the others go on in it. Pages joined are the whole.

use super::{
    Tools,
    arguments::Usual,
    page::{Notes, PageWriter, ROWS_DEFAULT, ROWS_MAX, reason, rows_that_fit},
    snapshot::{Position, Rest, Snapshot, forged, write_cursor},
};
use crate::{
    fault::Fault,
    query::{Batch, Context, Joined, Leg, OwnedColumn, Pin, Planned, Question, Scan, Source, Step},
};
use serde_json::Map;
use shared::{
    command::Format,
    format::{Shape, Statistics},
    message::Class,
    schema::Column,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// How a page is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    has_statistics: bool,
    format: Format,
    rows_max: u64,
    start: Instant,
}

impl View {
    pub(super) fn new(usual: &Usual, has_statistics: bool) -> Self {
        Self {
            has_statistics,
            format: usual.format.unwrap_or(Format::Mcp),
            rows_max: usual.limit.unwrap_or(ROWS_DEFAULT).clamp(1, ROWS_MAX),
            start: Instant::now(),
        }
    }

    /// As a page before was written, unless the call says something else.
    fn going_on(usual: &Usual, snapshot: &Snapshot) -> Self {
        let format = usual.format.unwrap_or(snapshot.format);
        Self { format, ..Self::new(usual, snapshot.has_statistics) }
    }

    fn writer<'c>(&self, columns: &'c [Column<'c>]) -> PageWriter<'c> {
        let shape = Shape::Query { statistics: self.has_statistics };
        PageWriter::new(shape, self.format, columns, self.rows_max)
    }

    fn statistics(&self, boards: usize) -> Statistics {
        let time_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Statistics { time_us, nodes: u32::try_from(boards).unwrap_or(u32::MAX) }
    }
}

/// One page.
struct Page {
    text: String,
    notes: Notes,
    /// Where the next one begins, if there is one.
    next: Option<Position>,
    /// Every board with its rows, as they were when it was asked; none for one that failed.
    legs: Vec<Option<Leg>>,
}

/// A query that is ready to be asked.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) planned: Planned,
    pub(super) now_us: i64,
    pub(super) is_strict: bool,
}

/// The first page of a query.
pub(super) async fn first(
    tools: &Tools,
    ready: Ready,
    view: View,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let Ready { planned, now_us, is_strict } = ready;
    let (rest, missing) = match planned {
        Planned::Dialect(asked) if asked.question.is_stream() => {
            (Rest::Boards(Box::new(asked.question), asked.legs), asked.missing)
        }
        Planned::Dialect(asked) => {
            let joined = Joined::ask(*asked, is_strict, context).await?;
            kept_whole(Source::Joined(Box::new(joined))).await?
        }
        Planned::Beyond(statement) => {
            let rows = statement.ask(is_strict, Class::Interactive, context).await?;
            kept_whole(Source::Beyond(Box::new(rows))).await?
        }
    };
    let missing: Map<_, _> = missing.into_iter().map(|(board, fault)| (board, reason(&fault))).collect();
    let View { format, has_statistics, .. } = view;
    let failed = Mutex::default();
    let snapshot = Snapshot { as_of_us: now_us, rest, missing, failed, is_strict, format, has_statistics };
    let mut page = write(&snapshot, Position::default(), view, context).await?;
    if page.next.is_some() && !can_go_on(&snapshot) {
        page.next = None;
        page.notes.hint = Some("the query is too long to go on with a cursor; shorten it".into());
    }
    if let Some(position) = page.next {
        let (snapshot, position) = pinned(snapshot, &mut page, position);
        let mut snapshots = tools.inner.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let id = snapshots.keep(Arc::new(snapshot));
        page.notes.next_cursor = Some(write_cursor(id, position));
    }
    Ok(items(page))
}

/// An answer that is computed here, as its pages need it.
async fn kept_whole(mut source: Source) -> Result<(Rest, Vec<(String, Fault)>), Fault> {
    let batches = source.keep().await?;
    let missing = source.missing().to_vec();
    Ok((Rest::Kept(Box::new(source), batches), missing))
}

/// The page that a cursor names.
pub(super) async fn next(
    tools: &Tools,
    cursor: &str,
    usual: &Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let opened = tools.inner.snapshots.lock().unwrap_or_else(PoisonError::into_inner).open(cursor);
    let (id, snapshot, position) = opened?;
    if !snapshot.has(position) {
        return Err(forged());
    }
    let view = View::going_on(usual, &snapshot);
    let mut page = write(&snapshot, position, view, context).await?;
    note_failed(&snapshot, &page, position);
    page.notes.is_continued = true;
    page.notes.next_cursor = page.next.map(|position| write_cursor(id, position));
    Ok(items(page))
}

/// Remembers for the pages that follow which of the boards that a page has left behind failed.
fn note_failed(snapshot: &Snapshot, page: &Page, position: Position) {
    let Rest::Boards(_, legs) = &snapshot.rest else { return };
    let end = page.next.map_or(legs.len(), |next| next.leg);
    for ((leg, place), answered) in legs.iter().skip(position.leg).zip(position.leg..end).zip(&page.legs) {
        let why = || page.notes.missing.get(&leg.board.name).cloned().unwrap_or_default();
        snapshot.note(place, answered.is_none().then(|| (leg.board.name.clone(), why())));
    }
}

fn can_go_on(snapshot: &Snapshot) -> bool {
    match &snapshot.rest {
        Rest::Boards(question, legs) => question.can_be_bounded(legs),
        Rest::Kept(..) => true,
    }
}

fn items(page: Page) -> Vec<String> {
    let mut items = vec![page.text];
    items.extend(page.notes.item());
    items
}

/// The snapshot for the pages that follow the first: the boards that answered, each with the rows it had then.
fn pinned(snapshot: Snapshot, page: &mut Page, position: Position) -> (Snapshot, Position) {
    let Rest::Boards(question, _) = snapshot.rest else { return (snapshot, position) };
    let legs = std::mem::take(&mut page.legs);
    let leg = legs.iter().take(position.leg).flatten().count();
    let rest = Rest::Boards(question, legs.into_iter().flatten().collect());
    let missing = page.notes.missing.clone();
    (Snapshot { rest, missing, ..snapshot }, Position { leg, ..position })
}

async fn write(
    snapshot: &Snapshot,
    position: Position,
    view: View,
    context: &Context,
) -> Result<Page, Fault> {
    let mut page = match &snapshot.rest {
        Rest::Kept(source, batches) => kept(source, batches, position, view)?,
        Rest::Boards(question, legs) => scanned(snapshot, question, legs, position, view, context).await?,
    };
    page.notes.as_of_us = snapshot.as_of_us;
    page.notes.is_truncated |= page.next.is_some();
    page.notes.missing.extend(snapshot.missing_before(position));
    Ok(page)
}

/// A page of an answer that is here.
fn kept(source: &Source, batches: &[Batch], position: Position, view: View) -> Result<Page, Fault> {
    let columns: Vec<Column<'_>> = source.columns().iter().map(OwnedColumn::borrowed).collect();
    let mut writer = view.writer(&columns);
    let (mut index, mut is_full) = (0, false);
    for batch in batches {
        if writer.is_measured() {
            source.rows(batch, |cells| writer.measure(cells))?;
        }
        source.rows(batch, |cells| {
            is_full = is_full || index >= position.rows && !writer.push(cells);
            index += u64::from(!is_full);
        })?;
    }
    let notes = Notes {
        row_count: writer.given,
        rows_lost: source.rows_lost(),
        boards: source.boards(),
        clock_unset: !source.is_clock_set(),
        ..Notes::default()
    };
    let text = writer.end(&view.statistics(notes.boards.len()));
    let next = is_full.then_some(Position { rows: index, ..position });
    Ok(Page { text, notes, next, legs: Vec::new() })
}

/// Rows of a scan on their way into a page.
struct Filling<'c, 's> {
    writer: PageWriter<'c>,
    question: &'s Question,
    position: Position,
    /// The page takes no more; another follows.
    is_full: bool,
    /// The statement's LIMIT is reached.
    is_done: bool,
    /// Rows of the present board that were overwritten before those that were taken.
    lost: u64,
}

impl Filling<'_, '_> {
    fn take(&mut self, scan: &Scan, batch: &Batch) -> Result<(), Fault> {
        if self.writer.is_measured() {
            scan.rows(self.question, batch, |_, cells| self.writer.measure(cells))?;
        }
        let offset = self.question.offset;
        let end = self.question.limit.map(|limit| limit.saturating_add(offset));
        let rows_before = self.position.rows;
        scan.rows(self.question, batch, |row_id, cells| {
            self.is_done |= end.is_some_and(|end| self.position.rows >= end);
            if self.is_full || self.is_done {
                return;
            }
            self.is_full = self.position.rows >= offset && !self.writer.push(cells);
            if !self.is_full {
                self.position.rows = self.position.rows.saturating_add(1);
                self.position.next = row_id.saturating_add(1); // as the board says it
            }
        })?;
        if self.position.rows > rows_before {
            self.lost = self.lost.saturating_add(batch.lost); // what is lost before a row that is not taken is counted with the next page
        }
        Ok(())
    }
}

/// How many rows each board is asked for: what is skipped, the page, and one that tells whether there are more.
fn rows_wanted(question: &Question, position: Position, rows_max: u64) -> u64 {
    let skipped = question.offset.saturating_sub(position.rows);
    let end = question.limit.map(|limit| limit.saturating_add(question.offset));
    let left = end.map_or(u64::MAX, |end| end.saturating_sub(position.rows.max(question.offset)));
    skipped.saturating_add(left.min(rows_max + 1))
}

/// A page of rows that are still on boards.
async fn scanned(
    snapshot: &Snapshot,
    question: &Question,
    legs: &[Leg],
    position: Position,
    view: View,
    context: &Context,
) -> Result<Page, Fault> {
    let mut asked: Vec<Leg> = legs.get(position.leg..).unwrap_or_default().to_vec();
    if let Some(Leg { pin: Some(Pin { rows, .. }), .. }) = asked.first_mut()
        && position.next > 0
    {
        rows.start = position.next.min(rows.end);
    }
    let rows_max = view.rows_max.min(rows_that_fit(view.format, question));
    let limit = rows_wanted(question, position, rows_max);
    let opened = Scan::open(question, question.fragment(), asked, Some(limit), context, Class::Interactive);
    let mut scan = opened.await?;
    let columns: Vec<Column<'_>> = question.answer.iter().map(OwnedColumn::borrowed).collect();
    let writer = view.writer(&columns);
    let mut filling = Filling { writer, question, position, is_full: false, is_done: limit == 0, lost: 0 };
    let mut before = (filling.writer.mark(), position);
    let mut notes = Notes { clock_unset: !scan.clock_set, ..Notes::default() };
    let mut failed = vec![false; scan.legs.len()];
    while !filling.is_full && !filling.is_done {
        match scan.next().await {
            Step::End => break,
            Step::Rows(batch) => filling.take(&scan, &batch)?,
            Step::Complete(leg, lost) => {
                notes.rows_lost = notes.rows_lost.saturating_add(lost);
                filling.lost = 0;
                let rows = filling.position.rows;
                filling.position = Position { leg: position.leg + leg + 1, next: 0, rows };
                before = (filling.writer.mark(), filling.position);
            }
            Step::Failed(leg, fault) => {
                if snapshot.is_strict || legs.len() == 1 || context.cancelled.is_cancelled() {
                    return Err(fault);
                }
                failed[leg] = true;
                filling.lost = 0;
                let (mark, at) = before;
                filling.writer.back_to(mark);
                filling.position = Position { leg: position.leg + leg + 1, next: 0, rows: at.rows };
                before = (filling.writer.mark(), filling.position);
                notes.missing.insert(scan.legs[leg].board.name.clone(), reason(&fault));
            }
        }
    }
    if failed.iter().all(|failed| *failed) {
        let all = notes.missing.values().next().and_then(|why| why.as_str()).unwrap_or_default();
        let action = "look at the boards, then ask again";
        return Err(Fault::new("boards_failed", format!("every board failed; the first: {all}"), action));
    }
    let names = scan.legs.iter().zip(&failed).filter(|(_, failed)| !**failed);
    notes.boards = names.map(|(leg, _)| leg.board.name.clone()).collect();
    notes.row_count = filling.writer.given;
    notes.rows_lost = notes.rows_lost.saturating_add(filling.lost);
    let next = filling.is_full.then_some(filling.position);
    let text = filling.writer.end(&view.statistics(notes.boards.len()));
    let legs =
        scan.legs.drain(..).zip(failed).map(|(leg, failed)| (!failed && leg.pin.is_some()).then_some(leg));
    Ok(Page { text, notes, next, legs: legs.collect() })
}
