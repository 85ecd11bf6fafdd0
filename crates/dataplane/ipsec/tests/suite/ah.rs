//! AH packets of all shapes, byte by byte: whatever the RFC calls mutable may change on the way, and
//! nothing else. Each packet is built together with what the RFC says of each of its bytes.

use crate::reference::{Gateway, ah, keys, other_end};
use forebay_crypto::Direction;
use forebay_ipsec::{DropReason, Mode, SaConfig};
use proptest::prelude::*;

/// What becomes of a packet on its way when this byte is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Byte {
    /// These bits may change, and change nothing. The others are covered.
    Mutable(u8),
    /// Decides how bytes behind it are read, and is not covered itself: anything but harm.
    Shape,
}

const COVERED: Byte = Byte::Mutable(0);

/// Bytes, as they are sent and as they arrive, with what they are.
#[derive(Clone, Debug, Default)]
struct Piece {
    sent: Vec<u8>,
    arrived: Vec<u8>,
    bytes: Vec<Byte>,
}

impl Piece {
    fn put(&mut self, bytes: &[u8], what: Byte) -> &mut Piece {
        self.moved(bytes, bytes, what)
    }

    fn moved(&mut self, sent: &[u8], arrived: &[u8], what: Byte) -> &mut Piece {
        assert_eq!(sent.len(), arrived.len());
        self.sent.extend(sent);
        self.arrived.extend(arrived);
        self.bytes.extend(arrived.iter().map(|_| what));
        self
    }

    fn append(&mut self, other: &Piece) -> &mut Piece {
        self.sent.extend(&other.sent);
        self.arrived.extend(&other.arrived);
        self.bytes.extend(&other.bytes);
        self
    }
}

fn random(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), len)
}

/// One IPv4 option, and where it has the packet go.
fn option_v4() -> impl Strategy<Value = (Piece, Option<[[u8; 4]; 2]>)> {
    let immutable =
        (prop::sample::select(vec![130u8, 133, 134, 148, 149]), random(0..8)).prop_map(|(kind, data)| {
            let mut piece = Piece::default();
            piece.put(&[kind, 2 + data.len() as u8], COVERED).put(&data, COVERED);
            (piece, None)
        });
    // Record Route, Time Stamp, Traceroute, Stream ID, one that is unknown.
    let mutable = (prop::sample::select(vec![7u8, 68, 82, 136, 222]), random(1..10), random(10)).prop_map(
        |(kind, data, later)| {
            let mut piece = Piece::default();
            let len = data.len();
            piece.put(&[kind, 2 + len as u8], Byte::Shape).moved(&data, &later[..len], Byte::Mutable(0xff));
            (piece, None)
        },
    );
    let route = (any::<bool>(), prop::collection::vec(any::<[u8; 4]>(), 1..4), random(12), any::<[u8; 4]>())
        .prop_map(|(strict, mut hops, recorded, first)| {
            let mut piece = Piece::default();
            let len = 3 + 4 * hops.len();
            piece.put(&[if strict { 137 } else { 131 }, len as u8], Byte::Shape);
            piece.moved(&[4], &[len as u8 + 1], Byte::Mutable(0xff));
            piece.moved(hops.as_flattened(), &recorded[..len - 3], Byte::Mutable(0xff));
            let last = hops.pop().expect("one at least");
            (piece, Some([first, last]))
        });
    let nothing = Just({
        let mut piece = Piece::default();
        piece.put(&[1], COVERED);
        (piece, None)
    });
    prop_oneof![2 => immutable, 2 => mutable, 1 => route, 1 => nothing]
}

/// Headers of a packet between `ends` with `protocol` and `len` bytes behind them.
fn headers_v4() -> impl Strategy<Value = (Piece, u8)> {
    (prop::collection::vec(option_v4(), 0..3), any::<[u8; 6]>(), any::<bool>()).prop_map(
        |(all, noise, with_options)| {
            let (mut options, mut ends) = (Piece::default(), [[192, 0, 2, 2]; 2]);
            for (option, route) in all.iter().filter(|_| with_options) {
                let routed = route.is_some() && ends[0] != ends[1];
                if !routed && options.sent.len() + option.sent.len() <= 40 {
                    options.append(option);
                    ends = route.unwrap_or(ends);
                }
            }
            let padding = options.sent.len().wrapping_neg() % 4;
            options.put(&[0; 3][..padding], COVERED);
            let mut headers = Piece::default();
            headers
                .put(&[0x45 + (options.sent.len() / 4) as u8], COVERED)
                .moved(&noise[..1], &noise[1..2], Byte::Mutable(0xff))
                .put(&[0, 0], COVERED)
                .put(&noise[2..4], COVERED)
                // Reserved and don't-fragment; a fragment would be refused.
                .put(&[noise[4] & 0xc0], Byte::Mutable(0xc0))
                .put(&[0], COVERED)
                .moved(&[64], &[63], Byte::Mutable(0xff))
                .put(&[17], COVERED)
                .moved(&[0, 0], &noise[4..6], Byte::Mutable(0xff))
                .put(&[192, 0, 2, 1], COVERED)
                .moved(&ends[0], &ends[1], COVERED)
                .append(&options);
            (headers, 4)
        },
    )
}

