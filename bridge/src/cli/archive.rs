//! `picolake archive status`: what is stored of each board's tables, whoever is writing it. Changes nothing.

use crate::{
    archive::{Contents, Readers, Series, StoredFigures},
    config::{ARCHIVE_VARIABLE, Config},
};
use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use shared::{format::Printable, time::Utc};

#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveJob {
    /// Show what is stored of each table of each board: rows, bytes, what was lost, when it was copied last
    #[command(
        after_help = "A board has a line for each of its starts. LOST are rows that the board overwrote before they were copied; + stands for those of a restart, whose number nobody knows.\n\nExamples:\n  picolake archive status\n  picolake archive status --format json"
    )]
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// How it is written
    #[arg(long, value_enum, default_value_t = StatusFormat::Table)]
    format: StatusFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    Table,
    Json,
}

pub(crate) fn run(config: &Config, ArchiveJob::Status(args): &ArchiveJob) -> anyhow::Result<()> {
    let options = config.archive.options().with_context(|| {
        format!(
            "no rows are archived: the configuration says archive: {{enabled: false}}, or this user has no data folder; name a file with {ARCHIVE_VARIABLE}"
        )
    })?;
    let readers = Readers::new(options.path);
    if !readers.path().exists() {
        anyhow::bail!(
            "there is no archive at {} yet; picolake serve makes one when it has boards",
            readers.path().display()
        );
    }
    let contents = readers.contents()?;
    match args.format {
        StatusFormat::Json => println!("{}", to_json(&readers, &contents)),
        StatusFormat::Table => print!("{}", to_table(&readers, &contents)),
    }
    Ok(())
}

fn bytes_per_row(stored: &StoredFigures) -> Option<f64> {
    (stored.rows > 0).then(|| stored.bytes as f64 / stored.rows as f64)
}

fn to_json(readers: &Readers, contents: &Contents) -> Value {
    let series: Vec<Value> = contents
        .series
        .iter()
        .map(|(series, stored)| {
            json!({
                "board_id": series.key.board_id,
                "epoch": series.key.epoch,
                "dbms": series.key.dbms,
                "table": series.key.table,
                "rows": stored.rows,
                "bytes": stored.bytes,
                "bytes_per_row": bytes_per_row(stored),
                "first_row": series.first_row,
                "watermark": series.watermark,
                "rows_lost": series.rows_lost,
                "gaps": stored.gaps,
                "rows_retired": series.rows_retired,
                "as_of": date(series.as_of_us),
                "is_ended": series.is_ended,
            })
        })
        .collect();
    json!({
        "path": readers.path(),
        "file_bytes": contents.file_bytes,
        "free_bytes": contents.free_bytes,
        "series": series,
    })
}

fn date(utc_us: i64) -> String {
    Utc(utc_us).to_string()
}

fn to_table(readers: &Readers, contents: &Contents) -> String {
    let mut lines = vec![
        ["BOARD", "TABLE", "ROWS", "BYTES", "B/ROW", "WATERMARK", "LOST", "GAPS", "RETIRED", "AS OF"]
            .map(String::from),
    ];
    let mut in_all = StoredFigures::default();
    for (series, stored) in &contents.series {
        in_all.rows += stored.rows;
        in_all.bytes += stored.bytes;
        lines.push(line(series, stored));
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut out = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    let per_row = if in_all.rows == 0 { 0.0 } else { contents.file_bytes as f64 / in_all.rows as f64 };
    out + &format!(
        "{}: {} rows in {} bytes, {} of them free; {per_row:.2} bytes a row\n",
        readers.path().display(),
        in_all.rows,
        contents.file_bytes,
        contents.free_bytes
    )
}

fn line(series: &Series, stored: &StoredFigures) -> [String; 10] {
    let key = &series.key;
    let lost = if series.is_ended { format!("{}+", series.rows_lost) } else { series.rows_lost.to_string() };
    [
        key.board_id.clone(),
        Printable(&format!("{}.{}", key.dbms, key.table)).to_string(),
        stored.rows.to_string(),
        stored.bytes.to_string(),
        bytes_per_row(stored).map_or("-".into(), |bytes| format!("{bytes:.2}")),
        series.watermark.to_string(),
        lost,
        stored.gaps.to_string(),
        series.rows_retired.to_string(),
        date(series.as_of_us),
    ]
}
