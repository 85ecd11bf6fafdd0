//! What several cores do together: packets in memory through engines that share their SAs, each on a thread of its own.
//!
//! Usage: `cores SUITE BYTES seal|open SAS CORES SECONDS`. Prints packets per second.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_crypto::{Direction, Job, JobSpec, Processor, SaKeys, SecretBytes, Suite};
use forebay_engine::{Clock, Engine, Limits, ProcessorSetup, Settings, Turnstile};
use forebay_ipsec::{Ipsec, IvRange, SaConfig, Spi};
use forebay_scheduler::{Cost, Kind};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
const BURST: usize = 64;

fn processor() -> Box<dyn Processor> {
    forebay_crypto_ipsec_mb::new().unwrap_or_else(|_| Box::new(forebay_crypto_aws_lc::AwsLc::new()))
}

fn settings() -> Settings {
    Settings { limits: Limits { in_flight: 4096, ..Limits::default() }, ..Settings::default() }
}

fn databases(suite: Suite, sas: usize, direction: Direction) -> Result<(Ipsec, Vec<SaKeys>)> {
    let (mut ipsec, mut keys) = (Ipsec::default(), Vec::new());
    let (near, far) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    for sa in 0..sas {
        let spi = Spi::new(0x1000 + sa as u32).ok_or("no SPI")?;
        let net = format!("10.{}.{}.0/24", sa / 256, sa % 256).parse()?;
        match direction {
            Direction::Seal => {
                let config = SaConfig { remote_ts: vec![net], ..SaConfig::new("x", spi, suite, near, far) };
                ipsec.add_outbound(config, IvRange::for_throwaway_key())?;
            }
            Direction::Open => {
                let config = SaConfig {
                    local_ts: vec![net],
                    replay_window: 0,
                    ..SaConfig::new("x", spi, suite, far, near)
                };
                ipsec.add_inbound(config)?;
            }
        }
        let filler = |n: usize| SecretBytes::new((0..n).map(|at| (at + sa) as u8).collect());
        let key = filler(suite.cipher_key_len() + suite.salt_len());
        keys.push(SaKeys::new(suite, &key, &filler(suite.integrity_key_len()))?);
    }
    Ok((ipsec, keys))
}

fn plain(sa: usize, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    (packet[8], packet[9]) = (64, 17);
    packet[12..16].copy_from_slice(&[172, 16, 0, 1]);
    packet[16..20].copy_from_slice(&[10, (sa / 256) as u8, (sa % 256) as u8, 1]);
    let sum = packet[..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    packet
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, suite, bytes, direction, sas, cores, seconds] = &arguments[..] else {
        return Err("usage: cores SUITE BYTES seal|open SAS CORES SECONDS".into());
    };
    let (suite, bytes, sas): (Suite, usize, usize) =
        (suite.parse().map_err(|_| "no such suite")?, bytes.parse()?, sas.parse()?);
    let (cores, seconds): (usize, f64) = (cores.parse()?, seconds.parse()?);
    let direction = if direction == "open" { Direction::Open } else { Direction::Seal };
    let clock = Clock::start();
    let setup = || vec![ProcessorSetup::new(processor(), Kind::Cpu, Cost::default())];
    let mut packets: Vec<Vec<u8>> = (0..1024).map(|n| plain((n * 7919) % sas, bytes)).collect();
    if direction == Direction::Open {
        let (ipsec, keys) = databases(suite, sas, Direction::Seal)?;
        let mut sealer = Engine::new(ipsec, &keys, setup(), settings(), clock)?;
        for packet in &mut packets {
            let mut one = sealer.buffer();
            one.fill(packet);
            sealer.admit_burst(Direction::Seal, &mut vec![Job::new(one, JobSpec::default(), 0)]);
            *packet = sealer.outputs().next().ok_or("nothing came out")?.packet.bytes().to_vec();
        }
    }
    let (ipsec, keys) = databases(suite, sas, direction)?;
    let first = Engine::new(ipsec, &keys, setup(), settings(), clock)?;
    let mut engines = Vec::new();
    for cpu in 1..cores {
        engines.push(first.beside(cpu as u32, setup(), settings(), clock)?);
    }
    engines.push(first);
    let (link, stop, done) = (Turnstile::new(0_usize), AtomicBool::new(false), AtomicU64::new(0));
    let (begin, bad) = (Barrier::new(cores + 1), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for mut engine in engines {
            let (link, stop, done, begin, bad, packets) = (&link, &stop, &done, &begin, &bad, &packets);
            scope.spawn(move || {
                let mut jobs = Vec::with_capacity(BURST);
                begin.wait();
                while !stop.load(Ordering::Relaxed) {
                    let room = engine.room().min(BURST);
                    if room < BURST {
                        std::thread::yield_now();
                    }
                    // Packets are filled as a link would, before there is anything in order.
                    let mut next = link.pass();
                    let at = *next;
                    *next += room;
                    drop(next);
                    for n in at..at + room {
                        let mut packet = engine.buffer();
                        packet.fill(&packets[n % packets.len()]);
                        jobs.push(Job::new(packet, JobSpec::default(), 0));
                    }
                    engine.admit_burst(direction, &mut jobs);
                    engine.poll();
                    let outputs: Vec<_> = engine.outputs().collect();
                    done.fetch_add(outputs.len() as u64, Ordering::Relaxed);
                    for output in outputs {
                        bad.fetch_add(u64::from(output.result.is_err()), Ordering::Relaxed);
                        engine.recycle(output.packet);
                    }
                }
            });
        }
        begin.wait();
        std::thread::sleep(Duration::from_secs_f64(seconds / 4.0));
        let (from, start) = (done.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let rate = (done.load(Ordering::Relaxed) - from) as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        println!("{:.2} M/s, {} refused", rate / 1e6, bad.load(Ordering::Relaxed));
    });
    Ok(())
}
