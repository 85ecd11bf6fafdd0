//! One core's loop: packets in from the links, through the engine, out on the links.
//!
//! ```text
//! inside link ----> admit (seal) --\             /--> outside links
//! other workers -> admit ---------- engine: turns
//! outside links -> admit (open) -/ \           \--> inside link
//!                                     \--> other workers: packets of their SAs
//! ```
//!
//! Everything is done on the calling thread, which sleeps in poll(2) when there is no work. Packets for which a link
//! has no room wait in a queue of limited length. While sealed packets wait, nothing more is taken from the inside
//! link, whose own full queue then slows the senders down. Other threads send a worker commands through its
//! [`Handle`].
//!
//! Where several cores move packets, each has a worker, with its own queues of the links and its own engine. Workers
//! share nothing; a packet whose SA another worker owns goes there by its [`Handoff`].

mod idle;
mod output;
mod peers;
mod received;
mod setup;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{Answer, Engine, EngineError, Output, RemotePacket};
use forebay_ipsec::{DropReason, Event, EventKind, IvRange};
use forebay_links::Link;
use forebay_time::{Duration, Time};
use forebay_wire::ipv4;
use forebay_xfrm::Flow;

pub use self::setup::{Outside, Setup, WorkerCounts};
use super::audit::{Audit, Limiter};
use super::handoff::{Bell, Handoff, HandoffPacket};
use super::held::Held;
use super::installed::{InstallError, Installed};
use super::intake::{self, Intake, TAKE};
use super::keepalive::Keepalives;
use super::owners::{Paths, WorkerIndex};
use super::port::Port;
use super::wait::Wait;
use super::word::Word;
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

/// Events of SAs that wait to be taken; what comes beyond is of no interest to anyone any more.
const EVENTS_MAX: usize = 65_536;

/// Something that a worker does for another thread.
type Order = Box<dyn FnOnce(&mut Worker) + Send>;

/// The loop's state. See the module.
pub struct Worker {
    engine: Engine,
    inside: Port,
    outside: Vec<Outside>,
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
    index: WorkerIndex,
    handoff: Handoff,
    paths: Arc<Paths>,
    processors: Vec<usize>,
    /// The other workers.
    others: Vec<Handle>,
    counts: WorkerCounts,
    /// SA events, for the code that manages keys.
    events: Vec<Event>,
    /// The receiver of these events, if there is one.
    events_to: Option<mpsc::Sender<Event>>,
    /// The thread that records what inbound SAs receive.
    windows_to: Option<mpsc::Sender<Word>>,
    /// How many times SAs were removed.
    removals: u64,
    held: Held,
    installed: Installed,
    /// Emptied in every round.
    outputs: Vec<Output>,
    answers: Vec<Answer>,
    remote_packets: Vec<RemotePacket>,
    wait: Box<dyn Wait>,
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
    /// A worker that has not begun, and the way to reach it.
    pub fn new(setup: Setup) -> (Worker, Handle) {
        let (sender, orders) = mpsc::channel();
        let bell = setup.handoff.bell().clone();
        let mut engine = setup.engine;
        engine.set_cpu(setup.index.get() as u32);
        let worker = Worker {
            keepalives: Keepalives::new(setup.keepalive),
            moves_said: Limiter::new(MOVES_SAID.0, MOVES_SAID.1),
            engine,
            inside: setup.inside,
            outside: setup.outside,
            icmp: setup.icmp,
            icmp_ready: true,
            icmp_rests: Time::ZERO,
            mss_most: setup.mss_clamp,
            mss_clamp: setup.mss_clamp,
            mss_by_path: setup.mss_by_path,
            paths_seen: Time::ZERO,
            window_waits: setup.window_waits,
            intake: Intake::new(Audit::new(setup.audit.0, setup.audit.1)),
            orders,
            index: setup.index,
            handoff: setup.handoff,
            paths: setup.paths,
            processors: setup.processors,
            others: vec![],
            counts: WorkerCounts::default(),
            events: Vec::new(),
            events_to: None,
            windows_to: None,
            removals: 0,
            held: Held::default(),
            installed: Installed::default(),
            outputs: Vec::new(),
            answers: Vec::new(),
            remote_packets: Vec::new(),
            wait: setup.wait,
            stop: false,
            faults: 0,
        };
        (worker, Handle { orders: sender, bell, steps: Arc::default() })
    }

