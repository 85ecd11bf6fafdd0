//! What a packet's look-up costs with one SA and with very many, one policy and very many.
//!
//!     cargo run --release -p forebay-ipsec --example lookup
//!
//! Packets of 64 bytes go in bursts of 32 through prepare and complete, without any crypto: look-up,
//! headers, windows. The time to write the packets into their buffers is measured alone and taken off.
//! Each figure is the median of many short stretches, so that what other programs take of the processor
//! is left out; what they take of its caches is not.
//!
//! Traffic: `train` is one flow; `one flow` one flow for each SA, SAs drawn evenly or by Zipf's law
//! (the k-th with weight 1/k); `new flows` another host of the SA's network for nearly every packet, so
//! that what was decided before is of little use.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SessionId, Suite, Verdict};
use forebay_ipsec::{Action, Ipsec, IvRange, Policy, PolicyPlace, SaConfig, Spi, TrafficSelector};
use ipnet::{IpNet, Ipv4Net};

const BURST: usize = 32;
/// Packets of a run.
const PACKETS: usize = 1 << 20;
/// Packets of a stretch, which takes a fraction of a millisecond.
const STRETCH: usize = 1 << 12;

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }
}

/// How SAs are drawn, and hosts in their networks.
#[derive(Clone, Copy, PartialEq)]
enum Traffic {
    Train,
    Even,
    Zipf,
    NewFlows,
    /// Packets that nothing is for.
    Miss,
}

/// The SAs' networks: 64 addresses each.
fn net(sa: usize) -> u32 {
    0x0a00_0000 + ((sa as u32) << 6)
}

fn selector(first: u32, bits: u8) -> TrafficSelector {
    IpNet::V4(Ipv4Net::new(first.into(), bits).expect("a length of IPv4")).trunc().into()
}

fn config(sa: usize, suite: Suite) -> SaConfig {
    let (near, far) = ([192, 0, 2, 1].into(), std::net::Ipv4Addr::from(0xc633_0000 + sa as u32).into());
    SaConfig {
        replay_window: 64,
        remote_ts: vec![selector(net(sa), 26)],
        ..SaConfig::new("", Spi::new(0x1000_0000 + sa as u32 * 77).expect("not zero"), suite, near, far)
    }
}

/// SAs of one direction, and policies of it that share them out evenly. A policy has one SA at most where there
/// are more policies than SAs: the others are for other networks.
fn database(direction: Direction, sas: usize, policies: usize) -> Ipsec {
    let suite = "aes128gcm16".parse().expect("a proposal");
    let mut sad = Ipsec::seeded(0x5eed);
    for sa in 0..sas {
        match direction {
            Direction::Seal => sad.add_outbound(config(sa, suite), IvRange::for_throwaway_key()),
            Direction::Open => sad.add_inbound(config(sa, suite)),
        }
        .expect("an SA");
    }
    for n in 0..policies {
        sad.add_policy(policy(direction, sas, policies, n), PolicyPlace::Last).expect("a policy");
    }
    sad
}

fn policy(direction: Direction, sas: usize, policies: usize, n: usize) -> Policy {
    let share = sas.div_ceil(policies);
    let members = n * share..((n + 1) * share).min(sas);
    let remote = match members.is_empty() {
        true => selector(net(sas + n), 26),
        false => {
            let last = net(members.end - 1) | 63;
            TrafficSelector::range(
                std::net::Ipv4Addr::from(net(members.start)).into(),
                std::net::Ipv4Addr::from(last).into(),
            )
            .expect("in order")
        }
    };
    let sas = members.map(|sa| SessionId(sa as u32)).collect();
    Policy { remote_ts: vec![remote], ..Policy::new("", direction, Action::Protect(sas)) }
}

