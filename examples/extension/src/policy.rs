//! The power of choices (Mitzenmacher, IEEE TPDS 12(10), 2001): of so many processors, taken in turn, the one with the
//! fewest unfinished jobs. It needs to look at some processors only, which is what it is liked for with thousands of them.

use forebay_scheduler::{Candidates, Parameter, Placement, PolicyKind};

pub static POWER_OF_CHOICES: PolicyKind = PolicyKind {
    word: "power-of-choices",
    meaning: "of `choices` processors, taken in turn, the one with the fewest unfinished jobs",
    parameters: &[Parameter {
        name: "choices",
        meaning: "with `power-of-choices`: processors to choose from",
        default: 2,
        least: 1,
        most: 64,
    }],
    create: |values| Box::new(PowerOfChoices { choices: values[0] as usize, next: 0 }),
};

#[derive(Debug)]
struct PowerOfChoices {
    choices: usize,
    /// The processor with which the next choice begins.
    next: usize,
}

impl Placement for PowerOfChoices {
    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let count = candidates.processors();
        let in_turn = (0..count).map(|step| (self.next + step) % count);
        let looked_at = in_turn.filter_map(|index| candidates.get(index)).take(self.choices);
        let chosen = looked_at.min_by_key(|one| one.unfinished())?.index();
        self.next = (self.next + 1) % count;
        Some(chosen)
    }
}
