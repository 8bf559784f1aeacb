//! `picolake boards`: every board with state, link, version, uptime and round-trip time.

use super::UP_TIMEOUT;
use crate::{
    board::{Hello, OwnedRequest, Piece, Session},
    config::{BoardConfig, Config, FILE_NAME},
};
use shared::message::{Class, Part};
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
    print!("{}", table(&lines));
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
    let asked = async {
        let mut answer = session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await?;
        let mut uptime = None;
        while let Some(piece) = answer.next().await? {
            if let Piece::Part(bytes) = &piece
                && let Some(Part::Status(status)) = bytes.part()
            {
                uptime = Some(Duration::from_micros(status.uptime_us));
            }
        }
        uptime.ok_or_else(|| anyhow::anyhow!("protocol: the board's status has no status in it"))
    };
    let uptime = tokio::time::timeout(UP_TIMEOUT, asked).await.map_err(|_| anyhow::anyhow!("timeout"))??;
    Ok((session.wait_up(UP_TIMEOUT).await?, uptime))
}

/// The list as text, columns as wide as they must be; below it what is to be said of single boards.
pub(crate) fn table(lines: &[Line]) -> String {
    let mut cells = vec![["NAME", "STATE", "LINK", "ID", "VERSION", "UPTIME", "RTT"].map(String::from)];
    let mut notes = String::new();
    for (nth, Line { name, link, state }) in lines.iter().enumerate() {
        let (state, [id, version, uptime, rtt]) = match state {
            Ok((hello, uptime)) => {
                if let Some(first) = lines[..nth].iter().find(|line| line.board_id() == Some(&hello.board_id))
                {
                    notes += &format!("{name}: the same board as {}, on another link\n", first.name);
                }
                let version = format!("{} wire {}", hello.build, hello.wire_max);
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
    let widths: Vec<usize> = (0..cells[0].len()).map(width).collect();
    let mut out = String::new();
    for line in &cells {
        let line: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out + &notes
}
