//! The task behind a [`Session`](super::Session): it opens links, drives the [`Host`], and hands answers on.

use super::{
    Hello, State,
    answer::{AnswerError, AnswerSender, Ask, PartBytes, Piece},
    backoff::Backoff,
};
use crate::link::ByteStream;
use shared::{
    frame::WireBuffer,
    host::{Down, Ending, Event, Host, HostCounters},
    limits::{REQUESTS_MAX, WIRE_BYTES_MAX},
    message::{Class, Request},
    version,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep, sleep_until},
};

/// Bytes taken from a link at once.
const READ_BYTES: usize = 16 * 1024;
/// Times the clock is set anew when the first was lost, in one session.
const SET_TIME_ATTEMPTS_MAX: u32 = 3;

/// What belongs to a board and outlives its links.
struct Task {
    host: Host,
    start: Instant,
    answers: BTreeMap<u16, AnswerSender>,
    /// The request that sets the clock, while it is under way, and the attempts so far.
    set_time: Option<u16>,
    set_time_attempts: u32,
    hello: Option<Hello>,
    counters: Arc<Mutex<HostCounters>>,
    down: Option<Down>,
}

/// What the task shares with the [`Session`](super::Session)s of its board.
pub(super) struct Shared {
    pub(super) asks: mpsc::Receiver<Ask>,
    pub(super) state: watch::Sender<State>,
    pub(super) wake: Arc<Notify>,
    pub(super) counters: Arc<Mutex<HostCounters>>,
}

/// Runs until every [`Session`](super::Session) of it is dropped.
pub(super) async fn run<F, O>(open: O, seed: u64, shared: Shared)
where
    O: Fn() -> F,
    F: Future<Output = Result<Box<dyn ByteStream>, String>>,
{
    let Shared { mut asks, state, wake, counters } = shared;
    let mut task = Task {
        host: Host::new(seed),
        start: Instant::now(),
        answers: BTreeMap::new(),
        set_time: None,
        set_time_attempts: 0,
        hello: None,
        counters,
        down: None,
    };
    let mut backoff = Backoff::new(seed);
    loop {
        state.send_replace(State::Connecting);
        let opened = tokio::select! {
            opened = open() => opened,
            () = state.closed() => return,
        };
        let why = match opened {
            Err(why) => why,
            Ok(link) => match task.serve(link, &mut asks, &state, &wake, &mut backoff).await {
                Some(why) => why,
                None => return,
            },
        };
        task.answers.retain(|request, to| {
            let wanted = !to.is_dropped();
            if !wanted {
                task.host.close(*request);
            }
            wanted
        });
        let retry_in = backoff.wait();
        tracing::info!(why, ?retry_in, "board offline");
        state.send_replace(State::Offline { why: why.into(), retry_in });
        tokio::select! {
            () = sleep(retry_in) => {}
            () = state.closed() => return,
        }
    }
}

impl Task {
    fn now_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Drives one link until it is of no use any more; returns why, or none if nobody is left who would ask.
    async fn serve(
        &mut self,
        mut link: Box<dyn ByteStream>,
        asks: &mut mpsc::Receiver<Ask>,
        state: &watch::Sender<State>,
        wake: &Notify,
        backoff: &mut Backoff,
    ) -> Option<String> {
        self.hello = None;
        self.down = None;
        self.host.connect(self.now_us());
        let mut input = vec![0; READ_BYTES];
        let mut out: WireBuffer = [0; WIRE_BYTES_MAX];
        let (mut sent, mut len) = (0, 0);
        let (mut rx, mut tx) = tokio::io::split(&mut link);
        let broken = loop {
            if sent == len {
                (sent, len) = (0, self.host.transmit(self.now_us(), &mut out).unwrap_or(0));
            }
            let deadline = self.host.deadline_us().map(|us| self.start + Duration::from_micros(us));
            let timer = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            // In this order, the same for the same seed, and nothing starves: what there is to say, what askers have
            // done with and what they ask runs dry unless something is heard (there are few requests, each with
            // little credit), so reading has its turn; and time has passed for the host in every turn, however much
            // there is to read.
            tokio::select! {
                biased;
                () = state.closed() => break None,
                written = tx.write(&out[sent..len]), if sent < len => match written {
                    Ok(0) => break Some("the link takes no more bytes".into()),
                    Ok(written) => sent += written,
                    Err(error) => break Some(format!("the link broke: {error}")),
                },
                () = wake.notified() => self.look_at_askers(),
                Some(ask) = asks.recv(), if self.has_room() => self.open(ask),
                read = rx.read(&mut input) => match read {
                    Ok(0) => break Some("the link was closed".into()),
                    Ok(read) => self.feed(&input[..read]),
                    Err(error) => break Some(format!("the link broke: {error}")),
                },
                () = timer => {}
            }
            self.tick();
            if let Some(down) = self.down.take() {
                break Some(describe(down));
            }
            self.report(state, backoff);
        };
        self.disconnect();
        broken
    }

    /// One slot is the session's own, for the clock.
    fn has_room(&self) -> bool {
        self.answers.len() < REQUESTS_MAX - 1
    }

