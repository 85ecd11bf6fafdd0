//! The socket by which tables are made.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use forebay_netlink::{Attributes, DONE, ERROR, HEADER, find};
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
/// How often something is tried again that another program's transaction came into.
const TRIES: u32 = 8;
/// `ERESTART`: another transaction has come before this one.
const RESTART: i32 = 85;

/// nftables of the network namespace that the thread was in when this was opened.
#[derive(Debug)]
pub struct Nftables {
    socket: OwnedFd,
    sequence: u32,
    /// The content of a table that was read last, and the generation of all rules in which it was.
    seen: Option<(u32, String, Option<Content>)>,
}

/// What of a table decides about packets.
#[derive(Clone, Copy, Debug)]
struct Content {
    hash: u64,
    /// How many tables, chains, sets and rules.
    objects: [usize; 4],
}

/// The contents of a table, as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets by counter.
    pub packets: BTreeMap<String, u64>,
    /// A hash of the table's flags, chains, rules, sets and their elements, in the order in which they are asked; `None`
    /// if there is no table.
    pub content: Option<u64>,
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
        Ok(Nftables { socket, sequence: 0, seen: None })
    }

    /// Puts a table in the place of what has its name, in one transaction; the [content](Counted::content) that it has then.
    /// Where chains and sets are there already, as those of an earlier start, they get other rules and elements, and counters go
    /// on.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, without nf_tables in the kernel, or if the kernel refuses it; nothing has changed then.
    pub fn replace(&mut self, table: &Table) -> io::Result<u64> {
        // A chain has its old rules or its new ones for each packet. Of two chains at one hook, the old one and a new one, a packet
        // may meet the one before its rules are in force and the other after.
        if let Ok(content) = self.settle(&table.name, |batch| batch.renew(table))
            && content.objects == [1, table.chains.len(), table.sets.len(), table.rules()]
        {
            return Ok(content.hash);
        }
        self.settle(&table.name, |batch| batch.replace(table)).map(|content| content.hash)
    }

    /// Makes a table that differs in nothing but what is in sets from the one that is there, in one transaction: `before`
    /// is that one. The content that it has then.
    ///
    /// # Errors
    /// As [`Nftables::replace`], and if it is not what is there.
    pub fn change(&mut self, before: &Table, table: &Table) -> io::Result<u64> {
        self.settle(&table.name, |batch| {
            for (old, new) in before.sets.iter().zip(&table.sets) {
                batch.take(&table.name, old, &without(&old.ranges, &new.ranges));
                batch.add(&table.name, new, &without(&new.ranges, &old.ranges));
            }
        })
        .map(|content| content.hash)
    }

    /// Deletes a table; that there is none is no error.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or without nf_tables in the kernel.
    pub fn delete(&mut self, name: &str) -> io::Result<()> {
        self.transact(None, |batch| batch.delete(name))
    }

    /// The contents of the table of this name; empty if there is none. As long as nobody changes any table, this reads the
    /// counters only.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, and if other programs change tables all the time.
    pub fn counted(&mut self, name: &str) -> io::Result<Counted> {
        let content = self.content(name)?.map(|content| content.hash);
        let mut counted = Counted { packets: BTreeMap::new(), content };
        if counted.content.is_some() {
            self.dump(encode::GET_COUNTER, name, None, |kind, body| {
                if kind == encode::NEW_OBJECT
                    && let Some((counter, packets)) = counter(body)
                {
                    counted.packets.insert(counter, packets);
                }
            })?;
        }
        Ok(counted)
    }

    fn content(&mut self, name: &str) -> io::Result<Option<Content>> {
        for _ in 0..TRIES {
            let generation = self.generation()?;
            if let Some((of, table, content)) = &self.seen
                && (*of, table.as_str()) == (generation, name)
            {
                return Ok(*content);
            }
            let content = self.read(name)?;
            if self.generation()? == generation {
                self.seen = Some((generation, name.to_owned(), content));
                return Ok(content);
            }
        }
        Err(restless())
    }

    /// Makes a transaction and reads what the table has then, with no other transaction between: what another program
    /// has put there must not be taken for the content that was wanted.
    fn settle(&mut self, name: &str, write: impl Fn(&mut Messages)) -> io::Result<Content> {
        for _ in 0..TRIES {
            let before = self.generation()?;
            match self.transact(Some(before), &write) {
                Err(error) if error.raw_os_error() == Some(RESTART) => continue,
                done => done?,
            }
            let content = self.read(name)?;
            let generation = self.generation()?;
            // Zero is none. A transaction that does nothing leaves it as it was.
            if [before, before.checked_add(1).unwrap_or(1)].contains(&generation)
                && let Some(content) = content
            {
                self.seen = Some((generation, name.to_owned(), Some(content)));
                return Ok(content);
            }
        }
        Err(restless())
    }

    /// The number of transactions that the kernel has made, of whatever tables.
    fn generation(&mut self) -> io::Result<u32> {
        let (bytes, asked) = Messages::generation(self.sequence).question();
        let mut generation = None;
        self.ask(&bytes, asked, |kind, body| {
            if kind == encode::NEW_GENERATION {
                generation = find(body, 1).and_then(|number| number.first_chunk()).copied();
            }
            true
        })?;
        generation.map(u32::from_be_bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// All of a table that decides about packets; `None` if there is no such table.
    fn read(&mut self, name: &str) -> io::Result<Option<Content>> {
        let mut hasher = DefaultHasher::new();
        let (mut objects, mut sets) = ([0; 4], vec![]);
        for ((ask, told, attributes), count) in encode::CONTENT.into_iter().zip(&mut objects) {
            self.dump(ask, name, None, |kind, body| {
                if kind != told || find(body, encode::TABLE).map(text) != Some(name.as_bytes()) {
                    return;
                }
                *count += 1;
                for &attribute in attributes {
                    (told, attribute, find(body, attribute)).hash(&mut hasher);
                }
                if told == encode::NEW_SET {
                    sets.extend(find(body, encode::NAME).map(|set| text(set).to_owned()));
                }
            })?;
        }
        for set in sets {
            // The kernel keeps them in whatever order it likes.
            let mut elements = vec![];
            let set = String::from_utf8_lossy(&set).into_owned();
            self.dump(encode::GET_ELEMENTS, name, Some(&set), |_, body| {
                for (_, element) in
                    Attributes::behind(find(body, 3).unwrap_or_default(), 0).map_while(Result::ok)
                {
                    let mut one = DefaultHasher::new();
                    element.hash(&mut one);
                    elements.push(one.finish());
                }
            })?;
            elements.sort_unstable();
            (set, elements).hash(&mut hasher);
        }
        Ok((objects[0] > 0).then(|| Content { hash: hasher.finish(), objects }))
    }

    /// Makes a transaction; with a generation only if no other has been made since that one.
    fn transact(&mut self, generation: Option<u32>, write: impl FnOnce(&mut Messages)) -> io::Result<()> {
        let mut batch = Messages::batch(self.sequence, generation);
        let empty = batch.len();
        write(&mut batch);
        if batch.len() == empty {
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

    /// Gives all objects of a kind to `each`, those of one table as far as the kernel knows how to choose.
    fn dump(
        &mut self,
        kind: u16,
        table: &str,
        set: Option<&str>,
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        let (bytes, asked) = Messages::dump(self.sequence, kind, table, set).question();
        self.ask(&bytes, asked, |kind, body| {
            each(kind, body);
            false
        })
    }

    /// Sends a question and gives the answers to `each`, until that or the kernel says that there are no more.
    fn ask(&mut self, bytes: &[u8], asked: u32, mut each: impl FnMut(u16, &[u8]) -> bool) -> io::Result<()> {
        self.sequence = asked;
        self.send(bytes)?;
        let mut refused = None;
        self.receive(RecvFlags::empty(), |kind, sequence, body| match kind {
            _ if sequence != asked => false,
            DONE => true,
            ERROR => {
                refused = body.first_chunk().map(|code| i32::from_ne_bytes(*code).wrapping_neg());
                true
            }
            _ => body.get(4..).is_some_and(|body| each(kind, body)),
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

/// Other programs' transactions came into every attempt.
fn restless() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "other programs change nftables rules all the time")
}

/// A text without the zero behind it.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(&[0]).unwrap_or(bytes)
}

/// Name and packets of a counter.
fn counter(body: &[u8]) -> Option<(String, u64)> {
    const PACKETS: u16 = 2;
    let name = std::str::from_utf8(text(find(body, encode::NAME)?)).ok()?;
    let packets = find(find(body, 4)?, PACKETS)?;
    Some((name.to_owned(), u64::from_be_bytes(*packets.first_chunk()?)))
}

/// The ranges, in order, that are not among the others.
fn without(ranges: &[(IpAddr, IpAddr)], others: &[(IpAddr, IpAddr)]) -> Vec<(IpAddr, IpAddr)> {
    ranges.iter().filter(|range| others.binary_search(range).is_err()).copied().collect()
}
