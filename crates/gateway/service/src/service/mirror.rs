//! Installs the kernel's SAs and policies in the engine: keys from an IKE daemon.
//!
//! A separate thread follows the kernel by [`Mirror`] and sends commands to all workers at the same moment: one of them
//! owns an SA, and the others know which. Of several outbound SAs for one policy the newest is used, as in the
//! kernel, while all inbound ones are accepted until they are deleted, so that a rekey loses no packet. The thread
//! reports to the kernel what the daemon needs: limits that were reached, packets that need an SA, counters, and
//! sequence numbers ahead of their use, from which another process would continue.

mod adding;
mod following;
mod policies;
mod report;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{PolicyId, SaConfig, SaCounters, UdpPorts};
use forebay_time::Duration;
use forebay_xfrm::{self as xfrm, Done, Filter, Mirror, PolicyIndex, SaId, Template};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::adding::{Adding, iv_base};
use self::following::{Following, follow};
use self::report::told_ahead;
use super::export::KeyExport;
use forebay_config::Xfrm;
use forebay_privileges as privileges;
use forebay_sas::esp_sa;
use forebay_state::windows::Windows;
use forebay_state::{KeyId, SequenceId};
use forebay_worker::Workers;

/// Between two looks at limits and wanted SAs.
const TICK: Duration = Duration::from_millis(100);

/// Called when the kernel's policies have changed, with all of them in the order in which they are searched, and with
/// whether the list is complete.
pub type OnPolicies = Box<dyn Fn(&[xfrm::Policy], bool) + Send>;

/// Between a failure and the next try.
const TRY_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);

/// How much is taken over: what the kernel has beyond that stays the kernel's.
#[derive(Clone, Copy, Debug)]
pub struct SyncLimits {
    /// SAs, of both directions.
    pub sas: usize,
    /// Policies.
    pub policies: usize,
}

/// What is recorded of SAs in the state directory.
pub struct Records {
    /// What inbound SAs have received.
    pub windows: Windows,
    /// Behind which IVs each cipher key has to begin: it may have been one of a file.
    pub used_ivs: BTreeMap<KeyId, u64>,
}

/// An SA that was taken over.
struct SyncedSa {
    session: SessionId,
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
    id: PolicyId,
    templates: Vec<Template>,
}

/// The order of the kernel's policies: by direction, priority, age.
type Rank = (bool, u32, PolicyIndex);

/// The thread that follows the kernel.
pub struct XfrmSync {
    thread: Option<JoinHandle<io::Result<()>>>,
    stop: Arc<AtomicBool>,
}

impl XfrmSync {
    /// Starts to follow, and waits until everything that the kernel has now is in the engine. `now_s` returns the
    /// time since the Unix epoch in seconds.
    ///
    /// # Errors
    /// Without XFRM in the kernel or `CAP_NET_ADMIN`, or if there is no thread left.
    pub fn start(
        options: &Xfrm,
        workers: Workers,
        clock: fn() -> std::time::Duration,
        routes: OnPolicies,
        exported: Arc<KeyExport>,
        most: SyncLimits,
        records: Records,
    ) -> io::Result<XfrmSync> {
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
            windows: records.windows,
            used_ivs: records.used_ivs,
        };
        let their_stop = stop.clone();
        let builder = std::thread::Builder::new().name("forebay-xfrm".to_owned());
        let thread = builder.spawn(move || {
            privileges::keep_net_admin();
            follow(&mut following, &their_stop, TRY_AGAIN)
        })?;
        // A kernel that never finishes its dump keeps no traffic waiting.
        let _ = wait.recv_timeout(std::time::Duration::from_secs(10));
        Ok(XfrmSync { thread: Some(thread), stop })
    }

    /// Whether the thread follows the kernel; if not, the SAs are no longer synchronized with it.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// What it had ended with before.
    pub fn stop(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
    }
}

