//! Observers of a run in progress.

use forebay_station::Way;
use forebay_time::Time;

/// Sees what the host does besides what the figures need.
pub(crate) trait Probe {
    fn computes(&mut self, processor: usize, now: Time, until: Time);
    fn carries(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time);
    fn waiting(&mut self, processor: usize, now: Time, jobs: usize);
}

impl Probe for () {
    #[inline]
    fn computes(&mut self, _: usize, _: Time, _: Time) {}
    #[inline]
    fn carries(&mut self, _: usize, _: usize, _: Way, _: Time, _: Time) {}
    #[inline]
    fn waiting(&mut self, _: usize, _: Time, _: usize) {}
}
