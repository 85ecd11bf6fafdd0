use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use super::super::{Plausible, Record, Step, Territory};
use super::*;
use forebay_crypto::{SaKeys, SecretBytes, Suite};
use proptest::prelude::*;

/// The steps behind which a reservation that prunes may end.
const STEPS: [Step; 7] = [
    Step::Locked,
    Step::Opened,
    Step::Written,
    Step::Synced,
    Step::Renamed,
    Step::DirectorySynced,
    Step::Removed,
];

fn id(byte: u8) -> KeyId {
    let suite: Suite = "aes128gcm16".parse().unwrap();
    let key = vec![byte; suite.cipher_key_len() + suite.salt_len()];
    KeyId::of(&SaKeys::new(suite, &SecretBytes::new(key), &SecretBytes::new(vec![])).unwrap())
}

/// A store that keeps `kept` marks.
fn store(kept: usize) -> (tempfile::TempDir, IvStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore { kept, ..IvStore::new(directory.path()) };
    (directory, store)
}

fn reserve(store: &IvStore, keys: Range<u8>, now_ns: u64, count: u64) -> BTreeMap<KeyId, Range<u64>> {
    store.reserve(&keys.map(|key| (id(key), count)).collect(), now_ns).unwrap()
}

fn marks(store: &IvStore) -> usize {
    Marks::read(store).unwrap().of.len()
}

fn floor(store: &IvStore) -> u64 {
    Marks::read(store).unwrap().floor
}

fn territory(store: &IvStore, number: u8) -> IvStore {
    store.clone().in_territory(Territory::of(number).unwrap())
}

/// What a version before has left.
fn old_mark(store: &IvStore, name: &str, until: u64) {
    let text = format!("{{\"schema\":1,\"reserved_until\":{until}}}\n");
    fs::write(store.directory().join(name), text).unwrap();
}

fn old_table(store: &IvStore, name: &str, key: u8, until: u64) {
    let text = format!("{{\"schema\":1,\"marks\":{{\"{}\":{until}}}}}\n", id(key));
    fs::write(store.directory().join(name), text).unwrap();
}

/// The audit's attack: a pair is dissolved, and the clock of the gateway that is left goes back. It was either of the two.
#[test]
fn a_gateway_that_leaves_its_pair_starts_behind_the_ivs_of_both() {
    for number in 0..2 {
        let (_directory, alone) = store(8);
        let (own, now) = (territory(&alone, number), 1_000_000);
        let used = reserve(&own, 1..2, now, 10)[&id(1)].clone();
        let of_peer = if number == 0 { HALF + now + 70 } else { now + 70 };
        own.take_over(&[Record::Ivs { key: id(1), until: of_peer }], Plausible::after(None)).unwrap();
        let after = reserve(&alone, 1..2, 5, 10)[&id(1)].clone();
        assert!(after.start >= used.end && after.start >= of_peer, "gateway {number}: {after:?}");
        // It joins again, and what it used meanwhile is nobody's.
        let joined = [territory(&alone, 0), territory(&alone, 1)].map(|one| reserve(&one, 1..2, 5, 10));
        for range in joined {
            let range = &range[&id(1)];
            assert!(range.start >= after.end || range.end <= after.start, "gateway {number}: {range:?}");
            assert!(range.start >= used.end || range.end <= used.start, "gateway {number}: {range:?}");
        }
        let records = own.records().unwrap();
        assert!(
            records.contains(&Record::Ivs { key: id(1), until: Marks::read(&own).unwrap().of[&id(1)][1] })
        );
    }
}

/// Wherever a version before has left the mark of a key, in each role: no range begins before it, and nothing but the table is left.
#[test]
fn marks_of_versions_before_hold_in_every_role_and_move_to_the_table() {
    let name = format!("{}.json", id(1));
    let (high, low) = (HALF + 9_000, 9_000);
    for role in [None, Some(0), Some(1)] {
        for until in [low, high] {
            let places: [&dyn Fn(&IvStore); 4] = [
                &|store| old_mark(store, &name, until),
                &|store| old_table(store, FILE, 1, until),
                &|store| old_table(store, OTHER, 1, until),
                &|store| old_mark(store, FLOOR, until),
            ];
            for (place, leave) in places.iter().enumerate().filter(|(place, _)| *place < 3 || until == low) {
                let (_directory, store) = store(8);
                leave(&store);
                let of_role = role.map_or(store.clone(), |number| territory(&store, number));
                for key in [1, 2] {
                    let range = reserve(&of_role, key..key + 1, 5, 10)[&id(key)].clone();
                    let is_behind =
                        range.start >= until || role.is_some_and(|n| usize::from(n) != half(until));
                    assert!(is_behind || key == 2, "role {role:?}, place {place}, {until}: {range:?}");
                }
                let names = store.files.names(store.directory()).unwrap();
                assert!(
                    !names
                        .iter()
                        .any(|name| name.ends_with(".json")
                            && ![FILE, "manifest.json"].contains(&name.as_str())),
                    "{names:?}"
                );
                let known = Marks::read(&store).unwrap();
                assert!(known.floor == until || known.of[&id(1)][half(until)] >= until);
            }
        }
    }
}

