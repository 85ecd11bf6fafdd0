//! What a rekey costs beside many other SAs, counted in allocations: in a process of its own, beside no test that measures
//! memory.

use std::collections::VecDeque;

use forebay_crypto::{Direction, SaKeys, SecretBytes};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, ProcessorSetup, Settings};
use forebay_ipsec::{Action, Ipsec, IvRange, Policy, PolicyPlace, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;

fn keys(number: u32) -> SaKeys {
    let mut key = vec![7; 20];
    key[..4].copy_from_slice(&number.to_be_bytes());
    SaKeys::new("aes128gcm16".parse().unwrap(), &SecretBytes::new(key), &SecretBytes::new(vec![])).unwrap()
}

fn sa(number: u32, outbound: bool) -> SaConfig {
    let ends = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
    let [local, remote] = if outbound { ends } else { [ends[1], ends[0]] };
    let spi = Spi::new(0x1000 + number).unwrap();
    SaConfig {
        replay_window: 1024,
        ..SaConfig::new("sa", spi, "aes128gcm16".parse().unwrap(), local, remote)
    }
}

/// How often so many rekeys allocate beside so many other pairs, each with a policy of its own.
fn allocations_beside(others: u32, rekeys: u32) -> u64 {
    let cost = Cost { init: Duration::from_micros(1), ..Cost::default() };
    let (processor, kind) = (Box::new(AwsLc::new()), Kind::Cpu);
    let core = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue: 256 };
    let mut engine =
        Engine::new(Ipsec::default(), &[], vec![core], Settings::default(), Clock::start()).unwrap();
    let mut policies = Vec::new();
    let mut pairs = VecDeque::new();
    for number in 0..others {
        let into = engine.add_inbound(sa(number, false), &keys(number)).unwrap();
        let out = engine.add_outbound(sa(number, true), IvRange::for_throwaway_key(), &keys(number)).unwrap();
        let net = format!("10.{}.{}.0/24", number >> 8, number & 0xff).parse().unwrap();
        let mut policy = Policy::new("one", Direction::Seal, Action::Protect(vec![out]));
        policy.remote_ts = vec![net];
        policies.push(engine.add_policy(policy, PolicyPlace::Last).unwrap());
        pairs.push_back((into, out));
    }
    let counted = allocation_counter::measure(|| {
        for number in 0..rekeys {
            let (place, spi) = ((number % others) as usize, others + number);
            let into = engine.add_inbound(sa(spi, false), &keys(spi)).unwrap();
            let out = engine.add_outbound(sa(spi, true), IvRange::for_throwaway_key(), &keys(spi)).unwrap();
            engine.put_policy_sa_first(policies[place], out).unwrap();
            let (old_in, old_out) = pairs.pop_front().unwrap();
            assert!(engine.remove_sa(old_out).is_some() && engine.remove_sa(old_in).is_some());
            pairs.push_back((into, out));
        }
    });
    println!("{rekeys} rekeys beside {others} pairs: {} allocations", counted.count_total);
    counted.count_total
}

/// Whatever is built anew or collected from all SAs at a rekey takes memory at least once for each rekey.
#[test]
fn rekeys_beside_many_sas_allocate_no_more_than_beside_few() {
    // Fewer than pairs in both cases, so that each rekey is the first of its pair.
    const REKEYS: u32 = 300;
    const FEW: u32 = 400;
    // Tables that grow once in a while.
    const GROWTH: u64 = 50;
    let few = allocations_beside(FEW, REKEYS);
    let many = allocations_beside(5_000, REKEYS);
    assert!(few > u64::from(REKEYS), "nothing was counted");
    assert!(many <= few + GROWTH, "{many} allocations beside many SAs, {few} beside few");
}
