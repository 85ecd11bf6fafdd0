//! Cycles of every core by length of text, sealing with a loaded key, as JSON: what the study `gates` starts from.
//!
//!     cargo run -p forebay-crypto-rtl --features pipelined --example cycles > studies/gates/cycles.json

#[cfg(not(rtl))]
fn main() {
    eprintln!("cycles: this program was built without Verilator (scripts/setup.sh hardware)");
    std::process::exit(2);
}

#[cfg(rtl)]
fn main() {
    let cores: Vec<String> =
        forebay_crypto_rtl::Core::ALL.iter().map(|&(name, core)| rtl::line(name, core)).collect();
    println!("{{\n{}\n}}", cores.join(",\n"));
}

#[cfg(rtl)]
mod rtl {
    use std::num::NonZeroU64;

    use forebay_crypto::{
        Direction, Job, JobSpec, Packet, Processor, SaKeys, SecretBytes, SessionId, Span, Suite,
    };
    use forebay_crypto_rtl::{Config, Core, Rtl};
    use forebay_time::Time;

    /// Lengths of text in bytes: packets of 40, 576 and 1500 bytes in tunnel mode, and round ones; whole blocks of all ciphers.
    const TEXTS: [usize; 8] = [48, 64, 128, 256, 576, 1_024, 1_408, 1_504];
    /// A cycle takes a nanosecond.
    const CLOCK_HZ: NonZeroU64 = NonZeroU64::new(1_000_000_000).expect("not zero");

    pub fn line(name: &str, core: Core) -> String {
        let suite =
            core.suites().into_iter().filter(|suite| suite.cipher_key_len() > 0).min_by_key(|suite| {
                // The shortest key and the longest ICV.
                (suite.cipher_key_len(), usize::MAX - suite.icv_len())
            });
        let suite = suite.expect("a core has suites that encipher");
        let mut rtl = Rtl::new(Config { name: name.to_owned(), core, clock_hz: CLOCK_HZ, record: None });
        let key = |len| SecretBytes::new((7..).take(len).collect());
        let keys = SaKeys::new(
            suite,
            &key(suite.cipher_key_len() + suite.salt_len()),
            &key(suite.integrity_key_len()),
        );
        rtl.open_session(SessionId(1), &keys.expect("a key"), Direction::Seal).expect("a session");
        cycles(&mut rtl, suite, 64);
        let cells: Vec<String> =
            TEXTS.iter().map(|&text| format!("\"{text}\": {}", cycles(&mut rtl, suite, text))).collect();
        format!(" \"{name}\": {{\"suite\": \"{suite}\", \"cycles\": {{{}}}}}", cells.join(", "))
    }

    fn cycles(rtl: &mut Rtl, suite: Suite, text: usize) -> u64 {
        let (iv, icv) = (suite.iv_len(), suite.icv_len());
        let mut packet = Packet::with_capacity(4_096);
        assert!(packet.fill(&vec![3; 8 + iv + text + icv]));
        let start = packet.offset();
        let (behind, end) = (start + 8 + iv, start + 8 + iv + text);
        let cipher = if suite.is_chained() { start + 8 } else { behind };
        let span = |start: usize, end: usize| Span { start: start as u32, len: (end - start) as u32 };
        let spec = JobSpec {
            session: SessionId(1),
            cipher: span(cipher, end),
            iv: (start + 8) as u32,
            auth: span(start, if suite.covers_text() { end } else { start + 8 }),
            icv: end as u32,
            seq_hi: None,
        };
        let (mut jobs, mut done) = (vec![Job::new(packet, spec, 0)], Vec::new());
        rtl.submit(Time::ZERO, &mut jobs);
        rtl.poll(Time::ZERO, &mut done);
        assert_eq!(done[0].verdict, forebay_crypto::Verdict::Done);
        done[0].took.as_nanos()
    }
}
