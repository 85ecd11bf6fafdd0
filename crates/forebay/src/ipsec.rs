//! IPsec in your own event loop: ESP and AH (RFC 4303, RFC 4302) without sockets.
//!
//! There are two levels.
//!
//! - [`Engine`] takes bursts of plain or protected IP packets and gives the finished ones back in order. It places the
//!   crypto on its [processors](Processor): AWS-LC (feature `aws-lc`), or your own.
//! - [`Ipsec`] is what lies below: it prepares a packet, you have the [`JobSpec`] that is left done by whatever can, and
//!   it completes the packet. It asks no clock, draws no random number and does no crypto.
//!
//! Neither opens a socket. Keys and SAs are yours to negotiate, and IVs yours to reserve: an [`IvRange`] must never be
//! used twice with one key, also not after a restart.
//!
//! ```
//! # #[cfg(feature = "aws-lc")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use forebay::ipsec::{
//!     AwsLc, Clock, Cost, Direction, Engine, Ipsec, IvRange, Job, JobSpec, Kind, ProcessorSetup, SaConfig, SaKeys,
//!     SecretBytes, Settings, Spi,
//! };
//!
//! let core = ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default());
//! let mut engine = Engine::new(Ipsec::seeded(1), &[], vec![core], Settings::default(), Clock::start())?;
//! let suite = "aes128gcm16".parse()?;
//! let keys = SaKeys::new(suite, &SecretBytes::new(vec![7; 20]), &SecretBytes::new(vec![]))?;
//! let spi = Spi::new(0x1001).expect("no SPI is zero");
//! let tunnel = SaConfig::new("east", spi, suite, "192.0.2.1".parse()?, "192.0.2.2".parse()?);
//! engine.add_outbound(tunnel, IvRange::for_throwaway_key(), &keys)?;
//!
//! let mut packet = engine.buffer();
//! packet.fill(&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]); // an IPv4 header
//! engine.admit_burst(Direction::Seal, &mut vec![Job::new(packet, JobSpec::default(), 0)]);
//! let sealed = engine.outputs().next().expect("one processor does a burst at once");
//! assert_eq!(sealed.result, Ok(()));
//! assert_eq!(sealed.packet.bytes()[9], 50); // ESP
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "aws-lc"))]
//! # fn main() {}
//! ```
//!
//! The example `ipsec.rs` seals and opens packets between two engines.

pub use forebay_crypto::fault;
pub use forebay_crypto::{
    Capabilities, Cipher, Direction, Fallback, Integrity, Job, JobSpec, KeyError, Layout, Packet, Processor,
    SaKeys, SecretBytes, SessionError, SessionId, Span, Suite, SuiteError, Verdict, forward_processor,
};
#[cfg(feature = "aws-lc")]
pub use forebay_crypto_aws_lc::AwsLc;
pub use forebay_engine::{
    AddSaError, Addresses, Answer, Calibration, Clock, Engine, EngineError, EngineStats,
    Limits as EngineLimits, Order, Output, PendingSpiLimits, ProcessorSetup, ProcessorStats, Refusal,
    Scheduling, Settings, calibrate,
};
pub use forebay_ipsec::{
    Action, DropCounts, DropReason, DscpSet, Encapsulation, Event, EventKind, Ipsec, Iptfs, IvRange,
    IvRefill, Lifetime, Limits, Lived, Mode, Next, Path, Policy, PolicyError, PolicyId, PolicyPlace,
    PortRange, Prepared, Protocol, Received, SaConfig, SaConfigError, SaCounters, SadError, SelectorError,
    Spi, Stop, Tfc, TrafficSelector, TunnelRules, UdpPorts,
};
pub use forebay_scheduler::{Cost, Kind};
