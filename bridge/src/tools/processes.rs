//! What this program itself does beside answering, for `get processes`: the archive and its copies. Asks no board.

use super::listing::OwnRow;
use crate::archive::{Archive, Health, SyncState, TableSync};
use std::time::{SystemTime, UNIX_EPOCH};

/// Stands where a board's name does.
const GATEWAY: &str = "gateway";

/// The archive's file, then the copy of each table of each board: process, state, detail.
pub(super) fn of_archive(archive: &Archive) -> Vec<OwnRow> {
    let path = archive.reader().path().display().to_string();
    let (state, detail) = match archive.health() {
        Health::Opening => ("opening", path),
        Health::Open => ("running", path),
        Health::Failed(error) => ("failing", error.to_string()),
    };
    let file = (GATEWAY.to_string(), vec!["archive".to_string(), state.to_string(), detail]);
    let copies = archive.copies().into_iter().map(|((board, dbms, table), copy)| {
        let process = if table.is_empty() { "archive".into() } else { format!("archive {dbms}.{table}") };
        (board, vec![process, copy.state.name().to_string(), detail_of(&copy)])
    });
    std::iter::once(file).chain(copies).collect()
}

fn detail_of(copy: &TableSync) -> String {
    match &copy.state {
        SyncState::Failing(why) | SyncState::Stalled(why) => return why.clone(),
        SyncState::Unsupported => return "its firmware cannot send pages; update it".into(),
        _ => {}
    }
    let Some(watermark) = copy.watermark else { return String::new() };
    let mut detail = format!("rows up to {watermark}, {} lost", copy.rows_lost);
    if let Some(synced_us) = copy.synced_us {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        detail += &format!(", {} s ago", now_us.saturating_sub(synced_us).max(0) / 1_000_000);
    }
    detail
}
