//! The running gateway.
//!
//! [`service`] is the gateway itself. [`serving`] is the loop that starts and stops it: a gateway alone, of a pair or of a cluster. [`control`] is its control socket and
//! metrics. [`privileges`] drops the privileges that the process does not need. [`forebay_config`] reads the configuration file.

pub mod control;
pub mod service;
pub mod serving;

pub use forebay_privileges as privileges;
