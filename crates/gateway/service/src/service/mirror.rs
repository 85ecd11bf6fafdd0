//! SAs and policies of the kernel in the engine: keys from an IKE daemon.
//!
//! A thread of its own follows the kernel by [`Mirror`] and gives the workers orders, to all of them at one moment: an SA
//! is at home in one of them, and the others know it. Of several outbound SAs
//! for one policy the newest is used, as the kernel does, while all inbound ones stay open until they are deleted:
//! so a rekey loses nothing. What the daemon has to know goes back: limits that were reached, packets that want an
//! SA, counters, and sequence numbers ahead of their use, from which another process would go on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{
    Action, EventKind, IvRange, Policy, PolicyId, PolicyPlace, SaConfig, SaCounters, TrafficSelector,
    UdpPorts,
};
use forebay_time::Duration;
use forebay_xfrm::{
    self as xfrm, Done, Filter, Flow, Mirror, PolicyAction, PolicyIndex, SaId, Template, Way,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::export::KeyExport;
use super::homes::by_spi;
use super::windows::Windows;
use super::worker::Worker;
use super::workers::Workers;
use crate::privileges;
use forebay_config::Xfrm;
use forebay_config::esp_sa;
use forebay_iv_store::SequenceId;

/// Between two looks at limits and wanted SAs.
const TICK: Duration = Duration::from_millis(100);
/// Sequence numbers that the kernel is told before they are used: at twenty million packets a second some three
/// seconds' worth. Another process begins behind them.
const AHEAD: u64 = 1 << 26;
/// Between two questions for the same flow: as long as the kernel waits for an answer (`xfrm_acq_expires`).
const ASK_AGAIN: Duration = Duration::from_millis(30_000);
/// Flows that are asked for at a time.
const ASKED_MAX: usize = 1_024;

/// What is told all policies of the kernel, in the order in which they are asked, when they have changed; and whether these
/// are all.
pub type OnPolicies = Box<dyn Fn(&[xfrm::Policy], bool) + Send>;

/// Failures in a row, without all that the kernel has read in between, behind which the follower ends.
const FAILURES_MAX: u32 = 5;
/// Between a failure and the next try.
const TRY_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);

/// How much is taken over: what the kernel has beyond that stays the kernel's.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// SAs, of both directions.
    pub sas: usize,
    /// Policies.
    pub policies: usize,
}

/// An SA that was taken over.
struct Taken {
    /// Its number at each worker.
    sessions: Vec<SessionId>,
    /// The worker that has it.
    home: usize,
    direction: Direction,
    sa: xfrm::Sa,
    /// The higher the newer.
    age: u64,
    /// The sequence number up to which the kernel has been told.
    told: u64,
    counters: SaCounters,
    first_use_s: Option<u64>,
}

/// A policy that is followed, in the order in which policies are asked.
struct Followed {
    /// Its number at each worker.
    ids: Vec<PolicyId>,
    templates: Vec<Template>,
}

/// The order of the kernel's policies: by direction, priority, age.
type Rank = (bool, u32, PolicyIndex);

/// The thread that follows the kernel.
pub struct Follower {
    thread: Option<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
}

/// What keeps SAs as the kernel has them.
trait Following {
    /// Takes what has happened; whether all that the kernel has is known now.
    fn step(&mut self) -> io::Result<bool>;

    /// Begins anew behind a failure: everything is read again, and what it makes a difference of is taken.
    fn reopen(&mut self) -> io::Result<()>;
}

/// Follows until `stop`, and begins anew behind failures.
///
/// # Errors
/// The last failure, if there were too many: SAs that are kept by nobody must not be used.
fn follow(following: &mut impl Following, stop: &AtomicBool, pause: std::time::Duration) -> io::Result<()> {
    let mut failures = 0;
    let mut reopens = false;
    while !stop.load(Ordering::Relaxed) {
        let stepped = match std::mem::take(&mut reopens) {
            true => following.reopen().map(|()| false),
            false => following.step(),
        };
        match stepped {
            Ok(true) => failures = 0,
            Ok(false) => {}
            Err(error) => {
                failures += 1;
                if failures >= FAILURES_MAX {
                    return Err(error);
                }
                tracing::warn!(%error, failures, "XFRM synchronization failed; reading all SAs and policies again");
                reopens = true;
                std::thread::park_timeout(pause);
            }
        }
    }
    Ok(())
}