/// A header of IPv6 options, and its number; the first byte is for the next one's.
fn options_v6() -> impl Strategy<Value = (Piece, u8)> {
    let option = (any::<u8>(), random(0..9), random(9));
    (any::<bool>(), prop::collection::vec(option, 0..4)).prop_map(|(first, all)| {
        let mut options = Piece::default();
        for (kind, data, later) in &all {
            let kind = (*kind).max(2);
            options.put(&[kind, data.len() as u8], COVERED);
            match kind & 0x20 {
                0 => options.put(data, COVERED),
                _ => options.moved(data, &later[..data.len()], Byte::Mutable(0xff)),
            };
        }
        // To whole words of eight bytes with the two in front.
        options.put(&[0; 7][..(options.sent.len() + 2).wrapping_neg() % 8], COVERED);
        let mut header = Piece::default();
        header.put(&[0, ((options.sent.len() + 2) / 8 - 1) as u8], COVERED).append(&options);
        (header, if first { 0 } else { 60 })
    })
}

fn headers_v6() -> impl Strategy<Value = (Piece, u8)> {
    let routing = prop::option::of(prop::collection::vec(any::<[u8; 16]>(), 1..3));
    (prop::collection::vec(options_v6(), 0..3), routing, any::<[u8; 16]>(), any::<[u8; 8]>()).prop_map(
        |(all, route, first, noise)| {
            let mut ends = [first; 2];
            let mut chain: Vec<(Piece, u8)> = Vec::new();
            // Each once (RFC 8200 4.1), destination options in front of AH only before a routing header.
            for (options, kind) in all {
                let in_order =
                    chain.is_empty() || kind == 60 && chain.iter().all(|&(_, before)| before != 60);
                let room = chain.iter().map(|(piece, _)| piece.sent.len()).sum::<usize>() < 40;
                if in_order && room && (kind == 0 || route.is_some()) {
                    chain.push((options, kind));
                }
            }
            if let Some(hops) = route {
                let mut header = Piece::default();
                let count = hops.len() as u8;
                header.put(&[0, 2 * count, 0], COVERED).moved(&[count], &[0], COVERED).put(&[0; 4], COVERED);
                // Each stop takes the place of the address it was reached by.
                let stops = [&[first], &hops[..hops.len() - 1]].concat();
                header.moved(hops.as_flattened(), stops.as_flattened(), COVERED);
                ends[1] = hops[hops.len() - 1];
                chain.push((header, 43));
            }
            let mut next = 17;
            for (header, kind) in chain.iter_mut().rev() {
                (header.sent[0], header.arrived[0]) = (next, next);
                next = *kind;
            }
            let mut headers = Piece::default();
            headers
                .moved(&[0x60 | noise[0] & 15], &[0x60 | noise[1] & 15], Byte::Mutable(0x0f))
                .moved(&noise[2..5], &noise[5..8], Byte::Mutable(0xff))
                .put(&[0, 0, next], COVERED)
                .moved(&[64], &[60], Byte::Mutable(0xff))
                .put(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], COVERED)
                .moved(&ends[0], &ends[1], COVERED);
            chain.iter().for_each(|(header, _)| _ = headers.append(header));
            (headers, 6)
        },
    )
}

