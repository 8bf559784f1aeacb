//! Commands asked of several boards, and their answers as one: lists united, what differs by board beside its name.

use super::{
    arguments::Usual,
    page::{CHARACTERS_MAX, Notes, PageWriter, ROWS_MAX, reason},
};
use crate::{
    board::{OwnedRequest, Piece, decode_rows},
    fault::Fault,
    field::{Board, Standing},
    query::{Asked, Context, OwnedColumn, Planned},
};
use futures_util::future::join_all;
use serde_json::json;
use shared::{
    command::{Command, Format},
    format::{Object, Printable, Shape, Statistics, write_json_value},
    message::{Class, Part},
    schema::Column,
    value::{ColumnType, Value},
};
use std::{sync::Arc, time::Instant};

/// Bytes of one board's answer that are kept.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The column that says whose a row is.
const BOARD_COLUMN: &str = "board";
/// Who joins the answers of boards, in that column.
const HERE: &str = "(gateway)";

/// What one board answered.
#[derive(Debug, Default)]
struct Told {
    columns: Vec<OwnedColumn>,
    rows: Vec<Vec<OwnedCell>>,
    /// Statuses and versions, written.
    objects: Vec<String>,
    /// Text for people.
    texts: Vec<String>,
}

/// What each board answered, in the field's order.
type Answers = Vec<(String, Told)>;

/// How rows are written.
struct Style {
    shape: Shape,
    format: Format,
    /// They are one board's own: no name is beside them, and none is left out.
    is_plain: bool,
}

/// A cell that is kept.
#[derive(Clone, Debug, PartialEq)]
enum OwnedCell {
    Text(String),
    Other(Value<'static>),
}

impl OwnedCell {
    fn of(value: &Value<'_>) -> Self {
        Self::Other(match *value {
            Value::Text(text) => return Self::Text(text.into()),
            Value::Null => Value::Null,
            Value::Bool(v) => Value::Bool(v),
            Value::Int(v) => Value::Int(v),
            Value::Float32(v) => Value::Float32(v),
            Value::Float64(v) => Value::Float64(v),
            Value::Timestamp(v) => Value::Timestamp(v),
        })
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Other(value) => *value,
        }
    }
}

/// Texts of a row that this program itself adds for a board.
pub(super) type OwnRow = (String, Vec<String>);

/// Runs a command on every board and writes one answer.
pub(super) async fn run(
    boards: Vec<Standing>,
    text: &str,
    command: &Command<'_>,
    usual: &Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    run_with(boards, text, command, usual, context, Vec::new()).await
}

/// The same with rows of this program's own behind those of the boards, unless boards were named.
pub(super) async fn run_with(
    boards: Vec<Standing>,
    text: &str,
    command: &Command<'_>,
    usual: &Usual,
    context: &Context,
    mut own: Vec<OwnRow>,
) -> Result<Vec<String>, Fault> {
    if let Some(named) = &usual.boards {
        own.retain(|(board, _)| named.contains(board));
    }
    let start = Instant::now();
    let format = usual.format.or(command.format()).unwrap_or(Format::Mcp);
    let told = join_all(boards.iter().map(async |standing| match &standing.hello {
        Ok(_) => ask(&standing.board, text, format, context).await,
        Err(fault) => Err(fault.clone()),
    }));
    let (told, notes) = sorted_out(&boards, told.await, usual.is_strict)?;
    if command.is_write() {
        let board = notes.boards.first().map(String::as_str).unwrap_or_default();
        return Ok(vec![json!({"board": board, "done": true}).to_string()]);
    }
    let has_rows = told.iter().any(|(_, told)| !told.columns.is_empty());
    let text = if has_rows {
        let nodes = u32::try_from(told.len()).unwrap_or(u32::MAX);
        let time_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let style = Style { shape: Shape::of(command), format, is_plain: usual.is_plain };
        return rows(&told, &own, style, &Statistics { time_us, nodes }, notes);
    } else {
        objects(&told, format, usual.is_plain)
    };
    if text.chars().count() > CHARACTERS_MAX {
        let message = format!("the answer has more than {CHARACTERS_MAX} characters");
        return Err(Fault::new("capacity", message, "name fewer boards in `boards`"));
    }
    Ok(std::iter::once(text).chain(notes.item()).collect())
}

