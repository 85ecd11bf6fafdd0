//! A core behind a bus: its cycles by packet length have a closed form, and a card with the figures of that form delivers at
//! the same times as the card with the core inside.
#![cfg(rtl)]

use std::num::NonZeroU64;

use forebay_crypto::{
    Cipher, Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_crypto_rtl::{Config, Core, Rtl};
use forebay_time::{Duration, Time};

const SEAL: SessionId = SessionId(1);
/// At 100 MHz.
const PS_OF_A_CYCLE: u64 = 10_000;

fn rtl(core: Core) -> Rtl {
    let clock_hz = NonZeroU64::new(100_000_000).expect("not zero");
    let mut rtl = Rtl::new(Config { name: "rtl".to_owned(), core, clock_hz, record: None });
    open(&mut rtl, core, SEAL);
    rtl
}

fn suite(core: Core) -> Suite {
    let proposal = match core {
        Core::ChaCha20Poly1305 | Core::EspChaCha20Poly1305 => "chacha20poly1305",
        Core::EspCtrSha1 => "aes128ctr-sha1",
        Core::EspCbcSha256 => "aes128-sha256",
        Core::Esp3DesSha1 => "3des-sha1",
        _ => "aes128gcm16",
    };
    proposal.parse().expect("a proposal")
}

fn open(processor: &mut dyn Processor, core: Core, id: SessionId) {
    let suite = suite(core);
    let key = |len| SecretBytes::new((7..).take(len).collect());
    let keys =
        SaKeys::new(suite, &key(suite.cipher_key_len() + suite.salt_len()), &key(suite.integrity_key_len()));
    processor.open_session(id, &keys.expect("a key"), Direction::Seal).expect("a session");
}

/// ESP with so many bytes of text, to be sealed.
fn job(core: Core, session: SessionId, text: u32, token: u64) -> Job {
    let suite = suite(core);
    let (iv, icv) = (suite.iv_len() as u32, suite.icv_len() as u32);
    let mut packet = Packet::with_capacity(8_192);
    assert!(packet.fill(&vec![token as u8; (8 + iv + text + icv) as usize]));
    let start = packet.offset() as u32;
    let behind = start + 8 + iv;
    // For a chained cipher the text to be sealed begins with the IV.
    let cipher = if suite.is_chained() { start + 8 } else { behind };
    let spec = JobSpec {
        session,
        cipher: Span { start: cipher, len: behind + text - cipher },
        iv: start + 8,
        auth: Span { start, len: if suite.covers_text() { 8 + iv + text } else { 8 } },
        icv: behind + text,
        seq_hi: None,
    };
    Job::new(packet, spec, token)
}

fn took(processor: &mut dyn Processor, jobs: Vec<Job>) -> Vec<u64> {
    let (mut jobs, mut done) = (jobs, Vec::new());
    processor.submit(Time::ZERO, &mut jobs);
    processor.poll(Time::ZERO, &mut done);
    assert!(done.iter().all(|job| job.verdict == Verdict::Done));
    done.iter().map(|job| job.took.0 / PS_OF_A_CYCLE).collect()
}

#[test]
fn cycles_are_those_of_a_packet_and_of_its_blocks() {
    for &(name, core) in Core::ALL {
        let mut rtl = rtl(core);
        took(&mut rtl, vec![job(core, SEAL, 16, 0)]); // with the key
        // The largest block of cipher and hash.
        let block = if suite(core).covers_text() || suite(core).cipher() == Cipher::ChaCha20Poly1305 {
            64
        } else {
            16
        };
        let cycles = |blocks: u32| vec![job(core, SEAL, blocks * block, 0)];
        let [one, two, ten, eighty] = [1, 2, 5, 20].map(|blocks| took(&mut rtl, cycles(blocks))[0]);
        let each = (eighty - ten) / 15;
        println!(
            "{name}: {one} cycles for {block} bytes, {each} for each further {block} ({two}, {ten}, {eighty})"
        );
        assert_eq!((eighty - ten) % 15, 0, "{name}");
        assert!(two - one <= 2 * each && one > each, "{name}");
        // Another key costs its loading, once.
        open(&mut rtl, core, SessionId(2));
        let both = took(&mut rtl, vec![job(core, SessionId(2), 16, 0), job(core, SessionId(2), 16, 0)]);
        assert!(both[0] > both[1], "{name}: {both:?}");
    }
}

/// The closed form of a core by 16 bytes of packet: picoseconds of a packet, and of each block.
fn closed_form(core: Core) -> (Duration, Duration) {
    let mut rtl = rtl(core);
    let mut blocks_and_cycles = |text: u32| {
        let job = job(core, SEAL, text, 0);
        let blocks = job.packet.len().div_ceil(16) as u64;
        (blocks, took(&mut rtl, vec![job])[0])
    };
    blocks_and_cycles(64); // with the key
    let [(few, short), (many, long)] = [64, 1_408].map(blocks_and_cycles);
    let block = (long - short) * PS_OF_A_CYCLE / (many - few);
    (Duration(short * PS_OF_A_CYCLE - few * block), Duration(block))
}

/// Mean latency and last delivery of a card with the core inside, as parts of those of a card with the closed form, for
/// arrivals with gaps from a small generator.
fn compare(core: Core, (init, block): (Duration, Duration), sizes: &[u32]) -> (f64, f64) {
    let figures = CardConfig { name: "card".to_owned(), init, block, ..CardConfig::paper_230_mbit() };
    let core_inside = CardConfig { init: Duration::ZERO, ..figures.clone() };
    let buses = [Bus::new(BusConfig::pci_66()), Bus::new(BusConfig::pci_66())];
    let mut cards = [
        Card::timed_by_inner(core_inside, &buses[0], Box::new(rtl(core))),
        Card::new(figures, &buses[1], Box::new(forebay_crypto_aws_lc::AwsLc::new())),
    ];
    cards.iter_mut().for_each(|card| open(card, core, SEAL));
    let (mut now, mut random) = (Time::ZERO, 1u64);
    let mut sums = [Duration::ZERO; 2];
    let mut ends = [Time::ZERO; 2];
    let mut arrived = Vec::new();
    for number in 0..600u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        now = now + Duration::from_nanos((random >> 33) % 30_000);
        arrived.push(now);
        let text = sizes[number as usize % sizes.len()] / 16 * 16;
        for card in &mut cards {
            let mut jobs = vec![job(core, SEAL, text, number)];
            card.submit(now, &mut jobs);
            assert!(jobs.is_empty());
        }
        let until = if number == 599 { now + Duration::from_millis(100) } else { now };
        for (card, (sum, end)) in cards.iter_mut().zip(sums.iter_mut().zip(&mut ends)) {
            card.collect(until, |at, job| {
                *sum += at.since(arrived[job.token as usize]);
                *end = at;
            });
        }
    }
    let ratio = |one: u64, other: u64| one as f64 / other as f64;
    (ratio(sums[0].0, sums[1].0), ratio(ends[0].0, ends[1].0))
}

