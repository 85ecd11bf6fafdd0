//! An SA of the kernel on its way into the engine.

use forebay_crypto::{Direction, SaKeys, SessionId};
use forebay_ipsec::{IvRange, PolicyId, SaConfig};
use forebay_state::SequenceId;
use forebay_state::windows::Windows;
use forebay_worker::Worker;

/// What the worker is told of an SA.
pub struct Adding {
    pub config: SaConfig,
    pub keys: SaKeys,
    pub direction: Direction,
    /// Its number, if it was there before.
    pub before: Option<SessionId>,
    /// Whether it continues behind what it has sent and received so far.
    pub goes_on: bool,
    /// The sequence number that the kernel gave.
    pub told: u64,
    /// Its IVs are its sequence numbers and this.
    pub iv_base: u64,
    /// The policies that name it.
    pub users: Vec<PolicyId>,
    pub key_id: SequenceId,
    pub windows: Windows,
}

/// The base of the IVs of an SA that the kernel has had since `added_s`, of a cipher key whose IVs below `used` may have been used.
///
/// Each packet takes one number and one IV, and the kernel is told of numbers before they are used. So an SA whose
/// IVs are its numbers and a base that stays the same for its whole life repeats none, however many processes have had
/// it and whatever the clock says. The time in the base keeps two lives of one key apart, as a second line of defence.
pub fn iv_base(added_s: u64, used: u64) -> u64 {
    (added_s << 32).max(used)
}

/// The first IV of an SA that goes on behind this number.
fn first_iv(base: u64, behind: u64) -> u64 {
    base.saturating_add(behind)
}

impl Adding {
    /// Adds it. Returns its number, and the sequence number behind which it continues.
    ///
    /// # Errors
    /// Why the engine refuses it, or a policy refuses to name it; then it is not there.
    pub fn to(&self, worker: &mut Worker) -> Result<(SessionId, u64), String> {
        let (mut behind, mut iv, mut taken) = (self.told, 0, vec![]);
        if let Some(one) = self.before {
            // Packets in flight count as received, so they are finished first.
            worker.finish(&[one]);
            let sad = worker.engine().sad();
            if self.goes_on {
                behind = sad.sequence(one).unwrap_or(self.told);
                iv = sad.next_iv(one).unwrap_or(0);
            }
            drop(sad);
            taken = self.windows.take_back(worker, &[one]);
            worker.remove_sa(one);
        }
        let iv = iv.max(first_iv(self.iv_base, behind));
        let engine = worker.engine();
        let config = self.config.clone();
        let added = match self.direction {
            Direction::Seal => {
                let iv = IvRange::share(iv, u64::MAX, 0, 1);
                engine.add_outbound(config, iv, &self.keys)
            }
            Direction::Open => engine.add_inbound(config, &self.keys),
        };
        let session = added.map_err(|error| error.to_string())?;
        if self.direction == Direction::Seal && behind > 0 {
            engine.continue_after(session, behind);
        }
        for policy in &self.users {
            if let Err(error) = engine.put_policy_sa_first(*policy, session) {
                engine.remove_sa(session);
                return Err(error.to_string());
            }
        }
        if self.direction == Direction::Open {
            self.windows.give(worker, session, self.key_id, behind);
        }
        self.windows.abandon(worker, &taken);
        Ok((session, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes one after the other, each with another clock: the kernel says what it was told and when the SA was added.
    #[test]
    fn processes_that_have_an_sa_one_after_the_other_use_no_iv_twice() {
        for (added_s, used) in [(0, 0), (1_764_000_000, 0), (5, 1 << 40), (1_764_000_000, u64::MAX >> 1)] {
            let base = iv_base(added_s, used);
            assert!(base >= used);
            // What each sends stays below what the kernel is told.
            let (mut told, mut end) = (0, used);
            for sent in [7, 0, 1 << 26, 1 << 33] {
                let first = first_iv(base, told);
                assert!(first >= end, "{first} before {end}");
                (end, told) = (first + sent, told + sent);
            }
        }
        assert!(iv_base(101, 0) - iv_base(100, 0) >= 1 << 32, "a key that was added again");
        assert_eq!(first_iv(u64::MAX - 1, 5), u64::MAX);
    }
}
