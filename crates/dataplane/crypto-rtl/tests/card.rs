//! A core behind a bus: its cycles by packet length have a closed form, and a card with the figures of that form delivers at
//! the same times as the card with the core inside.
#![cfg(rtl)]

use std::num::NonZeroU64;

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Verdict,
};
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_crypto_rtl::{Config, Core, Rtl};
use forebay_time::{Duration, Time};

const SEAL: SessionId = SessionId(1);

fn rtl(core: Core) -> Rtl {
    let clock_hz = NonZeroU64::new(100_000_000).expect("not zero");
    let mut rtl = Rtl::new(Config { name: "rtl".to_owned(), core, clock_hz, record: None });
    open(&mut rtl, core, SEAL);
    rtl
}

fn open(processor: &mut dyn Processor, core: Core, id: SessionId) {
    let suite = if core == Core::ChaCha20Poly1305 { "chacha20poly1305" } else { "aes128gcm16" };
    let suite: forebay_crypto::Suite = suite.parse().expect("a proposal");
    let key = SecretBytes::new(vec![7; suite.cipher_key_len() + suite.salt_len()]);
    let keys = SaKeys::new(suite, &key, &SecretBytes::new(vec![])).expect("a key");
    processor.open_session(id, &keys, Direction::Seal).expect("a session");
}

/// ESP with so many bytes of text.
fn job(session: SessionId, text: u32, token: u64) -> Job {
    let mut packet = Packet::with_capacity(8_192);
    assert!(packet.fill(&vec![token as u8; (8 + 8 + text + 16) as usize]));
    let start = packet.offset() as u32;
    let spec = JobSpec {
        session,
        cipher: Span { start: start + 16, len: text },
        iv: start + 8,
        auth: Span { start, len: 8 },
        icv: start + 16 + text,
        seq_hi: None,
    };
    Job::new(packet, spec, token)
}

fn took(processor: &mut dyn Processor, jobs: Vec<Job>) -> Vec<u64> {
    let (mut jobs, mut done) = (jobs, Vec::new());
    processor.submit(Time::ZERO, &mut jobs);
    processor.poll(Time::ZERO, &mut done);
    assert!(done.iter().all(|job| job.verdict == Verdict::Done));
    // At 100 MHz a cycle is 10 ns.
    done.iter().map(|job| job.took.as_nanos() / 10).collect()
}

#[test]
fn cycles_are_those_of_a_packet_and_of_its_blocks() {
    for &(name, core) in Core::ALL {
        let mut rtl = rtl(core);
        took(&mut rtl, vec![job(SEAL, 16, 0)]); // with the key
        let block = if core == Core::ChaCha20Poly1305 { 64 } else { 16 };
        let cycles = |blocks: u32| vec![job(SEAL, blocks * block, 0)];
        let [one, two, ten, eighty] = [1, 2, 10, 80].map(|blocks| took(&mut rtl, cycles(blocks))[0]);
        let each = (eighty - ten) / 70;
        println!("{name}: {one} cycles for a block, {each} for each further one ({two}, {ten}, {eighty})");
        assert_eq!((eighty - ten) % 70, 0, "{name}");
        assert!(two - one <= 2 * each && one > each, "{name}");
        // Another key costs its loading, once.
        open(&mut rtl, core, SessionId(2));
        let both = took(&mut rtl, vec![job(SessionId(2), 16, 0), job(SessionId(2), 16, 0)]);
        assert!(both[0] > both[1], "{name}: {both:?}");
    }
}

