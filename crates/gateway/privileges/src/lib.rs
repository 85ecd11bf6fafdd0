//! Privileges of the process and how they are dropped: capabilities, the user, core dumps.
//!
//! Opening links requires capabilities that are not needed afterwards, and capabilities belong to single threads. Each
//! thread therefore first drops all capabilities except those that it keeps; threads that process packets or answer requests keep none:
//!
//! | Thread | Keeps |
//! |---|---|
//! | workers and processors beside them, the forwarder of IKE, the control socket, metrics, the watchdog | nothing |
//! | the recorders of sequence numbers and windows, and the writer of captures | nothing; see below |
//! | the follower of the kernel's SAs | `CAP_NET_ADMIN`: netlink and routes |
//! | address resolution for AF_XDP | `CAP_NET_ADMIN`: netlink |
//! | the writer of a pair's records, and the client of etcd | nothing; see below |
//! | the caretaker of the host | `CAP_NET_ADMIN`: the guard's rules, routes and offloads |
//! | the first thread, which also reloads | `CAP_NET_ADMIN` for routes, the guard and offloads, if there are any; in a gateway of a pair, which may start its data plane at any time, all that starting requires |
//!
//! If the process stays root, threads that open files keep `CAP_DAC_OVERRIDE` too, because other users may own
//! files and directories.
//!
//! Call [`prepare`] first, while there is only one thread, because its changes apply to all later threads.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{self, DumpableBehavior, Gid, Resource, Rlimit, Uid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use forebay_config::{Config, InsideLink, LockMemory};

/// What starting takes: links, raw sockets, AF_XDP (`SYS_ADMIN` before Linux 5.8) and its memory, small port numbers,
/// the group of the control socket.
const STARTING: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::CHOWN);

/// Access to files of other users. It is not among those for starting: a process that changed its user no longer has
/// it.
const FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// Why privileges could not be given up.
#[derive(Debug)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// There is no such user in `/etc/passwd`.
    NoUser(String),
    /// The user cannot be changed to.
    Become {
        /// Who.
        user: String,
        /// Why not.
        error: io::Error,
    },
    /// A directory could not be made for that user.
    Directory {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The system refuses something that it should not.
    System(io::Error),
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegeError::NoUser(user) => write!(f, "user `{user}` does not exist"),
            PrivilegeError::Become { user, error } => {
                write!(f, "cannot change to the user `{user}`: {error}")
            }
            PrivilegeError::Directory { path, error } => write!(f, "{}: {error}", path.display()),
            PrivilegeError::System(error) => write!(f, "cannot drop privileges: {error}"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

impl miette::Diagnostic for PrivilegeError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let hint = match self {
            PrivilegeError::NoUser(_) => {
                "create the user with `adduser --system --group forebay`, or remove `user` from `[privileges]`"
            }
            PrivilegeError::Become { .. } => {
                "only root can change to another user: start as root, or remove `user` from `[privileges]`"
            }
            _ => return None,
        };
        Some(Box::new(hint))
    }
}

/// Does what holds for the whole process, while this thread is its only one: no core dumps unless the file wants them,
/// nothing gained by whatever would be executed, and another user if the file says so. Whether the user is another
/// one now: then files have to be read anew, by the eyes of whom a reload will have. Directories that the user writes are made
/// for it: those that the file names, and `also`.
///
/// # Errors
/// See [`PrivilegeError`]. The process is not to go on then: it may be half another user's.
pub fn prepare(config: &Config, also: Option<&Path>) -> Result<bool, PrivilegeError> {
    let system = |error: rustix::io::Errno| PrivilegeError::System(error.into());
    let changed = match &config.privileges.user {
        Some(name) => become_user(name, directories(config).chain(also))?,
        None => false,
    };
    // After the user, whose change would set it again. Keys are in memory.
    if !config.privileges.core_dumps {
        process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(system)?;
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        process::setrlimit(Resource::Core, none).map_err(system)?;
    }
    clear_bounding_set();
    // Kernels before 4.3 have none.
    let _ = thread::clear_ambient_capability_set();
    thread::set_no_new_privs(true).map_err(system)?;
    Ok(changed)
}

