//! Messages between the two gateways: JSON, one message in each Noise message, which limits its length.

use std::fmt;

use forebay_state::Record;
use serde::{Deserialize, Serialize};

/// Maximum length of a message in bytes: that of a Noise message (Noise 3) without its tag.
pub const LEN_MAX: usize = 65_535 - 16;
/// Maximum number of records in a message; with replay windows that have gaps fewer fit.
pub const RECORDS_MAX: usize = 256;
/// Version of the messages.
const VERSION: u32 = 5;

/// The identity of a gateway: the first message of each side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Version of the messages.
    pub version: u32,
    /// Version of the division of numbers between the two.
    pub division: u32,
    /// 0 or 1.
    pub number: u8,
    /// The shared addresses with their prefix lengths, in order.
    pub addresses: Vec<String>,
}

/// Reasons for which two gateways are not a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// They use different versions of messages: the peer's.
    Version(u32),
    /// They divide numbers in different ways: the peer's version.
    Division(u32),
    /// Both have this number.
    Number(u8),
    /// The peer shares other addresses.
    Addresses(Vec<String>),
}

impl Hello {
    /// The identity of this gateway.
    pub fn new(number: u8, mut addresses: Vec<String>) -> Hello {
        addresses.sort();
        Hello { version: VERSION, division: forebay_state::Territory::DIVISION, number, addresses }
    }

    /// Whether the peer is the other gateway of this one's pair.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check(&self, peer: &Hello) -> Result<(), Mismatch> {
        if peer.version != self.version {
            return Err(Mismatch::Version(peer.version));
        }
        if peer.division != self.division {
            return Err(Mismatch::Division(peer.division));
        }
        if peer.number == self.number {
            return Err(Mismatch::Number(peer.number));
        }
        if peer.addresses != self.addresses {
            return Err(Mismatch::Addresses(peer.addresses.clone()));
        }
        Ok(())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Version(version) => write!(f, "the peer speaks version {version}, expected {VERSION}"),
            Mismatch::Division(division) => {
                write!(
                    f,
                    "the peer divides numbers in another way ({division}); run the same version on both"
                )
            }
            Mismatch::Number(number) => {
                write!(f, "both gateways have `number = {number}` in [pair]; one must be 0 and the other 1")
            }
            Mismatch::Addresses(addresses) => {
                write!(
                    f,
                    "the peer shares other addresses: [{}]; `addresses` in [pair] must agree",
                    addresses.join(", ")
                )
            }
        }
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Message {
    /// A heartbeat.
    Beat {
        /// Whether it is active.
        active: bool,
        /// The highest term that it knows.
        term: u64,
        /// Whether it is the preferred gateway.
        preferred: bool,
        /// Whether it has records that the receiver may not have.
        unmerged: bool,
        /// Whether it lacks records of the receiver.
        wants: bool,
        /// The newest session of its records: the random name of its process, and a number, zero before the first.
        session: (u64, u64),
        /// Whether that session has not ended.
        open: bool,
        /// Whether its records were never complete: those of a new or an empty directory.
        blank: bool,
        /// Whether its records are complete regardless of the receiver's: it is active and lacks none, or continued alone last.
        whole: bool,
    },
    /// From now on, the sender's records come over this connection.
    Session {
        /// A random name of the sender's process.
        process: u64,
        /// Rises within the process.
        number: u64,
    },
    /// Records that the receiver has to record before they are used.
    Note {
        /// The number to acknowledge.
        at: u64,
        /// The records.
        records: Vec<Record>,
    },
    /// The receiver has recorded all messages up to this one.
    Noted {
        /// The number of the last message.
        at: u64,
    },
    /// A part of all records of the sender, some of which the receiver may lack.
    Merge {
        /// The records.
        records: Vec<Record>,
        /// Whether the sender is active: its replay windows are then valid.
        active: bool,
        /// The highest term that the sender knows: with these records, those of the receiver are complete up to it.
        term: u64,
        /// The number of this transmission of all records, so that a late answer counts for no later transmission.
        number: u64,
        /// Whether this is the last part.
        last: bool,
    },
    /// All records of a transmission are merged.
    Merged {
        /// The number of the transmission.
        number: u64,
    },
    /// The sender has ended its data plane; the receiver should take over.
    Resign {
        /// The highest term that it knows.
        term: u64,
        /// Whether it has records that the receiver may not have.
        unmerged: bool,
    },
}

