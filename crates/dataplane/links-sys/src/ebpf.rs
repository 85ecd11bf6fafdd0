//! bpf(2), as far as a map and a program need it: that of AF_XDP, and that in front of the queues of a TUN device.

pub mod assembler;
mod counters;

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub use counters::Counters;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Says what becomes of a frame of an Ethernet device.
    Xdp,
    /// Says how many bytes are taken of a packet.
    Filter,
}

/// Makes a map from queues to sockets of AF_XDP.
///
/// # Errors
/// What the system says, as for all of these.
pub fn socket_map(queues: u32) -> io::Result<OwnedFd> {
    const BPF_MAP_TYPE_XSKMAP: u32 = 17;
    let mut attributes = MapCreate {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: queues,
        map_flags: 0,
    };
    // SAFETY: the attributes are the command's, without addresses.
    unsafe { descriptor(MAP_CREATE, &mut attributes) }
}

/// Makes a map of `entries` values of so many bytes, by their number, which the process can map (Linux 5.5).
fn array(entries: u32, size: u32) -> io::Result<OwnedFd> {
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    const BPF_F_MMAPABLE: u32 = 1 << 10;
    let mut attributes = MapCreate {
        map_type: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: size,
        max_entries: entries,
        map_flags: BPF_F_MMAPABLE,
    };
    // SAFETY: the attributes are the command's, without addresses.
    unsafe { descriptor(MAP_CREATE, &mut attributes) }
}

/// Puts a socket under a queue.
///
/// # Errors
/// What the system says.
pub fn put_socket(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let mut attributes = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const queue).expose_provenance() as u64,
        value: (&raw const value).expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: the attributes are the command's; key and value are as long as the map was made for, and outlive the call.
    unsafe { call(MAP_UPDATE_ELEM, &mut attributes) }.map(drop)
}

/// Has the kernel check a program and load it.
///
/// # Errors
/// What the system says, with its objections.
pub fn load(purpose: Purpose, program: &[u64]) -> io::Result<OwnedFd> {
    const BPF_PROG_TYPE_SOCKET_FILTER: u32 = 1;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    const LICENSE: &CStr = c"Apache-2.0 OR MIT";
    let (program_type, expected_attach) = match purpose {
        Purpose::Xdp => (BPF_PROG_TYPE_XDP, BPF_XDP),
        Purpose::Filter => (BPF_PROG_TYPE_SOCKET_FILTER, 0),
    };
    let mut log = vec![0u8; 64 * 1024];
    let mut attributes = ProgramLoad {
        program_type,
        instructions: program.len() as u32,
        code: program.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"forebay\0\0\0\0\0\0\0\0\0",
        interface: 0,
        expected_attach,
    };
    // SAFETY: the attributes are the command's; the program is as long as stated, the license ends with a zero, and
    // both outlive the call; there is no log.
    unsafe { descriptor(PROG_LOAD, &mut attributes) }.or_else(|error| {
        if error.raw_os_error() != Some(libc::EINVAL) && error.raw_os_error() != Some(libc::EACCES) {
            return Err(error);
        }
        (attributes.log_level, attributes.log_size) = (1, log.len() as u32);
        attributes.log = log.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: as above, and the log is writable for the length that is stated.
        unsafe { descriptor(PROG_LOAD, &mut attributes) }.map_err(|error| {
            let end = log.iter().position(|&b| b == 0).unwrap_or(log.len());
            io::Error::new(error.kind(), format!("{error}: {}", String::from_utf8_lossy(&log[..end])))
        })
    })
}

/// Attaches a program to an interface, with the flags of `IFLA_XDP_FLAGS`; it is detached when the descriptor
/// is closed.
///
/// # Errors
/// What the system says.
pub fn attach(program: BorrowedFd<'_>, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes =
        LinkCreate { program: program.as_raw_fd() as u32, interface, attach_type: BPF_XDP, flags };
    // SAFETY: the attributes are the command's, without addresses.
    unsafe { descriptor(LINK_CREATE, &mut attributes) }
}

/// As [`call`], for a command that returns a new descriptor.
///
/// # Safety
/// As [`call`]; `command` must be one that returns a new descriptor.
unsafe fn descriptor<T>(command: i32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { call(command, attributes) }?;
    // SAFETY: the descriptor is new, so no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls bpf(2).
///
/// # Safety
/// `attributes` must be a prefix of `union bpf_attr` for `command`, without padding; an address in it must be of
/// memory that is valid, for what the command does to it, for the length beside it and until the call returns.
unsafe fn call<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the attributes are passed with their own size; the rest is the caller's promise.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, (&raw mut *attributes).cast::<libc::c_void>(), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

// enum bpf_cmd and enum bpf_attach_type (linux/bpf.h).
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const BPF_XDP: u32 = 37;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}
