//! What the contract costs above the bare AWS-LC call, as a ratio in one run:
//! `cargo bench -p forebay-crypto-aws-lc`.
#![allow(clippy::disallowed_methods, reason = "a benchmark asks the clock")]

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use aws_lc_sys as sys;
use forebay_crypto::{Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span};
use forebay_crypto_aws_lc::AwsLc;
use forebay_time::Time;

const BURST: usize = 32;
const ROUNDS: usize = 4_000;
const REPEATS: usize = 15;

fn main() {
    for len in [64, 256, 1_424] {
        let (mut bare, mut ours) = (f64::MAX, f64::MAX);
        let (mut bare_seal, mut our_seal) = (bare_seal(len), our_seal(len));
        // Taking turns, and the best of each: what else the machine does hits both alike.
        for _ in 0..REPEATS {
            bare = bare.min(ns_per_packet(&mut bare_seal));
            ours = ours.min(ns_per_packet(&mut our_seal));
        }
        println!(
            "aes128gcm16 seal, {len:>4} bytes: bare {bare:6.1} ns, processor {ours:6.1} ns, ratio {:.2}",
            ours / bare
        );
    }
}

fn ns_per_packet(burst: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        burst();
    }
    start.elapsed().as_nanos() as f64 / (ROUNDS * BURST) as f64
}

fn bare_seal(len: usize) -> impl FnMut() {
    // SAFETY: a static table, a key of the table's length.
    let ctx = unsafe { sys::EVP_AEAD_CTX_new(sys::EVP_aead_aes_128_gcm(), [7; 16].as_ptr(), 16, 16) };
    let mut packets = vec![vec![0u8; 128 + len]; BURST];
    move || {
        for packet in &mut packets {
            let (head, rest) = packet.split_at_mut(16);
            let (text, icv) = rest.split_at_mut(len);
            let mut icv_len = 0;
            // SAFETY: all parts are disjoint and as long as said; `ctx` is never freed.
            let ok = unsafe {
                sys::EVP_AEAD_CTX_seal_scatter(
                    ctx,
                    text.as_mut_ptr(),
                    icv.as_mut_ptr(),
                    &mut icv_len,
                    16,
                    head.as_ptr(),
                    12,
                    text.as_ptr(),
                    text.len(),
                    ptr::null(),
                    0,
                    head.as_ptr(),
                    8,
                )
            };
            assert_eq!(black_box(ok), 1);
        }
    }
}

fn our_seal(len: usize) -> impl FnMut() {
    let suite = "aes128gcm16".parse().expect("a proposal");
    let keys = SaKeys::new(suite, &SecretBytes::new(vec![7; 20]), &SecretBytes::new(vec![]));
    let mut processor: Box<dyn Processor> = Box::new(AwsLc::new());
    processor.open_session(SessionId(0), &keys.expect("keys"), Direction::Seal).expect("a session");
    let spec = JobSpec {
        session: SessionId(0),
        cipher: Span { start: 16, len: len as u32 },
        iv: 8,
        auth: Span { start: 0, len: 8 },
        icv: 16 + len as u32,
        seq_hi: None,
    };
    let (mut jobs, mut done) = (Vec::new(), Vec::new());
    jobs.extend((0..BURST as u64).map(|token| Job::new(Packet::with_capacity(len), spec, token)));
    move || {
        processor.submit(Time::ZERO, &mut jobs);
        processor.poll(Time::ZERO, &mut done);
        std::mem::swap(&mut jobs, &mut done);
        black_box(&jobs);
    }
}
