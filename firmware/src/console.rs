//! The board's text console: lines in, answers as text out. It asks the board as a bridge would, without frames.
//!
//! There is no echo: a terminal shows what is typed by itself. A fault repeats the line, with a caret under its place.

mod lines;
mod window;

use crate::{clock::Clock, serve::Closed};
use core::{
    cell::RefCell,
    fmt::{self, Write as _},
};
use embassy_futures::yield_now;
use embedded_io_async::{Read, Write};
use lines::{Line, Lines};
use shared::{
    command::{self, Format},
    device::{Answerer, Now, Step},
    format::{Object, RowsFormat, Shape, Statistics, write_fault},
    limits::{BODY_BYTES_MAX, COLUMNS_MAX, COMMAND_BYTES_MAX},
    message::{self, ErrorCode, Failure, LinkCounters, Part, Request, Started},
    rowcode::{RowDecoder, RowError},
    schema::{self, Column},
    value::{ColumnType, Value},
};
use window::send;

/// What a console keeps. Make it static: a task's own would pass over the stack at its start.
#[derive(Debug)]
pub struct ConsoleBuffers {
    line: heapless::Vec<u8, COMMAND_BYTES_MAX>,
    /// The head of a stream: its columns are needed until its end.
    head: [u8; BODY_BYTES_MAX],
    body: [u8; BODY_BYTES_MAX],
}

impl ConsoleBuffers {
    /// Empty ones.
    #[expect(clippy::new_without_default, reason = "a default would be made on the stack")]
    pub const fn new() -> Self {
        Self { line: heapless::Vec::new(), head: [0; BODY_BYTES_MAX], body: [0; BODY_BYTES_MAX] }
    }
}

/// Answers line after line until the console closes. `own` is given each line first: words that only this board has,
/// such as `reset`; it says whether the line was its.
///
/// Cancelling it (dropping it) loses the line that is being typed, and gives back what the board held for an answer.
pub async fn console<A: Answerer>(
    answerer: &RefCell<A>,
    clock: &impl Clock,
    mut rx: impl Read,
    mut tx: impl Write,
    buffers: &mut ConsoleBuffers,
    mut own: impl FnMut(&str) -> bool,
) -> Closed {
    let ConsoleBuffers { line, head, body } = buffers;
    let mut lines = Lines::default();
    loop {
        let answered = match lines.next(&mut rx, line).await {
            Line::End => return Closed::Link,
            Line::TooLong => {
                let hint = format_args!("a command has at most {COMMAND_BYTES_MAX} bytes");
                fault(&mut tx, "", &Failure::new(ErrorCode::TooLong, 0, hint)).await
            }
            Line::Whole => match str::from_utf8(line).map(str::trim) {
                Err(_) => {
                    let hint = format_args!("a command is UTF-8 text");
                    fault(&mut tx, "", &Failure::new(ErrorCode::Value, 0, hint)).await
                }
                Ok(text) if text.is_empty() || own(text) => Ok(()),
                Ok(text) => {
                    let mut ask = Ask { opened: Opened { answerer, work: None }, clock, command: text };
                    ask.answer(&mut tx, head, body).await
                }
            },
        };
        if answered.is_err() || tx.flush().await.is_err() {
            return Closed::Link;
        }
    }
}

/// The console is gone.
#[derive(Debug)]
struct Gone;

/// A work of the board that is given back when this is dropped.
struct Opened<'b, A: Answerer> {
    answerer: &'b RefCell<A>,
    work: Option<A::Work>,
}

impl<A: Answerer> Opened<'_, A> {
    fn open(&mut self, command: &str, now: Now<'_>) -> Result<(), Failure> {
        self.work = Some(self.answerer.borrow_mut().open(Request::Command(command), None, now)?);
        Ok(())
    }

    fn step(&mut self, body: &mut [u8], now: Now<'_>) -> Option<Step> {
        self.work.as_mut().map(|work| self.answerer.borrow_mut().step(work, body, now))
    }
}

