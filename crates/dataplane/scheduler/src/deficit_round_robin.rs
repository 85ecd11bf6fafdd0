//! Chooses the class to serve next: strict classes by number, weighted classes by deficit round robin.
//!
//! The variant of Linux's `fq_codel`: a class is served while it has credit, pays after its job is
//! known, and goes to the end of the line with a new quantum once its credit is spent. So a job need
//! not be formed before its class's turn, and a window goes on filling until then.
//!
//! A class whose job waits for a full queue is passed over but keeps its place in the line and its
//! credit: others may go on, each by at most one quantum and one job, and then stand behind it. That
//! bounds what can overtake a blocked job on its way to the very queue that it waits for.

use crate::window::State;
use crate::{ClassConfig, Service};

/// The line of the weighted classes, and their credits.
#[derive(Debug)]
pub(crate) struct DeficitRoundRobin {
    /// Classes below this number are strict.
    strict: usize,
    /// The weighted ones, the one that is looked at first in front.
    line: Box<[usize]>,
    /// How many classes have been looked at, strict ones first.
    place: usize,
    /// By class; those of strict ones are not used.
    credits: Box<[Credit]>,
}

/// Bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// At least 1.
    quantum: i64,
    /// At most `quantum`, and above minus the largest job.
    credit: i64,
}

impl DeficitRoundRobin {
    pub(crate) fn new(classes: &[ClassConfig]) -> DeficitRoundRobin {
        let strict = classes.iter().take_while(|class| class.service == Service::Strict).count();
        let of_class = |class: &ClassConfig| match class.service {
            Service::Strict => Credit::default(),
            Service::Weighted { weight } => {
                Credit { quantum: i64::from(weight) * i64::from(Service::QUANTUM), credit: 0 }
            }
        };
        DeficitRoundRobin {
            strict,
            place: 0,
            line: (strict..classes.len()).collect(),
            credits: classes.iter().map(of_class).collect(),
        }
    }

    /// Begins to look at the classes in their order.
    pub(crate) fn begin(&mut self) {
        self.place = 0;
    }

    /// Goes on to the class behind.
    pub(crate) fn pass(&mut self) {
        self.place += 1;
    }

    /// The class that is looked at, one that has packets; `None` after the last. Of the weighted ones it is
    /// the next that has credit or is not ready: a ready one that has spent it ends its turn, and gets
    /// a quantum at the end of the line.
    #[inline]
    pub(crate) fn class(&mut self, state: impl Fn(usize) -> State) -> Option<usize> {
        while self.place < self.strict {
            if state(self.place) != State::Empty {
                return Some(self.place);
            }
            self.place += 1;
        }
        loop {
            let rest = self.line.get_mut(self.place - self.strict..)?;
            let class = *rest.first()?;
            let of_class = &mut self.credits[class];
            match state(class) {
                State::Empty => {
                    of_class.forfeit();
                    self.place += 1;
                }
                State::Ready if of_class.credit <= 0 => {
                    of_class.credit += of_class.quantum;
                    rest.rotate_left(1);
                }
                State::Ready | State::Wait(_) => return Some(class),
            }
        }
    }

