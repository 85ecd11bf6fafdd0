//! The guard's rules in the kernel: created at start, changed with the policies, checked while the gateway runs, and kept
//! when it ends or crashes, unless the configuration file says otherwise.
//!
//! They are created by netlink, which requires `CAP_NET_ADMIN` of the calling thread, as routes do.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_crypto::Direction;
use forebay_links::nftables::{Nftables, Table};
use forebay_planted::{Fault, planted};
use forebay_xfrm as xfrm;

use super::host::Firewall;
use super::offloads::Interfaces;
use super::ways::Named;
use crate::control::GuardDoc;
use forebay_config::{self as config, Config, GuardMode};
use forebay_guard::{Entry, FORGED, Host, LEAKED, Plan, Saved};

/// Number of checks between two attempts to create rules that could not be created.
const TRY_EVERY: u32 = 10;

/// The guard of a gateway.
pub struct Guard(Mutex<State>);

struct State {
    settings: config::Guard,
    host: Host,
    entries: Vec<Entry>,
    plan: Plan,
    firewall: Box<dyn Firewall>,
    /// `None` on a host without a firewall.
    interfaces: Option<Box<dyn Interfaces>>,
    named: Named,
    /// Networks of this side that are reached only through interfaces to peers or the default route.
    astray: Vec<String>,
    /// The table in the kernel, and its expected content; `None` before this process has made one, and if the kernel refused it.
    made: Option<(Table, u64)>,
    /// Incremented with each change of the guarded addresses.
    version: u64,
    error: Option<String>,
    /// Packets by counter, of earlier tables and of the present one.
    before: BTreeMap<String, u64>,
    now: BTreeMap<String, u64>,
    restored: u64,
    looks: u32,
    /// Whether the last check could not read the rules.
    is_unread: bool,
    /// Whether the rules were deleted because the gateway ends.
    has_ended: bool,
}

impl Guard {
    /// Makes the rules for `config` in `firewall`. If the kernel's policies determine them, the rules are those of `last`
    /// until [`Guard::set`] is called; without `last`, existing rules stay.
    ///
    /// # Errors
    /// If they cannot be made, and the file requires them.
    pub fn new(
        config: &Config,
        firewall: Box<dyn Firewall>,
        interfaces: Option<Box<dyn Interfaces>>,
        last: Vec<Entry>,
    ) -> io::Result<Guard> {
        let state = State {
            settings: config.guard.clone(),
            host: config.guard_host(),
            entries: last,
            plan: Plan::default(),
            firewall,
            interfaces,
            named: Named::of(config),
            astray: vec![],
            made: None,
            version: 0,
            error: None,
            before: BTreeMap::new(),
            now: BTreeMap::new(),
            restored: 0,
            looks: 0,
            is_unread: false,
            has_ended: false,
        };
        let guard = Guard(Mutex::new(state));
        guard.configure(config)?;
        Ok(guard)
    }

    /// Uses another version of the file.
    ///
    /// # Errors
    /// As [`Guard::new`].
    pub fn configure(&self, config: &Config) -> io::Result<()> {
        let state = &mut *self.lock();
        state.named = Named::of(config);
        let ways = state.host.ways.take();
        let (settings, host) = (config.guard.clone(), Host { ways, ..config.guard_host() });
        state.version += u64::from((&state.settings, &state.host) != (&settings, &host));
        let before = std::mem::replace(&mut state.host, host);
        state.settings = settings;
        if config.guard.mode == GuardMode::Off {
            // The table of an earlier run.
            state.delete();
        }
        let made = state.configured(config);
        // The rules for another interface would drop what comes by this one.
        let is_changed = state.made.is_some() || !state.settings.mode.makes();
        if is_changed && before.table != state.host.table {
            state.forget(&before.table);
        }
        made
    }