impl<A: Answerer> Drop for Opened<'_, A> {
    fn drop(&mut self) {
        // Nobody holds the board while the console waits; see the same in `serve`.
        if let Some(work) = self.work.take()
            && let Ok(mut answerer) = self.answerer.try_borrow_mut()
        {
            answerer.close(work);
        }
    }
}

/// One command and its answer.
struct Ask<'b, A: Answerer, C> {
    opened: Opened<'b, A>,
    clock: &'b C,
    command: &'b str,
}

type Body = [u8; BODY_BYTES_MAX];

impl<A: Answerer, C: Clock> Ask<'_, A, C> {
    async fn answer(&mut self, tx: &mut impl Write, head: &mut Body, body: &mut Body) -> Result<(), Gone> {
        let (format, shape) = wanted(self.command);
        let start_us = self.clock.uptime_us();
        let link = LinkCounters::default(); // a console counts no frames
        if let Err(failure) = self.opened.open(self.command, Now { uptime_us: start_us, link: &link }) {
            return fault(tx, self.command, &failure).await;
        }
        loop {
            match self.step(body) {
                Step::Working | Step::Rows(_) => {} // no rows come before their head
                Step::Done(_) => return Ok(()),
                Step::Failed(failure) => return fault(tx, self.command, &failure).await,
                Step::Part(len) => {
                    let part = &body[..len.min(BODY_BYTES_MAX)];
                    let is_head = matches!(message::read(part), Some(Part::Started(_)));
                    if is_head {
                        head[..part.len()].copy_from_slice(part);
                        let Some(Part::Started(started)) = message::read(head) else { return Ok(()) };
                        let writer = RowsFormat::new(shape, format, &started.columns);
                        return match self.rows(tx, &started, writer, body).await? {
                            Ok(lost) => end_notes(tx, &started, lost).await,
                            Err(failure) => fault(tx, self.command, &failure).await,
                        };
                    }
                    // A part that cannot be written is not one of a board's.
                    let _ = send(tx, |out| write_part(part, format, out)).await?;
                }
            }
            yield_now().await;
        }
    }

    fn step(&mut self, body: &mut Body) -> Step {
        let (uptime_us, link) = (self.clock.uptime_us(), LinkCounters::default());
        let step = self.opened.step(body, Now { uptime_us, link: &link });
        step.unwrap_or(Step::Failed(Failure::new(ErrorCode::NotExecuted, 0, format_args!(""))))
    }

    /// The rows, batch by batch; the first one gives a table its widths. Returns how many were lost.
    async fn rows(
        &mut self,
        tx: &mut impl Write,
        started: &Started<'_>,
        mut writer: RowsFormat<'_>,
        body: &mut Body,
    ) -> Result<Result<u64, Failure>, Gone> {
        let start_us = self.clock.uptime_us();
        let (mut has_begun, mut lost) = (false, started.lost);
        loop {
            match self.step(body) {
                Step::Working | Step::Part(_) => {}
                Step::Failed(failure) => return Ok(Err(failure)),
                Step::Done(done) => {
                    lost += done.lost;
                    break;
                }
                Step::Rows(len) => {
                    let Some((batch, bytes)) = message::read_rows(&body[..len.min(BODY_BYTES_MAX)]) else {
                        continue;
                    };
                    lost += batch.lost;
                    if !has_begun {
                        has_begun = true;
                        let mut rows = Rows::new(&started.columns, batch.count, bytes);
                        while let Ok(Some(cells)) = rows.next() {
                            writer.measure(cells);
                        }
                        let _ = send(tx, |out| writer.clone().begin(out)).await?;
                    }
                    if let Err(failure) = self.batch(tx, started, &mut writer, batch.count, bytes).await? {
                        return Ok(Err(failure));
                    }
                }
            }
            yield_now().await;
        }
        if !has_begun {
            let _ = send(tx, |out| writer.clone().begin(out)).await?;
        }
        let statistics = Statistics { time_us: self.clock.uptime_us().saturating_sub(start_us), nodes: 1 };
        let end = send(tx, |out| {
            writer.clone().end(&statistics, out)?;
            out.write_str("\n")
        });
        let _ = end.await?;
        Ok(Ok(lost))
    }

    async fn batch(
        &mut self,
        tx: &mut impl Write,
        started: &Started<'_>,
        writer: &mut RowsFormat<'_>,
        count: u16,
        bytes: &[u8],
    ) -> Result<Result<(), Failure>, Gone> {
        let mut rows = Rows::new(&started.columns, count, bytes);
        loop {
            let cells = match rows.next() {
                Ok(Some(cells)) => cells,
                Ok(None) => return Ok(Ok(())),
                Err(_) => {
                    let hint = format_args!("a batch cannot be read");
                    return Ok(Err(Failure::new(ErrorCode::Damaged, 0, hint)));
                }
            };
            let before = &*writer;
            let written = send(tx, |out| before.clone().row(cells, out)).await?;
            if written.is_err() || writer.row(cells, &mut Nowhere).is_err() {
                let hint = format_args!("more values than can be sorted; ask without extract");
                return Ok(Err(Failure::new(ErrorCode::Capacity, 0, hint)));
            }
        }
    }
}

