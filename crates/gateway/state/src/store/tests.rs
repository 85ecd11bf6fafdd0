use proptest::prelude::*;

use std::fs;

use super::*;
use forebay_crypto::{SecretBytes, Suite};

const STEPS: [Step; 6] =
    [Step::Locked, Step::Opened, Step::Written, Step::Synced, Step::Renamed, Step::DirectorySynced];

fn keys(suite: &str, byte: u8) -> SaKeys {
    let suite: Suite = suite.parse().unwrap();
    let key = vec![byte; suite.cipher_key_len() + suite.salt_len()];
    let auth_key = vec![byte; suite.integrity_key_len()];
    SaKeys::new(suite, &SecretBytes::new(key), &SecretBytes::new(auth_key)).unwrap()
}

fn id(byte: u8) -> KeyId {
    KeyId::of(&keys("aes128gcm16", byte))
}

fn one(store: &IvStore, now_ns: u64, count: u64) -> Range<u64> {
    store.reserve(&BTreeMap::from([(id(1), count)]), now_ns).unwrap()[&id(1)].clone()
}

/// A reservation that stops behind `step`, as if the power had gone.
fn crash(store: &IvStore, now_ns: u64, count: u64, step: Step) {
    let stop = |at| if at == step { Err(io::Error::other("power")) } else { Ok(()) };
    let counts = BTreeMap::from([(id(1), count)]);
    assert!(matches!(
        store.reserve_stepwise(&counts, now_ns, &mut { stop }),
        Err(IvStoreError::Write { .. })
    ));
}

fn store() -> (tempfile::TempDir, IvStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore::new(directory.path().join("deep/state"));
    (directory, store)
}

#[test]
fn ranges_start_behind_the_clock_and_the_mark() {
    let (_directory, store) = store();
    assert_eq!(one(&store, 1000, 10), 1000..1010);
    assert_eq!(one(&store, 1000, 10), 1010..1020, "the clock stood still");
    assert_eq!(one(&store, 5, 10), 1020..1030, "the clock ran backwards");
    assert_eq!(one(&store, 2000, 10), 2000..2010);
    assert_eq!(one(&store, 0, 0), 2010..2010);
}

#[test]
fn keys_have_marks_of_their_own() {
    let (_directory, store) = store();
    let both = BTreeMap::from([(id(1), 5), (id(2), 7)]);
    let first = store.reserve(&both, 100).unwrap();
    assert_eq!((&first[&id(1)], &first[&id(2)]), (&(100..105), &(100..107)));
    assert_eq!(one(&store, 0, 1), 105..106);
    assert_eq!(store.reserve(&both, 0).unwrap()[&id(2)], 107..114);
}

#[test]
fn sas_with_one_key_get_disjoint_shares() {
    let (_directory, store) = store();
    let sas =
        [keys("aes128gcm16", 1), keys("aes128gcm16", 2), keys("aes128ctr-sha256", 1), keys("aes128gcm8", 1)];
    let mut ranges = store.ranges(&sas, 1000, 4).unwrap();
    ranges.extend(store.ranges(&sas, 1000, 4).unwrap());
    let mut seen = std::collections::HashSet::new();
    for (range, keys) in ranges.iter_mut().zip(sas.iter().chain(&sas)) {
        assert_eq!(range.remaining(), 4);
        while let Some(iv) = range.take() {
            assert!(seen.insert((KeyId::of(keys), iv)), "{iv} came twice");
        }
    }
    assert_eq!(seen.len(), 32);
}

#[test]
fn no_sas_need_no_directory() {
    let (directory, store) = store();
    assert!(store.ranges([], 0, 1).unwrap().is_empty());
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn files_are_for_the_owner_only_and_named_by_the_fingerprint() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, store) = store();
    one(&store, 1000, 10);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let table = store.directory().join("together.json");
    assert_eq!(mode(store.directory()), 0o700);
    assert_eq!((mode(&table), mode(&store.directory().join("lock"))), (0o600, 0o600));
    let text = format!("{{\"schema\":2,\"floor\":0,\"marks\":{{\"{}\":[1010,0]}}}}\n", id(1));
    assert_eq!(fs::read_to_string(&table).unwrap(), text);
}

