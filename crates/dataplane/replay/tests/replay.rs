//! The replay window against slow, obvious ones: a set of every number ever settled, and the
//! equations and the pseudo-code of RFC 4303 appendix A written down as they stand.

use std::collections::HashSet;

use forebay_replay::{MAX_WINDOW, Replay, ReplayWindow};
use proptest::prelude::*;

/// Everything that was ever settled, and the highest of it.
#[derive(Debug, Default)]
struct Everything {
    window: u64,
    highest: u64,
    settled: HashSet<u64>,
}

impl Everything {
    fn new(window: u32) -> Everything {
        Everything { window: window.into(), ..Everything::default() }
    }

    /// RFC 4303 3.4.3 and 2.2, in its order: zero is never sent; right of the window is new; left of it
    /// is too old; inside, what was received before is a duplicate. Width zero: anything goes.
    fn check(&self, sequence: u64) -> Replay {
        let left_of_window = u128::from(sequence) + u128::from(self.window) <= u128::from(self.highest);
        match sequence {
            0 => Replay::Zero,
            _ if self.window == 0 || sequence > self.highest => Replay::New,
            _ if left_of_window => Replay::TooOld,
            _ if self.settled.contains(&sequence) => Replay::Duplicate,
            _ => Replay::New,
        }
    }

    fn settle(&mut self, sequence: u64) -> Replay {
        let verdict = self.check(sequence);
        if verdict == Replay::New {
            self.settled.insert(sequence);
            self.highest = self.highest.max(sequence);
        }
        verdict
    }
}

/// Where the next number is, seen from the highest so far.
#[derive(Clone, Debug)]
enum Step {
    /// This far right of the highest.
    Right(u64),
    /// This far left of the highest.
    Left(u64),
    /// This far from the first number that is too old, either way.
    AtBottom(i64),
    /// This far, either way, from a whole turn of the ring right of the highest.
    OverTheRing { turns: u64, off: i64 },
    /// A jump of about a quarter, a half or a whole subspace, to either side.
    Far { power: u32, off: i64, left: bool },
    /// One of the last numbers again.
    Again(usize),
    /// Anywhere.
    Anywhere(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u64..4).prop_map(Step::Right),
        3 => (1u64..200).prop_map(Step::Right),
        6 => (0u64..130).prop_map(Step::Left),
        2 => (0u64..70_000).prop_map(Step::Left),
        4 => (-66i64..67).prop_map(Step::AtBottom),
        1 => (1u64..3, -66i64..67).prop_map(|(turns, off)| Step::OverTheRing { turns, off }),
        1 => (30u32..33, -66i64..67, prop::bool::weighted(0.3))
            .prop_map(|(power, off, left)| Step::Far { power, off, left }),
        3 => (0usize..8).prop_map(Step::Again),
        1 => prop_oneof![Just(0), any::<u64>(), 0u64..5].prop_map(Step::Anywhere),
    ]
}

fn window() -> impl Strategy<Value = u32> {
    prop_oneof![
        1 => Just(0u32),
        4 => 1u32..=200,
        2 => (1u32..=1_024, -1i64..=1).prop_map(|(words, off)| (64 * i64::from(words) + off) as u32),
        2 => 1u32..=MAX_WINDOW,
        1 => Just(MAX_WINDOW),
    ]
    .prop_map(|window| window.min(MAX_WINDOW))
}

/// A number to begin at: the first, or around a border of subspaces, or the last there are.
fn begin() -> impl Strategy<Value = u64> {
    let near = |border: u64| (0u64..400).prop_map(move |off| (border - 200).saturating_add(off));
    prop_oneof![
        3 => Just(0u64),
        2 => 0u64..300,
        2 => near(1 << 32),
        2 => near(1 << 33),
        1 => near(0xffff_ffff << 32),
        2 => (0u64..400).prop_map(|off| u64::MAX - off),
        1 => any::<u64>(),
    ]
}

