//! A gateway of a cluster with its thread and its clock. The owner of the data plane reads which shares to serve.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_crypto::Direction;
use forebay_privileges as privileges;
use forebay_sas::SasFile;
use forebay_state::{IvStore, IvStoreError, KeyId, NotNoted, Plausible, SequenceId, WindowNote};

use crate::client::Client;
use crate::etcd::Etcd;
use crate::layout::Layout;
use crate::node::{ClusterError, Identity, Node, Served, Shared, Trouble, lock};
use crate::places::{Id, Moved, PlaceError};
use crate::recorder::{Recorder, lock_places};
use crate::shares::Shares;

/// Time between two reads while shares are about to move.
const SOON: Duration = Duration::from_millis(50);
/// Time between two attempts during a problem.
const AGAIN: Duration = Duration::from_millis(200);
/// Time between two log messages about the same problem.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// Wakes the thread.
type Waker = mpsc::Sender<()>;

/// The status of a gateway of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// The gateway's name.
    pub name: String,
    /// The live gateways, including this one.
    pub members: Vec<String>,
    /// Shares into which the SAs are divided.
    pub shares: u16,
    /// The shares that this gateway serves.
    pub serves: Vec<u16>,
    /// Number of shares without an owner at the last read.
    pub unowned: usize,
    /// Time since etcd answered last; `None` before its first answer.
    pub silence: Option<Duration>,
    /// Whether that time is so long that others may take over.
    pub is_cut_off: bool,
    /// Transactions with records, and records in them.
    pub written: (u64, u64),
    /// Time of such a transaction, smoothed.
    pub takes: Duration,
    /// Number of shares that it has begun to own since its start.
    pub taken: u64,
    /// The last time, since the Unix epoch, and the number of live gateways.
    pub last: Option<(Duration, String)>,
    /// The current problem.
    pub trouble: Option<String>,
}

/// A gateway of a cluster. Its thread ends when it is dropped.
pub struct Cluster {
    name: String,
    lease: Duration,
    shares: Shares,
    state: Shared,
    /// The records here, without etcd.
    store: IvStore,
    recorder: Recorder,
    node: Arc<Mutex<Node>>,
    /// A monotonic clock.
    clock: fn() -> Duration,
    /// The thread, and what wakes it.
    thread: Mutex<Option<(Arc<Waker>, JoinHandle<()>)>>,
}

/// Monotonic time.
#[allow(clippy::disallowed_methods)] // leases are kept by it; the node is told it
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[allow(clippy::disallowed_methods)] // at the start, which nothing else waits for
fn rest(time: Duration) {
    std::thread::sleep(time);
}

/// A random name.
fn random_name() -> String {
    [(); 2].map(|()| format!("{:016x}", RandomState::new().build_hasher().finish())).concat()
}

/// The name of this host, for messages.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "without a name".to_owned(),
        name => name.to_owned(),
    }
}

impl Cluster {
    /// Joins the cluster of `config`, with the records in `store`. If etcd does not answer, it joins when it does.
    ///
    /// # Errors
    /// Errors that do not end by themselves: see [`ClusterError`].
    pub fn start(
        config: &forebay_config::Cluster,
        store: IvStore,
        unix_time: fn() -> Duration,
    ) -> Result<Cluster, ClusterError> {
        let client = Arc::new(Client::open(config).map_err(ClusterError::Client)?);
        let names = [(); 2].map(|()| random_name());
        let cluster = Cluster::stepped(config, store, client.clone(), names, clock);
        let (lease, node, state) = (cluster.lease, cluster.node.clone(), cluster.state.clone());
        join(&mut node.lock().unwrap_or_else(PoisonError::into_inner), lease, unix_time)?;
        let (poke, poked) = mpsc::channel();
        let poke = Arc::new(poke);
        // It may wait for a request when the gateway ends, and the gateway need not wait for it.
        let watcher = std::thread::Builder::new().name("forebay-watch".to_owned()).spawn({
            let (layout, state, poke) = (Layout(config.prefix.clone()), state.clone(), Arc::downgrade(&poke));
            move || {
                privileges::keep_files();
                watch(&client, &layout, &state, &poke);
            }
        });
        watcher.map_err(ClusterError::System)?;
        let thread = std::thread::Builder::new().name("forebay-cluster".to_owned()).spawn(move || {
            privileges::keep_files();
            run(&node, &state, &poked, unix_time);
        });
        let thread = thread.map_err(ClusterError::System)?;
        *cluster.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some((poke, thread));
        Ok(cluster)
    }

