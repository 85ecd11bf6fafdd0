//! The block format: sections with interfaces and packets (draft-ietf-opsawg-pcapng).
//!
//! ```text
//! block  type | total length | body, padded to words | total length again
//! SHB    byte-order magic | major, minor | section length (2) | options
//! IDB    link type, reserved | snaplen | options
//! EPB    interface | stamp high | stamp low | captured length | original length | data | options
//! OPB    interface, drops | as the EPB
//! SPB    original length | data
//! ```

use std::io::Read;

use super::endian::Endian;
use super::error::check_record_length;
use super::reader::{Fault, Found, reading, truncated};
use super::tick::Tick;
use super::window::Window;
use super::{CaptureErrorKind, MAX_BLOCK, MAX_INTERFACES};
use crate::LinkType;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(super) const ENHANCED_PACKET: u32 = 6;

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
pub(super) const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// Type and length before a block's body.
const BLOCK_HEADER: usize = 8;
/// Type and both lengths: what a block has besides its body.
const FRAME: usize = 12;

/// The section that is being read.
pub(super) struct PcapNgSource {
    endian: Endian,
    interfaces: Vec<Interface>,
    first_link: Option<LinkType>,
}

struct Interface {
    link: LinkType,
    snaplen: u32,
    tick: Tick,
}

/// A block in the window whose two lengths agree.
struct Block {
    kind: u32,
    length: usize,
    offset: u64,
    /// The record that it is or stands before.
    record: u64,
}

impl PcapNgSource {
    /// The type of a section header block, the same in both byte orders.
    pub(super) const MAGIC: [u8; 4] = SECTION_HEADER.to_le_bytes();

    /// Reads the first section header, and the interfaces that follow it directly.
    pub(super) fn open<R: Read>(window: &mut Window<R>) -> Result<PcapNgSource, Fault> {
        let mut source = PcapNgSource { endian: Endian::Little, interfaces: Vec::new(), first_link: None };
        source.section(window, 1)?;
        loop {
            let offset = window.offset();
            window.want(BLOCK_HEADER).map_err(|error| (offset, reading(error)))?;
            match window.bytes().first_chunk::<BLOCK_HEADER>().map(|bytes| source.endian.words(bytes)) {
                Some([INTERFACE_DESCRIPTION, length]) => source.interface(window, length, 1)?,
                _ => return Ok(source),
            }
        }
    }