#[test]
fn a_card_with_the_closed_form_delivers_when_the_card_with_the_core_does() {
    for core in [Core::AesGcm, Core::EspGcm, Core::EspCtrSha1] {
        let form = closed_form(core);
        println!("{core:?}: {form:?}");
        let mix = [64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1_408];
        for sizes in [&[64][..], &[1_408], &mix] {
            let (latency, end) = compare(core, form, sizes);
            println!("{sizes:?}: mean latency {latency:.4}, end {end:.4} of the closed form's");
            assert!((0.98..1.02).contains(&latency) && (0.99..1.01).contains(&end), "{latency} {end}");
        }
    }
}

#[test]
fn jobs_of_a_core_that_is_stuck_fail_and_keep_their_packets() {
    let mut stuck = rtl(Core::AesGcm);
    stuck.stick();
    let (mut jobs, mut done) =
        (vec![job(Core::AesGcm, SEAL, 64, 9), job(Core::AesGcm, SEAL, 64, 9)], Vec::new());
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
    took(&mut rtl, vec![job(Core::AesGcm, SEAL, 64, 0)]);
    assert!(!path.exists());
    took(&mut rtl, vec![job(Core::AesGcm, SEAL, 64, 0), job(Core::AesGcm, SEAL, 64, 0)]);
    let length = std::fs::metadata(&path).map_or(0, |file| file.len());
    assert_eq!(length > 500, rtl_sys::WAVEFORMS, "a waveform of {length} bytes");
}
