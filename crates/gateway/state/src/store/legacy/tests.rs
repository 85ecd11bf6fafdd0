use std::fs;
use std::path::Path;

use super::super::record::{HALF, Record, half};
use super::super::tests::{OPERATIONS, crashing, restarted};
use super::super::{Plausible, Territory, Wanted, WindowNote, journal};
use super::*;

fn key(number: u32) -> KeyId {
    format!("{number:032x}").try_into().unwrap()
}

fn sa(number: u32) -> SequenceId {
    format!("{number:032x}").try_into().unwrap()
}

fn store() -> (tempfile::TempDir, IvStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore::new(directory.path().join("state"));
    (directory, store)
}

/// A directory that the program of that version has written.
fn written_by(version: &str, role: &str) -> (tempfile::TempDir, IvStore) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/directories").join(version).join(role);
    let (directory, store) = store();
    fs::create_dir(store.directory()).unwrap();
    fs::set_permissions(store.directory(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for file in fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        fs::copy(file.path(), store.directory().join(file.file_name())).unwrap();
    }
    (directory, store)
}

const VERSIONS: [&str; 2] = ["tables-by-role", "manifest-of-files"];
const ROLES: [(&str, Role); 3] = [("alone", Role::Alone), ("pair", Role::Pair), ("cluster", Role::Cluster)];
/// When they were written.
const NOW: u64 = 1_764_000_000_000_000_000;

/// What the directories say, by the program that wrote them: see `tests/directories/README.md`.
fn check(store: &IvStore, version: &str, role: Role) {
    let name = format!("{version} {role}");
    let own = if role == Role::Pair { HALF } else { 0 };
    let used = store.used_ivs().unwrap();
    assert_eq!(used[&key(0x1a)], own + NOW + 10, "{name}");
    assert_eq!(used[&key(0x3f)], own + NOW + 100, "{name}");
    if role == Role::Pair {
        let of_peer = Record::Ivs { key: key(0x1a), until: NOW + 500 };
        assert!(store.records().unwrap().contains(&of_peer), "{name}: those of the peer");
    }
    let windows = store.windows().unwrap();
    let received = Received { top: 5_000, certain: 4_990, missing: vec![(4_991, 4_992), (4_995, 4_995)] };
    let exact = WindowNote { id: sa(3), received };
    assert_eq!(windows, [exact, WindowNote { id: sa(4), received: Received::up_to(77) }], "{name}");
    let lives = store.lives(&[sa(1), sa(3)], 5).unwrap();
    assert!(lives.iter().all(|life| life.since == 1_764_000_000_000), "{name}");
    let numbers = |number| {
        let known = store.records().unwrap().into_iter().find_map(|record| match record {
            Record::Numbers { id, last } if id == sa(number) => Some(last),
            _ => None,
        });
        known.unwrap_or(0)
    };
    let expected = if role == Role::Pair { (4_195_303, 16_777_715) } else { (321, 500) };
    assert_eq!((numbers(1), numbers(2)), expected, "{name}");
    if role == Role::Alone {
        assert_eq!((numbers(0x100), numbers(0x50f)), (14, 7), "{name}: also of SAs that were gone");
    }
    let (pair, cluster) = (store.pair_note().unwrap(), store.cluster_note().unwrap());
    assert_eq!(
        pair.map(|note| (note.number, note.term, note.unmerged)),
        (role == Role::Pair).then_some((1, 9, true))
    );
    assert_eq!(cluster.map(|note| note.revision), (role == Role::Cluster).then_some(41), "{name}");
}

#[test]
fn directories_of_versions_before_become_a_journal_and_a_note() {
    for version in VERSIONS {
        for (name, role) in ROLES {
            let (_directory, store) = written_by(version, name);
            assert_eq!(store.provenance().unwrap().role, role, "{version} {name}");
            if role != Role::Alone {
                assert!(matches!(store.enter(Role::Alone), Err(IvStoreError::OfOthers { .. })));
            }
            store.enter(role).unwrap();
            check(&store, version, role);
            check(&restarted(&store), version, role);
            let mut names = store.files.names(store.directory()).unwrap();
            names.sort();
            assert_eq!(
                names,
                ["lock", "manifest.json", "manifest.lock", "records.log", IVS],
                "{version} {name}"
            );
            // Nothing that was used is used again, whatever the clock says.
            let range = store.reserve(&[(key(0x1a), 5)].into(), 7).unwrap()[&key(0x1a)].clone();
            assert!(range.start >= NOW + 10, "{range:?}");
            let block = store.reserve_sequences(&[Wanted { id: sa(1), count: 5, end: u64::MAX }]).unwrap()[0];
            assert!(block.after >= 321);
        }
    }
}

/// Wherever the move stops, the next process has everything.
#[test]
fn a_crash_behind_any_operation_of_the_move_loses_nothing() {
    for operations in 0..OPERATIONS {
        let (_directory, store) = written_by("tables-by-role", "pair");
        let _ = crashing(&store, operations).enter(Role::Pair);
        let next = restarted(&store);
        next.enter(Role::Pair).unwrap();
        check(&next, &format!("after {operations}"), Role::Pair);
    }
}