/// SA and host of every packet.
fn draw(traffic: Traffic, sas: usize) -> Vec<(u32, u8)> {
    let mut random = Random(1);
    let mut weights: Vec<f64> = (1..=sas).map(|k| 1.0 / k as f64).collect();
    let mut sum = 0.0;
    weights.iter_mut().for_each(|weight| {
        sum += *weight;
        *weight = sum;
    });
    // The most wanted SAs are not neighbours.
    let mut places: Vec<u32> = (0..sas as u32).collect();
    (1..sas).for_each(|k| places.swap(k, random.below(k + 1)));
    let one = |_| match traffic {
        Traffic::Train => (0, 1),
        Traffic::Even => (random.below(sas) as u32, 1),
        Traffic::NewFlows | Traffic::Miss => (random.below(sas) as u32, random.below(64) as u8),
        Traffic::Zipf => {
            let at = random.next() as f64 / u64::MAX as f64 * sum;
            (places[weights.partition_point(|weight| *weight < at).min(sas - 1)], 1)
        }
    };
    (0..PACKETS).map(one).collect()
}

/// Writes the packets of a burst.
fn write(direction: Direction, miss: bool, from: &[(u32, u8)], sequences: &mut [u32], jobs: &mut [Job]) {
    let mut plain = [0x5a; 64];
    plain[..20].copy_from_slice(&[0x45, 0, 0, 64, 0, 0, 0, 0, 64, 17, 0, 0, 172, 16, 0, 1, 0, 0, 0, 0]);
    let mut sealed = [0; 20 + 8 + 8 + 68 + 16];
    let len = sealed.len() as u8;
    sealed[..20].copy_from_slice(&[0x45, 0, 0, len, 0, 0, 0, 0, 64, 50, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1]);
    for (&(sa, host), job) in from.iter().zip(jobs) {
        let address = (net(sa as usize) | u32::from(host)) ^ if miss { 0x8000_0000 } else { 0 };
        match direction {
            Direction::Seal => {
                plain[16..20].copy_from_slice(&address.to_be_bytes());
                assert!(job.packet.fill(&plain));
            }
            Direction::Open => {
                let spi = 0x1000_0000 + sa * 77 + u32::from(miss);
                sequences[sa as usize] += 1;
                sealed[12..16].copy_from_slice(&(0xc633_0000 + sa).to_be_bytes());
                sealed[20..24].copy_from_slice(&spi.to_be_bytes());
                sealed[24..28].copy_from_slice(&sequences[sa as usize].to_be_bytes());
                sealed[36..100].copy_from_slice(&plain);
                // From the network, and to this side.
                sealed[48..52].copy_from_slice(&address.to_be_bytes());
                sealed[52..56].copy_from_slice(&[172, 16, 0, 1]);
                sealed[100..104].copy_from_slice(&[1, 2, 2, 4]);
                assert!(job.packet.fill(&sealed));
            }
        }
        job.verdict = Verdict::Pending;
    }
}

