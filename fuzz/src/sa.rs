//! ESP and AH, one SA and several one inside the other, with the real cipher in the middle.

use std::net::IpAddr;

use forebay_crypto::Direction;
use forebay_ipsec::{DropReason, Encapsulation, Mode, Protocol, SaConfig};
use forebay_wire::{Fragment, Ip, ah, ipv4, ipv6, nat, protocol};

use crate::bench::{Bench, on_bench};
use crate::kind::{Kind, other_end};

const SPI: u32 = 0x1001;
/// Longest input that is tried, in bytes; the longest packets have their own tests.
const INPUT_MAX: usize = 4_096;

/// Opens what `data` says behind the four bytes that say for what SA of ESP: a packet off the wire, one whose ICV
/// the owner of the keys has made, just the text of such a one, or that without the ICV.
pub fn esp_open(data: &[u8]) {
    open(data, |kind| kind.esp(SPI));
}

/// The same with AH.
pub fn ah_open(data: &[u8]) {
    open(data, |kind| kind.ah(SPI));
}

/// Seals the packet behind the first four bytes of `data`, which say with what SA of ESP; what was sealed must
/// open to the packet.
pub fn esp_seal(data: &[u8]) {
    seal(data, |kind| kind.esp(SPI));
}

/// The same with AH.
pub fn ah_seal(data: &[u8]) {
    seal(data, |kind| kind.ah(SPI));
}

fn open(data: &[u8], config: impl Fn(Kind) -> SaConfig) {
    let Some((kind, data)) = Kind::take(data).filter(|(_, data)| data.len() <= INPUT_MAX) else { return };
    let config = other_end(&config(kind));
    on_bench(|bench| {
        bench.far.add(Direction::Open, config.clone(), kind.start());
        let mode = kind.0[1] >> 6;
        let packet = match mode {
            0 | 1 => data.to_vec(),
            _ => around(&config, kind, kind.start().wrapping_add(1) as u32, data),
        };
        if matches!(mode, 0 | 3) {
            let outcome = bench.open(&packet);
            let authentic = config.suite.icv_len() > 0;
            assert!(!authentic || outcome.result.is_err(), "nobody forges an ICV by chance");
            return;
        }
        deliver_twice(bench, &config, &packet);
    });
}

/// Opens `packet` with a good ICV twice; the second must be refused.
///
/// With an extended sequence number the ICV is made for the number that the receiver infers. Where a packet within it goes
/// through the SA too, that may have moved the window on by 2^32: then it is another packet the second time.
fn deliver_twice(bench: &mut Bench, config: &SaConfig, packet: &[u8]) {
    let jobs = bench.open_forged(packet).jobs;
    if config.replay_window > 0 && (jobs == 1 || (jobs > 1 && !config.esn)) {
        let again = bench.open_forged(packet).result;
        let refused = matches!(again, Err(DropReason::InStateSeqError | DropReason::InStateExpired));
        assert!(refused, "a replay: {again:?}");
    }
}

fn seal(data: &[u8], config: impl Fn(Kind) -> SaConfig) {
    let Some((kind, plain)) = Kind::take(data).filter(|(_, data)| data.len() <= INPUT_MAX) else { return };
    let config = config(kind);
    on_bench(|bench| {
        bench.near.add(Direction::Seal, config.clone(), kind.start());
        let Ok(sealed) = bench.seal(plain).result else { return };
        let far = other_end(&config);
        bench.far.add(Direction::Open, far.clone(), kind.start());
        if come_back(bench, plain, &sealed, &[config]) && far.replay_window > 0 {
            let again = bench.open(&sealed).result;
            let refused = matches!(again, Err(DropReason::InStateSeqError | DropReason::InStateExpired));
            assert!(refused, "a replay: {again:?}");
        }
    });
}