    /// Guards according to these policies from now on.
    pub fn set(&self, entries: Vec<Entry>) {
        let state = &mut *self.lock();
        if state.entries != entries || state.made.is_none() {
            state.entries = entries;
            // The error has been logged, and the attempt is repeated.
            let _ = state.make();
        }
    }

    /// Reads the counters, and creates the rules again if they were deleted or changed: a firewall script may begin with
    /// `flush ruleset`.
    pub fn look_after(&self) {
        let state = &mut *self.lock();
        state.looks = state.looks.wrapping_add(1);
        if !state.settings.mode.makes() {
            return;
        }
        let Some((table, content)) = &state.made else {
            if state.error.is_some() && state.looks.is_multiple_of(TRY_EVERY) {
                let _ = state.make();
            }
            return;
        };
        let counted = match state.firewall.counted(&table.name) {
            Ok(counted) => counted,
            Err(error) => {
                if !std::mem::replace(&mut state.is_unread, true) {
                    tracing::warn!(%error, "cannot read the guard's rules, which another program may have changed; see `nft list ruleset` and CAP_NET_ADMIN");
                }
                return;
            }
        };
        state.is_unread = false;
        if counted.content == Some(*content) {
            state.count(counted.packets);
            if state.find_ways() {
                let _ = state.make();
            }
            return;
        }
        tracing::warn!(table = %table.name, "the guard's rules were deleted or changed by another program; they are installed again. Have that program spare this table (`flush ruleset` deletes all)");
        state.restored += 1;
        state.made = None;
        let _ = state.make();
    }

    /// The result of `of` for the policies.
    pub fn map_entries<T>(&self, of: impl FnOnce(&[Entry]) -> T) -> T {
        of(&self.lock().entries)
    }

    /// A number that changes with the guarded addresses.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// The rules that the next start installs before it has read its file.
    pub fn to_save(&self) -> Saved {
        let state = &*self.lock();
        if !state.settings.mode.makes() || state.has_ended {
            return Saved::default();
        }
        let (host, entries) = (Some(state.host.clone()), state.entries.clone());
        Saved { host, entries, except: state.settings.except.clone(), ..Saved::default() }
    }

    /// Logs that the rules stay although the gateway ends with an error.
    pub fn say_that_they_stay(&self) {
        if let Some((Table { name, .. }, _)) = &self.lock().made {
            tracing::warn!(
                table = %name,
                "the gateway ends with an error; its guard rules stay and drop cleartext packets (to remove them: nft delete table inet {name})"
            );
        }
    }

    /// Deletes the rules of an earlier start that had another name.
    pub fn forget(&self, table: &str) {
        let state = &mut *self.lock();
        if table != state.host.table {
            state.forget(table);
        }
    }

    /// Deletes the rules if the file says so.
    pub fn end(&self) {
        let state = &mut *self.lock();
        if (state.settings.remove || planted(Fault::GuardRemoved)) && state.settings.mode.makes() {
            (state.has_ended, state.version) = (true, state.version + 1);
            state.delete();
        }
    }

