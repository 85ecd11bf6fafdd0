//! A database with SAs of every kind in both directions, and packets for them: good, odd and damaged.

use std::net::IpAddr;

use forebay_crypto::{Direction, JobSpec, Packet, Verdict};
use forebay_ipsec::{
    DontFragment, DropReason, Dscp, Ecn, Encapsulation, FlowLabel, HopLimit, Ipsec, IvRange, Lifetime,
    Limits, Mode, Prepared, SaConfig, Spi, Tfc, TunnelRules,
};
use forebay_wire::Family;
use proptest::prelude::*;

/// One suite of each kind of layout: AEAD with ICVs of two lengths, chained, counter; covered by GMAC,
/// without IV, with short blocks, without ICV.
const SUITES: [&str; 8] = [
    "aes128gcm16",
    "aes256gcm8",
    "aes128-sha256",
    "aes128ctr-sha512",
    "aes128gmac",
    "null-sha256",
    "3des-md5",
    "aes256ctr",
];

/// How many SAs there are in each direction.
pub const SAS: usize = 128;

/// The settings of SA number `index`, as the sealer has them: it is the one for 10.`index`.0.0/16 and
/// 2001:db8:`index`::/48.
pub fn sealing(index: usize) -> SaConfig {
    let bit = |n: usize| index >> n & 1 == 1;
    let [local, remote]: [IpAddr; 2] = match bit(4) {
        false => ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()],
        true => ["2001:db8:ffff::1".parse().unwrap(), "2001:db8:ffff::2".parse().unwrap()],
    };
    let spi = Spi::new(0x1000 + index as u32).expect("not zero");
    let suite = SUITES[index >> 2 & 3 | index >> 4 & 4].parse().expect("a proposal");
    // Rarer settings are spread over the SAs by numbers that are prime to those of the bits.
    let hard = Limits { bytes: (index % 13 == 5).then_some(5_000), ..Limits::default() };
    let soft = Limits { packets: (index % 3 == 1).then_some(5), ..Limits::default() };
    SaConfig {
        tunnel: tunnel_rules(index),
        mtu: (index % 11 == 4).then_some(1_400),
        tfc: if index % 7 == 3 && !bit(1) { Tfc::PadTo(300) } else { Tfc::None },
        lifetime: Lifetime { soft, hard },
        mode: if bit(1) { Mode::Transport } else { Mode::Tunnel },
        esn: bit(5),
        replay_window: [64, 0][index & 1],
        encapsulation: if bit(0) { Encapsulation::Udp } else { Encapsulation::None },
        local_ts: vec![],
        remote_ts: vec![
            format!("10.{index}.0.0/16").parse().expect("a network"),
            format!("2001:db8:{index:x}::/48").parse().expect("a network"),
        ],
        ..SaConfig::new(&format!("sa-{index}"), spi, suite, local, remote)
    }
}

fn tunnel_rules(index: usize) -> TunnelRules {
    TunnelRules {
        dscp: if index % 5 == 2 { Dscp::Set(46) } else { Dscp::Copy },
        ecn: if index % 9 == 4 { Ecn::Compatibility } else { Ecn::Normal },
        dont_fragment: [DontFragment::Copy, DontFragment::Set, DontFragment::Clear][index % 3],
        flow_label: [
            FlowLabel::Zero,
            FlowLabel::Hash,
            FlowLabel::Copy,
            FlowLabel::Fixed(0x12345),
            FlowLabel::Zero,
        ][index % 5],
        hop_limit: if index % 7 == 1 { HopLimit::Copy } else { HopLimit::Fixed(64) },
        ..TunnelRules::default()
    }
}

/// The same SA as the opener has it.
pub fn opening(index: usize) -> SaConfig {
    let sealing = sealing(index);
    SaConfig {
        local: sealing.remote,
        remote: sealing.local,
        local_ts: sealing.remote_ts,
        remote_ts: sealing.local_ts,
        ..sealing
    }
}

/// All SAs, the inbound ones first.
pub fn database() -> Ipsec {
    let mut sad = Ipsec::default();
    for index in 0..SAS {
        sad.add_inbound(opening(index)).expect("settings without fault");
    }
    for index in 0..SAS {
        sad.add_outbound(sealing(index), IvRange::for_throwaway_key()).expect("settings without fault");
    }
    sad
}

/// A packet to protect, by its odds and ends.
#[derive(Clone, Debug)]
pub struct Plain {
    /// The SA whose addresses it has.
    pub sa: usize,
    pub family: Family,
    pub payload: usize,
    /// Words of IPv4 options, or IPv6 extension headers.
    pub extras: usize,
    pub fragment: bool,
    pub class: u8,
    /// What a link layer put behind it.
    pub padding: usize,
}

