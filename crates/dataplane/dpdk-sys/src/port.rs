//! Network devices of DPDK (ethdev): ports with queues, of which each is used by one thread at a time.
//!
//! What comes may be taken as a [`Packet`] in the device's buffer, which is then lent: see `port.c`. The packet is sent as it is by
//! [`Queue::send`] of any port, or gives the buffer back when it is dropped.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::sync::LazyLock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use forebay_packet::{Lender, Memory, Packet};

use crate::eal;

/// Most frames of a burst.
pub const BURST: usize = 64;
/// Length of an Ethernet header without tags.
pub const ETHERNET: usize = 14;

/// Buffers of each queue that are never lent: for what the device receives meanwhile, and for copies.
const RESERVE: u32 = 4 * BURST as u32;

/// What a device can do.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Queues of received frames.
    pub rx_queues: u16,
    /// Queues of frames to be sent.
    pub tx_queues: u16,
    /// Longest frame that it says that it receives, in bytes; virtual devices may understate it.
    pub longest: u32,
    /// Its own Ethernet address.
    pub mac: [u8; 6],
}

/// Frames that a device lost before they were received.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Its queue was full.
    pub missed: u64,
    /// There was no buffer for them.
    pub no_buffers: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Received {
    data: *const u8,
    len: u32,
    flags: u32,
    start: *mut u8,
    room: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Lent {
    headroom: u32,
    tailroom: u32,
    reserve: u32,
}

unsafe fn give_back(start: NonNull<u8>, _: usize) {
    // SAFETY: a buffer that was lent; DPDK takes it from any thread.
    unsafe { fb_port_give_back(start.as_ptr()) };
}

/// Whose the buffers of all ports are.
// SAFETY: only buffers of mbufs are lent by it.
static PORTS: LazyLock<Lender> = LazyLock::new(|| unsafe { Lender::new(give_back) });

const CHECKSUM_GOOD: u32 = 1;
const CHECKSUM_BAD: u32 = 2;
const TOO_LONG: u32 = 4;
const WAS_CHAINED: u32 = 8;

/// A frame that has come.
pub struct Arrived<'a> {
    received: &'a Received,
    at: usize,
    /// Those of the burst that are lent: a bit for each.
    lent: &'a Cell<u64>,
}

impl Arrived<'_> {
    /// Its bytes; empty if it was longer than any that is received.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self.is_too_long() {
            true => &[],
            // SAFETY: so many bytes of a buffer that is the queue's until its burst is done, and that is lent only if this value
            // is given for it.
            false => unsafe { std::slice::from_raw_parts(self.received.data, self.received.len as usize) },
        }
    }

    /// What the device says about the checksum of its IPv4 header; `None`: nothing.
    #[inline]
    pub fn checksum(&self) -> Option<bool> {
        match self.received.flags & (CHECKSUM_GOOD | CHECKSUM_BAD) {
            0 => None,
            flags => Some(flags == CHECKSUM_GOOD),
        }
    }

    /// Whether it came in several buffers and was put together.
    pub fn was_chained(&self) -> bool {
        self.received.flags & WAS_CHAINED != 0
    }

    /// Whether it was too long to be put together.
    pub fn is_too_long(&self) -> bool {
        self.received.flags & TOO_LONG != 0
    }

    /// Puts the packet behind the Ethernet header, of so many bytes, behind those of `into`, in its buffer. `Err`: the buffer cannot
    /// be lent, because the port has too few or there is too little room around the packet.
    #[inline]
    pub fn lend(self, len: usize, into: &mut Vec<Packet>) -> Result<(), Self> {
        let Received { data, start, room, .. } = *self.received;
        let Some(start) = NonNull::new(start).filter(|_| ETHERNET + len <= self.received.len as usize) else {
            return Err(self);
        };
        let (from, len) = ((data.addr() - start.addr().get() + ETHERNET) as u32, len as u32);
        assert!(u64::from(from) + u64::from(len) <= u64::from(room), "a frame outside its buffer");
        into.reserve(1);
        self.lent.set(self.lent.get() | 1 << self.at);
        // SAFETY: `room` bytes from there, of memory that is never uninitialised, are of one mbuf. Its frame is looked at through this
        // value only, and the queue does not give it back.
        let memory = unsafe { Memory::lent(start, room as usize, *PORTS) };
        let at = into.len();
        // Written where it stays: what `push` would do if it failed has the packet made elsewhere first, and a copy of what has just
        // been written in other pieces waits for as long as for a cache miss, in each packet.
        into.spare_capacity_mut()[0].write(Packet::from_memory(memory, from, len));
        // SAFETY: there was room, and it has been written.
        unsafe { into.set_len(at + 1) };
        Ok(())
    }
}