/// The bytes of a message.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Plain data with string keys always serialises.
    serde_json::to_vec(message).unwrap_or_default()
}

/// The message with these bytes; `None` if they are not a message.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    if bytes.len() > LEN_MAX { None } else { serde_json::from_slice(bytes).ok() }
}

/// Divides records into messages of permitted length.
pub fn chunks(records: &[Record]) -> Vec<&[Record]> {
    let mut chunks = Vec::new();
    let (mut first, mut room) = (0, LEN_MAX / 2);
    for (place, record) in records.iter().enumerate() {
        let len = encode(record).len();
        if place > first && (len > room || place - first == RECORDS_MAX) {
            chunks.push(&records[first..place]);
            (first, room) = (place, LEN_MAX / 2);
        }
        room = room.saturating_sub(len);
    }
    chunks.push(&records[first..]);
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(gaps: u64) -> Record {
        let missing = (0..gaps).map(|n| (10 * n, 10 * n + 1)).collect();
        Record::Window { id: "0f".repeat(16).try_into().unwrap(), top: 9, certain: 8, missing }
    }

    #[test]
    fn what_is_said_is_understood() {
        let messages = [
            Message::Beat {
                active: true,
                term: 7,
                preferred: false,
                unmerged: true,
                wants: true,
                session: (5, 6),
                open: true,
                blank: false,
                whole: false,
            },
            Message::Session { process: u64::MAX, number: 1 },
            Message::Note { at: 3, records: vec![window(2)] },
            Message::Merge { records: vec![], active: false, term: 3, number: 2, last: true },
            Message::Merged { number: 2 },
        ];
        for message in messages {
            assert_eq!(decode::<Message>(&encode(&message)), Some(message));
        }
        assert_eq!(decode::<Message>(b"{\"beat\":{}}"), None);
        assert_eq!(decode::<Message>(&vec![b' '; LEN_MAX + 1]), None);
    }

    #[test]
    fn records_are_divided_so_that_each_message_is_short_enough() {
        assert_eq!(chunks(&[]), [&[] as &[Record]]);
        let records: Vec<Record> = (0..1_000).map(|n| window(n % 200)).collect();
        let chunks = chunks(&records);
        assert_eq!(chunks.concat(), records);
        for chunk in chunks {
            let message = Message::Note { at: u64::MAX, records: chunk.to_vec() };
            assert!(!chunk.is_empty() && chunk.len() <= RECORDS_MAX && encode(&message).len() <= LEN_MAX);
        }
    }

    #[test]
    fn only_the_other_gateway_of_the_pair_is_taken() {
        let own = Hello::new(0, vec!["192.0.2.9/24".into(), "10.1.0.1/16".into()]);
        let peer = Hello { number: 1, ..own.clone() };
        assert_eq!(own.check(&peer), Ok(()));
        assert_eq!(own.check(&own), Err(Mismatch::Number(0)));
        assert_eq!(own.check(&Hello { version: 9, ..peer.clone() }), Err(Mismatch::Version(9)));
        assert_eq!(own.check(&Hello { division: 9, ..peer.clone() }), Err(Mismatch::Division(9)));
        let others = Hello { addresses: vec!["192.0.2.8/24".into()], ..peer };
        assert_eq!(own.check(&others), Err(Mismatch::Addresses(vec!["192.0.2.8/24".into()])));
    }
}