    /// The status of the guard.
    pub fn document(&self) -> GuardDoc {
        let state = &*self.lock();
        let packets = |name| {
            let of = |counts: &BTreeMap<String, u64>| counts.get(name).copied().unwrap_or(0);
            of(&state.before) + of(&state.now)
        };
        let is_on = match state.settings.mode {
            GuardMode::Print => "print",
            GuardMode::Off => "off",
            GuardMode::Auto | GuardMode::Nftables if state.made.is_some() => "on",
            GuardMode::Auto | GuardMode::Nftables => "missing",
        };
        GuardDoc {
            state: is_on.to_owned(),
            error: state.error.clone(),
            table: state.host.table.clone(),
            ranges: state.plan.ranges(),
            any_to_any: state.plan.any_to_any,
            forged: packets(FORGED),
            leaked: packets(LEAKED),
            restored: state.restored,
            ..GuardDoc::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes the rules for the policies of `config`.
    fn configured(&mut self, config: &Config) -> io::Result<()> {
        if matches!(config.keys.source, config::KeySource::Static { .. }) {
            self.entries = config.guard_entries();
        } else if self.made.is_none() && self.entries.is_empty() {
            return self.probe();
        }
        self.make()
    }

    fn forget(&mut self, table: &str) {
        if let Err(error) = self.firewall.delete(table) {
            tracing::warn!(table, %error, "cannot delete the guard's rules for another interface; delete them by hand (nft delete table inet TABLE)");
        }
    }

    /// Installs the rules in one transaction.
    fn make(&mut self) -> io::Result<()> {
        let plan = Plan::of(&self.entries, &self.settings.except);
        if plan.any_to_any > self.plan.any_to_any {
            tracing::warn!(
                policies = plan.any_to_any,
                "policies protect any address from any; for these the guard cannot keep cleartext packets from bypassing the gateway"
            );
        }
        self.plan = plan;
        self.find_ways();
        if !self.settings.mode.makes() {
            (self.made, self.error) = (None, None);
            return Ok(());
        }
        let table = self.host.table(&self.plan);
        if self.made.as_ref().is_some_and(|(made, _)| *made == table) {
            return Ok(());
        }
        let done = self.apply(&table);
        match done {
            Ok(content) => {
                tracing::info!(table = %table.name, rules = table.rules(), "guard rules active");
                self.version += 1;
                (self.made, self.error) = (Some((table, content)), None);
                Ok(())
            }
            Err(error) => {
                if self.error.is_none() {
                    tracing::warn!(%error, "{}", MISSING);
                    self.version += 1;
                }
                (self.made, self.error) = (None, Some(error.to_string()));
                if self.settings.mode == GuardMode::Nftables { Err(error) } else { Ok(()) }
            }
        }
    }

    /// Looks up the interfaces through which decrypted packets may leave; returns whether they have changed.
    fn find_ways(&mut self) -> bool {
        let Some(interfaces) = &mut self.interfaces else { return false };
        if !self.settings.mode.makes() {
            return false;
        }
        let (ways, astray) = self.named.find(&self.host, &self.entries, &mut **interfaces);
        if astray != self.astray {
            match astray.as_slice() {
                [] => tracing::info!("all local networks have a route of their own again"),
                [first, ..] => tracing::warn!(
                    networks = astray.len(),
                    "local networks have no route of their own and would be reached by the way to peers or the default route, as {first}: \
                     decrypted packets for them are dropped. Bring their interface up, or name it in `local_interfaces` of [guard]"
                ),
            }
            self.astray = astray;
        }
        let is_new = self.host.ways.as_ref() != Some(&ways);
        self.version += u64::from(is_new);
        self.host.ways = Some(ways);
        is_new
    }

    /// The content that the kernel has afterwards.
    fn apply(&mut self, table: &Table) -> io::Result<u64> {
        if let Some((made, _)) = self.made.as_ref().filter(|(made, _)| table.is_like(made)) {
            // If the kernel has another content, the table is made again.
            if let Ok(content) = self.firewall.change(made, table) {
                return Ok(content);
            }
        }
        if planted(Fault::GuardNotInstalled) {
            return Ok(0);
        }
        self.firewall.replace(table)
    }

    /// Adds up counters; a counter that has decreased began again at zero.
    fn count(&mut self, packets: BTreeMap<String, u64>) {
        for (name, &counted) in &self.now {
            if packets.get(name).is_none_or(|&packets| packets < counted) {
                *self.before.entry(name.clone()).or_default() += counted;
            }
        }
        self.now = packets;
    }

    /// Checks that rules can be made if the file requires them.
    fn probe(&mut self) -> io::Result<()> {
        if self.settings.mode != GuardMode::Nftables {
            return Ok(());
        }
        self.firewall.counted(&self.host.table).map(drop)
    }

    fn delete(&mut self) {
        let deleted = self.firewall.delete(&self.host.table);
        match deleted {
            Ok(()) => self.made = None,
            // Without nf_tables or the permission for it, nothing was made.
            Err(error) => tracing::debug!(%error, "cannot delete the guard's rules"),
        }
    }
}

const MISSING: &str = "cannot create the guard's nftables rules: cleartext packets can bypass the gateway; \
                       load the output of `forebay check --print-rules`, or set `mode` of `[guard]`";

/// The reason for which this machine cannot install the rules; `None` if it can, if the file does not require it, or if this process has
/// no permission to find out.
pub fn lacks_guard(config: &Config) -> Option<io::Error> {
    if !config.guard.mode.makes() {
        return None;
    }
    let counted = Nftables::open().and_then(|mut nftables| nftables.counted(&config.guard_host().table));
    counted.err().filter(|error| error.kind() != io::ErrorKind::PermissionDenied)
}

/// Converts the kernel's policies, in the order in which they are searched, into entries for the guard.
pub fn entries<'a>(policies: impl Iterator<Item = &'a xfrm::Policy>) -> Vec<Entry> {
    let entry = |policy: &xfrm::Policy| {
        let (bypasses, interface) = match &policy.action {
            xfrm::PolicyAction::Protect(_) => (false, None),
            xfrm::PolicyAction::Bypass => (true, None),
            xfrm::PolicyAction::Discard => return None,
            xfrm::PolicyAction::Refused(refused) => (refused.bypasses, refused.interface),
        };
        // If a bypass policy was refused for another reason, its selectors are wider here than in the kernel.
        let is_wider =
            matches!(policy.action, xfrm::PolicyAction::Refused(_)) && bypasses && interface.is_none();
        let direction = if policy.way == xfrm::Way::Out { Direction::Seal } else { Direction::Open };
        let (local_ts, remote_ts) = (policy.local_ts.clone(), policy.remote_ts.clone());
        let peers = match &policy.action {
            xfrm::PolicyAction::Protect(templates) => {
                templates.iter().filter_map(|one| one.addresses).collect()
            }
            _ => vec![],
        };
        let peer = |(source, destination)| if direction == Direction::Seal { destination } else { source };
        let peers = peers.into_iter().map(peer).collect();
        (!is_wider).then_some(Entry { direction, bypasses, local_ts, remote_ts, interface, peers })
    };
    policies.filter_map(entry).collect()
}

/// The kernel's policies at this moment, for [`guard`](forebay_guard).
///
/// # Errors
/// Without XFRM in the kernel or `CAP_NET_ADMIN`.
pub fn kernel_entries(options: &config::Xfrm) -> io::Result<Vec<Entry>> {
    let mark = options.mark.map(|mark| xfrm::Mark { value: mark.value, mask: mark.mask });
    let filter = xfrm::Filter { mark, if_id: options.if_id, allow_weak: false };
    let mut mirror = xfrm::Mirror::open(filter, options.netlink_buffer)?;
    let mut policies = BTreeMap::new();
    // The kernel answers at once: a dump that never ends is one that changes all the time.
    for _ in 0..10_000 {
        let mut events = Vec::new();
        mirror.poll(&mut events)?;
        for event in events {
            match event {
                xfrm::Event::PolicyAdded(policy) | xfrm::Event::PolicyUpdated(policy) => {
                    policies.insert((policy.way != xfrm::Way::Out, policy.priority, policy.index), *policy);
                }
                xfrm::Event::PolicyRefused { policy, .. } => {
                    policies.insert((policy.way != xfrm::Way::Out, policy.priority, policy.index), *policy);
                }
                xfrm::Event::PolicyDeleted(index) => policies.retain(|(.., other), _| *other != index),
                xfrm::Event::Synchronised => return Ok(entries(policies.values())),
                _ => {}
            }
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "the kernel's policies changed during every attempt to read them",
    ))
}
