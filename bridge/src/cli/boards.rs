//! `picolake boards`: every board with state, link, version, uptime and round-trip time.

use super::UP_TIMEOUT;
use crate::{
    board::{Hello, OwnedRequest, Piece, Session},
    config::{BoardConfig, Config, FILE_NAME},
};
use shared::{
    format::Printable,
    message::{Class, Part},
};
use std::{sync::Arc, time::Duration};

/// One line of the list.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) link: String,
    pub(crate) state: Result<(Arc<Hello>, Duration), String>,
}

impl Line {
    fn board_id(&self) -> Option<&String> {
        self.state.as_ref().ok().map(|(hello, _)| &hello.board_id)
    }
}

pub(crate) async fn run(config: &Config, named: &[String]) -> anyhow::Result<()> {
    let boards = match named {
        [] => config.boards.clone(),
        named => named.iter().map(|name| config.board(name)).collect::<Result<_, _>>()?,
    };
    if boards.is_empty() {
        println!("no boards: list them in {FILE_NAME}, or name a link: picolake boards tcp:HOST:PORT");
        println!("without hardware: picolake demo");
        return Ok(());
    }
    let asked: Vec<_> = boards.into_iter().map(|board| tokio::spawn(look_at(board))).collect();
    let mut lines = Vec::new();
    for line in asked {
        lines.push(line.await?);
    }
    print!("{}", table(&lines, Columns::All));
    Ok(())
}

async fn look_at(board: BoardConfig) -> Line {
    let session = Session::connect(board.link.clone(), rand::random());
    let state = async {
        session.wait_up(UP_TIMEOUT).await?;
        status(&session).await
    };
    let state = state.await.map_err(|error| error.to_string());
    Line { name: board.name, link: board.link.to_string(), state }
}

/// Uptime, and what is known of the board once it has answered.
pub(crate) async fn status(session: &Session) -> anyhow::Result<(Arc<Hello>, Duration)> {
    let (uptime_us, _) = clocks(session).await?;
    Ok((session.wait_up(UP_TIMEOUT).await?, Duration::from_micros(uptime_us)))
}

/// A board's two clocks: microseconds since it started, and since 1970 if that is set.
pub(crate) async fn clocks(session: &Session) -> anyhow::Result<(u64, Option<i64>)> {
    let asked = async {
        let mut answer = session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await?;
        let mut clocks = None;
        while let Some(piece) = answer.next().await? {
            if let Piece::Part(bytes) = &piece
                && let Some(Part::Status(status)) = bytes.part()
            {
                clocks = Some((status.uptime_us, status.utc_us));
            }
        }
        clocks.ok_or_else(|| anyhow::anyhow!("protocol: the board's status has no status in it"))
    };
    tokio::time::timeout(UP_TIMEOUT, asked).await.map_err(|_| anyhow::anyhow!("timeout"))?
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
pub(crate) fn table(lines: &[Line], columns: Columns) -> String {
    let mut cells = vec![["NAME", "STATE", "LINK", ID, "VERSION", "UPTIME", "RTT"].map(String::from)];
    let mut notes = String::new();
    for (nth, Line { name, link, state }) in lines.iter().enumerate() {
        let (state, [id, version, uptime, rtt]) = match state {
            Ok((hello, uptime)) => {
                if let Some(first) = lines[..nth].iter().find(|line| line.board_id() == Some(&hello.board_id))
                {
                    notes += &format!("{name}: the same board as {}, on another link\n", first.name);
                }
                let version = format!("{} wire {}", Printable(&hello.build), hello.wire_max);
                let rtt =
                    hello.round_trip.map_or("-".into(), |rtt| format!("{:.1}ms", rtt.as_secs_f64() * 1e3));
                ("up", [hello.board_id.clone(), version, format!("{}s", uptime.as_secs()), rtt])
            }
            Err(why) => {
                notes += &format!("{name}: {why}\n");
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

    fn line(name: &str, board_id: &str, build: &str) -> Line {
        let hello = Hello {
            board_id: board_id.into(),
            epoch: 1,
            boot_count: 1,
            build: build.into(),
            features: 0,
            wire_max: 1,
            catalog_hash: 0,
            round_trip: Some(Duration::from_micros(12_345)),
        };
        let state = Ok((Arc::new(hello), Duration::from_secs(86_400)));
        Line { name: name.into(), link: "tcp:127.0.0.1:65535".into(), state }
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