pub fn plain() -> impl Strategy<Value = Plain> {
    (
        0..SAS,
        any::<bool>(),
        prop_oneof![4 => 0usize..90, 1 => 500usize..1_500],
        prop_oneof![6 => Just(0usize), 1 => 0usize..4],
        prop::bool::weighted(0.05),
        any::<u8>(),
        prop_oneof![4 => Just(0usize), 1 => 0usize..50],
    )
        .prop_map(|(sa, v6, payload, extras, fragment, class, padding)| Plain {
            sa,
            family: if v6 { Family::V6 } else { Family::V4 },
            payload,
            extras,
            fragment,
            class,
            padding,
        })
}

impl Plain {
    pub fn bytes(&self) -> Vec<u8> {
        let mut packet = match self.family {
            Family::V4 => self.ipv4(),
            Family::V6 => self.ipv6(),
        };
        packet.extend((0..self.padding).map(|at| 0xe0 | at as u8));
        packet
    }

    fn ipv4(&self) -> Vec<u8> {
        let header_len = 20 + 4 * self.extras;
        let [high, low] = ((header_len + self.payload) as u16).to_be_bytes();
        let flags = [if self.fragment { 0x20 } else { self.class & 0x40 }, 0];
        let mut packet =
            vec![0x45 + self.extras as u8, self.class, high, low, 0, 0, flags[0], flags[1], 64, 253, 0, 0];
        packet.extend_from_slice(&[10, 255, 0, 1, 10, self.sa as u8, 0, 1]);
        packet.resize(header_len, 1);
        packet.extend((0..self.payload).map(|at| (at * 5) as u8));
        packet
    }

    fn ipv6(&self) -> Vec<u8> {
        let extensions = 8 * (self.extras + usize::from(self.fragment));
        let [high, low] = ((extensions + self.payload) as u16).to_be_bytes();
        let mut packet = vec![0x60 | self.class >> 4, self.class << 4, 0, 0, high, low, 253, 64];
        packet.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, self.sa as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let mut named_at = 6;
        for _ in 0..self.extras {
            packet[named_at] = 60;
            named_at = packet.len();
            packet.extend_from_slice(&[253, 0, 1, 4, 0, 0, 0, 0]);
        }
        if self.fragment {
            packet[named_at] = 44;
            packet.extend_from_slice(&[253, 0, 0, 1, 0, 0, 0, 9]);
        }
        packet.extend((0..self.payload).map(|at| (at * 5) as u8));
        packet
    }
}

/// A buffer with these bytes.
pub fn buffer(bytes: &[u8]) -> Packet {
    let mut packet = Packet::with_capacity(bytes.len().max(2_048));
    assert!(packet.fill(bytes));
    packet
}

/// Seals with a cipher that changes nothing and an ICV that is whatever stood there: the opener here
/// does not look.
pub fn seal(sad: &mut Ipsec, bytes: &[u8]) -> Result<Vec<u8>, DropReason> {
    let (mut packet, mut spec) = (buffer(bytes), JobSpec::default());
    assert_eq!(sad.prepare(Direction::Seal, &mut packet, &mut spec)?, Prepared::Job);
    sad.complete(&mut packet, &spec, Verdict::Done)?;
    Ok(packet.bytes().to_vec())
}

/// Something that befalls a packet on its way.
#[derive(Clone, Debug)]
pub enum Damage {
    Set {
        at: usize,
        to: u8,
    },
    Flip {
        at: usize,
        bit: u8,
    },
    Cut {
        len: usize,
    },
    Insert {
        at: usize,
        bytes: Vec<u8>,
    },
    Remove {
        at: usize,
        len: usize,
    },
    /// The length in the IP header.
    Length(u16),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    // Most of what is decided is decided in the first bytes.
    let at = || prop_oneof![3 => 0usize..64, 1 => 0usize..2_000];
    prop_oneof![
        4 => (at(), prop_oneof![any::<u8>(), prop::sample::select(vec![0u8, 1, 4, 17, 41, 43, 44, 50, 51, 59, 60, 255])])
            .prop_map(|(at, to)| Damage::Set { at, to }),
        4 => (at(), 0u8..8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        1 => at().prop_map(|len| Damage::Cut { len }),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
        1 => (at(), 1usize..40).prop_map(|(at, len)| Damage::Remove { at, len }),
        2 => prop_oneof![0u16..200, any::<u16>()].prop_map(Damage::Length),
    ]
}

impl Damage {
    pub fn apply(&self, packet: &mut Vec<u8>) {
        let len = packet.len();
        match *self {
            Damage::Set { at, to } if at < len => packet[at] = to,
            Damage::Flip { at, bit } if at < len => packet[at] ^= 1 << bit,
            Damage::Cut { len } => packet.truncate(len),
            Damage::Insert { at, ref bytes } if at <= len => {
                packet.splice(at..at, bytes.iter().copied());
            }
            Damage::Remove { at, len: removed } if at < len => {
                packet.drain(at..len.min(at + removed));
            }
            Damage::Length(to) if len >= 6 => {
                let at = if packet[0] >> 4 == 6 { 4 } else { 2 };
                packet[at..at + 2].copy_from_slice(&to.to_be_bytes());
            }
            _ => {}
        }
    }
}