/// What each board is asked, word for word, how it goes about it, and what is done here with the answers.
pub(super) async fn explain(
    planned: Planned,
    command: &Command<'_>,
    usual: &Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let start = Instant::now();
    let format = usual.format.or(command.format()).unwrap_or(Format::Mcp);
    let (questions, steps) = match planned {
        Planned::Dialect(asked) => {
            let steps = asked.question.steps_here();
            (vec![*asked], steps)
        }
        Planned::Beyond(statement) => {
            (statement.tables, vec![("run", format!("runs in SQLite: {}", Printable(&statement.sql)))])
        }
    };
    let mut told = Answers::new();
    let mut notes = Notes { as_of_us: super::executor::now_us(), ..Notes::default() };
    for asked in questions {
        let (more, of_more) = explained(asked, format, usual, context).await?;
        told.extend(more);
        let is_new = |board: &String| !notes.boards.contains(board);
        let new: Vec<String> = of_more.boards.into_iter().filter(is_new).collect();
        notes.boards.extend(new);
        notes.missing.extend(of_more.missing);
    }
    let nodes = u32::try_from(notes.boards.len()).unwrap_or(u32::MAX);
    let here = steps.into_iter();
    let rows_here =
        here.map(|(step, detail)| vec![OwnedCell::Text(step.into()), OwnedCell::Text(detail)]).collect();
    // A statement without tables is explained by no board.
    let columns = text_columns(&["step", "detail"]);
    told.push((HERE.into(), Told { columns, rows: rows_here, ..Told::default() }));
    let time_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    let style = Style { shape: Shape::of(command), format, is_plain: false };
    rows(&told, &[], style, &Statistics { time_us, nodes }, notes)
}

/// The columns of a view; a type is left out where only rows would tell it.
pub(super) fn columns_of(
    planned: Planned,
    command: &Command<'_>,
    usual: &Usual,
) -> Result<Vec<String>, Fault> {
    let format = usual.format.or(command.format()).unwrap_or(Format::Mcp);
    let (columns, questions) = match planned {
        Planned::Beyond(statement) => (statement.columns, statement.tables),
        Planned::Dialect(_) => return Err(Fault::protocol("a view is a table of a board")),
    };
    let mut notes = Notes { as_of_us: super::executor::now_us(), ..Notes::default() };
    for (board, fault) in questions.iter().flat_map(|asked| &asked.missing) {
        notes.missing.insert(board.clone(), reason(fault));
    }
    let row = |(name, kind): (String, Option<ColumnType>)| {
        let kind = kind.map_or("", ColumnType::name);
        [name.as_str(), kind, "", ""].map(|text| OwnedCell::Text(text.into())).into()
    };
    let told = Told {
        columns: text_columns(&["name", "type", "unit", "description"]),
        rows: columns.into_iter().map(row).collect(),
        ..Told::default()
    };
    let style = Style { shape: Shape::of(command), format, is_plain: true };
    rows(&[(HERE.into(), told)], &[], style, &Statistics::default(), notes)
}

fn text_columns(names: &[&str]) -> Vec<OwnedColumn> {
    let column =
        |name: &&str| OwnedColumn { name: (*name).into(), kind: ColumnType::Text, unit: String::new() };
    names.iter().map(column).collect()
}

