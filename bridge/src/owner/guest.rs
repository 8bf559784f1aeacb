//! A guest's end of the socket: the greeting, one wish, its replies. Opens no link and holds no answer.

use super::{
    GREETING_TIMEOUT, OwnerError, Place, Setup, Wish,
    lines::{Line, LineReader},
    wire::{Greeting, Reply, VERSION, wish_line},
};
use std::io;
use tokio::{
    io::AsyncWriteExt as _,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// A connection that the owner has greeted and on which nothing was wished yet.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(super) reader: LineReader<OwnedReadHalf>,
    pub(super) writer: OwnedWriteHalf,
    /// The owner's process.
    pub(crate) pid: u32,
}

/// What came of an attempt to reach the owner.
#[derive(Debug)]
pub(super) enum Approach {
    Greeted(Guest),
    /// Nobody listens, or whoever did has ended.
    Nobody,
}

impl Guest {
    /// Connects and waits for the greeting: without one the owner has read nothing.
    pub(super) async fn approach(place: &Place, given: &Setup) -> Result<Approach, OwnerError> {
        let Ok(stream) = UnixStream::connect(place.socket_file()).await else {
            return Ok(Approach::Nobody);
        };
        let (reader, writer) = stream.into_split();
        let mut reader = LineReader::new(reader);
        let Ok(Ok(Line::Whole(line))) = timeout(GREETING_TIMEOUT, reader.next()).await else {
            return Ok(Approach::Nobody);
        };
        if let Ok(Reply::Error(refusal)) = serde_json::from_slice(&line) {
            return Err(OwnerError::Refused(refusal));
        }
        let greeting: Greeting = serde_json::from_slice(&line)
            .map_err(|error| OwnerError::Gone(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let Greeting { picolake, pid, release, setup } = greeting;
        if picolake != VERSION {
            return Err(OwnerError::Version { pid, theirs: release, ours: env!("CARGO_PKG_VERSION") });
        }
        if let Some((what, given)) = setup.differs_from(given) {
            return Err(OwnerError::Setup { pid, what, given });
        }
        Ok(Approach::Greeted(Self { reader, writer, pid }))
    }

    /// Says what is wished. Dropping the guest afterwards cancels it.
    pub(crate) async fn wish(&mut self, wish: &Wish) -> Result<(), OwnerError> {
        let invalid = |error| OwnerError::Gone(io::Error::new(io::ErrorKind::InvalidInput, error));
        let line = wish_line(wish).map_err(invalid)? + "\n";
        self.writer.write_all(line.as_bytes()).await.map_err(OwnerError::Gone)
    }

    /// The next reply.
    pub(crate) async fn next(&mut self) -> Result<Reply, OwnerError> {
        let gone = |kind, why: String| Err(OwnerError::Gone(io::Error::new(kind, why)));
        match self.reader.next().await.map_err(OwnerError::Gone)? {
            Line::Whole(line) => match serde_json::from_slice(&line) {
                Ok(reply) => Ok(reply),
                Err(error) => gone(io::ErrorKind::InvalidData, error.to_string()),
            },
            Line::TooLong => gone(io::ErrorKind::InvalidData, "a line is too long".into()),
            Line::End => gone(io::ErrorKind::UnexpectedEof, "the connection has ended".into()),
        }
    }
}
