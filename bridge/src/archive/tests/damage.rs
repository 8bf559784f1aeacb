//! Files that are full, read-only, damaged, somebody else's or in use: what is said, and that nothing stored is lost.

use super::{Shelf, model::ModelBoard, rows_of};
use crate::archive::{ArchiveError, file};
use std::fs;

/// A closed archive with some rows, merged and not.
fn filled() -> (Shelf, i64, u64) {
    let (mut shelf, mut board) = (Shelf::new(), ModelBoard::new(500));
    board.insert(2_000);
    let stored = shelf.put(&board.stream(0, usize::MAX).batch);
    board.insert(100);
    let stored = shelf.put(&board.stream(stored.watermark, usize::MAX).batch);
    shelf.owned = None;
    (shelf, stored.series, stored.watermark)
}

#[test]
fn a_full_disk_is_named_and_what_is_stored_stays() {
    let (mut shelf, series, watermark) = filled();
    shelf.open();
    let mut board = ModelBoard::new(500);
    board.insert(6_000);
    let batch = board.stream(0, usize::MAX).batch;
    let path = shelf.path();
    let connection = &shelf.owned.as_ref().unwrap().connection;
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let limited: i64 = connection
        .query_row(&format!("PRAGMA max_page_count = {}", pages + 8), [], |row| row.get(0))
        .unwrap();
    assert_eq!(limited, pages + 8);
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let store = super::Store { path: &path, connection };
    let error = store.put(&batch, 9).unwrap_err();
    assert_eq!(error, ArchiveError::Full { path: path.clone() });
    if !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK").unwrap();
    }
    assert_eq!(rows_of(&shelf.readers(), series, 0..u64::MAX).len() as u64, watermark);
    // There is room again.
    connection.query_row("PRAGMA max_page_count = 1000000", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(shelf.put(&batch).rows, 6_000 - watermark);
}

#[test]
fn what_is_no_archive_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1);").unwrap();
    drop(other);
    let database = fs::read(&path).unwrap();
    let text = b"these are notes about pumps, and not a database\n".repeat(100);
    for (bytes, is_damaged) in [(database, false), (text, true)] {
        fs::write(&path, &bytes).unwrap();
        let error = file::own(&path).unwrap_err();
        match is_damaged {
            true => assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}"),
            false => assert!(matches!(error, ArchiveError::Foreign { .. }), "{error}"),
        }
        assert!(error.to_string().contains("archive.db"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "it is left as it is");
    }
}

#[test]
fn a_damaged_file_is_found_when_it_is_opened_or_read_and_never_gives_other_rows() {
    let (shelf, series, watermark) = filled();
    let path = shelf.path();
    let good = fs::read(&path).unwrap();
    let right = rows_of(&shelf.readers(), series, 0..u64::MAX);
    assert_eq!(right.len() as u64, watermark);
    let (mut found_open, mut found_read, mut harmless) = (0, 0, 0);
    for seed in 0..200_u64 {
        let draw = |salt: u64| shared::link_test::mix(seed ^ (salt << 32));
        let mut bad = good.clone();
        if seed % 5 == 0 {
            bad.truncate((draw(1) % good.len() as u64) as usize);
        } else {
            for flip in 0..1 + draw(2) % 3 {
                let place = (draw(3 + flip) % good.len() as u64) as usize;
                bad[place] ^= 1 << (draw(9 + flip) % 8);
            }
        }
        fs::write(&path, &bad).unwrap();
        match file::own(&path) {
            Err(error) => {
                found_open += 1;
                assert_eq!(fs::read(&path).unwrap(), bad, "seed {seed}: {error}: it is left as it is");
            }
            Ok(owned) => {
                drop(owned);
                match read(&shelf, series) {
                    Err(_) => found_read += 1,
                    Ok(rows) if rows == right => harmless += 1,
                    // Nothing is left of a file that was cut to nothing, and nothing is told.
                    Ok(rows) => assert!(rows.is_empty() && bad.is_empty(), "seed {seed}: other rows"),
                }
            }
        }
    }
    eprintln!("found when opened {found_open}, when read {found_read}, without an effect {harmless}");
    assert!(found_open > 20 && found_read > 20, "{found_open} and {found_read}");
}

#[test]
fn a_damaged_file_is_not_even_written_by_the_log_beside_it() {
    let (mut shelf, ..) = filled();
    let mut board = ModelBoard::new(500);
    board.insert(2_500);
    shelf.open();
    shelf.put(&board.stream(0, usize::MAX).batch);
    // As after a power cut: the last commits are only in the log.
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("archive.db");
    let log = |path: &std::path::Path| file::log_path(path);
    let mut bad = fs::read(shelf.path()).unwrap();
    for page in (4..bad.len() / 4096).map(|page| page * 4096) {
        bad[page..page + 8].fill(0xA5); // heads of SQLite's pages
    }
    fs::write(&path, &bad).unwrap();
    fs::copy(log(&shelf.path()), log(&path)).unwrap();
    let error = file::own(&path).unwrap_err();
    assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    assert!(fs::metadata(log(&path)).unwrap().len() > 0, "the log is still there");
    assert!(fs::read(&path).unwrap() == bad, "it is left as it is");
}

/// As much as a query would read.
fn read(shelf: &Shelf, series: i64) -> Result<Vec<(u64, String)>, ArchiveError> {
    let readers = shelf.readers();
    let all = readers.series_of("demo", "notes")?;
    let Some(known) = all.iter().find(|known| known.id == series) else {
        return Err(ArchiveError::Protocol("the series is not there".into()));
    };
    let mut chunks = readers.chunks(series, known.first_row..known.watermark, None);
    let mut rows = Vec::new();
    while let Some(chunk) = chunks.next_blocking()? {
        for (page, wanted) in chunk.pages() {
            rows.extend(super::model::texts(&page).filter(|(row, _)| wanted.contains(row)));
        }
    }
    Ok(rows)
}

#[test]
fn one_process_owns_the_file_and_others_read_it() {
    let (mut shelf, series, watermark) = filled();
    shelf.open();
    let error = file::own(&shelf.path()).unwrap_err();
    assert_eq!(error, ArchiveError::Locked { path: shelf.path() });
    assert_eq!(rows_of(&shelf.readers(), series, 0..u64::MAX).len() as u64, watermark);
    shelf.owned = None;
    assert!(file::own(&shelf.path()).is_ok());
}
