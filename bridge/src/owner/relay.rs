//! An MCP client's lines to the owner and back, over one owner after the other: the client sees one session.
//!
//! What the client has asked and has no answer to is kept. When an owner says goodbye, what it has not read is sent to
//! the next one; when an owner is killed, the client is told that the outcome is unknown. The next owner may be this
//! process itself. What the session was begun with is said to each new owner again, and its answers are swallowed.

mod session;

use super::{
    Elected, Host, LINE_BYTES_MAX, Lock, OwnerError, Place, Setup, Wish, elect,
    host::mcp,
    lines::{Line, LineReader},
    wire::INPUT_END,
};
use crate::mcp::too_long;
use session::{Reception, Session};
use std::io;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream},
    sync::mpsc,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// Bytes between this process's relay and its own server.
const PIPE_BYTES: usize = 64 * 1024;
/// Lines on their way between two tasks.
const LINES_WAITING_MAX: usize = 16;

/// Carries one client's lines until its input ends, or until it is stopped, and until it has its answers. `begin` makes
/// this process the owner; as one it ends in order.
pub(crate) async fn relay(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin,
    place: &Place,
    elected: Elected,
    begin: impl Fn(Lock) -> Result<Host, OwnerError>,
    stopped: impl Future<Output = ()>,
) -> Result<(), OwnerError> {
    let mut host = None;
    let ending = CancellationToken::new();
    let done = {
        let carrying = carry_all(input, output, place, elected, begin, &mut host, &ending);
        tokio::pin!(carrying);
        tokio::select! {
            done = &mut carrying => done,
            () = stopped => {
                ending.cancel(); // as if the client had ended its input: what it asked before is answered
                carrying.await
            }
        }
    };
    if let Some(host) = host {
        host.end().await;
    }
    done
}

/// Over one link after the other.
async fn carry_all(
    input: impl AsyncRead + Unpin + Send + 'static,
    mut output: impl AsyncWrite + Unpin,
    place: &Place,
    mut elected: Elected,
    begin: impl Fn(Lock) -> Result<Host, OwnerError>,
    host: &mut Option<Host>,
    ending: &CancellationToken,
) -> Result<(), OwnerError> {
    let (lines, mut from_client) = mpsc::channel(LINES_WAITING_MAX);
    let mut reading = JoinSet::new(); // it ends with this
    reading.spawn(ending.clone().run_until_cancelled_owned(read_client(LineReader::new(input), lines)));
    let mut session = Session::default();
    loop {
        let mut tasks = JoinSet::new(); // they end with the link
        let (to_owner, mut from_owner) = match elected {
            Elected::Guest(mut guest) => {
                if guest.wish(&Wish::Mcp).await.is_err() {
                    elected = elect(place, &Setup::default()).await?; // it has ended since its greeting
                    continue;
                }
                link(&mut tasks, guest.reader, guest.writer)
            }
            Elected::Owner(lock) => {
                let host = host.insert(begin(lock)?);
                let (here, there) = tokio::io::duplex(PIPE_BYTES);
                tasks.spawn(own(there, host.server().for_session(CancellationToken::new())));
                let (reader, writer) = tokio::io::split(here);
                link(&mut tasks, LineReader::new(reader), writer)
            }
        };
        session.begin_link();
        let carried = carry(&mut session, &mut from_client, &mut output, to_owner, &mut from_owner).await;
        if !matches!(carried, Ok(Carried::SoFar)) {
            return Ok(()); // all is answered, or the client reads no more
        }
        for line in session.end_link() {
            if write(&mut output, &line).await.is_err() {
                return Ok(());
            }
        }
        if session.is_done() {
            return Ok(());
        }
        // Options that were given were the first owner's, too; another one's are better than the session's end.
        elected = elect(place, &Setup::default()).await?;
    }
}

/// How far a link has carried the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carried {
    /// Everything is answered, and nothing more comes.
    All,
    /// The owner has gone.
    SoFar,
}

/// Carries lines both ways until the owner has gone, or the client has ended and has its answers. An error says that
/// the client reads no more.
async fn carry(
    session: &mut Session,
    from_client: &mut mpsc::Receiver<Line>,
    output: &mut (impl AsyncWrite + Unpin),
    to_owner: mpsc::Sender<Vec<u8>>,
    from_owner: &mut mpsc::Receiver<Vec<u8>>,
) -> io::Result<Carried> {
    let mut is_broken = false; // what came before is still to be read
    let mut is_end_told = false;
    loop {
        let is_idle = !session.has_pending();
        let has_line = !is_idle || session.has_ended && !is_end_told;
        let sending = async {
            match has_line && !is_broken {
                true => to_owner.reserve().await.ok(),
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            line = from_owner.recv() => match line {
                None if session.has_ended && session.is_done() => return Ok(Carried::All),
                None => return Ok(Carried::SoFar),
                Some(line) => if let Some(line) = session.owner_line(line) {
                    write(output, &line).await?;
                },
            },
            permit = sending => match permit {
                None => is_broken = true,
                Some(permit) if is_idle => {
                    is_end_told = true; // whoever answers knows that no more comes
                    permit.send(INPUT_END.into());
                }
                Some(permit) => if let Some(line) = session.next_pending() {
                    permit.send(line);
                },
            },
            line = from_client.recv(), if is_idle && !session.has_ended => match line {
                None | Some(Line::End) => session.has_ended = true,
                Some(Line::TooLong) => {
                    let refused = too_long(LINE_BYTES_MAX).to_string();
                    write(output, refused.as_bytes()).await?;
                }
                Some(Line::Whole(line)) => if let Reception::Answer(refused) = session.client_line(line) {
                    write(output, &refused).await?;
                },
            },
        }
    }
}

/// A task for each direction of a link.
fn link<R, W>(
    tasks: &mut JoinSet<()>,
    reader: LineReader<R>,
    mut writer: W,
) -> (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (to_owner, mut waiting) = mpsc::channel::<Vec<u8>>(LINES_WAITING_MAX);
    let (lines, from_owner) = mpsc::channel(LINES_WAITING_MAX);
    tasks.spawn(async move {
        while let Some(line) = waiting.recv().await {
            if write(&mut writer, &line).await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await; // closing would mean that the guest has left
    });
    tasks.spawn(read(reader, lines));
    (to_owner, from_owner)
}

/// The owner's end of a session with itself.
async fn own(there: DuplexStream, server: crate::mcp::Server) {
    let (reader, writer) = tokio::io::split(there);
    let _ = mcp(server, LineReader::new(reader), writer, CancellationToken::new()).await; // told by the end of lines
}

/// The client's lines; the last one need not have an end.
async fn read_client<R: AsyncRead + Unpin>(mut reader: LineReader<R>, lines: mpsc::Sender<Line>) {
    loop {
        let line = match reader.next().await {
            Ok(Line::End) => match reader.rest() {
                Some(line) => line,
                None => return,
            },
            Ok(line) => line,
            Err(error) => {
                tracing::warn!(%error, "the input broke");
                return;
            }
        };
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

/// The owner's lines.
async fn read<R: AsyncRead + Unpin>(mut reader: LineReader<R>, lines: mpsc::Sender<Vec<u8>>) {
    loop {
        match reader.next().await {
            Ok(Line::Whole(line)) => {
                if lines.send(line).await.is_err() {
                    return;
                }
            }
            Ok(Line::TooLong) => tracing::warn!("a line is too long and was dropped"),
            Ok(Line::End) | Err(_) => return,
        }
    }
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    let mut line = line.to_vec();
    line.push(b'\n');
    writer.write_all(&line).await?;
    writer.flush().await
}