/// Opens what was sealed by these SAs; it must be the packet again. `false` if it does not open for a good reason.
fn come_back(bench: &mut Bench, plain: &[u8], sealed: &[u8], sas: &[SaConfig]) -> bool {
    let plain = Ip::parse(plain).expect("only IP packets are sealed");
    let ah = sas.iter().any(|sa| sa.protocol == Protocol::Ah && sa.mode == Mode::Transport);
    let outcome = bench.open(sealed);
    // A packet that is ESP or AH of this gateway itself goes on, to whatever end.
    if outcome.through > sas.len() || (outcome.again && outcome.through == sas.len()) {
        return true;
    }
    // What comes out of an SA is looked at again only if it is addressed to the gateway itself, which a packet of
    // others in transport mode is not.
    if outcome.through < sas.len() && outcome.result.is_ok() {
        assert!(sas[..sas.len() - outcome.through].iter().any(|sa| sa.mode == Mode::Transport));
        return true;
    }
    let opened = match outcome.result {
        // A packet with next header 59 in transport mode is as good as a dummy packet.
        Err(DropReason::InDummy) => return true,
        // AH's ICV is computed for the end of a source route, which this packet has not reached.
        Err(DropReason::InHdrError | DropReason::InStateProtoError) if ah && may_have_a_route(&plain) => {
            return false;
        }
        other => other.unwrap_or_else(|reason| panic!("what was sealed does not open: {reason}")),
    };
    // AH takes the fragment headers of whole packets out.
    if ah && matches!(plain, Ip::V6(_)) && !matches!(Fragment::find(&plain), Ok(None)) {
        return true;
    }
    let (mut opened, mut plain) = (opened, plain.bytes().to_vec());
    assert_eq!(opened.len(), plain.len());
    // Behind a NAT, transport mode computes the sums inside anew, those that were wrong too.
    if sas.iter().any(|sa| sa.mode == Mode::Transport && sa.encapsulation == Encapsulation::Udp) {
        nat::repair_checksum(&mut opened, None);
        nat::repair_checksum(&mut plain, None);
    }
    // Transport mode writes the checksum of IPv4 headers anew.
    let checksum = if plain[0] >> 4 == 4 { 10..12 } else { 0..0 };
    for (at, (opened, plain)) in opened.iter().zip(&plain).enumerate() {
        assert!(opened == plain || checksum.contains(&at), "byte {at}");
    }
    true
}

/// Whether a packet has IPv4 options or IPv6 extension headers.
fn may_have_a_route(ip: &Ip<'_>) -> bool {
    match ip {
        Ip::V4(ip) => ip.header_len() > ipv4::MIN_HEADER,
        Ip::V6(ip) => ip.transport_place().is_ok_and(|place| place.at > ipv6::HEADER),
    }
}

/// SAs one inside the other: two or three, of both protocols. The first byte says how many, which protocols and
/// whether the rest is a packet to seal or one to open with a good ICV in every SA; then four bytes for each SA.
pub fn nested(data: &[u8]) {
    let [shape, data @ ..] = data else { return };
    let bit = |n: usize| shape >> n & 1 == 1;
    let count = if bit(0) { 3 } else { 2 };
    let (mut configs, mut starts, mut rest) = (vec![], vec![], data);
    for n in 0..count {
        let Some((Kind([suite, flags, rules, numbers]), behind)) = Kind::take(rest) else { return };
        rest = behind;
        // Any traffic, one family outside, no limits: those are the other targets' business. ESP in UDP is
        // looked for outermost only.
        let udp = if n == count - 1 { 2 } else { 0 };
        let family = data[1] & 4;
        let kind = Kind([suite, flags & (0b1001 | udp) | family, rules, numbers & 0x4f]);
        let spi = SPI + n as u32;
        configs.push(if bit(1 + n) { kind.ah(spi) } else { kind.esp(spi) });
        starts.push(kind.start());
    }
    if rest.len() > INPUT_MAX {
        return;
    }
    on_bench(|bench| {
        let add = |bench: &mut Bench, direction| {
            let gateway = if direction == Direction::Seal { &mut bench.near } else { &mut bench.far };
            let mut inner = None;
            for (config, &start) in configs.iter().zip(&starts) {
                let config = if direction == Direction::Seal { config.clone() } else { other_end(config) };
                let session = gateway.add(direction, config, start);
                if let Some(inner) = inner.replace(session) {
                    gateway.sad.nest(inner, session).expect("SAs of one direction");
                }
            }
        };
        add(bench, Direction::Open);
        if bit(7) {
            let outcome = bench.open_forged(rest);
            assert!(outcome.through <= forebay_ipsec::NEST_MAX);
            return;
        }
        add(bench, Direction::Seal);
        let Ok(sealed) = bench.seal(rest).result else { return };
        come_back(bench, rest, &sealed, &configs);
    });
}

