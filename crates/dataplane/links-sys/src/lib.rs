//! What links need of Linux and no safe crate gives: TUN devices, batched sends and receives with
//! control messages, socket options and filters, programs in the kernel; and the checksum by vectors.
//!
//! Everything public is safe to call: descriptors are borrowed, buffers have lifetimes, and each `unsafe`
//! block says why it is right.

// Control messages have the layout of 64-bit kernels (control.rs).
#[cfg(all(target_os = "linux", not(target_pointer_width = "64")))]
compile_error!("Forebay's links are for 64-bit Linux, x86-64 and arm64.");

#[cfg(target_os = "linux")]
mod address;
pub mod checksum;
#[cfg(target_os = "linux")]
pub mod control;
#[cfg(target_os = "linux")]
pub mod ebpf;
#[cfg(target_os = "linux")]
pub mod option;
#[cfg(target_os = "linux")]
pub mod packet;
#[cfg(target_os = "linux")]
pub mod receive;
#[cfg(target_os = "linux")]
pub mod send;
#[cfg(target_os = "linux")]
pub mod tun;

#[cfg(target_os = "linux")]
pub use {
    control::Control,
    receive::{Received, Receiver},
    send::{Outgoing, Sender},
};

/// The result of a system call that is negative for an error.
#[cfg(target_os = "linux")]
fn check(result: libc::c_int) -> std::io::Result<usize> {
    usize::try_from(result).map_err(|_| std::io::Error::last_os_error())
}
