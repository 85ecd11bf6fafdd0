use super::*;
use forebay_state::LifeNote;

fn id(digit: char) -> SequenceId {
    digit.to_string().repeat(32).try_into().unwrap()
}

fn window(top: u64, certain: u64) -> Record {
    Record::Window { id: id('1'), top, certain, missing: vec![] }
}

fn mirror() -> (tempfile::TempDir, Mirror) {
    let directory = tempfile::tempdir().unwrap();
    let store = IvStore::new(directory.path().join("state"));
    (directory, Mirror::new(store))
}

/// What may be said without any time in between.
fn at_once() -> Plausible {
    Plausible::after(Some(Duration::ZERO))
}

/// What a process that starts with the directory finds.
fn on_disk(directory: &tempfile::TempDir) -> Received {
    let store = IvStore::new(directory.path().join("state"));
    store.windows().unwrap().remove(0).received
}

#[test]
fn limits_are_exact_at_a_take_over_and_ahead_on_the_disk_until_then() {
    let (directory, mut mirror) = mirror();
    let mut writes = 0;
    let mut disk = 0;
    for n in 0..1_000_u64 {
        let now = Duration::from_millis(2 * n);
        mirror.note(&[window(100 * n + 100, 100 * n)], Holds::New, now, at_once()).unwrap();
        let written = on_disk(&directory).top;
        assert!(written >= 100 * n + 100);
        writes += u64::from(written != disk);
        disk = written;
    }
    assert!(writes < 20, "{writes} writes in two seconds");
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory), Received { top: 100_000, certain: 99_900, missing: vec![] });
}

#[test]
fn limits_on_the_disk_are_ahead_by_what_came_in_a_second_and_not_by_a_burst() {
    let (directory, mut mirror) = mirror();
    let ahead = |top: u64| on_disk(&directory).top - top;
    // Bursts of 40 packets within a millisecond, ten of them in a second.
    let mut top = 0;
    for burst in 0..50_u64 {
        for n in 0..4_u64 {
            top += 10;
            let note = [window(top + 1, top)];
            mirror
                .note(&note, Holds::New, Duration::from_micros(100_000 * burst + 250 * n), at_once())
                .unwrap();
        }
        assert!(ahead(top) <= 2 * 440, "{} ahead", ahead(top));
    }
    // The peer is a pair, whose other gateway goes on in a stripe of its own.
    top += 1 << 24;
    mirror.note(&[window(top + 1, top)], Holds::New, Duration::from_millis(5_000), at_once()).unwrap();
    assert!(ahead(top) <= 2 * 440, "{} ahead", ahead(top));
    // Few come from now on: fewer are to be refused.
    for second in 6..10 {
        top += 1;
        mirror.note(&[window(top + 1, top)], Holds::New, Duration::from_secs(second), at_once()).unwrap();
    }
    assert!(ahead(top) <= 2 * 64 + 1, "{} ahead", ahead(top));
}

#[test]
fn what_a_gateway_that_stops_has_received_is_noted_with_its_gaps() {
    let (directory, mut mirror) = mirror();
    mirror.note(&[window(50, 40)], Holds::New, Duration::ZERO, at_once()).unwrap();
    let exact = Record::Window { id: id('1'), top: 45, certain: 45, missing: vec![(41, 42)] };
    mirror.note(&[exact], Holds::New, Duration::ZERO, at_once()).unwrap();
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory), Received { top: 45, certain: 45, missing: vec![(41, 42)] });
}

#[test]
fn a_data_plane_that_runs_is_started_again_only_for_what_it_does_not_know() {
    let (directory, mut mirror) = mirror();
    mirror.note(&[window(50, 40)], Holds::New, Duration::ZERO, at_once()).unwrap();
    mirror.settle(false).unwrap();
    assert!(!mirror.merge_running(&[window(50, 45)], at_once()).unwrap());
    assert!(mirror.merge_running(&[window(70, 60)], at_once()).unwrap());
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory), Received { top: 70, certain: 60, missing: vec![] });
    // What the peer received in a gap, which it noted without a higher number.
    let gaps = |missing| Record::Window { id: id('1'), top: 75, certain: 75, missing };
    mirror.note(&[gaps(vec![(71, 72)])], Holds::Both, Duration::ZERO, at_once()).unwrap();
    mirror.settle(false).unwrap();
    assert!(!mirror.merge_running(&[gaps(vec![(71, 72)])], at_once()).unwrap());
    assert!(mirror.merge_running(&[gaps(vec![(72, 72)])], at_once()).unwrap());
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory).missing, [(72, 72)]);
    let numbers = |last| Record::Numbers { id: id('2'), last };
    assert!(mirror.merge_running(&[numbers(9)], at_once()).unwrap());
    assert!(!mirror.merge_running(&[numbers(9), numbers(8)], at_once()).unwrap());
}

