use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::tests::{OPERATIONS, crashing, restarted};
use super::super::{LifeNote, SequenceId, Wanted, WindowNote};
use super::*;
use forebay_ipsec::Received;
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn id() -> SequenceId {
    "0f".repeat(16).try_into().unwrap()
}

fn store() -> (tempfile::TempDir, IvStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore::new(directory.path().join("state"));
    (directory, store)
}

fn window(top: u64) -> WindowNote {
    WindowNote { id: id(), received: Received::up_to(top) }
}

fn cluster() -> ClusterNote {
    ClusterNote { instance: "one".into(), store: "5e".into(), revision: 1 }
}

/// A record of every kind, and what a pair and a cluster remember.
fn write_all(store: &IvStore) {
    store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).unwrap();
    store.reserve_sequences(&[Wanted { id: id(), count: 10, end: 100 }]).unwrap();
    store.lives(&[id()], 5).unwrap();
    store.put_windows(&[window(7)], 0, &|_| true).unwrap();
    store.remember_pair(&PairNote::new(0)).unwrap();
    store.remember_cluster(&cluster()).unwrap();
}

/// What each thing says that goes by the journal.
fn uses(store: &IvStore) -> [Result<(), IvStoreError>; 7] {
    [
        store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).map(drop),
        store.reserve_sequences(&[Wanted { id: id(), count: 10, end: 100 }]).map(drop),
        store.records().map(drop),
        store.lives(&[id()], 9).map(drop),
        store.windows_of(&[id()]).map(drop),
        store.put_windows(&[window(9)], 0, &|_| true),
        store.enter(Role::Pair),
    ]
}

/// Another user removes the journal, and recorded packets are taken.
#[test]
fn a_journal_that_is_missing_is_an_error_where_it_is_read_and_at_the_start() {
    let (_directory, store) = store();
    write_all(&store);
    store.enter(Role::Pair).unwrap();
    assert_eq!(store.provenance().unwrap().files, [journal::FILE, FILE]);
    let path = store.directory().join(journal::FILE);
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // One that runs does not begin it anew either.
    for store in [&store, &restarted(&store)] {
        for used in uses(store) {
            let error = used.unwrap_err();
            assert!(matches!(&error, IvStoreError::Missing { path: lost } if *lost == path), "{error}");
        }
    }
    fs::write(&path, text).unwrap();
    assert!(uses(&store).into_iter().all(|used| used.is_ok()));
    // Unless an operator says that it is lost.
    fs::remove_file(&path).unwrap();
    store.accept(5).unwrap();
    assert!(store.provenance().unwrap().accepted);
    store.enter(Role::Pair).unwrap();
    assert_eq!((store.windows().unwrap(), store.pair_note().unwrap()), (vec![], Some(PairNote::new(0))));
    assert!(!store.forget_acceptance().unwrap(), "said once, it holds once");
}

#[test]
fn a_gateway_that_leaves_its_peers_does_not_start_without_an_operators_word() {
    for (was, is) in [(Role::Pair, Role::Alone), (Role::Cluster, Role::Alone), (Role::Pair, Role::Cluster)] {
        let (_directory, store) = store();
        store.enter(Role::Alone).unwrap();
        store.enter(was).unwrap();
        store.lives(&[id()], 5).unwrap();
        store.remember_pair(&PairNote::new(1)).unwrap();
        store.remember_cluster(&cluster()).unwrap();
        assert!(matches!(store.enter(is), Err(IvStoreError::OfOthers { .. })));
        store.enter(was).unwrap();
        store.accept(5).unwrap();
        store.enter(is).unwrap();
        assert_eq!((store.pair_note().unwrap(), store.cluster_note().unwrap()), (None, None));
        assert_eq!(store.lives(&[id()], 9).unwrap(), [LifeNote { since: 5, at: 5, ..LifeNote::default() }]);
        store.enter(is).unwrap();
    }
}

/// A word that was said too early, or twice, is not one for whatever comes later.
#[test]
fn an_operators_word_that_a_gateway_alone_does_not_need_is_gone_with_its_start() {
    let (_directory, store) = store();
    store.enter(Role::Alone).unwrap();
    store.accept(5).unwrap();
    store.enter(Role::Alone).unwrap();
    assert!(!store.provenance().unwrap().accepted);
    store.enter(Role::Pair).unwrap();
    assert!(matches!(store.enter(Role::Alone), Err(IvStoreError::OfOthers { .. })));
}

