//! SAs that come and go leave nothing behind: neither sessions of the device nor memory of the process.

mod support;

use std::fs;

use forebay_crypto::{Direction, Job, SessionId, Verdict};
use forebay_crypto_dpdk::{Config, open, sessions_in_use};
use forebay_time::Time;
use support::{SEAL, job, keys};

const SAS: u32 = 10_000;
/// SAs that there are at a time.
const KEPT: u32 = 50;

/// Memory of this process, in bytes.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4_096
}

#[test]
fn ten_thousand_sas_come_and_go_and_leave_nothing() {
    for device in ["crypto_aesni_mb40", "crypto_aesni_gcm40", "crypto_openssl40"] {
        let mut processor = match open(&Config { sessions: 256, ..Config::new(device) }) {
            Ok(processor) => processor,
            Err(why) => {
                println!("skipped: {device}: {why}");
                continue;
            }
        };
        let mut before = 0;
        let mut done: Vec<Job> = Vec::new();
        for number in 0..SAS {
            // What is needed once was made with the first tenth.
            if number == SAS / 10 {
                before = resident();
            }
            let session = SessionId(SEAL.0 + number % KEPT);
            processor.open_session(session, &keys(number as u8), Direction::Seal).expect("room");
            let mut jobs = vec![job(session, number.into())];
            processor.submit(Time::ZERO, &mut jobs);
            // Some are closed while their job is at the device.
            if number % 3 == 0 {
                processor.close_session(session);
            }
            processor.poll(Time::ZERO, &mut done);
            assert!(done.drain(..).all(|job| job.verdict == Verdict::Done), "{device}: SA {number}");
        }
        let grown = resident().saturating_sub(before);
        println!("{device}: {grown} bytes more after {SAS} SAs");
        assert!(grown < 1 << 20, "{device}: {grown} bytes more after {SAS} SAs");
        drop(processor);
        assert_eq!(sessions_in_use(device), Some(0), "{device}");
    }
}