/// Sets the length field for a packet of `len` bytes.
fn set_length(packet: &mut [u8], len: usize) {
    let (at, len) = if packet[0] >> 4 == 4 { (2, len) } else { (4, len - 40) };
    packet[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
}

fn settings() -> impl Strategy<Value = (&'static str, bool)> {
    let proposals = vec!["sha1", "sha256", "sha384", "sha512", "aes128gmac", "aes192gmac", "aes256gmac"];
    (prop::sample::select(proposals), any::<bool>())
}

/// A pair of gateways with one SA, far enough into its numbers for ESN to show.
fn pair(config: &SaConfig) -> (Gateway, Gateway) {
    let (mut sealer, mut opener) = (Gateway::default(), Gateway::default());
    let out = sealer.seals(config.clone(), keys(config.suite, 7));
    let into = opener.opens(other_end(config), keys(config.suite, 7));
    if config.esn {
        sealer.sad.continue_after(out, 5 << 32);
        opener.sad.continue_after(into, 5 << 32);
    }
    (sealer, opener)
}

/// Changes each byte of `arrived` in turn; what `bytes` does not reach is covered.
fn change_each_byte(
    config: &SaConfig,
    arrived: &[u8],
    bytes: &[Byte],
    opened: &[u8],
    flips: &[u8],
) -> Result<(), TestCaseError> {
    let (_, mut opener) = pair(&SaConfig { replay_window: 0, ..config.clone() });
    for at in 0..arrived.len() {
        let free = match bytes.get(at).copied().unwrap_or(COVERED) {
            Byte::Mutable(free) => free,
            Byte::Shape => {
                let mut changed = arrived.to_vec();
                changed[at] ^= flips[at % flips.len()] | 1;
                if let Ok(packet) = opener.pass(Direction::Open, &changed) {
                    prop_assert_eq!(packet.len(), opened.len());
                }
                continue;
            }
        };
        let flip = flips[at % flips.len()];
        let bit = 1 << (flip % 8);
        for (flip, passes) in [((flip | bit) & free, true), ((flip | bit) & !free, false)] {
            if flip != 0 {
                let mut changed = arrived.to_vec();
                changed[at] ^= flip;
                let outcome = opener.pass(Direction::Open, &changed);
                // A mark that comes out of a tunnel may be one to drop the packet for (RFC 6040 4.2).
                let verified = matches!(outcome, Ok(_) | Err(DropReason::InEcn));
                prop_assert_eq!(verified, passes, "byte {} by {:#x}: {:?}", at, flip, outcome);
                // What was refused has done no harm; and without a good packet between them, so many failures would
                // ask for resynchronisation.
                let again = opener.pass(Direction::Open, arrived);
                prop_assert_eq!(again.as_deref(), Ok(opened));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn transport((headers, family) in prop_oneof![headers_v4(), headers_v6()], payload in random(0..60),
                 (proposal, esn) in settings(), flips in random(61)) {
        let ends = if family == 4 { ["192.0.2.1", "192.0.2.2"] } else { ["2001:db8::1", "2001:db8::2"] };
        let config = SaConfig { esn, ..ah(proposal, Mode::Transport, 0x1001, ends) };
        let at = headers.sent.len();
        let mut plain = [&headers.sent[..], &payload].concat();
        let len = plain.len();
        set_length(&mut plain, len);
        let (mut sealer, mut opener) = pair(&config);
        let sealed = sealer.pass(Direction::Seal, &plain).expect("a packet to protect");
        // What was there still is, but for the lengths and what names AH.
        let ah_len = sealed.len() - plain.len();
        prop_assert_eq!(&sealed[at + ah_len..], &payload);
        prop_assert_eq!(ah_len, 4 * (usize::from(sealed[at + 1]) + 2));
        let mut arrived = [&headers.arrived[..], &sealed[at..]].concat();
        set_length(&mut arrived, sealed.len());
        for (byte, &sent) in sealed[..at].iter().enumerate() {
            // Next header, length, and IPv4's checksum.
            if headers.sent[byte] != sent {
                arrived[byte] = sent;
            }
        }
        let opened = opener.pass(Direction::Open, &arrived);
        prop_assert!(opened.is_ok(), "{:?}", opened);
        let opened = opened.expect("just looked at");
        prop_assert_eq!(&opened[at..], &payload);
        prop_assert_eq!(opened.len(), plain.len());
        prop_assert_eq!(opener.pass(Direction::Open, &arrived), Err(DropReason::InStateSeqError));
        change_each_byte(&config, &arrived, &headers.bytes, &opened, &flips)?;
    }

    #[test]
    fn tunnel((headers, _) in prop_oneof![headers_v4(), headers_v6()], payload in random(0..60), v6: bool,
              (proposal, esn) in settings(), flips in random(61)) {
        let ends = if v6 { ["2001:db8::1", "2001:db8::2"] } else { ["192.0.2.1", "192.0.2.2"] };
        let config = SaConfig { esn, ..ah(proposal, Mode::Tunnel, 0x1001, ends) };
        let mut plain = [&headers.sent[..], &payload].concat();
        let len = plain.len();
        set_length(&mut plain, len);
        let (mut sealer, mut opener) = pair(&config);
        let sealed = sealer.pass(Direction::Seal, &plain).expect("a packet to protect");
        // The inner packet is not touched at all.
        prop_assert_eq!(&sealed[sealed.len() - plain.len()..], &plain);
        let opened = opener.pass(Direction::Open, &sealed);
        prop_assert_eq!(opened.as_ref(), Ok(&plain));
        prop_assert_eq!(opener.pass(Direction::Open, &sealed), Err(DropReason::InStateSeqError));
        let mut outer = vec![COVERED; 40];
        let mutable: &[(usize, u8)] = match v6 {
            true => &[(0, 0x0f), (1, 0xff), (2, 0xff), (3, 0xff), (7, 0xff)],
            false => &[(1, 0xff), (6, 0xc0), (8, 0xff), (10, 0xff), (11, 0xff)],
        };
        mutable.iter().for_each(|&(at, bits)| outer[at] = Byte::Mutable(bits));
        change_each_byte(&config, &sealed, &outer, &plain, &flips)?;
    }
}
