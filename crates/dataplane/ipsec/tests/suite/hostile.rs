//! Whatever comes in: no panic, no span outside of the packet, no job that breaks the rules of
//! processors, and nothing delivered that is not an IP packet.

use crate::support::{Damage, SAS, buffer, damage, database, plain, seal, sealing};
use forebay_crypto::{Direction, JobSpec, Layout, Packet, Span, Verdict};
use forebay_ipsec::{DropReason, Ipsec};
use forebay_wire::Ip;
use proptest::prelude::*;

const DIRECTIONS: [Direction; 2] = [Direction::Seal, Direction::Open];

/// Takes `bytes` through both steps; the processor between them writes `text` over what it works on.
fn pass(
    sad: &mut Ipsec,
    direction: Direction,
    bytes: &[u8],
    verdict: Verdict,
    text: &[u8],
) -> Result<Result<Packet, DropReason>, TestCaseError> {
    let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
    if let Err(reason) = sad.prepare(direction, &mut packet, &mut spec) {
        // What is left out is padding behind the packet, if that.
        prop_assert!(bytes.starts_with(packet.bytes()), "{} harms the packet", reason);
        return Ok(Err(reason));
    }
    let suite = sealing(spec.session.0 as usize % SAS).suite;
    let size = packet.buffer().len();
    prop_assert!(
        Layout::check(&spec, suite, direction, size).is_some(),
        "{} {:?} {:?}",
        suite,
        direction,
        spec
    );
    let inside = packet.offset()..packet.offset() + packet.len();
    let field = |start: u32, len: usize| Span { start, len: len as u32 };
    for span in [spec.cipher, spec.auth, field(spec.iv, suite.iv_len()), field(spec.icv, suite.icv_len())] {
        prop_assert!(
            inside.start <= span.range().start && span.end() <= inside.end,
            "{:?} in {:?}",
            span,
            inside
        );
    }
    let room = &mut packet.buffer_mut()[spec.cipher.range()];
    // From its end: the trailer decides most.
    let len = room.len().min(text.len());
    let at = room.len() - len;
    room[at..].copy_from_slice(&text[..len]);
    let completed = sad.complete(&mut packet, &spec, verdict);
    prop_assert!(completed.is_err() || verdict == Verdict::Done);
    Ok(completed.map(|_| packet))
}

/// As `pass`, and what is delivered is an IP packet from its first to its last byte.
fn deliver(
    sad: &mut Ipsec,
    direction: Direction,
    bytes: &[u8],
    verdict: Verdict,
    text: &[u8],
) -> Result<bool, TestCaseError> {
    let Ok(packet) = pass(sad, direction, bytes, verdict, text)? else { return Ok(false) };
    let whole = Ip::parse(packet.bytes()).map(|ip| ip.bytes().len());
    prop_assert_eq!(whole, Ok(packet.len()));
    Ok(true)
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        5 => Just(Verdict::Done),
        1 => Just(Verdict::AuthFailed),
        1 => Just(Verdict::Failed),
        1 => Just(Verdict::Pending),
    ]
}

/// Deciphered text: nothing new, anything, or anything with a trailer that is likely.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => Just(vec![]),
        1 => prop::collection::vec(any::<u8>(), 0..300),
        2 => (prop::collection::vec(any::<u8>(), 0..100), 0u8..40, prop::sample::select(vec![4u8, 6, 17, 41, 50, 59]))
            .prop_map(|(mut text, padding, next)| { text.extend([padding, next]); text }),
    ]
}

/// Bytes with an IP header in front that is about right.
fn headed() -> impl Strategy<Value = Vec<u8>> {
    let protocol = prop::sample::select(vec![0u8, 4, 6, 17, 41, 43, 44, 50, 51, 59, 60, 253]);
    (any::<bool>(), protocol, prop::collection::vec(any::<u8>(), 0..120), 0u32..80).prop_map(
        |(v6, protocol, mut payload, spi)| {
            // Ports and SPI where they would be, so that the bytes behind are looked at.
            let spi = (0x1000 + spi).to_be_bytes();
            let front: Vec<u8> = match protocol {
                17 => [&[0x11, 0x94, 0x11, 0x94, 0, 12 + payload.len() as u8, 0, 0], &spi[..]].concat(),
                50 => spi.to_vec(),
                _ => vec![],
            };
            payload.splice(0..0, front);
            let [high, low] = ((payload.len() + if v6 { 0 } else { 20 }) as u16).to_be_bytes();
            let mut header = match v6 {
                false => vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2],
                true => {
                    let mut header = vec![0x60, 0, 0, 0, high, low, protocol, 64];
                    header.extend([0x20, 1, 0x0d, 0xb8, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
                    header.extend([0x20, 1, 0x0d, 0xb8, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
                    header
                }
            };
            header.extend(payload);
            header
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn anything_at_all(
        packets in prop::collection::vec((prop_oneof![prop::collection::vec(any::<u8>(), 0..200), headed()], verdict(), text()), 1..40),
    ) {
        let mut sad = database();
        for (bytes, verdict, text) in &packets {
            for direction in DIRECTIONS {
                deliver(&mut sad, direction, bytes, *verdict, text)?;
            }
        }
    }

    #[test]
    fn good_packets_damaged_on_their_way(
        packets in prop::collection::vec(
            (plain(), prop::collection::vec(damage(), 0..4), prop::collection::vec(damage(), 0..4), verdict(), text()), 1..40),
    ) {
        let mut sad = database();
        for (plain, before, behind, verdict, text) in &packets {
            let mut bytes = plain.bytes();
            before.iter().for_each(|damage: &Damage| damage.apply(&mut bytes));
            deliver(&mut sad, Direction::Seal, &bytes, *verdict, &[])?;
            if let Ok(mut sealed) = seal(&mut sad, &plain.bytes()) {
                behind.iter().for_each(|damage| damage.apply(&mut sealed));
                // Twice: a replay is as hostile as anything.
                deliver(&mut sad, Direction::Open, &sealed, *verdict, text)?;
                deliver(&mut sad, Direction::Open, &sealed, *verdict, text)?;
            }
        }
    }

    /// That the above is about packets that pass, too, and not only about refusals.
    #[test]
    fn good_packets_come_through(plain in plain()) {
        let mut sad = database();
        let sealed = seal(&mut sad, &plain.bytes());
        match sealed {
            Ok(sealed) => {
                prop_assert!(deliver(&mut sad, Direction::Open, &sealed, Verdict::Done, &[])?);
            }
            Err(DropReason::OutFragment) => prop_assert!(plain.fragment),
            Err(DropReason::OutPathMtu) => prop_assert!(plain.payload > 1_200),
            // All that such an SA may ever seal.
            Err(DropReason::OutStateExpired) => prop_assert!(plain.bytes().len() > 5_000),
            Err(reason) => prop_assert!(false, "{}", reason),
        }
    }
}
