//! Batches: what waits when the scheduler runs is placed together, and each processor gets its share as one
//! submission.

use forebay_scheduler::{Decision, Scheduler};
use forebay_station::{Host, Watch, Way, Work};
use forebay_time::{Duration, Time};

use crate::batches::Batches;
use crate::input::{Ending, Input};
use crate::ledger::Ledger;
use crate::outcome::{REPORT_EVERY, RunError};
use crate::probe::Probe;
use crate::scenario::Scenario;
use crate::setup;

/// The scheduler with the batches that it has made, and the books.
pub(crate) struct Desk<P> {
    pub(crate) scheduler: Scheduler,
    pub(crate) batches: Batches,
    pub(crate) ledger: Ledger,
    probe: P,
    /// Whether each packet has to come at its time.
    in_time: bool,
    /// Whether answers wait until they are collected.
    keeps: bool,
    /// Answers that wait: whose, and their batch.
    answers: Vec<(usize, u32)>,
    decisions: u64,
}

/// What the scheduler says when it has placed what it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A queue is full.
    Blocked,
    /// Nothing leaves before then.
    Until(Time),
}

impl<P: Probe> Desk<P> {
    pub(crate) fn new(
        scenario: &Scenario,
        scheduler: Scheduler,
        ledger: Ledger,
        probe: P,
        keeps: bool,
    ) -> Desk<P> {
        let (batches, in_time) = (Batches::new(scenario), setup::in_time(scenario));
        Desk { scheduler, batches, ledger, probe, in_time, keeps, answers: Vec::new(), decisions: 0 }
    }

    /// Places all that can be placed now, and takes in packets meanwhile that come at a time that is `due`. An input
    /// without limit has room for all, and only as many are drawn as the next decision can depend on.
    pub(crate) fn place(
        &mut self,
        now: Time,
        due: impl Fn(Time) -> bool,
        input: &mut Input,
        ending: &mut Ending<'_>,
    ) -> Result<Rest, RunError> {
        loop {
            while due(input.next_at()) && (self.in_time || self.scheduler.input_room() > 0) {
                input.push(&mut self.scheduler, &mut self.ledger);
            }
            match self.scheduler.next(now) {
                Decision::Dispatch { processor, job, chosen, prediction } => {
                    let (items, parts) = (job.items(), job.parts());
                    let (head, named) = (job.head, items.first().copied());
                    let mut first = 0;
                    for (at, &work) in parts.iter().enumerate() {
                        let ids = &items[first..first + work.packets as usize];
                        first += ids.len();
                        let tag = self.ledger.place(ids, chosen);
                        let sa = self.ledger.sa(ids[0]);
                        self.batches.place(processor, sa, work, tag, at + 1 == parts.len());
                    }
                    let (to, ledger) = ((processor, chosen, prediction), &self.ledger);
                    self.probe.placed(&self.scheduler, now, (named, head), |id| ledger.number(id), to);
                    self.probe.waiting(processor, now, self.scheduler.waiting(processor));
                }
                Decision::Nowhere { .. } => {
                    return Err(RunError::Scheduler("a packet's suite has no processor".to_owned()));
                }
                Decision::Blocked { .. } => return Ok(Rest::Blocked),
                Decision::Wait { until } => return Ok(Rest::Until(until)),
                Decision::Idle => return Ok(Rest::Until(Time::MAX)),
            }
            self.decisions += 1;
            if self.decisions.is_multiple_of(REPORT_EVERY)
                && ending.report(input, input.stream.packets(), self.ledger.arrived())?
            {
                self.scheduler.end_of_input();
            }
        }
    }

    /// Every processor gets what was placed on it; whether any got something.
    fn hand_all_over(&mut self, now: Time, host: &mut Host<u32>) -> bool {
        let mut any = false;
        while let Some(&processor) = self.batches.waiting().first() {
            self.hand_over(now, processor, host);
            any = true;
        }
        any
    }

    /// A processor gets what was placed on it; returns how long it has to compute for that.
    pub(crate) fn hand_over(&mut self, now: Time, processor: usize, host: &mut Host<u32>) -> Duration {
        self.scheduler.submitted(processor);
        let works = self.batches.hand_over(processor);
        let time = works.iter().fold(Duration::ZERO, |sum, work| sum + work.time);
        host.submit_all(now, processor, &works, self);
        self.batches.give_back(works);
        time
    }

    /// What has been answered is complete.
    pub(crate) fn collect(&mut self, now: Time) {
        let mut answers = std::mem::take(&mut self.answers);
        for (processor, place) in answers.drain(..) {
            self.complete(processor, place, now);
        }
        self.answers = answers;
    }

    fn complete(&mut self, processor: usize, place: u32, now: Time) {
        let ledger = &mut self.ledger;
        let chunks = self.batches.take(place, |tag| ledger.complete(processor, now, tag));
        self.scheduler.complete(processor, chunks, now);
        self.probe.waiting(processor, now, self.scheduler.waiting(processor));
    }

    /// What is left when the run has ended.
    pub(crate) fn close(self) -> (Ledger, P) {
        (self.ledger, self.probe)
    }
}

impl<P: Probe> Watch<u32> for Desk<P> {
    fn started(&mut self, processor: usize, now: Time, until: Time) {
        self.ledger.computes(processor, now, until);
        self.probe.computes(processor, now, until);
    }

    fn finished(&mut self, processor: usize, now: Time, work: Work<u32>) {
        if self.keeps {
            self.answers.push((processor, work.tag));
        } else {
            self.complete(processor, work.tag, now);
        }
    }

    fn transfer(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time) {
        self.ledger.carries(bus, usize::from(way == Way::WriteBack), now, until);
        self.probe.carries(bus, processor, way, now, until);
    }
}

/// A run in which the scheduler acts whenever something has changed.
pub(crate) fn drive<P: Probe>(
    scenario: &Scenario,
    mut input: Input,
    mut desk: Desk<P>,
    ending: &mut Ending<'_>,
) -> Result<(Ledger, P), RunError> {
    let mut host = setup::host(scenario);
    let mut loads = setup::Loads::new(scenario);
    let mut now = Time::ZERO;
    loop {
        let event = host.advance(now, &mut desk);
        loads.report(&mut desk.scheduler, now);
        let rest = desk.place(now, |at| at < now, &mut input, ending)?;
        if desk.hand_all_over(now, &mut host) {
            // What takes no time has ended already, and has left room.
            continue;
        }
        let wake = match rest {
            Rest::Blocked if desk.in_time => input.next_at().min(event).min(desk.scheduler.due()),
            // Nothing matters to the scheduler until that queue has room.
            Rest::Blocked => event,
            Rest::Until(until) => until.min(input.next_at()),
        };
        if wake <= now {
            desk.place(now, |at| at <= now, &mut input, ending)?;
            desk.hand_all_over(now, &mut host);
            continue;
        }
        if wake == Time::MAX {
            host.advance(wake, &mut desk);
            let overflows = input.next.is_some() || desk.ledger.last() == Time::MAX;
            return if overflows { Err(RunError::TooLong) } else { Ok(desk.close()) };
        }
        now = wake;
    }
}
