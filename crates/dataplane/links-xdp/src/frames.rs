//! The buffers for frames and the four rings by which they go to the kernel and return.
//!
//! A buffer is in one place at a time: in the fill ring or at the kernel, to be filled; received, until it is
//! released; free; or in the transmit ring, at the kernel or in the completion ring, to be sent.

use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use crate::area::Memory;
use crate::ring::{Consumer, Producer};

/// Bytes of a frame's place: what all kernels and drivers take, of which the kernel keeps 256.
pub(crate) const FRAME: usize = 4096;

/// Frames and rings, all in memory of the kind `M`.
pub(crate) struct Frames<M> {
    pub(crate) receive: Consumer<XdpDesc, M>,
    pub(crate) fill: Producer<u64, M>,
    pub(crate) transmit: Producer<XdpDesc, M>,
    pub(crate) completion: Consumer<u64, M>,
    /// Places for frames to be sent that neither side uses.
    free: Vec<u64>,
    /// Places given back for which the fill ring had no room yet.
    returned: Vec<u64>,
    memory: M,
}

/// A frame that has come: the right to read its place until it is given back, so there is one value of it and no copy.
#[must_use = "its place is lost unless it is given back"]
pub(crate) struct Arrived(XdpDesc);

impl<M: Memory> Frames<M> {
    /// Memory for `2 * frames` places: the first half are put into the fill ring, the others are free.
    ///
    /// # Panics
    /// If the memory has another size.
    pub(crate) fn new(
        (receive, fill): (Consumer<XdpDesc, M>, Producer<u64, M>),
        (transmit, completion): (Producer<XdpDesc, M>, Consumer<u64, M>),
        memory: M,
        frames: u32,
    ) -> Frames<M> {
        assert_eq!(memory.len(), 2 * frames as usize * FRAME);
        let place = |i: u32| u64::from(i) * FRAME as u64;
        let free = (frames..2 * frames).map(place).collect();
        let returned = Vec::with_capacity(frames as usize);
        let mut frames_and_rings = Frames { receive, fill, transmit, completion, free, returned, memory };
        for i in 0..frames {
            frames_and_rings.fill.put(place(i));
        }
        frames_and_rings.fill.publish();
        frames_and_rings
    }

