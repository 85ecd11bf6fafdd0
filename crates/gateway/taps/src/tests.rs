//! Taps over links of memory: what is kept, what is lost, what files hold.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration as StdDuration;

use forebay_links::capture::{self, blocks};
use forebay_links::{Copy, RxDrops, TxReport};
use forebay_packet::Packet;

use super::*;

/// Gives packets of this length, each with its number, and takes all but the last of a burst.
struct Memory {
    len: usize,
    next: u32,
    fd: OwnedFd,
}

fn memory(len: usize) -> Box<dyn Link + Send> {
    let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
    Box::new(Memory { len, next: 0, fd })
}

impl Link for Memory {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let body = vec![0x5a; self.len - 4];
        for _ in 0..room {
            take(&self.next.to_be_bytes(), &body);
            self.next += 1;
        }
        Ok(room)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { taken: packets.len() - 1, would_block: 1, ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

/// A clock that is a microsecond later each time.
fn unix_time() -> StdDuration {
    static NOW: AtomicU64 = AtomicU64::new(1_795_290_014_000_000);
    StdDuration::from_micros(NOW.fetch_add(1, Ordering::Relaxed))
}

fn settings(directory: PathBuf, snap: u32) -> config::Taps {
    config::Taps { directory, inside: true, outside: false, file_size: 1 << 20, files: 100, snap }
}

fn receive(link: &mut Box<dyn Link + Send>, count: usize) {
    let mut taken = 0;
    link.receive(count, &mut |_, _| taken += 1).unwrap();
    assert_eq!(taken, count);
}

#[test]
fn what_finds_no_room_is_counted_and_passes() {
    let mut taps = Taps::new(unix_time);
    let mut link = taps.tapped(Side::Inside, "memory", memory(60_000));
    let tap = taps.taps[0].clone();
    receive(&mut link, 5);
    assert!(tap.lock().blocks.is_empty(), "copied without a capture");
    tap.snap.store(100_000, Ordering::Relaxed);
    tap.is_on.store(true, Ordering::Relaxed);
    receive(&mut link, 100);
    let fit = ROOM / blocks::packet_len(60_000);
    assert_eq!(tap.lock().blocks.len(), fit * blocks::packet_len(60_000));
    assert_eq!(tap.lost.load(Ordering::Relaxed), 100 - fit as u64);
    // While the writing thread has the slot, packets stand aside, some of them.
    let mut slot = tap.lock();
    slot.blocks.clear();
    receive(&mut link, 3);
    assert!(slot.blocks.is_empty());
    drop(slot);
    receive(&mut link, 1);
    let mut numbers = vec![];
    let slot = tap.lock();
    let mut rest = &slot.blocks[..];
    while let Some(len) = blocks::block_len(rest) {
        numbers.push(u32::from_be_bytes(*rest[28..].first_chunk().unwrap()));
        rest = &rest[len..];
    }
    assert_eq!(numbers, [105, 106, 107, 108]);
}

#[test]
fn files_hold_the_packets_of_all_links_by_their_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut taps = Taps::new(unix_time);
    let mut links = [100, 200].map(|len| taps.tapped(Side::Inside, "memory", memory(len)));
    let mut other = taps.tapped(Side::Outside, "other", memory(300));
    taps.change(Some(&settings(directory.path().join("taps"), 150)));
    for _ in 0..500 {
        links.iter_mut().for_each(|link| receive(link, 10));
        receive(&mut other, 10);
        // The last is to be sent again.
        assert_eq!(links[0].send(&[&[1; 50], &[2; 50]]).would_block, 1);
    }
    let told = taps.told();
    assert_eq!(told.document().state, "on");
    taps.change(None);
    let document = told.document();
    let inside = &document.sides[0];
    assert_eq!((inside.packets, inside.lost, document.sides[1].packets), (10_500, 0, 0));
    assert_eq!((&*document.state, inside.file.as_ref()), ("off", None));
    receive(&mut links[0], 10);

    let mut names: Vec<PathBuf> = std::fs::read_dir(directory.path().join("taps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() as u64 == inside.files && names.len() > 1, "{names:?}");
    let (mut last, mut lens) = (0, std::collections::BTreeMap::new());
    for name in &names {
        assert!(name.metadata().unwrap().len() < (1 << 20) + 1_000);
        let mut reader = capture::Reader::open(name).unwrap();
        while let Some(record) = reader.next_record().unwrap() {
            assert!(record.timestamp_ns > last, "out of order");
            last = record.timestamp_ns;
            assert_eq!(record.data.len(), (record.original_len as usize).min(150));
            *lens.entry(record.original_len).or_insert(0) += 1;
        }
    }
    assert_eq!(lens, [(50, 500), (100, 5_000), (200, 5_000)].into());
}

#[test]
fn what_cannot_be_written_ends_the_captures_until_they_are_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut taps = Taps::new(unix_time);
    let mut link = taps.tapped(Side::Inside, "memory", memory(1_000));
    taps.change(Some(&settings(directory.path().join("not/there"), 150)));
    assert!(taps.have_failed());
    receive(&mut link, 10);
    let told = taps.told();
    assert!(told.document().error.unwrap().contains("not/there"));
    taps.change(Some(&settings(directory.path().to_owned(), 150)));
    assert!(!taps.have_failed() && told.document().state == "on");
    receive(&mut link, 10);
    taps.change(None);
    let document = told.document();
    assert_eq!((document.sides[0].packets, document.failures), (10, 1));
}

/// Takes packets with their memory.
struct Owner(Box<dyn Link + Send>);

impl Link for Owner {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        self.0.receive(room, take)
    }

    fn receive_packets(
        &mut self,
        room: usize,
        into: &mut Vec<Packet>,
        _: &mut Copy<'_>,
    ) -> io::Result<usize> {
        into.extend((0..room).map(|_| filled(70)));
        Ok(room)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn send_packets(&mut self, packets: &mut [&mut Packet]) -> TxReport {
        packets.iter_mut().for_each(|packet| drop(packet.take_memory()));
        TxReport { taken: packets.len(), ..TxReport::default() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops::default()
    }
}

fn filled(len: usize) -> Packet {
    let mut packet = Packet::with_capacity(100);
    assert!(packet.fill(&[7; 100][..len]));
    packet
}

#[test]
fn what_passes_in_a_links_own_buffers_is_captured_and_copied_only_then() {
    let directory = tempfile::tempdir().unwrap();
    let mut taps = Taps::new(unix_time);
    let mut link = taps.tapped(Side::Inside, "owner", Box::new(Owner(memory(100))));
    let mut pass = |count: usize| {
        let mut packets = vec![];
        link.receive_packets(count, &mut packets, &mut |_, _| panic!("the link has buffers")).unwrap();
        assert_eq!(packets.len(), count);
        let mut sent: Vec<&mut Packet> = packets.iter_mut().collect();
        assert_eq!(link.send_packets(&mut sent).taken, count);
        packets.iter().filter(|packet| packet.has_buffer()).count()
    };
    assert_eq!(pass(5), 0, "the link takes the buffers");
    taps.change(Some(&settings(directory.path().to_owned(), 150)));
    assert_eq!(pass(3), 3, "what is read is copied");
    let told = taps.told();
    taps.change(None);
    assert_eq!(told.document().sides[0].packets, 6);
}