/// A frame to be sent.
#[repr(C)]
pub struct Frame<'a> {
    packet: *const u8,
    len: u32,
    start: *mut u8,
    header: [u8; ETHERNET],
    /// The packet with the memory at `start`.
    lent: Option<&'a mut Packet>,
    _packet: PhantomData<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// A header and what stands behind it, which is copied.
    pub fn new(header: [u8; ETHERNET], packet: &'a [u8]) -> Frame<'a> {
        let (len, start) = (packet.len() as u32, std::ptr::null_mut());
        Frame { packet: packet.as_ptr(), len, start, header, lent: None, _packet: PhantomData }
    }

    /// A header and the first bytes of a packet. One that is lent by any port is sent as it is, and has no buffer any more when it was
    /// taken; all others are copied.
    ///
    /// # Panics
    /// If it has fewer bytes.
    #[inline]
    pub fn of_packet(header: [u8; ETHERNET], packet: &'a mut Packet, len: usize) -> Frame<'a> {
        let bytes = &packet.bytes()[..len];
        let (first, len) = (bytes.as_ptr(), len as u32);
        let (start, lent) = match packet.memory().is_of(*PORTS) {
            Some(start) => (start.as_ptr(), Some(packet)),
            None => (std::ptr::null_mut(), None),
        };
        Frame { packet: first, len, start, header, lent, _packet: PhantomData }
    }
}

/// What became of a burst of frames that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The first so many were taken.
    pub taken: usize,
    /// There were no buffers for the others. Otherwise the device had no room.
    pub lacks_buffers: bool,
    /// How many that were taken the device has not taken yet: see [`Queue::flush`].
    pub left: usize,
}

#[repr(C)]
struct RawPort {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawQueue {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fb_port_is_possible(name: *const c_char) -> c_int;
    fn fb_port_find(name: *const c_char, arguments: *const c_char) -> c_int;
    fn fb_port_limits(number: u16, limits: *mut Limits) -> c_int;
    fn fb_port_start(
        number: u16,
        queues: u16,
        descriptors: u16,
        mtu: u16,
        buffers: u32,
        room: u16,
        lent: *const Lent,
        error: *mut c_int,
    ) -> *mut RawPort;
    fn fb_port_close(port: *mut RawPort);
    fn fb_port_queue(port: *const RawPort, queue: u16) -> *mut RawQueue;
    fn fb_port_queue_free(queue: *mut RawQueue) -> u32;
    fn fb_port_is_up(port: *const RawPort) -> c_int;
    fn fb_port_counts(port: *const RawPort, counts: *mut Counts);
    fn fb_port_done(queue: *mut RawQueue, lent: u64);
    fn fb_port_give_back(start: *mut u8);
    fn fb_port_away() -> u32;
    fn fb_port_receive(queue: *mut RawQueue, out: *mut Received, n: u32) -> u32;
    fn fb_port_flush(queue: *mut RawQueue) -> u32;
    fn fb_port_send(
        queue: *mut RawQueue,
        frames: *mut c_void,
        n: u32,
        no_buffers: *mut u32,
        left: *mut u32,
    ) -> u32;
}

/// Buffers of ports that are closed which have not come back: of packets on their way, and those that drivers have lost.
pub fn away() -> usize {
    // SAFETY: looks at pools under their lock.
    unsafe { fb_port_away() as usize }
}

/// Whether DPDK, which has been started, has a driver for virtual devices of this name, or a bus with such a place. Nothing is
/// made or touched.
pub fn is_possible(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: a text that ends with a zero.
    unsafe { fb_port_is_possible(name.as_ptr()) != 0 }
}

/// The number of a device, which is made if it is virtual and there is none of its name. DPDK has been started.
///
/// # Errors
/// An error number.
pub fn find(name: &str, arguments: &str) -> Result<u16, i32> {
    const EINVAL: i32 = 22;
    let (name, arguments) = (CString::new(name), CString::new(arguments));
    let (Ok(name), Ok(arguments)) = (name, arguments) else { return Err(EINVAL) };
    let _alone = eal::alone_with_devices();
    // SAFETY: two texts that end with zeros.
    let number = unsafe { fb_port_find(name.as_ptr(), arguments.as_ptr()) };
    u16::try_from(number).map_err(|_| number.wrapping_neg())
}

/// What a device that was found can do.
///
/// # Errors
/// An error number.
pub fn limits(number: u16) -> Result<Limits, i32> {
    let mut limits = Limits::default();
    // SAFETY: DPDK checks the number; the fields are the shim's.
    match unsafe { fb_port_limits(number, &mut limits) } {
        0 => Ok(limits),
        error => Err(error.wrapping_neg()),
    }
}

/// How a device is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Queues in each direction.
    pub queues: u16,
    /// Frames that have room in a queue; a device may have more or fewer.
    pub descriptors: u16,
    /// Largest packet in bytes.
    pub mtu: u16,
    /// Buffers of all queues together.
    pub buffers: u32,
    /// Longest frame that a buffer has room for.
    pub room: u16,
}

