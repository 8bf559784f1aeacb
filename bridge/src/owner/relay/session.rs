//! What a relay remembers of its client's session, so that another owner can go on with it. Reads and writes nothing.

use super::super::wire::GOODBYE;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};

/// Requests of a client without an answer.
const REQUESTS_MAX: usize = 1024;
/// Bytes of all lines that are kept; one line more may come on top.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Notifications that are kept until it is known that they were read.
const NOTES_MAX: usize = 64;
/// Subscriptions that are said again to a new owner: as many as one takes.
const SUBSCRIPTIONS_MAX: usize = crate::mcp::SUBSCRIPTIONS_MAX;
/// JSON-RPC's code for an error of the server's own.
const SERVER_ERROR: i64 = -32_000;

/// The session as it stands.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The client sends no more.
    pub(super) has_ended: bool,
    /// What must be sent, or may have to be sent again, in the client's order.
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// What a new owner must hear first.
    replay: VecDeque<Vec<u8>>,
    /// Ids of what was said again: nobody waits for these answers.
    swallowed: HashSet<Value>,
    initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    subscriptions: VecDeque<(String, Vec<u8>)>,
    /// Lines sent over this link.
    sent: u64,
    /// A server takes a request first.
    has_asked: bool,
    /// How many lines the owner has read, if it said goodbye.
    lines_read: Option<u64>,
}

#[derive(Debug)]
struct Kept {
    /// Which line of this link it was; none if it was not sent.
    nth: Option<u64>,
    /// None for what has no answer.
    id: Option<Value>,
    /// It can be asked again without harm, and is.
    is_repeatable: bool,
    line: Vec<u8>,
}

/// What comes of a client's line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reception {
    /// It will be sent.
    Taken,
    /// It is answered with this.
    Answer(Vec<u8>),
}

/// What is looked at of a message.
#[derive(Debug, Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Params,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    uri: Option<String>,
    request_id: Option<Value>,
    #[serde(rename = "lines_read")]
    lines_read: Option<u64>,
}

impl Envelope {
    fn of(line: &[u8]) -> Option<Self> {
        if line.trim_ascii_start().first() != Some(&b'{') {
            return None; // a list could be taken for the fields in their order
        }
        // Parameters of another shape are somebody else's: the message is one all the same.
        serde_json::from_slice(line).ok().or_else(|| {
            let message: Value = serde_json::from_slice(line).ok()?;
            let method = message.get("method").and_then(Value::as_str).map(str::to_string);
            message.is_object().then(|| Self {
                id: message.get("id").cloned(),
                method,
                params: Params::default(),
            })
        })
    }
}

