use proptest::prelude::*;

use std::any::Any;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use forebay_crypto::{SecretBytes, Suite};
use forebay_ipsec::Received;

/// A file system on which the process ends behind so many operations, as by a kill or a power failure that lost nothing.
#[derive(Clone, Debug)]
pub(super) struct Crashing(Arc<AtomicUsize>);

impl Crashing {
    pub(super) fn after(operations: usize) -> Arc<Crashing> {
        Arc::new(Crashing(Arc::new(AtomicUsize::new(operations))))
    }

    fn step(&self) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Err(io::Error::other("power")) } else { Ok(()) }
    }
}

impl Files for Crashing {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        System.make_directory(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        self.step()?;
        System.lock(path)
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        System.read(path, most)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        self.step()?;
        Ok(Box::new((self.clone(), System.create(path)?)))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn Writing>> {
        self.step()?;
        Ok(Box::new((self.clone(), System.append(path)?)))
    }

    fn identity(&self, path: &Path) -> io::Result<Identity> {
        System.identity(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        System.rename(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        System.sync_directory(path)
    }

    fn names(&self, path: &Path) -> io::Result<Vec<String>> {
        System.names(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        System.remove(path)
    }
}

impl Writing for (Crashing, Box<dyn Writing>) {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.step()?;
        // Some of it may have come to the file.
        let half = bytes.len() / 2;
        self.1.write(&bytes[..half])?;
        self.0.step()?;
        self.1.write(&bytes[half..])
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.step()?;
        self.1.sync()
    }
}

/// More operations than anything here takes.
pub(super) const OPERATIONS: usize = 60;

/// The same directory as a process sees it that ends behind so many operations.
pub(super) fn crashing(store: &IvStore, operations: usize) -> IvStore {
    IvStore { files: Crashing::after(operations), ..restarted(store) }
}

/// The same directory as another process sees it.
pub(super) fn restarted(store: &IvStore) -> IvStore {
    IvStore { journal: Arc::default(), written: Arc::default(), ..store.clone() }
}

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
    assert_eq!(mode(store.directory()), 0o700);
    for name in [journal::FILE, "lock", "manifest.json", "manifest.lock"] {
        assert_eq!(mode(&store.directory().join(name)), 0o600);
    }
    let text = fs::read_to_string(store.directory().join(journal::FILE)).unwrap();
    let (sum, first) = text.lines().next().unwrap().split_once(' ').unwrap();
    let name = first.strip_prefix("0 0 journal 1 ").unwrap();
    assert!(name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    assert_eq!(sum, journal::checksum(first));
    assert!(text.contains(&format!(" i/{} 1010\n", id(1))), "{text}");
}

#[test]
fn a_damaged_journal_is_an_error_and_stays_as_it_is() {
    let (_directory, store) = store();
    let path = store.directory().join(journal::FILE);
    for _ in 0..4 {
        one(&store, 1000, 10);
        store.put_windows(&[window(1, 16)], 0, &|_| true).unwrap();
    }
    let good = fs::read(&path).unwrap();
    let flipped = [0, 5, 30, good.len() / 2].map(|at| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    });
    let unknown = format!("{}{}", String::from_utf8(good.clone()).unwrap(), journal::line(90, 0, "z/0f 5"));
    let newer = journal::line(0, 0, "journal 2");
    let cut = good[good.len() / 2..].to_vec();
    for bytes in flipped.into_iter().chain([vec![], vec![0; 50], unknown.into(), newer.into(), cut]) {
        fs::write(&path, &bytes).unwrap();
        for store in [&store, &restarted(&store)] {
            for error in [
                store.reserve(&BTreeMap::from([(id(1), 1)]), 9999).unwrap_err(),
                store.windows().unwrap_err(),
                store.put_windows(&[window(1, 100)], 0, &|_| true).unwrap_err(),
                store.lives(&[sequence_id(1)], 5).unwrap_err(),
                store.reserve_sequences(&[wanted(1, 5, 100)]).unwrap_err(),
            ] {
                assert!(matches!(error, IvStoreError::Corrupt { .. }), "{error}");
                assert!(error.to_string().contains(path.to_str().unwrap()));
                assert!(miette::Diagnostic::help(&error).unwrap().to_string().contains("new key"));
            }
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = store.reserve(&BTreeMap::from([(id(1), 1)]), 9999).unwrap_err();
    assert!(matches!(error, IvStoreError::Read { .. }), "{error}");
}

/// Its end is cut off where a write ends, or an older copy is put back.
#[test]
fn a_journal_that_lacks_its_end_is_an_error_until_an_operator_says_that_it_is_lost() {
    let (_directory, store) = store();
    store.enter(Role::Alone).unwrap();
    let path = store.directory().join(journal::FILE);
    store.put_windows(&[window(1, 16)], 0, &|_| true).unwrap();
    let older = fs::read(&path).unwrap();
    store.put_windows(&[window(1, 32)], 0, &|_| true).unwrap();
    // A crash: the note says less than the journal has.
    restarted(&store).enter(Role::Alone).unwrap();
    store.put_windows(&[window(1, 64)], 0, &|_| true).unwrap();
    store.end().unwrap();
    assert_eq!(restarted(&store).verify().unwrap(), Some(1));
    fs::write(&path, &older).unwrap();
    for store in [&store, &restarted(&store)] {
        for error in
            [store.enter(Role::Alone).unwrap_err(), store.windows().unwrap_err(), store.verify().unwrap_err()]
        {
            assert!(error.to_string().contains("its end was cut off"), "{error}");
        }
    }
    fs::remove_file(&path).unwrap();
    store.accept(5).unwrap();
    store.enter(Role::Alone).unwrap();
    store.put_windows(&[window(1, 8)], 0, &|_| true).unwrap();
    restarted(&store).enter(Role::Alone).unwrap();
    assert_eq!(restarted(&store).windows().unwrap(), [window(1, 8)]);
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
fn a_crash_behind_any_operation_repeats_nothing_and_hinders_nothing() {
    for operations in 0..OPERATIONS {
        let (_directory, store) = store();
        let mut used = vec![];
        for _ in 0..2 {
            let crashed = crashing(&store, operations).reserve(&BTreeMap::from([(id(1), 10)]), 1000);
            used.extend(crashed.ok().map(|ranges| ranges[&id(1)].clone()));
            used.push(one(&store, 0, 10));
        }
        assert_disjoint(&mut used);
    }
}

#[test]
fn what_a_crash_left_of_a_temporary_file_does_not_matter() {
    let (_directory, store) = store();
    let before = one(&store, 1000, 10);
    for left in ["", "c348db16 0 0 jou", "longer than what comes\n\n\n", "\0\0\0\0\0\0"] {
        fs::write(store.directory().join("records.tmp"), left).unwrap();
        assert!(one(&restarted(&store), 0, 1).start >= before.end);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clock says and wherever reservations stop, nothing is given out twice.
    #[test]
    fn no_history_repeats_an_iv(
        events in prop::collection::vec((0..5000u64, 1..100u64, prop::option::of(0..OPERATIONS)), 1..30),
    ) {
        let (_directory, store) = store();
        let mut ranges = vec![];
        for (now_ns, count, crash) in events {
            let process = crash.map_or(store.clone(), |operations| crashing(&store, operations));
            let Ok(range) = process.reserve(&BTreeMap::from([(id(1), count)]), now_ns) else { continue };
            let range = range[&id(1)].clone();
            prop_assert!(range.start >= now_ns && range.end - range.start == count);
            ranges.push(range);
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
    assert_eq!(store.directory().read_dir().unwrap().count(), 4, "the journal, the note and their locks");
}

/// A pipe cannot be made durable, which the system is asked for and says.
#[test]
fn what_is_written_is_made_durable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // For reading and writing, so that nobody waits for the other end.
    let open = || fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let files: [Box<dyn Writing>; 2] = [Box::new(open()), Box::new(files::Appending(open()))];
    for mut file in files {
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
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Wherever a process stops, nothing of any kind that was recorded is lost, and no number is given out twice.
    #[test]
    fn no_crash_lowers_what_was_recorded(
        events in prop::collection::vec((1_u64..50, prop::option::of(0..OPERATIONS), any::<bool>()), 1..20),
    ) {
        let (_directory, store) = store();
        let (mut noted, mut tried, mut given, mut life) = (0, 0, 0, LifeNote::default());
        for (more, crash, restarts) in events {
            let process = match (crash, restarts) {
                (Some(operations), _) => crashing(&store, operations),
                (None, true) => restarted(&store),
                (None, false) => store.clone(),
            };
            if let Ok(blocks) = process.reserve_sequences(&[wanted(1, more, u64::MAX)]) {
                prop_assert!(blocks[0].after >= given);
                given = blocks[0].last;
            }
            tried = noted.max(tried) + more;
            if process.put_windows(&[window(1, tried)], 0, &|_| true).is_ok() {
                noted = tried;
            }
            let next = LifeNote { packets: life.packets + more, ..life };
            if process.settle_lives(&[(sequence_id(1), next)]).is_ok() {
                life = next;
            }
            let found = store.windows_of(&[sequence_id(1)]).unwrap().first().map_or(0, |note| note.received.top);
            prop_assert!((noted..=tried).contains(&found), "{found} of {noted} to {tried}");
            prop_assert!(store.lives(&[sequence_id(1)], 0).unwrap()[0].packets >= life.packets);
        }
    }
}

/// A reservation costs what is reserved, whichever SAs were there before; and what they used is known when they come back.
#[test]
fn numbers_of_sas_that_are_gone_are_known_when_they_come_back() {
    let (_directory, store) = store();
    let want = |n| Wanted { id: id_of(n), count: 10, end: u64::MAX };
    store.reserve_sequences(&(1..=2_000).map(want).collect::<Vec<_>>()).unwrap();
    let size = || fs::metadata(store.directory().join(journal::FILE)).unwrap().len();
    let before = size();
    store.reserve_sequences(&[want(5)]).unwrap();
    assert!(size() - before < 100, "a line");
    let block = restarted(&store).reserve_sequences(&[want(1_999)]).unwrap()[0];
    assert_eq!((block.after, block.last), (10, 20));
}

/// The records of one process are seen by another.
#[test]
fn two_processes_see_what_the_other_has_recorded() {
    let (_directory, one) = store();
    let other = restarted(&one);
    one.put_windows(&[window(1, 16)], 0, &|_| true).unwrap();
    other.put_windows(&[window(2, 32)], 0, &|_| true).unwrap();
    one.put_windows(&[window(3, 64)], 0, &|_| true).unwrap();
    other.put_windows(&[window(1, 128)], 0, &|_| true).unwrap();
    let ids = [1, 2, 3].map(sequence_id);
    for store in [&one, &other] {
        assert_eq!(store.windows_of(&ids).unwrap(), [window(1, 128), window(2, 32), window(3, 64)]);
    }
}

/// The journal never becomes much longer than what holds, and many keys behind the clock become one.
#[test]
fn outdated_lines_are_removed_and_keys_behind_the_clock_are_pruned() {
    let (_directory, store) = store();
    let store = IvStore { kept: 8, ..store };
    for round in 0..300_u64 {
        let notes: Vec<WindowNote> = (0..100).map(|number| window(number, round)).collect();
        // A second, which is behind all IVs.
        store.put_windows(&notes, 1, &|_| true).unwrap();
        let key = (round % 200) as u8;
        reserve_of(&store, key, 1_000 + 10 * round, 20);
        let text = fs::read_to_string(store.directory().join(journal::FILE)).unwrap();
        assert!(text.lines().count() <= 4_096 + 600, "{} lines", text.lines().count());
    }
    let ids = [0, 99].map(sequence_id);
    assert_eq!(restarted(&store).windows_of(&ids).unwrap(), [window(0, 299), window(99, 299)]);
    let pruned = |store: &IvStore| store.read(|records| (records.ivs.len(), records.floor)).unwrap();
    let (keys, floor) = pruned(&store);
    assert!(keys < 200 && (1_000..=4_010).contains(&floor), "{keys} {floor}");
    assert_eq!(pruned(&restarted(&store)), (keys, floor));
    for key in 0..200_u8 {
        let last = 1_000 + 10 * if key < 100 { 200 + u64::from(key) } else { u64::from(key) } + 20;
        let range = reserve_of(&store, key, 5, 1);
        assert!(range.start >= last, "key {key}: {range:?}");
    }
}

fn reserve_of(store: &IvStore, key: u8, now_ns: u64, count: u64) -> Range<u64> {
    store.reserve(&BTreeMap::from([(id(key), count)]), now_ns).unwrap()[&id(key)].clone()
}

/// A pair is dissolved, and the clock of the gateway that is left goes back. It was either of the two.
#[test]
fn a_gateway_that_leaves_its_pair_starts_behind_the_ivs_of_both() {
    for number in 0..2 {
        let (_directory, alone) = store();
        let territory = |number| alone.clone().in_territory(Territory::of(number).unwrap());
        let (own, now) = (territory(number), 1_000_000);
        let used = reserve_of(&own, 1, now, 10);
        let of_peer = if number == 0 { HALF + now + 70 } else { now + 70 };
        own.take_over(&[Record::Ivs { key: id(1), until: of_peer }], Plausible::after(None)).unwrap();
        let after = reserve_of(&alone, 1, 5, 10);
        assert!(after.start >= used.end && after.start >= of_peer, "gateway {number}: {after:?}");
        // It joins again, and what it used meanwhile is nobody's.
        for range in [territory(0), territory(1)].map(|one| reserve_of(&one, 1, 5, 10)) {
            assert!(range.start >= after.end || range.end <= after.start, "gateway {number}: {range:?}");
            assert!(range.start >= used.end || range.end <= used.start, "gateway {number}: {range:?}");
        }
        let ends = own.read(|records| records.ivs_of(id(1))).unwrap();
        assert!(own.records().unwrap().contains(&Record::Ivs { key: id(1), until: ends[1] }));
    }
}

/// A write that ends anywhere damages at most what it was to record: all that was recorded before holds, and more can be recorded.
#[test]
fn a_torn_end_loses_nothing_that_was_recorded_before() {
    let (_directory, store) = store();
    let put = |store: &IvStore, notes: &[WindowNote]| store.put_windows(notes, 1_000, &|_| true).unwrap();
    put(&store, &[window(1, 16), window(2, 16)]);
    put(&store, &[window(1, 32)]);
    let path = store.directory().join(journal::FILE);
    let whole = fs::read(&path).unwrap();
    put(&store, &[window(1, 64), window(2, 64), window(3, 64)]);
    let longer = fs::read(&path).unwrap();
    let ids = [1, 2].map(sequence_id);
    for len in whole.len()..longer.len() {
        for filled in [&b""[..], &[0; 100][..]] {
            fs::write(&path, [&longer[..len], filled].concat()).unwrap();
            let next = restarted(&store);
            for (note, least) in next.windows_of(&ids).unwrap().iter().zip([32, 16]) {
                assert!([least, 64].contains(&note.received.top), "{note:?} at {len}");
            }
            put(&next, &[window(2, 1_000)]);
            assert_eq!(restarted(&store).windows_of(&ids[1..]).unwrap(), [window(2, 1_000)], "at {len}");
        }
    }
    // A block in the midst of the last batch.
    let mut bytes = longer.clone();
    bytes[whole.len() + 10..whole.len() + 150].fill(0);
    fs::write(&path, bytes).unwrap();
    assert_eq!(restarted(&store).windows_of(&ids).unwrap()[0].received.top, 32);
}

#[test]
fn the_last_note_of_an_sa_holds_in_this_process_and_the_next() {
    let (_directory, one) = store();
    assert_eq!((one.windows().unwrap(), one.windows_of(&[sequence_id(1)]).unwrap()), (vec![], vec![]));
    one.put_windows(&[], 0, &|_| true).unwrap();
    assert!(!one.directory().exists(), "neither reading nor nothing to note makes anything");
    one.put_windows(&[window(1, 16), window(2, 16)], 0, &|_| true).unwrap();
    one.put_windows(&[window(1, 500)], 0, &|_| true).unwrap();
    let received = Received { top: 400, certain: 390, missing: vec![(17, 20), (300, 300)] };
    let exact = WindowNote { id: sequence_id(2), received };
    one.put_windows(std::slice::from_ref(&exact), 0, &|_| true).unwrap();
    for store in [restarted(&one), one] {
        let found = store.windows_of(&[2, 3, 1].map(sequence_id)).unwrap();
        assert_eq!(found, [exact.clone(), window(1, 500)]);
        assert_eq!(store.windows().unwrap().len(), 2);
    }
}

fn window(byte: u8, top: u64) -> WindowNote {
    WindowNote { id: sequence_id(byte), received: Received::up_to(top) }
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
