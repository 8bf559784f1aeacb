//! The pages of a query's answer: the first takes a snapshot, the others go on in it. Pages joined are the whole.

use super::{
    Tools,
    arguments::Usual,
    page::{Notes, PageWriter, ROWS_DEFAULT, ROWS_MAX, reason, rows_that_fit},
    snapshot::{Position, Rest, Snapshot, write_cursor},
};
use crate::{
    fault::Fault,
    field::Having,
    query::{Batch, Computed, Context, Leg, OwnedColumn, Pin, Scan, Statement, Step},
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
    pub(super) database: String,
    pub(super) statement: Statement,
    pub(super) having: Having,
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
    let Ready { database, statement, having, now_us, is_strict } = ready;
    let mut missing = Map::new();
    for (board, fault) in having.missing {
        if is_strict {
            return Err(fault);
        }
        missing.insert(board.name.clone(), reason(&fault));
    }
    let rest = if statement.is_stream() {
        Rest::Boards(having.boards.into_iter().map(|(board, _)| Leg { board, pin: None }).collect())
    } else {
        let Some((board, _)) = having.boards.first() else {
            return Err(Fault::new("needs_board", "no board is there", "name one in `boards`"));
        };
        let computed = Computed::ask(&database, &statement, board, context).await?;
        Rest::Kept(board.name.clone(), computed)
    };
    let snapshot = Snapshot { database, statement, as_of_us: now_us, rest, missing, is_strict };
    let mut page = write(&snapshot, Position::default(), view, context).await?;
    if page.next.is_some() && snapshot.statement.is_stream() && !can_go_on(&snapshot) {
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
    let mut page = write(&snapshot, position, view, context).await?;
    page.notes.is_continued = true;
    page.notes.next_cursor = page.next.map(|position| write_cursor(id, position));
    Ok(items(page))
}

fn can_go_on(snapshot: &Snapshot) -> bool {
    snapshot.statement.can_be_bounded(&snapshot.database)
}

fn items(page: Page) -> Vec<String> {
    let mut items = vec![page.text];
    items.extend(page.notes.item());
    items
}

/// The snapshot for the pages that follow the first: the boards that answered, each with the rows it had then.
fn pinned(snapshot: Snapshot, page: &mut Page, position: Position) -> (Snapshot, Position) {
    let Rest::Boards(_) = &snapshot.rest else { return (snapshot, position) };
    let legs = std::mem::take(&mut page.legs);
    let leg = legs.iter().take(position.leg).flatten().count();
    let rest = Rest::Boards(legs.into_iter().flatten().collect());
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
        Rest::Kept(board, computed) => kept(board, computed, position, view)?,
        Rest::Boards(legs) => scanned(snapshot, legs, position, view, context).await?,
    };
    page.notes.as_of_us = snapshot.as_of_us;
    page.notes.is_truncated |= page.next.is_some();
    page.notes.missing.extend(snapshot.missing.clone());
    Ok(page)
}

/// A page of an answer that is here.
fn kept(board: &str, computed: &Computed, position: Position, view: View) -> Result<Page, Fault> {
    let columns: Vec<Column<'_>> = computed.columns.iter().map(OwnedColumn::borrowed).collect();
    let mut writer = view.writer(&columns);
    let (mut index, mut is_full) = (0, false);
    for batch in &computed.batches {
        if writer.is_measured() {
            computed.rows(batch, |cells| writer.measure(cells))?;
        }
        computed.rows(batch, |cells| {
            is_full = is_full || index >= position.rows && !writer.push(cells);
            index += u64::from(!is_full);
        })?;
    }
    let mut notes = Notes {
        row_count: writer.given,
        rows_lost: computed.rows_lost,
        boards: vec![board.into()],
        clock_unset: !computed.clock_set,
        ..Notes::default()
    };
    if !is_full && computed.is_clipped {
        notes.is_truncated = true;
        notes.hint = Some(format!(
            "the board can sort only the first {} rows; narrow WHERE for those behind them",
            computed.row_count
        ));
    }
    let text = writer.end(&view.statistics(1));
    let next = is_full.then_some(Position { rows: index, ..position });
    Ok(Page { text, notes, next, legs: Vec::new() })
}