/// Keeps the memory of the process out of swap, from now on and without a limit. Pages are locked when they are used first, so
/// that memory which is reserved and unused costs nothing.
///
/// # Errors
/// If the process may not lock so much memory.
fn lock_memory() -> io::Result<()> {
    let unlimited = Rlimit { current: None, maximum: None };
    // A limit would have later allocations fail.
    if process::getrlimit(Resource::Memlock) != unlimited {
        process::setrlimit(Resource::Memlock, unlimited)?;
    }
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?;
    Ok(())
}

/// Keeps the memory of the process out of swap as the file says, and gives up, in this thread, all capabilities that the
/// thread that started does not need any more; those it has left.
///
/// # Errors
/// If memory is to be locked and cannot be.
pub fn settle(config: &Config) -> io::Result<CapabilitySet> {
    match config.privileges.lock_memory {
        LockMemory::Off => {}
        LockMemory::On => lock_memory().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot lock memory (`lock_memory` of `[privileges]`): {error}"),
            )
        })?,
        LockMemory::Auto => {
            if let Err(error) = lock_memory() {
                tracing::info!(%error, "memory with keys may be swapped out (`lock_memory` of `[privileges]`)");
            }
        }
    }
    if config.pair.is_some() {
        // It opens links whenever its peer is gone.
        return keep(FILES | STARTING);
    }
    let changes_host = config.guard.mode.makes() || config.offloads_outside() || config.cluster.is_some();
    match config.inside.link {
        InsideLink::Xdp { .. } | InsideLink::Dpdk(_) if !changes_host => keep(FILES),
        InsideLink::Tun(_) | InsideLink::Xdp { .. } | InsideLink::Dpdk(_) => {
            keep(FILES | CapabilitySet::NET_ADMIN)
        }
    }
}

/// Has this thread of root's become the user to whom a directory belongs, for commands that read or write there what is a gateway's: it
/// refuses what another user could have written, and could not read what root has. Others stay who they are, and so does root in its own
/// directory.
///
/// # Errors
/// If the directory cannot be looked at, or the user not be changed to.
pub fn become_owner(directory: &Path) -> io::Result<()> {
    let metadata = fs::metadata(directory)?;
    if !process::geteuid().is_root() || metadata.uid() == 0 {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    thread::set_thread_groups(&[gid])?;
    thread::set_thread_res_gid(gid, gid, gid)?;
    Ok(thread::set_thread_res_uid(uid, uid, uid)?)
}

/// Gives up all capabilities in this thread but, where it has them, `CAP_NET_ADMIN` and those for files.
pub fn keep_net_admin() {
    let _ = keep(FILES | CapabilitySet::NET_ADMIN).inspect_err(complain);
}

/// Gives up all capabilities in this thread but those for files, which root has.
pub fn keep_files() {
    let _ = keep(FILES).inspect_err(complain);
}

/// Gives up all capabilities in this thread.
pub fn give_up() {
    let _ = keep(CapabilitySet::empty()).inspect_err(complain);
}

/// Does something in a thread without capabilities, so that the threads which it starts have none either; and waits for
/// it.
pub fn without<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let done = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                give_up();
                work()
            })
            .join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn complain(error: &io::Error) {
    tracing::error!(%error, "cannot drop the capabilities of a thread");
}

/// Keeps in this thread only what is `needed`, as far as it has that; what it has then.
fn keep(needed: CapabilitySet) -> io::Result<CapabilitySet> {
    let has = thread::capabilities(None)?.permitted;
    let kept = has & needed;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets)?;
    Ok(kept)
}

/// Takes everything out of the bounding set, where that is allowed: nothing that is executed gains a capability.
fn clear_bounding_set() {
    let all = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for one in all {
        if thread::capability_is_in_bounding_set(one) != Ok(true) {
            continue;
        }
        if thread::remove_capability_from_bounding_set(one).is_err() {
            // Without CAP_SETPCAP the set cannot be changed; it is then left to the process that started this one.
            return;
        }
    }
}