/// What the shim has of a device that was started.
struct Started(NonNull<RawPort>);

// SAFETY: DPDK's functions for state and counts may be called from any thread, as may the last one, which stops it.
unsafe impl Send for Started {}

impl Started {
    /// Starts a device that was found, with its queues.
    fn new(number: u16, start: &Start) -> Result<(Started, Vec<Option<Queued>>), i32> {
        const ENOMEM: i32 = 12;
        let Start { queues, descriptors, mtu, buffers, room } = *start;
        let mut error = 0;
        let lent = Lent {
            headroom: Packet::HEADROOM as u32,
            tailroom: Packet::TAILROOM as u32,
            reserve: u32::from(queues) * RESERVE,
        };
        let raw = {
            let _alone = eal::alone_with_devices();
            // SAFETY: DPDK checks the numbers.
            unsafe { fb_port_start(number, queues, descriptors, mtu, buffers, room, &lent, &mut error) }
        };
        let started = NonNull::new(raw).map(Started).ok_or(error.wrapping_neg())?;
        // SAFETY: a device that was started; a number below that of its queues.
        let queue = |number| NonNull::new(unsafe { fb_port_queue(started.0.as_ptr(), number) }).map(Queued);
        let queues: Option<Vec<_>> = (0..queues).map(|number| queue(number).map(Some)).collect();
        Ok((started, queues.ok_or(ENOMEM)?))
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: a device that was started; the fields are the shim's.
        unsafe { fb_port_counts(self.0.as_ptr(), &mut counts) };
        counts
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _alone = eal::alone_with_devices();
        // SAFETY: nobody has one of its queues any more.
        unsafe { fb_port_close(self.0.as_ptr()) };
    }
}

/// What the shim has of a queue. It is dropped before its device.
struct Queued(NonNull<RawQueue>);

// SAFETY: a queue may be used by one thread after the other; what belongs to a thread is DPDK's own.
unsafe impl Send for Queued {}

impl Drop for Queued {
    fn drop(&mut self) {
        // SAFETY: it is not used any more; the port is there still.
        unsafe { fb_port_queue_free(self.0.as_ptr()) };
    }
}

impl Queued {
    /// Ends it; how many frames were left for the device.
    fn end(self) -> u32 {
        let raw = ManuallyDrop::new(self).0;
        // SAFETY: as when it is dropped, which it is not.
        unsafe { fb_port_queue_free(raw.as_ptr()) }
    }
}

/// A device, and what it has lost before it was made again.
struct Device {
    started: Option<Started>,
    lost_before: Counts,
    /// Frames that queues had for it when it was made again.
    unsent: u64,
}

/// A device that was started. It is stopped and removed from DPDK when it and all of its queues are dropped.
pub struct Port {
    // Before the device: queues go first.
    queues: Vec<Mutex<Option<Queued>>>,
    device: Mutex<Device>,
    start: Start,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Port {
    /// Starts a device that was found.
    ///
    /// # Errors
    /// An error number. The device is removed then.
    pub fn start(number: u16, start: &Start) -> Result<Arc<Port>, i32> {
        let (started, queues) = Started::new(number, start)?;
        let device = Device { started: Some(started), lost_before: Counts::default(), unsent: 0 };
        let queues = queues.into_iter().map(Mutex::new).collect();
        Ok(Arc::new(Port { queues, device: Mutex::new(device), start: *start }))
    }

    /// Removes the device and makes it again, by its name and what it is made with: for one whose other end is gone and does not
    /// come back to it. Meanwhile, and after an error until it is called again, queues receive nothing and take nothing, and the
    /// link is down.
    ///
    /// # Errors
    /// An error number.
    pub fn make_again(&self, name: &str, arguments: &str) -> Result<(), i32> {
        let mut device = lock(&self.device);
        if let Some(started) = &device.started {
            let lost = started.counts();
            device.lost_before.missed += lost.missed;
            device.lost_before.no_buffers += lost.no_buffers;
        }
        let old = device.started.take();
        // Whoever wants to see the device does not wait for it.
        drop(device);
        // Waits for a burst that is received or sent.
        let left =
            self.queues.iter().filter_map(|queue| lock(queue).take()).map(|queue| u64::from(queue.end()));
        let left: u64 = left.sum();
        lock(&self.device).unsent += left;
        drop(old);
        let number = find(name, arguments)?;
        let (started, queues) = Started::new(number, &self.start)?;
        lock(&self.device).started = Some(started);
        for (place, queue) in self.queues.iter().zip(queues) {
            *lock(place) = queue;
        }
        Ok(())
    }

    /// One of its queues, below the number that it was started with.
    pub fn queue(self: &Arc<Port>, number: u16) -> Option<Queue> {
        (usize::from(number) < self.queues.len()).then(|| Queue { number: number.into(), port: self.clone() })
    }

    /// Whether its link is up.
    pub fn is_up(&self) -> bool {
        let device = lock(&self.device);
        // SAFETY: a device that was started.
        device.started.as_ref().is_some_and(|started| unsafe { fb_port_is_up(started.0.as_ptr()) != 0 })
    }

    /// Frames that were taken to be sent, and that the device had not taken when it was made again.
    pub fn unsent(&self) -> u64 {
        lock(&self.device).unsent
    }

    /// What it has lost.
    pub fn counts(&self) -> Counts {
        let device = lock(&self.device);
        let now = device.started.as_ref().map(Started::counts).unwrap_or_default();
        Counts {
            missed: device.lost_before.missed + now.missed,
            no_buffers: device.lost_before.no_buffers + now.no_buffers,
        }
    }
}

/// A queue of a port, both directions.
pub struct Queue {
    number: usize,
    port: Arc<Port>,
}

impl Queue {
    /// Its port.
    pub fn port(&self) -> &Arc<Port> {
        &self.port
    }

