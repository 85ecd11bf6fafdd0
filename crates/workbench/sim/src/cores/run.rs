//! The run of a scenario with `[cores]`: its traffic through cores that each go with their burst, into the same books.

use std::ops::ControlFlow;

use super::{CoreCost, CorePacket, Cores, CoresError, Serial};
use crate::figures::{CoresFigures, Turnstile, share};
use crate::input::{Ending, Input};
use crate::ledger::Ledger;
use crate::outcome::RunError;
use crate::probe::Probe;
use crate::scenario::Scenario;
use crate::timeline::Doing;
use forebay_time::Time;

/// Bytes of a block.
const BLOCK: u32 = 16;

/// Runs all traffic; what it comes to is in the ledger.
pub(crate) fn drive<P: Probe>(
    scenario: &Scenario,
    serial: Serial,
    mut input: Input,
    mut ledger: Ledger,
    mut probe: P,
    ending: &mut Ending<'_>,
) -> Result<(Ledger, P), RunError> {
    let cost = |one: &crate::Processor| {
        let forebay_scheduler::Cost { submit, init, block, .. } = one.config.cost;
        CoreCost { submit, init, block }
    };
    let costs = scenario.processors.iter().map(cost).collect();
    let cores = Cores::unequal(costs, serial).map_err(|error| RunError::Scheduler(error.to_string()))?;
    let arrivals: Vec<_> = input.next.take().into_iter().chain(input.stream.by_ref()).collect();
    let packet = |one: &crate::Arrival| CorePacket {
        at: one.at,
        sa: one.sa,
        blocks: one.bytes.div_ceil(BLOCK).into(),
    };
    let packets: Vec<CorePacket> = arrivals.iter().map(packet).collect();
    let total = packets.len() as u64;
    let mut broken_off = false;
    let mut watch = |taken: usize| {
        broken_off = ending.progress.as_mut().is_some_and(|report| report(taken as u64, total).is_break());
        if broken_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = cores.run_watched(&packets, &mut watch).map_err(|error| match error {
        CoresError::TooLong => RunError::TooLong,
        other => RunError::Scheduler(other.to_string()),
    })?;
    if broken_off && !ending.keep {
        return Err(RunError::Cancelled);
    }
    let taken = outcome.completed.len();
    ending.cut = (taken < packets.len()).then_some(taken as u64);
    let ids: Vec<u64> = arrivals[..taken].iter().map(|arrival| ledger.arrive(arrival)).collect();
    // Without order a burst may be complete before one that was taken earlier.
    let mut bursts: Vec<_> = outcome.bursts.iter().collect();
    bursts.sort_by_key(|burst| outcome.completed[burst.first]);
    for burst in bursts {
        let (from, until) = burst.computes;
        ledger.computes(burst.core, from, until.max(from));
        probe.passes(burst.core, Doing::Take, burst.at, from);
        probe.computes(burst.core, from, until);
        let (begins, ends) = burst.completes;
        probe.passes(burst.completed_by, Doing::Complete, begins, ends);
        let tag = ledger.place(&ids[burst.first..burst.end], burst.at);
        ledger.complete(burst.core, outcome.completed[burst.first], tag);
    }
    let elapsed = outcome.end.since(Time::ZERO);
    let turnstile = |held, waited| Turnstile { load: share(held, elapsed), waiting: share(waited, elapsed) };
    ledger.cores = Some(CoresFigures {
        take: turnstile(outcome.take_held, outcome.take_waited),
        complete: turnstile(outcome.complete_held, outcome.complete_waited),
    });
    Ok((ledger, probe))
}
