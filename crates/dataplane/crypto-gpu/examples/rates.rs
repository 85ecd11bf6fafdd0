//! What a GPU does: packets per second of each suite by size and batch, with as many launches in flight as the device takes, and
//! the time of one submission.
//!
//! `cargo run --release -p forebay-crypto-gpu --example rates [opencl|cuda|auto] [DEVICE]`

// A measurement has a clock.
#![allow(clippy::disallowed_methods, missing_docs)]

use std::time::{Duration, Instant};

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite,
};
use forebay_crypto_gpu::{Config, Runtime, devices, open};
use forebay_time::Time;

const SUITES: [&str; 6] =
    ["chacha20poly1305", "aes128gcm16", "aes256gcm16", "aes128ctr-sha256", "aes128-sha256", "null-sha256"];
const SIZES: [u32; 2] = [64, 1_408];
const BATCHES: [usize; 3] = [32, 256, 1_024];
/// How long each point is measured, at least; slow ones until the queue was done twice.
const TIME: Duration = Duration::from_millis(300);
const SESSION: SessionId = SessionId(1);

fn keys(suite: Suite) -> SaKeys {
    let bytes = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let key = bytes(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &key, &bytes(suite.integrity_key_len())).expect("lengths of the suite")
}

/// A packet of ESP with `text` bytes, padded, to be sealed or opened.
fn job(suite: Suite, direction: Direction, text: u32) -> Job {
    let (iv, icv) = (suite.iv_len() as u32, suite.icv_len() as u32);
    let text = text.next_multiple_of(suite.align() as u32);
    let len = 8 + iv + text + icv;
    let mut packet = Packet::with_capacity(len as usize);
    assert!(packet.fill(&vec![7; len as usize]));
    let start = packet.offset() as u32;
    let chained = suite.is_chained() && direction == Direction::Seal;
    let cipher = if chained {
        Span { start: start + 8, len: iv + text }
    } else {
        Span { start: start + 8 + iv, len: text }
    };
    let covered = if suite.covers_text() { 8 + iv + text } else { 8 };
    let auth = Span { start, len: covered };
    let spec =
        JobSpec { session: SESSION, cipher, iv: start + 8, auth, icv: start + 8 + iv + text, seq_hi: None };
    Job::new(packet, spec, 0)
}

/// Packets per second with the queue kept full, and the median time from one submission to its last answer when there is no other.
fn measure(config: &Config, suite: Suite, direction: Direction, size: u32) -> (f64, Duration) {
    let mut processor = open(config).expect("as a moment ago");
    processor.open_session(SESSION, &keys(suite), direction).expect("room");
    let mut free: Vec<Job> = (0..config.queue).map(|_| job(suite, direction, size)).collect();
    let (mut done, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..30 {
        let begun = Instant::now();
        let mut burst = free.split_off(free.len() - config.batch);
        processor.submit(Time::ZERO, &mut burst);
        while done.len() < config.batch {
            processor.poll(Time::ZERO, &mut done);
        }
        alone.push(begun.elapsed());
        free.append(&mut done);
    }
    alone.sort_unstable();
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < TIME || count < 2 * config.queue {
        processor.submit(Time::ZERO, &mut free);
        processor.poll(Time::ZERO, &mut done);
        count += done.len();
        free.append(&mut done);
    }
    (count as f64 / begun.elapsed().as_secs_f64(), alone[alone.len() / 2])
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = words.first().and_then(|word| Runtime::named(word)).unwrap_or_default();
    let device = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let base = Config { runtime, device, sessions: 64, ..Config::default() };
    match devices(runtime).map_err(|why| (why.to_string(), why.help())) {
        Ok(names) => println!("{}", names.get(device).map_or("no such device", String::as_str)),
        Err((why, help)) => {
            eprintln!("{why}\nhelp: {help}");
            std::process::exit(2);
        }
    }
    println!(
        "{:<18} {:<5} {:>6} {:>6} {:>11} {:>9} {:>11}",
        "suite", "", "bytes", "batch", "packets/s", "Gbit/s", "alone, us"
    );
    for suite in SUITES.map(|word| word.parse::<Suite>().expect("a proposal")) {
        for direction in [Direction::Seal, Direction::Open] {
            for (size, batch) in SIZES.into_iter().flat_map(|size| BATCHES.map(|batch| (size, batch))) {
                let config = Config { batch, queue: 4 * batch, ..base.clone() };
                let (rate, alone) = measure(&config, suite, direction, size);
                let (gbit, alone) = (rate * f64::from(size) * 8e-9, alone.as_secs_f64() * 1e6);
                let word = if direction == Direction::Seal { "seal" } else { "open" };
                println!(
                    "{:<18} {word:<5} {size:>6} {batch:>6} {rate:>11.0} {gbit:>9.2} {alone:>11.1}",
                    suite.to_string()
                );
            }
        }
    }
}
