use std::fs;

use proptest::prelude::*;

use super::*;
use forebay_crypto::{SaKeys, SecretBytes};
use forebay_ipsec::Spi;

const STEPS: [Step; 6] =
    [Step::Locked, Step::Opened, Step::Written, Step::Synced, Step::Renamed, Step::DirectorySynced];

fn id(number: u32) -> SequenceId {
    let mut key = vec![7; 20];
    key[..4].copy_from_slice(&number.to_be_bytes());
    let (key, auth_key) = (SecretBytes::new(key), SecretBytes::new(vec![]));
    let keys = SaKeys::new("aes128gcm16".parse().unwrap(), &key, &auth_key).unwrap();
    SequenceId::of(&keys, Spi::new(0x1001).unwrap())
}

fn up_to(number: u32, top: u64) -> WindowNote {
    WindowNote { id: id(number), received: Received::up_to(top) }
}

fn store(directory: &Path) -> WindowStore {
    WindowStore::new(&IvStore::new(directory.join("state")))
}

fn put(store: &WindowStore, notes: &[WindowNote]) {
    store.put(notes, 1_000, &|_| true).unwrap();
}

fn path(store: &WindowStore) -> PathBuf {
    store.directory.join(FILE)
}

fn lines(store: &WindowStore) -> usize {
    fs::read_to_string(path(store)).unwrap().lines().count()
}

#[test]
fn the_last_note_of_an_sa_holds_in_this_process_and_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let one = store(directory.path());
    assert_eq!(one.all().unwrap(), []);
    assert_eq!(one.of(&[id(1)]).unwrap(), []);
    assert!(!one.directory.exists(), "reading makes nothing");
    put(&one, &[up_to(1, 16), up_to(2, 16)]);
    put(&one, &[up_to(1, 500)]);
    let exact = Received { top: 400, certain: 390, missing: vec![(17, 20), (300, 300)] };
    put(&one, &[WindowNote { id: id(2), received: exact.clone() }]);
    for store in [one, store(directory.path())] {
        let found = store.of(&[id(2), id(3), id(1)]).unwrap();
        assert_eq!(found, [WindowNote { id: id(2), received: exact.clone() }, up_to(1, 500)]);
        assert_eq!((lines(&store), store.all().unwrap().len()), (4, 2));
    }
}

#[test]
fn nothing_to_note_makes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    put(&store, &[]);
    assert!(!store.directory.exists());
}

#[test]
fn the_file_is_for_the_owner_only_and_has_no_keys() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    put(&store, &[up_to(1, 16)]);
    assert_eq!(path(&store).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(path(&store)).unwrap();
    assert!(text.contains(&format!("\"id\":\"{}\"", id(1))), "{text}");
}

#[test]
fn two_processes_see_what_the_other_has_noted() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (store(directory.path()), store(directory.path()));
    put(&one, &[up_to(1, 16)]);
    put(&other, &[up_to(2, 32)]);
    put(&one, &[up_to(3, 64)]);
    put(&other, &[up_to(1, 128)]);
    for store in [&one, &other] {
        assert_eq!(store.of(&[id(1), id(2), id(3)]).unwrap(), [up_to(1, 128), up_to(2, 32), up_to(3, 64)]);
    }
}

/// The file never becomes much longer than what holds.
#[test]
fn outdated_lines_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    for top in 0..300 {
        let notes: Vec<WindowNote> = (0..100).map(|number| up_to(number, top)).collect();
        put(&store, &notes);
        assert!(lines(&store) <= OUTDATED_MIN + 200, "{} lines", lines(&store));
    }
    assert_eq!(store.of(&[id(0), id(99)]).unwrap(), [up_to(0, 299), up_to(99, 299)]);
}

