use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::{ClusterNote, LifeNote, PairNote, SequenceId, Wanted, WindowNote, WindowStore};
use super::*;
use forebay_ipsec::Received;

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

/// Every file with records, by what writes it.
fn write_all(store: &IvStore) {
    store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).unwrap();
    store.reserve_sequences(&[Wanted { id: id(), count: 10, end: 100 }]).unwrap();
    store.lives(&[id()], 5).unwrap();
    WindowStore::new(store).put(&[window(7)], 0, &|_| true).unwrap();
    store.remember_pair(&PairNote::new(0)).unwrap();
    store.remember_cluster(&ClusterNote::new("one".into(), "store".into(), 1)).unwrap();
}

/// Another user removes `windows.log`, and recorded packets are taken. The same of every other file.
#[test]
fn a_file_that_is_missing_is_an_error_where_it_is_read_and_at_the_start() {
    let (_directory, store) = store();
    write_all(&store);
    store.enter(Role::Pair).unwrap();
    let names = store.provenance().unwrap().files;
    assert_eq!(names.len(), RECORDS.len() - 1, "all but that of SAs that are gone: {names:?}");
    let reads: [(&str, &dyn Fn() -> Option<IvStoreError>); 6] = [
        (ivs::FILE, &|| store.records().err()),
        (sequences::FILE, &|| store.records().err()),
        (lifetimes::FILE, &|| store.lives(&[id()], 9).err()),
        (windows::FILE, &|| WindowStore::new(&store).of(&[id()]).err()),
        (pair::FILE, &|| store.pair_note().err()),
        (cluster::FILE, &|| store.cluster_note().err()),
    ];
    for (name, read) in reads {
        let path = store.directory().join(name);
        let text = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        for error in [read(), store.enter(Role::Pair).err()] {
            assert!(
                matches!(&error, Some(IvStoreError::Missing { path: lost }) if *lost == path),
                "{error:?}"
            );
        }
        fs::write(&path, text).unwrap();
        store.enter(Role::Pair).unwrap();
    }
    // One that runs does not begin it anew either.
    let windows = WindowStore::new(&store);
    windows.put(&[window(8)], 0, &|_| true).unwrap();
    fs::remove_file(store.directory().join(windows::FILE)).unwrap();
    assert!(matches!(windows.all(), Err(IvStoreError::Missing { .. })));
    assert!(matches!(windows.put(&[window(9)], 0, &|_| true), Err(IvStoreError::Missing { .. })));
    // Unless an operator says that it is lost.
    store.accept(5).unwrap();
    assert!(store.provenance().unwrap().accepted);
    store.enter(Role::Pair).unwrap();
    assert_eq!(windows.all().unwrap(), []);
    assert!(!store.take_acceptance().unwrap(), "said once, it holds once");
}

#[test]
fn a_gateway_that_leaves_its_peers_does_not_start_without_an_operators_word() {
    for (was, is) in [(Role::Pair, Role::Alone), (Role::Cluster, Role::Alone), (Role::Pair, Role::Cluster)] {
        let (_directory, store) = store();
        store.enter(Role::Alone).unwrap();
        store.enter(was).unwrap();
        store.lives(&[id()], 5).unwrap();
        store.remember_pair(&PairNote::new(1)).unwrap();
        assert!(matches!(store.enter(is), Err(IvStoreError::OfOthers { .. })));
        store.enter(was).unwrap();
        store.accept(5).unwrap();
        store.enter(is).unwrap();
        assert_eq!(store.pair_note().unwrap(), None);
        assert_eq!(store.lives(&[id()], 9).unwrap(), [LifeNote { since: 5, at: 5, ..LifeNote::default() }]);
        store.enter(is).unwrap();
    }
}

/// Directories of versions before have no note.
#[test]
fn whose_an_older_directory_is_follows_from_what_is_in_it() {
    for (role, is_of) in [(Role::Alone, 0), (Role::Pair, 1), (Role::Cluster, 2)] {
        let (_directory, store) = store();
        store.lives(&[id()], 5).unwrap();
        match is_of {
            1 => store.remember_pair(&PairNote::new(0)).unwrap(),
            2 => store.remember_cluster(&ClusterNote::new("one".into(), "store".into(), 1)).unwrap(),
            _ => {}
        }
        fs::remove_file(store.directory().join(FILE)).unwrap();
        assert_eq!(store.provenance().unwrap().role, role);
        assert_eq!(store.enter(Role::Alone).is_ok(), role == Role::Alone);
        store.enter(role).unwrap();
        fs::remove_file(store.directory().join(lifetimes::FILE)).unwrap();
        assert!(matches!(store.enter(role), Err(IvStoreError::Missing { .. })));
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
        let IvStoreError::Write { error, .. } = error else { panic!("{error}") };
        assert!(error.to_string().contains("others can write to it"), "{error}");
        assert!(store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000).is_err());
        assert!(store.lives(&[id()], 5).is_err() && store.records().is_err());
    }
    set(0o755);
    drop(store.claim().unwrap());
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
    for name in ["together.tmp", "lock", "windows.log", "gateway.lock", "sequences.json"] {
        let path = store.directory().join(name);
        let before = fs::read(&path).ok();
        let _ = fs::remove_file(&path);
        symlink(&victim, &path).unwrap();
        let reserve = store.reserve(&[("0f".repeat(16).try_into().unwrap(), 5)].into(), 1_000);
        let put = WindowStore::new(&store).put(&[window(70)], 0, &|_| true);
        let numbers = store.reserve_sequences(&[Wanted { id: id(), count: 10, end: 100 }]);
        let failed = [reserve.is_err(), put.is_err(), numbers.is_err(), store.claim().is_err()];
        assert!(failed.contains(&true), "{name} is followed");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was", "{name}");
        fs::remove_file(&path).unwrap();
        before.into_iter().for_each(|text| fs::write(&path, text).unwrap());
    }
}
