//! DPDK in this process, and its devices with their queue pairs.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys as sys;

use crate::{Config, Unavailable, pci};

/// Most queue pairs that a device is readied with.
const PAIRS: u32 = 8;
/// Where no device on the bus is wanted, only this one is looked for, which there never is.
const NO_DEVICE: &str = "ffff:ff:1f.7";

/// The kernel's folder of devices on the PCI bus.
pub const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// What this process has of DPDK: whether it was started, and the devices that were readied.
#[derive(Default)]
struct State {
    started: Option<Result<(), i32>>,
    has_huge_pages: Option<bool>,
    devices: HashMap<String, Arc<Device>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

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

/// DPDK's version.
pub fn version() -> String {
    // SAFETY: a constant text of DPDK.
    unsafe { CStr::from_ptr(sys::fb_dpdk_version()) }.to_string_lossy().into_owned()
}

/// How many sessions a device that was readied has.
pub fn sessions_in_use(device: &str) -> Option<u32> {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let device = state.as_ref()?.devices.get(device)?;
    let _one = device.sessions();
    // SAFETY: the pool of a device, which stays until the process ends.
    Some(unsafe { sys::fb_dpdk_in_use(device.pool.as_ptr()) })
}

impl Device {
    /// The device of this name, readied; DPDK is started if it was not.
    pub fn of(config: &Config) -> Result<Arc<Device>, Unavailable> {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.get_or_insert_default();
        if pci::is_place(&config.device) && !state.devices.contains_key(&config.device) {
            pci::look(Path::new(PCI_DEVICES), &config.device)?;
        }
        let has_huge_pages = *state.has_huge_pages.get_or_insert_with(huge_pages_are_free);
        let started = state.started.get_or_insert_with(|| start(&config.device, has_huge_pages));
        started.map_err(Unavailable::NotStarted)?;
        if let Some(device) = state.devices.get(&config.device) {
            return Ok(device.clone());
        }
        let device = Arc::new(ready(config)?);
        state.devices.insert(config.device.clone(), device.clone());
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

/// Starts DPDK: an error number if it does not.
fn start(device: &str, has_huge_pages: bool) -> Result<(), i32> {
    let allowed = if pci::is_place(device) { device } else { NO_DEVICE };
    let core = first_core().to_string();
    let mut words = vec![
        "forebay",
        "--no-telemetry",
        "--log-level=lib.eal:error",
        "--log-level=lib.cryptodev:warning",
        "-a",
        allowed,
        "-l",
        &core,
    ];
    if has_huge_pages {
        words.push("--in-memory");
    } else {
        words.extend(["--no-shconf", "--no-huge", "-m", "256"]);
    }
    let words: Vec<CString> =
        words.into_iter().map(|word| CString::new(word).expect("words without zeros")).collect();
    // DPDK keeps pointers to its arguments.
    let mut pointers: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    pointers.push(std::ptr::null_mut());
    let pointers = pointers.leak();
    // SAFETY: as many texts as it is told, with a null pointer behind them; called once.
    match unsafe { sys::fb_dpdk_start(pointers.len() as i32 - 1, pointers.as_mut_ptr()) } {
        0 => Ok(()),
        error => Err(-error),
    }
}

/// A core on which this process may run.
fn first_core() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let digits = |text: &str| text.trim().chars().take_while(char::is_ascii_digit).collect::<String>();
    list.and_then(|list| digits(list).parse().ok()).unwrap_or(0)
}

/// Whether DPDK has huge pages, or will have them when it is started.
pub fn has_huge_pages() -> bool {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    *state.get_or_insert_default().has_huge_pages.get_or_insert_with(huge_pages_are_free)
}

fn huge_pages_are_free() -> bool {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    let free = |path: &Path| {
        fs::read_to_string(path.join("free_hugepages"))
            .is_ok_and(|text| text.trim().parse().unwrap_or(0_u64) > 0)
    };
    sizes.flatten().any(|size| free(&size.path()))
}

/// The lines that a function of the shim writes.
fn lines(write: unsafe extern "C" fn(*mut c_char, usize)) -> Vec<String> {
    let mut text = vec![0; 4_096];
    // SAFETY: the room that it is told; all such functions write no more, and end the text.
    unsafe { write(text.as_mut_ptr().cast::<c_char>(), text.len()) };
    let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Why DPDK does not find a device.
fn missing(device: &str) -> Unavailable {
    let drivers = lines(sys::fb_dpdk_drivers);
    let device = device.to_owned();
    let of = device.trim_end_matches(|last: char| last.is_ascii_digit());
    if !pci::is_place(&device) && !drivers.iter().any(|driver| driver == of) {
        return Unavailable::NoDriver { device, drivers };
    }
    Unavailable::NoDevice { device, found: lines(sys::fb_dpdk_names) }
}

fn ready(config: &Config) -> Result<Device, Unavailable> {
    let device = config.device.clone();
    let missing = || missing(&config.device);
    let (Ok(name), Ok(arguments)) = (CString::new(&*config.device), CString::new(&*config.arguments)) else {
        return Err(missing());
    };
    // The devices that DPDK's own scheduler (`crypto_scheduler`) is made of have to be there before it.
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
