//! Packets before the scheduler, and who may end them.

use forebay_scheduler::{Item, Scheduler};
use forebay_time::Time;

use crate::ledger::Ledger;
use crate::outcome::{Progress, RunError};
use crate::traffic::{Arrival, Stream};

/// Packets that have not been given to the scheduler yet.
pub(crate) struct Input {
    pub(crate) stream: Stream,
    pub(crate) next: Option<Arrival>,
}

impl Input {
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.next.map_or(Time::MAX, |arrival| arrival.at)
    }

    /// The next packet comes: when, and what the scheduler needs of it.
    #[inline(always)] // into `push`, which is in one place
    pub(crate) fn take(&mut self, ledger: &mut Ledger) -> Option<(Time, Item)> {
        let arrival = self.next?;
        self.next = self.stream.next();
        let Arrival { at, bytes, sa, class, suite } = arrival;
        let id = ledger.arrive(&arrival);
        Some((at, Item { id, sa, class, suite, bytes }))
    }

    /// The next packet goes into the scheduler's input.
    #[inline(never)] // one place of two that call it, for all that it calls
    pub(crate) fn push(&mut self, scheduler: &mut Scheduler, ledger: &mut Ledger) {
        let Some((at, item)) = self.take(ledger) else { return };
        if scheduler.push(at, item).is_err() {
            ledger.lose(item.id);
        }
        if self.next.is_none() {
            scheduler.end_of_input();
        }
    }
}

/// Who may break a run off, and whether that was done.
pub(crate) struct Ending<'a> {
    pub(crate) progress: Option<Progress<'a>>,
    pub(crate) keep: bool,
    pub(crate) cut: Option<u64>,
}

impl Ending<'_> {
    /// Tells of progress, and ends the traffic if that is wanted now; whether it has ended it.
    pub(crate) fn report(&mut self, input: &mut Input, total: u64, arrived: u64) -> Result<bool, RunError> {
        let Some(report) = self.progress.as_mut().filter(|_| self.cut.is_none()) else { return Ok(false) };
        if report(arrived, total).is_continue() {
            return Ok(false);
        }
        if !self.keep {
            return Err(RunError::Cancelled);
        }
        let ends = input.next.take().is_some();
        if ends {
            self.cut = Some(arrived);
        }
        Ok(ends)
    }
}
