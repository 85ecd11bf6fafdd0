//! What the library has limits for is refused, and the packet is left as it was.

use forebay_crypto::{
    Direction, Integrity, Job, JobSpec, Packet, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_crypto_ipsec_mb::new;
use forebay_time::Time;

/// The longest part of a job of the library's job manager, in bytes.
const PART_MAX: u32 = 65_534;

/// Seals `len` bytes in ESP's shape, with an ESN: the verdict, and whether any byte has changed.
fn seal(suite: Suite, len: u32) -> (Verdict, bool) {
    let mut processor = new().expect("as a moment ago");
    let key = SecretBytes::new(vec![1; suite.cipher_key_len() + suite.salt_len()]);
    let auth_key = SecretBytes::new(vec![2; suite.integrity_key_len()]);
    let keys = SaKeys::new(suite, &key, &auth_key).expect("keys of the suite's lengths");
    processor.open_session(SessionId(0), &keys, Direction::Seal).expect("a session");

    let mut packet = Packet::with_capacity(80_000);
    assert!(packet.fill(&[0x5a; 80_000]));
    let (before, start) = (packet.buffer().to_vec(), packet.offset() as u32);
    let (iv, text) = (start + 8, start + 8 + suite.iv_len() as u32);
    let spec = JobSpec {
        session: SessionId(0),
        cipher: Span { start: text, len },
        iv,
        auth: Span { start, len: if suite.covers_text() { text + len - start } else { 8 } },
        icv: text + len,
        seq_hi: Some(0x5a5a_5a5b),
    };
    let (mut jobs, mut done) = (vec![Job::new(packet, spec, 0)], Vec::new());
    processor.submit(Time::ZERO, &mut jobs);
    processor.poll(Time::ZERO, &mut done);
    (done[0].verdict, done[0].packet.buffer() != before)
}

#[test]
fn every_ip_packet_fits_and_what_does_not_is_left_alone() {
    if let Err(why) = new() {
        return println!("skipped: {why}");
    }
    for suite in ["aes128gcm16", "aes256gcm8", "chacha20poly1305", "aes256gmac", "aes128ctr"] {
        assert_eq!(seal(suite.parse().expect("a proposal"), 70_000), (Verdict::Done, true), "{suite}");
    }
    let separate = ["aes128ctr-sha1", "aes192ctr-sha256", "aes256ctr-sha384", "aes128ctr-sha512", "null-md5"];
    let separate = separate.into_iter().chain(["null-aesxcbc", "aes128ctr-aescmac"]);
    for suite in separate.chain(["aes128ccm8", "aes256ccm16"]) {
        let suite: Suite = suite.parse().expect("a proposal");
        let longest = match suite.integrity() {
            // The text is a part of its own.
            Integrity::Combined => PART_MAX,
            // SPI, sequence number, IV, text, high half.
            _ => PART_MAX - 8 - suite.iv_len() as u32 - 4,
        };
        assert_eq!(seal(suite, longest), (Verdict::Done, true), "{suite}");
        assert_eq!(seal(suite, longest + 1), (Verdict::Failed, false), "{suite}");
        assert_eq!(seal(suite, 70_000), (Verdict::Failed, false), "{suite}");
    }
}