/// Arrivals of 64, 1408 and mixed bytes, with gaps from a small generator.
#[test]
fn a_card_with_the_closed_form_delivers_when_the_card_with_the_core_does() {
    let core = Core::AesGcm;
    let mut alone = rtl(core);
    took(&mut alone, vec![job(SEAL, 16, 0)]);
    let [ten, eighty] = [10, 80].map(|blocks| took(&mut alone, vec![job(SEAL, blocks * 16, 0)])[0]);
    let each = (eighty - ten) / 70;
    let init = ten - 10 * each;
    for sizes in [vec![64], vec![1_408], vec![64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1_408]] {
        let figures = CardConfig {
            name: "card".to_owned(),
            // The model counts the whole packet in blocks of 16 bytes: IV, header and ICV are two and a half of them.
            init: Duration::from_nanos(10 * (init - 2 * each)),
            block: Duration::from_nanos(10 * each),
            ..CardConfig::paper_230_mbit()
        };
        let core_inside = CardConfig { init: Duration::ZERO, ..figures.clone() };
        let buses = [Bus::new(BusConfig::pci_66()), Bus::new(BusConfig::pci_66())];
        let mut cards = [
            Card::timed_by_inner(core_inside, &buses[0], Box::new(rtl(core))),
            Card::new(figures, &buses[1], Box::new(forebay_crypto_aws_lc::AwsLc::new())),
        ];
        cards.iter_mut().for_each(|card| open(card, core, SEAL));
        // Loading the key for the first packet is not part of the comparison.
        let (mut now, mut random) = (Time::ZERO, 1u64);
        let mut sums = [Duration::ZERO; 2];
        let mut ends = [Time::ZERO; 2];
        let mut arrived = Vec::new();
        for number in 0..600u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now = now + Duration::from_nanos((random >> 33) % 30_000);
            arrived.push(now);
            let text = sizes[number as usize % sizes.len()] / 16 * 16;
            for (card, (sum, end)) in cards.iter_mut().zip(sums.iter_mut().zip(&mut ends)) {
                let mut jobs = vec![job(SEAL, text, number)];
                card.submit(now, &mut jobs);
                assert!(jobs.is_empty());
                card.collect(now, |at, job| {
                    *sum += at.since(arrived[job.token as usize]);
                    *end = at;
                });
            }
        }
        let last = now + Duration::from_millis(100);
        for (card, (sum, end)) in cards.iter_mut().zip(sums.iter_mut().zip(&mut ends)) {
            card.collect(last, |at, job| {
                *sum += at.since(arrived[job.token as usize]);
                *end = at;
            });
        }
        let ratio = |one: u64, other: u64| one as f64 / other as f64;
        let (latency, end) = (ratio(sums[0].0, sums[1].0), ratio(ends[0].0, ends[1].0));
        println!("{sizes:?}: mean latency {latency:.4}, end {end:.4} of the closed form's");
        assert!((0.98..1.02).contains(&latency) && (0.99..1.01).contains(&end), "{latency} {end}");
    }
}

#[test]
fn jobs_of_a_core_that_is_stuck_fail_and_keep_their_packets() {
    let mut stuck = rtl(Core::AesGcm);
    stuck.stick();
    let (mut jobs, mut done) = (vec![job(SEAL, 64, 9), job(SEAL, 64, 9)], Vec::new());
    stuck.submit(Time::ZERO, &mut jobs);
    stuck.poll(Time::ZERO, &mut done);
    assert!(done.iter().all(|job| job.verdict == Verdict::Failed && job.packet.bytes() == [9; 96]));
    assert_eq!(done.len(), 2);
}

#[test]
fn a_packet_is_recorded_as_a_waveform() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("packet.fst");
    let clock_hz = NonZeroU64::new(100_000_000).expect("not zero");
    let record = Some((1, path.clone()));
    let mut rtl = Rtl::new(Config { name: "rtl".to_owned(), core: Core::AesGcm, clock_hz, record });
    open(&mut rtl, Core::AesGcm, SEAL);
    took(&mut rtl, vec![job(SEAL, 64, 0)]);
    assert!(!path.exists());
    took(&mut rtl, vec![job(SEAL, 64, 0), job(SEAL, 64, 0)]);
    let length = std::fs::metadata(&path).map_or(0, |file| file.len());
    assert_eq!(length > 500, rtl_sys::WAVEFORMS, "a waveform of {length} bytes");
}