    #[inline]
    pub(super) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
        number: u64,
    ) -> Result<Option<Found>, Fault> {
        loop {
            let offset = window.offset();
            let here = window.want(BLOCK_HEADER).map_err(|source| (offset, reading(source)))?;
            let Some(header) = window.bytes().first_chunk::<BLOCK_HEADER>() else {
                return match here {
                    0 => Ok(None),
                    _ => Err((offset, truncated("block header", number, here, BLOCK_HEADER as u64))),
                };
            };
            let [kind, length] = self.endian.words::<BLOCK_HEADER, 2>(header);
            match kind {
                ENHANCED_PACKET | OLD_PACKET => {
                    let block = self.whole_block(window, kind, length, number)?;
                    return self.packet(window, &block).map(Some);
                }
                SIMPLE_PACKET => {
                    let block = self.whole_block(window, kind, length, number)?;
                    return self.simple_packet(window, &block).map(Some);
                }
                SECTION_HEADER => self.section(window, number)?,
                INTERFACE_DESCRIPTION => self.interface(window, length, number)?,
                _ => self.skip_block(window, length, number)?,
            }
        }
    }

    pub(super) fn first_link(&self) -> Option<LinkType> {
        self.first_link
    }

    /// Starts a new section at a section header block; byte order and interfaces begin anew.
    fn section<R: Read>(&mut self, window: &mut Window<R>, number: u64) -> Result<(), Fault> {
        const MINIMUM: usize = FRAME + 16;
        let offset = window.offset();
        let here = window.want(MINIMUM).map_err(|source| (offset, reading(source)))?;
        let magic = match window.bytes().get(BLOCK_HEADER..FRAME) {
            Some(&[a, b, c, d]) => [a, b, c, d],
            _ => return Err((offset, truncated("section header", number, here, MINIMUM as u64))),
        };
        self.endian = if u32::from_le_bytes(magic) == BYTE_ORDER_MAGIC {
            Endian::Little
        } else if u32::from_be_bytes(magic) == BYTE_ORDER_MAGIC {
            Endian::Big
        } else {
            let found = u32::from_be_bytes(magic).into();
            let expected = format!("{BYTE_ORDER_MAGIC}, in either byte order");
            let what = "the byte-order magic";
            let kind = CaptureErrorKind::Malformed { what, record: number, found, expected };
            return Err((offset + BLOCK_HEADER as u64, kind));
        };
        let Some(header) = window.bytes().first_chunk::<MINIMUM>() else {
            return Err((offset, truncated("section header", number, here, MINIMUM as u64)));
        };
        let version = |at| self.endian.u16([header[at], header[at + 1]]);
        let (major, minor) = (version(12), version(14));
        // 1.2 is written by some and means 1.0 (draft-ietf-opsawg-pcapng 4.1).
        if !matches!((major, minor), (1, 0 | 2)) {
            let kind = CaptureErrorKind::UnsupportedVersion { major, minor, expected: "1.0" };
            return Err((offset + 12, kind));
        }
        let [kind, length, ..] = self.endian.words::<MINIMUM, 7>(header);
        let block = self.whole_block(window, kind, length, number)?;
        window.consume(block.length);
        self.interfaces.clear();
        Ok(())
    }

    /// Adds the interface that a block describes.
    fn interface<R: Read>(&mut self, window: &mut Window<R>, length: u32, number: u64) -> Result<(), Fault> {
        let block = self.whole_block(window, INTERFACE_DESCRIPTION, length, number)?;
        let body = &window.bytes()[BLOCK_HEADER..block.length - 4];
        let Some((&[a, b, _, _, e, f, g, h], options)) = body.split_first_chunk::<8>() else {
            return Err(block.wrong("the length of an interface description", "at least 20"));
        };
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err((block.offset, CaptureErrorKind::TooManyInterfaces));
        }
        let code = self.endian.u16([a, b]);
        let known = LinkType::from_code(code.into());
        let snaplen = self.endian.u32([e, f, g, h]);
        let tick = self.tick(options, &block)?;
        self.first_link = self.first_link.or(known);
        self.interfaces.push(Interface { link: known.unwrap_or(LinkType::Other(code)), snaplen, tick });
        window.consume(block.length);
        Ok(())
    }

    /// Reads the options that say what the stamps mean.
    fn tick(&self, mut options: &[u8], block: &Block) -> Result<Tick, Fault> {
        let mut tick = Tick::default();
        while let Some((&[a, b, c, d], rest)) = options.split_first_chunk::<4>() {
            let (code, length) = (self.endian.u16([a, b]), usize::from(self.endian.u16([c, d])));
            if code == 0 {
                break;
            }
            let Some(value) = rest.get(..length) else {
                let field = "the length of an interface's option";
                return Err(block.wrong_value(field, length as u64, &format!("at most {}", rest.len())));
            };
            match (code, value) {
                (OPTION_TSRESOL, &[resolution]) => tick.set_resolution(resolution),
                (OPTION_TSRESOL, _) => {
                    return Err(block.wrong_value("the length of if_tsresol", length as u64, "1"));
                }
                (OPTION_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    tick.set_offset(self.endian.i64([a, b, c, d, e, f, g, h]));
                }
                (OPTION_TSOFFSET, _) => {
                    return Err(block.wrong_value("the length of if_tsoffset", length as u64, "8"));
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(tick)
    }

    /// The record of an enhanced or an old packet block, which differ in the first word only.
    #[inline]
    fn packet<R: Read>(&self, window: &mut Window<R>, block: &Block) -> Result<Found, Fault> {
        const HEADER: usize = BLOCK_HEADER + 20;
        let Some(header) = window.bytes()[..block.length - 4].first_chunk::<HEADER>() else {
            return Err(block.wrong("the length of a packet block", "at least 32"));
        };
        let [_, _, first, high, low, captured, original_len] = self.endian.words::<HEADER, 7>(header);
        let interface = match block.kind {
            OLD_PACKET => u32::from(self.endian.u16([header[8], header[9]])),
            _ => first,
        };
        let (interface, link) = self.interface_of(interface, block)?;
        let length = self.fit(captured, HEADER, block)?;
        let units = u64::from(high) << 32 | u64::from(low);
        let Some(timestamp_ns) = interface.tick.nanoseconds(units) else {
            return Err((
                block.offset,
                CaptureErrorKind::TimestampRange { record: block.record, until: 2554 },
            ));
        };
        let start = window.consume(block.length) + HEADER;
        Ok(Found { timestamp_ns, link, original_len, data: start..start + length, offset: block.offset })
    }

    /// The record of a simple packet block, which belongs to the first interface and has no stamp.
    fn simple_packet<R: Read>(&self, window: &mut Window<R>, block: &Block) -> Result<Found, Fault> {
        const HEADER: usize = BLOCK_HEADER + 4;
        let Some(header) = window.bytes()[..block.length - 4].first_chunk::<HEADER>() else {
            return Err(block.wrong("the length of a simple packet block", "at least 16"));
        };
        let [.., original_len] = self.endian.words::<HEADER, 3>(header);
        let (interface, link) = self.interface_of(0, block)?;
        let captured = match interface.snaplen {
            0 => original_len,
            snaplen => original_len.min(snaplen),
        };
        let length = self.fit(captured, HEADER, block)?;
        let start = window.consume(block.length) + HEADER;
        Ok(Found { timestamp_ns: 0, link, original_len, data: start..start + length, offset: block.offset })
    }

    #[inline]
    fn interface_of(&self, number: u32, block: &Block) -> Result<(&Interface, LinkType), Fault> {
        let record = block.record;
        let Some(interface) = self.interfaces.get(number as usize) else {
            let known = self.interfaces.len();
            let kind = CaptureErrorKind::UnknownInterface { record, found: number, known };
            return Err((block.offset, kind));
        };
        Ok((interface, interface.link))
    }

    /// Checks that `captured` bytes of data stand behind a header of `header` bytes in the block.
    #[inline]
    fn fit(&self, captured: u32, header: usize, block: &Block) -> Result<usize, Fault> {
        let length = check_record_length(block.record, captured).map_err(|kind| (block.offset, kind))?;
        let room = block.length.saturating_sub(header + 4);
        if length.next_multiple_of(4) > room {
            let what = "the captured length";
            return Err(block.wrong_value(what, length as u64, &format!("at most {room}, the block's room")));
        }
        Ok(length)
    }

    /// Has a block of known size in the window and checks its length, both before and behind it.
    #[inline]
    fn whole_block<R: Read>(
        &self,
        window: &mut Window<R>,
        kind: u32,
        length: u32,
        record: u64,
    ) -> Result<Block, Fault> {
        let offset = window.offset();
        let block = Block { kind, length: length as usize, offset, record };
        block.check_length()?;
        if block.length > MAX_BLOCK {
            let (found, limit) = (length.into(), MAX_BLOCK as u64);
            return Err((offset, CaptureErrorKind::TooLong { what: "a block", record, found, limit }));
        }
        let here = window.want(block.length).map_err(|source| (offset, reading(source)))?;
        if here < block.length {
            return Err((offset, truncated(block.name(), record, here, length.into())));
        }
        let trailer = window.bytes()[..block.length].last_chunk::<4>();
        block.check_trailer(trailer.map(|&bytes| self.endian.u32(bytes)))?;
        Ok(block)
    }

    /// Passes over a block, of any length, that holds no packet.
    fn skip_block<R: Read>(&self, window: &mut Window<R>, length: u32, record: u64) -> Result<(), Fault> {
        let offset = window.offset();
        let block = Block { kind: 0, length: length as usize, offset, record };
        block.check_length()?;
        let body = u64::from(length) - 4;
        let here = window.skip(body).map_err(|source| (offset, reading(source)))?;
        let behind = window.want(4).map_err(|source| (offset, reading(source)))?;
        let Some(&trailer) = window.bytes().first_chunk::<4>() else {
            return Err((offset, truncated(block.name(), record, here as usize + behind, length.into())));
        };
        block.check_trailer(Some(self.endian.u32(trailer)))?;
        window.consume(4);
        Ok(())
    }
}

impl Block {
    fn name(&self) -> &'static str {
        match self.kind {
            SECTION_HEADER => "section header block",
            INTERFACE_DESCRIPTION => "interface description block",
            ENHANCED_PACKET => "enhanced packet block",
            OLD_PACKET => "packet block",
            SIMPLE_PACKET => "simple packet block",
            _ => "block",
        }
    }

    #[inline]
    fn check_length(&self) -> Result<(), Fault> {
        if self.length < FRAME || !self.length.is_multiple_of(4) {
            return Err(self.wrong("the length of a block", "a multiple of 4, at least 12"));
        }
        Ok(())
    }

    #[inline]
    fn check_trailer(&self, found: Option<u32>) -> Result<(), Fault> {
        match found {
            Some(found) if found as usize == self.length => Ok(()),
            other => {
                let found = other.unwrap_or(0).into();
                let expected = format!("{}, as before the block", self.length);
                Err(self.wrong_value("the length behind a block", found, &expected))
            }
        }
    }

    #[cold]
    fn wrong(&self, what: &'static str, expected: &str) -> Fault {
        self.wrong_value(what, self.length as u64, expected)
    }

    #[cold]
    fn wrong_value(&self, what: &'static str, found: u64, expected: &str) -> Fault {
        let expected = expected.to_owned();
        (self.offset, CaptureErrorKind::Malformed { what, record: self.record, found, expected })
    }
}
