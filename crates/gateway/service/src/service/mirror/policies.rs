//! The kernel's policies in the engine.

use std::collections::HashSet;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{Action, Policy, PolicyId, PolicyPlace};
use forebay_xfrm::{self as xfrm, PolicyAction, PolicyIndex, Template, Way};

use super::{Follow, Followed, SyncedSa};

impl Follow {
    /// The SAs that templates may want: with thousands of them not each for each policy.
    fn alike(&self, templates: &[Template]) -> Vec<&SyncedSa> {
        if templates.iter().any(|template| template.reqid == 0) {
            return self.sas.values().collect();
        }
        let reqids: HashSet<u32> = templates.iter().map(|template| template.reqid).collect();
        let ids = reqids.iter().filter_map(|reqid| self.by_reqid.get(reqid)).flatten();
        ids.filter_map(|id| self.sas.get(id)).collect()
    }

    /// The policies whose packets may go through an SA.
    pub(super) fn users(&self, sa: &xfrm::Sa) -> Vec<PolicyId> {
        let seals = sa.direction == Direction::Seal;
        let uses = |followed: &&Followed| followed.templates.iter().any(|template| template.wants(sa));
        let policies = self.policies.iter().filter(|((out, ..), _)| *out == seals);
        policies.map(|(_, followed)| followed).filter(uses).map(|followed| followed.id).collect()
    }

    /// Adds a policy, or puts it in the place of what it was before, between two packets: an IKE daemon updates its
    /// policies at every rekey, and no packet may be without one.
    pub(super) fn put(&mut self, policy: xfrm::Policy) {
        let before = self.kernel_policies.remove(&policy.index);
        let before = before.and_then(|(rank, _)| self.policies.remove(&rank)).map(|followed| followed.id);
        // One that discards is no burden, and without it its packets would get to the next policy.
        let was_over = self.over.remove(&policy.index);
        self.discarding.remove(&policy.index);
        let discards = matches!(policy.action, PolicyAction::Discard | PolicyAction::Refused(_));
        if discards {
            self.discarding.insert(policy.index);
        }
        let taken =
            self.kernel_policies.len() - self.over.len() - (self.discarding.len() - usize::from(discards));
        let is_over = !discards && taken >= self.most.policies;
        if is_over {
            self.over.insert(policy.index);
        }
        if is_over && !was_over {
            let (policy, most) = (policy.index.0, self.most.policies);
            tracing::error!(
                policy,
                most,
                "policy not synchronized, its packets are dropped: raise `policies` in [limits]"
            );
        }
        let seals = policy.way == Way::Out;
        let rank = (seals, policy.priority, policy.index);
        self.kernel_policies.insert(policy.index, (rank, policy.clone()));
        if !self.follows_policies {
            return;
        }
        let wanted = if is_over { PolicyAction::Discard } else { policy.action.clone() };
        let templates = match &wanted {
            PolicyAction::Protect(templates) => templates.clone(),
            PolicyAction::Bypass | PolicyAction::Discard | PolicyAction::Refused(_) => vec![],
        };
        let direction = if seals { Direction::Seal } else { Direction::Open };
        // The newest first.
        let mut sas: Vec<&SyncedSa> = self
            .alike(&templates)
            .into_iter()
            .filter(|taken| taken.direction == direction)
            .filter(|taken| templates.iter().any(|template| template.wants(&taken.sa)))
            .collect();
        sas.sort_by_key(|taken| std::cmp::Reverse(taken.age));
        let sas: Vec<SessionId> = sas.into_iter().map(|taken| taken.session).collect();
        let index = policy.index.0;
        let next = self.policies.range(rank..).next().filter(|((out, ..), _)| *out == seals);
        let next = next.map(|(_, next)| next.id);
        let added = self.workers.change(move |worker| {
            let engine = worker.engine();
            let action = match &wanted {
                PolicyAction::Protect(_) => Action::Protect(sas),
                PolicyAction::Bypass => Action::Bypass,
                PolicyAction::Discard | PolicyAction::Refused(_) => Action::Discard,
            };
            let mut ours = Policy::new(&format!("xfrm-{index}"), direction, action);
            (ours.local_ts, ours.remote_ts) = (policy.local_ts.clone(), policy.remote_ts.clone());
            ours.per_cpu = policy.per_cpu;
            let place = next.map_or(PolicyPlace::Last, PolicyPlace::Before);
            // Better one that discards than none.
            let discards = Policy { action: Action::Discard, ..ours.clone() };
            let added = engine.add_policy(ours, place).or_else(|_| engine.add_policy(discards, place));
            before.map(|before| engine.remove_policy(before));
            added
        });
        match added {
            Some(Ok(id)) => drop(self.policies.insert(rank, Followed { id, templates })),
            Some(Err(error)) => {
                tracing::error!(policy = index, %error, "cannot install a policy of the kernel")
            }
            None => {}
        }
    }

    pub(super) fn drop_policy(&mut self, index: PolicyIndex) {
        let Some((rank, _)) = self.kernel_policies.remove(&index) else { return };
        if let Some(followed) = self.policies.remove(&rank) {
            self.take_policy_out(followed.id);
        }
        self.discarding.remove(&index);
        // There may be room for another.
        if !self.over.remove(&index)
            && let Some(next) = self.over.first().and_then(|next| self.kernel_policies.get(next))
        {
            let next = next.1.clone();
            self.put(next);
        }
    }

    /// Removes a policy.
    fn take_policy_out(&self, id: PolicyId) {
        self.workers.change(move |worker| worker.engine().remove_policy(id).is_some());
    }
}
