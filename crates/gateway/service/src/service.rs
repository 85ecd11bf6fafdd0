//! The running gateway.

mod addresses;
mod broadcasts;
mod caretaker;
mod export;
mod family;
mod guard;
mod host;
mod ike_forward;
mod in_process;
mod links;
mod machine;
mod mirror;
mod network_device;
mod offloads;
mod pin;
mod processors;
mod routes;
mod saved;
mod start;
mod start_error;
mod thread_wait;
mod ways;

pub use forebay_taps::{Side, Taps, TapsStatus};
pub use forebay_worker::{
    Handle, InstallError, Installed, Lost, Outside, OwnSettings, Poll, Port, PortCounts, Setup, Steps, Wait,
    Worker, WorkerCounts, Workers,
};

pub use addresses::SharedAddresses;
pub use broadcasts::{BROADCAST_HELP, broadcasts};
pub use caretaker::Caretaker;
pub use export::KeyExport;
pub use guard::{kernel_entries, lacks_guard};
pub use host::{Address, CardSide, Firewall, Host, Queues};
pub use in_process::InProcess;
pub use machine::Machine;
pub use mirror::{OnPolicies, SyncLimits, XfrmSync};
pub use network_device::{LacksDevice, lacks_network_devices};
pub use offloads::{Interfaces, lacks_offloads};
pub use pin::pin;
pub use processors::open_processors;
pub use routes::Routing;
pub use saved::{Closed, SavedRules};
pub use start::{Service, claim, workers};
pub use start_error::StartError;
pub use ways::find_ways;
