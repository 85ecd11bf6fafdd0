//! One core's loop: packets in from the links, through the engine, out on the links.
//!
//! ```text
//! inside link ----> prepare (seal) --\                          /--> outside links
//!                                     crypto, complete -> lanes
//! outside links --> prepare (open) --/                          \--> inside link
//! ```
//!
//! Everything is done on the calling thread, which sleeps in poll(2) when there is no work. Packets for which a link
//! has no room wait in a queue of limited length. While sealed packets wait, nothing more is taken from the inside
//! link, whose own full queue then slows the senders down. Other threads send a worker commands through its
//! [`Handle`].
//!
//! Where several cores move packets, each has a worker, with its own queues of the links and its own processors. Their
//! engines share all SAs, so any of them takes any packet; [`stations`](super::stations) says how the order is kept. The
//! first worker carries out what changes SAs and policies.

mod idle;
mod output;
mod peers;
mod received;
mod setup;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, mpsc};

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{Engine, EngineError, Output};
use forebay_ipsec::{Event, EventKind, IvRange};
use forebay_links::Link;
use forebay_time::{Duration, Time};
use forebay_wire::ipv4;
use forebay_xfrm::Flow;

use self::output::Seen;
pub use self::setup::{Outside, OwnSettings, PortOf, Setup, WorkerCounts};
use super::audit::{Audit, Limiter};
use super::bell::Bell;
use super::installed::{InstallError, Installed};
use super::intake::{Intake, TURN};
use super::keepalive::Keepalives;
use super::port::{Port, Queue};
use super::stations::{Lane, Shared, Station};
use super::wait::Wait;
use forebay_config::Changes;
use forebay_sas::SasFile;

/// Rounds between two looks at ICMP while there is too much to do to ask poll(2): a system call each.
const ICMP_EVERY: u64 = 64;
/// How long ICMP does not wake a worker after it was read: much shorter than a path MTU takes to matter.
const ICMP_RESTS: Duration = Duration::from_millis(10);
/// Longest that an SA which goes holds others up.
const FINISH: Duration = Duration::from_millis(5);
/// Longest sleep, and so the longest interval at which SAs get the time.
const NAP: Duration = Duration::from_millis(500);

/// Lines of the log about peers that moved: a second, and at once.
const MOVES_SAID: (u32, u32) = (10, 100);

/// Between two reports of the CPU's load: a few in each step of alpha.
const LOAD_EVERY: Duration = Duration::from_millis(4);
/// Events of SAs that wait to be taken; what comes beyond is of no interest to anyone any more.
const EVENTS_MAX: usize = 65_536;

/// Something that a worker does for another thread.
type Order = Box<dyn FnOnce(&mut Worker) + Send>;

/// The loop's state. See the module.
pub struct Worker {
    engine: Engine,
    shared: Arc<Shared>,
    /// Its place among the workers.
    index: usize,
    icmp: Vec<Box<dyn Link + Send>>,
    /// poll(2) says that there is something of it.
    icmp_ready: bool,
    /// Until when ICMP does not wake the worker.
    icmp_rests: Time,
    /// As it was set, and as it is for the paths that there are.
    mss_most: Option<u16>,
    mss_clamp: Option<u16>,
    mss_by_path: bool,
    /// When paths were looked at.
    paths_seen: Time,
    window_waits: bool,
    intake: Intake,
    keepalives: Keepalives,
    moves_said: Limiter,
    orders: mpsc::Receiver<Order>,
    processors: Vec<usize>,
    counts: WorkerCounts,
    /// How many times limits of replay windows had been raised when it last looked.
    notes_seen: u64,
    installed: Installed,
    /// Emptied in every round.
    outputs: Vec<Output>,
    fresh: Vec<Output>,
    seen: Vec<Seen>,
    wait: Box<dyn Wait>,
    /// When the load of its CPU was reported last, and what [`Wait::busy`] said then.
    load_seen: (Time, Option<Duration>),
    stop: bool,
    /// Consecutive sleeps that an error of a link ended, which poll(2) would report again at once.
    faults: u32,
}

/// How other threads reach a worker.
#[derive(Clone)]
pub struct Handle {
    orders: mpsc::Sender<Order>,
    bell: Arc<Bell>,
    steps: Arc<OnceLock<Steps>>,
}

/// A worker without a thread, which runs when the caller says so.
#[derive(Clone)]
pub struct Steps(Arc<Mutex<Option<Worker>>>);