    /// A gateway without threads, for simulations: [`Cluster::step`] does the work of its thread. `names` are unique names for the process and for a
    /// state directory that has none.
    pub fn stepped(
        config: &forebay_config::Cluster,
        store: IvStore,
        etcd: Arc<dyn Etcd>,
        [process, new_instance]: [String; 2],
        clock: fn() -> Duration,
    ) -> Cluster {
        let lease = Duration::from_nanos(config.lease.as_nanos());
        let shares = Shares { count: config.shares, by: config.share_by };
        let name = config.name.clone();
        let identity = Identity { name: name.clone(), process, new_instance, host: host(), shares, lease };
        let state = Shared::default();
        let recorder = Recorder {
            etcd: etcd.clone(),
            layout: Layout(config.prefix.clone()),
            owner: identity.owner(),
            state: state.clone(),
            places: Arc::default(),
            ahead: Duration::from_nanos(config.ahead.as_nanos()),
            clock,
        };
        let node = Node::new(identity, &config.prefix, etcd, store.clone(), state.clone());
        let (node, thread) = (Arc::new(Mutex::new(node)), Mutex::new(None));
        Cluster { name, lease, shares, state, store, recorder, node, clock, thread }
    }

    /// Does what is due, and returns the time after which to call it again.
    pub fn step(&self, unix: Duration) -> (Duration, Result<(), Trouble>) {
        step(&self.node, (self.clock)(), unix)
    }

    /// The store of the data plane: here and in etcd.
    pub fn store(&self) -> IvStore {
        self.store.clone().with_replica(Arc::new(self.recorder.clone()))
    }

    /// The share of each SA of a file, to which their records belong from now on. A key or SA with records in a share stays there.
    ///
    /// # Errors
    /// If outbound SAs of different shares have one cipher key: both would use the same IVs; or if an SA has its records in another share.
    /// Nothing has changed then.
    pub fn assign(&self, file: &SasFile) -> Result<Vec<u16>, ClusterError> {
        let shares = self.shares.of_file(file);
        let named = named(file, &shares)?;
        let moved = |moved: Moved| {
            let of = named.iter().find(|(id, ..)| *id == moved.id).map_or("", |(_, name, _)| name);
            ClusterError::Moved(of.to_owned(), moved)
        };
        let serves = lock(&self.state).serving().clone();
        let mut places = lock_places(&self.recorder.places);
        let before = places.clone();
        places.assign(named.iter().map(|&(id, _, share)| (id, share))).map_err(moved)?;
        drop(places);
        // Other gateways may have another file. Later shares are checked when they come.
        let served = named.iter().filter(|(.., share)| serves.contains_key(share)).map(|(id, ..)| *id);
        if let Err(PlaceError::Moved(error)) = self.recorder.settle_places(served, false) {
            *lock_places(&self.recorder.places) = before;
            return Err(moved(error));
        }
        Ok(shares)
    }

    /// The shares that the data plane should serve, and their terms of ownership.
    pub fn wanted(&self) -> Served {
        lock(&self.state).wanted()
    }

    /// Writes the records of shares that the data plane is about to serve into the local store.
    fn take_over(&self, shares: &BTreeSet<u16>) -> Result<(), IvStoreError> {
        let ids = lock_places(&self.recorder.places).in_shares(shares);
        let settled = self.recorder.settle_places(ids.into_iter(), false);
        settled.map_err(|error| IvStoreError::NotNoted(NotNoted(error.to_string())))?;
        let records = lock(&self.state).records(shares);
        self.store.take_over(&records, Plausible::after(None))?;
        let mut notes: Vec<WindowNote> = records.iter().filter_map(WindowNote::of).collect();
        let ids: Vec<SequenceId> = notes.iter().map(|note| note.id).collect();
        let places: HashMap<SequenceId, usize> = ids.iter().copied().zip(0..).collect();
        for known in self.store.windows_of(&ids)? {
            // Every received number is in etcd first: etcd has lost records, or an older copy of it was restored.
            let certain = known.received.certain;
            let note = places.get(&known.id).and_then(|&place| notes.get_mut(place));
            if let Some(note) = note.filter(|note| note.received.top < certain) {
                tracing::error!(
                    sa = %known.id, etcd = note.received.top, certain,
                    "etcd would put a replay window back; what was certainly received stays so"
                );
                *note = known;
            }
        }
        self.store.put_windows(&notes, 0, &|_| true)
    }

