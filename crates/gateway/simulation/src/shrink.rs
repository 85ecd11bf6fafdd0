//! Shortens the list of faults of a failing plan.

use crate::oracle::{Rule, Violation};
use crate::plan::Plan;
use crate::world::run;

/// Maximum number of runs.
const TRIES: usize = 400;

/// A plan with as few faults as are found to break the same rule, and what it breaks. Nothing is taken out of a plan that
/// breaks none.
pub fn shrink(plan: &Plan) -> Option<(Plan, Violation)> {
    let mut found = run(plan).err()?;
    let mut plan = plan.clone();
    let mut tries = 0;
    let mut chunk = plan.faults.len().max(1);
    while tries < TRIES {
        let mut at = 0;
        let before = plan.faults.len();
        while at < plan.faults.len() && tries < TRIES {
            let mut less = plan.clone();
            less.faults.drain(at..(at + chunk).min(less.faults.len()));
            tries += 1;
            match breaks(&less, found.rule) {
                Some(violation) => (plan, found) = (less, violation),
                None => at += chunk,
            }
        }
        match (chunk, plan.faults.len() < before) {
            (1, false) => break,
            (1, true) => {}
            _ => chunk /= 2,
        }
    }
    Some((plan, found))
}

fn breaks(plan: &Plan, rule: Rule) -> Option<Violation> {
    run(plan).err().filter(|violation| violation.rule == rule)
}
