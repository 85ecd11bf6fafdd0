//! Faults of a device, for tests: its driver works, and what it takes and gives back goes wrong on the way.

use dpdk_sys as sys;

use crate::device::Device;
use crate::{Config, Unavailable};

/// What goes wrong; the `u32` says with which operation or poll: 1 is each, 2 every other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Takes jobs and gives none back.
    Stops,
    /// Takes no jobs and gives none back.
    Unplugged,
    /// Gives back one job in so many polls.
    Slow(u32),
    /// Says of jobs that were done that they failed.
    Fails(u32),
    /// Flips a bit in the ICV of jobs that were sealed.
    Flips(u32),
    /// Gives back an operation besides that nobody gave to it.
    Stranger(u32),
    /// Gives back a job twice.
    Twice(u32),
    /// Takes half of the jobs that it is offered.
    Few,
    /// Gives back jobs in the reverse order.
    Reversed,
}

/// Arms a fault of a device, which is opened for it if it was not.
///
/// # Errors
/// If there is no such device.
pub fn arm(device: &str, fault: Fault) -> Result<(), Unavailable> {
    let (number, every) = match fault {
        Fault::None => (0, 1),
        Fault::Stops => (1, 1),
        Fault::Unplugged => (2, 1),
        Fault::Slow(every) => (3, every),
        Fault::Fails(every) => (4, every),
        Fault::Flips(every) => (5, every),
        Fault::Stranger(every) => (6, every),
        Fault::Twice(every) => (7, every),
        Fault::Few => (8, 1),
        Fault::Reversed => (9, 1),
    };
    let device = Device::of(&Config::new(device))?;
    // SAFETY: a device that there is; tests arm its faults while nobody polls it.
    unsafe { sys::fb_dpdk_fault(device.number, number, every) };
    Ok(())
}

/// How many operations or polls of a device have met a fault.
///
/// # Errors
/// If there is no such device.
pub fn struck(device: &str) -> Result<u64, Unavailable> {
    let device = Device::of(&Config::new(device))?;
    // SAFETY: a device that there is.
    Ok(unsafe { sys::fb_dpdk_struck(device.number) })
}