#[test]
fn a_note_that_says_something_else_is_an_error() {
    let (_directory, store) = store();
    write_all(&store);
    let path = store.directory().join(FILE);
    for text in ["", "{}", "{\"schema\":3}", "{\"schema\":2}", "{\"schema\":2,\"role\":\"pair\",\"more\":1}"]
    {
        fs::write(&path, text).unwrap();
        let error = store.enter(Role::Alone).unwrap_err();
        assert!(matches!(error, IvStoreError::Corrupt { .. }), "{text}: {error}");
        assert!(store.pair_note().is_err() && restarted(&store).enter(Role::Alone).is_err(), "{text}");
    }
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let (_directory, store) = store();
    write_all(&store);
    let set = |mode| fs::set_permissions(store.directory(), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o777, 0o770, 0o702, 0o1777] {
        set(mode);
        let error = store.claim().err().unwrap();
        let IvStoreError::Write { error, path } = error else { panic!("{error}") };
        assert!(error.to_string().contains("others can write to it") && path == store.directory(), "{error}");
        assert!(uses(&store)[..6].iter().all(Result::is_err));
        let exposed = store.exposed().unwrap();
        let said = (exposed.to_string(), miette::Diagnostic::help(&exposed).unwrap().to_string());
        assert!(said.0.contains("others can write to it") && said.1.contains("chmod"), "{said:?}");
    }
    set(0o755);
    drop(store.claim().unwrap());
    assert!(store.exposed().is_none());
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(store.directory(), Some(65_534), None).unwrap();
        let IvStoreError::Write { error, .. } = store.claim().err().unwrap() else { panic!("another error") };
        assert!(error.to_string().contains("UID 65534"), "{error}");
    }
}

#[test]
fn links_in_the_place_of_files_are_not_followed() {
    let (directory, store) = store();
    write_all(&store);
    let victim = directory.path().join("victim");
    fs::write(&victim, "as it was").unwrap();
    for (term, name) in (70..).zip([journal::FILE, "lock", FILE, "manifest.tmp", LOCK, "gateway.lock"]) {
        let path = store.directory().join(name);
        let before = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
        let note = PairNote { term, ..PairNote::new(0) };
        let store = restarted(&store);
        let failed = uses(&store).iter().any(Result::is_err);
        assert!(failed | store.remember_pair(&note).is_err() | store.claim().is_err(), "{name} is followed");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was", "{name}");
        fs::remove_file(&path).unwrap();
        before.into_iter().for_each(|text| fs::write(&path, text).unwrap());
    }
}

/// What others could write is not believed, and what is no file is not waited for.
/// What the gateway writes elsewhere is kept off them.
#[test]
fn all_files_are_those_that_nothing_else_may_be_written_over() {
    let (_directory, store) = store();
    write_all(&store);
    drop(store.claim());
    let found = fs::read_dir(store.directory()).unwrap();
    let found: Vec<_> = found.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    assert!(found.len() >= 5, "{found:?}");
    let known = [journal::FILE, FILE, LOCK, ACCEPTED].map(str::to_owned).into_iter().chain(found);
    for name in known.chain(legacy::FILES.map(str::to_owned)) {
        assert!(forebay_config::STATE_FILES.contains(&&*name), "{name}");
    }
}

