//! The running gateway.
//!
//! [`service`] is the gateway itself, [`serving`] the loop that starts and stops it, alone or as a pair or cluster decides, [`control`] its control socket and metrics; [`privileges`] drops the privileges
//! that the process does not need. [`forebay_config`] reads the configuration file.

pub mod control;
pub mod service;
pub mod serving;

pub use forebay_privileges as privileges;