impl Drop for XfrmSync {
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
    sas: HashMap<SaId, SyncedSa>,
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
    asked: HashMap<report::Question, std::time::Duration>,
    synchronised: Option<std::sync::mpsc::Sender<()>>,
    reported: std::time::Duration,
    exported: Arc<KeyExport>,
    /// When limits and wanted SAs were looked at.
    told: std::time::Duration,
    most: SyncLimits,
    /// What inbound SAs have received.
    windows: Windows,
    used_ivs: BTreeMap<KeyId, u64>,
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
        // Events received before a failure are applied first, because the mirror does not report them again.
        polled?;
        let sas = self.sas.values().map(|taken| (taken.direction, &taken.sa.config, &taken.sa.keys));
        if let Err(error) = self.exported.refresh(|| esp_sa::table(sas)) {
            tracing::warn!(%error, "esp_sa_export: cannot write the keys; let the gateway's user write the file's directory, or remove the key");
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
                tracing::warn!(sa = %id, %reason, "SA cannot be synchronized; the kernel processes its packets: have the IKE daemon negotiate what docs/ike.md lists");
            }
            xfrm::Event::PolicyAdded(policy) | xfrm::Event::PolicyUpdated(policy) => self.put(*policy),
            xfrm::Event::PolicyDeleted(index) => self.drop_policy(index),
            xfrm::Event::PolicyRefused { policy, reason } => {
                tracing::warn!(policy = policy.index.0, %reason, "policy cannot be synchronized; its packets are dropped: change the IKE daemon's connection (docs/ike.md)");
                self.put(*policy);
            }
            xfrm::Event::Synchronised => {
                self.is_synchronised = true;
                tracing::info!(
                    sas = self.sas.len(),
                    policies = self.policies.len(),
                    "XFRM state synchronized"
                );
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
        let before = before.map(|taken| taken.session);
        if self.sas.len() >= self.most.sas {
            tracing::error!(sa = %sa.id, most = self.most.sas, "SA not synchronized: raise `sas` in [limits]");
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
            tracing::error!(sa = %id, %error, "cannot install an SA of the kernel");
            before.into_iter().for_each(|before| self.take_out(before));
            return;
        }
        let told = match direction {
            Direction::Seal => sa.sequence.sent,
            Direction::Open => sa.sequence.received,
        };
        let changed = before.is_some();
        let adding = Adding {
            config: sa.config.clone(),
            keys: sa.keys.clone(),
            direction,
            before,
            goes_on,
            told,
            iv_base: iv_base(sa.added_s, self.used_ivs.get(&KeyId::of(&sa.keys)).copied().unwrap_or(0)),
            users: self.users(&sa),
            key_id,
            windows: self.windows.clone(),
        };
        if before.is_none() && direction == Direction::Seal {
            // Before its first packet: whoever has it next begins behind what the kernel was told.
            let done = Done { sequence: Some(told_ahead(told, sa.config.esn)), ..Done::default() };
            if let Err(error) = self.mirror.report(&id, direction, &done) {
                tracing::warn!(sa = %id, %error, "cannot report sequence numbers to the kernel; its counters are old, and rekeying by them comes late: is the SA still there (ip xfrm state)?");
            }
        }
        let added = self.workers.change(move |worker| adding.to(worker));
        match added {
            Some(Ok((session, behind))) => {
                tracing::info!(sa = %id, ?direction, suite = %sa.config.suite, "SA of the kernel added");
                let counters = SaCounters::default();
                let taken =
                    SyncedSa { session, direction, sa, age, told: behind, counters, first_use_s: None };
                self.by_reqid.entry(taken.sa.reqid).or_default().insert(id);
                self.sas.insert(id, taken);
                self.exported.keys_changed();
                self.announce(&id, behind);
            }
            Some(Err(why)) => tracing::error!(sa = %id, %why, "cannot install an SA of the kernel"),
            None => {}
        }
        if changed {
            // Of the keys that it had before, if they were others.
            self.windows.settle_later();
        }
    }

    /// An SA with other settings: a peer that has moved goes on as it is, anything else begins anew behind its
    /// sequence numbers.
    fn update(&mut self, mut sa: xfrm::Sa) {
        let Some(taken) = self.sas.get(&sa.id) else { return self.add(sa, false) };
        let session = taken.session;
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
            self.workers.change(move |worker| worker.engine().move_peer(session, to).is_ok());
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
        self.take_out(taken.session);
        tracing::info!(sa = %id, "SA of the kernel removed");
    }

    fn forget(&mut self, id: &SaId) -> Option<SyncedSa> {
        let taken = self.sas.remove(id)?;
        if let Some(alike) = self.by_reqid.get_mut(&taken.sa.reqid) {
            alike.remove(id);
            if alike.is_empty() {
                self.by_reqid.remove(&taken.sa.reqid);
            }
        }
        Some(taken)
    }

    /// Removes an SA.
    fn take_out(&self, session: SessionId) {
        let windows = self.windows.clone();
        self.workers.change(move |worker| {
            worker.finish(&[session]);
            let taken = windows.take_back(worker, &[session]);
            windows.abandon(worker, &taken);
            worker.remove_sa(session);
        });
        self.windows.settle_later();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_that_has_ended_is_noticed() {
        for (thread, why) in [
            (std::thread::spawn(|| Err(io::Error::other("gone"))), "gone"),
            (std::thread::spawn(|| panic!("as meant")), "the thread panicked"),
        ] {
            while !thread.is_finished() {
                std::thread::yield_now();
            }
            let xfrm_sync = XfrmSync { thread: Some(thread), stop: Arc::default() };
            assert!(!xfrm_sync.is_running());
            assert_eq!(xfrm_sync.stop().unwrap_err().to_string(), why);
        }
    }
}