impl Session {
    /// A line of the client.
    pub(super) fn client_line(&mut self, line: Vec<u8>) -> Reception {
        let Envelope { id, method, params } = Envelope::of(&line).unwrap_or_default();
        let (Some(id), Some(method)) = (id, method.as_deref()) else {
            self.take_note(method.as_deref(), params.request_id.as_ref(), line);
            return Reception::Taken;
        };
        let asked = self.kept.iter().filter(|kept| kept.id.is_some()).count();
        if asked >= REQUESTS_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let why = format!("{asked} requests wait for an answer already");
            return Reception::Answer(error(&id, &why, "busy", "wait for answers before you ask more"));
        }
        match (method, params.uri) {
            ("initialize", _) => self.initialize = Some(line.clone()),
            ("resources/subscribe", Some(uri)) => {
                self.subscriptions.retain(|(known, _)| *known != uri);
                if self.subscriptions.len() < SUBSCRIPTIONS_MAX {
                    self.subscriptions.push_back((uri, line.clone()));
                }
            }
            ("resources/unsubscribe", Some(uri)) => self.subscriptions.retain(|(known, _)| *known != uri),
            _ => {}
        }
        let is_repeatable = matches!(method, "initialize" | "subscriptions/listen");
        self.keep(Kept { nth: None, id: Some(id), is_repeatable, line });
        Reception::Taken
    }

    /// What has no answer: a notification, an answer of the client, or what is no message.
    fn take_note(&mut self, method: Option<&str>, request_id: Option<&Value>, line: Vec<u8>) {
        match method {
            Some("notifications/initialized") => self.initialized = Some(line.clone()),
            Some("notifications/cancelled") if request_id.is_some() => {
                let of_it = |kept: &Kept| kept.id.as_ref() == request_id;
                let was_sent = self.kept.iter().any(|kept| of_it(kept) && kept.nth.is_some());
                let was_known = self.kept.iter().any(of_it);
                self.forget(of_it); // it has no answer
                if was_known && !was_sent {
                    return;
                }
            }
            _ => {}
        }
        if self.kept.iter().filter(|kept| kept.id.is_none() && kept.nth.is_some()).count() >= NOTES_MAX {
            let oldest = self.kept.iter().find(|kept| kept.id.is_none()).and_then(|kept| kept.nth);
            self.forget(|kept| kept.id.is_none() && kept.nth.is_some() && kept.nth == oldest);
        }
        self.keep(Kept { nth: None, id: None, is_repeatable: false, line });
    }

    /// A line of the owner; returned if it is for the client.
    pub(super) fn owner_line(&mut self, line: Vec<u8>) -> Option<Vec<u8>> {
        let Some(envelope) = Envelope::of(&line) else {
            tracing::warn!("the owner of the boards sent what is no message");
            return None;
        };
        match (envelope.method.as_deref(), envelope.id) {
            (Some(GOODBYE), _) => {
                self.lines_read = Some(envelope.params.lines_read.unwrap_or(0));
                None
            }
            (None, Some(id)) if self.swallowed.remove(&id) => None,
            (None, Some(id)) => {
                let answered = self.kept.iter().find(|kept| kept.id.as_ref() == Some(&id));
                if let Some(nth) = answered.and_then(|kept| kept.nth) {
                    // Lines are read in order: what was sent before it was read, too.
                    self.forget(|kept| {
                        let is_read_note = kept.id.is_none() && kept.nth.is_some_and(|note| note < nth);
                        is_read_note || kept.nth == Some(nth)
                    });
                }
                Some(line)
            }
            _ => Some(line),
        }
    }

    /// A new owner will hear what the session began with.
    pub(super) fn begin_link(&mut self) {
        (self.sent, self.has_asked, self.lines_read) = (0, false, None);
        self.replay.clear();
        self.swallowed.clear();
        let is_begun = self.initialize.is_some()
            && !self.kept.iter().any(|kept| Some(&kept.line) == self.initialize.as_ref());
        if !is_begun {
            return; // nothing was said yet, it will be said anyway, or the client's revision needs no beginning
        }
        let again = self.initialize.iter().chain(self.subscriptions.iter().map(|(_, line)| line));
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for (nth, line) in again.enumerate() {
            let id = Value::from(format!("picolake-again-{nth}"));
            if let Ok(mut message) = serde_json::from_slice::<Value>(line) {
                message["id"] = id.clone();
                self.swallowed.insert(id);
                lines.push(message.to_string().into());
            }
        }
        let after_initialize = 1.min(lines.len());
        lines.splice(after_initialize..after_initialize, self.initialized.clone());
        self.replay = lines.into();
    }

    /// The link has ended: what is to be sent again will be; returns answers to what nobody will answer.
    pub(super) fn end_link(&mut self) -> Vec<Vec<u8>> {
        let lines_read = self.lines_read.take();
        let mut answers = Vec::new();
        for mut kept in std::mem::take(&mut self.kept) {
            self.kept_bytes -= kept.line.len();
            let is_unread = match (kept.nth, lines_read) {
                (None, _) => true,
                (Some(nth), Some(lines_read)) => nth > lines_read,
                (Some(_), None) => false,
            };
            if is_unread || kept.is_repeatable {
                kept.nth = None;
                self.keep(kept);
            } else if let Some(id) = &kept.id {
                let why = "the process that owned the boards ended before it answered; whether this was done is unknown";
                let action = "look whether it was done if it changes something, then ask again: another process owns the boards now";
                answers.push(error(id, why, "outcome_unknown", action));
            }
        }
        answers
    }

    /// Whether something waits to be sent.
    pub(super) fn has_pending(&self) -> bool {
        !self.replay.is_empty() || self.kept.iter().any(|kept| kept.nth.is_none())
    }

    /// The next line to send; none if what waited need not be sent.
    pub(super) fn next_pending(&mut self) -> Option<Vec<u8>> {
        if let Some(line) = self.replay.pop_front() {
            (self.sent, self.has_asked) = (self.sent + 1, true);
            return Some(line);
        }
        let place = self.kept.iter().position(|kept| kept.nth.is_none())?;
        if self.kept[place].id.is_none() && !self.has_asked {
            let dropped = self.kept.remove(place)?; // it is about what another owner was asked
            self.kept_bytes -= dropped.line.len();
            return None;
        }
        (self.sent, self.has_asked) = (self.sent + 1, true);
        let kept = &mut self.kept[place];
        kept.nth = Some(self.sent);
        Some(kept.line.clone())
    }

    /// Whether nothing is left to do for a client that has ended.
    pub(super) fn is_done(&self) -> bool {
        self.has_ended && !self.kept.iter().any(|kept| kept.id.is_some() && !is_listening(kept))
    }

    fn keep(&mut self, kept: Kept) {
        self.kept_bytes += kept.line.len();
        self.kept.push_back(kept);
    }

    fn forget(&mut self, is_over: impl Fn(&Kept) -> bool) {
        let kept_bytes = &mut self.kept_bytes;
        self.kept.retain(|kept| {
            let is_over = is_over(kept);
            *kept_bytes -= if is_over { kept.line.len() } else { 0 };
            !is_over
        });
    }
}

