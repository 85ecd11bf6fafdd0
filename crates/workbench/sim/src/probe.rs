//! Observers of a run in progress.

use forebay_scheduler::{JobHead, Prediction, Scheduler};
use forebay_station::Way;
use forebay_time::Time;

use crate::timeline::{Choice, Doing};

/// Sees what the host does besides what the figures need.
pub(crate) trait Probe {
    fn computes(&mut self, processor: usize, now: Time, until: Time);
    fn carries(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time);
    fn waiting(&mut self, processor: usize, now: Time, jobs: usize);

    /// A core takes or completes a burst.
    fn passes(&mut self, _core: usize, _what: Doing, _now: Time, _until: Time) {}

    /// Whether choices are wanted, which take time to look at.
    #[inline]
    fn wants_choices(&self) -> bool {
        false
    }

    /// A processor is chosen for a job, whose first packet the choice names.
    fn chosen(&mut self, _choice: Choice) {}

    /// Looks at a job that the scheduler has placed now.
    #[inline]
    fn placed(
        &mut self,
        scheduler: &Scheduler,
        now: Time,
        (first, job): (Option<u64>, JobHead),
        number: impl Fn(u64) -> u64,
        (processor, chosen, prediction): (usize, Time, Prediction),
    ) {
        // One that was chosen earlier was held up, and looked at then.
        if let (true, true, Some(first)) = (self.wants_choices(), chosen == now, first) {
            let finish = scheduler.finishing_times(now, &job, Some((processor, prediction))).collect();
            self.chosen(Choice { packet: number(first), at: now, processor, finish });
        }
    }

    /// Looks at jobs whose processors have been chosen now and have no room.
    #[inline]
    fn held_up(&mut self, scheduler: &Scheduler, now: Time, number: impl Fn(u64) -> u64) {
        if !self.wants_choices() {
            return;
        }
        for class in 0..scheduler.classes() {
            let Some((job, processor, chosen)) = scheduler.held_up(class as u8) else { continue };
            if let (true, Some(&first)) = (chosen == now, job.items().first()) {
                let finish = scheduler.finishing_times(now, &job.head, None).collect();
                self.chosen(Choice { packet: number(first), at: now, processor, finish });
            }
        }
    }
}

impl Probe for () {
    #[inline]
    fn computes(&mut self, _: usize, _: Time, _: Time) {}
    #[inline]
    fn carries(&mut self, _: usize, _: usize, _: Way, _: Time, _: Time) {}
    #[inline]
    fn waiting(&mut self, _: usize, _: Time, _: usize) {}
}