    /// Makes a data plane that serves `served` serve the `wanted` shares. Shares that another gateway should have or has are removed first. Then this gateway's
    /// new shares are added: their records, the right to record, the SAs. `serve` makes the data plane serve exactly the given
    /// shares.
    ///
    /// # Errors
    /// If the records cannot be written, and errors of `serve`. Call it again then.
    pub fn follow<E: From<IvStoreError>>(
        &self,
        served: &mut Served,
        wanted: Served,
        serve: &mut dyn FnMut(&Served) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stays = served.clone();
        stays.retain(|share, term| wanted.get(share) == Some(term));
        if stays != *served {
            let goes = served.len() - stays.len();
            serve(&stays)?;
            *served = stays;
            self.serve(served.clone());
            tracing::info!(shares = goes, serves = served.len(), "shares released");
        }
        let new: BTreeSet<u16> = wanted.keys().copied().filter(|share| !served.contains_key(share)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.take_over(&new)?;
        self.serve(wanted.clone());
        if let Err(error) = serve(&wanted) {
            self.serve(served.clone());
            return Err(error);
        }
        *served = wanted;
        tracing::info!(shares = new.len(), serves = served.len(), "shares taken over");
        Ok(())
    }

    /// The data plane serves these from now on, and no others.
    fn serve(&self, served: Served) {
        lock(&self.state).serve(served);
        self.look();
    }

    /// Makes the thread read at once.
    fn look(&self) {
        if let Some((poke, _)) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread may have ended.
            let _ = poke.send(());
        }
    }

    /// The share that an outer address belongs to.
    pub fn share_of(&self, address: IpAddr) -> u16 {
        self.shares.of_address(address)
    }

    /// Whether no other gateway can own its shares; if not, it must not announce addresses that another one may have.
    pub fn is_certain(&self) -> bool {
        let contact = lock(&self.state).contact;
        contact.is_some_and(|contact| (self.clock)().saturating_sub(contact) < self.lease)
    }

    /// The status now.
    pub fn status(&self) -> ClusterStatus {
        let silence = |contact: Duration| (self.clock)().saturating_sub(contact);
        let state = lock(&self.state);
        ClusterStatus {
            name: self.name.clone(),
            members: state.members.clone(),
            shares: self.shares.count,
            serves: state.serving().keys().copied().collect(),
            unowned: state.unowned,
            silence: state.contact.map(silence),
            is_cut_off: state.contact.is_none_or(|contact| silence(contact) >= self.lease),
            written: state.written,
            takes: state.takes,
            taken: state.taken,
            last: state.last.clone(),
            trouble: state.trouble.clone(),
        }
    }

    /// Makes the gateway leave: shares are released step by step as others are ready to take them. Returns whether there are
    /// other gateways, and shares left.
    pub fn is_leaving(&self) -> bool {
        let mut state = lock(&self.state);
        let began = std::mem::replace(&mut state.leaves, true);
        let goes_on = state.members.len() > 1 && !state.held.is_empty();
        drop(state);
        if !began {
            self.look();
        }
        goes_on
    }

    /// Leaves the cluster after the end of the data plane: the other gateways get the shares at once.
    pub fn leave(&self) {
        self.end();
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        match node.leave() {
            Ok(()) => tracing::info!("left the cluster; the shares are handed over"),
            Err(trouble) => {
                tracing::warn!(
                    "cannot hand over the shares, the others take over when the lease ends; nothing needs to be done if etcd answers again: {trouble}"
                );
            }
        }
    }

