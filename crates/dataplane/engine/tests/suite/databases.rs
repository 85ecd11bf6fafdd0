//! What is said to an engine about SAs, policies and paths is done by its databases.

use std::net::{IpAddr, Ipv4Addr};

use crate::pair;

use forebay_crypto::{Direction, SessionId};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, Settings};
use forebay_ipsec::{Action, DscpSet, Lived, Policy, PolicyPlace, Received};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;

/// An engine with the four SAs of `pair`; number 2 is in UDP.
fn engine(direction: Direction) -> Engine {
    let (sad, keys) = pair::sas(direction);
    let core = pair::setup(Box::new(AwsLc::new()), Kind::Cpu, Cost::default());
    Engine::new(sad, &keys, vec![core], Settings::default(), Clock::start()).expect("an engine")
}

const SA: SessionId = SessionId(0);
const IN_UDP: SessionId = SessionId(2);

#[test]
fn numbers_and_lives() {
    let mut sealer = engine(Direction::Seal);
    sealer.continue_after(SA, 41);
    assert_eq!(sealer.sad().sequence(SA), Some(41));
    let lived =
        Lived { age: Duration::from_millis(5), used: Some(Duration::from_millis(4)), packets: 7, bytes: 900 };
    sealer.resume_life(SA, &lived);
    let found = sealer.sad().lived(SA).expect("an SA");
    assert_eq!((found.packets, found.bytes), (7, 900));
    sealer.grant(SA, 42);
    let (mut bytes, mut passed) = (Vec::new(), 0);
    for number in 0.. {
        pair::plain(number, &mut bytes);
        if bytes[17] != 0 {
            continue;
        }
        let mut packet = sealer.buffer();
        assert!(packet.fill(&bytes));
        if sealer.admit(Direction::Seal, packet, number).is_err() {
            break;
        }
        passed += 1;
    }
    assert_eq!(passed, 1, "only number 42 was granted");

    let mut opener = engine(Direction::Open);
    opener.restore_window(SA, &Received::up_to(50));
    assert_eq!(opener.sad().received(SA), Some(Received::up_to(50)));
    opener.note_window(SA, 90);
    assert_eq!(opener.sad().noted(SA), Some((50, 90)));
}

#[test]
fn peers_and_paths() {
    let mut sealer = engine(Direction::Seal);
    let elsewhere = (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)), 777).into();
    assert_eq!(sealer.move_peer(IN_UDP, elsewhere), Ok(true));
    assert_eq!(sealer.move_peer(IN_UDP, elsewhere), Ok(false), "it is there");
    assert!(sealer.lower_path_mtu(SA, 900));
    assert!(!sealer.lower_path_mtu(SA, 1_000), "that is no lower");
    assert_eq!(sealer.sad().path_mtu(SA), Some(900));
    assert_eq!(sealer.learn_path_mtu(&[0; 40]), None);
    assert_eq!(sealer.suites().len(), pair::SUITES.len());
}

#[test]
fn policies_and_nests() {
    let mut sealer = engine(Direction::Seal);
    let policy = Policy {
        name: "all".to_owned(),
        direction: Direction::Seal,
        local_ts: vec![],
        remote_ts: vec![],
        dscp: DscpSet::ALL,
        action: Action::Protect(vec![SA]),
        per_cpu: false,
    };
    let id = sealer.add_policy(policy.clone(), PolicyPlace::Last).expect("no fault");
    let sas = |engine: &Engine| engine.sad().policy(id).map(|policy| policy.action);
    sealer.set_policy_sas(id, vec![SessionId(1), IN_UDP]).expect("it protects");
    assert_eq!(sas(&sealer), Some(Action::Protect(vec![SessionId(1), IN_UDP])));
    sealer.put_policy_sa_first(id, IN_UDP).expect("it protects");
    assert_eq!(sas(&sealer), Some(Action::Protect(vec![IN_UDP, SessionId(1)])));
    let removed = sealer.remove_policy(id).expect("it is there");
    assert_eq!(removed.name, policy.name);
    assert!(sealer.remove_policy(id).is_none());
    assert!(sealer.set_policy_sas(id, vec![]).is_err() && sealer.put_policy_sa_first(id, SA).is_err());

    assert!(sealer.nest(SA, SA).is_err());
    assert_eq!(sealer.nest(SA, SessionId(1)), Ok(()));
    assert!(sealer.nest(SessionId(1), SA).is_err(), "no SA is in itself");
}
