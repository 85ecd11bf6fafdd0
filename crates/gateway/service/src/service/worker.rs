//! One core's loop: packets in from the links, through the engine, out on the links.
//!
//! ```text
//! plain link ----> admit (seal) --\             /--> protected links
//! other workers -> admit ---------- engine: turns
//! protected links -> admit (open) -/ \           \--> plain link
//!                                     \--> other workers: packets of their SAs
//! ```
//!
//! Everything is done on the calling thread, which sleeps in poll(2) when nothing is at hand. Packets that
//! a link has no room for wait in a queue of limited length; while what was sealed waits, nothing more is taken
//! from the plain link, whose own queue then tells programs to go slower. Whoever wants something else of a
//! worker gives it an order by its [`Handle`].
//!
//! Where several cores move packets each has a worker, with queues of the links and an engine of its own. They share
//! nothing; a packet whose SA another has goes there by its [`HandOff`].

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use forebay_crypto::{Direction, SessionId};
use forebay_engine::{Answer, Engine, EngineError, HandOver, Output};
use forebay_ipsec::{DropReason, Encapsulation, Event, EventKind, IvRange, SaConfig};
use forebay_links::Link;
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};
use forebay_wire::{Ip, ipv4, protocol};
use forebay_xfrm::Flow;
use rustix::event::PollFlags;

use super::audit::{Audit, Limiter};
use super::hand_off::{Bell, HandOff, Handed};
use super::held::Held;
use super::homes::{Paths, Share};
use super::installed::{InstallError, Installed};
use super::intake::{self, FROM_PLAIN, Intake, TAKE};
use super::keepalive::Keepalives;
use super::port::{Outgoing, Port};
use super::wait::Wait;
use super::windows::word::Word;
use forebay_config::Changes;
use forebay_config::sas::{SaEntry, SasFile};

/// Rounds between two looks at ICMP while there is too much to do to ask poll(2): a system call each.
const ICMP_EVERY: u64 = 64;
/// Longest that an SA which goes holds others up.
const FINISH: Duration = Duration::from_millis(5);
/// Longest sleep: time is told to SAs at least so often.
const NAP: Duration = Duration::from_millis(500);
/// Longest sleep while a link holds packets that it took and the kernel did not.
const UNSENT_NAP: Duration = Duration::from_millis(1);
/// Sleeps in a row that errors of links ended, behind which a sleep asks no link and is as long at most.
const FAULTS: u32 = 8;
const FAULT_NAP: Duration = Duration::from_millis(2);

/// Lines of the log about peers that moved: a second, and at once.
const MOVES_SAID: (u32, u32) = (10, 100);

/// Events of SAs that wait to be taken; what comes beyond is of no interest to anyone any more.
const EVENTS_MAX: usize = 65_536;

/// Something that a worker does for another thread.
type Order = Box<dyn FnOnce(&mut Worker) + Send>;

/// A protected link, and what it carries.
pub struct Protected {
    /// The link.
    pub port: Port,
    /// The IP protocols that it takes: UDP for ESP in UDP, ESP, AH.
    pub protocols: Vec<u8>,
    /// The local address it is for; an unspecified one for all of its IP version, `None` for all.
    pub local: Option<IpAddr>,
}

impl Protected {
    /// Whether a packet goes out here. Of the engine's packets over IPv4 only the fields that say so are read.
    fn takes(&self, packet: &[u8]) -> bool {
        let (source, upper) = match packet.first_chunk::<{ ipv4::MIN_HEADER }>() {
            Some(ip) if ip[0] >> 4 == 4 => (IpAddr::from([ip[12], ip[13], ip[14], ip[15]]), ip[9]),
            _ => match Ip::parse(packet) {
                Ok(Ip::V6(ip)) => {
                    (ip.source().into(), ip.upper_layer().map_or(protocol::NONE, |upper| upper.protocol))
                }
                _ => return false,
            },
        };
        let is_from = |local: IpAddr| {
            local == source || (local.is_unspecified() && local.is_ipv4() == source.is_ipv4())
        };
        self.local.is_none_or(is_from) && self.protocols.contains(&upper)
    }
}

