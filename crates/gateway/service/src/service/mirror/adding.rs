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
    /// The first IV, where it was not there before.
    pub now_ns: u64,
    /// The policies that name it.
    pub users: Vec<PolicyId>,
    pub key_id: SequenceId,
    pub windows: Windows,
}

impl Adding {
    /// Adds it. Returns its number, and the sequence number behind which it continues.
    ///
    /// # Errors
    /// Why the engine refuses it, or a policy refuses to name it; then it is not there.
    pub fn to(&self, worker: &mut Worker) -> Result<(SessionId, u64), String> {
        let (mut behind, mut iv, mut taken) = (self.told, self.now_ns, vec![]);
        if let Some(one) = self.before {
            // Packets in flight count as received, so they are finished first.
            worker.finish(&[one]);
            let sad = worker.engine().sad();
            if self.goes_on {
                behind = sad.sequence(one).unwrap_or(self.told);
                // The clock may have been put back since the SA was added.
                iv = iv.max(sad.next_iv(one).unwrap_or(0));
            }
            drop(sad);
            taken = self.windows.take_back(worker, &[one]);
            worker.remove_sa(one);
        }
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