fn place(step: &Step, highest: u64, window: u32, past: &[u64]) -> u64 {
    let window = u64::from(window);
    let turn = 64 * (window.div_ceil(64) + 1).next_power_of_two();
    match *step {
        Step::Right(by) => highest.saturating_add(by),
        Step::Left(by) => highest.saturating_sub(by),
        Step::AtBottom(off) => highest.saturating_sub(window).saturating_add_signed(off),
        Step::OverTheRing { turns, off } => highest.saturating_add(turns * turn).saturating_add_signed(off),
        Step::Far { power, off, left: false } => {
            highest.saturating_add(1 << power).saturating_add_signed(off)
        }
        Step::Far { power, off, left: true } => highest.saturating_sub(1 << power).saturating_add_signed(off),
        Step::Again(back) => past.iter().rev().nth(back).copied().unwrap_or(1),
        // Far ahead would leave nothing to test behind it: mostly near the bottom of all numbers.
        Step::Anywhere(number) => number >> (number % 60),
    }
}

/// Both windows after `steps` from `begin`; fails where they differ.
fn walk(window: u32, begin: u64, steps: &[Step]) -> Result<(ReplayWindow, Everything), TestCaseError> {
    let (mut ours, mut oracle) = (ReplayWindow::new(window), Everything::new(window));
    prop_assert_eq!(ours.settle(begin), oracle.settle(begin));
    let mut past = vec![begin];
    for step in steps {
        let sequence = place(step, oracle.highest, window, &past);
        let expected = oracle.check(sequence);
        prop_assert_eq!(ours.check(sequence), expected, "check {} at {}", sequence, oracle.highest);
        prop_assert_eq!(ours.settle(sequence), expected, "settle {} at {}", sequence, oracle.highest);
        oracle.settle(sequence);
        prop_assert_eq!(ours.top(), oracle.highest);
        let again = oracle.check(sequence);
        prop_assert_eq!(ours.check(sequence), again, "settled {} and looked again", sequence);
        past.push(sequence);
    }
    Ok((ours, oracle))
}

/// Th and Tl of the appendix, and its W.
#[derive(Clone, Copy, Debug)]
struct Appendix {
    th: u32,
    tl: u32,
    w: u32,
}

impl Appendix {
    fn new(top: u64, window: u32) -> Appendix {
        Appendix { th: (top >> 32) as u32, tl: top as u32, w: window }
    }

    /// A2.2, "arithmetic is mod 2^32".
    fn seqh(self, seql: u32) -> u32 {
        let Appendix { th, tl, w } = self;
        let bl = tl.wrapping_sub(w).wrapping_add(1);
        if tl >= w - 1 {
            // Case A
            if seql >= bl { th } else { th.wrapping_add(1) }
        } else {
            // Case B
            if seql >= bl { th.wrapping_sub(1) } else { th }
        }
    }
}

/// The window that inference goes by: RFC 4303 3.4.3 asks for at least 32 packets, and with less, or
/// none, there still is a highest number to be near to.
fn inferred_by(window: u32) -> u32 {
    window.max(32)
}

/// All numbers with this low half that are near, and the one that is in the window or right of it, by
/// less than a subspace: the number nearest to the window, where what is left of it is no choice.
fn brute_force(top: u64, window: u32, low: u32) -> Option<u64> {
    let bottom = i128::from(top) - i128::from(inferred_by(window)) + 1;
    let mut candidates = (-2i128..=2).map(|off| ((i128::from(top >> 32) + off) << 32) + i128::from(low));
    let found = candidates.find(|&number| number >= bottom && number < bottom + (1 << 32));
    u64::try_from(found.expect("each low half is once in 2^32 numbers")).ok()
}

/// A2.3 as a receiver: whether a packet passes whose real number is `sequence`.
struct Receiver {
    state: Appendix,
    seen: HashSet<u64>,
}