/// Files of one mark, as versions before wrote them.
#[test]
fn damaged_marks_are_errors_and_stay_as_they_are() {
    let (_directory, store) = store();
    let path = store.directory().join(format!("{}.json", id(1)));
    let table = store.directory().join("together.json");
    one(&store, 1000, 10);
    let damaged: [&[u8]; 9] = [
        b"",
        b"\0\0\0\0",
        b"\xff\xfe",
        b"{\"schema\":1}",
        b"{\"schema\":3,\"reserved_until\":5}",
        b"{\"schema\":1,\"reserved_until\":-5}",
        b"{\"schema\":1,\"reserved_until\":1e3}",
        b"{\"schema\":1,\"reserved_until\":5} 6",
        &[b' '; 1000],
    ];
    let good = fs::read(&table).unwrap();
    for bytes in damaged {
        for path in [&path, &table] {
            fs::write(path, bytes).unwrap();
            let error = store.reserve(&BTreeMap::from([(id(1), 1)]), 9999).unwrap_err();
            assert!(matches!(error, IvStoreError::Corrupt { .. }), "{bytes:?}: {error}");
            assert!(error.to_string().contains(path.to_str().unwrap()));
            assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("new key"));
            assert_eq!(fs::read(path).unwrap(), bytes);
            fs::write(&table, &good).unwrap();
            let _ = fs::remove_file(store.directory().join(format!("{}.json", id(1))));
        }
    }
    for path in [path, table] {
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).unwrap();
        let error = store.reserve(&BTreeMap::from([(id(1), 1)]), 9999).unwrap_err();
        assert!(matches!(error, IvStoreError::Read { .. }), "{error}");
        fs::remove_dir(&path).unwrap();
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = IvStore::new(path).reserve(&BTreeMap::from([(id(1), 1)]), 0).unwrap_err();
        assert!(matches!(error, IvStoreError::Write { .. }), "{error}");
        assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("--state DIR"));
    }
}

#[test]
fn numbers_come_to_an_end_without_wrapping() {
    let (_directory, store) = store();
    assert_eq!(one(&store, u64::MAX - 10, 10), u64::MAX - 10..u64::MAX);
    let error = store.reserve(&BTreeMap::from([(id(1), 1)]), 0).unwrap_err();
    assert!(matches!(error, IvStoreError::UsedUp { .. }), "{error}");
}

#[test]
fn a_crash_behind_any_step_repeats_nothing_and_hinders_nothing() {
    for step in STEPS {
        let (_directory, store) = store();
        let before = one(&store, 1000, 10);
        crash(&store, 1000, 10, step);
        let after = one(&store, 1000, 10);
        assert!(after.start >= before.end, "{step:?}");
        crash(&store, 0, 1, step);
        assert!(one(&store, 0, 1).start >= after.end, "{step:?}");
    }
}

#[test]
fn what_a_crash_left_of_a_temporary_file_does_not_matter() {
    let (_directory, store) = store();
    let before = one(&store, 1000, 10);
    for left in ["", "{\"sch", "{\"schema\":1,\"reserved_until\":3}\nlonger than what comes", "\0\0\0\0\0\0"]
    {
        fs::write(store.directory().join("together.tmp"), left).unwrap();
        assert!(one(&store, 0, 1).start >= before.end);
    }
}

#[test]
fn threads_that_reserve_at_once_get_disjoint_ranges() {
    let (_directory, store) = store();
    let (threads, rounds) = (8, 25);
    let mut ranges: Vec<Range<u64>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let store = IvStore::new(store.directory());
                // Each with a clock of its own, some of which stand still.
                scope.spawn(move || -> Vec<_> {
                    (0..rounds).map(|round| one(&store, thread * round, 1 + thread)).collect()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(ranges.len(), (threads * rounds) as usize);
    assert_disjoint(&mut ranges);
}

fn assert_disjoint(ranges: &mut [Range<u64>]) {
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?} overlap");
    }
}

/// What happens to a store.
#[derive(Clone, Debug)]
enum Event {
    Reserve {
        now_ns: u64,
        count: u64,
    },
    Crash {
        now_ns: u64,
        count: u64,
        step: Step,
    },
    /// A temporary file is cut off, as a file system may after a power failure.
    Truncate,
}