impl Steps {
    /// Has the worker do something at once, if it has not ended and does nothing else.
    pub fn with<R>(&self, what: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        self.0.try_lock().ok()?.as_mut().map(what)
    }

    /// Ends the worker.
    pub fn end(&self) {
        let worker = self.0.try_lock().ok().and_then(|mut worker| worker.take());
        drop(worker);
    }
}

impl Handle {
    /// Has the worker do something between two rounds, and waits for what comes of it; `None` if the worker has
    /// ended.
    pub fn ask<R: Send + 'static>(&self, order: impl FnOnce(&mut Worker) -> R + Send + 'static) -> Option<R> {
        self.post(order).recv().ok()
    }

    /// The same without waiting. The receiver gets the result, or nothing if the worker has ended.
    pub fn post<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> mpsc::Receiver<R> {
        let (reply, answer) = mpsc::sync_channel(1);
        let order: Order = Box::new(move |worker| drop(reply.send(order(worker))));
        if self.orders.send(order).is_ok() {
            match self.steps.get() {
                Some(steps) => drop(steps.with(Worker::obey)),
                None => self.bell.ring(),
            }
        }
        answer
    }

    /// Takes the worker that this leads to and that has no thread. Commands are obeyed when they are given, from now on.
    pub fn stepped(&self, worker: Worker) -> Steps {
        self.steps.get_or_init(|| Steps(Arc::new(Mutex::new(Some(worker))))).clone()
    }

    /// Whether the worker has no thread.
    pub fn is_stepped(&self) -> bool {
        self.steps.get().is_some()
    }
}

