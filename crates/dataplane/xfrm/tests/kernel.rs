//! Messages of real kernels: read whole, and then changed in all sorts of ways, which must never do more than fail. Those
//! of Linux 6.1 were recorded by `tests/vm/mirror.py --record`, those of Linux 6.18 by `scripts/record_per_cpu.py`.

use std::net::Ipv4Addr;

use forebay_crypto::{Direction, SecretBytes};
use forebay_xfrm::{Event, Filter, Frames, Mark, Message, Refusal, SaId, State, decode};
use proptest::prelude::*;

const RECORDED: &[u8] = include_bytes!("data/kernel-6.1.netlink");
/// A policy that wants SAs per CPU, and an SA of CPU 1 that is being negotiated.
const PER_CPU: &[u8] = include_bytes!("data/kernel-6.18-per-cpu.netlink");

/// Of the recorded SAs and policies.
const MARK: Mark = Mark { value: 0x4642, mask: u32::MAX };

fn datagrams() -> Vec<&'static [u8]> {
    datagrams_of(RECORDED)
}

/// The datagrams, each with its length in front.
fn datagrams_of(recorded: &'static [u8]) -> Vec<&'static [u8]> {
    let mut rest = recorded;
    let mut datagrams = Vec::new();
    while let Some((len, behind)) = rest.split_first_chunk::<4>() {
        let (datagram, next) = behind.split_at(u32::from_le_bytes(*len) as usize);
        datagrams.push(datagram);
        rest = next;
    }
    datagrams
}

fn hear(state: &mut State, datagram: &[u8], events: &mut Vec<Event>) -> usize {
    let mut malformed = 0;
    for frame in Frames::new(datagram) {
        match frame.and_then(|frame| decode(&frame)) {
            Ok(message) => state.apply(message, events),
            Err(_) => malformed += 1,
        }
    }
    malformed
}

fn at_home() -> State {
    let mut state = State::new(Filter { mark: Some(MARK), ..Filter::default() });
    state.set_address(1, Ipv4Addr::new(192, 0, 2, 1).into(), true, &mut Vec::new());
    state
}

/// The message, in which an SA has a cipher key of its own: the recorded script gives the same to all, which are refused.
fn with_own_key(mut message: Message, names: &mut Vec<SaId>) -> Message {
    if let Message::SaAdded(sa) | Message::SaUpdated(sa) = &mut message {
        let known = names.iter().position(|name| *name == sa.id);
        let place = known.unwrap_or_else(|| {
            names.push(sa.id);
            names.len() - 1
        });
        for algorithm in [&mut sa.aead, &mut sa.cipher].into_iter().flatten() {
            let mut key = algorithm.key.expose().to_vec();
            if let Some(first) = key.first_mut() {
                *first = 1 + place as u8;
            }
            algorithm.key = SecretBytes::new(key);
        }
    }
    message
}

#[test]
fn a_real_kernel_is_understood() {
    let mut state = at_home();
    let mut events = Vec::new();
    let mut names = Vec::new();
    for datagram in datagrams() {
        for frame in Frames::new(datagram) {
            let message = frame.and_then(|frame| decode(&frame)).unwrap();
            state.apply(with_own_key(message, &mut names), &mut events);
        }
    }
    let suites: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::SaAdded(sa) => Some(sa.config.suite.to_string()),
            _ => None,
        })
        .collect();
    let expected = [
        "aes128gcm16",
        "aes128gcm16",
        "aes192gcm12",
        "aes256gcm8",
        "aes128ccm16",
        "aes128gmac",
        "chacha20poly1305",
        "aes128-sha256",
        "aes256-sha384",
        "aes192-sha512",
        "aes128-sha1",
        "aes128ctr-aesxcbc",
        "3des-aescmac",
        // The one with an interface ID is not asked for.
        "null-sha256",
    ];
    assert_eq!(suites, expected);
    // The keys of the script that was recorded.
    for event in &events {
        let Event::SaAdded(sa) = event else { continue };
        assert_eq!(sa.direction, Direction::Open);
        assert!(sa.keys.integrity().iter().all(|&byte| byte == 0x2b));
        let cipher = sa.keys.cipher();
        assert!(
            cipher.iter().skip(1).all(|&byte| byte == 0x1a)
                || cipher[1..] == [[0x1a; 8], [0x2c; 8], [0x3d; 8]].as_flattened()[1..]
        );
        assert!(sa.keys.salt().iter().all(|&byte| byte == 0x1a));
    }
    let count = |what: fn(&Event) -> bool| events.iter().filter(|event| what(event)).count();
    assert_eq!(count(|event| matches!(event, Event::SaDeleted(_))), 14);
    assert_eq!(count(|event| matches!(event, Event::SasFlushed)), 1);
    assert_eq!(count(|event| matches!(event, Event::PolicyAdded(_))), 1);
    // The one with two templates.
    assert_eq!(count(|event| matches!(event, Event::PolicyRefused { reason: Refusal::Templates(2), .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::PolicyDeleted(_))), 2);
    let shown = format!("{events:?}{state:?}");
    for key in ["1a1a", "2b2b", "26, 26", "43, 43"] {
        assert!(!shown.contains(key), "a key is shown");
    }
}