#[test]
fn only_notes_of_sas_that_are_not_used_are_forgotten_and_the_oldest_first() {
    let mut notes = Notes::default();
    let count = UNUSED_MAX as u32 + 100;
    let line = |number| Line {
        batch: 1,
        id: id(number),
        top: 1,
        certain: 1,
        missing: vec![],
        at: u64::from(number),
    };
    notes.lines.extend((0..count).map(|number| (id(number), line(number))));
    let used = [id(0), id(50)];
    notes.forget(&|id| used.contains(id));
    assert_eq!(notes.lines.len(), UNUSED_MAX + 2);
    assert!(notes.lines.contains_key(&id(0)) && notes.lines.contains_key(&id(50)));
    assert!(!notes.lines.contains_key(&id(1)) && !notes.lines.contains_key(&id(99)));
    assert!(notes.lines.contains_key(&id(103)));
}

/// A write that ends anywhere damages at most what it was to note: all that was noted before holds, and more can be noted.
#[test]
fn a_torn_end_loses_nothing_that_was_noted_before() {
    let directory = tempfile::tempdir().unwrap();
    let one = store(directory.path());
    put(&one, &[up_to(1, 16), up_to(2, 16)]);
    put(&one, &[up_to(1, 32)]);
    let whole = fs::read(path(&one)).unwrap();
    put(&one, &[up_to(1, 64), up_to(2, 64), up_to(3, 64)]);
    let longer = fs::read(path(&one)).unwrap();
    for len in whole.len()..longer.len() {
        for filled in [&b""[..], &[0; 100][..]] {
            fs::write(path(&one), [&longer[..len], filled].concat()).unwrap();
            let next = store(directory.path());
            let found = next.of(&[id(1), id(2)]).unwrap();
            for (note, least) in found.iter().zip([32, 16]) {
                assert!([least, 64].contains(&note.received.top), "{note:?} at {len}");
            }
            put(&next, &[up_to(2, 1_000)]);
            assert_eq!(store(directory.path()).of(&[id(2)]).unwrap(), [up_to(2, 1_000)], "at {len}");
        }
    }
    // A block in the midst of the last batch.
    let mut bytes = longer.clone();
    bytes[whole.len() + 10..whole.len() + 200].fill(0);
    fs::write(path(&one), bytes).unwrap();
    assert_eq!(store(directory.path()).of(&[id(1)]).unwrap()[0].received.top, 32);
}

#[test]
fn damage_of_older_lines_is_an_error_and_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let one = store(directory.path());
    for top in 1..5 {
        put(&one, &[up_to(1, top), up_to(2, top)]);
    }
    let good = fs::read(path(&one)).unwrap();
    for at in [0, 5, 30, good.len() / 2] {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(path(&one), &bytes).unwrap();
        for error in [
            store(directory.path()).all().unwrap_err(),
            store(directory.path()).put(&[up_to(1, 100)], 0, &|_| true).unwrap_err(),
        ] {
            assert!(matches!(error, IvStoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("windows.log"), "{error}");
        }
        assert_eq!(fs::read(path(&one)).unwrap(), bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever a write stops, what was noted before or what was to be noted holds, and what was noted successfully always.
    #[test]
    fn no_crash_lowers_what_was_noted(
        events in prop::collection::vec((1_u64..50, prop::option::of(prop::sample::select(&STEPS[..])), any::<bool>()), 1..20),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut one = store(directory.path());
        let (mut noted, mut tried) = (0, 0);
        for (more, crash, restarts) in events {
            let stop = |at| if Some(at) == crash { Err(io::Error::other("power")) } else { Ok(()) };
            tried = noted.max(tried) + more;
            if one.put_stepwise(&[up_to(1, tried)], 0, &|_| true, &mut { stop }).is_ok() {
                noted = tried;
            }
            if restarts {
                one = store(directory.path());
            }
            let found = one.of(&[id(1)]).unwrap().first().map_or(0, |note| note.received.top);
            prop_assert!((noted..=tried).contains(&found), "{found} of {noted} to {tried}");
        }
    }
}
