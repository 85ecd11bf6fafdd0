//! A gateway of a pair: its connections, its election and its records, on threads of their own.
//!
//! | Thread | Work |
//! |---|---|
//! | `forebay-pair` | gives the election the time, sends heartbeats, closes silent connections, begins sessions |
//! | `forebay-pair-notes` | writes the peer's records, and acknowledges them |
//! | `forebay-pair-link` | one for each connection: opens it and reads messages |
//!
//! The owner of the data plane reads the [`Verdict`] and starts or stops the data plane. [`Stepper`] drives the same without threads
//! and connections, for simulations.

mod links;
mod notes;
mod stepper;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use forebay_admission::Limiter;
use forebay_planted::{Fault, planted};
use forebay_privileges as privileges;
use forebay_state::{IvStore, IvStoreError, Lock, PairNote, Record, Territory};

use self::notes::{Notes, Work};
pub use self::stepper::Stepper;
use super::channel::Sender;
use super::election::{Claim, Complete, Election, Heard, Role, Settings, Step};
use super::key::{Key, KeyError};
use super::memory::Memory;
use super::message::{Hello, Message, chunks};
use super::mirror::Mirror;
use super::outbox::{Meanwhile, Outbox};
use super::source::Source;

/// Interval of [`Shared::pass_time`].
const TICK: Duration = Duration::from_millis(10);
/// Minimum time between the beginnings of two sessions.
const SESSION_AGAIN: Duration = Duration::from_secs(1);
/// Time after which all records are sent again to a peer that reports that it lacks some.
const MERGE_AGAIN: Duration = Duration::from_secs(3);
/// Interval between announcements of the shared addresses; the second one while the peer may have them too.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);
const ANNOUNCE_OFTEN: Duration = Duration::from_millis(250);
/// Time that a starting gateway waits for its peer, as a multiple of `silence`.
const START_TIMEOUT: u32 = 4;

/// What the data plane should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not run.
    Standby,
    /// Run.
    Active,
    /// Restart, because the peer was active at the same time and has used or received numbers that are not known here.
    Restart,
}

/// Errors that prevent a gateway from being one of a pair.
#[derive(Debug)]
#[non_exhaustive]
pub enum PairError {
    /// The key.
    Key(KeyError),
    /// The state directory.
    State(IvStoreError),
    /// The state directory belongs to the other gateway: its number, and this one's.
    Number(u8, u8),
    /// The gateway cannot listen at an address.
    Listen(SocketAddr, io::Error),
    /// A thread.
    System(io::Error),
}

impl fmt::Display for PairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairError::Key(error) => error.fmt(f),
            PairError::State(error) => error.fmt(f),
            PairError::Number(found, expected) => {
                write!(
                    f,
                    "the state directory is of gateway {found} of a pair, expected that of gateway {expected}"
                )
            }
            PairError::Listen(address, error) => {
                write!(f, "cannot listen for the peer at {address}: {error}")
            }
            PairError::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PairError {}

impl miette::Diagnostic for PairError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = match self {
            PairError::Key(error) => error.hint(),
            PairError::State(error) => return error.help(),
            PairError::Number(..) => {
                "set `number` in [pair] to what it was, or give this gateway a state directory of its own"
            }
            PairError::Listen(..) => "set `listen` in [pair] to an address of this host that is not shared",
            PairError::System(_) => return None,
        };
        Some(Box::new(hint))
    }
}

/// The status of the pair, for the control socket.
#[derive(Clone, Debug)]
pub struct PairStatus {
    /// This gateway's number.
    pub number: u8,
    /// Its role.
    pub role: Role,
    /// The term that it knows.
    pub term: u64,
    /// Connections to the peer.
    pub links: usize,
    /// The role of the peer, if its heartbeats arrive.
    pub peer: Option<Role>,
    /// Whether the standby has every record.
    pub in_sync: bool,
    /// Messages with records that the peer has not acknowledged yet.
    pub waiting: u64,
    /// Messages that the peer has acknowledged.
    pub noted: u64,
    /// Time from a message to its acknowledgement, smoothed.
    pub takes: Duration,
    /// Number of times that this gateway has become active since its start.
    pub take_overs: u64,
    /// The last time, since the Unix epoch, and the reason.
    pub last: Option<(Duration, &'static str)>,
    /// The reason for which it would be active if its records were complete; `None` if it does not wait for records.
    pub waits: Option<&'static str>,
    /// Records and terms of the peer that were refused.
    pub refused: u64,
}

/// The clocks of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Monotonic time.
    pub monotonic: fn() -> Duration,
    /// The time since the Unix epoch.
    pub unix: fn() -> Duration,
}

