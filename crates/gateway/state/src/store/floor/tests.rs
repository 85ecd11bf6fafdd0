use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

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
    let names = store.files.names(store.directory()).unwrap();
    names.iter().filter(|name| is_mark(name)).count()
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
    let floor = store.floor().unwrap();
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
    let table = Table::read(&*store.files, &store.directory().join(TOGETHER)).unwrap();
    assert_eq!((table.marks.len(), store.floor().unwrap()), (0, 1_020));
    assert_eq!(reserve(&store, 40..41, 3_000, 1)[&id(40)], 1_001_000..1_001_001);
    assert_eq!(reserve(&store, 3..4, 0, 1)[&id(3)], 1_020..1_021);
}

/// Few marks are left alone, and so is what is damaged or another program's: an error for its own key only.
#[test]
fn what_is_not_a_good_mark_stays() {
    let (_directory, store) = store(2);
    reserve(&store, 0..2, 1_000, 1);
    reserve(&store, 0..1, 2_000, 1);
    assert_eq!((marks(&store), store.floor().unwrap()), (2, 0));
    let others =
        [store.mark_path(id(9)), store.directory().join("sequences.json"), store.directory().join("x.json")];
    others.iter().for_each(|path| fs::write(path, "damaged").unwrap());
    reserve(&store, 3..4, 3_000, 1);
    reserve(&store, 4..5, 4_000, 1);
    assert_eq!(store.floor().unwrap(), 2_001);
    assert!(others.iter().all(|path| path.exists()));
    let damaged = store.reserve(&BTreeMap::from([(id(9), 1)]), 5_000);
    assert!(matches!(damaged, Err(IvStoreError::Corrupt { .. })));
    fs::write(store.directory().join(FILE), "damaged").unwrap();
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
