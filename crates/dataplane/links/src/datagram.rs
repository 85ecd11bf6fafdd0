//! A link to the program that runs the gateway: each datagram of a Unix socket is a whole IP packet.
//!
//! `UnixDatagram::pair` makes two sockets. One becomes the link, and the program reads and writes the other. Neither
//! requires a privilege or an interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

use crate::link::{Link, RxDrops, TxReport};

/// Room for the longest IP packet, and one byte by which a longer datagram shows.
const ROOM: usize = 65_536;

/// A link over one end of a pair of Unix datagram sockets.
#[derive(Debug)]
pub struct DatagramLink {
    socket: UnixDatagram,
    buffer: Box<[u8]>,
    truncated: u64,
}

impl DatagramLink {
    /// The link over `socket`, which is connected and does not wait from now on.
    ///
    /// # Errors
    /// If the socket cannot be made non-blocking.
    pub fn new(socket: UnixDatagram) -> io::Result<DatagramLink> {
        socket.set_nonblocking(true)?;
        Ok(DatagramLink { socket, buffer: vec![0; ROOM].into_boxed_slice(), truncated: 0 })
    }
}

impl Link for DatagramLink {
    fn receive(&mut self, room: usize, take: &mut dyn FnMut(&[u8], &[u8])) -> io::Result<usize> {
        let mut given = 0;
        while given < room {
            match self.socket.recv(&mut self.buffer) {
                Ok(ROOM) => self.truncated += 1,
                Ok(length) => {
                    take(&self.buffer[..length], &[]);
                    given += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(given)
    }

    fn send(&mut self, packets: &[&[u8]]) -> TxReport {
        let mut report = TxReport::default();
        let mut at = 0;
        while let Some(packet) = packets.get(at) {
            match self.socket.send(packet) {
                Ok(_) => report.taken += 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    report.would_block = packets.len() - at;
                    break;
                }
                Err(error) => report.refuse(&error, 1),
            }
            at += 1;
        }
        report
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn pending(&self) -> bool {
        false
    }

    fn rx_drops(&self) -> RxDrops {
        RxDrops { truncated: self.truncated, ..RxDrops::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(link: &mut DatagramLink, room: usize) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        let given = link.receive(room, &mut |head, body| packets.push([head, body].concat())).unwrap();
        assert_eq!(given, packets.len());
        packets
    }

    #[test]
    fn datagrams_are_packets_in_both_directions_and_order() {
        let (one, program) = UnixDatagram::pair().unwrap();
        let mut link = DatagramLink::new(one).unwrap();
        assert!(received(&mut link, 8).is_empty(), "nothing has come, and nothing waits");
        for number in 0..3 {
            program.send(&[number; 40]).unwrap();
        }
        assert_eq!(received(&mut link, 2), [[0; 40], [1; 40]]);
        assert_eq!(received(&mut link, 2), [[2; 40]]);
        let sent = link.send(&[&[7; 1400], &[8; 20]]);
        assert_eq!(sent, TxReport { taken: 2, ..TxReport::default() });
        let mut buffer = [0; 2000];
        assert_eq!((program.recv(&mut buffer).unwrap(), buffer[0]), (1400, 7));
        assert_eq!((program.recv(&mut buffer).unwrap(), buffer[0]), (20, 8));
    }

    #[test]
    fn a_program_that_does_not_read_makes_the_link_wait_and_one_that_ended_is_counted() {
        let (one, program) = UnixDatagram::pair().unwrap();
        let mut link = DatagramLink::new(one).unwrap();
        let packets = vec![&[0; 1000][..]; 4096];
        let sent = link.send(&packets);
        assert!(sent.taken > 0 && sent.would_block > 0 && sent.taken + sent.would_block == 4096, "{sent:?}");
        let mut buffer = [0; 1000];
        program.recv(&mut buffer).unwrap();
        assert_eq!(link.send(&packets[..1]).taken, 1, "there is room again");
        drop(program);
        let sent = link.send(&packets[..2]);
        assert_eq!((sent.taken, sent.would_block, sent.dropped()), (0, 0, 2), "{sent:?}");
    }

    #[test]
    fn a_datagram_longer_than_any_packet_is_counted_and_left_out() {
        let (one, program) = UnixDatagram::pair().unwrap();
        let mut link = DatagramLink::new(one).unwrap();
        program.send(&vec![0; ROOM + 1]).unwrap();
        program.send(&[5; 20]).unwrap();
        assert_eq!(received(&mut link, 8), [[5; 20]]);
        assert_eq!(link.rx_drops().truncated, 1);
    }
}
