//! The owner's end of the socket: listens as long as the owner lives, and gives each guest what it wishes.

use super::{
    END_TIMEOUT, GREETING_TIMEOUT, GUESTS_MAX, Lock, OwnerError, Setup, Wish,
    lines::{Line, LineReader},
    wire::{Greeting, INPUT_END, Refusal, Reply, goodbye, read_wish},
    work::{Sink, answer},
};
use crate::mcp::{Server, serve_lines};
use serde::Serialize;
use std::{fs, io, path::PathBuf, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Bytes between a guest's lines and the MCP server.
const PIPE_BYTES: usize = 64 * 1024;
/// How long guests that were told to stop may take to do so.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a connection that could not be taken: there may be too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listens until it is ended or dropped. The lock is freed last.
#[derive(Debug)]
pub(crate) struct Host {
    server: Server,
    /// No more is read from guests; what was read is answered.
    ending: CancellationToken,
    accepting: Option<JoinHandle<()>>,
    socket: PathBuf,
    _lock: Lock,
}

impl Host {
    /// Listens at the lock's place; a socket that a dead owner left there goes.
    pub(crate) fn listen(lock: Lock, server: Server) -> Result<Self, OwnerError> {
        let socket = lock.place.socket_file();
        let fail = |source| OwnerError::File { path: socket.clone(), source };
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket).map_err(fail)?;
        let ending = CancellationToken::new();
        let setup = Setup::of(server.tools().options());
        let guests =
            Guests { server: server.clone(), setup, ending: ending.clone(), stop: CancellationToken::new() };
        let accepting = Some(tokio::spawn(accept(listener, socket.clone(), guests)));
        Ok(Self { server, ending, accepting, socket, _lock: lock })
    }

    /// What it serves.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Ends in order: nobody new is let in, and who is there gets the answers to what was read, and a goodbye. Jobs
    /// that run then are cancelled.
    pub(crate) async fn end(mut self) {
        self.ending.cancel();
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.await; // it ends by itself in bounded time
        }
        self.server.tools().jobs().end().await;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
            let _ = fs::remove_file(&self.socket); // the next owner removes it otherwise
        }
    }
}

/// What every guest's task needs.
#[derive(Clone, Debug)]
struct Guests {
    server: Server,
    setup: Setup,
    ending: CancellationToken,
    /// The time for ending in order is over.
    stop: CancellationToken,
}

async fn accept(listener: UnixListener, socket: PathBuf, guests: Guests) {
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = guests.ending.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if tasks.len() < GUESTS_MAX => {
                    let guests = guests.clone();
                    tasks.spawn(async move {
                        if let Err(error) = guests.serve(stream).await {
                            tracing::debug!(%error, "a guest has gone");
                        }
                    });
                }
                Ok((stream, _)) => refuse(&stream),
                Err(error) => {
                    tracing::warn!(%error, "a guest could not be let in");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    let _ = fs::remove_file(&socket); // before the lock is free, so it is still ours
    let mut all = async || while tasks.join_next().await.is_some() {};
    if timeout(END_TIMEOUT, all()).await.is_err() {
        guests.stop.cancel();
        let _ = timeout(STOP_TIMEOUT, all()).await; // those that are left are dropped
    }
}

/// Says that there are too many; a guest that does not even take a line is not waited for.
fn refuse(stream: &UnixStream) {
    let busy = Refusal {
        error: format!("GUESTS_MAX: {GUESTS_MAX} programs use these boards already"),
        code: "busy".into(),
        suggested_action: "close one of them, then try again".into(),
        ..Refusal::default()
    };
    if let Ok(line) = serde_json::to_string(&Reply::Error(busy)) {
        let _ = stream.try_write((line + "\n").as_bytes());
    }
}

impl Guests {
    /// One guest from its greeting to its end.
    async fn serve(self, stream: UnixStream) -> io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = LineReader::new(reader);
        write_line(&mut writer, &Greeting::new(&self.setup)).await?;
        let line = tokio::select! {
            biased;
            () = self.ending.cancelled() => return write_line(&mut writer, &Reply::Goodbye {}).await,
            line = timeout(GREETING_TIMEOUT, reader.next()) => line,
        };
        let wish = match line {
            Ok(line) => match line? {
                Line::Whole(line) => read_wish(&line),
                Line::TooLong => read_wish(b""),
                Line::End => return Ok(()), // it only wanted to know whether there is an owner
            },
            Err(_) => return Ok(()), // it says nothing
        };
        match wish {
            Err(refusal) => write_line(&mut writer, &Reply::Error(refusal)).await,
            Ok(Wish::Mcp) => {
                mcp(self.server.for_session(CancellationToken::new()), reader, writer, self.ending).await
            }
            Ok(wish) => {
                let mut sink = LineSink(writer);
                let stopped = Refusal {
                    error: "the process that owns the boards has ended before the answer was complete".into(),
                    code: "owner_ended".into(),
                    suggested_action: "ask again; another process owns the boards then".into(),
                    ..Refusal::default()
                };
                tokio::select! {
                    done = answer(self.server.tools(), wish, &mut sink) => done?,
                    () = reader.gone() => return Ok(()), // what it asked is cancelled by dropping it
                    () = self.stop.cancelled() => sink.reply(Reply::Error(stopped)).await?,
                }
                Ok(())
            }
        }
    }
}