    /// Ends the thread.
    fn end(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((poke, thread)) = thread {
            drop(poke);
            // Its panic has been logged.
            let _ = thread.join();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

/// The keys of a file's records, each with the name of an SA and a share: SAs, and the cipher keys of outbound SAs.
fn named<'a>(file: &'a SasFile, shares: &[u16]) -> Result<Vec<(Id, &'a str, u16)>, ClusterError> {
    let mut keys: HashMap<KeyId, (&str, u16)> = HashMap::new();
    let mut named = Vec::new();
    for (entry, &share) in file.entries.iter().zip(shares) {
        let name = entry.config.name.as_str();
        named.push((Id::Sa(SequenceId::of(&entry.keys, entry.config.spi)), name, share));
        // Without encryption there is no key.
        if entry.direction != Direction::Seal || entry.keys.cipher().is_empty() {
            continue;
        }
        match keys.insert(KeyId::of(&entry.keys), (name, share)) {
            Some((other, of)) if of != share => {
                return Err(ClusterError::SharedKey(other.to_owned(), name.to_owned()));
            }
            _ => {}
        }
    }
    named.extend(keys.into_iter().map(|(key, (name, share))| (Id::Key(key), name, share)));
    Ok(named)
}

/// Whether a gateway of this cluster could start with the SAs of this file: certificates, keys. etcd is not asked.
///
/// # Errors
/// The first error.
pub fn check(config: &forebay_config::Cluster, file: &SasFile) -> Result<(), ClusterError> {
    Client::open(config).map_err(ClusterError::Client)?;
    let shares = Shares { count: config.shares, by: config.share_by };
    named(file, &shares.of_file(file)).map(drop)
}

/// The first steps, until the gateway is a member or etcd does not answer.
fn join(node: &mut Node, lease: Duration, unix_time: fn() -> Duration) -> Result<(), ClusterError> {
    let patience = lease * 2 + Duration::from_secs(1);
    let began = clock();
    let mut said = false;
    loop {
        match node.step(clock(), unix_time()) {
            Ok(()) => return Ok(()),
            // The lease of a gateway that was killed on another host, or that lost its state directory, ends soon.
            Err(Trouble::Fault(error @ ClusterError::NameTaken(..))) => {
                if clock().saturating_sub(began) > patience {
                    return Err(error);
                }
                if !said {
                    tracing::warn!("{error}; waiting for the end of its lease");
                    said = true;
                }
                rest(AGAIN);
            }
            Err(Trouble::Fault(error)) => return Err(error),
            Err(trouble) if node.is_member() => {
                tracing::warn!("{trouble}");
                return Ok(());
            }
            Err(trouble) => {
                tracing::warn!(
                    "cannot join the cluster yet, nothing is served; look at `endpoints` of [cluster] and at etcd (etcdctl endpoint status): {trouble}"
                );
                return Ok(());
            }
        }
    }
}

/// Wakes the thread when another gateway joins or leaves, so that it need not wait for its next beat. Beats find changes that this misses.
fn watch(client: &Client, layout: &Layout, state: &Shared, poke: &Weak<Waker>) {
    let (first, end) = layout.comings_and_goings();
    while poke.strong_count() > 0 {
        let looked = lock(state).looked;
        if looked == 0 {
            rest(AGAIN);
            continue;
        }
        let watched = client.watch((&first, &end), looked, &mut |revision| {
            // One read is enough for several changes.
            if revision > lock(state).looked
                && let Some(poke) = poke.upgrade()
            {
                // The thread may have ended.
                let _ = poke.send(());
                drop(poke);
                rest(SOON);
            }
        });
        // The beats report errors.
        rest(if watched.is_ok() { SOON } else { AGAIN });
    }
}

/// Does what is due, and returns the time after which to call it again.
fn step(node: &Mutex<Node>, now: Duration, unix: Duration) -> (Duration, Result<(), Trouble>) {
    let mut node = node.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = node.step(now, unix);
    let wait = match &outcome {
        Ok(()) if node.expects() => SOON,
        Ok(()) => node.beat(),
        Err(_) => AGAIN,
    };
    (wait, outcome)
}

fn run(node: &Mutex<Node>, state: &Shared, poked: &mpsc::Receiver<()>, unix_time: fn() -> Duration) {
    let mut said: Option<(String, Duration)> = None;
    loop {
        let now = clock();
        let (wait, outcome) = step(node, now, unix_time());
        let trouble = outcome.err().map(|trouble| trouble.to_string());
        match &trouble {
            None => {
                if said.take().is_some() {
                    tracing::info!("etcd answers again");
                }
            }
            Some(trouble) => {
                let is_said = said.as_ref().is_some_and(|(_, at)| now.saturating_sub(*at) < SAY_AGAIN);
                if !is_said {
                    tracing::warn!(
                        "{trouble}; traffic goes on until what is reserved ends, so look at etcd (etcdctl endpoint status)"
                    );
                    said = Some((trouble.clone(), now));
                }
            }
        }
        lock(state).trouble = trouble;
        match poked.recv_timeout(wait) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