#[test]
fn of_two_windows_all_counts_as_received_that_is_in_either() {
    let one = Received { top: 100, certain: 90, missing: vec![(10, 20), (95, 99)] };
    let other = Received { top: 80, certain: 80, missing: vec![(15, 30)] };
    let both = Received { top: 100, certain: 90, missing: vec![(15, 20), (95, 99)] };
    assert_eq!(union(&one, &other), both);
    assert_eq!(union(&other, &one), both);
    assert_eq!(union(&one, &one), one);
}

#[test]
fn one_that_stands_down_tells_what_it_has_received_and_not_the_limits_of_the_other() {
    let (directory, mut mirror) = mirror();
    mirror.note(&[window(50, 50)], Holds::New, Duration::ZERO, at_once()).unwrap();
    mirror.settle(false).unwrap();
    let top = |records: Vec<Record>| {
        let tops =
            records.into_iter().filter_map(|record| WindowNote::of(&record)).map(|note| note.received.top);
        tops.collect::<Vec<_>>()
    };
    // The other one, which is active in a higher term, has a limit that is far ahead.
    assert!(mirror.merge_running(&[window(1_000, 500)], at_once()).unwrap());
    mirror.settle(true).unwrap();
    assert_eq!(on_disk(&directory).top, 1_000, "if it takes over again, it goes by both");
    assert_eq!(top(mirror.all(false).unwrap()), [50]);
    assert_eq!(top(mirror.all(true).unwrap()), [1_000]);
    mirror.settle(false).unwrap();
    assert_eq!(top(mirror.all(false).unwrap()), [1_000], "it has started its data plane since");
}

/// An attacker has the key of the link: one note rewinds a window, another ends an SA.
#[test]
fn nothing_that_the_peer_says_puts_a_window_back_or_ends_an_sa() {
    let (directory, mut mirror) = mirror();
    let exact = |top, certain, missing| Record::Window { id: id('1'), top, certain, missing };
    let numbers = |last| Record::Numbers { id: id('2'), last };
    mirror.note(&[window(4_290, 4_275), numbers(1_000)], Holds::New, Duration::ZERO, at_once()).unwrap();
    for said in [window(1, 1), exact(4_274, 4_274, vec![]), exact(0, 0, vec![])] {
        for holds in [Holds::New, Holds::Both] {
            assert_eq!(
                mirror.note(std::slice::from_ref(&said), holds, Duration::ZERO, at_once()).unwrap(),
                [id('1')]
            );
            assert_eq!(on_disk(&directory).certain, 4_275);
            assert!(on_disk(&directory).top >= 4_290);
        }
    }
    // By gaps, below what is certain.
    let gaps = exact(4_280, 4_280, vec![(1, 4_000), (4_270, 4_277)]);
    assert!(mirror.note(&[gaps], Holds::New, Duration::ZERO, at_once()).unwrap().is_empty());
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory), Received { top: 4_280, certain: 4_280, missing: vec![(4_276, 4_277)] });
    // To the end.
    let end = |key: &str| Record::Ivs { key: key.repeat(32).try_into().unwrap(), until: u64::MAX };
    let note = LifeNote { since: 1, used: None, packets: u64::MAX, bytes: 0, at: 1 };
    for said in
        [exact(u64::MAX, u64::MAX, vec![]), numbers(u64::MAX), end("1"), Record::Life { id: id('3'), note }]
    {
        for holds in [Holds::New, Holds::Both] {
            let refused = mirror.note(std::slice::from_ref(&said), holds, Duration::ZERO, at_once());
            assert!(matches!(refused, Err(IvStoreError::Implausible { .. })), "{said:?}");
        }
        assert!(mirror.merge_running(&[said], at_once()).is_err());
    }
    mirror.settle(false).unwrap();
    assert_eq!(on_disk(&directory).top, 4_280);
    let records = mirror.all(true).unwrap();
    assert!(
        records.contains(&numbers(1_000)) && !records.iter().any(|one| matches!(one, Record::Ivs { .. }))
    );
}