    /// The next frame that has come.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Arrived> {
        self.receive.take().map(Arrived)
    }

    /// The bytes of a frame that has come; none if the kernel names a place that is not in the memory.
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, frame: &'a Arrived) -> &'a [u8] {
        let (at, len) = (frame.0.addr as usize, frame.0.len as usize);
        if at >= self.memory.len() || len > self.memory.len() - at {
            return &[];
        }
        let start = self.memory.at(at, len);
        // SAFETY: the bytes are inside the memory, which lives as long as `self`, and zeroed at first. The kernel does
        // not write them before `give_back`, which takes the only value that this borrows.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }

    /// Gives a frame's place back to be filled; the kernel sees it after `publish_given`.
    #[inline]
    pub(crate) fn give_back(&mut self, frame: Arrived) {
        let Arrived(XdpDesc { addr, .. }) = frame;
        // In its place, wherever the frame started. There are as many places as the ring is long, but it may look full
        // all the same: the kernel shows a frame in the receive ring before it releases the frame's entry of the fill
        // ring (xsk_flush in Linux's net/xdp/xsk.c).
        let place = addr & !(FRAME as u64 - 1);
        if !self.fill.put(place) && self.returned.len() < self.returned.capacity() {
            self.returned.push(place);
        }
    }

    /// Tells the kernel what has been taken and given back.
    #[inline]
    pub(crate) fn publish_given(&mut self) {
        while let Some(&place) = self.returned.last()
            && self.fill.put(place)
        {
            self.returned.pop();
        }
        self.receive.release();
        self.fill.publish();
    }

    /// Puts a frame of two parts, at most [`FRAME`] bytes, to be sent; false if there is no room now. The kernel sees it
    /// when `transmit` is published.
    #[inline]
    pub(crate) fn put(&mut self, head: &[u8], body: &[u8]) -> bool {
        let len = head.len() + body.len();
        assert!(len <= FRAME);
        if self.free.is_empty() {
            self.collect();
        }
        let Some(at) = self.free.pop() else { return false };
        let start = self.memory.at(at as usize, len);
        // SAFETY: the place is inside the memory; it is in no ring, so the kernel neither reads nor writes it, and
        // the parts are not in it, for nothing borrows places that are free.
        unsafe {
            let start = start.as_ptr();
            start.copy_from_nonoverlapping(head.as_ptr(), head.len());
            start.add(head.len()).copy_from_nonoverlapping(body.as_ptr(), body.len());
        }
        let is_put =
            self.transmit.put(XdpDesc { addr: at, len: len as u32, options: XdpDescOptions::empty() });
        if !is_put {
            self.free.push(at);
        }
        is_put
    }

    /// Gets the places of frames that have been sent.
    pub(crate) fn collect(&mut self) {
        while let Some(at) = self.completion.take() {
            let at = at & !(FRAME as u64 - 1);
            if (at as usize) < self.memory.len() && self.free.len() < self.free.capacity() {
                self.free.push(at);
            }
        }
        self.completion.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Heap;
    use rustix::net::xdp::XdpRingOffset;
    use std::sync::Arc;
    use std::thread;

    const FRAMES: u32 = 4;
    /// Few under Miri, which takes a thousand times as long.
    const PACKETS: u32 = if cfg!(miri) { 60 } else { 20_000 };

    fn offsets() -> XdpRingOffset {
        XdpRingOffset { producer: 0, consumer: 64, flags: Some(128), desc: 192 }
    }

    /// The kernel's ends of the rings.
    struct Kernel {
        receive: Producer<XdpDesc, Arc<Heap>>,
        fill: Consumer<u64, Arc<Heap>>,
        transmit: Consumer<XdpDesc, Arc<Heap>>,
        completion: Producer<u64, Arc<Heap>>,
        memory: Arc<Heap>,
    }

    fn pair() -> (Frames<Arc<Heap>>, Kernel) {
        let ring = || Heap::new(192 + FRAMES as usize * size_of::<XdpDesc>());
        let (receive, fill, transmit, completion) = (ring(), ring(), ring(), ring());
        let memory = Heap::new(2 * FRAMES as usize * FRAME);
        let kernel = Kernel {
            receive: Producer::new(receive.clone(), &offsets(), FRAMES),
            fill: Consumer::new(fill.clone(), &offsets(), FRAMES),
            transmit: Consumer::new(transmit.clone(), &offsets(), FRAMES),
            completion: Producer::new(completion.clone(), &offsets(), FRAMES),
            memory: memory.clone(),
        };
        let ours = Frames::new(
            (Consumer::new(receive, &offsets(), FRAMES), Producer::new(fill, &offsets(), FRAMES)),
            (Producer::new(transmit, &offsets(), FRAMES), Consumer::new(completion, &offsets(), FRAMES)),
            memory,
            FRAMES,
        );
        (ours, kernel)
    }

    impl Kernel {
        /// Writes a frame into a place that was given, some bytes behind its begin; false if there is none.
        fn deliver(&mut self, bytes: &[u8]) -> bool {
            let Some(at) = self.fill.take() else { return false };
            let start = self.memory.at(at as usize + 16, bytes.len());
            // SAFETY: the place is the kernel's while it is out of the fill ring and not in the receive ring.
            unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            let desc = XdpDesc { addr: at + 16, len: bytes.len() as u32, options: XdpDescOptions::empty() };
            assert!(self.receive.put(desc));
            self.fill.release();
            self.receive.publish();
            true
        }

        /// Reads a frame that is to be sent and completes it.
        fn transmit(&mut self) -> Option<Vec<u8>> {
            let desc = self.transmit.take()?;
            let start = self.memory.at(desc.addr as usize, desc.len as usize);
            // SAFETY: the place is the kernel's from the transmit ring on until it is in the completion ring.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), desc.len as usize) }.to_vec();
            assert!(self.completion.put(desc.addr));
            self.transmit.release();
            self.completion.publish();
            Some(bytes)
        }
    }

    /// Each frame comes back as it came, in order, through four places that both threads use again and again.
    #[test]
    fn frames_cross_between_two_threads_unchanged_and_in_order() {
        let (mut ours, mut kernel) = pair();
        let frame = |n: u32| [n.to_be_bytes(), (!n).to_be_bytes()].concat();
        let thread = thread::spawn(move || {
            let (mut delivered, mut sent) = (0, 0);
            while sent < PACKETS {
                let mut any = false;
                if delivered < PACKETS && kernel.deliver(&frame(delivered)) {
                    delivered += 1;
                    any = true;
                }
                if let Some(bytes) = kernel.transmit() {
                    assert_eq!(bytes, frame(sent));
                    sent += 1;
                    any = true;
                }
                if !any {
                    thread::yield_now();
                }
            }
        });
        let mut echoed = 0;
        while echoed < PACKETS {
            let Some(arrived) = ours.take() else {
                thread::yield_now();
                continue;
            };
            let bytes = ours.bytes(&arrived).to_vec();
            while !ours.put(&bytes[..4], &bytes[4..]) {
                thread::yield_now();
            }
            ours.give_back(arrived);
            ours.publish_given();
            ours.transmit.publish();
            echoed += 1;
        }
        thread.join().unwrap();
        assert_eq!(ours.transmit.waiting(), 0);
    }

    /// As Linux does: the frames are in the receive ring before their entries of the fill ring are released.
    #[test]
    fn no_place_is_lost_when_the_kernel_releases_the_fill_ring_late() {
        let (mut ours, mut kernel) = pair();
        for round in 0..3 {
            for n in 0..FRAMES {
                let at = kernel.fill.take().expect("each place has come back");
                let desc = XdpDesc { addr: at, len: n, options: XdpDescOptions::empty() };
                assert!(kernel.receive.put(desc));
            }
            kernel.receive.publish();
            for _ in 0..FRAMES {
                let arrived = ours.take().expect("all have come");
                ours.give_back(arrived);
            }
            ours.publish_given();
            assert!(
                kernel.fill.take().is_none(),
                "round {round}: the ring is as full as the kernel has left it"
            );
            kernel.fill.release();
            ours.publish_given();
        }
    }

    #[test]
    fn places_that_are_not_in_the_memory_are_never_read_or_used() {
        let (mut ours, mut kernel) = pair();
        for (addr, len) in [(u64::MAX, 8), (2 * u64::from(FRAMES) * FRAME as u64, 1), (0, u32::MAX)] {
            assert!(kernel.receive.put(XdpDesc { addr, len, options: XdpDescOptions::empty() }));
            assert!(kernel.fill.take().is_some());
            kernel.fill.release();
            kernel.receive.publish();
            let arrived = ours.take().unwrap();
            assert!(ours.bytes(&arrived).is_empty());
            ours.give_back(arrived);
            ours.publish_given();
        }
        for _ in 0..FRAMES {
            assert!(ours.put(&[1; 14], &[2; 50]));
        }
        assert!(!ours.put(&[1; 14], &[2; 50]), "no place is free");
        assert!(kernel.completion.put(u64::MAX));
        kernel.completion.publish();
        assert!(!ours.put(&[1; 14], &[2; 50]), "no place has come back");
    }
}