/// Time of a packet in nanoseconds; without a database that of writing it.
fn run(
    direction: Direction,
    mut sad: Option<&mut Ipsec>,
    miss: bool,
    packets: &[(u32, u8)],
    sequences: &mut [u32],
) -> f64 {
    let mut jobs: Vec<Job> =
        (0..BURST).map(|_| Job::new(Packet::with_capacity(512), JobSpec::default(), 0)).collect();
    let mut stretches = Vec::new();
    for stretch in packets.chunks_exact(STRETCH) {
        let start = Instant::now();
        for burst in stretch.chunks_exact(BURST) {
            write(direction, miss, burst, sequences, &mut jobs);
            let Some(sad) = &mut sad else {
                std::hint::black_box(&mut jobs);
                continue;
            };
            if miss {
                for job in &mut jobs {
                    assert!(sad.prepare(direction, &mut job.packet, &mut job.spec).is_err());
                }
                continue;
            }
            sad.prepare_burst(direction, &mut jobs).expect("an SA for each");
            jobs.iter_mut().for_each(|job| job.verdict = Verdict::Done);
            sad.complete_burst(&mut jobs).expect("good packets");
        }
        stretches.push(start.elapsed().as_nanos() as f64 / STRETCH as f64);
    }
    median(stretches)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn figure(direction: Direction, traffic: Traffic, sas: usize, policies: usize) -> f64 {
    let packets = draw(traffic, sas);
    let mut sad = database(direction, sas, policies);
    let mut sequences = vec![0; sas];
    let miss = traffic == Traffic::Miss;
    // Once through all SAs, so that what is measured is not the first touch of memory.
    run(direction, Some(&mut sad), miss, &packets, &mut sequences);
    let mut one = |sad: Option<&mut Ipsec>| run(direction, sad, miss, &packets, &mut sequences);
    let whole = one(Some(&mut sad));
    whole - one(None)
}

/// Mean and longest time to add and remove, in microseconds.
fn changes(label: &str, count: usize, mut change: impl FnMut(usize)) {
    let mut longest = 0;
    let start = Instant::now();
    for n in 0..count {
        let one = Instant::now();
        change(n);
        longest = longest.max(one.elapsed().as_nanos());
    }
    let mean = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{label:<44} {:>9.2} us mean {:>9.1} us longest", mean / 1e3, longest as f64 / 1e3);
}

fn churn(sas: usize, policies: usize) {
    const COUNT: usize = 2_000;
    let suite: Suite = "aes128gcm16".parse().expect("a proposal");
    println!("\nwith {sas} outbound SAs and {policies} policies");
    let mut sad = database(Direction::Seal, sas, policies);
    let mut added = Vec::new();
    changes("add an outbound SA", COUNT, |n| {
        let sa = sad.add_outbound(config(sas + n, suite), IvRange::for_throwaway_key());
        added.push(sa.expect("an SA"));
    });
    changes("remove it", COUNT, |n| drop(sad.remove(added[n])));
    let mut added = Vec::new();
    changes("add an inbound SA", COUNT, |n| added.push(sad.add_inbound(config(n, suite)).expect("an SA")));
    changes("remove it", COUNT, |n| drop(sad.remove(added[n])));
    let mut ids: Vec<_> = sad.policies(Direction::Seal).map(|(id, _)| id).collect();
    let mut random = Random(3);
    changes("add a policy anywhere", COUNT, |n| {
        let place = match ids.is_empty() {
            true => PolicyPlace::Last,
            false => PolicyPlace::Before(ids[random.below(ids.len())]),
        };
        let one = policy(Direction::Seal, 0, 1, sas + n);
        ids.push(sad.add_policy(one, place).expect("a policy"));
    });
    let place = PolicyPlace::After(ids[0]);
    let mut more = Vec::new();
    changes("add a policy always in one place", COUNT, |n| {
        let one = policy(Direction::Seal, 0, 1, sas + COUNT + n);
        more.push(sad.add_policy(one, place).expect("a policy"));
    });
    changes("remove a policy", COUNT, |n| drop(sad.remove_policy(more[n])));
}

fn main() {
    let only = std::env::args().nth(1);
    println!("ns a packet, prepare and complete of 64 bytes, in bursts of {BURST}");
    println!(
        "{:<9}{:>8}{:>10}{:>10}{:>10}{:>10}{:>11}{:>10}",
        "", "SAs", "policies", "train", "one flow", "by Zipf", "new flows", "no SA"
    );
    for direction in [Direction::Seal, Direction::Open] {
        for (sas, policies) in
            [(1, 0), (1_000, 0), (100_000, 0), (1, 1), (1, 10_000), (100_000, 1), (100_000, 10_000)]
        {
            if only.as_ref().is_some_and(|only| *only != sas.to_string()) {
                continue;
            }
            let one = |traffic| figure(direction, traffic, sas, policies);
            let name = if direction == Direction::Seal { "outbound" } else { "inbound" };
            print!("{name:<9}{sas:>8}{policies:>10}");
            for (traffic, width) in [
                (Traffic::Train, 10),
                (Traffic::Even, 10),
                (Traffic::Zipf, 10),
                (Traffic::NewFlows, 11),
                (Traffic::Miss, 10),
            ] {
                print!("{:>width$.0}", one(traffic));
            }
            println!();
        }
    }
    churn(1, 1);
    churn(100_000, 10_000);
}