impl Follower {
    /// Starts to follow, and waits until all that the kernel has now is in the engine. `now_s` tells the time since
    /// the Unix epoch in seconds.
    ///
    /// # Errors
    /// Without XFRM in the kernel or `CAP_NET_ADMIN`, or if there is no thread left.
    pub fn start(
        options: &Xfrm,
        workers: Workers,
        clock: fn() -> std::time::Duration,
        routes: OnPolicies,
        exported: Arc<KeyExport>,
        most: Most,
        windows: Windows,
    ) -> io::Result<Follower> {
        let mark = options.mark.map(|mark| xfrm::Mark { value: mark.value, mask: mark.mask });
        let filter = Filter { mark, if_id: options.if_id, allow_weak: false };
        let mirror = Mirror::open(filter, options.netlink_buffer)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (synchronised, wait) = std::sync::mpsc::channel();
        let mut following = Follow {
            mirror,
            netlink_buffer: options.netlink_buffer,
            is_synchronised: false,
            workers,
            clock,
            routes,
            report: options.report,
            sas: HashMap::new(),
            by_reqid: HashMap::new(),
            ages: 0,
            policies: BTreeMap::new(),
            kernel_policies: BTreeMap::new(),
            over: BTreeSet::new(),
            discarding: HashSet::new(),
            is_complete: false,
            follows_policies: options.policies,
            follows_peers: options.follow_peer,
            asked: HashMap::new(),
            synchronised: Some(synchronised),
            reported: clock(),
            exported,
            told: std::time::Duration::ZERO,
            most,
            windows,
        };
        let their_stop = stop.clone();
        let builder = std::thread::Builder::new().name("forebay-xfrm".to_owned());
        let thread = builder.spawn(move || {
            privileges::keep_net_admin();
            follow(&mut following, &their_stop, TRY_AGAIN)
        })?;
        // A kernel that never finishes its dump keeps no traffic waiting.
        let _ = wait.recv_timeout(std::time::Duration::from_secs(10));
        Ok(Follower { thread: Some(thread), stop })
    }

