//! How each board stands, asked for people: what it is, how long it has run, whether its clock is set.

use super::{Board, Field};
use crate::{
    board::{Hello, OwnedRequest, Piece, Session},
    fault::Fault,
};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use shared::message::{Class, Part};
use std::{sync::Arc, time::Duration};

/// How long a board may take to come up and say its status.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// One board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What people call it.
    pub name: String,
    /// Where it is.
    pub link: String,
    /// What was seen, or why nothing was.
    pub seen: Result<Seen, String>,
}

/// What is seen of a board that answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The chip's own id.
    pub board_id: String,
    /// The firmware's name and version.
    pub build: String,
    /// The newest wire version it speaks.
    pub wire_max: u8,
    /// The round-trip time of the last ping.
    pub round_trip_us: Option<u64>,
    /// Microseconds since it started.
    pub uptime_us: u64,
    /// Microseconds since 1970, if its clock is set.
    pub utc_us: Option<i64>,
}

impl Report {
    /// Looks at a board behind a session.
    pub async fn of(name: &str, link: &str, session: &Session) -> Self {
        let seen = tokio::time::timeout(REPORT_TIMEOUT, look(session)).await;
        let seen = match seen {
            Ok(seen) => seen.map_err(|fault| fault.message),
            Err(_) => Err(format!("the board did not answer within {REPORT_TIMEOUT:?}")),
        };
        Self { name: name.into(), link: link.into(), seen }
    }
}

impl Field {
    /// Looks at the boards that are named, or at all.
    pub async fn reports(&self, named: Option<&[String]>) -> Result<Vec<Report>, Fault> {
        let boards: Vec<Arc<Board>> = match named {
            None => self.boards().to_vec(),
            Some(names) => names.iter().map(|name| self.board(name).cloned()).collect::<Result<_, _>>()?,
        };
        Ok(join_all(boards.iter().map(|board| Report::of(&board.name, &board.link, &board.session))).await)
    }
}

async fn look(session: &Session) -> Result<Seen, Fault> {
    session.wait_up(REPORT_TIMEOUT).await?;
    let mut answer = session.ask(OwnedRequest::Command("get status".into()), Class::Interactive).await?;
    let mut clocks = None;
    while let Some(piece) = answer.next().await? {
        if let Piece::Part(bytes) = &piece
            && let Some(Part::Status(status)) = bytes.part()
        {
            clocks = Some((status.uptime_us, status.utc_us));
        }
    }
    let clocks = clocks.ok_or_else(|| Fault::protocol("the board's status has no status in it"))?;
    let hello: Arc<Hello> = session.wait_up(REPORT_TIMEOUT).await?;
    Ok(Seen {
        board_id: hello.board_id.clone(),
        build: hello.build.clone(),
        wire_max: hello.wire_max,
        round_trip_us: hello.round_trip.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        uptime_us: clocks.0,
        utc_us: clocks.1,
    })
}
