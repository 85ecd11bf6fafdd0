//! IP-TFS: aggregation and fragmentation of inner packets in ESP (RFC 9347).
//!
//! Inner packets of one SA, of both IP versions, follow each other in a stream of bytes that is cut into
//! payloads; the 16-bit block offset at the begin of each says where its first new packet begins, so that a
//! receiver finds its way again behind a payload that was lost. Many small packets then share one outer
//! header, one ICV and one crypto job; and a tunnel that sends payloads of one size at a fixed rate shows
//! nothing of the traffic inside.
//!
//! ```text
//! inner packets --Aggregator--> payloads --prepare, job, complete--> ESP
//! ESP --prepare, job, complete--> payloads --Deaggregator--> inner packets
//! ```
//!
//! Two ways to send:
//! - *fixed rate* ([`Iptfs::rate`]): at every tick a payload of full size, padding where there is nothing to
//!   carry. Size and time of what is seen outside do not depend on the traffic.
//! - *load-following*: a payload leaves when it is full or the oldest packet in it has waited for
//!   [`Iptfs::max_delay`], then as short as its content. It saves bytes and jobs and hides less; it is the
//!   counterpart on the wire of the scheduler's sliding window with a timeout.

mod aggregator;
mod congestion;
mod deaggregator;
mod settings;
mod timers;

pub use aggregator::Aggregator;
pub use congestion::Congestion;
pub use deaggregator::{Deaggregator, IptfsCounters, Seen};
pub use settings::{Iptfs, IptfsError, MAX_REORDER_WINDOW, MIN_ROOM};
pub use timers::Timers;
