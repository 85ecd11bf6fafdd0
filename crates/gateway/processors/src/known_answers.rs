//! Known-answer tests: before a processor gets its first packet, it has to seal and open one for each of its suites, and to
//! reject a forged one.
//!
//! The answers are another implementation's (RustCrypto); the test of this module computes them anew. What is known of a
//! sealed packet is its end. Where a suite has an ICV, that covers all that was enciphered, so that a wrong cipher text shows
//! as well. That a processor computes rightly at its start says nothing of later: for that the engine checks results by
//! samples.

use std::collections::HashMap;
use std::sync::LazyLock;

use forebay_crypto::{
    Direction, Job, JobSpec, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_engine::{Clock, esp_job};
use forebay_time::Duration;
use miette::miette;

/// A session out of the way of real ones.
const SESSION: SessionId = SessionId(60_001);
/// Bytes to encipher: several blocks of each cipher and hash.
const TEXT: u32 = 208;
/// Longest wait for an answer: a device may make its program for a suite first.
const ANSWER_MAX: Duration = Duration::from_millis(10_000);

/// Bytes of a sealed packet's end that are known.
const END: usize = 32;

/// Proposal and end of the sealed packet in hexadecimal, a line each.
const ANSWERS: &str = include_str!("../data/known-answers.txt");

static ENDS: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| ANSWERS.lines().filter_map(|line| line.split_once(' ')).collect());

/// Has a processor seal and open a packet of each of its suites. Returns how many suites that were.
///
/// # Errors
/// The suite whose answer is wrong, or does not come.
pub fn test(processor: &mut dyn Processor, clock: Clock) -> miette::Result<usize> {
    let suites = processor.capabilities().suites.clone();
    for &suite in &suites {
        let passed = SealAndOpen { processor: &mut *processor, clock, suite }.run();
        passed.map_err(|what| {
            let help = "the processor computes wrong results: do not use it, and report driver and version";
            miette!(help = help, "{}: known-answer test of {suite} failed: {what}", processor.name())
        })?;
    }
    Ok(suites.len())
}

/// The keys of a test: bytes that count up.
fn keys(suite: Suite) -> Result<SaKeys, String> {
    let filler = |n: usize| SecretBytes::new((0..n).map(|i| i as u8).collect());
    let cipher = filler(suite.cipher_key_len() + suite.salt_len());
    SaKeys::new(suite, &cipher, &filler(suite.integrity_key_len())).map_err(|error| error.to_string())
}

struct SealAndOpen<'a> {
    processor: &'a mut dyn Processor,
    clock: Clock,
    suite: Suite,
}

impl SealAndOpen<'_> {
    fn run(&mut self) -> Result<(), String> {
        let keys = keys(self.suite)?;
        let plain = esp_job(SESSION, self.suite, TEXT);
        let text = self.spec(Direction::Open).cipher.range();
        let before = plain.packet.buffer()[text.clone()].to_vec();
        let sealed = self.answer(&keys, Direction::Seal, plain, Verdict::Done)?;
        if ENDS.get(self.suite.to_string().as_str()) != Some(&end(&sealed).as_str()) {
            return Err("the sealed packet is not the right one".to_owned());
        }
        let opened = self.answer(&keys, Direction::Open, sealed, Verdict::Done)?;
        if opened.packet.buffer()[text] != before {
            return Err("the opened packet is not the one that was sealed".to_owned());
        }
        if self.suite.icv_len() == 0 {
            return Ok(());
        }
        let mut forged = self.answer(&keys, Direction::Seal, opened, Verdict::Done)?;
        let icv = forged.spec.icv as usize;
        forged.packet.buffer_mut()[icv] ^= 1;
        self.answer(&keys, Direction::Open, forged, Verdict::AuthFailed).map(drop)
    }

    /// Where the parts of the packet are: a chained cipher enciphers the IV too, and begins to decipher behind it.
    fn spec(&self, direction: Direction) -> JobSpec {
        let spec = esp_job(SESSION, self.suite, TEXT).spec;
        let skip = if direction == Direction::Open && self.suite.is_chained() {
            self.suite.iv_len() as u32
        } else {
            0
        };
        let cipher = Span { start: spec.cipher.start + skip, len: spec.cipher.len - skip };
        JobSpec { cipher, ..spec }
    }

    /// Has the processor do a job, which is to end with `verdict`.
    fn answer(
        &mut self,
        keys: &SaKeys,
        direction: Direction,
        job: Job,
        verdict: Verdict,
    ) -> Result<Job, String> {
        let opened = self.processor.open_session(SESSION, keys, direction);
        opened.map_err(|error| format!("no session: {error}"))?;
        let (mut jobs, mut done) = (vec![Job::new(job.packet, self.spec(direction), 0)], Vec::new());
        let begun = self.clock.now();
        self.processor.submit(begun, &mut jobs);
        while done.is_empty() && jobs.is_empty() && self.clock.now().since(begun) < ANSWER_MAX {
            self.processor.poll(self.clock.now(), &mut done);
            std::thread::yield_now();
        }
        self.processor.close_session(SESSION);
        let job = done.pop().ok_or_else(|| "no answer".to_owned())?;
        if job.verdict == verdict {
            Ok(job)
        } else {
            Err(format!("{direction:?} ended as {:?}", job.verdict))
        }
    }
}

/// The end of a packet in hexadecimal.
fn end(job: &Job) -> String {
    let bytes = job.packet.bytes();
    bytes[bytes.len().saturating_sub(END)..].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use forebay_crypto::fault::{Fault, FaultControl, Faulty};
    use forebay_crypto_aws_lc::AwsLc;

    /// `BLESS=1` writes them.
    #[test]
    fn the_answers_are_those_of_another_implementation() {
        let mut answers = String::new();
        for suite in Suite::all() {
            let mut job = esp_job(SESSION, suite, TEXT);
            let spec = job.spec;
            forebay_crypto_vectors::seal(&keys(suite).unwrap(), &spec, job.packet.buffer_mut());
            writeln!(answers, "{suite} {}", end(&job)).unwrap();
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/data/known-answers.txt"), &answers).unwrap();
        } else {
            assert_eq!(answers, ANSWERS, "run with BLESS=1 to write them anew");
        }
    }

    #[test]
    fn a_library_passes_and_a_processor_that_computes_wrongly_is_named() {
        let clock = Clock::start();
        assert!(test(&mut AwsLc::new(), clock).unwrap() > 20);
        for (fault, what) in [
            (Fault::CorruptIcv { every: 1 }, "not the right one"),
            (Fault::RejectGood { every: 1 }, "Open ended as AuthFailed"),
        ] {
            let control = FaultControl::new(1);
            let mut faulty = Faulty::new(AwsLc::new(), control.clone());
            control.arm(fault);
            let error = test(&mut faulty, clock).unwrap_err().to_string();
            assert!(error.contains("known-answer test of") && error.contains(what), "{error}");
        }
    }
}