/// Becomes another user with its groups, and keeps what starting takes. Whether it was another one.
fn become_user<'a>(name: &str, directories: impl Iterator<Item = &'a Path>) -> Result<bool, PrivilegeError> {
    let read = |path: &str| fs::read_to_string(path).map_err(PrivilegeError::System);
    let account = Account::find(name, &read("/etc/passwd")?, &read("/etc/group")?)
        .ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
    if process::geteuid() == account.uid {
        return Ok(false);
    }
    let failed =
        |error: rustix::io::Errno| PrivilegeError::Become { user: name.to_owned(), error: error.into() };
    for directory in directories {
        make(directory, &account)
            .map_err(|error| PrivilegeError::Directory { path: directory.to_owned(), error })?;
    }
    let starting = thread::capabilities(None).map_err(failed)?.permitted & STARTING;
    thread::set_keep_capabilities(true).map_err(failed)?;
    thread::set_thread_groups(&account.groups).map_err(failed)?;
    thread::set_thread_res_gid(account.gid, account.gid, account.gid).map_err(failed)?;
    thread::set_thread_res_uid(account.uid, account.uid, account.uid).map_err(failed)?;
    thread::set_keep_capabilities(false).map_err(failed)?;
    // SETPCAP as long as the bounding set takes; the change has emptied what is effective.
    let kept = starting | (thread::capabilities(None).map_err(failed)?.permitted & CapabilitySet::SETPCAP);
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(failed)?;
    Ok(true)
}

/// Where the gateway writes: the control socket's directory, that of its state and that of captures.
fn directories(config: &Config) -> impl Iterator<Item = &Path> {
    let state = config.keys.state.as_deref();
    let control = config.control.socket.parent();
    let taps = config.taps.as_ref().map(|taps| &*taps.directory);
    control.into_iter().chain(state).chain(taps).filter(|path| !path.as_os_str().is_empty())
}

/// Makes a directory of the user's where there is none: one that is there belongs to whom it belongs to.
fn make(directory: &Path, account: &Account) -> io::Result<()> {
    if directory.exists() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    Ok(rustix::fs::chown(directory, Some(account.uid), Some(account.gid))?)
}

/// A user of this host.
#[derive(Debug, PartialEq, Eq)]
struct Account {
    uid: Uid,
    gid: Gid,
    /// All of its groups.
    groups: Vec<Gid>,
}

impl Account {
    /// The user called `name` of `passwd`, with its groups of `group`: see passwd(5), group(5).
    fn find(name: &str, passwd: &str, group: &str) -> Option<Account> {
        let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let mine = passwd.lines().map(fields).find(|fields| fields[0] == name)?;
        let number = |text: Option<&String>| text.and_then(|text| text.parse::<u32>().ok());
        let (uid, gid) = (number(mine.get(2))?, number(mine.get(3))?);
        let mut groups = vec![Gid::from_raw(gid)];
        for fields in group.lines().map(fields) {
            let is_in = fields.get(3).is_some_and(|names| names.split(',').any(|one| one == name));
            groups.extend(number(fields.get(2)).filter(|_| is_in).map(Gid::from_raw));
        }
        Some(Account { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_with_their_groups() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nodd\nforebay:x:104:110::/var/lib/forebay:/usr/sbin/nologin\n";
        let group = "root:x:0:\nadm:x:4:syslog,forebay\nforebay:x:110:\nforebays:x:9:forebayx\n";
        let account = Account::find("forebay", passwd, group).unwrap();
        assert_eq!((account.uid.as_raw(), account.gid.as_raw()), (104, 110));
        assert_eq!(account.groups.iter().map(|gid| gid.as_raw()).collect::<Vec<_>>(), [110, 4]);
        assert_eq!(Account::find("fore", passwd, group), None);
        assert_eq!(Account::find("odd", passwd, group), None);
    }

    #[test]
    fn root_becomes_the_owner_of_a_directory() {
        let directory = std::env::temp_dir().join(format!("forebay-owner-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        // For this thread alone.
        let become_owner = || {
            std::thread::scope(|scope| {
                let became = || become_owner(&directory).map(|()| process::geteuid().as_raw());
                scope.spawn(became).join().unwrap()
            })
        };
        let own = process::geteuid();
        assert_eq!(become_owner().unwrap(), own.as_raw());
        if own.is_root() {
            rustix::fs::chown(&directory, Some(Uid::from_raw(65_534)), Some(Gid::from_raw(65_534))).unwrap();
            assert_eq!(become_owner().unwrap(), 65_534);
        }
        assert_eq!(process::geteuid(), own);
        fs::remove_dir(&directory).unwrap();
        assert_eq!(become_owner().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_thread_without_has_none_and_gives_none_on() {
        let permitted = || thread::capabilities(None).unwrap().permitted;
        let before = permitted();
        let (here, there) = without(|| (permitted(), std::thread::spawn(permitted).join().unwrap()));
        assert!(here.is_empty() && there.is_empty());
        assert_eq!(permitted(), before, "another thread's are its own");
    }
}