fn event() -> impl Strategy<Value = Event> {
    let (now_ns, count) = (0..5000u64, 1..100u64);
    prop_oneof![
        (now_ns.clone(), count.clone()).prop_map(|(now_ns, count)| Event::Reserve { now_ns, count }),
        (now_ns, count, 0..STEPS.len()).prop_map(|(now_ns, count, step)| Event::Crash {
            now_ns,
            count,
            step: STEPS[step]
        }),
        Just(Event::Truncate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clock says and wherever reservations stop, nothing is given out twice.
    #[test]
    fn no_history_repeats_an_iv(events in proptest::collection::vec(event(), 1..30)) {
        let (_directory, store) = store();
        let mut ranges = vec![];
        for event in events {
            match event {
                Event::Reserve { now_ns, count } => {
                    let range = one(&store, now_ns, count);
                    prop_assert!(range.start >= now_ns && range.end - range.start == count);
                    ranges.push(range);
                }
                Event::Crash { now_ns, count, step } => crash(&store, now_ns, count, step),
                Event::Truncate => {
                    if store.directory().is_dir() {
                        fs::write(store.directory().join("together.tmp"), "").unwrap();
                    }
                }
            }
        }
        assert_disjoint(&mut ranges);
    }
}

#[test]
fn marks_of_all_keys_stand_in_one_file() {
    let (_directory, store) = store();
    let many: BTreeMap<KeyId, u64> = (0..100).map(|byte| (id(byte), 10)).collect();
    assert_eq!(one(&store, 1000, 10), 1000..1010);
    let all = store.reserve(&many, 0).unwrap();
    assert_eq!(all.len(), 100);
    assert_eq!((&all[&id(1)], &all[&id(2)]), (&(1010..1020), &(0..10)));
    assert_eq!(one(&store, 0, 10), 1020..1030);
    assert_eq!(store.reserve(&many, 0).unwrap()[&id(1)], 1030..1040);
    let names = store.directory().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let records = names.filter(|name| name.to_string_lossy().ends_with(".json")).count();
    assert_eq!(records, 2, "the table, and whose the directory is");
}

/// A pipe cannot be made durable, which the system is asked for and says.
#[test]
fn what_is_written_is_made_durable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // For reading and writing, so that nobody waits for the other end.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for mut file in [System.create(&path).unwrap(), System.append(&path).unwrap()] {
        file.write(b"mark").unwrap();
        assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}

fn wanted(byte: u8, count: u64, end: u64) -> Wanted {
    Wanted { id: sequence_id(byte), count, end }
}

fn sequence_id(byte: u8) -> SequenceId {
    SequenceId::of(&keys("aes128gcm16", byte), forebay_ipsec::Spi::new(0x1001).unwrap())
}

/// Of an SA with this number.
fn id_of(number: u32) -> SequenceId {
    SequenceId::of(&keys("aes128gcm16", 1), forebay_ipsec::Spi::new(0x1000 + number).unwrap())
}

fn block(store: &IvStore, byte: u8, count: u64, end: u64) -> (u64, u64) {
    let blocks = store.reserve_sequences(&[wanted(byte, count, end)]).unwrap();
    (blocks[0].after, blocks[0].last)
}

#[test]
fn sequence_numbers_go_on_behind_the_last_block_and_end() {
    let (_directory, store) = store();
    assert_eq!(block(&store, 1, 10, 25), (0, 10));
    assert_eq!(block(&store, 1, 10, 25), (10, 20));
    assert_eq!(block(&store, 2, 10, 25), (0, 10), "another SA");
    assert_eq!(block(&store, 1, 10, 25), (20, 25), "what is left");
    assert_eq!(block(&store, 1, 10, 25), (25, 25), "nothing, for good");
    assert_eq!(block(&store, 3, u64::MAX, u64::MAX), (0, u64::MAX));
    assert_eq!(block(&store, 3, 1, u64::MAX), (u64::MAX, u64::MAX));
    let twice = store.reserve_sequences(&[wanted(4, 5, 100), wanted(4, 5, 100)]).unwrap();
    assert_eq!((twice[0].last, twice[1].after), (5, 5), "two SAs with one SPI and key share no number");
}

#[test]
fn what_was_not_used_is_given_out_again_unless_somebody_else_has_reserved() {
    let (_directory, store) = store();
    assert_eq!(block(&store, 1, 100, 1_000), (0, 100));
    store.settle_sequences(&[Used { id: sequence_id(1), last: 100, sent: 7 }]).unwrap();
    assert_eq!(block(&store, 1, 100, 1_000), (7, 107));
    assert_eq!(block(&store, 1, 100, 1_000), (107, 207));
    store.settle_sequences(&[Used { id: sequence_id(1), last: 107, sent: 9 }]).unwrap();
    assert_eq!(block(&store, 1, 100, 1_000), (207, 307));
    store.settle_sequences(&[Used { id: sequence_id(9), last: 107, sent: 9 }]).unwrap();
    assert_eq!(block(&store, 9, 1, 10), (0, 1), "of what nobody knows nothing is noted");
}

#[test]
fn an_sa_is_known_by_spi_and_all_its_keys() {
    let spi = |spi| forebay_ipsec::Spi::new(spi).unwrap();
    let one = SequenceId::of(&keys("sha256", 1), spi(0x1001));
    assert_ne!(one, SequenceId::of(&keys("sha256", 2), spi(0x1001)), "without a cipher too");
    assert_ne!(one, SequenceId::of(&keys("sha256", 1), spi(0x1002)));
    // (printf 'forebay sequence numbers v1\0\0\0\x10\1'; printf '\0\0\0\0\0\0\0\x10'; printf '\1%.0s' {1..16};
    //  printf '\0\0\0\0\0\0\0\0') | sha256sum | cut -c1-32
    assert_eq!(sequence_id(1).to_string(), "9ec756e096a28abd40fde631a986d900");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wherever a reservation of numbers stops, nothing that was given out is given out again.
    #[test]
    fn no_crash_repeats_a_sequence_number(
        events in proptest::collection::vec((1_u64..50, proptest::option::of(proptest::sample::select(&STEPS[..]))), 1..20),
    ) {
        let (_directory, store) = store();
        let mut given = 0;
        for (count, crash) in events {
            let stop = |at| if Some(at) == crash { Err(io::Error::other("power")) } else { Ok(()) };
            let raise = |marks: &mut BTreeMap<String, u64>| {
                let mark = marks.entry(sequence_id(1).to_string()).or_default();
                *mark += count;
                (*mark - count, *mark)
            };
            if let Ok((after, last)) = store.change_sequences_stepwise(&[sequence_id(1)], raise, &mut { stop }) {
                prop_assert!(after >= given);
                given = last;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whichever SAs come and go, wherever the files are written and whatever is in them, no number is given out twice.
    #[test]
    fn marks_of_sas_that_are_gone_come_back_with_them(
        events in proptest::collection::vec(
            (1_u32..12, 1_u64..50, proptest::collection::btree_set(1_u32..12, 0..4),
             proptest::option::of((0_usize..3, proptest::sample::select(&STEPS[..])))), 1..40),
    ) {
        let (_directory, store) = store();
        let store = IvStore { kept: 3, ..store };
        let mut given = BTreeMap::new();
        for (sa, count, used, crash) in events {
            let wanted = Wanted { id: id_of(sa), count, end: u64::MAX };
            let block = store.reserve_sequences(&[wanted]).unwrap()[0];
            let before = given.insert(sa, block.last).unwrap_or(0);
            prop_assert!(block.after >= before, "{sa}: {block:?} behind {before}");
            let mut left = crash.map(|(count, _)| count);
            let stop = |at| match crash {
                Some((_, step)) if step == at => match &mut left {
                    Some(0) => Err(io::Error::other("power")),
                    Some(left) => { *left -= 1; Ok(()) }
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            let used = used.into_iter().map(id_of).collect();
            let retired = store.retire_sequences_stepwise(&used, &mut { stop });
            prop_assert!(retired.is_ok() || crash.is_some());
            for (sa, last) in &given {
                let known = |records: Vec<Record>| {
                    records.into_iter().any(|one| one == Record::Numbers { id: id_of(*sa), last: *last })
                };
                prop_assert!(known(store.records().unwrap()), "{sa} is in neither file");
            }
        }
    }
}

#[test]
fn marks_of_sas_that_are_gone_are_in_a_file_of_their_own() {
    let (_directory, store) = store();
    let want = |n| Wanted { id: id_of(n), count: 10, end: u64::MAX };
    let all: Vec<Wanted> = (1..=2_000).map(want).collect();
    store.reserve_sequences(&all).unwrap();
    let size = |name: &str| fs::metadata(store.directory().join(name)).map_or(0, |file| file.len());
    let before = size("sequences.json");
    store.retire_sequences(&all.iter().map(|one| one.id).collect()).unwrap();
    assert_eq!(size("sequences.json"), before, "all are used");
    store.retire_sequences(&(1..=5).map(id_of).collect()).unwrap();
    assert!(size("sequences.json") < 1_000 && size("retired-sequences.txt") > 50_000);
    let block = store.reserve_sequences(&[want(1_999)]).unwrap()[0];
    assert_eq!((block.after, block.last), (10, 20));
    fs::write(store.directory().join("retired-sequences.txt"), "0f 1\n").unwrap();
    let damaged = store.reserve_sequences(&[want(1_500)]).unwrap_err();
    assert!(damaged.to_string().contains("line 1"), "{damaged}");
    // Those that are there need no other file.
    store.reserve_sequences(&[want(3)]).unwrap();
}

#[test]
fn a_directory_is_that_of_one_gateway_at_a_time_and_still_gives_ivs_to_others() {
    let (_directory, store) = store();
    let claim = store.claim().unwrap();
    let other = IvStore::new(store.directory());
    assert!(matches!(other.claim(), Err(IvStoreError::InUse { .. })));
    let first = one(&other, 5, 10);
    assert!(first.end <= one(&store, 5, 10).start);
    drop(claim);
    other.claim().unwrap();
}
