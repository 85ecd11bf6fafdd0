//! Throughput of a device through its [`Processor`](forebay_crypto::Processor), to be compared with `dpdk-test-crypto-perf`
//! (`scripts/dpdk_perf.py`): sealing by AES-128-GCM in batches of 32, on one core.
//!
//! ```sh
//! cargo run --release --package forebay-crypto-dpdk --example perf -- crypto_aesni_mb0 64,1408 2000000
//! ```
//!
//! Prints one line for each length: the length in bytes, and millions of operations per second.

use std::env;
use std::time::Instant;

use forebay_crypto::{Direction, Job, JobSpec, Packet, SaKeys, SecretBytes, SessionId, Span, Verdict};
use forebay_crypto_dpdk::{Config, open};
use forebay_time::Time;

const BATCH: usize = 32;
const SESSION: SessionId = SessionId(1);
const USAGE: &str = "usage: perf DEVICE LENGTHS OPERATIONS [copies], e.g. crypto_aesni_mb0 64,1408 2000000";

fn main() -> Result<(), String> {
    let words: Vec<String> = env::args().skip(1).collect();
    let ([device, lengths, operations] | [device, lengths, operations, _]) = &words[..] else {
        return Err(USAGE.to_owned());
    };
    let copies = words.get(3).is_some_and(|word| word == "copies");
    let lengths: Result<Vec<u32>, _> = lengths.split(',').map(str::parse).collect();
    let (Ok(lengths), Ok(operations)) = (lengths, operations.parse()) else { return Err(USAGE.to_owned()) };
    for len in lengths {
        println!("{len} {:.3}", rate(device, len, operations, copies)?);
    }
    Ok(())
}

/// Millions of operations per second.
#[expect(clippy::disallowed_methods, reason = "a benchmark takes the time")]
fn rate(device: &str, len: u32, operations: usize, copies: bool) -> Result<f64, String> {
    let mut processor =
        open(&Config { copies, ..Config::new(device) }).map_err(|why| format!("{why}; {}", why.help()))?;
    let (cipher, none) = (SecretBytes::new(vec![7; 20]), SecretBytes::new(vec![]));
    let suite = "aes128gcm16".parse().map_err(|_| "no such proposal")?;
    let keys = SaKeys::new(suite, &cipher, &none).map_err(|why| why.to_string())?;
    processor.open_session(SESSION, &keys, Direction::Seal).map_err(|why| why.to_string())?;
    let mut jobs: Vec<Job> = (0..BATCH as u64).map(|token| job(len, token)).collect();
    let mut done = Vec::with_capacity(BATCH);
    let (mut begin, mut left) = (Instant::now(), operations);
    // A tenth more, first, which does not count.
    let mut before = operations / 10;
    while left > 0 {
        processor.submit(Time::ZERO, &mut jobs);
        processor.poll(Time::ZERO, &mut done);
        if before > 0 {
            before = before.saturating_sub(done.len());
            if before == 0 {
                begin = Instant::now();
            }
        } else {
            left = left.saturating_sub(done.len());
        }
        if done.iter().any(|job| job.verdict != Verdict::Done) {
            return Err(format!("{device} failed at a job"));
        }
        jobs.append(&mut done);
    }
    Ok(operations as f64 / begin.elapsed().as_secs_f64() / 1e6)
}

/// A packet of ESP: SPI and sequence number, IV, text, room for the ICV.
fn job(len: u32, token: u64) -> Job {
    let mut packet = Packet::with_capacity(64 + len as usize);
    assert!(packet.fill(&vec![token as u8; (8 + 8 + len + 16) as usize]));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session: SESSION,
        cipher: Span { start: start + 16, len },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 16 + len,
        seq_hi: None,
    };
    Job::new(packet, spec, token)
}
