//! Subscriptions to resources: looks at each again and again, and tells of those that changed. A board's status changes
//! when it goes, comes back or restarts; that its clock goes on is no news.

use super::{Server, catalogue::Tables, resources::Place};
use crate::board::State;
use rmcp::{
    ErrorData, RoleServer,
    model::{ResourceUpdatedNotification, ResourceUpdatedNotificationParam},
    service::{Peer, SubscriptionContext},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Resources that one session, or one subscription, watches.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 64;
/// How often they are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What one session has subscribed to. A watch ends when its guard goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Subscriptions {
    watches: Arc<Mutex<HashMap<String, DropGuard>>>,
}

impl Subscriptions {
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, DropGuard>) -> T) -> T {
        change(&mut self.watches.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Resources and how they were when they were looked at last.
struct Watch {
    seen: Vec<(String, Place, String)>,
}

impl Watch {
    async fn new(server: &Server, uris: impl IntoIterator<Item = String>) -> Self {
        let places = uris.into_iter().take(SUBSCRIPTIONS_MAX);
        let places: Vec<_> = places.filter_map(|uri| Some((Place::parse(&uri)?, uri))).collect();
        let has_tables = places.iter().any(|(place, _)| is_table(place));
        let tables = if has_tables { server.all_tables().await } else { Tables::new() };
        let look = |(place, uri)| {
            let look = server.look(&place, &tables);
            (uri, place, look)
        };
        Self { seen: places.into_iter().map(look).collect() }
    }

    /// Waits, looks, and returns the addresses of what has changed. Boards are asked once for all tables, and one that
    /// is away holds nothing up.
    async fn changed(&mut self, server: &Server) -> Vec<String> {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let has_tables = self.seen.iter().any(|(_, place, _)| is_table(place));
        let tables = if has_tables { server.tables_now().await } else { Tables::new() };
        let mut changed = Vec::new();
        for (uri, place, seen) in &mut self.seen {
            let look = server.look(place, &tables);
            if look != *seen {
                *seen = look;
                changed.push(uri.clone());
            }
        }
        changed
    }
}

impl Server {
    /// Begins to watch a resource for a session of an older revision.
    pub(super) async fn watch(&self, uri: String, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        if Place::parse(&uri).is_none() {
            return Err(ErrorData::resource_not_found(
                "this is no address of a table, a board or a job",
                None,
            ));
        }
        let mut watch = Watch::new(self, [uri.clone()]).await;
        let ended = CancellationToken::new();
        let is_new = self.subscriptions.change(|watches| {
            let has_room = watches.len() < SUBSCRIPTIONS_MAX || watches.contains_key(&uri);
            if has_room {
                watches.insert(uri, ended.clone().drop_guard());
            }
            has_room
        });
        if !is_new {
            let why = format!(
                "a session watches at most {SUBSCRIPTIONS_MAX} resources; unsubscribe from one first"
            );
            return Err(ErrorData::invalid_params(why, None));
        }
        let server = self.for_session(self.ended.clone()); // not this session's own, which would keep itself
        tokio::spawn(ended.run_until_cancelled_owned(async move {
            while !peer.is_transport_closed() {
                for uri in watch.changed(&server).await {
                    let note = ResourceUpdatedNotificationParam::new(uri);
                    if peer.notify_resource_updated(note).await.is_err() {
                        return; // the client has gone
                    }
                }
            }
        }));
        Ok(())
    }

    /// Tells a session of an older revision when the tools change, as long as it is there.
    pub(super) fn watch_tools(&self, peer: Peer<RoleServer>) {
        if !self.tools.can_change() {
            return;
        }
        let (tools, mut version) = (self.tools.clone(), self.tools.version());
        tokio::spawn(self.ended.clone().run_until_cancelled_owned(async move {
            while !peer.is_transport_closed() {
                tokio::time::sleep(LOOK_INTERVAL).await;
                let before = std::mem::replace(&mut version, tools.version());
                if before != version && peer.notify_tool_list_changed().await.is_err() {
                    return; // the client has gone
                }
            }
        }));
    }

    /// Stops watching; that nothing was watched is no error.
    pub(super) fn unwatch(&self, uri: &str) {
        self.subscriptions.change(|watches| watches.remove(uri));
    }

    /// Watches for one subscription of the newer revisions, until it is cancelled.
    pub(super) async fn watch_for(&self, context: &SubscriptionContext) {
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let mut watch = Watch::new(self, uris).await;
        let mut version = self.tools.version();
        loop {
            let changed = watch.changed(self).await;
            let before = std::mem::replace(&mut version, self.tools.version());
            if before != version
                && context.accepted().tools_list_changed == Some(true)
                && context.sink().notify_tool_list_changed().await.is_err()
            {
                return; // the client has gone
            }
            for uri in changed {
                let note = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
                if context.sink().send(note.into()).await.is_err() {
                    return; // the client has gone
                }
            }
        }
    }

    /// What of a resource is worth telling when it changes.
    fn look(&self, place: &Place, tables: &Tables) -> String {
        match place {
            Place::Table { database, table } => {
                let found = tables.get(&(database.clone(), table.clone()));
                format!("{found:?}")
            }
            Place::Status { board } => {
                match self.tools.field().board(board).map(|board| board.session.state()) {
                    Ok(State::Up(hello)) => format!("up {} {}", hello.epoch, hello.boot_count),
                    _ => "away".into(),
                }
            }
            Place::Job { id } => {
                format!("{:?}", self.tools.jobs().status(id).map(|status| status["state"].clone()).ok())
            }
        }
    }
}

fn is_table(place: &Place) -> bool {
    matches!(place, Place::Table { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::Session,
        field::{Board, Field},
        tools::{Options, Tools},
    };
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn boards_that_are_away_do_not_hold_up_a_look_at_many_tables() {
        let boards = ["one", "two"].map(|name| {
            let session = Session::connect_with(async || Err("nobody is there".into()), 1);
            Board::new(name, "nowhere", session, false)
        });
        let server = Server::new(Tools::new(Field::new(boards), Options::default()).unwrap());
        let uris = (0..SUBSCRIPTIONS_MAX).map(|nth| format!("picolake://tables/demo/t{nth}"));
        let mut watch = Watch::new(&server, uris).await;
        let begun = Instant::now();
        assert_eq!(watch.changed(&server).await, [""; 0]);
        assert!(begun.elapsed() < 2 * LOOK_INTERVAL, "{:?}", begun.elapsed());
    }
}
