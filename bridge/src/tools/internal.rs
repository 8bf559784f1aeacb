//! What the bridge does by itself: its boards, itself, its jobs. Asks boards for no rows.

use super::{
    CHARACTERS_MAX, ROWS_DEFAULT, ROWS_MAX, Tools, arguments::Usual, definition::Internal, template,
};
use crate::{board::State, fault::Fault, jobs::ExportRequest, query::Context};
use serde_json::{Map, Value, json};
use shared::{format::Printable, version};

/// Runs one of them.
pub(super) async fn run(
    tools: &Tools,
    internal: Internal,
    arguments: &Map<String, Value>,
    usual: Usual,
    context: &Context,
) -> Result<Vec<String>, Fault> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let jobs = &tools.inner.jobs;
    let answer = match internal {
        Internal::Boards => boards(tools, context).await?,
        Internal::Server => server(tools),
        Internal::Job => match text("job") {
            Some(id) => jobs.status(id)?,
            None => jobs.list(),
        },
        Internal::Cancel => jobs.cancel(text("job").ok_or_else(|| template::missing("job"))?)?,
        Internal::Export => {
            let request = ExportRequest {
                database: usual.database.unwrap_or_default(),
                sql: text(template::SQL).unwrap_or_default().into(),
                boards: usual.boards,
                file: text("file").map(str::to_string),
                is_csv: text("file_format") == Some("csv"),
            };
            jobs.export(&tools.inner.lake, request, context).await?
        }
    };
    Ok(vec![answer.to_string()])
}

/// Every board as it is configured, and how it stands.
async fn boards(tools: &Tools, context: &Context) -> Result<Value, Fault> {
    let field = &tools.inner.lake.field;
    if !field.boards().is_empty() {
        let _ = context.whole(field.standing(None)).await?; // those that are coming up have a moment
    }
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut list = Vec::new();
    for board in field.boards() {
        let mut entry = json!({
            "name": board.name,
            "link": board.link,
            "writable": board.writable || tools.inner.options.allow_writes,
        });
        match board.session.state() {
            State::Up(hello) => {
                entry["state"] = "up".into();
                entry["id"] = hello.board_id.as_str().into();
                entry["firmware"] = Printable(&hello.build).to_string().into();
                entry["epoch"] = format!("{:016x}", hello.epoch).into();
                entry["round_trip_ms"] = hello.round_trip.map(|time| time.as_secs_f64() * 1e3).into();
                if let Some((_, first)) = seen.iter().find(|(id, _)| *id == hello.board_id) {
                    entry["same_board_as"] = first.as_str().into();
                }
                seen.push((hello.board_id.clone(), board.name.clone()));
            }
            State::Connecting => entry["state"] = "connecting".into(),
            State::Offline { why, .. } => {
                entry["state"] = "offline".into();
                entry["why"] = Printable(&why).to_string().into();
            }
        }
        list.push(entry);
    }
    Ok(list.into())
}

fn server(tools: &Tools) -> Value {
    let boards = tools.inner.lake.field.boards();
    let up = boards.iter().filter(|board| matches!(board.session.state(), State::Up(_))).count();
    let mut info = json!({
        "name": "picolake",
        "version": env!("CARGO_PKG_VERSION"),
        "wire_versions": [version::MIN, version::CURRENT],
        "boards": boards.len(),
        "boards_up": up,
        "rows_default": ROWS_DEFAULT,
        "rows_max": ROWS_MAX,
        "characters_max": CHARACTERS_MAX,
        "exports": tools.inner.jobs.can_export(),
        "writes_allowed": tools.inner.options.allow_writes,
    });
    if let Some(fault) = tools.file_fault() {
        info["tools_file_fault"] = Printable(&fault).to_string().into();
    }
    info
}
