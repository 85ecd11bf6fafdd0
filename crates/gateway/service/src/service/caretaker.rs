//! The caretaker of the host, from the start of a gateway's process to its end and in every role: it maintains the guard's rules,
//! the routes to protected networks with their blackhole routes, and offloads of interfaces.
//!
//! A data plane starts and stops, alone or as its pair or cluster decides; protection against cleartext must not
//! stop with it. The caretaker therefore belongs to the process. A thread of its own compares the kernel's state, because a start or
//! a reload may take seconds.

mod lost;

#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use forebay_config::{Config, InsideLink, KeySource, Routes, Tun, prefixes};
use forebay_guard::{Entry, Plan, Saved};
use forebay_planted::{Fault, planted};
use forebay_privileges as privileges;
use ipnet::IpNet;

use self::lost::Lost;
use super::guard::{self, Guard};
use super::host::Host;
use super::mirror::OnPolicies;
use super::offloads::{Ends, Offloads};
use super::routes::RouteTable;
use super::saved::SavedRules;
use super::start_error::{StartError, link_error};
use crate::control::{GuardDoc, OffloadsDoc};

/// The object that errors of the guard name.
const GUARD: &str = "the guard's rules (nftables; `mode` of `[guard]`)";
/// Time between two checks: rules and routes that another program deletes are restored within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Number of checks between two saves of the rules.
const SAVE_EVERY: u32 = 10;

/// The caretaker of a host. Clones share their state.
#[derive(Clone)]
pub struct Caretaker {
    care: Arc<Care>,
    /// Dropping it ends the thread.
    thread: Arc<Mutex<Option<Sender<()>>>>,
    has_threads: bool,
}

struct Care {
    guard: Guard,
    routes: RouteTable,
    offloads: Offloads,
    saving: Mutex<Option<Saving>>,
    /// Whether SAs and policies come from the kernel.
    is_the_kernels: bool,
    /// Whether the guard of the last start stays in force until the kernel has a policy that protects: after a boot it has none before the
    /// IKE daemon has started.
    waits: AtomicBool,
    /// Whether the log has said that it waits.
    said_waits: AtomicBool,
}

/// The place of saved rules, and the last ones.
struct Saving {
    to: SavedRules,
    /// Versions of the rules and of the routes.
    saved: Option<(u64, u64)>,
    looks: u32,
    has_failed: bool,
    lost: Lost,
}

impl Saving {
    fn new(to: SavedRules) -> Saving {
        Saving { to, saved: None, looks: 0, has_failed: false, lost: Lost::default() }
    }
}

impl Caretaker {
    /// Closes the host according to `config` and maintains it from now on: with a thread of its own if the host has threads,
    /// otherwise when [`Caretaker::look_after`] is called. The rules are saved in `to`. If the kernel's policies determine
    /// them, those of the last start stay in force until the policies are known.
    ///
    /// # Errors
    /// If the rules cannot be made and the file requires them, or the routes cannot be opened.
    pub fn open(config: &Config, host: &dyn Host, to: Option<SavedRules>) -> Result<Caretaker, StartError> {
        let last = to.as_ref().and_then(|to| to.read().ok().flatten()).unwrap_or_default();
        let guard = Guard::new(config, host.firewall(), host.interfaces(), last.entries)
            .map_err(link_error(GUARD))?;
        last.host.iter().for_each(|last| guard.forget(&last.table));
        let is_the_kernels = matches!(config.keys.source, KeySource::Xfrm(_));
        // There may be blackhole routes without rules of the guard.
        let discards = comes_from_kernel(config) && !last.discarded.is_empty();
        let waits = is_the_kernels && (guard.map_entries(protect_any) || discards);
        let saving = to.map(Saving::new);
        let offloads = Offloads::new(host.interfaces());
        offloads.configure(config);
        let (routes, saving, waits) = (RouteTable::default(), Mutex::new(saving), AtomicBool::new(waits));
        let said_waits = AtomicBool::default();
        let care = Care { guard, routes, offloads, saving, is_the_kernels, waits, said_waits };
        let has_threads = host.has_threads();
        let caretaker = Caretaker { care: Arc::new(care), thread: Arc::default(), has_threads };
        let discarded = caretaker.attach(config, host).and_then(|()| {
            caretaker.care.routes.adopt(&last.discarded);
            let discarded = if comes_from_kernel(config) { last.discarded } else { discarded(config) };
            caretaker.set(vec![], discarded, true)
        });
        // The rules stay if an error follows.
        discarded.inspect_err(|_| caretaker.say_that_they_stay())?;
        caretaker.care.save(true);
        caretaker.start(config).map_err(StartError::System)?;
        Ok(caretaker)
    }

