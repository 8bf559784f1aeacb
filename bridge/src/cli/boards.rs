//! `picolake boards`: every board with state, link, version, uptime and round-trip time.

use super::gateway::Gateway;
use crate::{
    board::Session,
    config::{Config, FILE_NAME},
    field::Report,
    owner::{Reply, Wish},
};
use shared::format::Printable;
use std::path::Path;

pub(crate) async fn run(config: &Config, file: Option<&Path>, named: &[String]) -> anyhow::Result<()> {
    let boards = match named {
        [] => config.boards.clone(),
        named => named.iter().map(|name| config.board(name)).collect::<Result<_, _>>()?,
    };
    if boards.is_empty() {
        println!("no boards: list them in {FILE_NAME}, or name a link: picolake boards tcp:HOST:PORT");
        println!("without hardware: picolake demo");
        return Ok(());
    }
    // A link that was given is opened here; those of the configuration are the owner's.
    let (ours, links): (Vec<_>, Vec<_>) = boards.into_iter().partition(|board| config.boards.contains(board));
    let asked: Vec<_> = links
        .into_iter()
        .map(|board| {
            tokio::spawn(async move {
                let session = Session::connect(board.link.clone(), rand::random());
                Report::of(&board.name, &board.link.to_string(), &session).await
            })
        })
        .collect();
    let mut reports = Vec::new();
    if !ours.is_empty() {
        let gateway = Gateway::to(config, file, false)?;
        let names = ours.into_iter().map(|board| board.name).collect();
        reports = owned(&gateway, Some(names)).await?;
        gateway.end().await;
    }
    for report in asked {
        reports.push(report.await?);
    }
    print!("{}", table(&reports, Columns::All));
    Ok(())
}

/// How boards of the configuration stand, as their owner sees them.
pub(crate) async fn owned(gateway: &Gateway, named: Option<Vec<String>>) -> anyhow::Result<Vec<Report>> {
    match gateway.get(Wish::Boards { named }).await? {
        Reply::Boards(reports) => Ok(reports),
        Reply::Error(refusal) => anyhow::bail!("{refusal}"),
        other => anyhow::bail!("protocol: the boards were answered with {other:?}"),
    }
}

/// The title of the column that a narrow list leaves out.
const ID: &str = "ID";

/// Which columns a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    All,
    /// So few that boards of the demo fit a terminal of 80 columns.
    WithoutId,
}

/// The list as text, columns as wide as they must be; below it what is to be said of single boards.
pub(crate) fn table(reports: &[Report], columns: Columns) -> String {
    let mut cells = vec![["NAME", "STATE", "LINK", ID, "VERSION", "UPTIME", "RTT"].map(String::from)];
    let mut notes = String::new();
    let id = |report: &Report| report.seen.as_ref().ok().map(|seen| seen.board_id.clone());
    for (nth, report) in reports.iter().enumerate() {
        let Report { name, link, seen } = report;
        let (state, [id, version, uptime, rtt]) = match seen {
            Ok(seen) => {
                if let Some(first) = reports[..nth].iter().find(|other| id(other) == id(report)) {
                    notes += &format!("{name}: the same board as {}, on another link\n", first.name);
                }
                let version = format!("{} wire {}", Printable(&seen.build), seen.wire_max);
                let rtt =
                    seen.round_trip_us.map_or("-".into(), |time_us| format!("{:.1}ms", time_us as f64 / 1e3));
                ("up", [seen.board_id.clone(), version, format!("{}s", seen.uptime_us / 1_000_000), rtt])
            }
            Err(why) => {
                notes += &format!("{name}: {}\n", Printable(why));
                ("offline", ["-"; 4].map(String::from))
            }
        };
        cells.push([name.clone(), state.into(), link.clone(), id, version, uptime, rtt]);
    }
    let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let is_shown = |column: &usize| columns == Columns::All || cells[0][*column] != ID;
    let widths: Vec<_> = (0..cells[0].len()).filter(is_shown).map(|column| (column, width(column))).collect();
    let mut out = String::new();
    for line in &cells {
        let line: Vec<String> =
            widths.iter().map(|(column, width)| format!("{:<width$}", line[*column])).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out + &notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Seen;

    fn line(name: &str, board_id: &str, build: &str) -> Report {
        let seen = Seen {
            board_id: board_id.into(),
            build: build.into(),
            wire_max: 1,
            round_trip_us: Some(12_345),
            uptime_us: 86_400_000_000,
            utc_us: None,
        };
        Report { name: name.into(), link: "tcp:127.0.0.1:65535".into(), seen: Ok(seen) }
    }

    #[test]
    fn a_forged_build_does_not_reach_the_terminal_as_it_is() {
        let list = table(&[line("pump", "0102", "\x1b[2Jpicolake\n9")], Columns::All);
        assert!(list.contains(r"\u{1b}[2Jpicolake\n9 wire 1"), "{list:?}");
        assert_eq!(list.lines().count(), 2, "{list:?}");
    }

    #[test]
    fn a_list_without_ids_fits_eighty_columns_and_still_tells_boards_apart() {
        let lines = [
            line("greenhouse", "0102030405060708", "picolake 0.10.10"),
            line("mill", "0102030405060708", "x"),
        ];
        assert!(table(&lines, Columns::All).contains("  0102030405060708  "));
        let list = table(&lines, Columns::WithoutId);
        assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
        assert!(!list.contains("0102") && list.contains("mill: the same board as greenhouse"), "{list}");
    }
}
