//! Requests to the kernel, and through it to the IKE daemon.

use std::net::IpAddr;

use crate::abi::{attribute, family, len, message, route};
use crate::kernel::{KernelPolicy, KernelSa, Mark};
use forebay_netlink::{Builder, DUMP, REPLACE};

/// What Forebay has done with an SA since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// When its first packet came, in seconds since 1970, if any has.
    pub first_use_s: Option<u64>,
    /// The highest sequence number: sent, or set aside for sending; or received.
    pub sequence: Option<u64>,
}

/// Asks for all SAs.
pub fn dump_sas(sequence: u32) -> Vec<u8> {
    Builder::new(message::GET_SA, DUMP, sequence, &[]).finish()
}

/// Asks for all policies.
pub fn dump_policies(sequence: u32) -> Vec<u8> {
    Builder::new(message::GET_POLICY, DUMP, sequence, &[]).finish()
}

/// Asks for all addresses of this machine.
pub fn dump_addresses(sequence: u32) -> Vec<u8> {
    Builder::new(route::GET_ADDRESS, DUMP, sequence, &[0; route::HEADER]).finish()
}

/// Tells counters and sequence number of an SA (`XFRM_MSG_NEWAE`). The kernel takes the times as well, so the real
/// ones go with them.
pub fn report(sequence: u32, sa: &KernelSa, seals: bool, done: &Done) -> Vec<u8> {
    let mut fixed = [0; len::AE_ID];
    put_id(&mut fixed, 0, sa);
    fixed[20..22].copy_from_slice(&family_of(sa.id.destination).to_ne_bytes());
    fixed[22] = sa.id.protocol;
    put_address(&mut fixed, 24, sa.source);
    fixed[44..48].copy_from_slice(&sa.reqid.to_ne_bytes());

    let used = if sa.usage.used_s == 0 { done.first_use_s.unwrap_or(0) } else { sa.usage.used_s };
    let counts = [
        sa.usage.bytes.saturating_add(done.bytes),
        sa.usage.packets.saturating_add(done.packets),
        sa.usage.added_s,
        used,
    ];
    let counts: Vec<u8> = counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
    let message =
        Builder::new(message::NEW_AE, REPLACE, sequence, &fixed).attribute(attribute::LIFETIME_VAL, &counts);
    let message = match done.sequence {
        Some(number) => replay(message, sa, seals, number),
        None => message,
    };
    marked(message, sa.id.mark).finish()
}

/// Sequence numbers in the form that the kernel keeps for this SA. The bitmap stays empty: only Forebay's own window
/// records which packets up to the number have arrived.
fn replay(message: Builder, sa: &KernelSa, seals: bool, number: u64) -> Builder {
    let (sent, received) = if seals { (number, sa.sequence.received) } else { (sa.sequence.sent, number) };
    let low = |number: u64| number as u32;
    let high = |number: u64| (number >> 32) as u32;
    match sa.sequence.bitmap_words {
        None => {
            let words = [low(sent), low(received), 0];
            message.attribute(attribute::REPLAY_VAL, &in_bytes(&words))
        }
        Some(bitmap) => {
            let mut words =
                vec![bitmap, low(sent), low(received), high(sent), high(received), sa.replay_window];
            words.resize(words.len() + bitmap.min(1024) as usize, 0);
            message.attribute(attribute::REPLAY_ESN_VAL, &in_bytes(&words))
        }
    }
}

fn in_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Says that a lifetime has ended (`XFRM_MSG_EXPIRE`); with a hard one the kernel deletes the SA.
pub fn expire(sequence: u32, sa: &KernelSa, hard: bool) -> Vec<u8> {
    let mut fixed = [0; len::EXPIRE];
    put_id(&mut fixed, 56, sa);
    fixed[76] = sa.id.protocol;
    put_address(&mut fixed, 80, sa.source);
    fixed[208..212].copy_from_slice(&sa.reqid.to_ne_bytes());
    fixed[212..214].copy_from_slice(&family_of(sa.id.destination).to_ne_bytes());
    fixed[214] = sa.mode;
    fixed[len::SA_INFO] = hard.into();
    marked(Builder::new(message::EXPIRE, 0, sequence, &fixed), sa.id.mark).finish()
}

/// A packet that wants an SA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its source.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Its protocol.
    pub protocol: u8,
    /// Ports, source and destination; zero where it has none.
    pub ports: (u16, u16),
}