/// A subscription has no answer until its end: it is not waited for.
fn is_listening(kept: &Kept) -> bool {
    kept.is_repeatable && kept.nth.is_some()
}

fn error(id: &Value, why: &str, code: &str, action: &str) -> Vec<u8> {
    let data = json!({"error": why, "code": code, "details": {}, "suggested_action": action});
    let error = json!({"code": SERVER_ERROR, "message": format!("{why}; {action}"), "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, method: &str) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string().into()
    }

    fn note(method: &str, params: Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into()
    }

    fn answer(id: &Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string().into()
    }

    /// What the session sends now, by method and id.
    fn sent(session: &mut Session) -> Vec<String> {
        let mut methods = Vec::new();
        while session.has_pending() {
            if let Some(line) = session.next_pending() {
                let line: Value = serde_json::from_slice(&line).unwrap();
                methods.push(format!("{} {}", line["method"].as_str().unwrap(), line["id"]));
            }
        }
        methods
    }

    fn begun() -> Session {
        let mut session = Session::default();
        session.begin_link();
        session.client_line(request(0, "initialize"));
        assert_eq!(sent(&mut session), ["initialize 0"]);
        assert!(session.owner_line(answer(&json!(0))).is_some());
        session.client_line(note("notifications/initialized", json!({})));
        session
    }

    #[test]
    fn after_a_goodbye_what_was_not_read_is_sent_again_and_what_was_answered_is_not() {
        let mut session = begun();
        for id in 1..=3 {
            session.client_line(request(id, "tools/call"));
        }
        assert_eq!(sent(&mut session).len(), 4);
        assert!(session.owner_line(answer(&json!(1))).is_some());
        assert_eq!(session.owner_line(note(GOODBYE, json!({"lines_read": 3}))), None);
        assert_eq!(session.end_link(), [] as [Vec<u8>; 0]);
        session.begin_link();
        let again = sent(&mut session);
        assert_eq!(
            again,
            [
                "initialize \"picolake-again-0\"",
                "notifications/initialized null",
                "tools/call 2",
                "tools/call 3"
            ]
        );
        assert_eq!(session.owner_line(answer(&json!("picolake-again-0"))), None, "the client has its answer");
        assert!(session.owner_line(answer(&json!(2))).is_some());
    }

    #[test]
    fn without_a_goodbye_the_outcome_of_what_was_sent_is_unknown_and_the_rest_is_sent() {
        let mut session = begun();
        sent(&mut session);
        session.client_line(request(1, "tools/call"));
        assert_eq!(sent(&mut session), ["tools/call 1"]);
        session.client_line(request(2, "tools/call"));
        let answers = session.end_link();
        assert_eq!(answers.len(), 1);
        let error: Value = serde_json::from_slice(&answers[0]).unwrap();
        assert_eq!((&error["id"], &error["error"]["data"]["code"]), (&json!(1), &json!("outcome_unknown")));
        session.begin_link();
        assert_eq!(sent(&mut session).last().unwrap(), "tools/call 2");
    }

    #[test]
    fn subscriptions_go_on_and_those_that_were_ended_do_not() {
        let mut session = begun();
        for (id, method, uri) in [
            (1, "resources/subscribe", "a"),
            (2, "resources/subscribe", "b"),
            (3, "resources/unsubscribe", "a"),
        ] {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": uri}});
            session.client_line(line.to_string().into());
            sent(&mut session);
            session.owner_line(answer(&json!(id)));
        }
        session.client_line(request(4, "subscriptions/listen"));
        sent(&mut session);
        assert_eq!(session.end_link(), [] as [Vec<u8>; 0]);
        session.begin_link();
        let again = sent(&mut session);
        assert_eq!(again[2..], ["resources/subscribe \"picolake-again-1\"", "subscriptions/listen 4"]);
        session.has_ended = true;
        assert!(session.is_done(), "nobody waits for the end of a subscription");
    }

    #[test]
    fn a_request_that_is_cancelled_before_it_is_sent_is_never_sent() {
        let mut session = begun();
        session.client_line(request(1, "tools/call"));
        session.client_line(note("notifications/cancelled", json!({"requestId": 1})));
        assert_eq!(sent(&mut session), ["notifications/initialized null"]);
        session.client_line(request(2, "tools/call"));
        sent(&mut session);
        session.client_line(note("notifications/cancelled", json!({"requestId": 2})));
        assert_eq!(sent(&mut session), ["notifications/cancelled null"]);
        assert_eq!(session.end_link(), [] as [Vec<u8>; 0], "it has no answer");
    }

    #[test]
    fn a_client_without_a_beginning_needs_none_and_its_notes_do_not_come_first() {
        let mut session = Session::default();
        session.begin_link();
        session.client_line(request(1, "tools/list"));
        sent(&mut session);
        session.owner_line(answer(&json!(1)));
        session.end_link();
        session.begin_link();
        session.client_line(note("notifications/cancelled", json!({"requestId": 1})));
        assert_eq!(sent(&mut session), [""; 0]);
        session.client_line(request(2, "tools/list"));
        assert_eq!(sent(&mut session), ["tools/list 2"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut session = begun();
        for id in 0..REQUESTS_MAX as u64 {
            assert_eq!(session.client_line(request(id + 1, "tools/call")), Reception::Taken);
        }
        let Reception::Answer(refused) = session.client_line(request(9_999, "tools/call")) else { panic!() };
        let refused: Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(9_999), &json!("busy")));
        let mut session = begun();
        for _ in 0..10 * NOTES_MAX {
            session.client_line(note("notifications/x", json!({})));
            sent(&mut session);
        }
        assert!(session.kept.len() <= NOTES_MAX + 1);
        assert_eq!(session.kept_bytes, session.kept.iter().map(|kept| kept.line.len()).sum::<usize>());
    }
}
