//! Packets that only mean something together: fragments, and the payloads of IP-TFS.

use forebay_crypto::Packet;
use forebay_ipsec::Iptfs;
use forebay_ipsec::iptfs::Deaggregator;
use forebay_ipsec::reassembly::{Reassembler, Reassembly, ReassemblyLimits};
use forebay_time::{Duration, Time};
use forebay_wire::Ip;

/// Splits input into pieces: a byte for the reader's own use, a length in 16 bits, and as many bytes as that says.
pub fn pieces(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([first, high, low], rest) = data.split_first_chunk()?;
        let (piece, behind) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])).min(rest.len()));
        data = behind;
        Some((*first, piece))
    })
}

/// Fragments: no more is held than the limits say, and what is put together is an IP packet.
pub fn fragments(data: &[u8]) {
    let limits = ReassemblyLimits {
        datagrams: 4,
        bytes: 32 << 10,
        bytes_per_source: 24 << 10,
        fragments: 8,
        timeout: Duration::from_millis(100),
    };
    let mut reassembler = Reassembler::new(limits, 1);
    let mut packet = Packet::with_capacity(4_096);
    let mut now = Time::ZERO;
    for (later, bytes) in pieces(data) {
        now = now + Duration::from_millis(later.into());
        if !packet.fill(bytes) {
            continue;
        }
        match reassembler.push(now, &mut packet) {
            Reassembly::Whole => assert_eq!(packet.bytes(), bytes),
            Reassembly::Complete => {
                let ip = Ip::parse(packet.bytes()).expect("an IP packet");
                assert_eq!(ip.bytes().len(), packet.len());
            }
            Reassembly::Held | Reassembly::Dropped(_) => {}
        }
        let (datagrams, held) = reassembler.held();
        assert!(datagrams <= 4 && held <= 32 << 10, "{datagrams} datagrams, {held} bytes");
    }
    reassembler.advance(Time::MAX);
    assert_eq!(reassembler.held(), (0, 0));
}

/// Payloads of IP-TFS: no more comes out than went in, and all of it is IP packets.
pub fn aggfrag(data: &[u8]) {
    let mut deaggregator = Deaggregator::new(&Iptfs::default());
    let mut packet = Packet::with_capacity(4_096);
    let (mut sequence, mut into, mut out) = (0u64, 0, 0);
    for (step, payload) in pieces(data) {
        // Mostly the next number; some back, some ahead.
        sequence = (sequence + 1 + u64::from(step >> 4)).saturating_sub((step & 15).into()).max(1);
        into += payload.len();
        _ = deaggregator.push(sequence, 0, payload);
        while let Some(taken) = deaggregator.take(Time::ZERO, &mut packet) {
            if taken.is_ok() {
                let ip = Ip::parse(packet.bytes()).expect("an IP packet");
                assert_eq!(ip.bytes().len(), packet.len());
                out += packet.len();
            }
        }
    }
    assert!(out <= into, "{out} bytes from {into}");
}
