//! The running gateway.
//!
//! [`service`] is the gateway itself, [`control`] its control socket and metrics; [`privileges`] drops the privileges
//! that the process does not need. [`forebay_config`] reads the configuration file.

pub mod control;
pub mod service;

pub use forebay_privileges as privileges;
