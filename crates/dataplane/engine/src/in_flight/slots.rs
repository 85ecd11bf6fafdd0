//! A slot for each packet in flight.

use forebay_crypto::{Job, Packet, Verdict};
use forebay_ipsec::Path;
use forebay_planted::{Fault, planted};
use forebay_time::Time;

use super::submissions::NONE;
use crate::tickets::Run;

/// State of a packet in flight besides its job.
#[derive(Debug)]
pub struct Slot {
    /// Changes whenever an answer that may still come must not count any more.
    generation: u32,
    /// The submission it is in, or [`NONE`].
    pub submission: u32,
    /// Length of the packet as the scheduler was given it, in bytes.
    pub len: u32,
    /// Where the packet is in its submission, while a processor works on a copy of it.
    pub place: u32,
    in_use: bool,
    /// Service class, for the scheduler.
    pub class: u8,
    /// Its ticket, and whether that has been used when the packet is through.
    pub line: u32,
    pub ticket: u32,
    pub last: bool,
    /// How often it went to the scheduler again, because the running core cannot do it.
    pub tries: u8,
    pub admitted: Time,
    /// The processor that failed at the job or rejected the packet, and its verdict, if the running core is to repeat
    /// the job.
    pub doubted: Option<(usize, Verdict)>,
    /// The SAs that the packet has been through before that of its job.
    pub path: Path,
}

/// The slots, a fixed number of them.
///
/// They are taken in turn, so that packets that come together stand side by side, and are completed where they stand.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// By slot: the packet, which is with its submission while a processor works on a copy of it; what is to be done to
    /// it, and what became of it. The token is the caller's tag.
    jobs: Vec<Job>,
    /// The slot that is taken next if it is free.
    next: usize,
    free: usize,
}

impl Slots {
    pub fn new(limit: usize) -> Slots {
        let slot = |_| Slot {
            generation: 0,
            submission: NONE,
            len: 0,
            place: 0,
            in_use: false,
            class: 0,
            line: 0,
            ticket: 0,
            last: true,
            tries: 0,
            admitted: Time::ZERO,
            doubted: None,
            path: Path::default(),
        };
        Slots {
            slots: (0..limit).map(slot).collect(),
            jobs: (0..limit).map(|_| Job::default()).collect(),
            next: 0,
            free: limit,
        }
    }

    #[inline]
    pub fn free(&self) -> usize {
        self.free
    }

    #[inline]
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free
    }

    /// Puts a prepared packet, number `place` of its run, into a free slot, if there is one; else it stays in `job`.
    #[inline]
    pub fn admit(&mut self, job: &mut Job, class: u8, run: &Run, place: u32) -> Option<u32> {
        if self.free == 0 {
            return None;
        }
        if self.free == self.slots.len() {
            // Those that were used last are still in the cache.
            self.next = 0;
        }
        let index = self.next_free();
        let slot = &mut self.slots[index];
        slot.in_use = true;
        slot.path = run.path;
        slot.class = class;
        (slot.line, slot.ticket, slot.last) = (run.line, run.ticket.wrapping_add(place), run.last);
        slot.tries = 0;
        slot.admitted = run.admitted;
        slot.len = job.packet.len() as u32;
        std::mem::swap(&mut self.jobs[index], job);
        self.free -= 1;
        Some(index as u32)
    }

    /// There is one. Slots in use are passed over: those of packets that are held up.
    #[inline]
    fn next_free(&mut self) -> usize {
        loop {
            let at = if self.next < self.slots.len() { self.next } else { 0 };
            self.next = at + 1;
            if !self.slots[at].in_use {
                return at;
            }
        }
    }

    #[inline]
    pub fn give_back(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(u32::from(!planted(Fault::GenerationReused)));
        slot.submission = NONE;
        slot.doubted = None;
        slot.in_use = false;
        self.jobs[index as usize].verdict = Verdict::Pending;
        self.free += 1;
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Slot {
        &mut self.slots[index as usize]
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Slot {
        &self.slots[index as usize]
    }

    /// The job of a slot.
    #[inline]
    pub fn job(&self, index: u32) -> &Job {
        &self.jobs[index as usize]
    }

    #[inline]
    pub fn job_mut(&mut self, index: u32) -> &mut Job {
        &mut self.jobs[index as usize]
    }

    /// Whether the packet is here, and not with its submission.
    #[inline]
    pub fn has_packet(&self, index: u32) -> bool {
        self.jobs[index as usize].packet.has_buffer()
    }

    /// Takes the packet, if it is here.
    #[inline]
    pub fn take_packet(&mut self, index: u32) -> Option<Packet> {
        let packet = std::mem::take(&mut self.jobs[index as usize].packet);
        packet.has_buffer().then_some(packet)
    }

    /// The token that identifies this packet, in this generation, in a job.
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
        (is_current && self.jobs[index as usize].verdict == Verdict::Pending).then_some(index)
    }

    /// A processor is done with a job.
    #[inline]
    pub fn settle(&mut self, index: u32, done: &mut Job) {
        let job = &mut self.jobs[index as usize];
        job.verdict = done.verdict;
        job.packet = std::mem::take(&mut done.packet);
    }

    /// Takes a packet that is done, and gives its slot back.
    #[inline]
    pub fn take_done(&mut self, index: u32) -> (Job, Run) {
        let Slot { line, ticket, last, class, admitted, path, .. } = self.slots[index as usize];
        let job = &mut self.jobs[index as usize];
        let job = Job { packet: std::mem::take(&mut job.packet), ..*job };
        self.give_back(index);
        (job, Run { line, ticket, len: 1, class, bypass: false, last, admitted, path })
    }

    /// Makes answers to jobs given out so far count no more.
    pub fn disown(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(u32::from(!planted(Fault::GenerationReused)));
        slot.submission = NONE;
    }
}
