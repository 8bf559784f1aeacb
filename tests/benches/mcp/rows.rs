//! The rows that all servers give: pages as picolake cuts them, and the same rows in SQLite for the Python server.

use super::server::{Result, Server};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;

/// Rows of the small answer.
pub(crate) const ROWS_FEW: u64 = 100;
/// Rows that are read page by page.
pub(crate) const ROWS_MANY: u64 = 10_000;
/// Rows of a page that are asked for where its characters bound it.
const ROWS_CAP: u64 = 1_000;

/// Arguments of picolake's `query`.
pub(crate) fn few() -> Value {
    ask(ROWS_FEW)
}

/// The same for a page that is as large as an answer may be.
pub(crate) fn cap() -> Value {
    ask(ROWS_CAP)
}

/// The same for the page behind it.
pub(crate) fn behind(cursor: &str) -> Value {
    json!({"limit": ROWS_CAP, "cursor": cursor})
}

fn ask(limit: u64) -> Value {
    let sql = format!("SELECT * FROM vibration LIMIT {ROWS_MANY}");
    json!({"database": "demo", "sql": sql, "limit": limit})
}

/// Where an answer goes on, as picolake says it.
pub(crate) fn next_cursor(items: &[String]) -> Result<Option<String>> {
    let Some(notes) = items.get(1) else { return Ok(None) };
    let notes: Value = serde_json::from_str(notes)?;
    Ok(notes["next_cursor"].as_str().map(str::to_owned))
}

/// The texts of picolake's answers.
pub(crate) struct Pages {
    /// The small answer first, then every page of the many rows.
    pub(crate) items: Vec<Vec<String>>,
    /// How many rows are in each.
    pub(crate) rows: Vec<usize>,
}

impl Pages {
    /// Asks picolake.
    pub(crate) fn read(ours: &mut Server) -> Result<Self> {
        let mut items = vec![ours.call("query", &few())?.items, ours.call("query", &cap())?.items];
        while let Some(cursor) = next_cursor(&items[items.len() - 1])? {
            items.push(ours.call("query", &behind(&cursor))?.items);
        }
        let count = |items: &Vec<String>| Ok(serde_json::from_str::<Vec<Value>>(&items[0])?.len());
        let rows = items.iter().map(count).collect::<Result<Vec<usize>>>()?;
        if rows[0] as u64 != ROWS_FEW || rows[1..].iter().sum::<usize>() as u64 != ROWS_MANY {
            return Err(format!("the pages have {rows:?} rows").into());
        }
        Ok(Self { items, rows })
    }

    /// Writes the texts for the bare server, and the rows for the Python server.
    pub(crate) fn write(&self, texts: &Path, database: &Path) -> Result<()> {
        std::fs::write(texts, serde_json::to_string(&self.items)?)?;
        let mut database = Connection::open(database)?;
        database.execute_batch(
            "DROP TABLE IF EXISTS vibration;
             CREATE TABLE vibration (row_id INTEGER PRIMARY KEY, timestamp TEXT, x INTEGER, y INTEGER, z INTEGER)",
        )?;
        let transaction = database.transaction()?;
        for page in &self.items[1..] {
            for row in serde_json::from_str::<Vec<Value>>(&page[0])? {
                let at = row["timestamp"].as_str().ok_or("no moment")?;
                let [x, y, z] = ["x", "y", "z"].map(|name| row[name].as_i64());
                let sql = "INSERT INTO vibration (timestamp, x, y, z) VALUES (?, ?, ?, ?)";
                transaction.execute(sql, (at, x, y, z))?;
            }
        }
        Ok(transaction.commit()?)
    }
}