/// How each board goes about its part of a question.
async fn explained(
    asked: Asked,
    format: Format,
    usual: &Usual,
    context: &Context,
) -> Result<(Answers, Notes), Fault> {
    let Asked { question, legs, missing } = asked;
    let mut fragments = Vec::with_capacity(legs.len());
    for leg in &legs {
        fragments.push(question.fragment_sql(question.fragment(), leg, None, None)?);
    }
    let texts = fragments.iter().map(|sql| format!("explain sql {} \"{sql}\"", question.database));
    let answers = join_all(
        legs.iter().zip(texts).map(async |(leg, text)| ask(&leg.board, &text, format, context).await),
    );
    let standing: Vec<Standing> = legs
        .iter()
        .map(|leg| Standing { board: Arc::clone(&leg.board), hello: Err(Fault::cancelled()) })
        .collect();
    let (mut told, mut notes) = sorted_out(&standing, answers.await, usual.is_strict)?;
    notes.missing.extend(missing.iter().map(|(board, fault)| (board.clone(), reason(fault))));
    for (board, told) in &mut told {
        let of = legs.iter().position(|leg| leg.board.name == *board);
        let fragment = of.and_then(|leg| fragments.get(leg)).cloned().unwrap_or_default();
        told.rows.insert(0, vec![OwnedCell::Text("asked".into()), OwnedCell::Text(fragment)]);
    }
    Ok((told, notes))
}

/// Whose answer is there, and whose is missing. An error if no board answered, or strictly, if one did not.
fn sorted_out(
    boards: &[Standing],
    answers: Vec<Result<Told, Fault>>,
    is_strict: bool,
) -> Result<(Answers, Notes), Fault> {
    let mut notes = Notes { as_of_us: super::executor::now_us(), ..Notes::default() };
    let mut told = Vec::new();
    let mut first_fault = None;
    for (standing, answer) in boards.iter().zip(answers) {
        let name = standing.board.name.as_str();
        match answer {
            Ok(answer) => {
                notes.boards.push(name.into());
                told.push((name.to_string(), answer));
            }
            Err(fault) => {
                // A board that does not have it has nothing to tell.
                let has_it_not = matches!(fault.code, "unknown_database" | "unknown_table");
                let fault = fault.with("board", name);
                if is_strict && !has_it_not {
                    return Err(fault);
                }
                if !has_it_not {
                    notes.missing.insert(name.into(), reason(&fault));
                }
                first_fault.get_or_insert(fault);
            }
        }
    }
    match first_fault {
        Some(fault) if told.is_empty() => Err(fault),
        _ => Ok((told, notes)),
    }
}

async fn ask(board: &Board, text: &str, format: Format, context: &Context) -> Result<Told, Fault> {
    let asked = board.session.ask(OwnedRequest::Command(text.into()), Class::Interactive);
    let mut answer = context.board(&board.session, asked).await??;
    let mut told = Told::default();
    let mut kept_bytes = 0;
    while let Some(piece) = context.board(&board.session, answer.next()).await?? {
        match piece {
            Piece::Rows { count, bytes, .. } => {
                kept_bytes += bytes.len();
                let columns: Vec<Column<'_>> = told.columns.iter().map(OwnedColumn::borrowed).collect();
                let rows = &mut told.rows;
                decode_rows(&columns, count, &bytes, |cells| {
                    rows.push(cells.iter().map(OwnedCell::of).collect())
                })
                .map_err(|_| Fault::protocol("a batch cannot be read"))?;
            }
            Piece::Part(bytes) => {
                let mut written = String::new();
                let wrote = match bytes.part() {
                    Some(Part::Started(started)) => {
                        told.columns = started.columns.iter().map(OwnedColumn::from).collect();
                        continue;
                    }
                    Some(Part::Status(status)) => Object::status(&status).write(format, &mut written),
                    Some(Part::Version(version)) => Object::version(&version).write(format, &mut written),
                    Some(Part::Text(text)) => {
                        kept_bytes += text.len();
                        told.texts.extend(text.split('\n').map(|line| Printable(line).to_string()));
                        continue;
                    }
                    Some(Part::Clock(_)) | None => {
                        return Err(Fault::protocol("a board sent a part that this bridge does not know"));
                    }
                };
                wrote.map_err(|_| Fault::protocol("a part cannot be written"))?;
                kept_bytes += written.len();
                told.objects.push(written);
            }
        }
        if kept_bytes > ANSWER_BYTES_MAX {
            let message = format!("a board's answer has more than {ANSWER_BYTES_MAX} bytes");
            return Err(Fault::new("capacity", message, "ask for less of it"));
        }
    }
    Ok(told)
}