/// What is to be told of the rows besides them, in lines of their own: the answer before is whole in its format.
async fn end_notes(tx: &mut impl Write, started: &Started<'_>, lost: u64) -> Result<(), Gone> {
    let has_times = started.columns.iter().any(|column| column.kind == ColumnType::Timestamp);
    let is_unset = has_times && !started.clock_set;
    let notes = send(tx, |out| {
        if lost > 0 {
            writeln!(out, "note: {lost} rows were overwritten before they could be sent")?;
        }
        if is_unset {
            out.write_str("note: the clock is not set; timestamps count from the board's start\n")?;
        }
        Ok(())
    });
    let _ = notes.await?;
    Ok(())
}

/// The format and the shape of the answer to a command.
fn wanted(command: &str) -> (Format, Shape) {
    match command::parse(command) {
        Ok(command) => (command.format().unwrap_or(Format::Table), Shape::of(&command)),
        Err(_) => (Format::Table, Shape::Query { statistics: true }),
    }
}

fn write_part(part: &[u8], format: Format, out: &mut impl fmt::Write) -> fmt::Result {
    match message::read(part) {
        Some(Part::Status(status)) => Object::status(&status).write(format, out)?,
        Some(Part::Version(version)) => Object::version(&version).write(format, out)?,
        Some(Part::Text(text)) => out.write_str(text)?,
        Some(Part::Started(_) | Part::Clock(_)) | None => return Ok(()),
    }
    out.write_char('\n')
}

async fn fault(tx: &mut impl Write, command: &str, failure: &Failure) -> Result<(), Gone> {
    let written = send(tx, |out| {
        write_fault(command, &failure.as_wire(), out)?;
        out.write_char('\n')
    });
    let _ = written.await?;
    Ok(())
}

/// The rows of one batch, one after the other.
struct Rows<'a> {
    decoder: RowDecoder<'a>,
    width: usize,
    cells: [Value<'a>; COLUMNS_MAX],
}

impl<'a> Rows<'a> {
    fn new(columns: &[Column<'_>], count: u16, bytes: &'a [u8]) -> Self {
        let decoder = RowDecoder::new(schema::kinds(columns), bytes, count);
        Self { decoder, width: columns.len(), cells: [Value::Null; COLUMNS_MAX] }
    }

    fn next(&mut self) -> Result<Option<&[Value<'a>]>, RowError> {
        let is_row = self.decoder.next_row(&mut self.cells)?;
        Ok(is_row.then_some(&self.cells[..self.width]))
    }
}

/// Takes text and forgets it.
struct Nowhere;

impl fmt::Write for Nowhere {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