    /// Tells it of the other workers.
    pub fn meet(&mut self, others: Vec<Handle>) {
        self.others = others;
    }

    /// Runs until an order says [`Worker::stop`].
    ///
    /// # Errors
    /// If the inside interface has been deleted, or poll(2) fails, which it does not.
    pub fn run(&mut self) -> std::io::Result<()> {
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
    pub fn run_until_stopped(&mut self, failed: &AtomicBool) -> std::io::Result<()> {
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
    pub fn step(&mut self) -> std::io::Result<()> {
        let moved = self.round();
        if self.inside.is_gone() {
            let why = format!("the interface {} was deleted", self.inside.name);
            return Err(std::io::Error::other(why));
        }
        if moved || self.engine.in_flight() > 0 {
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

    /// The inside link, then the outside ones.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        std::iter::once(&self.inside).chain(self.outside.iter().map(|one| &one.port))
    }

    /// What it has done.
    pub fn counts(&self) -> &WorkerCounts {
        &self.counts
    }

    /// Makes the file's SAs and policies those of `file`, which are owned by `owners`: see [`Installed::change`]. Packets in
    /// flight of SAs that go are dropped: [`Worker::finish`] comes before, and before what they have received is taken
    /// back.
    ///
    /// # Errors
    /// At the first that the engine refuses.
    pub fn install(
        &mut self,
        file: &SasFile,
        owners: &[WorkerIndex],
        changes: &Changes,
        ivs: Vec<IvRange>,
    ) -> Result<(), InstallError> {
        for &(place, alpha, beta) in &changes.biases {
            if let Some(place) = self.processors.iter().position(|&one| one == place) {
                // The reader let nothing pass that the scheduler refuses.
                let _ = self.engine.set_bias(place, alpha, beta);
            }
        }
        self.removals += 1;
        for session in self.removed(changes) {
            let held = self.take_held(session);
            self.drop_held(held);
        }
        self.installed.change(&mut self.engine, self.index, file, owners, changes, ivs)?;
        self.find_peers(file, changes);
        Ok(())
    }

    /// Whether the SAs of `file` that are new here may be installed, as far as processors have a say in it.
    ///
    /// # Errors
    /// What [`Worker::install`] would say; nothing is changed.
    pub fn check(
        &mut self,
        file: &SasFile,
        owners: &[WorkerIndex],
        changes: &Changes,
    ) -> Result<(), EngineError> {
        let new = file.entries.iter().zip(owners).zip(&changes.kept);
        let new = new.filter(|((_, owner), kept)| **owner == self.index && kept.is_none());
        self.engine.check_keys(new.map(|((entry, _), _)| (entry.direction, &entry.keys)))
    }

    /// The SAs that [`Worker::install`] will remove.
    pub fn removed(&self, changes: &Changes) -> Vec<SessionId> {
        changes.removed.iter().filter_map(|&place| self.sessions().get(place).copied()).collect()
    }

    /// Takes all SAs and policies of the file out.
    pub fn uninstall(&mut self) {
        self.removals += 1;
        let held = self.held.take_all();
        self.drop_held(held);
        self.installed.clear(&mut self.engine);
    }

    /// Its place among the workers.
    pub fn index(&self) -> WorkerIndex {
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
        self.removals += 1;
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
        self.events_to = Some(to);
    }

    /// Takes what has happened to SAs.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Once around; whether anything moved.
    pub fn round(&mut self) -> bool {
        self.counts.rounds += 1;
        let mut moved = self.obey();
        if self.stop {
            // What came in now would not be noted.
            return true;
        }
        if self.take_handed() {
            moved = true;
            self.poll();
        }
        if !self.sealed_wait() && self.handoff.has_room(TAKE) {
            moved |= self.take_inside();
            moved |= self.poll();
        }
        for index in 0..self.outside.len() {
            moved |= self.take_outside(index);
            moved |= self.poll();
        }
        if std::mem::take(&mut self.icmp_ready) || self.counts.rounds.is_multiple_of(ICMP_EVERY) {
            moved |= self.take_icmp();
        }
        if !moved && !self.window_waits && self.engine.in_flight() > 0 {
            self.engine.flush();
            moved |= self.poll();
        }
        self.look_after_sas();
        moved
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
    fn poll(&mut self) -> bool {
        let mut moved = false;
        while self.engine.poll() {
            moved = true;
        }
        self.hand_over();
        moved | self.give_out()
    }

    /// Whether sealed packets wait for a link, and programs with them.
    fn sealed_wait(&self) -> bool {
        self.outside.iter().any(|one| one.port.waiting() > 0)
    }

    fn take_inside(&mut self) -> bool {
        self.intake.take(&mut self.inside, &mut self.engine, Direction::Seal, self.mss_clamp) > 0
    }

    fn take_outside(&mut self, index: usize) -> bool {
        self.intake.take(&mut self.outside[index].port, &mut self.engine, Direction::Open, None) > 0
    }

    /// Takes what other workers gave, as links do.
    fn take_handed(&mut self) -> bool {
        let room = TAKE.min(intake::room(&self.engine));
        if room == 0 {
            return false;
        }
        let (engine, intake) = (&mut self.engine, &mut self.intake);
        self.handoff.buffers(|buffer| engine.recycle(buffer));
        let taken = self.handoff.take(room, |HandoffPacket { direction, packet }| {
            let empty = engine.buffer();
            intake.give(engine, direction, packet);
            empty
        });
        intake.admit_given(engine);
        self.counts.taken_over += taken as u64;
        taken > 0
    }

    /// Gives packets of other workers' SAs to them.
    fn hand_over(&mut self) {
        let mut remote_packets = std::mem::take(&mut self.remote_packets);
        remote_packets.extend(self.engine.remote_packets());
        if remote_packets.is_empty() {
            self.remote_packets = remote_packets;
            return;
        }
        for RemotePacket { core, direction, packet, .. } in remote_packets.drain(..) {
            match self.handoff.give(core.into(), HandoffPacket { direction, packet }) {
                Ok(()) => self.counts.handed_over += 1,
                Err(HandoffPacket { packet, .. }) => {
                    let reason = DropReason::HandOffFull;
                    self.engine.count_drop(reason);
                    self.intake.dropped(&mut self.engine, direction, reason, packet);
                }
            }
        }
        self.remote_packets = remote_packets;
        self.handoff.ring();
    }

    /// Learns from ICMP how large packets may be on the way to a peer. Returns whether there may be more messages. Those
    /// that come in the next milliseconds are taken together: anybody can send them, and one is not worth a wake-up.
    fn take_icmp(&mut self) -> bool {
        let (engine, counts) = (&mut self.engine, &mut self.counts);
        let mut message = Vec::new();
        let mut taken = 0;
        for link in &mut self.icmp {
            let received = link.receive(TAKE, &mut |head, body| {
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
        taken >= TAKE
    }

    fn look_after_sas(&mut self) {
        loop {
            let Some(event) = self.engine.events().next() else { break };
            match event.kind {
                EventKind::Moved(to) => self.follow(event.session, to),
                EventKind::WindowWanted { top, packets } => self.want_note(event.session, top, packets),
                _ => match &self.events_to {
                    Some(to) => drop(to.send(event)),
                    None if self.events.len() < EVENTS_MAX => self.events.push(event),
                    None => {}
                },
            }
        }
        let now = self.engine.clock().now();
        if self.mss_by_path && now.since(self.paths_seen) > NAP {
            self.paths_seen = now;
            let sad = self.engine.sad();
            let paths = sad.iter().filter_map(|(session, ..)| sad.effective_mtu(session, ipv4::MIN_HEADER));
            self.paths.set(self.index, paths.min());
            self.mss_clamp = self.mss_most.map(|most| self.paths.narrowest().unwrap_or(most).min(most));
        }
        for packet in self.keepalives.due(now, self.engine.sad()) {
            let Some(one) = self.outside.iter_mut().find(|one| one.takes(&packet)) else { continue };
            self.counts.keepalives += u64::from(Self::put_new(&mut self.engine, &mut one.port, &packet));
        }
    }
}