impl Worker {
    /// A worker alone that has not begun, and the way to reach it.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new(setup: Setup) -> io::Result<(Worker, Handle)> {
        let (mut workers, mut handles) = Worker::all(vec![setup])?;
        match (workers.pop(), handles.pop()) {
            (Some(worker), Some(handle)) => Ok((worker, handle)),
            _ => Err(io::Error::other("no worker")),
        }
    }

    /// Workers that have not begun, whose engines share their SAs, and the ways to reach them.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn all(mut setups: Vec<Setup>) -> io::Result<(Vec<Worker>, Vec<Handle>)> {
        let count = setups.len();
        let mut lanes = 1;
        if let Some(first) = setups.first_mut() {
            first.engine.set_lanes(count);
            lanes = first.engine.lanes();
        }
        let (mut insides, mut outsides, mut bells, mut rest) = (vec![], vec![], vec![], vec![]);
        for Setup { inside, outside, engine, icmp, own, wait } in setups {
            let bell = Arc::new(Bell::new()?);
            insides.push(inside);
            outsides.push(outside);
            bells.push(bell.clone());
            rest.push((engine, icmp, own, wait, bell));
        }
        let shared = Arc::new(Shared::new(Station::all(insides, outsides, &bells)?, lanes));
        let mut all = (vec![], vec![]);
        for (index, (engine, icmp, own, wait, bell)) in rest.into_iter().enumerate() {
            let (sender, orders) = mpsc::channel();
            // Keepalives are the first one's, for all.
            let keepalive = own.keepalive.filter(|_| index == 0);
            all.0.push(Worker {
                keepalives: Keepalives::new(keepalive),
                moves_said: Limiter::new(MOVES_SAID.0, MOVES_SAID.1),
                engine,
                shared: shared.clone(),
                index,
                icmp,
                icmp_ready: true,
                icmp_rests: Time::ZERO,
                mss_most: own.mss_clamp,
                mss_clamp: own.mss_clamp,
                mss_by_path: own.mss_by_path,
                paths_seen: Time::ZERO,
                window_waits: own.window_waits,
                intake: Intake::new(Audit::new(own.audit.0, own.audit.1)),
                orders,
                processors: own.processors,
                counts: WorkerCounts::default(),
                notes_seen: 0,
                installed: Installed::default(),
                outputs: Vec::new(),
                fresh: Vec::new(),
                seen: Vec::new(),
                wait,
                load_seen: (Time::ZERO, None),
                stop: false,
                faults: 0,
            });
            all.1.push(Handle { orders: sender, bell, steps: Arc::default() });
        }
        Ok(all)
    }

    /// Runs until an order says [`Worker::stop`].
    ///
    /// # Errors
    /// If the inside interface has been deleted, or poll(2) fails, which it does not.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.stop {
            self.step()?;
        }
        Ok(())
    }

    /// Runs as [`Worker::run`] does. If that fails, sets `failed`, moves no more packets and goes on to obey commands until
    /// one says [`Worker::stop`]: what its SAs have sent and received can then be taken back as at a clean stop.
    ///
    /// # Errors
    /// See [`Worker::run`]; returned when the worker has been stopped.
    pub fn run_until_stopped(&mut self, failed: &AtomicBool) -> io::Result<()> {
        let ended = self.run();
        if ended.is_err() {
            failed.store(true, Ordering::Release);
            while !self.stop {
                let Ok(order) = self.orders.recv() else { break };
                order(self);
            }
        }
        ended
    }

    /// A round and the rest after it, if nothing moved.
    ///
    /// # Errors
    /// See [`Worker::run`].
    pub fn step(&mut self) -> io::Result<()> {
        let moved = self.round();
        let inside = self.station().inside.pass();
        if inside.is_gone() {
            return Err(io::Error::other(format!("the interface {} was deleted", inside.name)));
        }
        drop(inside);
        if moved || self.engine.at_work() > 0 {
            // Others have its packets, or a window waits to fill: not for long.
            self.wait.rest(moved);
            return Ok(());
        }
        self.sleep()
    }

    /// Ends [`Worker::run`] after this round.
    pub fn stop(&mut self) {
        self.stop = true;
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Its inside link, then the outside ones, without those that are another worker's.
    pub fn ports(&self) -> impl Iterator<Item = MutexGuard<'_, Port>> {
        self.station().ports().filter(|gate| gate.is_own).map(|gate| gate.pass())
    }

    /// Packets that wait for each of these links to have room, in the lanes of this worker and of those that use its port.
    pub fn waiting(&self) -> Vec<usize> {
        let own = self.station().ports().enumerate().filter(|(_, gate)| gate.is_own);
        own.map(|(link, gate)| {
            let users = self.shared.stations.iter().enumerate();
            let users = users.filter(|(_, one)| one.ports().nth(link).is_some_and(|other| other.is(gate)));
            let lanes = users.flat_map(|(user, _)| self.lanes_of(user));
            lanes.map(|lane| lane.packets.pass().queue(link).map_or(0, Queue::len)).sum()
        })
        .collect()
    }

    /// The lanes that are counted here.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.lanes_of(self.index)
    }

    /// Of n workers, each has every n-th.
    fn lanes_of(&self, worker: usize) -> impl Iterator<Item = &Lane> {
        self.shared.lanes.iter().skip(worker).step_by(self.shared.stations.len())
    }

    fn station(&self) -> &Station {
        &self.shared.stations[self.index]
    }

    /// What it has done.
    pub fn counts(&self) -> &WorkerCounts {
        &self.counts
    }

    /// Makes the file's SAs and policies those of `file`, for all workers: see [`Installed::change`]. Packets in
    /// flight of SAs that go are dropped: [`Worker::finish`] comes before, and before what they have received is taken
    /// back.
    ///
    /// # Errors
    /// At the first that the engine refuses.
    pub fn install(
        &mut self,
        file: &SasFile,
        changes: &Changes,
        ivs: Vec<IvRange>,
    ) -> Result<(), InstallError> {
        self.shared.removals.fetch_add(1, Ordering::AcqRel);
        for session in self.removed(changes) {
            let held = self.take_held(session);
            self.drop_held(held);
        }
        self.installed.change(&mut self.engine, file, changes, ivs)?;
        self.move_named(file, changes);
        self.find_peers(file, changes);
        Ok(())
    }

    /// Takes over what a new version of the file says of this worker's processors.
    pub fn set_biases(&mut self, changes: &Changes) {
        for &(place, alpha, beta) in &changes.biases {
            if let Some(place) = self.processors.iter().position(|&one| one == place) {
                // The reader let nothing pass that the scheduler refuses.
                let _ = self.engine.set_bias(place, alpha, beta);
            }
        }
    }

    /// Whether the SAs of `file` that are new may be installed, as far as this worker's processors have a say in it.
    ///
    /// # Errors
    /// What [`Worker::install`] would say; nothing is changed.
    pub fn check(&mut self, file: &SasFile, changes: &Changes) -> Result<(), EngineError> {
        let new = file.entries.iter().zip(&changes.kept).filter(|(_, kept)| kept.is_none());
        self.engine.check_keys(new.map(|(entry, _)| (entry.direction, &entry.keys)))
    }

    /// The SAs that [`Worker::install`] will remove.
    pub fn removed(&self, changes: &Changes) -> Vec<SessionId> {
        changes.removed.iter().filter_map(|&place| self.sessions().get(place).copied()).collect()
    }

    /// Takes all SAs and policies of the file out.
    pub fn uninstall(&mut self) {
        self.shared.removals.fetch_add(1, Ordering::AcqRel);
        for lane in &self.shared.clone().lanes {
            let held = lane.packets.pass().held.take_all();
            self.drop_held(held);
        }
        self.installed.clear(&mut self.engine);
    }

    /// Its place among the workers.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The places in the file of the engine's processors.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }

    /// Removes an SA; its packets in flight are dropped. So that a rekey loses none at another processor or in a window,
    /// [`Worker::finish`] comes before, and before what the SA has received is taken back: what was delivered after that
    /// could be replayed.
    pub fn remove_sa(&mut self, session: SessionId) -> bool {
        self.shared.removals.fetch_add(1, Ordering::AcqRel);
        let held = self.take_held(session);
        self.drop_held(held);
        self.engine.remove_sa(session).is_some()
    }

    /// Completes the packets in flight of these SAs, for which it waits a limited time; no others are received meanwhile.
    pub fn finish(&mut self, sas: &[SessionId]) {
        let end = self.engine.clock().now() + FINISH;
        while sas.iter().any(|&sa| self.engine.sad().in_flight(sa) > 0) && self.engine.clock().now() < end {
            self.engine.flush();
            self.poll();
        }
    }

    /// Takes the flows whose packets were dropped because their policy has no SA.
    pub fn take_wanted(&mut self) -> Vec<Flow> {
        self.intake.take_wanted()
    }

    /// The SAs of the file, in its order.
    pub fn sessions(&self) -> &[SessionId] {
        self.installed.sas()
    }

    /// Sends what happens to SAs from now on, in the place of keeping it for [`Worker::take_events`].
    pub fn send_events(&mut self, to: mpsc::Sender<Event>) {
        self.shared.events.pass().to = Some(to);
    }

    /// Takes what has happened to SAs.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.shared.events.pass().list)
    }

    /// Once around; whether anything moved.
    pub fn round(&mut self) -> bool {
        self.counts.rounds += 1;
        let mut moved = self.obey();
        if self.stop {
            // What came in now would not be noted.
            return true;
        }
        let shared = self.shared.clone();
        let mut crowded = false;
        for index in 0..=self.station().outside.len() {
            let (taken, more) = self.take_from(&shared, index);
            crowded |= more;
            moved |= taken > 0;
            moved |= self.poll();
        }
        let station = &shared.stations[self.index];
        let was_crowded = station.crowded.load(Ordering::Relaxed);
        if was_crowded != crowded {
            station.crowded.store(crowded, Ordering::Relaxed);
        }
        if shared.stations.len() > 1 && was_crowded | crowded {
            shared.call_for_help(self.index);
        }
        if !moved && self.may_help(&shared) {
            moved |= self.help(&shared);
        }
        if std::mem::take(&mut self.icmp_ready) || self.counts.rounds.is_multiple_of(ICMP_EVERY) {
            moved |= self.take_icmp();
        }
        if !moved && !self.window_waits && self.engine.in_flight() > 0 {
            self.engine.flush();
            moved |= self.poll();
        }
        self.look_after_sas();
        if self.engine.follows_load() {
            self.report_load();
        }
        moved
    }

    /// Tells the scheduler the load of this worker's CPU, if that is due.
    #[cold]
    fn report_load(&mut self) {
        let now = self.engine.clock().now();
        let (then, before) = self.load_seen;
        let passed = now.since(then);
        if before.is_some() && passed < LOAD_EVERY {
            return;
        }
        let busy = self.wait.busy();
        self.load_seen = (now, busy);
        if let (Some(before), Some(busy)) = (before, busy) {
            let busy = Duration(busy.0.saturating_sub(before.0));
            self.engine.report_load(busy.as_secs() / passed.as_secs());
        }
    }

    /// Does what others have asked for; whether there was anything.
    fn obey(&mut self) -> bool {
        let mut any = false;
        while let Ok(order) = self.orders.try_recv() {
            order(self);
            any = true;
        }
        any
    }

    /// Lets the engine do what it has got, and sends what comes out.
    pub(crate) fn poll(&mut self) -> bool {
        let mut moved = false;
        loop {
            if self.engine.puts_off() {
                // What is done does not wait for what takes long, nor does what comes meanwhile.
                moved |= self.give_out();
                if self.engine.takes_long(self.engine.at_work()) {
                    self.shared.call_for_help(self.index);
                }
            }
            if !self.engine.poll() {
                return moved | self.give_out();
            }
            moved = true;
        }
    }

    /// Takes packets from a link of its own, the inside one first: how many, and whether there are more.
    fn take_from(&mut self, shared: &Shared, link: usize) -> (usize, bool) {
        let station = &shared.stations[self.index];
        let own = self.index;
        let call = || shared.call_for_help(own);
        match link.checked_sub(1) {
            _ if !station.ports().nth(link).is_some_and(|gate| gate.is_own) => (0, false),
            None if shared.sealed_wait() => (0, false),
            None => {
                let Worker { engine, intake, mss_clamp, .. } = self;
                intake.take(&station.inside, engine, Direction::Seal, *mss_clamp, call)
            }
            Some(place) => {
                let port = &station.outside[place].port;
                self.intake.take(port, &mut self.engine, Direction::Open, None, call)
            }
        }
    }

    /// Whether a worker has more than it takes at a time, or is at a burst that takes long.
    pub(crate) fn may_help(&self, shared: &Shared) -> bool {
        shared.stations.iter().enumerate().any(|(place, station)| self.wants_help(place, station))
    }

    fn wants_help(&self, place: usize, station: &Station) -> bool {
        station.crowded.load(Ordering::Relaxed) || self.engine.is_busy(place)
    }

    /// Takes a burst from each link of the workers that have too much to do; whether there was anything.
    fn help(&mut self, shared: &Shared) -> bool {
        let (mut all, own) = (0, self.index);
        let call = || shared.call_for_help(own);
        for (place, station) in shared.stations.iter().enumerate() {
            if !self.wants_help(place, station) {
                continue;
            }
            let mut more = false;
            if !shared.sealed_wait() {
                let Worker { engine, intake, mss_clamp, .. } = self;
                let (taken, left) = intake.help(&station.inside, engine, Direction::Seal, *mss_clamp, call);
                (all, more) = (all + taken, left);
            }
            for one in &station.outside {
                if self.engine.puts_off() {
                    self.poll();
                }
                let (taken, left) =
                    self.intake.help(&one.port, &mut self.engine, Direction::Open, None, call);
                (all, more) = (all + taken, more | left);
            }
            if !more && station.crowded.load(Ordering::Relaxed) {
                station.crowded.store(false, Ordering::Relaxed);
            }
        }
        self.counts.helped += all as u64;
        (all > 0) | self.poll()
    }

    /// Learns from ICMP how large packets may be on the way to a peer. Returns whether there may be more messages. Those
    /// that come in the next milliseconds are taken together: anybody can send them, and one is not worth a wake-up.
    fn take_icmp(&mut self) -> bool {
        let (engine, counts) = (&mut self.engine, &mut self.counts);
        let mut message = Vec::new();
        let mut taken = 0;
        for link in &mut self.icmp {
            let received = link.receive(TURN, &mut |head, body| {
                message.clear();
                message.extend_from_slice(head);
                message.extend_from_slice(body);
                if engine.learn_path_mtu(&message).is_some() {
                    counts.paths_learnt += 1;
                }
            });
            taken += received.unwrap_or(0);
        }
        if taken > 0 {
            self.icmp_rests = self.engine.clock().now() + ICMP_RESTS;
        }
        taken >= TURN
    }

    fn look_after_sas(&mut self) {
        for event in self.engine.events() {
            match event.kind {
                EventKind::Moved(to) => self.follow(event.session, to),
                EventKind::WindowWanted { top, packets } => self.want_note(event.session, top, packets),
                _ => {
                    let mut events = self.shared.events.pass();
                    match &events.to {
                        Some(to) => drop(to.send(event)),
                        None if events.list.len() < EVENTS_MAX => events.list.push(event),
                        None => {}
                    }
                }
            }
        }
        let now = self.engine.clock().now();
        if self.mss_by_path && now.since(self.paths_seen) > NAP {
            self.paths_seen = now;
            let sad = self.engine.sad();
            let paths = sad.iter().filter_map(|(session, ..)| sad.effective_mtu(session, ipv4::MIN_HEADER));
            let narrowest = paths.min();
            drop(sad);
            self.mss_clamp = self.mss_most.map(|most| narrowest.unwrap_or(most).min(most));
        }
        if self.keepalives.next() > now {
            return;
        }
        let due = self.keepalives.due(now, &self.engine.sad());
        let shared = self.shared.clone();
        for packet in due {
            let Some(link) = shared.stations[self.index].link_for(&packet) else { continue };
            self.counts.keepalives += u64::from(self.put_new(&shared, Some(link), &packet));
        }
    }
}
