//! Network devices of DPDK (ethdev): ports with queues, of which each is used by one thread at a time.

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Most frames of a burst.
pub const BURST: usize = 64;
/// Length of an Ethernet header without tags.
pub const ETHERNET: usize = 14;

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
}

const CHECKSUM_GOOD: u32 = 1;
const CHECKSUM_BAD: u32 = 2;
const TOO_LONG: u32 = 4;
const WAS_CHAINED: u32 = 8;

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Its bytes; empty if it was longer than any that is received.
    pub bytes: &'a [u8],
    /// What the device says about the checksum of its IPv4 header; `None`: nothing.
    pub checksum: Option<bool>,
    /// Whether it came in several buffers and was put together.
    pub was_chained: bool,
    /// Whether it was too long to be put together.
    pub is_too_long: bool,
}

/// A frame to be sent.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    packet: *const u8,
    len: u32,
    header: [u8; ETHERNET],
    _packet: PhantomData<&'a [u8]>,
}

impl<'a> Frame<'a> {
    /// A header and what stands behind it.
    pub fn new(header: [u8; ETHERNET], packet: &'a [u8]) -> Frame<'a> {
        Frame { packet: packet.as_ptr(), len: packet.len() as u32, header, _packet: PhantomData }
    }
}

/// What became of a burst of frames that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The first so many were taken.
    pub taken: usize,
    /// There were no buffers for the others. Otherwise the device had no room.
    pub lacks_buffers: bool,
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
        error: *mut c_int,
    ) -> *mut RawPort;
    fn fb_port_discard(number: u16);
    fn fb_port_close(port: *mut RawPort);
    fn fb_port_queue(port: *const RawPort, queue: u16) -> *mut RawQueue;
    fn fb_port_queue_free(queue: *mut RawQueue);
    fn fb_port_is_up(port: *const RawPort) -> c_int;
    fn fb_port_counts(port: *const RawPort, counts: *mut Counts);
    fn fb_port_done(queue: *mut RawQueue);
    fn fb_port_receive(queue: *mut RawQueue, out: *mut Received, n: u32) -> u32;
    fn fb_port_flush(queue: *mut RawQueue) -> u32;
    fn fb_port_send(queue: *mut RawQueue, frames: *const Frame<'_>, n: u32, no_buffers: *mut u32) -> u32;
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

/// Removes a device that was found and is not to be started.
pub fn discard(number: u16) {
    // SAFETY: DPDK checks the number.
    unsafe { fb_port_discard(number) };
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
        // SAFETY: DPDK checks the numbers.
        let raw = unsafe { fb_port_start(number, queues, descriptors, mtu, buffers, room, &mut error) };
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

/// A device, and what it has lost before it was made again.
struct Device {
    started: Option<Started>,
    lost_before: Counts,
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
        let device = Device { started: Some(started), lost_before: Counts::default() };
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
        self.queues.iter().for_each(|queue| drop(lock(queue).take()));
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
        /// Gives the buffers back, whatever `take` does.
        struct Done(NonNull<RawQueue>);
        impl Drop for Done {
            fn drop(&mut self) {
                // SAFETY: the queue of the borrow below; nobody reads the frames any more.
                unsafe { fb_port_done(self.0.as_ptr()) };
            }
        }
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else { return 0 };
        let mut received = [Received { data: std::ptr::null(), len: 0, flags: 0 }; BURST];
        let room = room.min(BURST) as u32;
        // SAFETY: there is room for as many, and the buffers of the last burst have been given back.
        let got = unsafe { fb_port_receive(raw.as_ptr(), received.as_mut_ptr(), room) } as usize;
        let _done = Done(*raw);
        for frame in received.iter().take(got) {
            let is_too_long = frame.flags & TOO_LONG != 0;
            let bytes = match is_too_long {
                true => &[],
                // SAFETY: so many bytes of a buffer that is this queue's until `_done` is dropped.
                false => unsafe { std::slice::from_raw_parts(frame.data, frame.len as usize) },
            };
            let checksum = match frame.flags & (CHECKSUM_GOOD | CHECKSUM_BAD) {
                0 => None,
                flags => Some(flags == CHECKSUM_GOOD),
            };
            take(Arrived { bytes, checksum, was_chained: frame.flags & WAS_CHAINED != 0, is_too_long });
        }
        got
    }

    /// Sends frames in order, as many as there is room for. What it took and the device did not take at once goes with the next
    /// ones, or with [`Queue::flush`].
    ///
    /// # Panics
    /// If a frame is longer than a buffer.
    pub fn send(&mut self, frames: &[Frame<'_>]) -> Sent {
        let longest = usize::from(self.port.start.room) - ETHERNET;
        assert!(
            frames.iter().all(|frame| frame.len as usize <= longest),
            "a frame of more than {longest} bytes"
        );
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else {
            return Sent { taken: 0, lacks_buffers: false };
        };
        let mut no_buffers = 0;
        // SAFETY: as many frames as it is told, none longer than a buffer; their packets outlive the call.
        let taken =
            unsafe { fb_port_send(raw.as_ptr(), frames.as_ptr(), frames.len() as u32, &mut no_buffers) };
        Sent { taken: taken as usize, lacks_buffers: no_buffers != 0 }
    }

    /// Gives the device what it has not taken yet; how many frames it still does not take.
    pub fn flush(&mut self) -> usize {
        let guard = self.now();
        let Some(Queued(raw)) = guard.as_deref().and_then(Option::as_ref) else { return 0 };
        // SAFETY: the queue is locked by this thread.
        unsafe { fb_port_flush(raw.as_ptr()) as usize }
    }
}
