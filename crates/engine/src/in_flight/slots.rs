//! A slot for each packet in flight.

use forebay_crypto::{JobSpec, Packet, Verdict};
use forebay_ipsec::Path;
use forebay_planted::{Fault, planted};
use forebay_time::Time;

use super::submissions::NONE;

/// A packet in flight.
#[derive(Debug)]
pub struct Slot {
    /// Changes whenever an answer that may still come must not count any more.
    generation: u32,
    /// The submission it is in, or [`NONE`].
    pub submission: u32,
    /// Length of the packet as the scheduler was told it, in bytes.
    pub len: u32,
    pub verdict: Verdict,
    /// Service class, for the scheduler.
    pub class: u8,
    /// It has no job because a policy bypasses it, and only waits for its place in the order.
    pub bypass: bool,
    /// How often it went to the scheduler again, because the running core cannot do it.
    pub tries: u8,
    /// The processor that failed at the job or rejected the packet, and its verdict, if the running core is to repeat
    /// the job.
    pub doubted: Option<(usize, Verdict)>,
    /// The packet, unless a processor works on a copy of it: then it is with its submission, at `place`.
    pub packet: Option<Packet>,
    pub place: u32,
    pub spec: JobSpec,
    /// The caller's.
    pub tag: u64,
    pub admitted: Time,
    /// When its job was done, for the time that it is held for others.
    pub done: Time,
    /// The SAs that the packet has been through before that of `spec`.
    pub path: Path,
}

/// The slots, a fixed number of them.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub fn new(limit: usize) -> Slots {
        let slot = |_| Slot {
            generation: 0,
            submission: NONE,
            len: 0,
            verdict: Verdict::Pending,
            class: 0,
            bypass: false,
            tries: 0,
            doubted: None,
            packet: None,
            place: 0,
            spec: JobSpec::default(),
            tag: 0,
            admitted: Time::ZERO,
            done: Time::ZERO,
            path: Path::default(),
        };
        Slots { slots: (0..limit).map(slot).collect(), free: (0..limit as u32).rev().collect() }
    }

    #[inline]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    #[inline]
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    #[inline]
    pub fn give_back(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(u32::from(!planted(Fault::GenerationReused)));
        slot.verdict = Verdict::Pending;
        slot.submission = NONE;
        slot.doubted = None;
        self.free.push(index);
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    /// What names this packet, in this generation, in a job.
    #[inline]
    pub fn token(&self, index: u32) -> u64 {
        u64::from(self.slots[index as usize].generation) << 32 | u64::from(index)
    }

    /// The packet that `token` names, unless its answer no longer counts.
    #[inline]
    pub fn by_token(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let slot = self.slots.get(index as usize)?;
        let is_current = slot.generation == (token >> 32) as u32 || planted(Fault::StaleAnswers);
        (is_current && slot.verdict == Verdict::Pending).then_some(index)
    }

    /// Readies a packet that is done for the job of another SA, behind those of `path`.
    pub fn begin_again(&mut self, index: u32, path: Path) {
        self.disown(index);
        let slot = &mut self.slots[index as usize];
        slot.path = path;
        slot.verdict = Verdict::Pending;
        slot.doubted = None;
    }

    /// Makes answers to jobs given out so far count no more.
    pub fn disown(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(u32::from(!planted(Fault::GenerationReused)));
        slot.submission = NONE;
    }
}
