//! Socket options that no safe crate has, and classic BPF filters.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option whose value is an int, such as `(SOL_UDP, UDP_GRO)`.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let value: libc::c_int = value;
    // SAFETY: the pointer is to an int that outlives the call, and the length is its size.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    crate::check(result).map(drop)
}

/// How many datagrams the kernel has dropped because the socket's queue was full (`SO_MEMINFO`).
///
/// # Errors
/// Those of getsockopt(2).
pub fn dropped(socket: BorrowedFd<'_>) -> io::Result<u32> {
    const SO_MEMINFO: libc::c_int = 55;
    const SK_MEMINFO_DROPS: usize = 8;
    let mut values = [0u32; SK_MEMINFO_DROPS + 1];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the pointer is to `len` bytes that live on; the kernel writes at most so many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            (&raw mut values).cast(),
            &raw mut len,
        )
    };
    crate::check(result).map(|_| values[SK_MEMINFO_DROPS])
}

/// The process at the other end of a Unix socket, as it was when it connected (`SO_PEERCRED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its number, if it has one here: a process of a PID namespace that this one does not see has none, and the kernel says 0.
    pub pid: Option<std::num::NonZeroU32>,
}

/// Who is at the other end of a Unix socket.
///
/// # Errors
/// Those of getsockopt(2).
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of_val(&found) as libc::socklen_t;
    // SAFETY: the pointer is to `len` bytes that live on; the kernel writes at most so many, and every value is a ucred.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut len,
        )
    };
    crate::check(result)?;
    let pid = u32::try_from(found.pid).ok().and_then(std::num::NonZeroU32::new);
    Ok(Peer { uid: found.uid, pid })
}

/// One instruction of classic BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to jump over if true.
    pub jump_true: u8,
    /// Instructions to jump over if false.
    pub jump_false: u8,
    /// Operand.
    pub k: u32,
}

/// Attaches a classic BPF program by `option`: `SO_ATTACH_FILTER` or `SO_ATTACH_REUSEPORT_CBPF`.
///
/// # Errors
/// Those of setsockopt(2); `InvalidInput` if the program is longer than the kernel takes.
pub fn attach(socket: BorrowedFd<'_>, option: i32, program: &[Instruction]) -> io::Result<()> {
    let too_long = || io::Error::from(io::ErrorKind::InvalidInput);
    let len = u16::try_from(program.len()).map_err(|_| too_long())?;
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|i| libc::sock_filter { code: i.code, jt: i.jump_true, jf: i.jump_false, k: i.k })
        .collect();
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: the program's pointer and length are of `filter`, which outlives the call; the kernel copies
    // and checks it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    crate::check(result).map(drop)
}
