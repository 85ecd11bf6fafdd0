//! What cores have done, into the counts.

use forebay_time::Time;

use super::Run;
use crate::parts::Doing;

impl Run<'_> {
    pub(super) fn count_kept(&mut self, host: usize) {
        let at = &self.hosts[host];
        let cores = &self.cores[at.cores.clone()];
        let active = cores.iter().filter(|core| core.doing != Doing::Idle).count() as u32;
        let holds = at.run_length.is_none();
        let held = if holds { at.held.min(cores.len() as u32) } else { active };
        self.counts.servers[host].kept.set(self.now, held.saturating_sub(active));
    }

    /// Counts what a core has done since it was last counted.
    pub(super) fn account(&mut self, core: usize, now: Time) {
        let at = &mut self.cores[core];
        let spent = now.since(at.since);
        at.since = now;
        let mut server = self.counts.servers.get_mut(at.host);
        match at.doing {
            Doing::Idle => {}
            Doing::Down => match server {
                Some(server) => server.down += spent,
                None => self.counts.own[at.host - self.counts.servers.len()].down += spent,
            },
            Doing::Working(slot) => {
                self.counts.stages[self.slots[slot].stage].busy += spent;
                server.iter_mut().for_each(|server| server.busy += spent);
            }
            Doing::Switching(_) => server.iter_mut().for_each(|server| server.switching += spent),
        }
    }

    pub(super) fn account_all(&mut self, now: Time) {
        (0..self.cores.len()).for_each(|core| self.account(core, now));
    }
}
