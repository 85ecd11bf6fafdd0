//! Whom a core works for next, and when its run ends.

use forebay_time::Time;

use crate::description::{Grant, RunEnds, Stage};
use crate::parts::{Core, Doing, Host, Slot};

/// The core and the place among the asks of the next grant, if a core is free and a slot asks.
pub(crate) fn next(host: &Host, cores: &[Core], slots: &[Slot], stages: &[Stage]) -> Option<(usize, usize)> {
    if host.asks.is_empty() {
        return None;
    }
    let free = || host.cores.clone().filter(|&core| cores[core].doing == Doing::Idle);
    let first = free().next()?;
    if host.run_ends == RunEnds::Slice
        && host.grant != Grant::PreemptivePriority
        && let Some(stays) = free().find_map(|core| Some((core, goes_on(host, &cores[core], slots)?)))
    {
        return Some(stays);
    }
    // A core whose run was ended by its length gives way, if there is another to give way to.
    let gives_way = |slot: usize| cores[first].expired && cores[first].key == Some(slots[slot].key);
    let asking = || host.asks.iter().copied().enumerate().filter(|&(_, slot)| !gives_way(slot));
    let ask = match host.grant {
        Grant::FirstAsked => asking().next(),
        Grant::RoundRobin => asking()
            .min_by_key(|&(_, slot)| (slots[slot].stage + stages.len() - host.last - 1) % stages.len()),
        Grant::Priority | Grant::PreemptivePriority => {
            asking().min_by_key(|&(_, slot)| u32::MAX - stages[slots[slot].stage].priority)
        }
    };
    let (place, slot) = ask.or_else(|| host.asks.iter().copied().enumerate().next())?;
    let at_hand = free().find(|&core| cores[core].key == Some(slots[slot].key));
    Some((at_hand.unwrap_or(first), place))
}

/// The ask by which a core goes on with the stage it is at.
fn goes_on(host: &Host, core: &Core, slots: &[Slot]) -> Option<usize> {
    let key = core.key.filter(|_| !core.expired)?;
    host.asks.iter().position(|&slot| slots[slot].key == key)
}

/// Whether a slot asks that a core at work would have to give way to at the run length.
pub(crate) fn is_asked(host: &Host, core: &Core, slots: &[Slot], stages: &[Stage]) -> bool {
    let Doing::Working(now) = core.doing else { return false };
    let by_priority = matches!(host.grant, Grant::Priority | Grant::PreemptivePriority);
    let own = stages[slots[now].stage].priority;
    host.asks.iter().any(|&slot| {
        core.key != Some(slots[slot].key) && !(by_priority && stages[slots[slot].stage].priority < own)
    })
}

/// When the core's run is to end, now that another asks.
pub(crate) fn run_end(host: &mut Host, core: &Core, now: Time) -> Time {
    let Some(law) = &host.run_length else { return Time::MAX };
    if law.is_memoryless() {
        // What is left of an exponential run is as long as a whole one.
        return now + law.draw(&mut host.random, 0);
    }
    let end = core.run_began + law.draw(&mut host.random, 0);
    end.max(now)
}

/// The core, if any, that is to be cut off for the slot that asks, which has a larger priority.
pub(crate) fn preempted(
    host: &Host,
    slot: usize,
    cores: &[Core],
    slots: &[Slot],
    stages: &[Stage],
) -> Option<usize> {
    if host.grant != Grant::PreemptivePriority
        || host.cores.clone().any(|core| cores[core].doing == Doing::Idle)
    {
        return None;
    }
    let priority = |slot: usize| stages[slots[slot].stage].priority;
    let at_work = host.cores.clone().filter_map(|core| match cores[core].doing {
        Doing::Working(other) => Some((priority(other), core)),
        Doing::Idle | Doing::Down | Doing::Switching(_) => None,
    });
    at_work.min().filter(|&(least, _)| least < priority(slot)).map(|(_, core)| core)
}