    /// A job of the class leaves.
    pub(crate) fn charge(&mut self, class: usize, bytes: u64) {
        let of_class = &mut self.credits[class];
        of_class.credit = of_class.credit.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The class has nothing that may leave.
    pub(crate) fn forfeit(&mut self, class: usize) {
        self.credits[class].forfeit();
    }
}

impl Credit {
    /// Credit is not saved up, a debt stays.
    fn forfeit(&mut self) {
        self.credit = self.credit.min(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turns(weights: &[u32]) -> DeficitRoundRobin {
        let class = |&weight: &u32| ClassConfig::new(Service::Weighted { weight });
        DeficitRoundRobin::new(&weights.iter().map(class).collect::<Vec<_>>())
    }

    /// Serves the first class that `is_free` and has a job, as the scheduler does.
    fn serve(
        turns: &mut DeficitRoundRobin,
        sizes: &[Option<u64>],
        is_free: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        turns.begin();
        let state = |class: usize| if sizes[class].is_some() { State::Ready } else { State::Empty };
        while let Some(class) = turns.class(state) {
            if is_free(class) {
                turns.charge(class, sizes[class].unwrap());
                return Some(class);
            }
            turns.pass();
        }
        None
    }

    #[test]
    fn a_class_is_served_until_it_has_spent_its_quantum() {
        // 1500 bytes a round against 3000; jobs of 1000.
        let mut turns = turns(&[1, 2]);
        let mut served = || serve(&mut turns, &[Some(1_000); 2], |_| true).unwrap();
        // 0: 1500, 500, -500. 1: 3000, 2000, 1000, 0. 0: 1000, 0. 1: 3000 again.
        assert_eq!([(); 11].map(|()| served()), [0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn a_blocked_class_keeps_its_place_and_an_idle_one_saves_nothing() {
        let mut turns = turns(&[1, 1, 1]);
        let sizes = [Some(1_500); 3];
        let mut served =
            |sizes: &[Option<u64>], blocked| serve(&mut turns, sizes, |class| class != blocked).unwrap();
        assert_eq!([(); 4].map(|()| served(&sizes, 0)), [1, 2, 1, 2]);
        // It is first as soon as it can, and has not more than one quantum.
        assert_eq!([(); 4].map(|()| served(&sizes, 9)), [0, 1, 0, 2]);
        let idle = [Some(1_500), None, Some(1_500)];
        assert_eq!([(); 4].map(|()| served(&idle, 9)), [0, 2, 0, 2]);
        let back = [(); 6].map(|()| served(&sizes, 9));
        assert_eq!(back.iter().filter(|&&class| class == 1).count(), 2, "{back:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn credit_is_bounded_and_shares_follow_the_weights(
            weights in prop::collection::vec(1u32..6, 2..5),
            jobs in prop::collection::vec((1u64..6_000, any::<u8>(), any::<u8>()), 1..400),
        ) {
            let mut turns = turns(&weights);
            let mut sent = vec![0u64; weights.len()];
            let largest = 6_000;
            for &(bytes, ..) in &jobs {
                let class = serve(&mut turns, &vec![Some(bytes); weights.len()], |_| true).unwrap();
                sent[class] += bytes;
                for (class, of_class) in turns.credits.iter().enumerate() {
                    prop_assert!(of_class.credit <= of_class.quantum && of_class.credit > -largest, "{}", class);
                }
            }
            // All had jobs all the time: rounds differ by one at most, and what is owed by one job.
            let rounds = |class: usize| sent[class] as f64 / f64::from(weights[class]) / 1_500.0;
            for one in 0..weights.len() {
                for two in 0..weights.len() {
                    let owed = 1.0 + 4.0 / f64::from(weights[one]) + 4.0 / f64::from(weights[two]);
                    prop_assert!((rounds(one) - rounds(two)).abs() <= owed, "{:?} by {:?}", sent, weights);
                }
            }

            // Now with classes that are idle or blocked at random.
            for &(bytes, idle, blocked) in &jobs {
                let sizes: Vec<_> =
                    (0..weights.len()).map(|class| (idle >> class & 1 == 0).then_some(bytes)).collect();
                let served = serve(&mut turns, &sizes, |class| blocked >> class & 1 == 0);
                let free = |class: usize| sizes[class].is_some() && blocked >> class & 1 == 0;
                prop_assert_eq!(served.is_some(), (0..weights.len()).any(free), "work is not held back");
                prop_assert!(served.is_none_or(free));
                for of_class in &turns.credits {
                    prop_assert!(of_class.credit <= of_class.quantum && of_class.credit > -largest);
                }
            }
        }

        #[test]
        fn what_overtakes_a_blocked_class_is_bounded(
            weights in prop::collection::vec(1u32..6, 2..5),
            jobs in prop::collection::vec((1u64..6_000, any::<u8>()), 1..400),
        ) {
            // All always have a job and may be blocked at random. While class 0 could go, no other sends
            // more than the rounds in which class 0 pays off its largest debt, and one job.
            let mut turns = turns(&weights);
            let mut since = vec![0u64; weights.len()];
            for &(bytes, mask) in &jobs {
                let sizes = vec![Some(bytes); weights.len()];
                let could = mask & 1 == 0;
                let served = serve(&mut turns, &sizes, |class| mask >> class & 1 == 0);
                if served == Some(0) {
                    since.fill(0);
                } else if let Some(class) = served && could {
                    since[class] += bytes;
                    let rounds = 1 + 6_000u64.div_ceil(u64::from(weights[0]) * 1_500);
                    let bound = rounds * u64::from(weights[class]) * 1_500 + 6_000;
                    prop_assert!(since[class] <= bound, "{} past it", since[class]);
                }
            }
        }
    }
}
