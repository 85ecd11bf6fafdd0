//! The packets that are offered: lengths, and for each a packet of one of the SAs.

use forebay_links::capture::{CaptureError, Reader};
use forebay_links::frame::{ip_length, locate};
use forebay_random::Random;
use miette::{MietteDiagnostic, Report, miette};

/// The shortest packet is an empty UDP packet; the longest, a jumbo frame's.
const LENGTHS: std::ops::RangeInclusive<usize> = 28..=9000;
/// Packets of a capture that are used: each is kept in memory of its own, as a network card would leave it.
const CAPTURED_MAX: usize = 16_384;
/// Packets made of a short list of lengths: what bursts from several queues would be.
const PACKETS_MIN: usize = 256;
/// Simple IMIX, 7 : 4 : 1, spread evenly.
const IMIX: [usize; 12] = [40, 576, 40, 40, 576, 40, 1500, 40, 576, 40, 576, 40];

/// Lengths of plain packets in the order in which they are offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// As it was asked for.
    pub name: String,
    lengths: Vec<usize>,
}

impl Mix {
    /// A length in bytes, `imix`, or the path of a capture.
    ///
    /// # Errors
    /// If a length is out of range, or the capture cannot be read.
    pub fn parse(word: &str) -> miette::Result<Mix> {
        let name = word.to_owned();
        if word == "imix" {
            return Ok(Mix { name, lengths: IMIX.to_vec() });
        }
        if let Ok(length) = word.parse() {
            return match LENGTHS.contains(&length) {
                true => Ok(Mix { name, lengths: vec![length] }),
                false => Err(miette!("--size {word}: expected 28 (an empty UDP packet) to 9000 bytes")),
            };
        }
        if !std::path::Path::new(word).exists() {
            return Err(miette!(
                help = "give a length in bytes, `imix`, or the path of a capture",
                "--size {word}: not a number, not `imix`, and no such file exists"
            ));
        }
        Ok(Mix { name, lengths: captured(word)? })
    }

    /// The lengths of packets that are at hand: the first 16384 of them, where that is shorter or longer than can be
    /// sent as long as can be.
    pub fn of(name: &str, lengths: impl Iterator<Item = usize>) -> Mix {
        let fits = |length: usize| length.clamp(*LENGTHS.start(), *LENGTHS.end());
        Mix { name: name.to_owned(), lengths: lengths.take(CAPTURED_MAX).map(fits).collect() }
    }

    /// Mean length in bytes.
    pub fn mean(&self) -> f64 {
        self.lengths.iter().sum::<usize>() as f64 / self.lengths.len() as f64
    }

    /// IPv4 packets of these lengths, again and again if there are few, each of an SA drawn at random: that of the
    /// second octet of its destination.
    pub fn packets(&self, sas: usize) -> Vec<Vec<u8>> {
        let mut random = Random::seeded(forebay_random::hash(&self.name));
        let count = self.lengths.len() * PACKETS_MIN.div_ceil(self.lengths.len());
        let lengths = self.lengths.iter().cycle().take(count);
        lengths.map(|&length| packet(length, random.below(sas as u64) as u8)).collect()
    }
}

fn capture_error(error: CaptureError) -> Report {
    let report = MietteDiagnostic::new(error.to_string());
    match error.hint() {
        Some(hint) => report.with_help(hint).into(),
        None => report.into(),
    }
}

fn captured(path: &str) -> miette::Result<Vec<usize>> {
    let mut reader = Reader::open(path).map_err(capture_error)?;
    let mut lengths = Vec::new();
    while lengths.len() < CAPTURED_MAX
        && let Some(record) = reader.next_whole_record().map_err(capture_error)?
    {
        let Ok(at) = locate(record.link, record.data) else { continue };
        // What was cut off by the capture counts; the padding of a short frame does not.
        let length = ip_length(&at, record.data, record.original_len);
        let length = length.unwrap_or((record.original_len as usize).saturating_sub(at.start));
        let length = length.max(*LENGTHS.start());
        if length > *LENGTHS.end() {
            return Err(miette!(
                help =
                    "segmentation offload produces such packets: capture without it, or on another machine",
                "--size {path}: packet {} has {length} bytes, the maximum is 9000",
                record.number
            ));
        }
        lengths.push(length);
    }
    match lengths.is_empty() {
        true => Err(miette!("--size {path}: the capture contains no IP packet")),
        false => Ok(lengths),
    }
}

/// A UDP packet from 10.250.0.1 to 10.`sa`.0.1.
fn packet(length: usize, sa: u8) -> Vec<u8> {
    let mut packet = vec![0x5a; length];
    packet[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 250, 0, 1, 10, sa, 0, 1]);
    forebay_wire::ipv4::rewrite(&mut packet, 20, length as u16, 17);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imix_is_seven_to_four_to_one() {
        let mix = Mix::parse("imix").unwrap();
        let count = |length| IMIX.iter().filter(|&&one| one == length).count();
        assert_eq!((count(40), count(576), count(1500)), (7, 4, 1));
        assert_eq!(mix.mean().round(), 340.0);
        let packets = mix.packets(3);
        assert_eq!(packets.len(), 264);
        assert!(packets.iter().zip(IMIX.iter().cycle()).all(|(packet, &length)| packet.len() == length));
        assert!((0..3).all(|sa| packets.iter().any(|packet| packet[17] == sa)));
    }

    #[test]
    fn lengths_that_cannot_be_sent_are_refused() {
        for word in ["27", "9001", "-1", "none.pcap", ""] {
            assert!(Mix::parse(word).is_err(), "{word}");
        }
    }
}
