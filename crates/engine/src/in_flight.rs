//! Packets in flight: a slot for each, submissions to processors, and the order of release.

mod reorder;
mod slots;
mod submissions;

pub use reorder::{Order, ReorderBuffer};
pub use slots::Slots;
pub use submissions::{NONE, Placed, Submissions};

/// Everything that is between admission and release.
#[derive(Debug)]
pub struct InFlight {
    /// A slot per packet.
    pub slots: Slots,
    /// What processors hold.
    pub submissions: Submissions,
    /// Who leaves before whom.
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

    /// Whether no packet is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.in_use() == 0
    }
}
