//! Jobs of ESP.
#![allow(dead_code, reason = "each test uses some of it")]

use forebay_crypto::{Job, JobSpec, Packet, SaKeys, SecretBytes, SessionId, Span};

pub const SEAL: SessionId = SessionId(7);
/// Length of the text, in bytes.
pub const TEXT: u32 = 100;

pub fn keys(byte: u8) -> SaKeys {
    let suite = "aes128gcm16".parse().expect("a proposal");
    SaKeys::new(suite, &SecretBytes::new(vec![byte; 20]), &SecretBytes::new(vec![])).expect("a key")
}

/// A packet of ESP: SPI and sequence number, IV, text, room for the ICV.
pub fn job(session: SessionId, number: u64) -> Job {
    let mut packet = Packet::with_capacity(200);
    assert!(packet.fill(&[number as u8; (8 + 8 + TEXT + 16) as usize]));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session,
        cipher: Span { start: start + 16, len: TEXT },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 16 + TEXT,
        seq_hi: None,
    };
    Job::new(packet, spec, number)
}