    /// Starts the thread, if there is something to maintain and no thread yet.
    fn start(&self, config: &Config) -> io::Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let has_work =
            config.guard.mode.makes() || self.care.routes.is_ours() || self.care.offloads.has_work();
        if !self.has_threads || !has_work || thread.is_some() {
            return Ok(());
        }
        let (awake, asleep) = channel();
        let care = self.care.clone();
        std::thread::Builder::new().name("forebay-host".to_owned()).spawn(move || {
            privileges::keep_net_admin();
            care.look_until(&asleep);
        })?;
        *thread = Some(awake);
        Ok(())
    }

    /// Begins a data plane with `config`: routes now lead to its interface.
    ///
    /// # Errors
    /// If the routes cannot be opened.
    pub fn attach(&self, config: &Config, host: &dyn Host) -> Result<(), StartError> {
        let routing = host.routing(config).map_err(link_error("routes"))?;
        self.care.routes.attach(config, routing);
        Ok(())
    }

    /// Uses another version of the file; [`Caretaker::route`] sets routes to the interface.
    ///
    /// # Errors
    /// As [`Caretaker::open`].
    pub fn configure(&self, config: &Config) -> Result<(), StartError> {
        self.care.guard.configure(config).map_err(link_error(GUARD))?;
        self.care.offloads.configure(config);
        if !comes_from_kernel(config) {
            self.set(self.care.routes.networks(), discarded(config), false)?;
            self.care.with_saving(|saving| saving.lost.forget_discarded());
        }
        self.care.save(true);
        self.start(config).map_err(StartError::System)
    }

    /// Routes the networks of the file, or those that its policies protect, to the interface of a data plane, and switches offloads on, so that
    /// the first packets pass in the same way as later ones.
    ///
    /// # Errors
    /// If a network cannot be routed.
    pub fn route(&self, config: &Config) -> Result<(), StartError> {
        self.care.routes.interface_opened();
        // The networks of the kernel's policies are not known yet, or known already.
        if !comes_from_kernel(config) {
            self.set(config.routes(), discarded(config), true)?;
            self.care.routes.lend_address(&self.care.own());
        }
        self.care.look_after_offloads(true);
        Ok(())
    }

    fn set(&self, networks: Vec<IpNet>, discarded: Vec<IpNet>, again: bool) -> Result<(), StartError> {
        let refused = |(network, error)| link_error(format!("route to {network}"))(error);
        self.care.routes.set(networks, discarded, again).map_err(refused)
    }

    /// A function that guards the networks of the kernel's policies, and routes them to the interface with `routes = "auto"`.
    pub fn on_policies(&self, config: &Config) -> OnPolicies {
        let (care, is_ours) = (self.care.clone(), comes_from_kernel(config));
        Box::new(move |policies, are_all| {
            let protects = |policy: &&forebay_xfrm::Policy| {
                use forebay_xfrm::PolicyAction::{Protect, Refused};
                matches!(&policy.action, Protect(_))
                    || matches!(&policy.action, Refused(refused) if !refused.bypasses)
            };
            // Rules of an earlier run guard more than the first few policies, or than no policy.
            let protects_any = policies.iter().any(|policy| protects(&policy));
            let are_all = are_all && !care.waits_for(protects_any);
            if are_all {
                let entries = guard::entries(policies.iter());
                care.note_lost(&entries);
                care.guard.set(entries);
                care.look_after_offloads(true);
            }
            if !is_ours {
                return;
            }
            // The engine drops packets that should be protected and cannot be; otherwise they would leave in the clear.
            let leaves =
                |policy: &&forebay_xfrm::Policy| policy.way == forebay_xfrm::Way::Out && protects(policy);
            let networks = policies.iter().filter(leaves).flat_map(|policy| prefixes(&policy.remote_ts));
            let networks: Vec<_> = networks.collect();
            // The networks of the last start are discarded until all policies are known.
            let kept = if are_all { vec![] } else { care.routes.discarded() };
            let discarded: Vec<_> = networks.iter().copied().chain(kept).collect();
            care.with_saving(|saving| {
                saving.lost.note_discarded(&care.routes.discarded(), &discarded, now());
            });
            if let Err((network, error)) = care.routes.set(networks, discarded, false) {
                tracing::warn!(%network, %error, "cannot add the route to a network that a policy protects: add it by hand (ip route add), or give `routes` of [inside]");
            }
        })
    }

    /// Restores what another program has deleted or changed. Call it about every second from a thread with
    /// `CAP_NET_ADMIN`; on a host with threads, the caretaker's own thread does.
    pub fn look_after(&self) {
        self.care.look_after();
    }

    /// Handles the end of the data plane, whose interface disappears with the routes to it.
    pub(super) fn detach(&self) {
        self.care.routes.detach();
    }

    /// Logs that the rules stay although the gateway ends with an error.
    pub fn say_that_they_stay(&self) {
        self.care.guard.say_that_they_stay();
    }

    /// Ends cleanly: deletes the rules and routes that the file does not keep, and switches offloads back.
    pub fn end(&self) {
        self.care.offloads.end();
        self.care.routes.end();
        self.care.guard.end();
        self.care.save(true);
    }

    /// The status of offloads.
    pub fn offloads(&self) -> OffloadsDoc {
        self.care.offloads.document()
    }

    /// The status of rules and routes.
    pub fn document(&self) -> GuardDoc {
        GuardDoc {
            blackholes: self.care.routes.discarded().len(),
            routes_restored: self.care.routes.restored(),
            ..self.care.guard.document()
        }
    }
}