    fn open(&mut self, Ask { request, class, to }: Ask) {
        if to.is_dropped() {
            return; // cancelled while it waited: it must not run
        }
        match self.host.open(&request.as_wire(), class) {
            Ok(number) => drop(self.answers.insert(number, to)),
            // `has_room` and `Session::ask` see to it; an asker is told all the same.
            Err(_) => to.end(Err(AnswerError::Protocol("the request does not fit"))),
        }
    }

    fn look_at_askers(&mut self) {
        let host = &mut self.host;
        self.answers.retain(|request, to| {
            if to.is_dropped() {
                host.close(*request);
                return false;
            }
            host.consumed(*request, to.take_consumed());
            true
        });
    }

    fn feed(&mut self, bytes: &[u8]) {
        let now_us = self.now_us();
        let mut events = Events { answers: &mut self.answers, news: &mut Vec::new() };
        self.host.feed(now_us, bytes, |event| events.take(event));
        let news = std::mem::take(events.news);
        self.apply(news);
    }

    fn tick(&mut self) {
        let now_us = self.now_us();
        let mut events = Events { answers: &mut self.answers, news: &mut Vec::new() };
        self.host.tick(now_us, |event| events.take(event));
        let news = std::mem::take(events.news);
        self.apply(news);
    }

    fn disconnect(&mut self) {
        self.forget_set_time();
        let mut events = Events { answers: &mut self.answers, news: &mut Vec::new() };
        self.host.disconnect(|event| events.take(event));
        self.hello = None;
    }

    fn apply(&mut self, news: Vec<News>) {
        for news in news {
            match news {
                News::Up(hello) => {
                    self.hello = Some(hello);
                    self.forget_set_time();
                    self.set_time_attempts = 0;
                    self.set_clock();
                }
                News::Down(down) => self.down = Some(down),
                News::Ended(request, done) if self.set_time == Some(request) => {
                    self.set_time = None;
                    if !done && self.host.is_up() {
                        self.set_clock();
                    }
                }
                News::Ended(..) => {}
                News::Overrun(request) => self.host.close(request),
            }
        }
    }

    /// A time that waited for a link would be past when it is set.
    fn forget_set_time(&mut self) {
        if let Some(request) = self.set_time.take() {
            self.host.close(request);
        }
    }

    /// Tells the board the time, fresh at each attempt.
    fn set_clock(&mut self) {
        let Ok(since_1970) = SystemTime::now().duration_since(UNIX_EPOCH) else { return };
        if self.set_time.is_some() || self.set_time_attempts >= SET_TIME_ATTEMPTS_MAX {
            return;
        }
        self.set_time_attempts += 1;
        let utc_us = i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX);
        self.set_time = self.host.open(&Request::SetTime(utc_us), Class::Interactive).ok();
    }

    /// Tells whoever watches what has changed.
    fn report(&mut self, state: &watch::Sender<State>, backoff: &mut Backoff) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = *self.host.counters();
        let Some(hello) = &mut self.hello else { return };
        hello.round_trip = self.host.round_trip_us().map(Duration::from_micros);
        backoff.reset();
        let is_news = match &*state.borrow() {
            State::Up(before) => {
                before.epoch != hello.epoch
                    || before.catalog_hash != hello.catalog_hash
                    || before.round_trip != hello.round_trip
            }
            _ => true,
        };
        if is_news {
            state.send_replace(State::Up(Arc::new(hello.clone())));
        }
    }
}

/// What an event changes in the task itself.
enum News {
    Up(Hello),
    Down(Down),
    Ended(u16, bool),
    /// More came than there was credit for; its asker has been told.
    Overrun(u16),
}

/// Takes the host's events: answers go to their askers, the rest is news.
struct Events<'t> {
    answers: &'t mut BTreeMap<u16, AnswerSender>,
    news: &'t mut Vec<News>,
}

impl Events<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Up(hello) => self.news.push(News::Up(Hello::of(hello))),
            Event::Down(down) => self.news.push(News::Down(down)),
            Event::Part(request, part) => self.piece(request, || Piece::Part(PartBytes::of(part))),
            Event::Rows(request, count, bytes, lost) => {
                self.piece(request, || Piece::Rows { count, bytes: bytes.to_vec(), lost });
            }
            Event::Ended(request, ending) => {
                if let Some(to) = self.answers.remove(&request) {
                    to.end(AnswerError::of(ending));
                }
                self.news.push(News::Ended(request, matches!(ending, Ending::Done { .. })));
            }
        }
    }

    fn piece(&mut self, request: u16, piece: impl FnOnce() -> Piece) {
        if let Some(to) = self.answers.get(&request)
            && to.piece(piece()).is_err()
        {
            self.answers.remove(&request);
            self.news.push(News::Overrun(request));
        }
    }
}

fn describe(down: Down) -> String {
    match down {
        Down::NoHello { bytes_in: 0 } => {
            "no answer: nothing came back; is the board on, and is this its link?".into()
        }
        Down::NoHello { bytes_in } => format!(
            "no Picolake board: {bytes_in} bytes came that are no hello; is the baud rate right, and is this the board's link?"
        ),
        Down::Version { board_min, board_max } => format!(
            "the board speaks wire versions {board_min} to {board_max}, this bridge {} to {}; update {}",
            version::MIN,
            version::CURRENT,
            if board_min > version::CURRENT { "the bridge" } else { "the board's firmware" },
        ),
        Down::Silent => "the board stopped answering".into(),
    }
}
