//! Bursts, which take trains of one flow together, against the same packets one by one.

use forebay_crypto::{Direction, Job, JobSpec, Packet, Verdict};
use forebay_ipsec::{DropReason, SaConfig, Stop};

use crate::bench::{Bench, Gateway, buffer, dropped, on_bench, sound};
use crate::crypto::Crypto;
use crate::kind::{Kind, other_end};
use crate::stream::pieces;

/// Most packets of a burst.
const BURST: usize = 16;
const INPUT_MAX: usize = 4_096;

/// A packet, or why there is none any more.
type Fate = Result<Vec<u8>, DropReason>;

/// Two SAs by four bytes each and a burst of packets, each of which comes as often as its first byte says: sealed
/// and opened as a burst and one by one, which must come to the same.
pub fn bursts(data: &[u8]) {
    let Some((first, data)) = Kind::take(data) else { return };
    let Some((second, data)) = Kind::take(data).filter(|(_, data)| data.len() <= INPUT_MAX) else { return };
    let kinds = [first, Kind([second.0[0], second.0[1] & !4 | first.0[1] & 4, second.0[2], second.0[3]])];
    let mut packets = vec![];
    for (times, packet) in pieces(data) {
        packets.extend((0..=times & 3).map(|_| packet.to_vec()));
    }
    packets.truncate(BURST);
    if packets.is_empty() {
        return;
    }
    let configs: Vec<(SaConfig, u64)> =
        (0..2).map(|n| (kinds[n].esp(0x1001 + n as u32), kinds[n].start())).collect();
    let through = |as_burst: bool| {
        on_bench(|bench| {
            for (config, start) in &configs {
                bench.near.add(Direction::Seal, config.clone(), *start);
                bench.far.add(Direction::Open, other_end(config), *start);
            }
            let Bench { near, far, crypto, .. } = bench;
            let sealed = pass(near, crypto, Direction::Seal, &packets, as_burst);
            // Each twice, and changed the third time.
            let mut sent = vec![];
            for packet in sealed.iter().flatten() {
                sent.extend([packet.clone(), packet.clone(), packet.clone()]);
                if let Some(last) = sent.last_mut().and_then(|packet| packet.last_mut()) {
                    *last ^= 1;
                }
            }
            let opened = pass(far, crypto, Direction::Open, &sent, as_burst);
            (sealed, opened)
        })
    };
    let (together, alone) = (through(true), through(false));
    assert_eq!(together, alone);
}

fn pass(
    gateway: &mut Gateway,
    crypto: &mut Crypto,
    direction: Direction,
    packets: &[Vec<u8>],
    as_burst: bool,
) -> Vec<Fate> {
    let mut fates: Vec<Option<Fate>> = vec![None; packets.len()];
    let mut jobs: Vec<Job> = packets
        .iter()
        .enumerate()
        .map(|(n, packet)| Job::new(buffer(packet), JobSpec::default(), n as u64))
        .collect();
    step(&mut jobs, direction, &mut fates, |jobs| match as_burst {
        true => gateway.sad.prepare_burst(direction, jobs),
        false => {
            one_by_one(jobs, |job| gateway.sad.prepare(direction, &mut job.packet, &mut job.spec).map(|_| ()))
        }
    });
    for job in &mut jobs {
        let taken = std::mem::replace(job, Job::new(Packet::with_capacity(0), JobSpec::default(), 0));
        *job = crypto.work(gateway.suite(taken.spec.session), direction, taken);
        assert!(direction == Direction::Open || job.verdict == Verdict::Done);
    }
    step(&mut jobs, direction, &mut fates, |jobs| match as_burst {
        true => gateway.sad.complete_burst(jobs),
        false => {
            one_by_one(jobs, |job| gateway.sad.complete(&mut job.packet, &job.spec, job.verdict).map(|_| ()))
        }
    });
    for job in jobs {
        fates[job.token as usize] = Some(Ok(sound(&job.packet)));
    }
    fates.into_iter().map(|fate| fate.expect("each has one")).collect()
}

/// Does `rest` to what is left until it goes through, and takes out what it stops at.
fn step(
    jobs: &mut Vec<Job>,
    direction: Direction,
    fates: &mut [Option<Fate>],
    mut rest: impl FnMut(&mut [Job]) -> Result<(), (usize, Stop)>,
) {
    let mut from = 0;
    while let Err((place, stop)) = rest(&mut jobs[from..]) {
        from += place;
        let job = jobs.remove(from);
        let fate = match stop {
            Stop::Drop(reason) => {
                dropped(direction, reason);
                Err(reason)
            }
            // An ESP packet inside ours with the SPI of one of our SAs is left where it is.
            Stop::Again => Ok(sound(&job.packet)),
            Stop::Unpack => panic!("there is no IP-TFS"),
            Stop::Bypass => panic!("there are no policies"),
        };
        fates[job.token as usize] = Some(fate);
    }
}

fn one_by_one(
    jobs: &mut [Job],
    mut each: impl FnMut(&mut Job) -> Result<(), DropReason>,
) -> Result<(), (usize, Stop)> {
    for (place, job) in jobs.iter_mut().enumerate() {
        each(job).map_err(|reason| (place, Stop::Drop(reason)))?;
    }
    Ok(())
}
