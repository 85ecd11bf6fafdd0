//! The images that firmware is given and gives back, as `firmware/include/image.h` defines them. All words are
//! little-endian.

use forebay_riscv::Memory;

use crate::machine::{IMAGE_MAX, OUTPUT};

const INPUT_MAGIC: u32 = 0x4e49_4246;
const OUTPUT_MAGIC: u32 = 0x554f_4246;
const VERSION: u32 = 1;

/// An SA, as a record of 160 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sa {
    /// SPI.
    pub spi: u32,
    /// Whether packets come in by it.
    pub inbound: bool,
    /// 50 ESP, 51 AH.
    pub protocol: u8,
    /// `enum mode`: 0 tunnel, 1 transport.
    pub mode: u8,
    /// `enum cipher`: 0 none, 1 AES-CBC, 2 AES-CTR, 3 AES-GCM.
    pub cipher: u8,
    /// `enum auth`: 0 none, 1 HMAC-MD5, 2 HMAC-SHA-1, 3 HMAC-SHA-256.
    pub auth: u8,
    /// Bytes of the ICV.
    pub icv_len: u8,
    /// Bit 0: extended sequence numbers; bit 1: no replay check.
    pub flags: u8,
    /// 4 or 6, of the outer addresses.
    pub family: u8,
    /// The last number sent, or the highest received.
    pub sequence: u64,
    /// Outer addresses, as sent.
    pub source: [u8; 16],
    /// Outer addresses, as sent.
    pub destination: [u8; 16],
    /// The cipher's key, with the salt behind it for CTR and GCM.
    pub key: Vec<u8>,
    /// How many bytes of `key` are key: the rest is salt.
    pub key_len: u8,
    /// The integrity algorithm's key.
    pub auth_key: Vec<u8>,
}

/// What is done with which packets, a record of 48 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether it is for packets that come in.
    pub inbound: bool,
    /// 0 discard, 1 bypass, 2 protect.
    pub action: u8,
    /// 4 or 6.
    pub family: u8,
    /// Upper protocol; 0: any.
    pub protocol: u8,
    /// Which SA.
    pub sa: u16,
    /// Bits of the source's prefix, and of the destination's.
    pub prefixes: (u8, u8),
    /// Lowest and highest port of the source, then of the destination.
    pub ports: [u16; 4],
    /// The source.
    pub source: [u8; 16],
    /// The destination.
    pub destination: [u8; 16],
}

/// An input image.
pub fn input(end_host: bool, sas: &[Sa], policies: &[Policy], packets: &[(bool, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let counts = [sas.len(), policies.len(), packets.len()].map(|count| count as u32);
    let header = [INPUT_MAGIC, VERSION, end_host.into(), counts[0], counts[1], counts[2], 0, 0];
    header.into_iter().for_each(|word| out.extend(word.to_le_bytes()));
    for sa in sas {
        out.extend(sa.spi.to_le_bytes());
        out.extend([sa.inbound.into(), sa.protocol, sa.mode, sa.cipher, sa.auth, sa.icv_len]);
        out.extend([sa.key_len, sa.auth_key.len() as u8, sa.flags, sa.family, 0, 0]);
        out.extend(sa.sequence.to_le_bytes());
        out.extend(sa.source);
        out.extend(sa.destination);
        out.extend(padded::<36>(&sa.key));
        out.extend(padded::<64>(&sa.auth_key));
        out.extend([0; 4]);
    }
    for policy in policies {
        out.extend([policy.inbound.into(), policy.action, policy.family, policy.protocol]);
        out.extend(policy.sa.to_le_bytes());
        out.extend([policy.prefixes.0, policy.prefixes.1]);
        policy.ports.into_iter().for_each(|port| out.extend(port.to_le_bytes()));
        out.extend(policy.source);
        out.extend(policy.destination);
    }
    for (inbound, packet) in packets {
        out.extend((packet.len() as u32).to_le_bytes());
        out.extend(u32::from(*inbound).to_le_bytes());
        out.extend(*packet);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let length = bytes.len().min(N);
    out[..length].copy_from_slice(&bytes[..length]);
    out
}

/// Packets and bytes of an input image; nothing if it is none.
pub fn size_of_input(image: &[u8]) -> Option<(u64, u64)> {
    let word = |at: usize| image.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if word(0)? != INPUT_MAGIC {
        return None;
    }
    let (sas, policies, packets) = (word(12)?, word(16)?, word(20)?);
    let mut at = 32 + 160 * sas as usize + 48 * policies as usize;
    let mut bytes = 0;
    for _ in 0..packets {
        let length = word(at)?;
        bytes += u64::from(length);
        at += 8 + (length as usize).next_multiple_of(4);
    }
    Some((packets.into(), bytes))
}

/// What became of a packet: the drop reason's number, 0 if it passed, and its bytes.
pub fn results(image: &[u8]) -> Option<Vec<(u32, &[u8])>> {
    let word = |at: usize| image.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if word(0)? != OUTPUT_MAGIC {
        return None;
    }
    let mut at = 16;
    (0..word(8)?)
        .map(|_| {
            let (status, length) = (word(at)?, word(at + 4)? as usize);
            let bytes = image.get(at + 8..at + 8 + length)?;
            at += 8 + length.next_multiple_of(4);
            Some((status, bytes))
        })
        .collect()
}

/// The output image in memory, as long as it says; empty if there is none.
pub(crate) fn output_bytes(memory: &Memory) -> &[u8] {
    let head = memory.word(OUTPUT).zip(memory.word(OUTPUT + 12));
    match head {
        Some((OUTPUT_MAGIC, length)) if length as usize <= IMAGE_MAX => {
            memory.slice(OUTPUT, length as usize).unwrap_or_default()
        }
        _ => &[],
    }
}
