//! `picolake demo`: a simulated field of three boards that comes up, says what to try, and stays up.

use super::{
    boards::{Line, status, table},
    sim::{accept, listen},
};
use crate::{board::Session, link::sim::Simulation};
use std::{io::IsTerminal as _, time::Duration};

/// The boards of the field.
const FIELD: [&str; 3] = ["greenhouse", "pump", "mill"];
/// How often the list is drawn anew on a terminal.
const REFRESH: Duration = Duration::from_secs(1);

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("Starting a field of {} simulated boards: the firmware itself, on this machine.", FIELD.len());
    let mut boards = Vec::new();
    for name in FIELD {
        let board = Simulation::named(name)?;
        let listener = listen("127.0.0.1:0").await?;
        let link = format!("tcp:{}", listener.local_addr()?);
        let session = Session::connect(link.parse()?, rand::random());
        tokio::spawn(async move { accept(&listener, &board).await });
        boards.push((name, link, session));
    }
    let lines = look(&boards).await;
    let first = &boards[0].1;
    print!("\n{}\n", table(&lines));
    println!("Try in another terminal:");
    println!("  picolake run {first} \"get status\"");
    println!("  picolake run {first} help");
    println!("  picolake measure {first}");
    println!("\nCtrl-C stops the field.");
    tokio::select! {
        stopped = tokio::signal::ctrl_c() => stopped?,
        () = show(&boards, lines.len()) => {}
    }
    println!();
    Ok(())
}

/// Draws the list again and again where there is a terminal to draw on.
async fn show(boards: &[(&str, String, Session)], count: usize) {
    if !std::io::stdout().is_terminal() {
        return std::future::pending().await;
    }
    println!("\n{}", table(&look(boards).await));
    loop {
        tokio::time::sleep(REFRESH).await;
        println!("\x1b[{}A\x1b[J{}", count + 2, table(&look(boards).await));
    }
}

async fn look(boards: &[(&str, String, Session)]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, link, session) in boards {
        let state = async {
            session.wait_up(super::UP_TIMEOUT).await?;
            status(session).await
        };
        let state = state.await.map_err(|error| error.to_string());
        lines.push(Line { name: (*name).into(), link: link.clone(), state });
    }
    lines
}