/// Rows of a scan on their way into a page.
struct Filling<'c, 's> {
    writer: PageWriter<'c>,
    statement: &'s Statement,
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
            scan.rows(batch, |_, cells| self.writer.measure(cells))?;
        }
        let offset = self.statement.offset;
        let end = self.statement.limit.map(|limit| limit.saturating_add(offset));
        let rows_before = self.position.rows;
        scan.rows(batch, |row_id, cells| {
            self.is_done |= end.is_some_and(|end| self.position.rows >= end);
            if self.is_full || self.is_done {
                return;
            }
            self.is_full = self.position.rows >= offset && !self.writer.push(cells);
            if !self.is_full {
                self.position.rows += 1;
                self.position.next = row_id + 1;
            }
        })?;
        if self.position.rows > rows_before {
            self.lost += batch.lost; // what is lost before a row that is not taken is counted with the next page
        }
        Ok(())
    }
}

/// How many rows each board is asked for: what is skipped, the page, and one that tells whether there are more.
fn rows_wanted(statement: &Statement, position: Position, rows_max: u64) -> u64 {
    let skipped = statement.offset.saturating_sub(position.rows);
    let end = statement.limit.map(|limit| limit.saturating_add(statement.offset));
    let left = end.map_or(u64::MAX, |end| end.saturating_sub(position.rows.max(statement.offset)));
    skipped.saturating_add(left.min(rows_max + 1))
}

/// Rows that a page has room for, as far as that is known before they come: each board has its own columns.
fn rows_with_room(snapshot: &Snapshot, legs: &[Leg], format: Format) -> u64 {
    let Snapshot { database, statement, .. } = snapshot;
    let of_board = |leg: &Leg| {
        let catalogue = leg.board.known_catalogue().filter(|_| statement.selects_all())?;
        Some(rows_that_fit(format, &catalogue.table(database, &statement.table)?.columns))
    };
    legs.iter().map(|leg| of_board(leg).unwrap_or(ROWS_MAX)).max().unwrap_or(ROWS_MAX)
}

/// A page of rows that are still on boards.
async fn scanned(
    snapshot: &Snapshot,
    legs: &[Leg],
    position: Position,
    view: View,
    context: &Context,
) -> Result<Page, Fault> {
    let statement = &snapshot.statement;
    let mut asked: Vec<Leg> = legs.get(position.leg..).unwrap_or_default().to_vec();
    if let Some(Leg { pin: Some(Pin { rows, .. }), .. }) = asked.first_mut()
        && position.next > 0
    {
        rows.start = position.next.min(rows.end);
    }
    let rows_max = view.rows_max.min(rows_with_room(snapshot, legs, view.format));
    let limit = rows_wanted(statement, position, rows_max);
    let opened = Scan::open(&snapshot.database, statement, asked, Some(limit), context, Class::Interactive);
    let mut scan = opened.await?;
    let owned = scan.united.columns.clone();
    let columns: Vec<Column<'_>> = owned.iter().map(OwnedColumn::borrowed).collect();
    let writer = view.writer(&columns);
    let mut filling = Filling { writer, statement, position, is_full: false, is_done: limit == 0, lost: 0 };
    let mut before = (filling.writer.mark(), position);
    let mut notes = Notes { clock_unset: !scan.clock_set, ..Notes::default() };
    let mut failed = vec![false; scan.legs.len()];
    while !filling.is_full && !filling.is_done {
        match scan.next().await {
            Step::End => break,
            Step::Rows(batch) => filling.take(&scan, &batch)?,
            Step::Complete(leg, lost) => {
                notes.rows_lost += lost;
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
    notes.rows_lost += filling.lost;
    let next = filling.is_full.then_some(filling.position);
    let text = filling.writer.end(&view.statistics(notes.boards.len()));
    let legs =
        scan.legs.drain(..).zip(failed).map(|(leg, failed)| (!failed && leg.pin.is_some()).then_some(leg));
    Ok(Page { text, notes, next, legs: legs.collect() })
}
