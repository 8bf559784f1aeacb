//! `picolake sim`: one simulated board for other programs to reach.

use crate::link::sim::{ROWS_BEFORE_MAX, Simulation};
use anyhow::Context as _;
use clap::Args;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_serial::{SerialPort as _, SerialStream};

/// How long to wait when the system has no connection to give: it may be out of files for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["tcp", "pty"])]
pub(crate) struct SimArgs {
    /// Listen here, such as 127.0.0.1:7000; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    tcp: Option<String>,
    /// Be a serial port: prints the device to connect to
    #[arg(long)]
    pty: bool,
    /// Begin with so many rows in the table that fills fastest, as after days of work
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=i64::from(ROWS_BEFORE_MAX)))]
    rows: u32,
}

pub(crate) async fn run(args: SimArgs) -> anyhow::Result<()> {
    let board = Simulation::with_rows("sim", args.rows).await?;
    let mut terminal = None; // the board's end must stay open, or the line hangs up
    if args.pty {
        let (ours, theirs) = SerialStream::pair().context("cannot open a pseudo-terminal")?;
        let name = theirs.name().context("the pseudo-terminal has no name")?;
        println!("simulated board on serial:{name}");
        board.attach_line(Box::new(ours))?;
        terminal = Some(theirs);
    }
    match args.tcp {
        None => tokio::signal::ctrl_c().await?,
        Some(address) => {
            let listener = listen(&address).await?;
            println!("simulated board on tcp:{}", listener.local_addr()?);
            tokio::select! {
                never = accept(&listener, &board) => never,
                stopped = tokio::signal::ctrl_c() => stopped?,
            }
        }
    }
    drop(terminal);
    Ok(())
}

/// Listens, or says in one line why not.
pub(crate) async fn listen(address: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose a free port, or 0 to let the system choose")
    })
}

/// Gives every connection to the board as a link of its own. One that fails is logged and does not end the others.
pub(crate) async fn accept(listener: &TcpListener, board: &Simulation) -> ! {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match stream.set_nodelay(true).and_then(|()| board.attach(Box::new(stream))) {
            Ok(()) => tracing::info!(%from, "a bridge connected"),
            Err(error) => tracing::warn!(%from, %error, "a connection was dropped"),
        }
    }
}