/// How a worker is set up.
pub struct Setup {
    /// The engine, with whatever SAs there are already.
    pub engine: Engine,
    /// The side of programs.
    pub plain: Port,
    /// The side of peers, at least one.
    pub protected: Vec<Protected>,
    /// ICMP messages for this host, about paths.
    pub icmp: Vec<Box<dyn Link + Send>>,
    /// To lower the segment size that TCP announces so that segments fit in this many bytes of plain packet.
    pub mss_clamp: Option<u16>,
    /// And so that they fit the narrowest path of all SAs.
    pub mss_by_path: bool,
    /// Silence after which a peer behind NAT gets a keepalive (RFC 3948 4); `None` for never.
    pub keepalive: Option<Duration>,
    /// Audit records a second, and at once.
    pub audit: (u32, u32),
    /// Whether to wait for the scheduler's window to fill by its timeout alone.
    pub window_waits: bool,
    /// Its place among the workers.
    pub share: Share,
    /// The ways to the other workers.
    pub hand_off: HandOff,
    /// The narrowest paths of all workers' SAs.
    pub paths: Arc<Paths>,
    /// The places in the file of the engine's processors.
    pub processors: Vec<usize>,
    /// What it waits by while it has nothing to do.
    pub wait: Box<dyn Wait>,
}

/// What a worker has done beyond what engine and links count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Rounds of the loop.
    pub rounds: u64,
    /// Times it slept.
    pub naps: u64,
    /// ICMP messages that told of a smaller path.
    pub paths_learnt: u64,
    /// ICMP answers to programs whose packets are too big.
    pub answers: u64,
    /// Keepalives sent.
    pub keepalives: u64,
    /// Peers that moved.
    pub moved_peers: u64,
    /// Sealed packets that no protected link is for.
    pub no_link: u64,
    /// Packets given to other workers, whose SAs they are of.
    pub handed_over: u64,
    /// Packets that other workers gave.
    pub taken_over: u64,
    /// Received packets that waited until their numbers were noted.
    pub held: u64,
}

/// The loop's state. See the module.
pub struct Worker {
    engine: Engine,
    plain: Port,
    protected: Vec<Protected>,
    icmp: Vec<Box<dyn Link + Send>>,
    /// poll(2) says that there is something of it.
    icmp_ready: bool,
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
    share: Share,
    hand_off: HandOff,
    paths: Arc<Paths>,
    processors: Vec<usize>,
    /// The other workers.
    others: Vec<Handle>,
    counts: WorkerCounts,
    /// What has happened to SAs, for whoever looks after keys.
    events: Vec<Event>,
    /// Or who gets it.
    events_to: Option<mpsc::Sender<Event>>,
    /// Who notes what inbound SAs receive.
    windows_to: Option<mpsc::Sender<Word>>,
    held: Held,
    installed: Installed,
    /// Emptied in every round.
    outputs: Vec<Output>,
    answers: Vec<Answer>,
    hand_overs: Vec<HandOver>,
    wait: Box<dyn Wait>,
    stop: bool,
    /// Sleeps in a row that an error of a link ended, which poll(2) would tell again at once.
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

