//! A gateway of a cluster: keeps its lease, observes the other gateways, claims the shares that it should serve, and hands over those that
//! it should not serve any more. It has no threads and no clock: [`Node::step`] is given the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_planted::{Fault, planted};
use forebay_state::{ClusterNote, IvStore, IvStoreError, Record};

use crate::etcd::{Etcd, EtcdError, Found, Operation, Pair, Reply, Transaction};
use crate::layout::{Layout, MemberDoc, SCHEMA, SettingsDoc, share_of};
use crate::shares::{Shares, target};

/// Maximum number of shares that one transaction claims or hands over: etcd accepts 128 operations.
const SHARES_AT_ONCE: usize = 40;
/// Maximum number of shares whose records one transaction reads.
const READ_AT_ONCE: usize = 16;

/// The shares that a data plane serves, each with the term of ownership under which it began.
pub type Served = BTreeMap<u16, u64>;

/// Errors that prevent a gateway from joining the cluster.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// A certificate or a key.
    Client(crate::ClientError),
    /// Another running gateway has the name: the name, and its host.
    NameTaken(String, String),
    /// The cluster has other settings: those in etcd, and those of the file.
    Settings(String, String),
    /// The store is another one than before: its identity, and the earlier one.
    OtherStore(String, String),
    /// The store is older than before: its revision, and the earlier one.
    OlderStore(i64, i64),
    /// The state directory.
    State(IvStoreError),
    /// A file moves an SA or a cipher key to another share: the name of the SA, and the move.
    Moved(String, crate::places::Moved),
    /// Two SAs that may be served by different gateways have one cipher key.
    SharedKey(String, String),
    /// A thread cannot be started.
    System(std::io::Error),
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::Client(error) => error.fmt(f),
            ClusterError::NameTaken(name, host) => {
                write!(f, "another gateway called `{name}` runs on host {host}")
            }
            ClusterError::Settings(there, here) => {
                write!(f, "the cluster's gateways have {there}, this file says {here}")
            }
            ClusterError::OtherStore(now, before) => {
                write!(f, "this is another etcd: its cluster ID is {now}, it was {before}")
            }
            ClusterError::OlderStore(now, before) => {
                write!(f, "etcd has lost changes: its revision is {now}, it was {before}")
            }
            ClusterError::State(error) => error.fmt(f),
            ClusterError::SharedKey(one, other) => {
                write!(f, "the SAs `{one}` and `{other}` have one key and belong to different shares")
            }
            ClusterError::Moved(name, moved) => write!(f, "the SA `{name}` changes its share: {moved}"),
            ClusterError::System(error) => write!(f, "cannot start a thread of the cluster: {error}"),
        }
    }
}

impl std::error::Error for ClusterError {}

impl miette::Diagnostic for ClusterError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(match self {
            ClusterError::Client(error) => return error.help(),
            ClusterError::State(error) => return error.help(),
            ClusterError::NameTaken(..) => "give every gateway a `name` of its own in `[cluster]`",
            ClusterError::Settings(..) => {
                "set `shares` and `share_by` as on the other gateways, or another `prefix` for another cluster"
            }
            ClusterError::OtherStore(..) => {
                "correct `endpoints`. If etcd was set up anew, give all SAs new keys and run \
                 `forebay state accept`: which numbers other gateways have used is not known"
            }
            ClusterError::OlderStore(..) => {
                "etcd was restored from a backup: give all SAs new keys and run `forebay state accept`: which numbers other gateways have used since the backup is not known"
            }
            ClusterError::Moved(..) => {
                "give the SA new keys, or let `local`, `remote` or SPI, whichever `share_by` names, be as they were: another share has no \
                 record of the numbers that were used and of the packets that were received"
            }
            ClusterError::SharedKey(..) => "give each SA a key of its own",
            ClusterError::System(_) => "see the limits of the process (`ulimit -u`)",
        }))
    }
}

/// Errors of a step.
#[derive(Debug)]
pub enum Trouble {
    /// An error of the store: try again.
    Etcd(EtcdError),
    /// An error that does not end by itself.
    Fault(ClusterError),
    /// A damaged record.
    Damaged(String),
}

