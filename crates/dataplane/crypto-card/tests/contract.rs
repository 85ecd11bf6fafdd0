//! The card as a processor: what jobs come back with, and what the papers say of its speed.

mod support;

use forebay_crypto::{
    Direction, Job, Processor, SaKeys, SecretBytes, SessionError, SessionId, Suite, Verdict,
};
use forebay_crypto_card::{Bus, BusConfig, COMPLETIONS_MAX, Card, CardConfig};
use forebay_time::{Duration, Time};
use support::{Bench, Xor, job, toy_bus, toy_card};

fn card(config: CardConfig, inner: Xor) -> Card {
    Card::new(config, &Bus::new(toy_bus()), Box::new(inner))
}

fn poll(card: &mut Card, now: u64) -> Vec<Job> {
    let mut done = Vec::new();
    card.poll(Time(now), &mut done);
    done
}

#[test]
fn the_crypto_is_done_and_nothing_comes_early() {
    let mut card = card(toy_card(), Xor::new());
    card.submit(Time(0), &mut vec![job(16, 7)]);
    assert!(poll(&mut card, 249).is_empty());
    let done = poll(&mut card, 250);
    assert_eq!((done.len(), done[0].token, done[0].verdict), (1, 7, Verdict::Done));
    assert_eq!(done[0].packet.bytes(), [0xff; 16]);
    assert!(poll(&mut card, u64::MAX).is_empty());
}

#[test]
fn the_shares_of_a_submission_sum_to_its_t_enc() {
    let mut card = card(toy_card(), Xor::new());
    card.submit(Time(0), &mut vec![job(17, 0), job(1, 1), job(64, 2)]);
    let took: Vec<u64> = poll(&mut card, u64::MAX).iter().map(|job| job.took.0).collect();
    assert_eq!(took, [217, 117, 416]); // 2, 1 and 4 blocks; 50 = 17 + 17 + 16
    assert_eq!(took.iter().sum::<u64>(), 50 + 7 * 100);
}

#[test]
fn next_due_is_exact_for_a_card_alone() {
    let mut card = card(CardConfig { doorbell: Duration(5), ..toy_card() }, Xor::new());
    assert_eq!(card.next_due(), None);
    card.submit(Time(0), &mut vec![job(16, 0)]);
    card.submit(Time(0), &mut vec![job(16, 1)]);
    for now in [0, 5, 6, 54, 55, 56, 204, 205, 206, 254] {
        assert!(poll(&mut card, now).is_empty());
        assert_eq!(card.next_due(), Some(Time(255)), "at {now}");
    }
    assert_eq!(poll(&mut card, 300).len(), 1);
    assert_eq!(card.next_due(), Some(Time(505)));
    assert_eq!(poll(&mut card, 505).len(), 1);
    assert_eq!(card.next_due(), None);
}

#[test]
fn a_full_queue_leaves_jobs_with_the_caller() {
    let mut card = card(CardConfig { queue: 1, ..toy_card() }, Xor::new());
    card.submit(Time(0), &mut vec![job(16, 0)]);
    card.submit(Time(0), &mut vec![job(16, 1)]);
    let mut jobs = vec![job(16, 2), job(16, 3)];
    card.submit(Time(0), &mut jobs);
    assert_eq!(jobs.iter().map(|job| job.token).collect::<Vec<_>>(), [2, 3]);
    assert!(jobs.iter().all(|job| job.verdict == Verdict::Pending && job.packet.bytes() == [0; 16]));
    assert_eq!(poll(&mut card, u64::MAX).len(), 2);
}

#[test]
fn a_caller_that_never_polls_is_refused_in_the_end() {
    let mut card = card(toy_card(), Xor::new());
    let (mut taken, mut now) = (0, 0);
    loop {
        let mut jobs = vec![job(16, taken)];
        card.submit(Time(now), &mut jobs);
        if !jobs.is_empty() {
            break;
        }
        (taken, now) = (taken + 1, now + 250);
    }
    assert_eq!(taken, COMPLETIONS_MAX as u64);
    assert_eq!(poll(&mut card, now).len(), COMPLETIONS_MAX);
}