    /// What the shim has of it, for one burst; `None` while the device is made again.
    fn now(&self) -> Option<MutexGuard<'_, Option<Queued>>> {
        match self.port.queues.get(self.number)?.try_lock() {
            Ok(queue) => Some(queue),
            Err(TryLockError::Poisoned(queue)) => Some(queue.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Receives at most `room` frames, in one burst; how many came. Each is given to `take` where it is.
    pub fn receive(&mut self, room: usize, mut take: impl FnMut(Arrived<'_>)) -> usize {
        /// Gives back the buffers that are not lent, whatever `take` does.
        struct Done<'a>(NonNull<RawQueue>, &'a Cell<u64>);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                // SAFETY: the queue of the borrow below; nobody reads the frames any more but those who were lent them.
                unsafe { fb_port_done(self.0.as_ptr(), self.1.get()) };
            }
        }
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else { return 0 };
        let mut received = [const { MaybeUninit::<Received>::uninit() }; BURST];
        let room = room.min(BURST) as u32;
        // SAFETY: there is room for as many, and the buffers of the last burst have been given back.
        let got = unsafe { fb_port_receive(raw.as_ptr(), received.as_mut_ptr().cast(), room) } as usize;
        let lent = Cell::new(0);
        let _done = Done(*raw, &lent);
        for (at, received) in received[..got].iter().enumerate() {
            // SAFETY: the shim has written so many.
            let received = unsafe { received.assume_init_ref() };
            take(Arrived { received, at, lent: &lent });
        }
        got
    }

    /// Sends frames in order, as many as there is room for. What it took and the device did not take at once goes with the next
    /// ones, or with [`Queue::flush`].
    ///
    /// # Panics
    /// If a frame is longer than a buffer.
    pub fn send(&mut self, frames: &mut [Frame<'_>]) -> Sent {
        let longest = usize::from(self.port.start.room) - ETHERNET;
        assert!(
            frames.iter().all(|frame| frame.len as usize <= longest),
            "a frame of more than {longest} bytes"
        );
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else {
            return Sent { taken: 0, lacks_buffers: false, left: 0 };
        };
        let (mut no_buffers, mut left) = (0, 0);
        let count = frames.len() as u32;
        // SAFETY: as many frames as it is told, none longer than a buffer; their packets outlive the call, and of those with a `start`
        // it is the beginning of the mbuf's memory in which they stand, to which `lent` is the only reference.
        let taken = unsafe {
            fb_port_send(raw.as_ptr(), frames.as_mut_ptr().cast(), count, &mut no_buffers, &mut left) as usize
        };
        for frame in &mut frames[..taken] {
            // The device's now, but for those that the shim has copied.
            if let Some(packet) = frame.lent.as_mut().filter(|_| !frame.start.is_null()) {
                packet.take_memory().into_raw();
            }
        }
        Sent { taken, lacks_buffers: no_buffers != 0, left: left as usize }
    }

    /// Gives the device what it has not taken yet; how many frames it still does not take.
    pub fn flush(&mut self) -> usize {
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else { return 0 };
        // SAFETY: the queue is locked by this thread.
        unsafe { fb_port_flush(raw.as_ptr()) as usize }
    }
}
