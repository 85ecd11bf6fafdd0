//! A gateway inside your program, as `forebay gateway` runs it. Linux only.
//!
//! [`parse`] or [`load`] reads the file of the gateway, [`open_processors`] opens and measures what it names, and
//! [`Service::start_on`] starts the gateway's threads on a [`Host`]. [`Machine`] is the computer at hand, with a TUN
//! interface and routes, which requires privileges. [`InProcess`] requires none: your program is the protected
//! network and exchanges whole IP packets with the gateway by a pair of sockets. Your own [`Host`] may give the gateway
//! any other [`Link`].
//!
//! ```no_run
//! use std::hash::{BuildHasher, RandomState};
//! use std::os::unix::net::UnixDatagram;
//! use std::path::Path;
//! use std::time::{SystemTime, UNIX_EPOCH};
//!
//! use forebay::gateway::{Clock, InProcess, Service, load, open_processors};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = load(Path::new("gateway.toml"))?;
//! let clock = Clock::start();
//! let processors = open_processors(&config, clock)?;
//! let (inside, program) = UnixDatagram::pair()?;
//! // Keys the hashes of the gateway's tables: a number that no other party can know.
//! let seed = RandomState::new().hash_one(0);
//! let unix_time = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
//! let gateway = Service::start_on(&InProcess::new(inside), config, processors, clock, seed, unix_time)?;
//!
//! let mut packet = [0; 65_535];
//! let length = program.recv(&mut packet)?; // an IP packet that a peer has sent
//! # let _ = length;
//! gateway.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! The example `gateway.rs` joins two gateways and sends a packet through both.
//!
//! [`Serving`] is the loop of `forebay gateway` itself: a [`Process`] steps it, and it starts, reloads and ends the data plane, alone or,
//! with the features `pair` and `cluster`, as one of several gateways.

pub use forebay_config::{Changes, Config, Raw, SharedAddress, Tun, Udp, Xdp, load, parse};
pub use forebay_engine::{Clock, ProcessorSetup};
pub use forebay_gateway::control::gather::Snapshot;
pub use forebay_gateway::control::{Client, ControlError, Request, Response, SaDoc, StatusDoc};
pub use forebay_gateway::service::{
    Address, CardSide, Caretaker, Firewall, Host, InProcess, InstallError, Machine, Poll, Queues, Routing,
    Service, StartError, Wait, Worker, Workers, open_processors, workers,
};
pub use forebay_gateway::serving::{Event, Others, Process, Serving, Step};
pub use forebay_ipsec::Protocol;
pub use forebay_links::datagram::DatagramLink;
pub use forebay_links::nftables::{Counted, Table};
pub use forebay_links::{Link, RxDrops, TxReport};
pub use forebay_sas::{Finding, SasErrors, SasFile};
pub use forebay_state::{Files, System};
