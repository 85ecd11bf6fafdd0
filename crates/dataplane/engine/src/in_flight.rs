//! Packets in flight: a slot for each, and submissions to processors.

use forebay_crypto::Packet;

mod slots;
mod submissions;

pub use slots::Slots;
pub use submissions::{NONE, Placed, Submission, Submissions};

/// Everything that a core has between preparing and completing.
#[derive(Debug)]
pub struct InFlight {
    /// A slot per packet.
    pub slots: Slots,
    /// Submissions that processors hold.
    pub submissions: Submissions,
}

impl InFlight {
    /// Room for `limit` packets; `batch` packets to a submission are usual.
    pub fn new(limit: usize, batch: usize) -> InFlight {
        InFlight { slots: Slots::new(limit), submissions: Submissions::new(limit, batch) }
    }

    /// The packet of a slot as it was prepared, wherever it is.
    pub fn original(&self, index: u32) -> Option<&Packet> {
        if self.slots.has_packet(index) {
            return Some(&self.slots.job(index).packet);
        }
        let slot = self.slots.get(index);
        if slot.submission == NONE {
            return None;
        }
        self.submissions.get(slot.submission).sources.get(slot.place as usize)
    }

    /// Whether no packet is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.in_use() == 0
    }
}
