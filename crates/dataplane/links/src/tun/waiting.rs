//! Limits the number of packets that wait in a TUN device for the reader.
//!
//! The kernel's own bound, the device's queue length, counts what it hands over at once: a packet, or a batch of up to 64 that pass as one. A queue
//! that is long enough for floods of single packets would hold batches for a second's work. So a program in the kernel counts packets in
//! front of each queue, the reader counts those that it has taken, and what comes while the difference is at the bound is dropped
//! there: it counts as lost before it was received, as what the kernel's own bound drops.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_links_sys::ebpf::assembler::{Assembler, R0, R1, R2, R6, R7, R8, STACK, Width};
use forebay_links_sys::ebpf::{self, Counters, Purpose};
use forebay_links_sys::tun;

/// Columns of the counters: packets that came to a queue, and those that were taken from it.
const CAME: usize = 0;
const TAKEN: usize = 1;

/// What waits in one queue.
#[derive(Debug)]
pub(super) struct Waiting {
    counters: Arc<Counters>,
    queue: usize,
    taken: u64,
    /// Of the first queue.
    _filter: Option<Filter>,
}

/// The program in front of a device's queues. A device that another process has made persistent is left without it.
#[derive(Debug)]
struct Filter(OwnedFd);

impl Drop for Filter {
    fn drop(&mut self) {
        let _ = tun::set_filter(self.0.as_fd(), None);
    }
}

impl Waiting {
    /// Has no more than `most` packets wait in each of `queues` of a device, whose first one this is; a batch that begins below the bound is
    /// taken whole.
    ///
    /// # Errors
    /// Without `CAP_BPF`, and before Linux 5.5.
    pub fn bound(first: BorrowedFd<'_>, queues: usize, most: u32) -> io::Result<Vec<Waiting>> {
        let counters = Arc::new(Counters::new(queues, 2)?);
        let program = ebpf::load(Purpose::Filter, &program(counters.map().as_raw_fd(), most))?;
        let filter = Filter(first.try_clone_to_owned()?);
        tun::set_filter(first, Some(program.as_fd()))?;
        let of_queue = |queue| Waiting { counters: counters.clone(), queue, taken: 0, _filter: None };
        let mut waiting: Vec<Waiting> = (0..queues).map(of_queue).collect();
        waiting[0]._filter = Some(filter);
        Ok(waiting)
    }

    /// How many packets have come by now.
    pub fn came(&self) -> u64 {
        self.counters.at(self.queue, CAME).load(Ordering::Relaxed)
    }

    /// So many more packets were taken. Where nothing was left behind them, all had been taken or lost that had come before the first read;
    /// and nothing else, if there was none.
    pub fn took(&mut self, packets: u64, nothing_left: Option<u64>) {
        let before = self.taken;
        self.taken = self.taken.wrapping_add(packets);
        if let Some(came) = nothing_left
            && (packets == 0 || came.wrapping_sub(self.taken) as i64 > 0)
        {
            self.taken = came;
        }
        if self.taken != before {
            self.counters.at(self.queue, TAKEN).store(self.taken, Ordering::Relaxed);
        }
    }
}

/// The program: takes a packet or batch, and counts its packets, or takes nothing of it while `most` packets wait.
fn program(map: i32, most: u32) -> Vec<u64> {
    // Of `struct __sk_buff`.
    const LEN: i16 = 0;
    const QUEUE: i16 = 12;
    const SEGMENTS: i16 = 164;
    const MAP_LOOKUP: i32 = 1;
    let [came, taken] = [CAME, TAKEN].map(|column| Counters::offset(column) as i16);
    let mut asm = Assembler::default();
    let (counted, take, refuse) = (asm.label(), asm.label(), asm.label());
    let (len, packets) = (R7, R8);
    asm.copy(R6, R1);
    asm.load(len, Width::Word, R6, LEN);
    asm.load(packets, Width::Word, R6, SEGMENTS);
    asm.jump_if_some(packets, counted);
    asm.set(packets, 1);
    asm.here(counted);
    asm.load(R1, Width::Word, R6, QUEUE);
    asm.store_word(STACK, -4, R1);
    asm.copy(R2, STACK);
    asm.add(R2, -4);
    asm.map(R1, map);
    asm.call(MAP_LOOKUP);
    asm.jump_if_none(R0, take);
    asm.load(R1, Width::Double, R0, came);
    asm.load(R2, Width::Double, R0, taken);
    asm.subtract(R1, R2);
    asm.jump_if_not_below(R1, most as i32, refuse);
    asm.add_to(R0, came, packets);
    asm.here(take);
    asm.copy(R0, len);
    asm.exit();
    asm.here(refuse);
    asm.set(R0, 0);
    asm.exit();
    asm.finish()
}
