//! An answer on its way from a board to standard output: batch by batch, never the whole of it in memory.

use crate::board::{Answer, OwnedRequest, Piece, Session, decode_rows};
use anyhow::Context as _;
use shared::{
    command::{self, Format},
    format::{Object, Printable, RowsFormat, Shape, Statistics},
    message::{Class, Part, Started},
    value::ColumnType,
};
use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

/// How long the next piece of an answer may take.
const PIECE_TIMEOUT: Duration = Duration::from_secs(45);

/// What is to be told of an answer besides the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Rows that the board overwrote before it could send them.
    rows_lost: u64,
    /// Timestamps came from a board whose clock nobody has set.
    clock_unset: bool,
}

impl Notes {
    /// Tells a person, beside the answer.
    pub(crate) fn tell(self) {
        if self.rows_lost > 0 {
            eprintln!(
                "note: {} rows were overwritten on the board before they could be sent",
                self.rows_lost
            );
        }
        if self.clock_unset {
            eprintln!("note: the board's clock is not set; timestamps count from its start");
        }
    }
}

/// Asks, and writes the answer in the format that the command names, else in `format`.
pub(crate) async fn answer(
    session: &Session,
    text: &str,
    format: Format,
    out: &mut impl Write,
) -> anyhow::Result<Notes> {
    let parsed = command::parse(text).ok();
    let format = parsed.as_ref().and_then(command::Command::format).unwrap_or(format);
    let shape = parsed.as_ref().map_or(Shape::Query { statistics: true }, Shape::of);
    let start = Instant::now();
    let mut answer = session.ask(OwnedRequest::Command(text.into()), Class::Interactive).await?;
    while let Some(piece) = next(&mut answer).await? {
        let Piece::Part(bytes) = &piece else { anyhow::bail!("protocol: rows came before their columns") };
        let mut line = String::new();
        match bytes.part() {
            Some(Part::Status(status)) => Object::status(&status).write(format, &mut line)?,
            Some(Part::Version(version)) => Object::version(&version).write(format, &mut line)?,
            Some(Part::Text(text)) => push_text(text, &mut line),
            Some(Part::Started(started)) => {
                let writer = RowsFormat::new(shape, format, &started.columns);
                return rows(answer, &started, writer, start, out).await;
            }
            Some(Part::Clock(_)) | None => {
                anyhow::bail!("protocol: the board sent a part this bridge does not know; update the bridge")
            }
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    out.flush()?;
    Ok(Notes::default())
}

/// Writes each batch as it comes; the first one gives a table its widths.
async fn rows(
    mut answer: Answer,
    started: &Started<'_>,
    mut writer: RowsFormat<'_>,
    start: Instant,
    out: &mut impl Write,
) -> anyhow::Result<Notes> {
    let unreadable =
        |error| anyhow::anyhow!("protocol: the board sent a batch that cannot be read: {error:?}");
    let mut text = String::new();
    let mut has_begun = false;
    while let Some(piece) = next(&mut answer).await? {
        let Piece::Rows { count, bytes, .. } = piece else { continue };
        if !has_begun {
            decode_rows(&started.columns, count, &bytes, |cells| writer.measure(cells))
                .map_err(unreadable)?;
            writer.begin(&mut text)?;
            has_begun = true;
        }
        let mut written = Ok(());
        let decoded = decode_rows(&started.columns, count, &bytes, |cells| {
            written = written.and_then(|()| writer.row(cells, &mut text));
        });
        decoded.map_err(unreadable)?;
        written.context("capacity: more different values than can be sorted here; ask without extract")?;
        out.write_all(text.as_bytes())?;
        out.flush()?;
        text.clear();
    }
    if !has_begun {
        writer.begin(&mut text)?;
    }
    let time_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    writer.end(&Statistics { time_us, nodes: 1 }, &mut text)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()?;
    let has_times = started.columns.iter().any(|column| column.kind == ColumnType::Timestamp);
    let rows_lost = answer.complete().map_or(0, |complete| complete.rows_lost);
    Ok(Notes { rows_lost, clock_unset: has_times && !started.clock_set })
}

async fn next(answer: &mut Answer) -> anyhow::Result<Option<Piece>> {
    match tokio::time::timeout(PIECE_TIMEOUT, answer.next()).await {
        Ok(piece) => Ok(piece?),
        Err(_) => anyhow::bail!("timeout: nothing came for {PIECE_TIMEOUT:?}; is the board busy?"),
    }
}

/// Whether an error only says that whoever read standard output has gone.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Lines of a board's text; what else would move a terminal does not reach it as it is.
fn push_text(text: &str, out: &mut String) {
    let lines: Vec<String> = text.split('\n').map(|line| Printable(line).to_string()).collect();
    out.push_str(&lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_text_does_not_reach_the_terminal_as_it_is() {
        let mut out = String::new();
        push_text("\x1b[2Jgone\r\nnext", &mut out);
        assert!(out.contains("gone") && out.ends_with("\nnext"), "{out}");
        assert!(out.chars().all(|c| c == '\n' || !c.is_control()), "{out:?}");
    }
}
