//! Submissions: the shares of one burst that a processor is handed together.

use forebay_crypto::Packet;
use forebay_scheduler::{JobHead, Prediction};
use forebay_time::{Duration, Time};

use crate::buffers::Buffers;

/// No submission.
pub const NONE: u32 = u32::MAX;

/// The scheduler's prediction for a share.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub prediction: Prediction,
    /// When its processor was chosen: before it was dispatched if the queue was full then.
    pub chosen: Time,
}

/// The packets that a processor is given together.
#[derive(Debug)]
pub struct Submission {
    /// Suite, and work of all.
    pub head: JobHead,
    /// Interval from the begin of its first share to the end of its last.
    pub placed: Placed,
    /// Jobs as the scheduler counts them, and its shares.
    pub jobs: u32,
    pub shares: u32,
    /// When it must be done, or the processor counts as having stopped answering.
    pub deadline: Time,
    /// Slots of the packets.
    pub members: Vec<u32>,
    /// Packets that are not done.
    pub remaining: u32,
    /// Sum of the times that the processor has reported for the jobs that are done.
    pub took: Duration,
    /// The packets themselves, untouched, while a processor other than the running core works on copies: so their
    /// jobs can be done again elsewhere.
    pub sources: Vec<Packet>,
}

impl Submission {
    /// Adds a further share of the same suite.
    pub fn extend(
        &mut self,
        head: &JobHead,
        jobs: usize,
        placed: &Placed,
        members: impl Iterator<Item = u32>,
    ) {
        self.head.work.packets += head.work.packets;
        self.head.work.blocks = self.head.work.blocks.saturating_add(head.work.blocks);
        self.head.work.bytes += head.work.bytes;
        self.placed.prediction.service += placed.prediction.service;
        self.jobs += jobs as u32;
        self.shares += 1;
        self.members.extend(members);
        self.remaining = self.members.len() as u32;
    }
}

/// Submissions in flight, reused so that their lists keep their memory.
#[derive(Debug)]
pub struct Submissions {
    all: Vec<Submission>,
    free: Vec<u32>,
    /// Packets that a list has room for from the start.
    batch: usize,
}

impl Submissions {
    pub fn new(limit: usize, batch: usize) -> Submissions {
        Submissions { all: Vec::with_capacity(limit), free: Vec::with_capacity(limit), batch }
    }

    /// Opens a submission with its first share.
    pub fn open(
        &mut self,
        head: JobHead,
        jobs: usize,
        placed: Placed,
        members: impl Iterator<Item = u32>,
    ) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Submission {
                head,
                placed,
                jobs: 0,
                shares: 0,
                deadline: Time::ZERO,
                members: Vec::with_capacity(self.batch),
                remaining: 0,
                took: Duration::ZERO,
                sources: Vec::with_capacity(self.batch),
            });
            self.all.len() as u32 - 1
        });
        let submission = &mut self.all[index as usize];
        (submission.head, submission.placed) = (head, placed);
        (submission.jobs, submission.shares) = (jobs as u32, 1);
        submission.deadline = Time::MAX;
        submission.members.clear();
        submission.members.extend(members);
        submission.remaining = submission.members.len() as u32;
        submission.took = Duration::ZERO;
        index
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Submission {
        &mut self.all[index as usize]
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Submission {
        &self.all[index as usize]
    }

    /// Ends a submission; its packets go back to `buffers`.
    pub fn close(&mut self, index: u32, buffers: &mut Buffers) {
        let sources = &mut self.all[index as usize].sources;
        sources.drain(..).for_each(|packet| buffers.put(packet));
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use forebay_scheduler::Work;

    use super::*;

    fn share(packets: u32, service: u64) -> (JobHead, Placed) {
        let work = Work { packets, blocks: 4 * packets, bytes: 60 * u64::from(packets) };
        let head = JobHead { sa: 1, class: 0, suite: 2, work, arrived: Time::ZERO };
        let prediction = Prediction { at: Time(10), wait: Duration(5), service: Duration(service) };
        (head, Placed { prediction, chosen: Time(7) })
    }

    #[test]
    fn shares_of_one_submission_add_up() {
        let mut submissions = Submissions::new(4, 8);
        let (head, placed) = share(2, 100);
        let index = submissions.open(head, 2, placed, [7, 8].into_iter());
        let (head, placed) = share(3, 50);
        let submission = submissions.get_mut(index);
        submission.extend(&head, 3, &placed, [1, 2, 3].into_iter());
        assert_eq!(submission.head.work, Work { packets: 5, blocks: 20, bytes: 300 });
        assert_eq!((submission.jobs, submission.shares, submission.remaining), (5, 2, 5));
        let Prediction { at, wait, service } = submission.placed.prediction;
        assert_eq!((at, wait, service), (Time(10), Duration(5), Duration(150)));
        assert_eq!(submission.members, [7, 8, 1, 2, 3]);
    }
}
