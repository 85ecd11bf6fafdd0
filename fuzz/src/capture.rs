//! Capture files.

use std::io::{self, Read};

use forebay_links::LinkType;
use forebay_links::capture::{MAX_RECORD, Reader};
use forebay_links::frame::{Family, MAX_PREFIX, locate, reframe};

/// An IPv4 and an IPv6 packet of a header each, to put in the place of what was found.
const PACKETS: [(Family, &[u8]); 2] = [
    (Family::V4, &[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]),
    (Family::V6, &{
        let mut packet = [0; 40];
        packet[0] = 0x60;
        packet[6] = 59;
        packet
    }),
];

/// Reads `data` as a capture, twice: as one piece and byte by byte, which must come to the same.
pub fn capture(data: &[u8]) {
    let whole = records(data);
    let pieces = records(Dribble(data));
    assert_eq!(whole, pieces, "how the bytes arrive must not matter");
}

/// Time stamp, link type, original length and bytes of a record.
type Found = (u64, LinkType, u32, Vec<u8>);

/// The records, with the error that ended them, if one did.
fn records(input: impl Read) -> (Vec<Found>, Option<String>) {
    let mut records = Vec::new();
    let mut reader = match Reader::new(input, "fuzz") {
        Ok(reader) => reader,
        Err(error) => return (records, Some(error.to_string())),
    };
    _ = (reader.link(), reader.resolution());
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!(record.data.len() <= MAX_RECORD);
                assert_eq!(record.number, records.len() as u64 + 1);
                frame(record.link, record.data);
                records.push((record.timestamp_ns, record.link, record.original_len, record.data.to_vec()));
            }
            Ok(None) => return (records, None),
            Err(error) => {
                assert!(matches!(reader.next_record(), Ok(None)), "there is nothing behind an error");
                return (records, Some(error.to_string()));
            }
        }
    }
}

fn frame(link: LinkType, data: &[u8]) {
    let at = match locate(link, data) {
        Ok(at) => at,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(at.start <= MAX_PREFIX && at.start < data.len());
    assert_eq!(data[at.start] >> 4, if at.family == Family::V4 { 4 } else { 6 });
    let mut out = Vec::new();
    for (family, packet) in PACKETS {
        reframe(&at, &data[..at.start], packet, &mut out).expect("both parts are good");
        let found = locate(link.rewritten(), &out).expect("a frame that was just made");
        assert_eq!((found.start, found.family), (at.start, family));
        assert_eq!(&out[found.start..], packet);
    }
}

/// Gives one byte at a time.
struct Dribble<'a>(&'a [u8]);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let take = buffer.len().min(self.0.len()).min(1);
        let (now, later) = self.0.split_at(take);
        buffer[..take].copy_from_slice(now);
        self.0 = later;
        Ok(take)
    }
}