#[test]
fn a_submission_larger_than_the_inner_queue_is_done_in_parts() {
    let mut card = card(toy_card(), Xor::new());
    card.submit(Time(0), &mut (0..200).map(|token| job(16, token)).collect());
    let done = poll(&mut card, u64::MAX);
    assert_eq!(done.len(), 200);
    assert!(done.iter().all(|job| job.verdict == Verdict::Done));
}

#[test]
fn what_an_asynchronous_inner_processor_keeps_comes_back_as_failed() {
    let mut card = card(toy_card(), Xor::slow(2));
    card.submit(Time(0), &mut (0..3).map(|token| job(16, token)).collect());
    let done = poll(&mut card, 0);
    assert_eq!(done.iter().map(|job| (job.token, job.verdict)).collect::<Vec<_>>(), [(2, Verdict::Failed)]);
    let done = poll(&mut card, u64::MAX);
    assert!(done.iter().map(|job| (job.token, job.verdict)).eq([(0, Verdict::Done), (1, Verdict::Done)]));
}

#[test]
fn suites_are_those_of_the_inner_processor_that_the_card_has() {
    let (gcm, cbc): (Suite, Suite) = ("aes128gcm16".parse().unwrap(), "aes128-sha1".parse().unwrap());
    let mut card = card(CardConfig { suites: Some(vec![gcm]), ..toy_card() }, Xor::new());
    assert_eq!(card.capabilities().suites, [gcm]);
    let keys = |suite: Suite| {
        let key = SecretBytes::new(vec![1; suite.cipher_key_len() + suite.salt_len()]);
        SaKeys::new(suite, &key, &SecretBytes::new(vec![2; suite.integrity_key_len()])).unwrap()
    };
    assert_eq!(card.open_session(SessionId(1), &keys(gcm), Direction::Seal), Ok(()));
    let refused = card.open_session(SessionId(2), &keys(cbc), Direction::Seal);
    assert_eq!(refused, Err(SessionError::Unsupported(cbc)));
}

#[test]
fn cards_of_one_bus_may_be_driven_from_different_threads() {
    let bus = Bus::new(toy_bus());
    let drive = |mut card: Card| {
        move || {
            let mut done = Vec::new();
            for now in 0..2_000 {
                card.submit(Time(now), &mut vec![job(16, now)]);
                card.poll(Time(now), &mut done);
            }
            card.poll(Time::MAX, &mut done);
            done.len()
        }
    };
    let card = || Card::new(CardConfig { queue: 4_000, ..toy_card() }, &bus, Box::new(Xor::new()));
    let threads = [card(), card()].map(|card| std::thread::spawn(drive(card)));
    assert_eq!(threads.map(|thread| thread.join().unwrap()), [2_000, 2_000]);
}

/// Mbit/s of one card that never lacks packets of 1500 bytes, on the papers' bus.
fn mbit_per_s(write_buffer: usize, prefetch: usize) -> f64 {
    let mut bench = Bench::new(
        BusConfig::pci_66(),
        &[CardConfig { write_buffer, prefetch, ..CardConfig::paper_230_mbit() }],
    );
    (0..1_000).for_each(|token| assert!(bench.submit(0, 0, &[1_500], token)));
    let (_, last) = bench.finish()[0][999];
    8.0 * 1_000.0 * 1_500.0 / (last as f64 / 1e6)
}

#[test]
fn a_card_of_440_ns_a_block_does_about_230_mbit_s() {
    // [H]: "about 230 Mbit/s" without buffers; either buffer gives the same gain, both a little more.
    let [plain, buffered, prefetching, both] =
        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(w, k)| mbit_per_s(w, k));
    println!("{plain:.1} {buffered:.1} {prefetching:.1} {both:.1} Mbit/s");
    assert!((plain - 223.2).abs() < 0.1); // 12000 bit / (5.697 + 42.36 + 5.697 us)
    assert!((buffered - 249.7).abs() < 0.1 && (prefetching - 249.7).abs() < 0.1);
    assert!((both - 283.3).abs() < 0.1); // 12000 bit / 42.36 us
}
