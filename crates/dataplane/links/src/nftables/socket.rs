//! The socket by which tables are made.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use forebay_netlink::{DONE, ERROR, HEADER, find};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with, sockopt,
};

use super::encode::{self, Messages};
use super::table::Table;

/// Dumps come in datagrams of at most 32 KiB.
const DATAGRAM: usize = 64 << 10;
/// The longest transaction, in bytes: some hundred thousand ranges.
const LONGEST: usize = 64 << 20;

/// nftables of the network namespace that the thread was in when this was opened.
#[derive(Debug)]
pub struct Nftables {
    socket: OwnedFd,
    sequence: u32,
}

/// The contents of a table, as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets by counter.
    pub packets: BTreeMap<String, u64>,
    /// How many rules there are.
    pub rules: usize,
}

impl Nftables {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the kernel has no netfilter.
    pub fn open() -> io::Result<Nftables> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?;
        // What we get is no reason to fail: a transaction that is too long does.
        let _ = sockopt::set_socket_send_buffer_size_force(&socket, LONGEST);
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, 4 << 20);
        Ok(Nftables { socket, sequence: 0 })
    }

    /// Puts a table in the place of what has its name, in one transaction.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, without nf_tables in the kernel, or if the kernel refuses it; nothing has changed then.
    pub fn replace(&mut self, table: &Table) -> io::Result<()> {
        self.transact(|batch| batch.replace(table))
    }

    /// Makes a table that differs in nothing but what is in sets from the one that is there, in one transaction: `before`
    /// is that one.
    ///
    /// # Errors
    /// As [`Nftables::replace`], and if it is not what is there.
    pub fn change(&mut self, before: &Table, table: &Table) -> io::Result<()> {
        self.transact(|batch| {
            for (old, new) in before.sets.iter().zip(&table.sets) {
                batch.take(&table.name, old, &without(&old.ranges, &new.ranges));
                batch.add(&table.name, new, &without(&new.ranges, &old.ranges));
            }
        })
    }

    /// Deletes a table; that there is none is no error.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or without nf_tables in the kernel.
    pub fn delete(&mut self, name: &str) -> io::Result<()> {
        self.transact(|batch| batch.delete(name))
    }

    /// The contents of the table of this name; empty if there is none.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`.
    pub fn counted(&mut self, name: &str) -> io::Result<Counted> {
        let mut counted = Counted::default();
        self.dump(encode::GET_COUNTER, name, |kind, body| {
            if kind == encode::NEW_OBJECT
                && let Some((counter, packets)) = counter(body)
            {
                counted.packets.insert(counter, packets);
            }
        })?;
        if !counted.packets.is_empty() {
            self.dump(encode::GET_RULE, name, |kind, _| {
                counted.rules += usize::from(kind == encode::NEW_RULE);
            })?;
        }
        Ok(counted)
    }

    fn transact(&mut self, write: impl FnOnce(&mut Messages)) -> io::Result<()> {
        let mut batch = Messages::batch(self.sequence);
        write(&mut batch);
        if batch.is_empty() {
            return Ok(());
        }
        let (bytes, last) = batch.end();
        self.sequence = last.wrapping_add(1);
        self.send(&bytes)?;
        // The kernel has done everything when the call returns: its answers are there. Where all is well one is.
        let mut refused = None;
        self.receive(RecvFlags::DONTWAIT, |kind, sequence, body| {
            if let (ERROR, Some(code)) = (kind, body.first_chunk()) {
                match i32::from_ne_bytes(*code) {
                    0 => return sequence == last,
                    code => drop(refused.get_or_insert(code.wrapping_neg())),
                }
            }
            false
        })?;
        refused.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
    }

    fn dump(&mut self, kind: u16, table: &str, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
        let (bytes, asked) = Messages::dump(self.sequence, kind, table).question();
        self.sequence = asked;
        self.send(&bytes)?;
        let mut refused = None;
        self.receive(RecvFlags::empty(), |kind, sequence, body| match kind {
            _ if sequence != asked => false,
            DONE => true,
            ERROR => {
                refused = body.first_chunk().map(|code| i32::from_ne_bytes(*code).wrapping_neg());
                true
            }
            _ => {
                body.get(4..).into_iter().for_each(|body| each(kind, body));
                false
            }
        })?;
        match refused {
            // No such table.
            None | Some(0 | 2) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        sendto(&self.socket, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Gives type, sequence number and body of messages to `take` until that says that it has all, or there are no more.
    fn receive(&self, flags: RecvFlags, mut take: impl FnMut(u16, u32, &[u8]) -> bool) -> io::Result<()> {
        let mut room = vec![0; DATAGRAM];
        loop {
            let len = match recv(&self.socket, &mut room[..], flags) {
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut rest = &room[..len.min(DATAGRAM)];
            while let Some(header) = rest.first_chunk::<{ HEADER }>() {
                let word = |at: usize| {
                    u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
                };
                let len = word(0) as usize;
                // An error quotes the message that it is about, of which there may not be room for all.
                let Some(body) = rest.get(HEADER..len.min(rest.len())) else { break };
                if take(u16::from_ne_bytes([header[4], header[5]]), word(8), body) {
                    return Ok(());
                }
                rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Name and packets of a counter.
fn counter(body: &[u8]) -> Option<(String, u64)> {
    const PACKETS: u16 = 2;
    let name = find(body, encode::NAME)?;
    let name = std::str::from_utf8(name.strip_suffix(&[0]).unwrap_or(name)).ok()?;
    let packets = find(find(body, 4)?, PACKETS)?;
    Some((name.to_owned(), u64::from_be_bytes(*packets.first_chunk()?)))
}

/// The ranges, in order, that are not among the others.
fn without(ranges: &[(IpAddr, IpAddr)], others: &[(IpAddr, IpAddr)]) -> Vec<(IpAddr, IpAddr)> {
    ranges.iter().filter(|range| others.binary_search(range).is_err()).copied().collect()
}
