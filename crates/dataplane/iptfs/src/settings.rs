//! How an SA aggregates.

use forebay_time::Duration;
use forebay_wire::aggfrag;

/// The widest reorder window in payloads. Each place may hold a payload, so this bounds memory per SA; a
/// path that reorders farther does not deliver a tunnel's traffic in useful time anyway.
pub const MAX_REORDER_WINDOW: u32 = 1_024;
/// The least bytes of inner packets that a payload must have room for: below that, headers would be most
/// of what is sent.
pub const MIN_ROOM: usize = 64;
/// The most payloads a second: one a nanosecond.
const MAX_RATE: u64 = 1_000_000_000;

/// How an SA aggregates: the sending side's settings, except [`Iptfs::reorder_window`] and
/// [`Iptfs::lost_after`], which are the receiving side's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iptfs {
    /// Longest outer IP packet in bytes; with a fixed rate all have the greatest length up to this that the
    /// cipher's alignment allows.
    pub packet_size: usize,
    /// Payloads a second, sent whether there is traffic or not; `None` follows the load. Without [`Iptfs::congestion`] a fixed
    /// rate does not yield to congestion: it is for paths under one's own control (RFC 9347 2.4.1).
    pub rate: Option<u64>,
    /// Longest wait of an inner packet for others to share its payload; not used with a fixed rate.
    pub max_delay: Duration,
    /// Whether inner packets are cut where a payload ends. Off where the receiver has said that it cannot
    /// put them together (flag D of USE_AGGFRAG); packets that are longer than a payload are then refused.
    pub fragment: bool,
    /// Payloads that one may arrive late by, in sequence numbers (RFC 9347 2.2.3, which suggests 3).
    pub reorder_window: u32,
    /// How long a received payload waits for a missing one before it: the lost packet timer.
    pub lost_after: Duration,
    /// Bytes of inner packets that wait at most; what finds no room is dropped.
    pub queue: usize,
    /// Whether payloads carry congestion information (sub-type 1), and a fixed rate yields to it.
    pub congestion: bool,
    /// Whether outer packets have the ECN marks of the inner ones (RFC 9347 3.1): off by default, because the marks are not
    /// protected and show something of what is inside (RFC 9347 9).
    pub ecn: bool,
}

impl Default for Iptfs {
    /// Load-following in outer packets of 1500 bytes.
    fn default() -> Iptfs {
        Iptfs {
            packet_size: 1_500,
            rate: None,
            // What fills a payload at 100 Mbit/s takes 120 us; slower flows pay this once a packet.
            max_delay: Duration::from_micros(500),
            fragment: true,
            reorder_window: 3,
            // Paths reorder within a few ms; Linux waits for 1 s, which a TCP flow would notice.
            lost_after: Duration::from_millis(20),
            // 1 ms of 2 Gbit/s, and more than any one packet.
            queue: 1 << 18,
            congestion: false,
            ecn: false,
        }
    }
}

/// Errors in settings for aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IptfsError {
    /// RFC 9347 5.1: transport mode has no inner packets to aggregate.
    TransportMode,
    /// Outer packets of this size hold less than [`MIN_ROOM`] bytes, or more than IP allows.
    PacketSize(usize),
    /// No payload a second, or more than one a nanosecond.
    Rate(u64),
    /// The reorder window is wider than [`MAX_REORDER_WINDOW`].
    ReorderWindow(u32),
    /// The queue holds less than one payload, or more than a gibibyte.
    Queue(usize),
}

impl std::fmt::Display for IptfsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IptfsError::TransportMode => f.write_str("aggregation (iptfs) is for ESP in tunnel mode only"),
            IptfsError::PacketSize(size) => {
                write!(
                    f,
                    "outer packets of {size} bytes for aggregation: too short for its payload, or too long for IP"
                )
            }
            IptfsError::Rate(rate) => {
                write!(f, "{rate} aggregated payloads a second; 1 to {MAX_RATE} are possible")
            }
            IptfsError::ReorderWindow(window) => {
                write!(f, "a reorder window of {window} payloads, at most {MAX_REORDER_WINDOW} are possible")
            }
            IptfsError::Queue(bytes) => {
                write!(f, "a queue of {bytes} bytes holds no full payload, or is over 1 GiB")
            }
        }
    }
}

impl Iptfs {
    /// Length of the AGGFRAG header in bytes.
    pub fn header_len(&self) -> usize {
        if self.congestion { aggfrag::CONGESTION_HEADER } else { aggfrag::HEADER }
    }

    /// Checks the settings for payloads of up to `payload` bytes.
    pub fn check(&self, payload: Option<usize>) -> Result<(), IptfsError> {
        let room = payload.and_then(|payload| payload.checked_sub(self.header_len()));
        let room = room.filter(|&room| room >= MIN_ROOM && self.packet_size <= 65_535);
        let room = room.ok_or(IptfsError::PacketSize(self.packet_size))?;
        if let Some(rate) = self.rate.filter(|rate| !(1..=MAX_RATE).contains(rate)) {
            return Err(IptfsError::Rate(rate));
        }
        if self.reorder_window > MAX_REORDER_WINDOW {
            return Err(IptfsError::ReorderWindow(self.reorder_window));
        }
        if !(room..=1 << 30).contains(&self.queue) {
            return Err(IptfsError::Queue(self.queue));
        }
        Ok(())
    }
}
