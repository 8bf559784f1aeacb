//! The pages of a query's answer: the first takes a snapshot, the others go on in it. Pages joined are the whole.

use super::{
    Tools,
    arguments::Usual,
    page::{Notes, PageWriter, ROWS_DEFAULT, ROWS_MAX, reason, rows_that_fit},
    snapshot::{Position, Rest, Snapshot, forged, write_cursor},
};
use crate::{
    fault::Fault,
    query::{Asked, Batch, Context, Joined, Leg, OwnedColumn, Pin, Question, Scan, Step},
};
use serde_json::Map;
use shared::{
    command::Format,
    format::{Shape, Statistics},
    message::Class,
    schema::Column,
};
use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

/// How a page is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    shape: Shape,
    format: Format,
    rows_max: u64,
    start: Instant,
}

impl View {
    pub(super) fn new(usual: &Usual, has_statistics: bool) -> Self {
        Self {
            shape: Shape::Query { statistics: has_statistics },
            format: usual.format.unwrap_or(Format::Mcp),
            rows_max: usual.limit.unwrap_or(ROWS_DEFAULT).clamp(1, ROWS_MAX),
            start: Instant::now(),
        }
    }

    fn writer<'c>(&self, columns: &'c [Column<'c>]) -> PageWriter<'c> {
        PageWriter::new(self.shape, self.format, columns, self.rows_max)
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
    pub(super) asked: Asked,
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
    let Ready { asked, now_us, is_strict } = ready;
    let (rest, missing) = if asked.question.is_stream() {
        (Rest::Boards(Box::new(asked.question), asked.legs), asked.missing)
    } else {
        let mut joined = Joined::ask(asked, is_strict, context).await?;
        let batches = joined.keep()?;
        let missing = std::mem::take(&mut joined.missing);
        (Rest::Kept(Box::new(joined), batches), missing)
    };
    let missing: Map<_, _> = missing.into_iter().map(|(board, fault)| (board, reason(&fault))).collect();
    let snapshot = Snapshot { as_of_us: now_us, rest, missing, is_strict };
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

/// The page that a cursor names.
pub(super) async fn next(
    tools: &Tools,
    cursor: &str,
    view: View,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let opened = tools.inner.snapshots.lock().unwrap_or_else(PoisonError::into_inner).open(cursor);
    let (id, snapshot, position) = opened?;
    if !snapshot.has(position) {
        return Err(forged());
    }
    let mut page = write(&snapshot, position, view, context).await?;
    page.notes.is_continued = true;
    page.notes.next_cursor = page.next.map(|position| write_cursor(id, position));
    Ok(items(page))
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
    let Snapshot { rest, as_of_us, is_strict, missing } = snapshot;
    let Rest::Boards(question, _) = rest else {
        return (Snapshot { rest, as_of_us, is_strict, missing }, position);
    };
    let legs = std::mem::take(&mut page.legs);
    let leg = legs.iter().take(position.leg).flatten().count();
    let rest = Rest::Boards(question, legs.into_iter().flatten().collect());
    let missing = page.notes.missing.clone();
    (Snapshot { rest, as_of_us, is_strict, missing }, Position { leg, ..position })
}

async fn write(
    snapshot: &Snapshot,
    position: Position,
    view: View,
    context: &Context,
) -> Result<Page, Fault> {
    let mut page = match &snapshot.rest {
        Rest::Kept(joined, batches) => kept(joined, batches, position, view)?,
        Rest::Boards(question, legs) => scanned(snapshot, question, legs, position, view, context).await?,
    };
    page.notes.as_of_us = snapshot.as_of_us;
    page.notes.is_truncated |= page.next.is_some();
    page.notes.missing.extend(snapshot.missing.clone());
    Ok(page)
}

/// A page of an answer that is here.
fn kept(joined: &Joined, batches: &[Batch], position: Position, view: View) -> Result<Page, Fault> {
    let columns: Vec<Column<'_>> = joined.columns().iter().map(OwnedColumn::borrowed).collect();
    let mut writer = view.writer(&columns);
    let (mut index, mut is_full) = (0, false);
    for batch in batches {
        if writer.is_measured() {
            joined.rows(batch, |cells| writer.measure(cells))?;
        }
        joined.rows(batch, |cells| {
            is_full = is_full || index >= position.rows && !writer.push(cells);
            index += u64::from(!is_full);
        })?;
    }
    let notes = Notes {
        row_count: writer.given,
        rows_lost: joined.rows_lost,
        boards: joined.boards.clone(),
        clock_unset: !joined.clock_set,
        ..Notes::default()
    };
    let text = writer.end(&view.statistics(joined.boards.len()));
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