#[test]
fn files_that_others_can_change_and_pipes_are_refused() {
    let (_directory, store) = store();
    write_all(&store);
    fs::set_permissions(store.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    let failed = |store: &IvStore| {
        let store = restarted(store);
        let claimed = store.claim().map(drop);
        let entered = claimed
            .and_then(|()| store.enter(Role::Pair))
            .and_then(|()| store.remember_pair(&PairNote::new(1)));
        entered.err().map(|error| (error.to_string(), miette::Diagnostic::help(&error).unwrap().to_string()))
    };
    let is_root = rustix::process::geteuid().is_root();
    for name in [journal::FILE, "lock", FILE, LOCK, "gateway.lock"] {
        let path = store.directory().join(name);
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        // That of the gateway is made by a claim.
        drop(store.claim());
        for mode in [0o666, 0o620, 0o602] {
            set(mode);
            let (error, help) = failed(&store).unwrap();
            assert!(
                error.contains(path.to_str().unwrap()) && error.contains("others can write to it"),
                "{error}"
            );
            assert!(help.contains("chmod"), "{help}");
        }
        set(0o600);
        if is_root {
            std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
            assert!(failed(&store).unwrap().0.contains("UID 65534"), "{name}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        let text = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        // For writing alone the system has no one who reads.
        assert!(failed(&store).unwrap().0.contains(name), "{name}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, text).unwrap();
        set(0o600);
        assert_eq!(failed(&store), None);
        store.enter(Role::Pair).unwrap();
    }
}

/// Without the note nothing says whose a journal is, and how far it went: an older copy would be as good.
#[test]
fn a_note_that_is_missing_is_an_error_until_an_operator_says_that_it_is_lost() {
    let (_directory, store) = store();
    write_all(&store);
    store.enter(Role::Pair).unwrap();
    let path = store.directory().join(FILE);
    let note = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let next = restarted(&store);
    let is_missing =
        |error: &IvStoreError| matches!(error, IvStoreError::Missing { path: lost } if *lost == path);
    assert_eq!(next.provenance().unwrap().missing, std::slice::from_ref(&path));
    assert!(is_missing(&next.verify().unwrap_err()));
    for role in [Role::Alone, Role::Pair] {
        assert!(is_missing(&next.enter(role).unwrap_err()));
    }
    for used in uses(&next) {
        assert!(is_missing(&used.unwrap_err()));
    }
    // Nor does one that runs make another one, which would not know whose the directory is.
    assert!(is_missing(&store.remember_pair(&PairNote::new(0)).unwrap_err()));
    fs::write(&path, &note).unwrap();
    assert!(uses(&restarted(&store)).into_iter().all(|used| used.is_ok()));
    fs::remove_file(&path).unwrap();
    next.accept(5).unwrap();
    next.enter(Role::Alone).unwrap();
    // Nothing of what the journal has is lost.
    assert_eq!((next.windows().unwrap(), next.pair_note().unwrap()), (vec![window(9)], None));
    assert!(restarted(&next).provenance().unwrap().missing.is_empty());
    // A crash of the first start leaves a journal without a note that says nothing yet.
    let (_other, new) = self::store();
    new.files.make_directory(new.directory()).unwrap();
    fs::write(new.directory().join(journal::FILE), journal::line(0, 0, "journal 1 5f0c2f6b9d0a7e31"))
        .unwrap();
    new.enter(Role::Pair).unwrap();
}

/// The end of a data plane writes the note while the pair's thread does: neither undoes what the other one wrote.
#[test]
fn what_two_threads_note_at_once_is_noted() {
    let (_directory, store) = store();
    store.enter(Role::Pair).unwrap();
    std::thread::scope(|scope| {
        let ends = scope.spawn(|| {
            for top in 1..=100 {
                store.put_windows(&[window(top)], 0, &|_| true).unwrap();
                store.end().unwrap();
            }
        });
        for term in 1..=100 {
            store.remember_pair(&PairNote { term, ..PairNote::new(0) }).unwrap();
            assert_eq!(store.pair_note().unwrap().map(|note| note.term), Some(term));
        }
        ends.join().unwrap();
    });
    assert_eq!(store.pair_note().unwrap().map(|note| note.term), Some(100));
}

/// A process is killed before it has synced its last line, the next one reads it, and the power fails.
#[test]
fn the_note_expects_no_line_that_may_not_be_on_the_disk() {
    let (_directory, store) = store();
    write_all(&store);
    let path = store.directory().join(journal::FILE);
    let durable = fs::read(&path).unwrap();
    store.put_windows(&[window(8)], 0, &|_| true).unwrap();
    let next = restarted(&store);
    assert_eq!(next.windows().unwrap(), [window(8)]);
    next.end().unwrap();
    fs::write(&path, durable).unwrap();
    assert_eq!(restarted(&store).windows().unwrap(), [window(7)]);
    // Behind a start it is on the disk, and if it is lost the journal is damaged.
    store.put_windows(&[window(9)], 0, &|_| true).unwrap();
    let text = fs::read(&path).unwrap();
    restarted(&store).enter(Role::Pair).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert!(restarted(&store).windows().is_err());
}

/// Whoever reserves IVs notes it before it uses them, also beside a gateway that runs and others that do the same.
#[test]
fn no_iv_is_given_out_that_an_older_journal_would_give_out_again() {
    let (_directory, gateway) = store();
    let _claim = gateway.claim().unwrap();
    write_all(&gateway);
    gateway.enter(Role::Pair).unwrap();
    let path = gateway.directory().join(journal::FILE);
    let others = [restarted(&gateway), restarted(&gateway)];
    for store in others.iter().chain([&gateway]).cycle().take(9) {
        assert!(store.claim_if_free().unwrap().is_none());
        let older = fs::read(&path).unwrap();
        store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).unwrap();
        let text = fs::read(&path).unwrap();
        fs::write(&path, older).unwrap();
        let error = restarted(store).verify().unwrap_err().to_string();
        assert!(error.contains("an older copy"), "{error}");
        fs::write(&path, text).unwrap();
        gateway.remember_pair(&PairNote::new(0)).unwrap();
        gateway.put_windows(&[window(9)], 0, &|_| true).unwrap();
    }
    let known = restarted(&gateway).known().unwrap();
    assert_eq!((known.role, known.pair), (Role::Pair, Some(PairNote::new(0))));
}

/// Two processes that change the note at once: neither undoes what the other one wrote.
#[test]
fn what_two_processes_note_at_once_is_noted() {
    let (_directory, gateway) = store();
    gateway.enter(Role::Pair).unwrap();
    std::thread::scope(|scope| {
        let reserves = scope.spawn(|| {
            let other = IvStore::new(gateway.directory());
            for _ in 0..100 {
                other.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).unwrap();
            }
            other.written.load(Ordering::Relaxed)
        });
        for term in 1..=100 {
            gateway.remember_pair(&PairNote { term, ..PairNote::new(0) }).unwrap();
            assert_eq!(gateway.pair_note().unwrap().map(|note| note.term), Some(term));
        }
        let written = reserves.join().unwrap();
        assert_eq!(gateway.known().unwrap().written, written);
    });
}

/// A journal with more writes, of another directory, in the place of the own one.
#[test]
fn the_journal_of_another_directory_is_an_error() {
    let ((_one, own), (_two, other)) = (store(), store());
    write_all(&own);
    own.end().unwrap();
    (0..9).for_each(|_| write_all(&other));
    let paths = [&own, &other].map(|store| store.directory().join(journal::FILE));
    let text = fs::read(&paths[0]).unwrap();
    fs::copy(&paths[1], &paths[0]).unwrap();
    for store in [&own, &restarted(&own)] {
        for used in uses(store) {
            let error = used.unwrap_err().to_string();
            assert!(error.contains("it is the journal of another directory"), "{error}");
        }
    }
    fs::write(&paths[0], &text).unwrap();
    assert!(uses(&own).into_iter().all(|used| used.is_ok()));
    // Both files of another directory are a copy of all of it.
    fs::copy(&paths[1], &paths[0]).unwrap();
    fs::copy(other.directory().join(FILE), own.directory().join(FILE)).unwrap();
    assert!(uses(&restarted(&own)).into_iter().all(|used| used.is_ok()));
}

/// Wherever the first start after an operator's acceptance stops, the next one says that the journal is missing, or goes on.
#[test]
fn a_crash_while_a_lost_journal_begins_anew_is_no_damage() {
    for operations in 0..OPERATIONS {
        let (_directory, store) = store();
        write_all(&store);
        store.end().unwrap();
        fs::remove_file(store.directory().join(journal::FILE)).unwrap();
        store.accept(5).unwrap();
        let _ = crashing(&store, operations).enter(Role::Alone);
        let next = restarted(&store);
        if let Err(error) = next.enter(Role::Alone) {
            assert!(matches!(error, IvStoreError::Missing { .. }), "behind {operations}: {error}");
            next.accept(6).unwrap();
            next.enter(Role::Alone).unwrap();
        }
        assert_eq!(restarted(&store).windows().unwrap(), []);
    }
}