/// Asks for an SA for a packet (`XFRM_MSG_ACQUIRE`), one of its own for CPU number `cpu` if that is said; `None` if the
/// policy wants none.
pub fn acquire(sequence: u32, policy: &KernelPolicy, flow: &Flow, cpu: Option<u32>) -> Option<Vec<u8>> {
    let template = policy.templates.first()?;
    let said = |wanted: IpAddr, of_packet: IpAddr| if wanted.is_unspecified() { of_packet } else { wanted };
    let mut fixed = [0; len::ACQUIRE];
    put_address(&mut fixed, 0, said(template.destination, flow.destination));
    fixed[20] = template.protocol;
    put_address(&mut fixed, 24, said(template.source, flow.source));

    let selector = &mut fixed[40..96];
    put_address(selector, 0, flow.destination);
    put_address(selector, 16, flow.source);
    let port_mask = if flow.ports == (0, 0) { 0 } else { u16::MAX };
    for (at, number) in [(32, flow.ports.1), (34, port_mask), (36, flow.ports.0), (38, port_mask)] {
        selector[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }
    let bits = if flow.destination.is_ipv4() { 32 } else { 128 };
    selector[40..42].copy_from_slice(&family_of(flow.destination).to_ne_bytes());
    selector[42..44].fill(bits);
    selector[44] = flow.protocol;

    fixed[96..96 + len::POLICY_INFO].copy_from_slice(&policy.info);
    fixed[264..276].fill(0xff); // any algorithm
    let message = Builder::new(message::ACQUIRE, 0, sequence, &fixed)
        .attribute(attribute::TEMPLATES, &policy.raw_templates);
    let mut message = marked(message, policy.mark);
    if policy.if_id != 0 {
        message = message.attribute(attribute::IF_ID, &policy.if_id.to_ne_bytes());
    }
    if let Some(cpu) = cpu {
        message = message.attribute(attribute::SA_CPU, &cpu.to_ne_bytes());
    }
    Some(message.finish())
}

fn family_of(address: IpAddr) -> u16 {
    if address.is_ipv4() { family::INET } else { family::INET6 }
}

fn put_address(bytes: &mut [u8], at: usize, address: IpAddr) {
    match address {
        IpAddr::V4(address) => bytes[at..at + 4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
    }
}

/// Destination and SPI as in `struct xfrm_id` and `struct xfrm_usersa_id`.
fn put_id(bytes: &mut [u8], at: usize, sa: &KernelSa) {
    put_address(bytes, at, sa.id.destination);
    bytes[at + 16..at + 20].copy_from_slice(&sa.id.spi.to_be_bytes());
}

fn marked(message: Builder, mark: Mark) -> Builder {
    if mark == Mark::default() {
        return message;
    }
    message.attribute(attribute::MARK, &in_bytes(&[mark.value, mark.mask]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;
    use crate::kernel::Message;
    use forebay_netlink::{Attributes, Frames};

    /// The policy that a kernel gave, see `tests/kernel.rs`.
    fn policy() -> KernelPolicy {
        let recorded = include_bytes!("../tests/data/kernel-6.18-per-cpu.netlink");
        let frame = Frames::new(&recorded[4..]).next().unwrap().unwrap();
        match decode(&frame).unwrap() {
            Message::Policy(policy) => *policy,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_acquire_names_the_cpu_if_one_is_said() {
        let address = |last: u8| IpAddr::from([10, 1, 0, last]);
        let flow = Flow { source: address(1), destination: address(2), protocol: 17, ports: (1, 2) };
        for cpu in [None, Some(3)] {
            let bytes = acquire(7, &policy(), &flow, cpu).unwrap();
            let frame = Frames::new(&bytes).next().unwrap().unwrap();
            assert_eq!((frame.kind, frame.body.len() >= len::ACQUIRE), (message::ACQUIRE, true));
            let attributes = Attributes::behind(frame.body, len::ACQUIRE).map(Result::unwrap);
            let said: Vec<_> = attributes.filter(|(kind, _)| *kind == attribute::SA_CPU).collect();
            match cpu {
                // `XFRMA_SA_PCPU`, four bytes in the byte order of the machine.
                Some(cpu) => assert_eq!(said, [(35, &cpu.to_ne_bytes()[..])]),
                None => assert!(said.is_empty()),
            }
        }
    }
}
