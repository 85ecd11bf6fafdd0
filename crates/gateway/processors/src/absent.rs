//! Placeholders for a device that cannot be opened, with which traffic continues, and for the running core of benchmarks that
//! does no crypto.

use forebay_crypto::{Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Verdict};
use forebay_time::Time;

/// A processor that does nothing: it has no suite, so it is given no jobs, and counts as taken out from the start.
pub struct Absent {
    name: String,
    capabilities: Capabilities,
}

impl Absent {
    /// In the place of the processor with this name.
    pub fn new(name: &str) -> Absent {
        let capabilities = Capabilities { suites: vec![], best_burst: 1, queue: 1 };
        Absent { name: name.to_owned(), capabilities }
    }
}

impl Processor for Absent {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open_session(&mut self, _: SessionId, keys: &SaKeys, _: Direction) -> Result<(), SessionError> {
        Err(SessionError::Unsupported(keys.suite()))
    }

    fn close_session(&mut self, _: SessionId) {}

    fn submit(&mut self, _: Time, jobs: &mut Vec<Job>) {
        jobs.iter_mut().for_each(|job| job.verdict = Verdict::Failed);
    }

    fn poll(&mut self, _: Time, _: &mut Vec<Job>) {}
}
