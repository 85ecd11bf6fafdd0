//! One datagram that is being put together.

use forebay_crypto::Packet;
use forebay_time::Time;
use forebay_wire::{Family, ipv4, ipv6};

use super::found::{HEADER_ROOM, Key, MAX_LEN, Part};
use super::store::Store;
use forebay_drops::DropReason;

/// Congestion experienced (RFC 3168).
const CE: u8 = 3;

/// The fragments received of one datagram.
#[derive(Debug)]
pub struct Datagram {
    pub key: Key,
    /// When its first fragment came.
    pub began: Time,
    /// Why it can never be whole.
    pub dead: Option<DropReason>,
    /// Fragments by their place, which do not overlap.
    pub parts: Vec<Placed>,
    /// Blocks that they occupy.
    pub blocks: usize,
    /// Bytes of the fragmentable part that are there, and how many there are to be.
    received: usize,
    total: Option<usize>,
    family: Family,
    /// The first fragment's headers, where they name what follows, and what that is.
    header: Vec<u8>,
    named_at: usize,
    protocol: u8,
    /// Values of ECN that came: a bit for each.
    ecn: u8,
}

/// A fragment in its place.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    from: usize,
    len: usize,
    pub block: u32,
}

impl Placed {
    fn end(&self) -> usize {
        self.from + self.len
    }
}

impl Datagram {
    pub fn new(fragments: usize) -> Datagram {
        Datagram {
            key: Key::NONE,
            began: Time::ZERO,
            dead: None,
            parts: Vec::with_capacity(fragments),
            blocks: 0,
            received: 0,
            total: None,
            family: Family::V4,
            header: Vec::with_capacity(HEADER_ROOM),
            named_at: 0,
            protocol: 0,
            ecn: 0,
        }
    }

    /// Begins anew.
    pub fn begin(&mut self, key: Key, now: Time) {
        (self.key, self.began, self.dead) = (key, now, None);
        (self.received, self.total, self.ecn) = (0, None, 0);
        self.parts.clear();
        self.header.clear();
    }

    /// Where among the others `part` belongs. [`DropReason::DupFrag`] for a copy of one that is there; any
    /// other error is the end of the datagram.
    pub fn check(
        &self,
        part: &Part<'_>,
        store: &Store,
        fragments: usize,
        capacity: usize,
    ) -> Result<usize, DropReason> {
        let place = self.parts.partition_point(|other| other.from < part.offset);
        if let Some(other) = self.parts.get(place)
            && self.is_copy(other, part, store)
        {
            return Err(DropReason::DupFrag);
        }
        let before = place.checked_sub(1).map_or(0, |before| self.parts[before].end());
        let behind = self.parts.get(place).map_or(usize::MAX, |other| other.from);
        let last_end = self.parts.last().map_or(0, Placed::end);
        let contradicts = match (self.total, part.more) {
            (Some(total), true) => part.end() >= total,
            // Two ends, or something behind the end.
            (Some(_), false) => true,
            (None, false) => last_end > part.offset,
            (None, true) => false,
        };
        if part.offset < before || part.end() > behind || contradicts {
            return Err(DropReason::FragOverlap);
        }
        if self.parts.len() >= fragments {
            return Err(DropReason::FragLimit);
        }
        // Fragments that may be marked and ones that may not do not belong together (RFC 3168 5.3).
        let ecn = self.ecn | 1 << part.ecn;
        if ecn & 1 != 0 && ecn != 1 {
            return Err(DropReason::FragError);
        }
        // Only the first has all options of IPv4, so the datagram may be longer than any fragment shows.
        let header = if part.offset > 0 && !self.header.is_empty() { &self.header[..] } else { part.header };
        let len = header.len() + part.end().max(last_end);
        if counted(part.family, len) > MAX_LEN {
            return Err(DropReason::FragError);
        }
        if len > capacity { Err(DropReason::TooLong) } else { Ok(place) }
    }

    fn is_copy(&self, other: &Placed, part: &Part<'_>, store: &Store) -> bool {
        let same_place = other.from == part.offset && other.len == part.payload.len();
        if !same_place || part.more == (self.total == Some(other.end())) {
            return false;
        }
        let mut rest = part.payload;
        store.pieces(other.block, other.len).all(|piece| {
            let (begin, behind) = rest.split_at(piece.len());
            rest = behind;
            begin == piece
        })
    }

    /// Adds a fragment where [`Datagram::check`] has said, its bytes from `block` on.
    pub fn insert(&mut self, place: usize, part: &Part<'_>, block: u32, blocks: usize) {
        self.parts.insert(place, Placed { from: part.offset, len: part.payload.len(), block });
        self.blocks += blocks;
        self.received += part.payload.len();
        self.ecn |= 1 << part.ecn;
        if !part.more {
            self.total = Some(part.end());
        }
        if part.offset == 0 {
            self.header.clear();
            self.header.extend_from_slice(part.header);
            (self.family, self.named_at, self.protocol) = (part.family, part.named_at, part.protocol);
        }
    }

    /// Whether nothing is missing: what does not overlap and adds up to the whole is the whole.
    pub fn is_complete(&self) -> bool {
        self.total == Some(self.received)
    }

    /// Writes the datagram into `packet`, which has the room that was given to [`Datagram::check`].
    pub fn build(&self, store: &Store, packet: &mut Packet) {
        let header_len = self.header.len();
        let len = header_len + self.received;
        let counted = counted(self.family, len) as u16;
        // RFC 3168 5.3: congestion experienced if one fragment says so.
        let mark = if self.ecn & 1 << CE != 0 { CE } else { 0 };
        packet.set_bounds(Packet::HEADROOM, Packet::HEADROOM + len);
        let (header, mut room) = packet.bytes_mut().split_at_mut(header_len);
        header.copy_from_slice(&self.header);
        for part in &self.parts {
            for piece in store.pieces(part.block, part.len) {
                let (here, behind) = room.split_at_mut(piece.len());
                here.copy_from_slice(piece);
                room = behind;
            }
        }
        match self.family {
            Family::V4 => {
                header[1] |= mark;
                // Of the flags, only "don't fragment" says anything about the whole.
                header[6] &= 0x40;
                header[7] = 0;
                ipv4::rewrite(header, header_len, counted, self.protocol);
            }
            Family::V6 => {
                header[1] |= mark << 4;
                header[4..6].copy_from_slice(&counted.to_be_bytes());
                header[self.named_at] = self.protocol;
            }
        }
    }
}

/// What the length field says of a packet of `len` bytes.
fn counted(family: Family, len: usize) -> usize {
    match family {
        Family::V4 => len,
        Family::V6 => len - ipv6::HEADER,
    }
}