/// Marks do not become more and more, and a key that comes back goes on behind its last range, even if the clock was
/// set back before all of them.
#[test]
fn marks_behind_the_clock_become_one_and_no_iv_repeats() {
    let (_directory, store) = store(8);
    for key in 0..100 {
        reserve(&store, key..key + 1, 1_000 + 10 * u64::from(key), 20);
        assert!(marks(&store) <= 9, "{} marks after {key}", marks(&store));
    }
    let floor = floor(&store);
    assert!((1_900..=2_010).contains(&floor), "{floor}");
    for key in 0..100 {
        let range = &reserve(&store, key..key + 1, 5, 1)[&id(key)];
        assert!(range.start >= 1_020 + 10 * u64::from(key), "key {key}: {range:?}");
    }
}

/// Marks that stand together are pruned too, and those ahead of the clock stay.
#[test]
fn marks_in_one_file_are_pruned_and_those_ahead_of_the_clock_stay() {
    let (_directory, store) = store(8);
    reserve(&store, 0..40, 1_000, 20);
    reserve(&store, 40..41, 1_000, 1_000_000);
    reserve(&store, 50..51, 2_000, 1);
    assert_eq!((marks(&store), floor(&store)), (2, 1_020));
    assert_eq!(reserve(&store, 40..41, 3_000, 1)[&id(40)], 1_001_000..1_001_001);
    assert_eq!(reserve(&store, 3..4, 0, 1)[&id(3)], 1_020..1_021);
}

/// Few marks are left alone, and so is what is damaged or another program's: an error for its own key only.
#[test]
fn what_is_not_a_good_mark_stays() {
    let (_directory, store) = store(2);
    reserve(&store, 0..2, 1_000, 1);
    reserve(&store, 0..1, 2_000, 1);
    assert_eq!((marks(&store), floor(&store)), (2, 0));
    let other = |name: &str| store.directory().join(name);
    let others = [other(&format!("{}.json", id(9))), other("sequences.json"), other("x.json")];
    others.iter().for_each(|path| fs::write(path, "damaged").unwrap());
    reserve(&store, 3..4, 3_000, 1);
    reserve(&store, 4..5, 4_000, 1);
    assert_eq!(floor(&store), 3_001);
    assert!(others.iter().all(|path| path.exists()));
    let damaged = store.reserve(&BTreeMap::from([(id(9), 1)]), 5_000);
    assert!(matches!(damaged, Err(IvStoreError::Corrupt { .. })));
    fs::write(store.directory().join(FLOOR), "damaged").unwrap();
    let damaged = store.reserve(&BTreeMap::from([(id(1), 1)]), 5_000);
    assert!(matches!(damaged, Err(IvStoreError::Corrupt { .. })), "without the floor IVs could repeat");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the clock does, and wherever power fails: ranges of a key never overlap.
    #[test]
    fn ranges_of_a_key_never_overlap(
        steps in prop::collection::vec((0..12u8, 1..20u8, 0..5_000u64, 0..50u64, prop::option::of((0..7usize, 0..4usize))), 1..16)
    ) {
        let (_directory, store) = store(3);
        let mut used: BTreeMap<KeyId, u64> = BTreeMap::new();
        for (first, keys, now_ns, count, crash) in steps {
            let counts = (first..first + keys).map(|key| (id(key), count)).collect();
            let mut left = crash.map(|(_, passed)| passed);
            let mut stop = |step| match (crash, &mut left) {
                (Some((at, _)), Some(left)) if STEPS[at] == step => {
                    if *left == 0 {
                        return Err(io::Error::other("power"));
                    }
                    *left -= 1;
                    Ok(())
                }
                _ => Ok(()),
            };
            let Ok(ranges) = store.reserve_stepwise(&counts, now_ns, &mut stop) else { continue };
            for (id, range) in ranges {
                let before = used.insert(id, range.end).unwrap_or_default();
                prop_assert!(range.start >= before, "{id}: {range:?} behind {before}");
            }
        }
    }
}