    /// Whether it follows: if not, nobody keeps the SAs as the kernel has them.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it.
    ///
    /// # Errors
    /// What it had ended with before.
    pub fn stop(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has panicked")))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

struct Follow {
    mirror: Mirror,
    netlink_buffer: usize,
    /// All that the kernel has is known since the mirror was opened.
    is_synchronised: bool,
    workers: Workers,
    clock: fn() -> std::time::Duration,
    routes: OnPolicies,
    report: Option<Duration>,
    sas: HashMap<SaId, Taken>,
    by_reqid: HashMap<u32, HashSet<SaId>>,
    /// SAs taken over so far.
    ages: u64,
    policies: BTreeMap<Rank, Followed>,
    /// As the kernel has them.
    kernel_policies: BTreeMap<PolicyIndex, (Rank, xfrm::Policy)>,
    /// Those of them that there is no room for, which discard.
    over: BTreeSet<PolicyIndex>,
    /// Those that discard by themselves, or because they cannot be followed.
    discarding: HashSet<PolicyIndex>,
    /// All that the kernel has was known at some time.
    is_complete: bool,
    follows_policies: bool,
    follows_peers: bool,
    asked: HashMap<(PolicyIndex, IpAddr, IpAddr), std::time::Duration>,
    synchronised: Option<std::sync::mpsc::Sender<()>>,
    reported: std::time::Duration,
    exported: Arc<KeyExport>,
    /// When limits and wanted SAs were looked at.
    told: std::time::Duration,
    most: Most,
    /// What inbound SAs have received.
    windows: Windows,
}

/// What a worker has for the daemon.
struct News {
    limits: Vec<(SessionId, bool)>,
    wanted: Vec<Flow>,
    /// Of its own SAs.
    numbers: Vec<(SessionId, Option<u64>, SaCounters)>,
}

impl Following for Follow {
    fn step(&mut self) -> io::Result<bool> {
        self.is_synchronised = false;
        self.step_and_wait()?;
        Ok(self.is_synchronised)
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.mirror.reopen(self.netlink_buffer)
    }
}

impl Follow {
    /// Waits for the kernel or the next tick, and does what is to be done.
    fn step_and_wait(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        let polled = loop {
            match self.mirror.poll(&mut events) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let routes_change = events.iter().any(|event| {
            // An update leaves the selectors as they are: a rekey, of which there may be very many.
            use xfrm::Event::{PolicyAdded, PolicyDeleted, PolicyRefused};
            matches!(event, PolicyAdded(_) | PolicyDeleted(_) | PolicyRefused { .. })
        });
        let was_complete = self.is_complete;
        for event in events {
            self.take(event);
        }
        self.is_complete |= self.is_synchronised;
        if routes_change || self.is_complete != was_complete {
            let mut policies: Vec<_> = self.kernel_policies.values().collect();
            policies.sort_unstable_by_key(|(rank, _)| *rank);
            let policies: Vec<xfrm::Policy> =
                policies.into_iter().map(|(_, policy)| policy.clone()).collect();
            (self.routes)(&policies, self.is_complete);
        }
        // What was heard before a failure is taken: the mirror does not tell it again.
        polled?;
        let sas = self.sas.values().map(|taken| (taken.direction, &taken.sa.config, &taken.sa.keys));
        if let Err(error) = self.exported.refresh(|| esp_sa::table(sas)) {
            tracing::warn!(%error, "esp_sa_export: the keys were not written");
        }
        let now = (self.clock)();
        if now.saturating_sub(self.told).as_nanos() as u64 >= TICK.as_nanos() {
            self.told = now;
            self.tell()?;
        }
        let mut fds = self.mirror.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, event: xfrm::Event) {
        match event {
            xfrm::Event::SaAdded(sa) => self.add(*sa, false),
            xfrm::Event::SaUpdated(sa) => self.update(*sa),
            xfrm::Event::SaDeleted(id) | xfrm::Event::SaExpired { id, hard: true } => self.remove(&id),
            xfrm::Event::SaRefused { id, reason } => {
                self.remove(&id);
                tracing::warn!(sa = %id, %reason, "an SA stays the kernel's");
            }
            xfrm::Event::PolicyAdded(policy) | xfrm::Event::PolicyUpdated(policy) => self.put(*policy),
            xfrm::Event::PolicyDeleted(index) => self.drop_policy(index),
            xfrm::Event::PolicyRefused { policy, reason } => {
                tracing::warn!(policy = policy.index.0, %reason, "a policy cannot be followed; its packets are dropped");
                self.put(*policy);
            }
            xfrm::Event::Synchronised => {
                self.is_synchronised = true;
                tracing::info!(sas = self.sas.len(), policies = self.policies.len(), "as the kernel has it");
                // What no SA of the kernel has is put back.
                self.windows.settle_later();
                if let Some(waiting) = self.synchronised.take() {
                    let _ = waiting.send(());
                }
            }
            _ => {}
        }
    }

    /// Takes an SA over. One that `goes_on` stays at its worker, and goes on behind what it has sent and received so far.
    fn add(&mut self, mut sa: xfrm::Sa, goes_on: bool) {
        let before = self.forget(&sa.id);
        let stays = before.as_ref().filter(|_| goes_on).map(|taken| taken.home);
        let before = before.map(|taken| taken.sessions);
        if self.sas.len() >= self.most.sas {
            tracing::error!(sa = %sa.id, most = self.most.sas, "an SA stays the kernel's: raise `sas` of [limits]");
            before.into_iter().for_each(|before| self.take_out(before));
            return;
        }
        sa.config.follow_peer &= self.follows_peers;
        self.ages += 1;
        let age = self.ages;
        let (id, direction) = (sa.id, sa.direction);
        if let Some((source, destination)) = sa.ports {
            sa.config.udp = match direction {
                Direction::Seal => UdpPorts { local: source, remote: destination },
                Direction::Open => UdpPorts { local: destination, remote: source },
            };
        }
        let key_id = SequenceId::of(&sa.keys, sa.config.spi);
        let has_window = direction == Direction::Open && sa.config.replay_window > 0;
        if has_window && let Err(error) = self.windows.open(&[key_id]) {
            tracing::error!(sa = %id, %error, "an SA of the kernel was not taken over");
            before.into_iter().for_each(|before| self.take_out(before));
            return;
        }
        let told = match direction {
            Direction::Seal => sa.sequence.sent,
            Direction::Open => sa.sequence.received,
        };
        let (config, keys) = (sa.config.clone(), sa.keys.clone());
        let users = self.users(&sa);
        let home = stays.unwrap_or_else(|| self.home(&sa));
        // IVs count from the clock, in nanoseconds: whoever had these keys before this process took older ones.
        let now_ns = (self.clock)().as_nanos() as u64;
        let (windows, changed) = (self.windows.clone(), before.is_some());
        let remove = {
            let windows = windows.clone();
            move |worker: &mut Worker, (session, _)| {
                let taken = windows.take_back(worker, &[session]);
                windows.abandon(worker, &taken);
                worker.remove_sa(session);
            }
        };
        let added = self.workers.change(move |worker| {
            let share = worker.share();
            let (mut behind, mut iv, mut taken) = (told, now_ns, vec![]);
            if let Some(&one) = before.as_ref().and_then(|before| before.get(share.place())) {
                // What is under way belongs to what it has received.
                worker.finish(&[one]);
                let sad = worker.engine().sad();
                if goes_on {
                    behind = sad.sequence(one).unwrap_or(told);
                    // The clock may have been put back since the SA was added.
                    iv = iv.max(sad.next_iv(one).unwrap_or(0));
                }
                taken = windows.take_back(worker, &[one]);
                worker.remove_sa(one);
            }
            let engine = worker.engine();
            let config = config.clone();
            let session = match (direction, share.away(home)) {
                (direction, Some(home)) => {
                    engine.add_away(direction, config, home).map_err(|error| error.to_string())
                }
                (Direction::Seal, None) => {
                    let iv = IvRange::share(iv, u64::MAX, 0, 1);
                    engine.add_outbound(config, iv, &keys).map_err(|error| error.to_string())
                }
                (Direction::Open, None) => {
                    engine.add_inbound(config, &keys).map_err(|error| error.to_string())
                }
            }?;
            if direction == Direction::Seal && behind > 0 {
                engine.continue_after(session, behind);
            }
            for policy in users.iter().filter_map(|ids| ids.get(share.place())) {
                if let Err(error) = engine.put_policy_sa_first(*policy, session) {
                    engine.remove_sa(session);
                    return Err(error.to_string());
                }
            }
            if direction == Direction::Open {
                windows.give(worker, session, key_id, behind);
            }
            windows.abandon(worker, &taken);
            Ok::<(SessionId, u64), String>((session, behind))
        });
        let added = added.map(|added| self.all_or_none(added, remove));
        match added {
            Some(Ok(added)) => {
                let behind = added.get(home).map_or(told, |(_, behind)| *behind);
                let sessions = added.into_iter().map(|(session, _)| session).collect();
                tracing::info!(sa = %id, ?direction, suite = %sa.config.suite, "an SA of the kernel");
                let counters = SaCounters::default();
                let taken =
                    Taken { sessions, home, direction, sa, age, told: behind, counters, first_use_s: None };
                self.by_reqid.entry(taken.sa.reqid).or_default().insert(id);
                self.sas.insert(id, taken);
                self.exported.keys_changed();
                self.announce(&id, behind);
            }
            Some(Err(why)) => tracing::error!(sa = %id, %why, "an SA of the kernel was not taken over"),
            None => {}
        }
        if changed {
            // Of the keys that it had before, if they were others.
            self.windows.settle_later();
        }
    }

    /// Tells the kernel, before it is used, how far an outbound SA may count.
    fn announce(&mut self, id: &SaId, sequence: u64) {
        let Some(taken) = self.sas.get_mut(id) else { return };
        if taken.direction == Direction::Open {
            return;
        }
        let most = if taken.sa.config.esn { u64::MAX } else { u32::MAX.into() };
        taken.told = sequence.saturating_add(AHEAD).min(most);
        let done = Done { sequence: Some(taken.told), ..done(taken) };
        if let Err(error) = self.mirror.report(id, Direction::Seal, &done) {
            tracing::warn!(sa = %id, %error, "the kernel could not be told of sequence numbers");
        }
    }

    /// An SA with other settings: a peer that has moved goes on as it is, anything else begins anew behind its
    /// sequence numbers.
    fn update(&mut self, mut sa: xfrm::Sa) {
        let Some(taken) = self.sas.get(&sa.id) else { return self.add(sa, false) };
        let sessions = taken.sessions.clone();
        if let (Some((source, destination)), Direction::Seal) = (sa.ports, sa.direction) {
            sa.config.udp = UdpPorts { local: source, remote: destination };
        }
        let before = &taken.sa.config;
        let moved = SaConfig {
            remote: before.remote,
            udp: before.udp,
            lifetime: before.lifetime,
            follow_peer: before.follow_peer,
            ..sa.config.clone()
        };
        if sa.direction == Direction::Seal && moved == *before {
            let to = SocketAddr::new(sa.config.remote, sa.config.udp.remote);
            self.workers.change(move |worker| {
                let session = sessions.get(worker.share().place());
                session.map(|&session| worker.engine().move_peer(session, to).is_ok())
            });
            if let Some(taken) = self.sas.get_mut(&sa.id) {
                taken.sa.config = sa.config;
                self.exported.keys_changed();
            }
            return;
        }
        self.add(sa, true);
    }

    fn remove(&mut self, id: &SaId) {
        let Some(taken) = self.forget(id) else { return };
        self.exported.keys_changed();
        self.take_out(taken.sessions);
        tracing::info!(sa = %id, "an SA of the kernel is gone");
    }

    fn forget(&mut self, id: &SaId) -> Option<Taken> {
        let taken = self.sas.remove(id)?;
        if let Some(alike) = self.by_reqid.get_mut(&taken.sa.reqid) {
            alike.remove(id);
            if alike.is_empty() {
                self.by_reqid.remove(&taken.sa.reqid);
            }
        }
        Some(taken)
    }

    /// The SAs that templates may want: with thousands of them not each for each policy.
    fn alike(&self, templates: &[Template]) -> Vec<&Taken> {
        if templates.iter().any(|template| template.reqid == 0) {
            return self.sas.values().collect();
        }
        let reqids: HashSet<u32> = templates.iter().map(|template| template.reqid).collect();
        let ids = reqids.iter().filter_map(|reqid| self.by_reqid.get(reqid)).flatten();
        ids.filter_map(|id| self.sas.get(id)).collect()
    }

    /// The worker that is to have an SA: an outbound one is beside the newest inbound one of its tunnel, which daemons add
    /// first.
    fn home(&self, sa: &xfrm::Sa) -> usize {
        let companion = |taken: &&Taken| {
            let other = &taken.sa;
            taken.direction == Direction::Open
                && sa.direction == Direction::Seal
                && (other.config.local, other.config.remote) == (sa.config.local, sa.config.remote)
        };
        let alike = self.by_reqid.get(&sa.reqid).into_iter().flatten().filter_map(|id| self.sas.get(id));
        let newest = alike.filter(companion).max_by_key(|taken| taken.age);
        newest.map_or_else(|| by_spi(sa.config.spi, self.workers.handles().len()), |taken| taken.home)
    }

    /// The policies whose packets may go through an SA, each by its number at every worker.
    fn users(&self, sa: &xfrm::Sa) -> Vec<Vec<PolicyId>> {
        let seals = sa.direction == Direction::Seal;
        let uses = |followed: &&Followed| followed.templates.iter().any(|template| template.wants(sa));
        let policies = self.policies.iter().filter(|((out, ..), _)| *out == seals);
        policies.map(|(_, followed)| followed).filter(uses).map(|followed| followed.ids.clone()).collect()
    }

    /// Adds a policy, or puts it in the place of what it was before, between two packets: an IKE daemon updates its
    /// policies at every rekey, and no packet may be without one.
    fn put(&mut self, policy: xfrm::Policy) {
        let before = self.kernel_policies.remove(&policy.index);
        let before = before.and_then(|(rank, _)| self.policies.remove(&rank)).map(|followed| followed.ids);
        // One that discards is no burden, and without it its packets would get to the next policy.
        let was_over = self.over.remove(&policy.index);
        self.discarding.remove(&policy.index);
        let discards = matches!(policy.action, PolicyAction::Discard | PolicyAction::Refused(_));
        if discards {
            self.discarding.insert(policy.index);
        }
        let taken =
            self.kernel_policies.len() - self.over.len() - (self.discarding.len() - usize::from(discards));
        let is_over = !discards && taken >= self.most.policies;
        if is_over {
            self.over.insert(policy.index);
        }
        if is_over && !was_over {
            let (policy, most) = (policy.index.0, self.most.policies);
            tracing::error!(
                policy,
                most,
                "the packets of a policy are dropped: raise `policies` of [limits]"
            );
        }
        let seals = policy.way == Way::Out;
        let rank = (seals, policy.priority, policy.index);
        self.kernel_policies.insert(policy.index, (rank, policy.clone()));
        if !self.follows_policies {
            return;
        }
        let wanted = if is_over { PolicyAction::Discard } else { policy.action.clone() };
        let templates = match &wanted {
            PolicyAction::Protect(templates) => templates.clone(),
            PolicyAction::Bypass | PolicyAction::Discard | PolicyAction::Refused(_) => vec![],
        };
        let direction = if seals { Direction::Seal } else { Direction::Open };
        // The newest first.
        let mut sas: Vec<&Taken> = self
            .alike(&templates)
            .into_iter()
            .filter(|taken| taken.direction == direction)
            .filter(|taken| templates.iter().any(|template| template.wants(&taken.sa)))
            .collect();
        sas.sort_by_key(|taken| std::cmp::Reverse(taken.age));
        let sas: Vec<Vec<SessionId>> = sas.into_iter().map(|taken| taken.sessions.clone()).collect();
        let index = policy.index.0;
        let next = self.policies.range(rank..).next().filter(|((out, ..), _)| *out == seals);
        let next = next.map(|(_, next)| next.ids.clone());
        let added = self.workers.change(move |worker| {
            let (at, engine) = (worker.share().place(), worker.engine());
            let action = match &wanted {
                PolicyAction::Protect(_) => {
                    Action::Protect(sas.iter().filter_map(|sessions| sessions.get(at)).copied().collect())
                }
                PolicyAction::Bypass => Action::Bypass,
                PolicyAction::Discard | PolicyAction::Refused(_) => Action::Discard,
            };
            let mut ours = Policy::new(&format!("xfrm-{index}"), direction, action);
            (ours.local_ts, ours.remote_ts) = (policy.local_ts.clone(), policy.remote_ts.clone());
            let next = next.as_ref().and_then(|next| next.get(at));
            let place = next.map_or(PolicyPlace::Last, |next| PolicyPlace::Before(*next));
            // Better one that discards than none.
            let discards = Policy { action: Action::Discard, ..ours.clone() };
            let added = engine.add_policy(ours, place).or_else(|_| engine.add_policy(discards, place));
            before.as_ref().and_then(|before| before.get(at)).map(|before| engine.remove_policy(*before));
            added
        });
        let added =
            added.map(|added| self.all_or_none(added, |worker, id| drop(worker.engine().remove_policy(id))));
        match added {
            Some(Ok(ids)) => drop(self.policies.insert(rank, Followed { ids, templates })),
            Some(Err(error)) => {
                tracing::error!(policy = index, %error, "a policy was not taken over")
            }
            None => {}
        }
    }

    fn drop_policy(&mut self, index: PolicyIndex) {
        let Some((rank, _)) = self.kernel_policies.remove(&index) else { return };
        if let Some(followed) = self.policies.remove(&rank) {
            self.take_policy_out(followed.ids);
        }
        self.discarding.remove(&index);
        // There may be room for another.
        if !self.over.remove(&index)
            && let Some(next) = self.over.first().and_then(|next| self.kernel_policies.get(next))
        {
            let next = next.1.clone();
            self.put(next);
        }
    }

    /// Removes an SA everywhere.
    fn take_out(&self, sessions: Vec<SessionId>) {
        let windows = self.windows.clone();
        self.workers.change(move |worker| {
            if let Some(&session) = sessions.get(worker.share().place()) {
                worker.finish(&[session]);
                let taken = windows.take_back(worker, &[session]);
                windows.abandon(worker, &taken);
                worker.remove_sa(session);
            }
        });
        self.windows.settle_later();
    }

    /// Removes a policy everywhere.
    fn take_policy_out(&self, ids: Vec<PolicyId>) {
        self.workers.change(move |worker| {
            let id = ids.get(worker.share().place());
            id.map(|&id| worker.engine().remove_policy(id).is_some())
        });
    }

    /// What all workers have added, or the error of one: then `take_out` takes it out of the others again, for what not
    /// all know some would decide otherwise.
    fn all_or_none<T: Copy + Send + Sync + 'static, E>(
        &self,
        added: Vec<Result<T, E>>,
        take_out: impl Fn(&mut Worker, T) + Send + Sync + 'static,
    ) -> Result<Vec<T>, E> {
        let there: Vec<Option<T>> = added.iter().map(|one| one.as_ref().ok().copied()).collect();
        added.into_iter().collect::<Result<Vec<T>, E>>().inspect_err(|_| {
            self.workers.change(move |worker| {
                let one = there.get(worker.share().place()).copied().flatten();
                one.into_iter().for_each(|one| take_out(worker, one));
            });
        })
    }

    /// Tells the daemon what has happened to SAs, and the kernel how far they have counted.
    fn tell(&mut self) -> io::Result<()> {
        let now = (self.clock)();
        let due = self
            .report
            .is_some_and(|every| now.saturating_sub(self.reported).as_nanos() as u64 >= every.as_nanos());
        let Some(news) = self.workers.ask(news) else { return Ok(()) };
        // By home and number there.
        let name = |(id, taken): (&SaId, &Taken)| Some(((taken.home, *taken.sessions.get(taken.home)?), *id));
        let names: HashMap<(usize, SessionId), SaId> = self.sas.iter().filter_map(name).collect();
        let mut wanted = Vec::new();
        for (place, news) in news.into_iter().enumerate() {
            self.tell_of(place, &names, &news, due, now)?;
            wanted.extend(news.wanted);
        }
        if due {
            self.reported = now;
        }
        self.ask_for(wanted, now)
    }

    /// Tells what worker number `place` has.
    fn tell_of(
        &mut self,
        place: usize,
        names: &HashMap<(usize, SessionId), SaId>,
        news: &News,
        due: bool,
        now: std::time::Duration,
    ) -> io::Result<()> {
        for &(session, hard) in &news.limits {
            if let Some(id) = names.get(&(place, session)) {
                tracing::info!(sa = %id, hard, "a lifetime has ended");
                self.mirror.expire(id, hard)?;
            }
        }
        for &(session, sequence, counters) in &news.numbers {
            let Some(id) = names.get(&(place, session)) else { continue };
            let Some(taken) = self.sas.get_mut(id) else { continue };
            let used = counters.packets > taken.counters.packets;
            taken.counters = counters;
            taken.first_use_s = taken.first_use_s.or(used.then_some(now.as_secs()));
            let sequence = sequence.unwrap_or(0);
            if taken.direction == Direction::Seal && taken.told.saturating_sub(sequence) < AHEAD / 2 {
                self.announce(id, sequence);
            } else if due && used {
                let told = if taken.direction == Direction::Seal { taken.told } else { sequence };
                let done = Done { sequence: Some(told), ..done(taken) };
                self.mirror.report(id, taken.direction, &done)?;
            }
        }
        Ok(())
    }

    /// Asks for SAs that packets had to do without.
    fn ask_for(&mut self, flows: Vec<Flow>, now: std::time::Duration) -> io::Result<()> {
        let patience = std::time::Duration::from_nanos(ASK_AGAIN.as_nanos());
        self.asked.retain(|_, asked| now.saturating_sub(*asked) < patience);
        for flow in flows {
            let first = self.kernel_policies.values().map(|(rank, policy)| (rank, policy));
            let first = first.filter(|(_, policy)| policy.way == Way::Out && covers(policy, &flow));
            let Some((_, policy)) = first.min_by_key(|(rank, _)| **rank) else { continue };
            let index = policy.index;
            let name = (index, flow.source, flow.destination);
            if self.asked.len() < ASKED_MAX && self.asked.insert(name, now).is_none() {
                self.mirror.acquire(index, &flow)?;
            }
        }
        Ok(())
    }
}

fn covers(policy: &xfrm::Policy, flow: &Flow) -> bool {
    let within = |selectors: &[TrafficSelector], address: IpAddr| {
        selectors.is_empty()
            || selectors.iter().any(|selector| {
                selector.addresses().is_none_or(|(first, last)| first <= address && address <= last)
            })
    };
    within(&policy.local_ts, flow.source) && within(&policy.remote_ts, flow.destination)
}

fn news(worker: &mut Worker) -> News {
    let events = worker.take_events();
    let limits = events.into_iter().filter_map(|event| match event.kind {
        EventKind::Soft | EventKind::SequenceLow => Some((event.session, false)),
        EventKind::Hard | EventKind::SequenceEnd => Some((event.session, true)),
        _ => None,
    });
    let limits = limits.collect();
    let wanted = worker.take_wanted();
    let sad = worker.engine().sad();
    let own = sad.iter().filter(|(session, ..)| sad.remote(*session).is_none());
    let numbers = own.map(|(session, _, _, counters)| (session, sad.sequence(session), *counters)).collect();
    News { limits, wanted, numbers }
}

fn done(taken: &Taken) -> Done {
    let SaCounters { packets, bytes, .. } = taken.counters;
    Done { packets, bytes, first_use_s: taken.first_use_s, sequence: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that are read from a list, and an end.
    struct Listed {
        steps: std::vec::IntoIter<Result<bool, &'static str>>,
        reopened: usize,
        stop: Arc<AtomicBool>,
    }

    impl Following for Listed {
        fn step(&mut self) -> io::Result<bool> {
            let step = self.steps.next();
            if step.is_none() {
                self.stop.store(true, Ordering::Relaxed);
            }
            step.unwrap_or(Ok(false)).map_err(io::Error::other)
        }

        fn reopen(&mut self) -> io::Result<()> {
            self.reopened += 1;
            Ok(())
        }
    }

    fn followed(steps: Vec<Result<bool, &'static str>>) -> (io::Result<()>, usize) {
        let stop = Arc::new(AtomicBool::new(false));
        let mut listed = Listed { steps: steps.into_iter(), reopened: 0, stop: stop.clone() };
        let ended = follow(&mut listed, &stop, std::time::Duration::ZERO);
        (ended, listed.reopened)
    }

    #[test]
    fn a_failure_reads_everything_again() {
        let (ended, reopened) = followed(vec![Ok(true), Err("a"), Ok(false), Ok(true), Err("b"), Ok(true)]);
        assert!(ended.is_ok());
        assert_eq!(reopened, 2);
        // Ever so many, as long as it gets there in between.
        let (ended, reopened) = followed([Err("a"), Ok(true)].repeat(100));
        assert!(ended.is_ok());
        assert_eq!(reopened, 100);
    }

    #[test]
    fn too_many_failures_end_the_follower_with_the_last() {
        let (ended, reopened) = followed([Err("gone"), Ok(false)].repeat(100));
        assert_eq!(ended.unwrap_err().to_string(), "gone");
        assert_eq!(reopened, 4);
    }

    #[test]
    fn a_follower_that_has_ended_is_noticed() {
        for (thread, why) in [
            (std::thread::spawn(|| Err(io::Error::other("gone"))), "gone"),
            (std::thread::spawn(|| panic!("as meant")), "the thread has panicked"),
        ] {
            while !thread.is_finished() {
                std::thread::yield_now();
            }
            let follower = Follower { thread: Some(thread), stop: Arc::default() };
            assert!(!follower.is_running());
            assert_eq!(follower.stop().unwrap_err().to_string(), why);
        }
    }
}
