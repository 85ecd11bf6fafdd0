//! Packets in flight: a slot for each, submissions to processors, and the order of release.

use forebay_crypto::Packet;

mod reorder;
mod slots;
mod submissions;

pub use reorder::{Order, ReorderBuffer};
pub use slots::{Slot, Slots};
pub use submissions::{NONE, Placed, Submission, Submissions};

/// Everything that is between admission and release.
#[derive(Debug)]
pub struct InFlight {
    /// A slot per packet.
    pub slots: Slots,
    /// Submissions that processors hold.
    pub submissions: Submissions,
    /// The order of release.
    pub reorder: ReorderBuffer,
}

impl InFlight {
    /// Room for `limit` packets of `sas` SAs; `batch` packets to a submission are usual.
    pub fn new(order: Order, sas: usize, limit: usize, batch: usize) -> InFlight {
        InFlight {
            slots: Slots::new(limit),
            submissions: Submissions::new(limit, batch),
            reorder: ReorderBuffer::new(order, sas, limit),
        }
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
