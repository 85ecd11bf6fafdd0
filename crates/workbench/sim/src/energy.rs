//! The energy of a run: docs/models.md, "Energy".

use forebay_time::Duration;

use crate::figures::ratio;
use crate::scenario::Scenario;

/// The power that a processor takes, in watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// While it computes.
    pub active_w: f64,
    /// At any other time.
    pub idle_w: f64,
}

impl Power {
    /// Joules of an interval in which it is active for a part, in seconds.
    pub(crate) fn joules(self, active_s: f64, elapsed_s: f64) -> f64 {
        self.active_w * active_s + self.idle_w * (elapsed_s - active_s).max(0.0)
    }
}

/// Energy of a whole run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Energy {
    pub per_packet_j: f64,
    pub average_power_w: f64,
}

/// Of a run in which the processors were active for so long and completed so many bytes, each of which has crossed the bus to an
/// accelerator and back; `None` if the scenario has neither a power nor an energy.
pub(crate) fn of(
    scenario: &Scenario,
    books: impl Iterator<Item = (Duration, u64)>,
    elapsed: Duration,
    packets: u64,
) -> Option<Energy> {
    let (mut known, mut joules) = (false, 0.0);
    for (one, (active, bytes)) in scenario.processors.iter().zip(books) {
        if let Some(power) = one.power {
            known = true;
            joules += power.joules(active.as_secs(), elapsed.as_secs());
        }
        if let Some(each) = one.bus.and_then(|bus| scenario.buses[bus].energy_per_byte_j) {
            known = true;
            joules += each * 2.0 * bytes as f64;
        }
    }
    known.then(|| Energy {
        per_packet_j: ratio(joules, packets as f64),
        average_power_w: ratio(joules, elapsed.as_secs()),
    })
}
