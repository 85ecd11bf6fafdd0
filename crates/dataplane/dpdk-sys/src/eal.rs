//! DPDK in this process: there is one, for crypto devices and for network devices.
//!
//! It is started with the first device that is wanted, with one thread's worth of cores, so that it starts no threads that
//! compute, and takes its memory from huge pages where there are any.

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::pci;

/// Where no device on the bus is wanted, only this one is looked for, which there never is.
const NO_DEVICE: &str = "ffff:ff:1f.7";

/// Whether DPDK was started, and what it has.
#[derive(Default)]
struct State {
    started: Option<Result<(), i32>>,
    has_huge_pages: Option<bool>,
}

static STATE: Mutex<State> = Mutex::new(State { started: None, has_huge_pages: None });

/// Held by a thread that makes, starts or closes a device: what DPDK's buses and drivers note of their devices is not made for
/// several threads at a time (the lists of rte_devargs, the requests by which TAP starts a device).
static DEVICES: Mutex<()> = Mutex::new(());

/// Waits until no other thread makes, starts or closes a device, and has them wait.
pub fn alone_with_devices() -> MutexGuard<'static, ()> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// DPDK's version.
pub fn version() -> String {
    // SAFETY: a constant text of DPDK.
    unsafe { CStr::from_ptr(crate::fb_dpdk_version()) }.to_string_lossy().into_owned()
}

/// Starts DPDK, if it was not started; `device` is the first that is wanted of it. Threads that DPDK starts have the
/// capabilities of this one.
///
/// # Errors
/// An error number; as the first time, if it has failed before.
pub fn start(device: &str) -> Result<(), i32> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let has_huge_pages = *state.has_huge_pages.get_or_insert_with(huge_pages_are_free);
    *state.started.get_or_insert_with(|| init(device, has_huge_pages))
}

/// Whether DPDK has huge pages, or will have them when it is started.
pub fn has_huge_pages() -> bool {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    *state.has_huge_pages.get_or_insert_with(huge_pages_are_free)
}

/// Starts DPDK: an error number if it does not start.
fn init(device: &str, has_huge_pages: bool) -> Result<(), i32> {
    let allowed = if pci::is_place(device) { device } else { NO_DEVICE };
    let core = first_core().to_string();
    let mut words = vec![
        "forebay",
        "--no-telemetry",
        "--log-level=lib.eal:error",
        "--log-level=lib.cryptodev:warning",
        "--log-level=lib.ethdev:warning",
        // Otherwise every message and every wrong descriptor of a guest, and each look at a link that is down.
        "--log-level=lib.vhost.config:error",
        "--log-level=lib.vhost.data:critical",
        "--log-level=pmd.net.virtio.driver:critical",
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
    match unsafe { crate::fb_dpdk_start(pointers.len() as i32 - 1, pointers.as_mut_ptr()) } {
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

fn huge_pages_are_free() -> bool {
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    let free = |path: &Path| {
        fs::read_to_string(path.join("free_hugepages"))
            .is_ok_and(|text| text.trim().parse().unwrap_or(0_u64) > 0)
    };
    sizes.flatten().any(|size| free(&size.path()))
}

/// The crypto devices that DPDK has, by their names.
pub fn crypto_devices() -> Vec<String> {
    lines(crate::fb_dpdk_names)
}

/// The drivers for crypto devices that DPDK has loaded.
pub fn crypto_drivers() -> Vec<String> {
    lines(crate::fb_dpdk_drivers)
}

/// The lines that a function of the shim writes.
fn lines(write: unsafe extern "C" fn(*mut c_char, usize)) -> Vec<String> {
    let mut text = vec![0; 4_096];
    // SAFETY: the room that it is told; all such functions write no more, and end the text.
    unsafe { write(text.as_mut_ptr().cast::<c_char>(), text.len()) };
    let text = CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}
