//! What the archive takes in and what a row costs it, beside plain SQLite: `cargo xtask bench archive`.

use firmware::samplers::environment;
use picolake::{
    archive::{Archive, Options, SeriesKey},
    field::Field,
};
use picolake_tests::figures::{Aim, Figure, report};
use rusqlite::Connection;
use shared::{
    clock::UtcClock,
    limits::PAGE_BYTES,
    page::{Page, PageWriter},
    rowcode::RowError,
    schema::{self, Columns},
    value::Value,
};
use std::{
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

/// Rows of one measurement: with batches of 100, as many commits as thousands of rows times ten.
const ROWS: u64 = 200_000;
/// Rows of the file whose bytes are counted.
const FILE_ROWS: u64 = 2_000_000;
const ROUNDS: usize = 3;
const SEED: u32 = 7;
/// A row each second, with a little jitter.
const PERIOD_US: u64 = 1_000_000;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut figures = Vec::new();
    for rows in [100, 1_000] {
        let batches = batches(ROWS, rows);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(per_second(ROWS, runtime.block_on(archived(&batches))?));
            plain.push(per_second(ROWS, plain_sqlite(rows)?));
        }
        let (ours, plain) = (median(ours), median(plain));
        figures.push(Figure::new(format!("durable, batches of {rows}: archive"), ours / 1e3, "krow/s"));
        figures.push(Figure::new(format!("durable, batches of {rows}: plain SQLite"), plain / 1e3, "krow/s"));
        let ratio =
            Figure::new(format!("durable, batches of {rows}: archive to plain"), ours / plain, "times");
        figures.push(ratio.aim(Aim::AtLeast(2.0)));
    }
    figures.extend(runtime.block_on(file_figures())?);
    report("archive", &figures)
}

fn per_second(rows: u64, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn columns() -> Columns<'static> {
    environment::TABLE.columns.iter().map(|column| column.column()).collect()
}

fn time_us(row: u64) -> u64 {
    row * PERIOD_US + shared::link_test::mix(row) % 200
}

fn key() -> SeriesKey {
    SeriesKey { board_id: "0a".into(), epoch: 1, dbms: "demo".into(), table: "environment".into() }
}

/// The pages that an archive gets when so many rows have come since the last time: whole ones, and the beginning of the
/// one that is being filled.
fn batches(rows: u64, batch_rows: u64) -> Vec<Vec<Vec<u8>>> {
    let columns = columns();
    let hash = schema::hash(columns.iter().map(|column| (column.name, column.kind)));
    let mut writer = PageWriter::new(schema::kinds(&columns));
    let mut page = [0; PAGE_BYTES];
    let (mut batches, mut batch): (Vec<Vec<Vec<u8>>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    writer.begin(&mut page, hash, 0);
    let bytes = |page: &[u8]| Page::read(page).expect("a page").bytes().to_vec();
    for row in 0..rows {
        let mut cells = vec![Value::Timestamp(time_us(row) as i64)];
        cells.extend(environment::row(SEED, row));
        if writer.append(&mut page, &cells) == Err(RowError::Full) {
            // One that ended with the last batch has come already.
            if !row.is_multiple_of(batch_rows) {
                batch.push(bytes(&page));
            }
            writer.begin(&mut page, hash, row);
            writer.append(&mut page, &cells).expect("a fresh page has room");
        }
        if (row + 1).is_multiple_of(batch_rows) {
            batch.push(bytes(&page));
            batches.push(std::mem::take(&mut batch));
        }
    }
    batches
}

async fn take_in(archive: &Archive, batches: &[Vec<Vec<u8>>]) -> Result<u64> {
    let (columns, clock) = (columns(), UtcClock::default());
    let mut watermark = 0;
    for batch in batches {
        let pages: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        watermark = archive.ingest(key(), &columns, &clock, watermark, &pages).await?;
    }
    Ok(watermark)
}

/// How long it takes until every batch is on the disk, one commit after the other.
async fn archived(batches: &[Vec<Vec<u8>>]) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::start(Options::new(folder.path().join("archive.db")), &Field::new([]));
    let start = Instant::now();
    let watermark = take_in(&archive, batches).await?;
    let time = start.elapsed();
    assert_eq!(watermark, ROWS);
    archive.close().await;
    Ok(time)
}

/// The same rows as rows of a table.
fn plain_sqlite(batch_rows: u64) -> Result<Duration> {
    let folder = tempfile::tempdir()?;
    let mut connection = Connection::open(folder.path().join("plain.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE environment (board TEXT, epoch INT, row_id INT, timestamp INT, temperature REAL, humidity REAL, pressure REAL, PRIMARY KEY (board, epoch, row_id)) WITHOUT ROWID",
    )?;
    let start = Instant::now();
    for batch in 0..ROWS / batch_rows {
        let transaction = connection.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO environment VALUES ('0a', 1, ?, ?, ?, ?, ?)")?;
            for row in batch * batch_rows..(batch + 1) * batch_rows {
                let cells = environment::row(SEED, row).map(|cell| match cell {
                    Value::Float32(value) => Some(f64::from(value)),
                    _ => None,
                });
                insert.execute((row as i64, time_us(row) as i64, cells[0], cells[1], cells[2]))?;
            }
        }
        transaction.commit()?;
    }
    Ok(start.elapsed())
}

/// What a row costs in a larger file, and how fast all of them are read and decoded.
async fn file_figures() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("archive.db");
    let archive = Archive::start(Options::new(&path), &Field::new([]));
    let rows = take_in(&archive, &batches(FILE_ROWS, 1_000)).await?;
    let series = archive.series_of("demo", "environment").await?.remove(0);
    let (start, mut decoded) = (Instant::now(), 0_u64);
    let mut chunks = archive.chunks(series.id, 0..series.watermark, None);
    let kinds: Vec<_> = series.columns.iter().map(|column| column.kind).collect();
    while let Some(chunk) = chunks.next().await? {
        for (page, _) in chunk.pages() {
            let (mut rows, mut cells) = (page.rows(kinds.iter().copied()), [Value::Null; 4]);
            while rows.next_row(&mut cells).map_err(|error| format!("{error:?}"))? {
                decoded += 1;
            }
        }
    }
    let read = per_second(decoded, start.elapsed());
    assert_eq!((rows, decoded), (FILE_ROWS, FILE_ROWS));
    archive.close().await;
    let bytes = std::fs::metadata(Path::new(&path))?.len();
    Ok(vec![
        Figure::new("bytes a row in the file", bytes as f64 / rows as f64, "B").aim(Aim::AtMost(6.0)),
        Figure::new("read and decoded on one core", read / 1e6, "Mrow/s"),
    ])
}
