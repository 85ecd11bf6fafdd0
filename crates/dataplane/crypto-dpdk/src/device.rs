//! Devices with their queue pairs.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys as sys;
use dpdk_sys::{eal, pci};

use crate::{Config, Unavailable};

/// Most queue pairs that a device is readied with.
const PAIRS: u32 = 8;

/// The devices that were readied, by their names.
static DEVICES: Mutex<Option<HashMap<String, Arc<Device>>>> = Mutex::new(None);

/// A device that was readied; it stays so until the process ends.
pub struct Device {
    pub number: u8,
    name: String,
    pairs: u16,
    /// Most jobs of a queue pair.
    pub queue: u32,
    /// The pool of its sessions.
    pool: NonNull<c_void>,
    /// Queue pairs that nobody has.
    free: Mutex<Vec<u16>>,
    /// Sessions are opened and closed by one thread at a time.
    sessions: Mutex<()>,
}

// SAFETY: DPDK's pools may be used by several threads; what may not is behind locks.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// How many sessions a device that was readied has.
pub fn sessions_in_use(device: &str) -> Option<u32> {
    let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    let device = devices.as_ref()?.get(device)?;
    let _one = device.sessions();
    // SAFETY: the pool of a device, which stays until the process ends.
    Some(unsafe { sys::fb_dpdk_in_use(device.pool.as_ptr()) })
}

impl Device {
    /// The device of this name, readied; DPDK is started if it was not.
    pub fn of(config: &Config) -> Result<Arc<Device>, Unavailable> {
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let devices = devices.get_or_insert_default();
        if pci::is_place(&config.device) && !devices.contains_key(&config.device) {
            look(&config.device)?;
        }
        eal::start(&config.device).map_err(Unavailable::NotStarted)?;
        if let Some(device) = devices.get(&config.device) {
            return Ok(device.clone());
        }
        let device = Arc::new(ready(config)?);
        devices.insert(config.device.clone(), device.clone());
        Ok(device)
    }

    /// Whether it computes on this machine's cores, and so can work on a packet where it is.
    pub fn is_software(&self) -> bool {
        // SAFETY: a device that there is.
        unsafe { sys::fb_dpdk_is_software(self.number) != 0 }
    }

    /// Takes a queue pair.
    pub fn take_pair(&self) -> Result<u16, Unavailable> {
        let taken = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        taken.ok_or_else(|| Unavailable::InUse { device: self.name.clone(), pairs: self.pairs })
    }

    /// Gives a queue pair back.
    pub fn give_back(&self, pair: u16) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
    }

    fn sessions(&self) -> MutexGuard<'_, ()> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it does this.
    pub fn has(&self, keys: &sys::Keys) -> bool {
        // SAFETY: only lengths and numbers of `keys` are looked at.
        unsafe { sys::fb_dpdk_has(self.number, keys) != 0 }
    }

    /// Opens a session.
    pub fn open(&self, keys: &sys::Keys) -> Option<NonNull<c_void>> {
        let _one = self.sessions();
        // SAFETY: `keys` points at keys of the lengths that it says, and the driver copies them.
        NonNull::new(unsafe { sys::fb_dpdk_session(self.number, self.pool.as_ptr(), keys) })
    }

    /// Closes a session, which no job has any more, and wipes its keys.
    ///
    /// # Safety
    /// `session` is one that [`Device::open`] has opened and nobody has closed.
    pub unsafe fn close(&self, session: NonNull<c_void>) {
        let _one = self.sessions();
        // SAFETY: the caller's.
        unsafe { sys::fb_dpdk_session_free(self.number, self.pool.as_ptr(), session.as_ptr()) };
    }
}

/// Whether a process may drive the device at this place of the PCI bus.
pub fn look(place: &str) -> Result<(), Unavailable> {
    let device = place.to_owned();
    pci::look(Path::new(pci::PCI_DEVICES), place).map_err(|unfit| match unfit {
        pci::Unfit::NotOnBus => Unavailable::NotOnBus { device },
        pci::Unfit::NotBound(driver) => Unavailable::NotBound { device, driver },
    })
}

/// Why DPDK does not find a device.
fn missing(device: &str) -> Unavailable {
    let drivers = eal::crypto_drivers();
    let device = device.to_owned();
    let of = device.trim_end_matches(|last: char| last.is_ascii_digit());
    if !pci::is_place(&device) && !drivers.iter().any(|driver| driver == of) {
        return Unavailable::NoDriver { device, drivers };
    }
    Unavailable::NoDevice { device, found: eal::crypto_devices() }
}

fn ready(config: &Config) -> Result<Device, Unavailable> {
    let device = config.device.clone();
    let missing = || missing(&config.device);
    let (Ok(name), Ok(arguments)) = (CString::new(&*config.device), CString::new(&*config.arguments)) else {
        return Err(missing());
    };
    // The devices that DPDK's own scheduler (`crypto_scheduler`) is made of have to be there before it.
    let _alone = eal::alone_with_devices();
    for worker in config.arguments.split(',').filter_map(|argument| argument.strip_prefix("worker=")) {
        let worker = CString::new(worker).map_err(|_| missing())?;
        // SAFETY: two texts that end with zeros.
        unsafe { sys::fb_dpdk_find(worker.as_ptr(), c"".as_ptr()) };
    }
    // SAFETY: two texts that end with zeros.
    let number = unsafe { sys::fb_dpdk_find(name.as_ptr(), arguments.as_ptr()) };
    let Ok(number) = u8::try_from(number) else { return Err(missing()) };
    // SAFETY: a device that there is.
    let pairs = unsafe { sys::fb_dpdk_queue_pairs(number) }.clamp(1, PAIRS) as u16;
    // More than a processor ever has in flight: a driver that computes when it is given jobs, as OpenSSL's does, has worked
    // on the packet that it then has no room for.
    let descriptors = (config.queue as u32 + 1).next_power_of_two().max(64);
    let sessions = config.sessions as u32;
    // SAFETY: as above; it was not readied before.
    let pool = unsafe { sys::fb_dpdk_ready(number, pairs, descriptors, sessions) };
    let pool = NonNull::new(pool).ok_or(Unavailable::NotReady { device: device.clone() })?;
    let free = Mutex::new((0..pairs).rev().collect());
    let queue = config.queue.max(1) as u32;
    Ok(Device { number, name: device, pairs, queue, pool, free, sessions: Mutex::new(()) })
}