#[test]
fn a_file_that_the_manifest_names_and_that_is_missing_is_an_error() {
    for name in [IVS, SEQUENCES, RETIRED, WINDOWS, LIVES] {
        let (_directory, store) = written_by("manifest-of-files", "alone");
        let path = store.directory().join(name);
        fs::remove_file(&path).unwrap();
        for error in [store.enter(Role::Alone).unwrap_err(), store.windows().unwrap_err()] {
            assert!(matches!(&error, IvStoreError::Missing { path: lost } if *lost == path), "{error}");
        }
        store.accept(5).unwrap();
        store.enter(Role::Alone).unwrap();
        assert!(store.has_records().unwrap(), "what is there holds");
    }
}

#[test]
fn what_is_damaged_is_an_error_and_stays_as_it_is() {
    let own = format!("{}.json", key(9));
    for name in [IVS, SEQUENCES, RETIRED, WINDOWS, LIVES, PAIR, IV_FLOOR, own.as_str()] {
        for text in
            ["", "damaged", "{\"schema\":7}", "{\"schema\":1,\"reserved_until\":-5}", "{\"schema\":1}"]
        {
            if text.is_empty() && [RETIRED, WINDOWS].contains(&name) {
                continue;
            }
            let (_directory, store) = written_by("tables-by-role", "alone");
            let path = store.directory().join(name);
            // Lines that are damaged at the end are those of a crash.
            let text = if name == WINDOWS {
                format!("{text}\n{}", fs::read_to_string(&path).unwrap())
            } else {
                text.to_owned()
            };
            fs::write(&path, &text).unwrap();
            let error = store.reserve(&[(key(1), 1)].into(), 5).unwrap_err();
            assert!(
                matches!(&error, IvStoreError::Corrupt { path: at, .. } if *at == path),
                "{name} {text:.9}: {error}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}

/// Wherever a version before has left the mark of a key, in each role: no range begins before it.
#[test]
fn marks_of_keys_hold_in_every_role_wherever_they_are() {
    let (high, low) = (HALF + 9_000, 9_000);
    for role in [None, Some(0), Some(1)] {
        for until in [low, high] {
            let table = format!("{{\"schema\":1,\"marks\":{{\"{}\":{until}}}}}\n", key(1));
            let mark = format!("{{\"schema\":1,\"reserved_until\":{until}}}\n");
            let own = format!("{}.json", key(1));
            let places = [(own.as_str(), &mark), (IVS, &table), (PEER_IVS, &table), (IV_FLOOR, &mark)];
            for (name, text) in places.into_iter().filter(|(name, _)| *name != IV_FLOOR || until == low) {
                let (_directory, store) = store();
                fs::create_dir(store.directory()).unwrap();
                fs::set_permissions(store.directory(), std::os::unix::fs::PermissionsExt::from_mode(0o700))
                    .unwrap();
                fs::write(store.directory().join(name), text).unwrap();
                let of_role = match role {
                    Some(number) => store.clone().in_territory(Territory::of(number).unwrap()),
                    None => store.clone(),
                };
                let range = of_role.reserve(&[(key(1), 10)].into(), 5).unwrap()[&key(1)].clone();
                let is_behind = range.start >= until || role.is_some_and(|n| usize::from(n) != half(until));
                assert!(is_behind, "role {role:?}, {name}, {until}: {range:?}");
                let records = store.records().unwrap();
                let is_known = records.iter().any(|record| matches!(record, Record::Ivs { until: at, .. } if half(*at) == half(until) && *at >= until));
                assert!(is_known || name == IV_FLOOR, "{records:?}");
            }
        }
    }
}

/// What a later version has left is refused: that is what a version before says of this one's files.
#[test]
fn a_later_version_is_refused() {
    let (_directory, store) = written_by("tables-by-role", "alone");
    store.enter(Role::Alone).unwrap();
    let table = fs::read_to_string(store.directory().join(IVS)).unwrap();
    assert!(table.starts_with("{\"schema\":3,"), "versions before read this first: {table}");
    fs::remove_file(store.directory().join(note::FILE)).unwrap();
    let error = restarted(&store).reserve(&[(key(1), 1)].into(), 5).unwrap_err();
    assert!(matches!(error, IvStoreError::Missing { .. }), "{error}");
    let (_directory, newer) = written_by("manifest-of-files", "alone");
    newer.enter(Role::Alone).unwrap();
    let path = newer.directory().join(journal::FILE);
    let text = fs::read_to_string(&path).unwrap().replacen("journal 1", "journal 2", 1);
    fs::write(path, text).unwrap();
    assert!(
        restarted(&newer)
            .take_over(&[Record::Numbers { id: sa(1), last: 5 }], Plausible::after(None))
            .is_err()
    );
}
