//! The running gateway.
//!
//! [`service`] is the gateway itself, [`control`] its socket and its figures; [`privileges`] gives up what the process
//! does not need. What a gateway's file says is read by [`forebay_config`].

pub mod control;
pub mod privileges;
pub mod service;