impl From<EtcdError> for Trouble {
    fn from(error: EtcdError) -> Trouble {
        Trouble::Etcd(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Etcd(error) => error.fmt(f),
            Trouble::Fault(error) => error.fmt(f),
            Trouble::Damaged(key) => {
                write!(f, "the record {key} in etcd is damaged; its share is not served")
            }
        }
    }
}

/// A share that this gateway owns.
#[derive(Clone, Debug)]
pub struct Held {
    /// The term of ownership: a new number whenever the gateway becomes the owner.
    pub term: u64,
    /// The revision of its claim, which every record compares.
    pub fence: i64,
    /// Whether a record without an answer may still be written: the claim then has to be renewed before the next record.
    pub doubtful: bool,
    /// The gateway that gets it when the data plane here does not serve it any more.
    leaving: Option<String>,
    /// Its records, until the data plane has read them.
    records: Vec<Record>,
}

/// State that the node, the recorder and the data plane share.
#[derive(Debug, Default)]
pub struct State {
    /// The shares that this gateway owns.
    pub held: BTreeMap<u16, Held>,
    /// The shares that the data plane serves.
    serving: Served,
    terms: u64,
    /// When etcd answered last.
    pub contact: Option<Duration>,
    /// The revision of etcd at the last read of members and owners.
    pub looked: i64,
    /// Live gateways, including this one.
    pub members: Vec<String>,
    /// Shares that no gateway owns.
    pub unowned: usize,
    /// Number of shares that this gateway began to own; the last time, and the reason.
    pub taken: u64,
    /// See `taken`.
    pub last: Option<(Duration, String)>,
    /// Transactions with records, and records in them.
    pub written: (u64, u64),
    /// Time of such a transaction, smoothed.
    pub takes: Duration,
    /// Whether the gateway leaves the cluster.
    pub leaves: bool,
    /// The current problem, as text.
    pub trouble: Option<String>,
}

impl State {
    /// The shares that the data plane should serve.
    pub fn wanted(&self) -> Served {
        let stay = self.held.iter().filter(|(_, held)| held.leaving.is_none());
        stay.map(|(&share, held)| (share, held.term)).collect()
    }

    /// A share that this gateway owns in the same term of ownership in which the data plane serves it. In another term, the data plane's
    /// knowledge is older than records that others have made since.
    pub fn held_as_served(&self, share: u16) -> Option<&Held> {
        self.held.get(&share).filter(|held| self.serving.get(&share) == Some(&held.term))
    }

    /// The shares that the data plane serves.
    pub fn serving(&self) -> &Served {
        &self.serving
    }

    /// The records of shares that the data plane is about to serve.
    pub fn records(&self, shares: &BTreeSet<u16>) -> Vec<Record> {
        let held = self.held.iter().filter(|(share, _)| shares.contains(share));
        let held = held.filter(|_| !planted(Fault::SharesBeginAnew));
        held.flat_map(|(_, held)| held.records.iter().cloned()).collect()
    }

    /// The data plane serves these from now on, and no others.
    pub fn serve(&mut self, serving: Served) {
        for share in serving.keys() {
            if let Some(held) = self.held.get_mut(share) {
                held.records = Vec::new();
            }
        }
        self.serving = serving;
    }
}

/// The state, shared by threads.
pub type Shared = Arc<Mutex<State>>;

/// The state, locked.
pub fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The identity of a node.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// A random name of the process.
    pub process: String,
    /// A random name for a state directory that has none yet.
    pub new_instance: String,
    /// Its host.
    pub host: String,
    /// The division of SAs into shares.
    pub shares: Shares,
    /// The time of its lease.
    pub lease: Duration,
}

impl Identity {
    /// The value of the keys of its shares.
    pub fn owner(&self) -> String {
        format!("{} {}", self.process, self.name)
    }

    /// Whether a claim names this process as owner, by its first words.
    fn is_own(&self, claim: &str) -> bool {
        let owner = self.owner();
        claim.strip_prefix(&owner).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }
}