    /// The same without waiting; what comes of it is told, or nothing if the worker has ended.
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
        let bell = setup.hand_off.bell().clone();
        let worker = Worker {
            keepalives: Keepalives::new(setup.keepalive),
            moves_said: Limiter::new(MOVES_SAID.0, MOVES_SAID.1),
            engine: setup.engine,
            plain: setup.plain,
            protected: setup.protected,
            icmp: setup.icmp,
            icmp_ready: true,
            mss_most: setup.mss_clamp,
            mss_clamp: setup.mss_clamp,
            mss_by_path: setup.mss_by_path,
            paths_seen: Time::ZERO,
            window_waits: setup.window_waits,
            intake: Intake::new(Audit::new(setup.audit.0, setup.audit.1)),
            orders,
            share: setup.share,
            hand_off: setup.hand_off,
            paths: setup.paths,
            processors: setup.processors,
            others: vec![],
            counts: WorkerCounts::default(),
            events: Vec::new(),
            events_to: None,
            windows_to: None,
            held: Held::default(),
            installed: Installed::default(),
            outputs: Vec::new(),
            answers: Vec::new(),
            hand_overs: Vec::new(),
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
    /// If the plain interface has been deleted, or poll(2) fails, which it does not.
    pub fn run(&mut self) -> std::io::Result<()> {
        while !self.stop {
            self.step()?;
        }
        Ok(())
    }

    /// A round and the rest after it, if nothing moved.
    ///
    /// # Errors
    /// See [`Worker::run`].
    pub fn step(&mut self) -> std::io::Result<()> {
        let moved = self.round();
        if self.plain.is_gone() {
            let why = format!("the interface {} is gone: somebody has deleted it", self.plain.name);
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

    /// The plain link, then the protected ones.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        std::iter::once(&self.plain).chain(self.protected.iter().map(|one| &one.port))
    }

    /// What it has done.
    pub fn counts(&self) -> &WorkerCounts {
        &self.counts
    }

    /// Makes the file's SAs and policies those of `file`, which are at `homes`: see [`Installed::change`].
    ///
    /// # Errors
    /// At the first that the engine refuses.
    pub fn install(
        &mut self,
        file: &SasFile,
        homes: &[usize],
        changes: &Changes,
        ivs: Vec<IvRange>,
    ) -> Result<(), InstallError> {
        for &(place, alpha, beta) in &changes.biases {
            if let Some(place) = self.processors.iter().position(|&one| one == place) {
                // The reader let nothing pass that the scheduler refuses.
                let _ = self.engine.set_bias(place, alpha, beta);
            }
        }
        let removed = self.removed(changes);
        self.finish(&removed);
        for session in removed {
            let held = self.take_held(session);
            self.drop_held(held);
        }
        self.installed.change(&mut self.engine, self.share, file, homes, changes, ivs)?;
        self.find_peers(file, changes);
        Ok(())
    }

    /// Lets new SAs know where their peers have moved: the file says where these were at first, and an inbound SA that has
    /// noticed it does not notice it again. All SAs of a peer have one place, so that they follow it together.
    fn find_peers(&mut self, file: &SasFile, changes: &Changes) {
        if planted(Fault::PeersNotFound) {
            return;
        }
        let sessions = self.sessions().to_vec();
        let place = |sa: &SaConfig| (sa.local, SocketAddr::new(sa.remote, sa.udp.remote));
        let sas = || {
            let sas = file.entries.iter().zip(&changes.kept).zip(sessions.iter().copied());
            sas.filter(|((entry, _), _)| entry.config.encapsulation == Encapsulation::Udp)
        };
        let sad = self.engine.sad();
        let moved = |((entry, kept), session): ((&SaEntry, &Option<usize>), SessionId)| {
            let (first, now) = (place(&entry.config), place(sad.config(session)?));
            (kept.is_some() && first != now).then_some((first, now.1))
        };
        let moved: HashMap<(IpAddr, SocketAddr), SocketAddr> = sas().filter_map(moved).collect();
        if moved.is_empty() {
            return;
        }
        for ((entry, kept), session) in sas() {
            if let (None, Some(&to)) = (kept, moved.get(&place(&entry.config)))
                && let Err(error) = self.engine.move_peer(session, to)
            {
                tracing::warn!(sa = entry.config.name, %to, %error, "the new SA cannot follow its peer");
            }
        }
    }

    /// Whether the SAs of `file` that are new here may be installed, as far as processors have a say in it.
    ///
    /// # Errors
    /// What [`Worker::install`] would say; nothing is changed.
    pub fn check(&mut self, file: &SasFile, homes: &[usize], changes: &Changes) -> Result<(), EngineError> {
        let place = self.share.place();
        let new = file.entries.iter().zip(homes).zip(&changes.kept);
        let new = new.filter(|((_, home), kept)| **home == place && kept.is_none());
        self.engine.check_keys(new.map(|((entry, _), _)| (entry.direction, &entry.keys)))
    }

    /// The SAs that [`Worker::install`] will remove.
    pub fn removed(&self, changes: &Changes) -> Vec<SessionId> {
        changes.removed.iter().filter_map(|&place| self.sessions().get(place).copied()).collect()
    }

    /// Takes all SAs and policies of the file out.
    pub fn uninstall(&mut self) {
        let held = self.held.take_all();
        self.drop_held(held);
        self.installed.clear(&mut self.engine);
    }

    /// Its place among the workers.
    pub fn share(&self) -> Share {
        self.share
    }

    /// The places in the file of the engine's processors.
    pub fn processors(&self) -> &[usize] {
        &self.processors
    }

    /// Removes an SA. Its packets under way come to their end before, if that does not take long: with a job at another
    /// processor, or in a window, they would be lost at every rekey.
    pub fn remove_sa(&mut self, session: SessionId) -> bool {
        self.finish(&[session]);
        let held = self.take_held(session);
        self.drop_held(held);
        self.engine.remove_sa(session).is_some()
    }

    /// Sends word of replay windows from now on, and lets received packets wait until their numbers are noted.
    pub fn send_windows(&mut self, to: mpsc::Sender<Word>) {
        self.windows_to = Some(to);
    }

    /// Lets an inbound SA deliver what it receives with numbers up to `limit`, which are noted.
    pub fn note_window(&mut self, session: SessionId, limit: u64) {
        self.engine.note_window(session, limit);
        self.held.look_again();
        // More may have come since the limit was asked for.
        let sad = self.engine.sad();
        if let Some(top) = sad.sequence(session).filter(|top| *top > limit) {
            let packets = sad.admitted(session);
            self.want_note(session, top, packets);
        }
    }

    fn want_note(&self, session: SessionId, top: u64, packets: u64) {
        if let Some(to) = &self.windows_to {
            let worker = self.share.place();
            let _ = to.send(Word::Wanted { worker, session, top, packets });
        }
    }

    /// Takes the packets of an SA that wait until their numbers are noted.
    pub fn take_held(&mut self, session: SessionId) -> Vec<Output> {
        self.held.take(session)
    }

    /// Takes them up as packets of `session`, which has received them.
    pub fn put_held(&mut self, session: SessionId, outputs: Vec<Output>) {
        let until = self.engine.sad().sequence(session).unwrap_or(0);
        for output in outputs {
            self.hold(session, until, Output { session: Some(session), ..output });
        }
        self.held.look_again();
    }

    /// Drops packets of SAs that are gone.
    pub fn drop_held(&mut self, outputs: Vec<Output>) {
        for Output { packet, .. } in outputs {
            let reason = DropReason::InStateInvalid;
            self.engine.count_drop(reason);
            self.intake.dropped(&mut self.engine, Direction::Open, reason, packet);
        }
    }

    /// Lets the packets under way of these SAs come to their end, for a little while at most; no others come in.
    pub fn finish(&mut self, sas: &[SessionId]) {
        let end = self.engine.clock().now() + FINISH;
        while sas.iter().any(|&sa| self.engine.sad().in_flight(sa) > 0) && self.engine.clock().now() < end {
            self.engine.flush();
            self.turn();
        }
    }

    /// Opened packets that wait until their numbers are noted.
    pub fn held(&self) -> usize {
        self.held.len()
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
            self.turn();
        }
        if !self.sealed_wait() && self.hand_off.has_room(TAKE) {
            moved |= self.take_plain();
            moved |= self.turn();
        }
        for index in 0..self.protected.len() {
            moved |= self.take_protected(index);
            moved |= self.turn();
        }
        if std::mem::take(&mut self.icmp_ready) || self.counts.rounds.is_multiple_of(ICMP_EVERY) {
            moved |= self.take_icmp();
        }
        if !moved && !self.window_waits && self.engine.in_flight() > 0 {
            self.engine.flush();
            moved |= self.turn();
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
    fn turn(&mut self) -> bool {
        let mut moved = false;
        while self.engine.turn() {
            moved = true;
        }
        self.hand_over();
        moved | self.give_out()
    }

    /// Whether sealed packets wait for a link, and programs with them.
    fn sealed_wait(&self) -> bool {
        self.protected.iter().any(|one| one.port.waiting() > 0)
    }

    fn take_plain(&mut self) -> bool {
        self.intake.take(&mut self.plain, &mut self.engine, Direction::Seal, self.mss_clamp) > 0
    }

    fn take_protected(&mut self, index: usize) -> bool {
        self.intake.take(&mut self.protected[index].port, &mut self.engine, Direction::Open, None) > 0
    }

    /// Takes what other workers gave, as links do.
    fn take_handed(&mut self) -> bool {
        let room = TAKE.min(intake::room(&self.engine));
        if room == 0 {
            return false;
        }
        let (engine, intake) = (&mut self.engine, &mut self.intake);
        self.hand_off.buffers(|buffer| engine.recycle(buffer));
        let taken = self.hand_off.take(room, |Handed { direction, packet }| {
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
        let mut hand_overs = std::mem::take(&mut self.hand_overs);
        hand_overs.extend(self.engine.hand_overs());
        if hand_overs.is_empty() {
            self.hand_overs = hand_overs;
            return;
        }
        for HandOver { core, direction, packet, .. } in hand_overs.drain(..) {
            match self.hand_off.give(core.into(), Handed { direction, packet }) {
                Ok(()) => self.counts.handed_over += 1,
                Err(Handed { packet, .. }) => {
                    let reason = DropReason::HandOffFull;
                    self.engine.count_drop(reason);
                    self.intake.dropped(&mut self.engine, direction, reason, packet);
                }
            }
        }
        self.hand_overs = hand_overs;
        self.hand_off.ring();
    }

    /// Learns from ICMP how large packets may be on the way to a peer.
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
        taken > 0
    }

    /// Puts what is through onto its link, and sends.
    fn give_out(&mut self) -> bool {
        let mut outputs = std::mem::take(&mut self.outputs);
        if !planted(Fault::HeldNotReleased) {
            self.held.release(self.engine.sad(), &mut outputs);
        }
        let noted = outputs.len();
        outputs.extend(self.engine.outputs());
        // Packets come in runs of an SA, which receives nothing meanwhile.
        let mut passes = None;
        for (place, output) in outputs.drain(..).enumerate() {
            let origin = if output.tag == FROM_PLAIN { Direction::Seal } else { Direction::Open };
            let direction =
                output.session.and_then(|session| self.engine.sad().direction(session)).unwrap_or(origin);
            let is_received = place >= noted && direction == Direction::Open && output.result.is_ok();
            let output = match is_received && output.session != passes {
                false => output,
                true => {
                    let Some(output) = self.hold_unless_noted(output) else { continue };
                    passes = output.session;
                    output
                }
            };
            let Output { mut packet, session, result, .. } = output;
            if let Err(reason) = result {
                self.intake.dropped(&mut self.engine, direction, reason, packet);
                continue;
            }
            let port = match direction {
                Direction::Open => {
                    if let Some(mtu) = self.mss_clamp {
                        intake::clamp_mss(&mut packet, mtu);
                    }
                    Some(&mut self.plain)
                }
                Direction::Seal => {
                    let fitting = self.protected.iter_mut().find(|one| one.takes(packet.bytes()));
                    fitting.map(|one| &mut one.port)
                }
            };
            let refused = match port {
                Some(port) => port.put(Outgoing { packet, session }).err(),
                None => {
                    self.counts.no_link += 1;
                    Some(packet)
                }
            };
            if let Some(packet) = refused {
                self.engine.recycle(packet);
            }
        }
        self.outputs = outputs;
        self.answer();
        self.send()
    }

    /// Gives a received packet back, or keeps it if its number may not be noted yet.
    fn hold_unless_noted(&mut self, output: Output) -> Option<Output> {
        let session = output.session.filter(|_| self.windows_to.is_some());
        let Some(session) = session else { return Some(output) };
        match self.engine.sad().noted(session) {
            Some((top, limit)) if top > limit && !planted(Fault::DeliveredBeforeNoted) => {
                self.hold(session, top, output)
            }
            _ => return Some(output),
        }
        None
    }

    /// Keeps a packet until all is noted that its SA has received by now.
    #[cold]
    fn hold(&mut self, session: SessionId, until: u64, output: Output) {
        let Err(output) = self.held.put(session, until, output) else {
            self.counts.held += 1;
            return;
        };
        let reason = DropReason::InStateNotNoted;
        self.engine.count_drop(reason);
        self.intake.dropped(&mut self.engine, Direction::Open, reason, output.packet);
    }

    /// Tells programs that their packets are too big.
    fn answer(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.engine.answers());
        for answer in answers.drain(..) {
            self.counts.answers += u64::from(put_new(&mut self.engine, &mut self.plain, &answer.message));
        }
        self.answers = answers;
    }

    fn send(&mut self) -> bool {
        let engine = &mut self.engine;
        let mut moved = false;
        let ports =
            std::iter::once(&mut self.plain).chain(self.protected.iter_mut().map(|one| &mut one.port));
        for port in ports {
            moved |= port.send(&mut |outgoing: Outgoing, over| {
                if let (Some(session), Some(mtu)) = (outgoing.session, over) {
                    engine.lower_path_mtu(session, mtu.min(u32::from(u16::MAX)) as u16);
                }
                engine.recycle(outgoing.packet);
            });
        }
        moved
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
            self.paths.set(self.share.place(), paths.min());
            self.mss_clamp = self.mss_most.map(|most| self.paths.narrowest().unwrap_or(most).min(most));
        }
        for packet in self.keepalives.due(now, self.engine.sad()) {
            let Some(one) = self.protected.iter_mut().find(|one| one.takes(&packet)) else { continue };
            self.counts.keepalives += u64::from(put_new(&mut self.engine, &mut one.port, &packet));
        }
    }

    /// Lets the outbound SAs to the peer of an inbound one follow it.
    fn follow(&mut self, session: SessionId, to: SocketAddr) {
        if planted(Fault::PeersNotFollowed) {
            return;
        }
        let Some(inbound) = self.engine.sad().config(session) else { return };
        let (local, from) = (inbound.local, SocketAddr::new(inbound.remote, inbound.udp.remote));
        let moved = self.move_peer(local, from, to);
        self.counts.moved_peers += u64::from(moved > 0);
        if let Some(unsaid) = self.moves_said.admit(self.engine.clock().now()) {
            tracing::info!(%from, %to, sas = moved, unsaid, "a peer has moved");
        }
        for other in &self.others {
            // Nobody has to wait for it.
            drop(other.post(move |worker| worker.move_peer(local, from, to)));
        }
    }

    /// Gives the SAs between a local address and a peer another place of the peer; how many there were.
    fn move_peer(&mut self, local: IpAddr, from: SocketAddr, to: SocketAddr) -> usize {
        let sas = self.engine.sad().sas_at(local, from);
        sas.into_iter().filter(|&sa| self.engine.move_peer(sa, to) == Ok(true)).count()
    }

    /// Waits until a link, an order or the time has something.
    fn sleep(&mut self) -> std::io::Result<()> {
        let no_room = !self.hand_off.has_room(TAKE);
        let plain_waits = no_room || self.sealed_wait();
        let more = self.ports().skip(usize::from(plain_waits)).any(|port| port.link.pending());
        if more || !self.hand_off.falls_asleep(no_room.then_some(TAKE)) {
            return Ok(());
        }
        let slept = self.sleep_in_poll(plain_waits);
        self.hand_off.wakes();
        slept
    }

    fn sleep_in_poll(&mut self, plain_waits: bool) -> std::io::Result<()> {
        self.counts.naps += 1;
        let now = self.engine.clock().now();
        let faulty = self.faults >= FAULTS;
        let most = match faulty {
            true => FAULT_NAP,
            false if self.ports().any(|port| port.link.unsent()) => UNSENT_NAP,
            false => NAP,
        };
        let due = self.engine.next_due().min(self.keepalives.next()).since(now).min(most);
        let mut fds = vec![(self.hand_off.bell().fd(), PollFlags::IN)];
        let ports = std::iter::once(&self.plain).chain(self.protected.iter().map(|one| &one.port));
        for (index, port) in ports.enumerate() {
            let mut wanted = if index == 0 && plain_waits { PollFlags::empty() } else { PollFlags::IN };
            wanted.set(PollFlags::OUT, port.is_blocked());
            fds.push((port.link.fd(), wanted));
        }
        fds.extend(self.icmp.iter().map(|link| (link.fd(), PollFlags::IN)));
        let asked = if faulty { 1 } else { fds.len() };
        let mut ready = self.wait.poll(&fds[..asked], due)?;
        // Those that were not asked are not ready.
        ready.resize(fds.len(), PollFlags::empty());
        if !ready[0].is_empty() {
            self.hand_off.bell().silence();
        }
        let fault = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        self.faults = match ready.iter().any(|ready| ready.intersects(fault)) {
            true => self.faults + 1,
            false => 0,
        };
        // Behind the bell and the ports.
        let icmp_from = 2 + self.protected.len();
        self.icmp_ready = ready[icmp_from..].iter().any(|ready| !ready.is_empty());
        let ports =
            std::iter::once(&mut self.plain).chain(self.protected.iter_mut().map(|one| &mut one.port));
        for (port, ready) in ports.zip(&ready[1..]) {
            if ready.intersects(PollFlags::OUT | PollFlags::ERR) && !planted(Fault::NotUnblocked) {
                port.unblock();
            }
        }
        Ok(())
    }
}

/// Puts a packet of the gateway's own onto a port; whether it is there. What does not fit a buffer is not sent: that
/// would still hold an earlier packet.
fn put_new(engine: &mut Engine, port: &mut Port, bytes: &[u8]) -> bool {
    let mut packet = engine.buffer();
    let refused = match packet.fill(bytes) {
        true => port.put(Outgoing { packet, session: None }).err(),
        false => Some(packet),
    };
    let is_put = refused.is_none();
    refused.into_iter().for_each(|packet| engine.recycle(packet));
    is_put
}
