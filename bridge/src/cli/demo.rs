//! `picolake demo`: a simulated field of three boards that comes up, says what to try, and stays up.

use super::{
    boards::{Columns, table},
    sim::{accept, listen},
};
use crate::{
    board::Session,
    field::{DEMO_BOARDS, Report},
    link::sim::Simulation,
};
use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

/// The terminal that the list is made for.
const TERMINAL_COLUMNS: usize = 80;
/// How often the list is drawn anew on a terminal.
const REFRESH: Duration = Duration::from_secs(1);

pub(crate) async fn run() -> anyhow::Result<()> {
    println!(
        "Starting a field of {} simulated boards: the firmware itself, on this machine.",
        DEMO_BOARDS.len()
    );
    let mut boards = Vec::new();
    for name in DEMO_BOARDS {
        let board = Simulation::named(name)?;
        let listener = listen("127.0.0.1:0").await?;
        let link = format!("tcp:{}", listener.local_addr()?);
        let session = Session::connect(link.parse()?, rand::random());
        tokio::spawn(async move { accept(&listener, &board).await });
        boards.push((name, link, session));
    }
    let lines = look(&boards).await;
    let first = &boards[0].1;
    let program = std::env::args().next().unwrap_or_else(|| "picolake".into());
    print!("\n{}\n", table(&lines, Columns::WithoutId));
    println!("Try in another terminal:");
    println!("  {program} run {first} \"get status\"");
    println!(
        "  {program} run {first} 'sql demo \"SELECT state, count(*), avg(voltage) FROM power GROUP BY state\"'"
    );
    println!("  {program} run {first} help");
    println!("  {program} measure {first}");
    println!("\nCtrl-C stops the field.");
    tokio::select! {
        stopped = tokio::signal::ctrl_c() => stopped?,
        () = show(&boards) => {}
    }
    println!();
    Ok(())
}

/// Draws the list again and again where there is a terminal to draw on.
async fn show(boards: &[(&str, String, Session)]) {
    if !std::io::stdout().is_terminal() {
        return std::future::pending().await;
    }
    let mut lines_drawn = 0;
    loop {
        // Cut where a narrow terminal would wrap it: what is drawn over is counted in lines.
        let list: Vec<String> = table(&look(boards).await, Columns::WithoutId)
            .lines()
            .map(|line| line.chars().take(TERMINAL_COLUMNS).collect())
            .collect();
        if lines_drawn > 0 {
            print!("\x1b[{lines_drawn}A\x1b[J"); // up to where the last list began, and clear from there
        }
        println!("\n{}", list.join("\n"));
        let _ = std::io::stdout().flush(); // a terminal that is gone ends the program by its own signal
        lines_drawn = 1 + list.len();
        tokio::time::sleep(REFRESH).await;
    }
}

async fn look(boards: &[(&str, String, Session)]) -> Vec<Report> {
    let mut reports = Vec::new();
    for (name, link, session) in boards {
        reports.push(Report::of(name, link, session).await);
    }
    reports
}