/// The value of a claim that its owner has renewed in this term. A claim that another gateway has handed over has another value, so that
/// it is not mistaken for a renewal.
pub fn renewal(owner: &str, term: u64) -> String {
    format!("{owner} {term}")
}

/// The owner of a share, from its key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    process: String,
    name: String,
}

impl Owner {
    fn parse(value: &str) -> Owner {
        let mut words = value.split(' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        Owner { process: word(), name: word() }
    }
}

/// A gateway of a cluster. See the module.
#[derive(Debug)]
pub struct Node {
    identity: Identity,
    layout: Layout,
    etcd: Arc<dyn Etcd>,
    store: IvStore,
    state: Shared,
    note: Option<ClusterNote>,
    lease: Option<i64>,
    /// Until then, this gateway does not claim shares whose last owner was another one: after a failure of etcd all
    /// gateways come back, and the first one should not take all shares.
    grace: Duration,
    /// The names of the last owners at the time when it joined.
    claims: BTreeMap<u16, String>,
    /// When the lease was renewed last.
    kept: Duration,
    /// Its own entry among the members, and when it announced that it leaves.
    member: Option<MemberDoc>,
    leaves: Option<Duration>,
    /// Numbers and last changes of members and owners at the last read.
    seen: Option<[(u64, i64); 2]>,
    /// Members with their leases.
    members: BTreeMap<String, (MemberDoc, i64)>,
    owners: BTreeMap<u16, Owner>,
}

impl Node {
    /// A node that has not connected to etcd yet.
    pub fn new(identity: Identity, prefix: &str, etcd: Arc<dyn Etcd>, store: IvStore, state: Shared) -> Node {
        Node {
            identity,
            layout: Layout(prefix.to_owned()),
            etcd,
            store,
            state,
            note: None,
            lease: None,
            grace: Duration::ZERO,
            claims: BTreeMap::new(),
            kept: Duration::ZERO,
            member: None,
            leaves: None,
            seen: None,
            members: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    /// Time between two renewals of the lease.
    pub fn beat(&self) -> Duration {
        self.identity.lease / 4
    }

    /// Whether it is a member of the cluster.
    pub fn is_member(&self) -> bool {
        self.lease.is_some()
    }

    /// Whether shares are about to move, so that it should read again soon.
    pub fn expects(&self) -> bool {
        let names = self.servers();
        let own = self.identity.name.as_str();
        self.is_member()
            && (0..self.identity.shares.count).any(|share| {
                let is_mine =
                    self.owners.get(&share).is_some_and(|owner| owner.process == self.identity.process);
                (target(share, names.iter().copied()) == Some(own)) != is_mine
            })
    }

    /// Does what is due: `now` is monotonic, `unix` is the time of day for the status.
    ///
    /// # Errors
    /// The current problem; call it again then.
    pub fn step(&mut self, now: Duration, unix: Duration) -> Result<(), Trouble> {
        match self.lease {
            None => self.register(now)?,
            Some(lease) if now.saturating_sub(self.kept) >= self.beat() => {
                if self.etcd.keep(lease)? {
                    self.kept = now;
                } else {
                    tracing::warn!(
                        "this gateway's lease has ended; others may have taken over its shares: look at the way to etcd and its load"
                    );
                    self.lease = None;
                    self.register(now)?;
                }
            }
            Some(_) => {}
        }
        if lock(&self.state).leaves && self.leaves.is_none() {
            self.say_that_it_leaves(now)?;
        }
        self.look()?;
        self.decide(now, unix)?;
        lock(&self.state).contact = Some(now);
        Ok(())
    }

    /// Becomes a member.
    fn register(&mut self, now: Duration) -> Result<(), Trouble> {
        let (settings_key, member_key) = (self.layout.settings(), self.layout.member(&self.identity.name));
        let mut read = [&settings_key, &member_key].map(|key| Operation::Get { key: key.clone() }).to_vec();
        read.push(Operation::List { prefix: self.layout.claims() });
        let reply = self.etcd.transact(&Transaction::read(read))?;
        let instance = self.know(&reply)?;
        self.remember()?;
        let shares = self.identity.shares;
        let settings =
            SettingsDoc { schema: SCHEMA, shares: shares.count, share_by: shares.by.word().to_owned() };
        let first = |found: Option<&Found>| found.and_then(|found| found.pairs.first()).cloned();
        let there = first(reply.found.first());
        if let Some(there) = &there
            && serde_json::from_str::<SettingsDoc>(&there.value).ok().as_ref() != Some(&settings)
        {
            let here = json(&settings);
            return Err(Trouble::Fault(ClusterError::Settings(there.value.clone(), here)));
        }
        let claims = reply.found.get(2).into_iter().flat_map(|found| &found.pairs);
        let name = |pair: &Pair| Some((share_of(&pair.key)?, Owner::parse(&pair.value).name));
        self.claims = claims.filter_map(name).collect();
        self.grace = now + self.identity.lease;
        let mut compare = vec![(settings_key.clone(), there.as_ref().map_or(0, |pair| pair.modified))];
        let mut member_revision = 0;
        if let Some(Pair { value, modified, lease, .. }) = first(reply.found.get(1)) {
            let member: Option<MemberDoc> = serde_json::from_str(&value).ok();
            match member {
                // An earlier request without an answer was performed.
                Some(member) if member.process == self.identity.process => {
                    (self.lease, self.kept, self.seen) = (Some(lease), now, None);
                    self.member = Some(member);
                    return Ok(());
                }
                // The previous process, which has ended: no other gateway has this state directory.
                Some(member) if member.instance == instance => self.etcd.revoke(lease)?,
                Some(member) => {
                    let name = self.identity.name.clone();
                    return Err(Trouble::Fault(ClusterError::NameTaken(name, member.host)));
                }
                None => member_revision = modified,
            }
        }
        compare.push((member_key.clone(), member_revision));
        let lease = self.etcd.grant(self.identity.lease.as_secs().max(1))?;
        let member = MemberDoc {
            process: self.identity.process.clone(),
            instance,
            host: self.identity.host.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            leaves: false,
        };
        let mut then = vec![Operation::Put { key: member_key, value: json(&member), lease }];
        if there.is_none() {
            then.push(Operation::Put { key: settings_key, value: json(&settings), lease: 0 });
        }
        let reply = self.etcd.transact(&Transaction { compare, then, otherwise: vec![] })?;
        if !reply.succeeded {
            self.etcd.revoke(lease)?;
            return Err(Trouble::Etcd(EtcdError::Refused("another gateway was faster".to_owned())));
        }
        (self.lease, self.kept, self.seen) = (Some(lease), now, None);
        (self.member, self.leaves) = (Some(member), None);
        Ok(())
    }

    /// Announces that it leaves, so that the others read often, and take its shares at once when it has released them.
    fn say_that_it_leaves(&mut self, now: Duration) -> Result<(), Trouble> {
        let (Some(lease), Some(member)) = (self.lease, self.member.clone()) else { return Ok(()) };
        let key = self.layout.member(&self.identity.name);
        let put = Operation::Put { key, value: json(&MemberDoc { leaves: true, ..member }), lease };
        self.etcd.transact(&Transaction { then: vec![put], ..Transaction::default() })?;
        self.leaves = Some(now);
        Ok(())
    }

    /// The gateways that serve shares.
    fn servers(&self) -> Vec<&str> {
        let stay = self.members.iter().filter(|(_, (member, _))| !member.leaves);
        stay.map(|(name, _)| name.as_str()).collect()
    }

    /// Checks that the store is the same as before, and returns the name of the state directory.
    fn know(&mut self, reply: &Reply) -> Result<String, Trouble> {
        if self.note.is_none() {
            let noted = self.store.cluster_note();
            self.note = noted.map_err(|error| Trouble::Fault(ClusterError::State(error)))?;
        }
        let new = || ClusterNote {
            instance: self.identity.new_instance.clone(),
            store: reply.store.clone(),
            revision: reply.revision,
        };
        let note = self.note.get_or_insert_with(new);
        let other = if note.store != reply.store {
            Some(ClusterError::OtherStore(reply.store.clone(), note.store.clone()))
        } else if note.revision > reply.revision {
            Some(ClusterError::OlderStore(reply.revision, note.revision))
        } else {
            None
        };
        if let Some(error) = other {
            let now = ClusterNote { store: reply.store.clone(), revision: reply.revision, ..note.clone() };
            let accepted = self.store.take_acceptance(|| self.store.remember_cluster(&now));
            if !accepted.map_err(|error| Trouble::Fault(ClusterError::State(error)))? {
                return Err(Trouble::Fault(error));
            }
            tracing::warn!(%error, "an operator has accepted etcd as it is");
            *note = now;
        }
        note.revision = reply.revision;
        Ok(note.instance.clone())
    }

    /// Records the identity of the store for later starts.
    fn remember(&self) -> Result<(), Trouble> {
        let Some(note) = &self.note else { return Ok(()) };
        self.store.remember_cluster(note).map_err(|error| Trouble::Fault(ClusterError::State(error)))
    }

    /// Reads members and owners, if anything has changed.
    fn look(&mut self) -> Result<(), Trouble> {
        let prefixes = [self.layout.members(), self.layout.owners()];
        let newest = prefixes.clone().map(|prefix| Operation::Newest { prefix });
        let reply = self.etcd.transact(&Transaction::read(newest.to_vec()))?;
        self.know(&reply)?;
        let of = |found: &Found| (found.count, found.pairs.first().map_or(0, |pair| pair.modified));
        let [Some(members), Some(owners)] = [0, 1].map(|at| reply.found.get(at).map(of)) else {
            return Ok(());
        };
        if self.seen == Some([members, owners]) {
            lock(&self.state).looked = reply.revision;
            return Ok(());
        }
        let list = prefixes.map(|prefix| Operation::List { prefix });
        let reply = self.etcd.transact(&Transaction::read(list.to_vec()))?;
        let [Some(members), Some(owners)] = [0, 1].map(|at| reply.found.get(at)) else { return Ok(()) };
        let newest = |found: &Found| {
            (found.count, found.pairs.iter().map(|pair| pair.modified).max().unwrap_or_default())
        };
        let seen = [newest(members), newest(owners)];
        let prefix = self.layout.members();
        let member = |pair: &Pair| {
            let name = pair.key.strip_prefix(&prefix)?.to_owned();
            Some((name, (serde_json::from_str(&pair.value).ok()?, pair.lease)))
        };
        self.members = members.pairs.iter().filter_map(member).collect();
        let owner = |pair: &Pair| Some((share_of(&pair.key)?, Owner::parse(&pair.value)));
        self.owners = owners.pairs.iter().filter_map(owner).collect();
        self.seen = Some(seen);
        self.remember()?;
        let mut state = lock(&self.state);
        state.looked = reply.revision;
        state.members = self.members.keys().cloned().collect();
        state.unowned = usize::from(self.identity.shares.count).saturating_sub(self.owners.len());
        Ok(())
    }

    /// Claims, adopts, hands over and releases shares according to the last read.
    fn decide(&mut self, now: Duration, unix: Duration) -> Result<(), Trouble> {
        let own = &self.identity;
        // Its own key may have disappeared already.
        if !self.members.contains_key(&own.name) {
            self.seen = None;
            return Ok(());
        }
        // The others have to know that it leaves before it releases a share.
        if self.leaves.is_some_and(|said| now.saturating_sub(said) <= self.beat() * 3 / 2) {
            return Ok(());
        }
        let names = self.servers();
        let (mut resumed, mut claimed, mut adopted, mut handed) = (vec![], vec![], vec![], vec![]);
        let mut state = lock(&self.state);
        for share in 0..own.shares.count {
            let wanted = target(share, names.iter().copied());
            let is_wanted = wanted == Some(own.name.as_str());
            let owner = self.owners.get(&share);
            let is_served = state.serving.contains_key(&share);
            match (owner, state.held.get_mut(&share)) {
                (None, Some(_)) => resumed.push(share),
                (None, None) if is_wanted && (now >= self.grace || !self.is_of_another(share)) => {
                    claimed.push(share)
                }
                (None, None) => {}
                (Some(owner), Some(held)) if owner.process == own.process => {
                    held.leaving = wanted.filter(|_| !is_wanted).map(str::to_owned);
                    if held.leaving.is_some() && !is_served {
                        handed.push(share);
                    }
                }
                (Some(owner), None) if owner.process == own.process => adopted.push(share),
                (Some(owner), Some(_)) => {
                    tracing::warn!(share, owner = owner.name, "another gateway has taken over a share");
                    state.held.remove(&share);
                }
                (Some(_), None) => {}
            }
        }
        drop(state);
        resumed.into_iter().try_for_each(|share| self.resume(share))?;
        claimed.chunks(SHARES_AT_ONCE).try_for_each(|shares| self.claim(shares))?;
        adopted.chunks(READ_AT_ONCE).try_for_each(|shares| self.adopt(shares, unix))?;
        handed.chunks(SHARES_AT_ONCE).try_for_each(|shares| self.hand_over(shares))
    }

    /// Whether the last owner of a share, when this gateway joined, was another one.
    fn is_of_another(&self, share: u16) -> bool {
        self.claims.get(&share).is_some_and(|name| *name != self.identity.name)
    }

    /// Claims shares without an owner. They are adopted when a read shows that they are its own, regardless of the answer here.
    fn claim(&mut self, shares: &[u16]) -> Result<(), Trouble> {
        let Some(lease) = self.lease else { return Ok(()) };
        self.seen = None;
        let value = self.identity.owner();
        let compare = shares.iter().map(|&share| (self.layout.owner(share), 0)).collect();
        let both = |share: u16| {
            let put = |key, lease| Operation::Put { key, value: value.clone(), lease };
            [put(self.layout.owner(share), lease), put(self.layout.claim(share), 0)]
        };
        let then = shares.iter().flat_map(|&share| both(share)).collect();
        self.etcd.transact(&Transaction { compare, then, otherwise: vec![] })?;
        Ok(())
    }

    /// Continues with a share whose key disappeared with an earlier lease, if no gateway has claimed it since.
    fn resume(&mut self, share: u16) -> Result<(), Trouble> {
        let Some(lease) = self.lease else { return Ok(()) };
        self.seen = None;
        let held = lock(&self.state).held.get(&share).map(|held| (held.fence, held.term));
        let Some((fence, term)) = held else { return Ok(()) };
        let value = self.identity.owner();
        let reply = self.etcd.transact(&Transaction {
            compare: vec![(self.layout.owner(share), 0), (self.layout.claim(share), fence)],
            then: vec![Operation::Put { key: self.layout.owner(share), value, lease }],
            otherwise: vec![Operation::Get { key: self.layout.claim(share) }],
        })?;
        if reply.succeeded {
            tracing::info!(share, "this gateway goes on with a share that nobody has taken over");
            return Ok(());
        }
        let claim = reply.found.first().and_then(|found| found.pairs.first());
        let mut state = lock(&self.state);
        match claim.filter(|claim| claim.value == renewal(&self.identity.owner(), term)) {
            // The recorder has renewed it.
            Some(claim) => {
                if let Some(held) = state.held.get_mut(&share) {
                    held.fence = claim.modified;
                }
            }
            None => {
                tracing::warn!(share, "another gateway has had a share of this one");
                state.held.remove(&share);
            }
        }
        Ok(())
    }

    /// Reads the records of shares whose keys name it as owner.
    fn adopt(&mut self, shares: &[u16], unix: Duration) -> Result<(), Trouble> {
        let both = |share: u16| {
            [
                Operation::Get { key: self.layout.claim(share) },
                Operation::List { prefix: self.layout.records(share) },
            ]
        };
        let read = shares.iter().flat_map(|&share| both(share)).collect();
        let reply = self.etcd.transact(&Transaction::read(read))?;
        let mut damaged = None;
        let mut count = 0;
        for (&share, found) in shares.iter().zip(reply.found.chunks(2)) {
            let [claim, records] = found else { continue };
            let claim = claim.pairs.first().filter(|claim| self.identity.is_own(&claim.value));
            let Some(claim) = claim else {
                self.seen = None;
                continue;
            };
            let parse = |pair: &Pair| {
                self.layout.parse(share, &pair.key, &pair.value).ok_or_else(|| pair.key.clone())
            };
            let records: Vec<Record> = match records.pairs.iter().map(parse).collect() {
                Ok(records) => records,
                Err(key) => {
                    damaged = Some(key);
                    continue;
                }
            };
            let mut state = lock(&self.state);
            state.terms += 1;
            let held =
                Held { term: state.terms, fence: claim.modified, doubtful: false, leaving: None, records };
            state.held.insert(share, held);
            count += 1;
        }
        if count > 0 {
            let mut state = lock(&self.state);
            state.taken += count;
            let why = format!("{} of {} gateways live", state.members.len(), state.members.len().max(1));
            state.last = Some((unix, why));
        }
        damaged.map_or(Ok(()), |key| Err(Trouble::Damaged(key)))
    }

    /// Hands over shares that the data plane does not serve any more to the gateways that should have them.
    fn hand_over(&mut self, shares: &[u16]) -> Result<(), Trouble> {
        self.seen = None;
        let transaction = |shares: &[u16]| {
            let state = lock(&self.state);
            let mut all = Transaction::default();
            for share in shares {
                let Some(held) = state.held.get(share) else { continue };
                let to = held.leaving.as_ref().and_then(|name| Some((name, self.members.get(name)?)));
                let Some((name, (member, lease))) = to else { continue };
                let value = format!("{} {name}", member.process);
                all.compare.push((self.layout.claim(*share), held.fence));
                all.then.push(Operation::Put {
                    key: self.layout.owner(*share),
                    value: value.clone(),
                    lease: *lease,
                });
                all.then.push(Operation::Put { key: self.layout.claim(*share), value, lease: 0 });
            }
            all
        };
        let reply = self.etcd.transact(&transaction(shares));
        if matches!(&reply, Ok(reply) if reply.succeeded) {
            shares.iter().for_each(|share| drop(lock(&self.state).held.remove(share)));
            return Ok(());
        }
        if let Err(error @ (EtcdError::Unanswered(_) | EtcdError::Unreachable(_))) = reply {
            return Err(error.into());
        }
        // A claim has changed, or a gateway has left meanwhile: hand over each share by itself.
        for share in shares {
            let one = transaction(&[*share]);
            let reply = match self.etcd.transact(&one) {
                Err(EtcdError::Refused(_)) => {
                    let then = vec![Operation::Delete { key: self.layout.owner(*share) }];
                    self.etcd.transact(&Transaction { compare: one.compare, then, otherwise: vec![] })?
                }
                reply => reply?,
            };
            if !reply.succeeded {
                let read = Transaction::read(vec![Operation::Get { key: self.layout.claim(*share) }]);
                let reply = self.etcd.transact(&read)?;
                let claim = reply.found.first().and_then(|found| found.pairs.first());
                let mut state = lock(&self.state);
                if let (Some(claim), Some(held)) = (claim, state.held.get_mut(share))
                    && claim.value == renewal(&self.identity.owner(), held.term)
                {
                    // The recorder has renewed it.
                    held.fence = claim.modified;
                    continue;
                }
            }
            lock(&self.state).held.remove(share);
        }
        Ok(())
    }

    /// Leaves the cluster after the end of the data plane: the others get the shares at once.
    ///
    /// # Errors
    /// If etcd does not answer: the others then get them when the lease ends.
    pub fn leave(&mut self) -> Result<(), Trouble> {
        lock(&self.state).serving.clear();
        self.members.remove(&self.identity.name);
        let names = self.servers();
        let mut shares = Vec::new();
        for (&share, held) in &mut lock(&self.state).held {
            held.leaving = target(share, names.iter().copied()).map(str::to_owned);
            shares.extend(held.leaving.as_ref().map(|_| share));
        }
        shares.chunks(SHARES_AT_ONCE).try_for_each(|shares| self.hand_over(shares))?;
        if let Some(lease) = self.lease.take() {
            self.etcd.revoke(lease)?;
        }
        Ok(())
    }
}

/// The document as JSON; these documents consist of texts and numbers, so serialisation cannot fail.
fn json(document: &impl serde::Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}