/// What a peer that has the keys may send on an inbound SA: any text, trailer included, still to be enciphered.
fn around(config: &SaConfig, kind: Kind, sequence: u32, text: &[u8]) -> Vec<u8> {
    let (suite, spi) = (config.suite, config.spi.get());
    let mut payload = vec![];
    let protocol = if config.protocol == Protocol::Ah {
        let (next_header, text) = text.split_first().unwrap_or((&4, &[]));
        let family = forebay_wire::Family::of(config.local);
        payload.resize(ah::Header::len(family, suite.iv_len() + suite.icv_len()), 0);
        ah::Header { next_header: *next_header, spi, sequence }.write(&mut payload);
        payload.extend_from_slice(text);
        protocol::AH
    } else {
        let text = &text[..text.len() - text.len() % suite.align()];
        if config.encapsulation == Encapsulation::Udp {
            let len = 8 + 8 + suite.iv_len() + text.len() + suite.icv_len();
            let [high, low] = (len as u16).to_be_bytes();
            payload.extend_from_slice(&[0x11, 0x94, 0x11, 0x94, high, low, 0, 0]);
        }
        payload.extend_from_slice(&spi.to_be_bytes());
        payload.extend_from_slice(&sequence.to_be_bytes());
        payload.resize(payload.len() + suite.iv_len(), 1);
        payload.extend_from_slice(text);
        payload.resize(payload.len() + suite.icv_len(), 0);
        if config.encapsulation == Encapsulation::Udp { protocol::UDP } else { protocol::ESP }
    };
    // Marked for congestion, or not.
    let class = kind.0[2] & 3;
    let mut packet = match (config.remote, config.local) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [high, low] = ((ipv4::MIN_HEADER + payload.len()) as u16).to_be_bytes();
            let fixed = [0x45, class, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
            [&fixed[..], &from.octets(), &to.octets()].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let [high, low] = (payload.len() as u16).to_be_bytes();
            [&[0x60, class << 4, 0, 0, high, low, protocol, 64][..], &from.octets(), &to.octets()].concat()
        }
        _ => unreachable!("ends of one family"),
    };
    packet.extend_from_slice(&payload);
    packet
}

/// IP-TFS from end to end: payloads of a peer who has the keys and means no good.
pub fn iptfs(data: &[u8]) {
    let Some((kind, data)) = Kind::take(data).filter(|(_, data)| data.len() <= INPUT_MAX) else { return };
    let config = other_end(&kind.iptfs(SPI));
    on_bench(|bench| {
        let session = bench.far.add(Direction::Open, config.clone(), kind.start());
        let (mut sequence, mut sent, mut out) = (kind.start(), 0, 0);
        let now = bench.now();
        for (step, payload) in crate::stream::pieces(data) {
            // Mostly the next number; some back, some ahead.
            sequence = sequence.wrapping_add(1 + u64::from(step >> 4)).saturating_sub((step & 15).into());
            let mut text = payload.to_vec();
            let pad = (text.len() + 2).wrapping_neg() % config.suite.align();
            text.extend((1..=pad as u8).chain([pad as u8, protocol::AGGFRAG]));
            sent += payload.len();
            let outcome = bench.open_forged(&around(&config, kind, sequence as u32, &text));
            if let Some(session) = outcome.unpack {
                let taken = bench.far.take_inner(now, session);
                out += taken.iter().map(Vec::len).sum::<usize>();
            }
        }
        // What waits for something that will not come is given up.
        let later = now + config.iptfs.as_ref().expect("it aggregates").lost_after;
        while let Some(session) = bench.far.sad.poll_inner(later) {
            out += bench.far.take_inner(later, session).iter().map(Vec::len).sum::<usize>();
        }
        assert!(out <= sent, "{out} bytes from {sent}");
        assert!(bench.far.sad.iptfs_counters(session).is_some());
    });
}
