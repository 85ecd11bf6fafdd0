//! Which states are lumped on which level: neighbours in the counts of packets.

use crate::space::Digit;

/// For each level, the state of the next coarser level that each of its states belongs to.
///
/// Every count is halved from one level to the next until it says no more than "none or some", then
/// dropped; where a server is and what phase a packet is in go last. But whatever changes much faster
/// than the rest goes first: sweeps can hardly tell states that lead to each other at once. The last
/// level has at most `smallest` states, or one.
pub(crate) fn hierarchy(digits: &[Digit], raw: &[u32], smallest: usize) -> Vec<Vec<u32>> {
    let mut sizes: Vec<u32> = digits.iter().map(|d| d.size).collect();
    let mut states: Vec<u32> = raw.to_vec();
    let mut levels = Vec::new();
    while states.len() > smallest {
        let halves = halved(digits, &sizes);
        let coarse: Vec<u32> =
            sizes.iter().zip(&halves).map(|(&s, &h)| if h { s.div_ceil(2) } else { s }).collect();
        let space: usize = coarse.iter().map(|&s| s as usize).product();
        let mut number = vec![u32::MAX; space];
        let mut next = Vec::new();
        let parents = states
            .iter()
            .map(|&state| {
                let lumped = lump(state, &sizes, &coarse, &halves);
                let entry = &mut number[lumped as usize];
                if *entry == u32::MAX {
                    *entry = next.len() as u32;
                    next.push(lumped);
                }
                *entry
            })
            .collect();
        levels.push(parents);
        states = next;
        sizes = coarse;
    }
    levels
}

/// A place or phase goes before the counts if it changes so many times faster than all of them.
const FAST: f64 = 4.0;

/// A count waits for the fastest one if it changes so many times slower.
const SLOW: f64 = 16.0;

/// The digits to halve: places and phases that are fast; else the fast ones of the counts above 2,
/// or of all counts; else everything.
fn halved(digits: &[Digit], sizes: &[u32]) -> Vec<bool> {
    let pick = |wanted: &dyn Fn(&Digit, u32) -> bool| -> Vec<bool> {
        digits.iter().zip(sizes).map(|(digit, &size)| wanted(digit, size)).collect()
    };
    let fastest = |above: u32| {
        let counts = digits.iter().zip(sizes).filter(|&(digit, &size)| digit.count && size > above);
        counts.map(|(digit, _)| digit.rate).fold(0.0, f64::max)
    };
    let (some, any) = (fastest(2), fastest(1));
    let choices = [
        pick(&|digit, size| !digit.count && size > 1 && any > 0.0 && digit.rate > FAST * any),
        pick(&|digit, size| digit.count && size > 2 && digit.rate * SLOW >= some),
        pick(&|digit, size| digit.count && size > 1 && digit.rate * SLOW >= any),
        pick(&|_, size| size > 1),
    ];
    choices.into_iter().find(|choice| choice.contains(&true)).expect("more than one state")
}

fn lump(state: u32, sizes: &[u32], coarse: &[u32], halves: &[bool]) -> u32 {
    let (mut rest, mut stride, mut lumped) = (state, 1, 0);
    for digit in (0..sizes.len()).rev() {
        let value = rest % sizes[digit];
        rest /= sizes[digit];
        lumped += stride * if halves[digit] { value / 2 } else { value };
        stride *= coarse[digit];
    }
    lumped
}