#[test]
fn the_cpu_of_an_sa_and_the_wish_of_a_policy_are_read() {
    let messages = datagrams_of(PER_CPU).into_iter().flat_map(Frames::new);
    let messages: Vec<Message> = messages.map(|frame| decode(&frame.unwrap()).unwrap()).collect();
    let [Message::Policy(policy), Message::SaAdded(sa)] = &messages[..] else { panic!("{messages:?}") };
    assert!(policy.per_cpu && policy.templates.len() == 1);
    assert_eq!((sa.id.spi, sa.cpu, sa.is_larval()), (0x1001, Some(1), true));
    // Linux 6.1 knows neither.
    for datagram in datagrams() {
        for frame in Frames::new(datagram) {
            match decode(&frame.unwrap()).unwrap() {
                Message::SaAdded(sa) | Message::SaUpdated(sa) => assert_eq!(sa.cpu, None),
                Message::Policy(policy) => assert!(!policy.per_cpu),
                _ => {}
            }
        }
    }
}

#[test]
fn expiries_and_encapsulation_are_read() {
    let messages: Vec<Message> = datagrams()
        .into_iter()
        .flat_map(|datagram| {
            Frames::new(datagram).map(|frame| decode(&frame.unwrap()).unwrap()).collect::<Vec<_>>()
        })
        .collect();
    let expired: Vec<bool> = messages
        .iter()
        .filter_map(|message| match message {
            Message::SaExpired { id, hard } if id.spi == 0x3000 && id.destination.is_ipv6() => Some(*hard),
            _ => None,
        })
        .collect();
    assert_eq!(expired, [false, true]);
    let encap = messages.iter().find_map(|message| match message {
        Message::SaAdded(sa) if sa.id.spi == 0x3000 => sa.encap,
        _ => None,
    });
    assert_eq!(encap.map(|encap| (encap.source_port, encap.destination_port)), Some((4500, 31234)));
    assert!(messages.iter().any(|message| matches!(message, Message::SaAdded(sa) if sa.if_id == 9)));
    assert!(
        messages
            .iter()
            .any(|message| matches!(message, Message::SaAdded(sa) if sa.sequence.bitmap_words == Some(2)))
    );
}

/// One change of a datagram.
#[derive(Clone, Debug)]
enum Change {
    Byte(prop::sample::Index, u8),
    /// Small numbers where lengths are.
    Half(prop::sample::Index, u16),
    Cut(prop::sample::Index),
    /// The end of another one behind the beginning of this.
    Splice(prop::sample::Index, prop::sample::Index, prop::sample::Index),
}

fn change() -> impl Strategy<Value = Change> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (index(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        6 => (index(), prop_oneof![0..300u16, any::<u16>()]).prop_map(|(at, half)| Change::Half(at, half)),
        1 => index().prop_map(Change::Cut),
        2 => (index(), index(), index()).prop_map(|(at, other, from)| Change::Splice(at, other, from)),
    ]
}

fn changed(datagram: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    for change in changes {
        if bytes.is_empty() {
            break;
        }
        match change {
            Change::Byte(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Change::Half(at, half) => {
                // Where a length of a message or an attribute may stand.
                let at = at.index(bytes.len()) & !3;
                for (byte, new) in bytes[at..].iter_mut().zip(half.to_ne_bytes()) {
                    *byte = new;
                }
            }
            Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Change::Splice(at, other, from) => {
                bytes.truncate(at.index(bytes.len()));
                let all = datagrams();
                let other = all[other.index(all.len())];
                bytes.extend_from_slice(&other[from.index(other.len())..]);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn changed_messages_never_do_more_than_fail(
        picked in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(change(), 0..8)), 1..6),
    ) {
        let all = datagrams();
        let mut state = at_home();
        let mut events = Vec::new();
        for (which, changes) in &picked {
            hear(&mut state, &changed(all[which.index(all.len())], changes), &mut events);
        }
        state.begin_dump();
        state.end_policies(&mut events);
        state.end_sas(&mut events);
    }

    #[test]
    fn noise_never_does_more_than_fail(bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0x10..0x28u16) {
        let mut whole = bytes;
        if whole.len() >= 16 {
            let len = whole.len() as u32;
            whole[..4].copy_from_slice(&len.to_ne_bytes());
            whole[4..6].copy_from_slice(&kind.to_ne_bytes());
        }
        hear(&mut at_home(), &whole, &mut Vec::new());
    }
}
