//! What one direction does the other undoes, for each way that a job takes through the backend.
//!
//! Small enough for Miri, which checks the pointers that the library is given: there a stand-in with toy ciphers is in
//! the library's place, so nothing here may depend on published bytes.

use forebay_crypto::{
    Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_crypto_ipsec_mb::{BareGcm, new};
use forebay_time::Time;

/// One suite for each way: direct calls, AEADs of the job manager, chains, streams, and each kind of MAC.
const SUITES: [&str; 10] = [
    "aes128gcm16",
    "aes256gmac",
    "chacha20poly1305",
    "aes128ccm16",
    "aes256-sha512",
    "3des-sha1",
    "aes128ctr-sha256",
    "null-md5",
    "null-aesxcbc",
    "aes192ctr-aescmac",
];
const LENS: &[u32] = if cfg!(miri) { &[48] } else { &[0, 48, 144] };

fn keys(suite: Suite) -> SaKeys {
    let key = SecretBytes::new((1..).take(suite.cipher_key_len() + suite.salt_len()).collect());
    SaKeys::new(suite, &key, &SecretBytes::new(vec![2; suite.integrity_key_len()])).expect("keys")
}

/// A job in ESP's shape on `len` bytes of text.
fn spec(session: u32, suite: Suite, direction: Direction, start: u32, len: u32, esn: bool) -> JobSpec {
    let iv = start + 8;
    let text = iv + suite.iv_len() as u32;
    let end = text + len;
    // Sealing, the IV field is the first block of a chain.
    let begin = if suite.is_chained() && direction == Direction::Seal { iv } else { text };
    JobSpec {
        session: SessionId(session),
        cipher: Span { start: begin, len: end - begin },
        iv,
        auth: Span { start, len: if suite.covers_text() { end - start } else { 8 } },
        icv: end,
        seq_hi: esn.then_some(7),
    }
}

fn run(processor: &mut dyn Processor, mut jobs: Vec<Job>) -> Vec<Job> {
    let mut done = Vec::new();
    processor.submit(Time::ZERO, &mut jobs);
    processor.poll(Time::ZERO, &mut done);
    done.sort_by_key(|job| job.token);
    done
}

#[test]
fn a_burst_of_all_kinds_of_jobs_is_sealed_and_opened() {
    let mut processor = match new() {
        Ok(processor) => processor,
        Err(why) => return println!("skipped: {why}"),
    };
    let suites = SUITES.map(|word| word.parse::<Suite>().expect("a suite"));
    for (at, &suite) in suites.iter().enumerate() {
        for (direction, session) in [(Direction::Seal, at), (Direction::Open, at + 100)] {
            processor
                .open_session(SessionId(session as u32), &keys(suite), direction)
                .unwrap_or_else(|why| panic!("{suite}: {why:?}"));
        }
    }
    for esn in [false, true] {
        let content = |suite: Suite, len: u32| -> Vec<u8> {
            (0..8 + suite.iv_len() as u32 + len).map(|at| (at * 7 + 1) as u8).collect()
        };
        let cases = || {
            suites.iter().enumerate().flat_map(|(at, &suite)| LENS.iter().map(move |&len| (at, suite, len)))
        };
        let sealing = cases().enumerate().map(|(token, (at, suite, len))| {
            let mut packet = Packet::with_capacity(512);
            assert!(packet.fill(&content(suite, len)));
            assert!(packet.grow(0, suite.icv_len()).is_some());
            let spec = spec(at as u32, suite, Direction::Seal, packet.offset() as u32, len, esn);
            Job::new(packet, spec, token as u64)
        });
        let sealed = run(&mut *processor, sealing.collect());
        let opening = sealed.into_iter().zip(cases()).flat_map(|(job, (at, suite, len))| {
            assert_eq!(job.verdict, Verdict::Done, "{suite}, {len} bytes");
            let spec = spec(100 + at as u32, suite, Direction::Open, job.packet.offset() as u32, len, esn);
            // The same once more with another bit.
            let mut changed = Packet::with_capacity(512);
            assert!(changed.copy_from(&job.packet));
            changed.buffer_mut()[spec.icv as usize] ^= 1;
            [Job::new(job.packet, spec, 2 * job.token), Job::new(changed, spec, 2 * job.token + 1)]
        });
        let opened = run(&mut *processor, opening.collect());
        for (pair, (_, suite, len)) in opened.chunks(2).zip(cases()) {
            assert_eq!(pair[0].verdict, Verdict::Done, "{suite}, {len} bytes");
            assert_eq!(pair[1].verdict, Verdict::AuthFailed, "{suite}, {len} bytes");
            let (bytes, expected) = (pair[0].packet.bytes(), content(suite, len));
            let text = 8 + suite.iv_len();
            assert_eq!(bytes[text..][..len as usize], expected[text..], "{suite}, {len} bytes");
        }
    }
}

#[test]
fn the_bare_cipher_goes_over_all_buffers() {
    let buffers = vec![vec![1; 40], vec![2; 40]];
    let Some(mut bare) = BareGcm::new(&[3; 16], 16, false, buffers) else {
        return println!("skipped: no library");
    };
    bare.run(2);
}