/// The sending end of a connection to the peer.
pub trait Speaker: Send + Sync {
    /// Sends a message; false if the connection is lost.
    fn say(&self, message: &Message) -> bool;

    /// Ends the connection.
    fn end(&self);
}

impl Speaker for Mutex<Sender> {
    fn say(&self, message: &Message) -> bool {
        lock(self).send(message).is_ok()
    }

    fn end(&self) {
        lock(self).close();
    }
}

/// A connection.
struct Link {
    speaker: Arc<dyn Speaker>,
    heard: Duration,
}

/// A transmission of all records in a session.
struct Everything {
    session: u64,
    link: u64,
    /// The number of this transmission.
    number: u64,
    /// Whether this gateway is active.
    active: bool,
}

struct State {
    election: Election,
    /// The peer's last report about this gateway's records, and about its own.
    peer_wants: bool,
    peer_unmerged: bool,
    peer_blank: bool,
    peer_whole: bool,
    /// Whether this gateway and its peer together may lack records.
    lacks_together: bool,
    /// All records of the peer up to this term are here, and arrived in this session.
    complete: Option<u64>,
    received_session: Option<(u64, u64)>,
    /// This gateway is active without records that the peer has, or may have.
    lacks: bool,
    /// When records of the peer were accepted last, and how many were refused.
    noted_at: Option<Duration>,
    refused: u64,
    /// The last call of [`Shared::pass_time`], and the last look for an operator's acceptance.
    passed: Duration,
    asked: Duration,
    links: BTreeMap<u64, Link>,
    next_link: u64,
    /// The session of the outbox and its connection, and when it began.
    session: Option<(u64, u64)>,
    session_began: Option<Duration>,
    /// Sessions so far.
    sessions: u64,
    /// The connection from which the peer's records are accepted.
    source: Source,
    /// Transmissions of all records so far; whether there was one in this session, and whether the peer has merged it.
    merges: u64,
    merge_sent: bool,
    merged: bool,
    /// When all records were sent last.
    merge_sent_at: Duration,
    /// The connection, if it still exists, over which the peer has sent all its records.
    received: Option<u64>,
    /// Whether the data plane runs or is about to start.
    running: bool,
    restart: bool,
    /// Connections whose records count as merged when the data plane restarts, and the number of the transmission.
    owed: Vec<(u64, u64)>,
    take_overs: u64,
    last: Option<(Duration, &'static str)>,
    beaten: Duration,
    /// Errors of connections that were logged, and when.
    said: BTreeMap<String, Duration>,
    /// Addresses from which the peer has connected.
    known: BTreeSet<IpAddr>,
    /// Limits the log lines about unknown hosts.
    strangers: Limiter,
}

/// What the threads share.
struct Shared {
    settings: Settings,
    heartbeat: Duration,
    /// A random name of this process.
    process: u64,
    hello: Hello,
    store: IvStore,
    memory: Arc<Memory>,
    outbox: Outbox,
    /// Locked before the state by threads that need both.
    mirror: Mutex<Mirror>,
    state: Mutex<State>,
    work: mpsc::Sender<Work>,
    /// Monotonic, and the time since the Unix epoch.
    clock: fn() -> Duration,
    unix_time: fn() -> Duration,
    /// Whether there are threads for slow operations.
    has_threads: bool,
    ended: AtomicBool,
}

/// One of two gateways. Its threads end when it is dropped.
pub struct Pair {
    shared: Arc<Shared>,
    claim: Arc<Lock>,
}

/// Monotonic time.
#[allow(clippy::disallowed_methods)] // silence is measured by it; the election is told it
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[allow(clippy::disallowed_methods)] // threads of their own, which have nothing else to do
fn rest(time: Duration) {
    std::thread::sleep(time);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pair {
    /// Starts with the settings `config` and the records in `store`, which `claim` locks.
    ///
    /// # Errors
    /// See [`PairError`].
    pub fn start(
        config: &forebay_config::Pair,
        store: IvStore,
        claim: Lock,
        unix_time: fn() -> Duration,
    ) -> Result<Pair, PairError> {
        let key = Arc::new(Key::read(&config.key_file).map_err(PairError::Key)?);
        let process = RandomState::new().build_hasher().finish();
        let (pair, mut notes) =
            Pair::new(config, (store, claim), process, Clocks { monotonic: clock, unix: unix_time }, None)?;
        let shared = pair.shared.clone();
        // Gateway 0 listens, gateway 1 connects.
        if config.number == 0 {
            for &address in &config.listen {
                let listener =
                    TcpListener::bind(address).map_err(|error| PairError::Listen(address, error))?;
                links::listen(&shared, &key, listener).map_err(PairError::System)?;
            }
        } else {
            for &address in &config.peers {
                links::dial(&shared, &key, address).map_err(PairError::System)?;
            }
        }
        spawn("forebay-pair-notes", {
            let shared = shared.clone();
            move || {
                privileges::keep_files();
                notes.run(&shared);
            }
        })
        .map_err(PairError::System)?;
        spawn("forebay-pair", move || {
            privileges::keep_files();
            while !shared.ended.load(Ordering::Relaxed) {
                shared.pass_time();
                rest(TICK);
            }
        })
        .map_err(PairError::System)?;
        Ok(pair)
    }

    /// A gateway without threads and connections. `process` is a random name. `meanwhile` is called while records wait for the peer, if no thread reads its
    /// messages.
    fn new(
        config: &forebay_config::Pair,
        (store, claim): (IvStore, Lock),
        process: u64,
        clocks: Clocks,
        meanwhile: Option<Meanwhile>,
    ) -> Result<(Pair, Notes), PairError> {
        let Clocks { monotonic: clock, unix: unix_time } = clocks;
        let territory = Territory::of(config.number).ok_or(PairError::Number(config.number, 0))?;
        let store = store.in_territory(territory);
        let memory = Memory::open(store.clone(), config.number).map_err(PairError::State)?;
        let note = memory.note();
        if note.number != config.number {
            return Err(PairError::Number(note.number, config.number));
        }
        let memory = Arc::new(memory);
        let silence = Duration::from_nanos(config.silence.as_nanos());
        let settings = Settings {
            number: config.number,
            preferred: config.preferred,
            silence,
            start_timeout: silence * START_TIMEOUT,
        };
        let (work, works) = mpsc::channel();
        let has_threads = meanwhile.is_none();
        let shared = Arc::new(Shared {
            settings,
            heartbeat: Duration::from_nanos(config.heartbeat.as_nanos()),
            process,
            hello: Hello::new(
                config.number,
                config.addresses.iter().map(|one| one.address.to_string()).collect(),
            ),
            outbox: Outbox::new(memory.clone(), silence, clock, meanwhile),
            mirror: Mutex::new(Mirror::new(store.clone())),
            state: Mutex::new(State {
                election: Election::new(settings, note.term, clock()),
                peer_wants: false,
                peer_unmerged: false,
                peer_blank: false,
                peer_whole: false,
                lacks_together: false,
                complete: None,
                received_session: None,
                lacks: false,
                noted_at: None,
                refused: 0,
                passed: clock(),
                asked: Duration::ZERO,
                links: BTreeMap::new(),
                next_link: 0,
                session: None,
                session_began: None,
                sessions: 0,
                source: Source::default(),
                merges: 0,
                merge_sent: false,
                merge_sent_at: Duration::ZERO,
                merged: false,
                received: None,
                running: false,
                restart: false,
                owed: vec![],
                take_overs: 0,
                last: None,
                beaten: Duration::ZERO,
                said: BTreeMap::new(),
                known: BTreeSet::new(),
                strangers: Limiter::every(forebay_time::Duration::from_millis(60_000), 5),
            }),
            store,
            memory,
            work,
            clock,
            unix_time,
            has_threads,
            ended: AtomicBool::new(false),
        });
        Ok((Pair { shared, claim: Arc::new(claim) }, Notes::new(works)))
    }

    /// What the data plane should do now.
    pub fn verdict(&self) -> Verdict {
        let state = lock(&self.shared.state);
        match state.election.role() {
            Role::Standby => Verdict::Standby,
            Role::Active if state.restart => Verdict::Restart,
            Role::Active => Verdict::Active,
        }
    }

    /// The interval of announcements of the shared addresses; `None`: no announcements, because the peer may have taken over, and an
    /// announcement would move the traffic back.
    pub fn announce_every(&self) -> Option<Duration> {
        let state = lock(&self.shared.state);
        // A gateway that has just become the standby may have a data plane and the addresses for a moment. Hosts that receive its
        // announcement would then ignore those of the other one for a second (Linux: `locktime`).
        if state.election.role() != Role::Active {
            return None;
        }
        match state.election.claim((self.shared.clock)()) {
            Claim::Undisputed => Some(ANNOUNCE_EVERY),
            Claim::TakenOver => Some(ANNOUNCE_OFTEN),
            Claim::Doubtful => None,
        }
    }

    /// The input of a data plane that starts: the records, of which the peer keeps a copy from now on, and the lock of their directory.
    ///
    /// # Errors
    /// If the peer's records cannot be written.
    pub fn prepare(&self) -> Result<(IvStore, Lock), IvStoreError> {
        let shared = &self.shared;
        lock(&shared.state).running = true;
        // Held until the end, so that no record of the peer arrives between the write and the message to the peer.
        let mut mirror = lock(&shared.mirror);
        let settled = mirror.settle(false);
        let mut state = lock(&shared.state);
        if let Err(error) = settled {
            state.running = false;
            return Err(error);
        }
        state.restart = false;
        // Records that were merged while the data plane ran are durable now.
        shared.remember(&state, None);
        for (link, number) in std::mem::take(&mut state.owed) {
            shared.send_on(&state, link, &Message::Merged { number });
        }
        let store = shared.store.clone().with_replica(Arc::new(shared.outbox.clone()));
        Ok((store, Box::new(self.claim.clone())))
    }

    /// Call this when the data plane has ended and recorded everything: records that the peer has sent meanwhile are merged.
    pub fn stopped(&self) {
        // As in [`Pair::prepare`].
        let mut mirror = lock(&self.shared.mirror);
        if let Err(error) = mirror.settle(true) {
            tracing::error!(%error, "cannot merge the records of the peer");
            return;
        }
        let mut state = lock(&self.shared.state);
        (state.running, state.restart) = (false, false);
        for (link, number) in std::mem::take(&mut state.owed) {
            self.shared.send_on(&state, link, &Message::Merged { number });
        }
    }

    /// Makes the peer take over at once, because this gateway ends. Call it after [`Pair::stopped`].
    pub fn resign(&self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        let state = lock(&self.shared.state);
        let unmerged = self.shared.memory.note().unmerged;
        let message = Message::Resign { term: state.election.term(), unmerged };
        state.links.keys().for_each(|&link| self.shared.send_on(&state, link, &message));
    }

    /// The status of the pair now.
    pub fn status(&self) -> PairStatus {
        let now = (self.shared.clock)();
        let state = lock(&self.shared.state);
        let (waiting, noted) = self.shared.outbox.counts();
        let role = state.election.role();
        let in_sync = match role {
            Role::Active => state.session.is_some() && state.merged,
            Role::Standby => {
                let is_heard = state.received.is_some_and(|link| state.links.contains_key(&link));
                is_heard && self.shared.complete(&state).of_both
            }
        };
        PairStatus {
            number: self.shared.settings.number,
            role,
            term: state.election.term(),
            links: state.links.len(),
            peer: state.election.peer().filter(|_| state.election.hears(now)).map(|peer| peer.role),
            in_sync,
            waiting,
            noted,
            takes: self.shared.outbox.takes(),
            take_overs: state.take_overs,
            last: state.last,
            waits: state.election.waits(),
            refused: state.refused,
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        lock(&self.shared.state).links.values().for_each(|link| link.speaker.end());
    }
}

impl Shared {
    /// Does everything that is due by now.
    fn pass_time(self: &Arc<Shared>) {
        let now = (self.clock)();
        let mut state = lock(&self.state);
        let silent = |link: &Link| now.saturating_sub(link.heard) > self.settings.silence;
        // The thread that reads the connection sees its end, and removes it.
        state.links.values().filter(|link| silent(link)).for_each(|link| link.speaker.end());
        if now.saturating_sub(std::mem::replace(&mut state.passed, now)) > self.settings.silence {
            // The process was suspended, and the peer has continued without it.
            state.complete = None;
        }
        let waited = state.election.waits();
        let complete = self.complete(&state);
        let before = state.election.clone();
        let mut step = state.election.tick(now, complete);
        if let Some(Step::TakeOver(_)) = step
            && let Err(error) =
                self.memory.change_durably(|note| remember(note, &state.election, step, state.lacks))
        {
            // The gateway must not be active in a term that it would not know after a crash. No other gateway has learnt of the term yet.
            (state.election, step) = (before, None);
            if now.saturating_sub(state.asked) >= SESSION_AGAIN {
                state.asked = now;
                tracing::error!(%error, "this gateway does not take over, because its term cannot be recorded: look at the disk of `state`");
            }
        }
        state.lacks |= step.is_some() && !complete.of_both && !complete.alone;
        let takes_over = matches!(step, Some(Step::TakeOver(_)));
        self.take(&mut state, step);
        let waits = state.election.waits();
        if waits.is_some() && waited.is_none() {
            tracing::warn!(
                reason = waits,
                "this gateway may lack records of the pair and is not active without its peer; `forebay state accept` has it go \
                 on with what it has"
            );
        }
        // Also if the peer is preferred and waits for this gateway's records.
        let lacks = state.election.role() == Role::Standby && !complete.of_both && !complete.alone;
        let asks = lacks && now.saturating_sub(state.asked) >= SESSION_AGAIN;
        if asks {
            state.asked = now;
        }
        let due = self.keep_session(&mut state, now);
        let beats = (now.saturating_sub(state.beaten) >= self.heartbeat).then(|| {
            state.beaten = now;
            (self.beat(&state), state.links.values().map(|link| link.speaker.clone()).collect::<Vec<_>>())
        });
        drop(state);
        self.memory.write_again();
        if takes_over {
            self.memory.forget_acceptance();
        }
        if asks && self.memory.take_acceptance() {
            tracing::warn!(
                "an operator has accepted the records as they are; give the SAs new keys if records were lost (docs/runbooks.md)"
            );
            lock(&self.state).lacks = true;
        }
        if let Some(due) = due {
            self.start_sending_all(due);
        }
        if let Some((beat, speakers)) = beats {
            for speaker in speakers {
                speaker.say(&beat);
            }
        }
    }

    fn beat(&self, state: &State) -> Message {
        let note = self.memory.note();
        Message::Beat {
            active: state.election.role() == Role::Active,
            term: state.election.term(),
            preferred: self.settings.preferred,
            unmerged: note.unmerged,
            wants: match state.election.role() {
                Role::Active => state.lacks,
                Role::Standby => !self.has_merged(state),
            },
            blank: note.blank,
            whole: self.is_whole(state),
            session: (self.process, state.sessions),
            open: state.session.is_some(),
        }
    }

    /// Completeness of the records here. As long as the peer counts as the gateway that continued alone, it may start alone again.
    fn complete(&self, state: &State) -> Complete {
        let of_both = self.has_merged(state) && !state.peer_unmerged;
        let note = self.memory.note();
        Complete { of_both, alone: note.was_alone() || note.blank && planted(Fault::EmptyServes) }
    }

    /// Whether all records of the peer are here.
    fn has_merged(&self, state: &State) -> bool {
        state.complete.is_some_and(|complete| complete >= state.election.term())
    }

    /// Whether the records here are complete, regardless of the peer's.
    fn is_whole(&self, state: &State) -> bool {
        let serves = state.election.role() == Role::Active && !state.lacks;
        serves || self.memory.note().was_alone()
    }

    /// Whether this gateway and its peer together have all records: if one has lost its directory, the other one has
    /// to be complete by itself, unless neither was ever active.
    fn has_all(&self, state: &State) -> bool {
        match (self.memory.note().blank, state.peer_blank) {
            _ if state.election.term() == 0 => true,
            (true, false) => state.peer_whole,
            (false, true) => self.is_whole(state),
            _ => true,
        }
    }

    /// Performs a step of the election.
    fn take(&self, state: &mut State, step: Option<Step>) {
        match step {
            None => return,
            Some(Step::TakeOver(why)) => {
                state.merge_sent = false;
                state.merged = false;
                state.take_overs += 1;
                state.last = Some(((self.unix_time)(), why));
                tracing::warn!(
                    term = state.election.term(),
                    reason = why,
                    "this gateway takes over; find out why the other one was silent (its log, the links of [pair])"
                );
            }
            Some(Step::StandDown(why)) => {
                // The peer may not have kept its last records.
                (state.merge_sent, state.merged) = (false, false);
                tracing::warn!(
                    term = state.election.term(),
                    reason = why,
                    "this gateway stands down; `forebay status` of both says which serves"
                );
            }
        }
        // Later records of the peer are not here.
        state.complete = None;
        self.remember(state, step);
    }

    /// Records the term, so that no two processes are active in the same one.
    fn remember(&self, state: &State, step: Option<Step>) {
        self.memory.change(|note| remember(note, &state.election, step, state.lacks));
    }

    /// Begins a session if there is none. Returns it if all records have to be sent in it.
    fn keep_session(&self, state: &mut State, now: Duration) -> Option<Everything> {
        if let Some((session, _)) = state.session
            && self.outbox.session() != Some(session)
        {
            state.session = None;
        }
        if state.session.is_none() {
            let waits = state.session_began.is_some_and(|at| now.saturating_sub(at) < SESSION_AGAIN);
            let (&link, Link { speaker, .. }) = state.links.first_key_value().filter(|_| !waits)?;
            let speaker = speaker.clone();
            state.sessions += 1;
            // Before any record. A failure ends the connection.
            speaker.say(&Message::Session { process: self.process, number: state.sessions });
            let session = self.outbox.open(Arc::new(move |message| speaker.say(message)));
            state.session = Some((session, link));
            state.session_began = Some(now);
            (state.merge_sent, state.merged) = (false, false);
        }
        let active = state.election.role() == Role::Active;
        let is_due = active || !state.running && (self.memory.note().unmerged || state.peer_wants);
        // Records that the peer did not accept because its disk was full are sent again.
        let again = state.peer_wants && now.saturating_sub(state.merge_sent_at) >= MERGE_AGAIN;
        let (session, link) = state.session.filter(|_| is_due && (!state.merge_sent || again))?;
        (state.merge_sent, state.merge_sent_at) = (true, now);
        state.merges += 1;
        Some(Everything { session, link, number: state.merges, active })
    }

    fn start_sending_all(self: &Arc<Shared>, due: Everything) {
        if !self.has_threads {
            return self.send_all(due);
        }
        let shared = self.clone();
        let spawned = spawn("forebay-pair-sync", move || {
            privileges::keep_files();
            shared.send_all(due);
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot send records to the peer");
        }
    }

    /// Sends every record that is here.
    fn send_all(&self, Everything { session, link, number, active }: Everything) {
        self.outbox.settled();
        let records = lock(&self.mirror).all(active);
        let records: Vec<Record> = match records {
            Ok(records) => records,
            Err(error) => {
                tracing::error!(%error, "cannot read the records for the peer");
                self.outbox.close(session);
                return;
            }
        };
        let untold = planted(Fault::AlonesUntold) && self.memory.note().blank;
        let chunks = chunks(if untold { &[] } else { &records });
        let count = chunks.len();
        for (place, chunk) in chunks.into_iter().enumerate() {
            let state = lock(&self.state);
            let (term, last) = (state.election.term(), place + 1 == count);
            let message = Message::Merge { records: chunk.to_vec(), active, term, number, last };
            self.send_on(&state, link, &message);
        }
    }

    /// Sends a message over a connection, if it still exists. A failure ends the connection.
    fn send_on(&self, state: &State, link: u64, message: &Message) {
        if let Some(link) = state.links.get(&link) {
            link.speaker.say(message);
        }
    }

    /// Handles the state of the peer in a message.
    fn hear(&self, state: &mut State, heard: Heard) {
        if !state.election.is_plausible(heard.term) {
            state.refused += 1;
            if state.refused.is_power_of_two() {
                tracing::error!(
                    term = heard.term,
                    refused = state.refused,
                    "the peer's term is implausible; it is not heard"
                );
            }
            return;
        }
        let term = state.election.term();
        let step = state.election.hear((self.clock)(), heard);
        self.take(state, step);
        if step.is_none() && state.election.term() > term {
            if state.election.role() == Role::Active {
                // The peer was active later than this gateway knew: both need the records of the other.
                (state.lacks, state.merge_sent, state.merged) = (true, false, false);
            }
            self.remember(state, None);
        }
    }
}

/// Updates the note after a step of the election.
fn remember(note: &mut PairNote, election: &Election, step: Option<Step>, lacks: bool) {
    note.term = election.term();
    if matches!(step, Some(Step::StandDown(_))) && !note.unmerged {
        // The peer had all records, and may have taken over.
        note.complete = None;
    }
    // Until the peer has merged all records.
    note.unmerged |= step.is_some();
    // A gateway that takes over continues with its records, even if only an operator has accepted them.
    let takes_over = matches!(step, Some(Step::TakeOver(_)));
    if takes_over || election.role() == Role::Active && !lacks {
        note.completed(note.term);
    }
}

/// Starts a thread.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

#[cfg(test)]
mod tests;