impl Receiver {
    fn pass(&mut self, sequence: u64) -> bool {
        let (seql, seqh) = (sequence as u32, self.state.seqh(sequence as u32));
        let Appendix { th, tl, w } = self.state;
        let number = u64::from(seqh) << 32 | u64::from(seql);
        // The integrity check covers the high half, so it passes only where that was told right.
        if number != sequence {
            return false;
        }
        let bl = tl.wrapping_sub(w).wrapping_add(1);
        let in_window = if tl >= w - 1 { seql >= bl && seql <= tl } else { seql >= bl || seql <= tl };
        if in_window {
            return self.seen.insert(number);
        }
        self.state = Appendix { th: if seqh == th.wrapping_add(1) { seqh } else { th }, tl: seql, w };
        self.seen.insert(number);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn it_says_what_a_set_of_all_numbers_says(
        window in window(), begin in begin(), steps in prop::collection::vec(step(), 1..400),
    ) {
        walk(window, begin, &steps)?;
    }

    /// The whole state: each number that can make a difference, not only those that were drawn.
    #[test]
    fn every_number_around_the_window_agrees(
        window in 0u32..=200, begin in begin(), steps in prop::collection::vec(step(), 1..60),
    ) {
        let (ours, oracle) = walk(window, begin, &steps)?;
        let from = oracle.highest.saturating_sub(u64::from(window) + 150);
        for sequence in from..=oracle.highest.saturating_add(150) {
            prop_assert_eq!(ours.check(sequence), oracle.check(sequence), "{} at {}", sequence, oracle.highest);
        }
    }

    #[test]
    fn a_high_half_is_told_as_the_appendix_tells_it(window in window(), top in begin(), low: u32, near: u32) {
        let mut ours = ReplayWindow::new(window);
        ours.settle(top);
        let bottom = (top as u32).wrapping_sub(inferred_by(window));
        for low in [low, bottom.wrapping_add(near % 5).wrapping_sub(2), (top as u32).wrapping_add(near % 5).wrapping_sub(2), 0, 1, u32::MAX] {
            let high = Appendix::new(top, inferred_by(window)).seqh(low);
            let told = u64::from(high) << 32 | u64::from(low);
            // The appendix lets the high half wrap: before the first subspace, and behind the last.
            let wrapped = told.abs_diff(top) > 1 << 33;
            prop_assert_eq!(ours.infer(low), (!wrapped).then_some(told), "{:#x} at {:#x}", low, top);
            prop_assert_eq!(ours.infer(low), brute_force(top, window, low), "{:#x} at {:#x}", low, top);
        }
    }

    /// Numbers of a sender that are lost, doubled and out of order, with the high half left to be told.
    #[test]
    fn a_receiver_with_esn_passes_what_the_pseudo_code_passes(
        window in (32u32..=4_096), begin in prop_oneof![Just(0u64), 0u64..90, (0u64..90).prop_map(|off| (1 << 32) - 45 + off),
            (0u64..9_000).prop_map(|off| (1 << 33) - 4_500 + off)],
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut ours = ReplayWindow::new(window);
        ours.settle(begin);
        let mut receiver = Receiver { state: Appendix::new(begin, window), seen: HashSet::from([begin]) };
        let mut past = vec![begin];
        for step in &steps {
            let sequence = place(step, ours.top(), window, &past);
            past.push(sequence);
            // No sender uses zero, and the appendix does not say what becomes of it.
            if sequence == 0 {
                prop_assert_eq!(ours.check(sequence), Replay::Zero);
                continue;
            }
            let told = ours.infer(sequence as u32);
            let looks_new = told.is_some_and(|number| ours.check(number) == Replay::New);
            let passes = looks_new && told == Some(sequence) && ours.settle(sequence) == Replay::New;
            prop_assert_eq!(passes, receiver.pass(sequence), "{:#x} at {:#x}", sequence, past[past.len() - 2]);
            let Appendix { th, tl, .. } = receiver.state;
            prop_assert_eq!(ours.top(), u64::from(th) << 32 | u64::from(tl));
        }
    }
}

#[test]
fn the_first_packets_of_an_sa() {
    for window in [0, 1, 31, 32, 33, 64, 100, MAX_WINDOW] {
        let mut ours = ReplayWindow::new(window);
        assert_eq!(ours.top(), 0);
        assert_eq!(ours.check(0), Replay::Zero, "window {window}");
        assert_eq!(ours.infer(1), Some(1), "window {window}");
        assert_eq!(ours.infer(0x8000_0000), Some(0x8000_0000), "window {window}");
        // The window reaches back before the first number, where nothing is.
        assert_eq!(ours.infer(u32::MAX), None, "window {window}");
        assert_eq!(ours.settle(1), Replay::New);
        assert_eq!(
            ours.check(1),
            if window == 0 { Replay::New } else { Replay::Duplicate },
            "window {window}"
        );
        assert_eq!(ours.check(0), Replay::Zero, "window {window}");
    }
}

#[test]
fn the_last_numbers_there_are() {
    let mut ours = ReplayWindow::new(64);
    assert_eq!(ours.settle(u64::MAX - 1), Replay::New);
    assert_eq!(ours.infer(u32::MAX), Some(u64::MAX));
    assert_eq!(ours.settle(u64::MAX), Replay::New);
    assert_eq!(ours.settle(u64::MAX), Replay::Duplicate);
    assert_eq!(ours.check(u64::MAX - 63), Replay::New);
    assert_eq!(ours.check(u64::MAX - 64), Replay::TooOld);
    // What would follow has more than 64 bits.
    assert_eq!(ours.infer(0), None);
}

#[test]
fn a_zero_low_half_is_a_number_like_any_other_in_later_subspaces() {
    let mut ours = ReplayWindow::new(64);
    assert_eq!(ours.settle(u64::from(u32::MAX)), Replay::New);
    assert_eq!(ours.infer(0), Some(1 << 32));
    assert_eq!(ours.settle(1 << 32), Replay::New);
    assert_eq!(ours.settle(1 << 32), Replay::Duplicate);
}

#[test]
fn wider_than_allowed_is_as_wide_as_allowed() {
    let mut ours = ReplayWindow::new(u32::MAX);
    ours.settle(1_000_000);
    assert_eq!(ours.check(1_000_000 - u64::from(MAX_WINDOW) + 1), Replay::New);
    assert_eq!(ours.check(1_000_000 - u64::from(MAX_WINDOW)), Replay::TooOld);
}

/// Jumps to either side, with the low half alone on the wire: right of the window all but a whole subspace is told
/// right, and left of it nothing is, which the ICV then finds out.
#[test]
fn jumps_of_more_than_2_to_the_30_either_side() {
    for window in [32, 64, 1_024, MAX_WINDOW] {
        for top in [1 << 32, (1 << 32) + 10, (5 << 32) - 10, (5 << 32) + (1 << 31), (9 << 32) - 1] {
            let mut ours = ReplayWindow::new(window);
            ours.settle(top);
            let reach = (1 << 32) - u64::from(window);
            for jump in [1, (1 << 30) + 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 3 << 30, reach - 1, reach] {
                assert_eq!(ours.infer((top + jump) as u32), Some(top + jump), "{jump:#x} right of {top:#x}");
                assert_eq!(ours.check(top + jump), Replay::New);
            }
            // One more is the window's bottom, one subspace ahead.
            assert_eq!(ours.infer((top + reach + 1) as u32), Some(top + reach + 1 - (1 << 32)));
            for jump in [u64::from(window), (1 << 30) + 1, (1 << 31) + 1] {
                assert_eq!(ours.infer((top - jump) as u32), Some(top - jump + (1 << 32)), "{jump:#x} left");
                assert_eq!(ours.check(top - jump), Replay::TooOld);
            }
            // A jump leaves nothing of the window behind.
            let mut jumped = ours.clone();
            assert_eq!(jumped.settle(top + (1 << 31)), Replay::New);
            assert_eq!(jumped.check(top), Replay::TooOld);
            for back in 1..u64::from(window) {
                assert_eq!(jumped.check(top + (1 << 31) - back), Replay::New, "{back} back");
            }
        }
    }
}

/// Narrower than RFC 4303 asks for: as narrow as it is, and a late packet is late, not 2^32 ahead.
#[test]
fn windows_of_less_than_32() {
    for window in 1..32 {
        let mut ours = ReplayWindow::new(window);
        let top = (3 << 32) + 5;
        ours.settle(top);
        for back in 1..32 {
            assert_eq!(ours.infer((top - back) as u32), Some(top - back));
            let expected = if back < window.into() { Replay::New } else { Replay::TooOld };
            assert_eq!(ours.check(top - back), expected);
        }
        assert_eq!(ours.infer((top - 32) as u32), Some(top - 32 + (1 << 32)));
    }
}