/// Whether the kernel's policies determine the routes.
fn comes_from_kernel(config: &Config) -> bool {
    let has_auto = matches!(&config.inside.link, InsideLink::Tun(Tun { routes: Routes::Auto, .. }));
    has_auto && matches!(config.keys.source, KeySource::Xfrm(_))
}

fn protect_any(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| !entry.bypasses)
}

fn discarded(config: &Config) -> Vec<IpNet> {
    if planted(Fault::DiscardsServedOnly) { config.routes() } else { config.discarded() }
}

impl Care {
    /// Whether the kernel has no policies yet; `protects` says whether one that it has protects.
    fn waits_for(&self, protects: bool) -> bool {
        if protects {
            self.waits.store(false, Ordering::Relaxed);
        } else if self.waits.load(Ordering::Relaxed) && !self.said_waits.swap(true, Ordering::Relaxed) {
            tracing::info!(
                "the kernel has no protecting policy yet; the rules of the last start stay in force"
            );
        }
        self.waits.load(Ordering::Relaxed)
    }

    /// Maintains the host until the caretaker is dropped.
    fn look_until(&self, asleep: &Receiver<()>) {
        while asleep.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.look_after();
        }
    }

    /// The networks of this side.
    fn own(&self) -> Vec<(IpAddr, IpAddr)> {
        self.guard.map_entries(|entries| [false, true].map(|v6| Plan::own(entries, v6)).concat())
    }

    fn look_after(&self) {
        self.guard.look_after();
        self.routes.look_after(&self.own());
        self.look_after_offloads(false);
        self.save(false);
    }

    /// The same for the offloads alone; with `at_once` the interfaces are looked up in any case.
    fn look_after_offloads(&self, at_once: bool) {
        self.offloads.look_after(at_once, || self.guard.map_entries(Ends::of));
    }

    /// Policies that protect and are not in `entries`, the kernel's policies from now on, stay saved for a while.
    fn note_lost(&self, entries: &[Entry]) {
        self.with_saving(|saving| {
            self.guard.map_entries(|before| saving.lost.note_entries(before, entries, now()));
        });
    }

    fn with_saving(&self, work: impl FnOnce(&mut Saving)) {
        let mut saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        saving.as_mut().map(work);
    }

    /// Saves the rules and discarded networks if they have changed; unless `at_once`, not immediately after the last save.
    fn save(&self, at_once: bool) {
        self.with_saving(|saving| self.save_by(saving, at_once, now()));
    }

    fn save_by(&self, saving: &mut Saving, at_once: bool, now: Instant) {
        saving.looks = saving.looks.saturating_add(1);
        // Policies that were all removed together, as at a shutdown, stay saved until there are others.
        if self.guard.map_entries(protect_any) && saving.lost.expire(now) {
            saving.saved = None;
        }
        let versions = (self.guard.version(), self.routes.version());
        if saving.saved == Some(versions) || !at_once && saving.looks < SAVE_EVERY {
            return;
        }
        saving.looks = 0;
        let mut saved = Saved { discarded: self.routes.discarded(), ..self.guard.to_save() };
        saving.lost.add_to(&mut saved, self.routes.discards());
        // Nothing was saved before, and a text that could not be read at the start is not overwritten.
        let is_nothing = !protect_any(&saved.entries) && saved.discarded.is_empty();
        if self.is_the_kernels && saved.host.is_some() && is_nothing {
            saving.saved = Some(versions);
            return;
        }
        match saving.to.write(saved) {
            Ok(()) => (saving.saved, saving.has_failed) = (Some(versions), false),
            Err(error) => {
                if !std::mem::replace(&mut saving.has_failed, true) {
                    let path = saving.to.path().display();
                    tracing::warn!(%path, %error, "cannot save the guard's rules: after a boot, or with a configuration file that has errors, the host is open until the gateway has started; let the gateway's user write this file");
                }
            }
        }
    }
}

/// The machine's clock.
#[allow(clippy::disallowed_methods)] // it looks after the host, whose time is real
fn now() -> Instant {
    Instant::now()
}
