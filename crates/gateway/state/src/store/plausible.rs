//! Limits for records of another gateway, derived from the records here: records only rise, and no faster than packets can pass.
//!
//! A refused record is not used in part: either the sender is wrong, or the records here are, and an operator has to decide.
//! A refusal is never silent, because a number that was used elsewhere could be used again here.

use std::time::Duration;

use super::record::{HALF, half};
use super::{IvStoreError, KeyId, SequenceId};

/// Numbers by which one message may be ahead, regardless of the time: two stripes of a pair and a block.
const AT_ONCE: u64 = 3 << 24;
/// Maximum packets of an SA per second, as for limits of replay windows.
const A_SECOND: u64 = 1 << 24;
/// Numbers by which an SA may be ahead whose last record has an unknown time: half a year at a million packets per second.
const UNKNOWN_TIME: u64 = 1 << 44;
/// Maximum number of an SA without records here, and maximum IV of a half: the clock in nanoseconds until 2116.
const HIGHEST: u64 = 1 << 62;

/// Distance by which records may be ahead of those here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plausible {
    ahead: u64,
}

impl Plausible {
    /// The limit after a time without records, measured by a monotonic clock; `None` if the time is not known.
    pub fn after(time: Option<Duration>) -> Plausible {
        let ahead = |time: Duration| {
            A_SECOND.saturating_mul(time.as_secs().saturating_add(1)).saturating_add(AT_ONCE)
        };
        Plausible { ahead: time.map_or(UNKNOWN_TIME, |time| ahead(time).min(UNKNOWN_TIME)) }
    }

    /// Checks that an SA whose known number is `known` may have reached `said`.
    ///
    /// # Errors
    /// If it is not plausible.
    pub fn number(self, what: &str, id: SequenceId, known: u64, said: u64) -> Result<(), IvStoreError> {
        let most = if known == 0 { HIGHEST } else { known.saturating_add(self.ahead) };
        if said <= most {
            return Ok(());
        }
        let what =
            format!("{what} {said} of the SA {id}, of which {known} is known and at most {most} possible");
        Err(IvStoreError::Implausible { what })
    }

    /// Checks that IVs of a key may have been used up to this one.
    ///
    /// # Errors
    /// If it is not plausible.
    pub fn iv(self, key: KeyId, until: u64) -> Result<(), IvStoreError> {
        let most = HIGHEST + if half(until) == 1 { HALF } else { 0 };
        if until <= most {
            return Ok(());
        }
        Err(IvStoreError::Implausible {
            what: format!("IV {until} of the key {key}, at most {most} is possible"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sa_may_come_as_far_as_packets_can_pass_and_no_further() {
        let id: SequenceId = "0f".repeat(16).try_into().unwrap();
        let may = |time: Option<u64>, known, said| {
            Plausible::after(time.map(Duration::from_secs)).number("number", id, known, said).is_ok()
        };
        assert!(may(Some(0), 1_000, 1_000 + AT_ONCE) && !may(Some(0), 1_000, u64::MAX));
        assert!(may(Some(100), 1_000, 101 * A_SECOND) && !may(Some(10), 1_000, 101 * A_SECOND));
        assert!(may(None, 1_000, 1 << 40) && !may(None, 1_000, 1 << 50));
        assert!(may(Some(0), 0, 1 << 50), "nothing is known of it: it may be anywhere");
        assert!(!may(None, 0, u64::MAX) && !may(Some(u64::MAX), u64::MAX >> 1, u64::MAX));
        let key: KeyId = "0f".repeat(16).try_into().unwrap();
        let iv = |until| Plausible::after(None).iv(key, until).is_ok();
        assert!(iv(1_764_000_000_000_000_000) && iv(HALF + 1_764_000_000_000_000_000));
        assert!(!iv(HALF) && !iv(u64::MAX) && !iv(HALF + HIGHEST + 1));
    }
}
