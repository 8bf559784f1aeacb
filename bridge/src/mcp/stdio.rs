//! MCP over standard input and output. When the input ends, or the program is to end, what was asked before is answered
//! first.

use super::{CALL_GRACE, CALL_TIMEOUT, Server, lines::Lines};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage},
    transport::{Transport, io::stdio_pipes},
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Why serving over standard input and output ended badly.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The client's first words were not MCP's.
    #[error("the MCP client did not begin as one does: {0}")]
    Initialize(String),
    /// A task of the server broke.
    #[error("the MCP server broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves one client until its end of the input, or until `stopped` is done, and until it has its answers.
pub async fn serve(server: Server, stopped: impl Future<Output = ()>) -> Result<(), StdioError> {
    let (reader, writer) = stdio_pipes();
    let ending = CancellationToken::new();
    let serving = serve_lines(server, reader, writer, ending.clone());
    tokio::pin!(serving);
    tokio::select! {
        ended = &mut serving => return ended,
        () = stopped => ending.cancel(),
    }
    serving.await
}

/// Standard input and output, for whoever carries a client's lines elsewhere.
pub(crate) fn pipes() -> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    stdio_pipes()
}

/// The same over any two streams. Dropping this cancels what was asked.
pub(crate) async fn serve_lines(
    server: Server,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    ending: CancellationToken,
) -> Result<(), StdioError> {
    match server.serve(Draining::new(Lines::new(reader, writer), ending)).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()), // asked nothing, and left
        Err(error) => Err(StdioError::Initialize(error.to_string())),
    }
}

/// A transport whose end is told only when every request that came over it has its answer. It ends when what is
/// inside does, or when it is told to.
pub(super) struct Draining<T> {
    inner: T,
    open: Arc<Open>,
    ending: CancellationToken,
    has_ended: bool,
}

/// Requests that came and have no answer yet.
#[derive(Debug, Default)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    changed: Notify,
}

impl Open {
    fn change<R>(&self, change: impl FnOnce(&mut HashSet<RequestId>) -> R) -> R {
        let result = change(&mut self.ids.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
        result
    }

    async fn none_left(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable(); // before looking, so that a change in between is not missed
            if self.ids.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            changed.await;
        }
    }

    /// A subscription has no answer until its end, and a cancelled request none at all.
    fn came(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request)
                if !matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) =>
            {
                self.change(|ids| ids.insert(request.id.clone()));
            }
            JsonRpcMessage::Notification(note) => {
                if let ClientNotification::CancelledNotification(cancelled) = &note.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.change(|ids| ids.remove(id));
                }
            }
            _ => {}
        }
    }
}

impl<T> Draining<T> {
    pub(super) fn new(inner: T, ending: CancellationToken) -> Self {
        Self { inner, open: Arc::default(), ending, has_ended: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Draining<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let open = Arc::clone(&self.open);
        let sent = self.inner.send(message);
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                open.change(|ids| ids.remove(&id));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if !self.has_ended {
            let came = tokio::select! {
                came = self.inner.receive() => came,
                () = self.ending.cancelled() => None,
            };
            if let Some(message) = came {
                self.open.came(&message);
                return Some(message);
            }
            self.has_ended = true;
        }
        if timeout(CALL_TIMEOUT + CALL_GRACE, self.open.none_left()).await.is_err() {
            tracing::warn!("some calls had no answer when their time was over");
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