/// Rows of all boards under the caps of a call. Lists of names are united; other rows say whose they are.
fn rows(
    told: &[(String, Told)],
    own: &[OwnRow],
    Style { shape, format, is_plain }: Style,
    statistics: &Statistics,
    mut notes: Notes,
) -> Result<Vec<String>, Fault> {
    let is_united =
        is_plain || matches!(shape, Shape::Databases | Shape::Tables | Shape::Columns | Shape::Blockchain(_));
    let listed = told.iter().map(|(_, told)| &told.columns).find(|columns| !columns.is_empty());
    let mut columns: Vec<Column<'_>> = listed.into_iter().flatten().map(OwnedColumn::borrowed).collect();
    if !is_united {
        columns.insert(0, Column { name: BOARD_COLUMN, kind: ColumnType::Text, unit: "" });
    }
    let mut cells: Vec<Vec<Value<'_>>> = Vec::new();
    for (board, told) in told {
        for row in &told.rows {
            let mut row: Vec<Value<'_>> = row.iter().map(OwnedCell::value).collect();
            if !is_united {
                row.insert(0, Value::Text(board));
            } else if !is_plain && cells.contains(&row) {
                continue;
            }
            cells.push(row);
        }
    }
    cells.extend(own.iter().map(|(board, row)| {
        std::iter::once(board).chain(row).map(|text| Value::Text(text)).collect::<Vec<_>>()
    }));
    if matches!(shape, Shape::Databases | Shape::Tables | Shape::Blockchain(_)) {
        cells.sort_by_cached_key(|row| {
            let mut key = String::new();
            for cell in row {
                let _ = write_json_value(cell, &mut key); // a String takes everything
            }
            key
        });
    }
    let mut writer = PageWriter::new(shape, format, &columns, ROWS_MAX);
    cells.iter().for_each(|row| writer.measure(row));
    notes.is_truncated = !cells.iter().all(|row| writer.push(row));
    notes.row_count = writer.given;
    if notes.is_truncated {
        notes.hint = Some("there is more than one answer holds; name fewer boards in `boards`".into());
    }
    Ok(std::iter::once(writer.end(statistics)).chain(notes.item()).collect())
}

/// Statuses, versions and texts of all boards.
fn objects(told: &[(String, Told)], format: Format, is_plain: bool) -> String {
    let mut texts: Vec<&String> = told.iter().flat_map(|(_, told)| &told.texts).collect();
    if !texts.is_empty() {
        // Help is the same everywhere.
        let mut seen = Vec::new();
        texts.retain(|text| {
            let is_new = !seen.contains(&text.as_str());
            seen.push(text.as_str());
            is_new
        });
        return texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n");
    }
    if is_plain {
        let objects: Vec<&str> =
            told.iter().flat_map(|(_, told)| &told.objects).map(String::as_str).collect();
        return objects.join("\n");
    }
    let named = told.iter().flat_map(|(board, told)| told.objects.iter().map(move |object| (board, object)));
    if format == Format::Table {
        let tables: Vec<String> = named.map(|(board, table)| format!("{board}\n{table}")).collect();
        return tables.join("\n");
    }
    let objects: Vec<String> = named
        .map(|(board, object)| {
            let name = serde_json::Value::from(board.as_str());
            format!("{{\"name\":{name},{}", object.trim_start_matches('{').trim_start())
        })
        .collect();
    format!("[{}]", objects.join(","))
}
