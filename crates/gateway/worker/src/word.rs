//! Messages to the thread that records replay windows.

use forebay_crypto::SessionId;

/// A message to the thread.
pub enum Word {
    /// A window is half-way to its limit, or beyond it.
    Wanted {
        /// The SA.
        session: SessionId,
        /// The highest number received.
        top: u64,
        /// Packets received.
        packets: u64,
        /// SAs that had been removed by then ([`Worker::removals`](crate::Worker::removals)): the number of one that was
        /// removed since may be another SA's.
        removals: u64,
    },
    /// SAs were removed: what was carried over of them is to be noted.
    Removed,
}
