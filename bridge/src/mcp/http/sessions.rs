//! The sessions of `/mcp`: rmcp's own, and never more of them than there are places.

use super::SESSIONS_MAX;
use futures_util::Stream;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        SessionId, SessionManager,
        session::{
            ServerSseMessage,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};
use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// The place of the session that the present request may begin. rmcp makes the session within the request, and
    /// does not say for which.
    static PLACE: RefCell<Option<Place>>;
}

/// Sessions, and the place that each has.
#[derive(Debug)]
pub(super) struct Sessions {
    local: LocalSessionManager,
    places: Arc<Semaphore>,
    taken: Mutex<HashMap<SessionId, Place>>,
}

/// A session's place. When it is given back, the session's calls are not wanted any more.
#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
    ended: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    /// The request has no place for one.
    #[error("{SESSIONS_MAX} sessions are open, no more are taken")]
    Full,
    /// rmcp's reason.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

impl Sessions {
    /// None yet; one that is quiet for `idle_max` ends.
    pub(super) fn new(idle_max: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle_max);
        Self { local, places: Arc::new(Semaphore::new(SESSIONS_MAX)), taken: Mutex::default() }
    }

    /// Runs a request that may begin a session, or returns none if there is no place for it.
    pub(super) async fn with_place<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let place = Place { _permit: permit, ended: CancellationToken::new() };
        Some(PLACE.scope(RefCell::new(Some(place)), request).await)
    }

    /// Cancelled when the session ends that the present request begins; never, if it begins none.
    pub(super) fn ended() -> CancellationToken {
        let place = PLACE.try_with(|place| place.borrow().as_ref().map(|place| place.ended.clone()));
        place.ok().flatten().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Place>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let place = PLACE.try_with(|place| place.take()).ok().flatten().ok_or(SessionsError::Full)?;
        let (id, transport) = self.local.create_session().await?;
        self.lock().insert(id.clone(), place);
        Ok((id, transport))
    }

    /// rmcp calls this for every session's end: the client's wish, silence, or a failure.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        drop(self.lock().remove(id));
        Ok(self.local.close_session(id).await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.resume(id, last_event_id).await?)
    }
}