/// Serves MCP to whoever is at the other end of these two, until one of both wants to end.
pub(super) async fn mcp<R, W>(
    server: Server,
    mut reader: LineReader<R>,
    mut writer: W,
    ending: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (mut to_server, server_reads) = tokio::io::duplex(PIPE_BYTES);
    let (server_writes, mut from_server) = tokio::io::duplex(PIPE_BYTES);
    let mut serving = JoinSet::new(); // dropping it cancels what was asked
    serving.spawn(serve_lines(server, server_reads, server_writes, CancellationToken::new()));
    let mut lines_read = 0;
    let mut giving = Box::pin(tokio::io::copy(&mut from_server, &mut writer));
    let ended = tokio::select! {
        fed = feed(&mut reader, &mut to_server, &mut lines_read, &ending) => fed?,
        given = &mut giving => return given.map(drop), // the server ends by itself, or the guest reads no more
    };
    if ended == Ended::Left {
        return Ok(());
    }
    drop(to_server); // the input's end: the server answers what it has read, and closes
    tokio::select! {
        given = &mut giving => drop(given?),
        () = reader.gone() => return Ok(()),
    }
    drop(giving);
    if ended == Ended::Ending {
        writer.write_all((goodbye(lines_read) + "\n").as_bytes()).await?;
    }
    writer.shutdown().await
}

/// Why no more lines are read from a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Its client has ended its input, and waits for answers.
    Input,
    /// It has gone.
    Left,
    /// This process ends.
    Ending,
}

/// Gives whole lines to the server, and counts them.
async fn feed<R: AsyncRead + Unpin>(
    reader: &mut LineReader<R>,
    to_server: &mut (impl AsyncWrite + Unpin),
    lines_read: &mut u64,
    ending: &CancellationToken,
) -> io::Result<Ended> {
    loop {
        let line = tokio::select! {
            biased;
            () = ending.cancelled() => return Ok(Ended::Ending),
            line = reader.next() => line?,
        };
        match line {
            Line::Whole(line) if line == INPUT_END.as_bytes() => return Ok(Ended::Input),
            Line::Whole(mut line) => {
                line.push(b'\n');
                to_server.write_all(&line).await?;
                *lines_read += 1;
            }
            Line::TooLong => {
                let why = "a guest's line is too long";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            Line::End => return Ok(Ended::Left),
        }
    }
}

/// Replies as lines of the socket.
struct LineSink<W>(W);

impl<W: AsyncWrite + Unpin + Send> Sink for LineSink<W> {
    async fn reply(&mut self, reply: Reply) -> io::Result<()> {
        write_line(&mut self.0, &reply).await
    }
}

async fn write_line(writer: &mut (impl AsyncWrite + Unpin), line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    writer.write_all(&text).await
}
