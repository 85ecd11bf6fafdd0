//! What links need of Linux and no safe crate gives: TUN devices, batched sends and receives with
//! control messages, socket options and filters.
//!
//! Everything public is safe to call: descriptors are borrowed, buffers have lifetimes, and each `unsafe`
//! block says why it is right.
#![cfg(target_os = "linux")]

mod address;
pub mod control;
pub mod option;
pub mod receive;
pub mod send;
pub mod tun;

pub use control::Control;
pub use receive::{Received, Receiver};
pub use send::{Outgoing, Sender};

use std::io;

/// The result of a system call that is negative for an error.
fn check(result: libc::c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
