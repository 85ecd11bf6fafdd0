//! Published vectors and random jobs through the cores, as for every backend; the random ones with streams that stall.
#![cfg(rtl)]

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_crypto::{Capabilities, Direction, Job, Processor, SaKeys, SessionError, SessionId, Verdict};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_rtl::{Config, Core, Rtl};
use forebay_crypto_vectors::{check_all, check_random};
use forebay_time::Time;

/// Random jobs of each core; `JOBS=10000` for more.
fn jobs() -> usize {
    std::env::var("JOBS").ok().and_then(|text| text.parse().ok()).unwrap_or(600)
}

fn rtl(core: Core, stalls: u32) -> Rtl {
    let clock_hz = NonZeroU64::new(100_000_000).expect("not zero");
    let mut rtl = Rtl::new(Config { name: "rtl".to_owned(), core, clock_hz, record: None });
    rtl.stall(stalls, 1);
    rtl
}

/// A core, and a library for the jobs that are not of ESP's form, such as text of 13 bytes: an ESP engine refuses these and
/// leaves them as they were.
struct WithLibrary {
    rtl: Rtl,
    library: AwsLc,
    /// Jobs that the core has answered.
    answered: Arc<AtomicUsize>,
}

impl Processor for WithLibrary {
    fn name(&self) -> &str {
        self.rtl.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.rtl.capabilities()
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        self.rtl.open_session(id, keys, direction)?;
        self.library.open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        self.rtl.close_session(id);
        self.library.close_session(id);
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.rtl.submit(now, jobs);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        let mut polled = Vec::new();
        self.rtl.poll(now, &mut polled);
        for job in polled {
            if job.verdict == Verdict::Failed {
                let mut again = vec![Job::new(job.packet, job.spec, job.token)];
                self.library.submit(now, &mut again);
                self.library.poll(now, done);
            } else {
                self.answered.fetch_add(1, Ordering::Relaxed);
                done.push(job);
            }
        }
    }
}

fn is_esp(core: Core) -> bool {
    Core::ALL.iter().any(|&(name, one)| one == core && name.starts_with("esp-"))
}

/// The core; and how many jobs it has answered, if it is one with a library.
fn processor(core: Core, stalls: u32, answered: &Arc<AtomicUsize>) -> Box<dyn Processor> {
    let rtl = rtl(core, stalls);
    if is_esp(core) {
        return Box::new(WithLibrary { rtl, library: AwsLc::new(), answered: answered.clone() });
    }
    Box::new(rtl)
}

#[test]
fn published_vectors_come_out_as_published() {
    for &(name, core) in Core::ALL {
        let answered = Arc::default();
        let report = check_all(&mut || processor(core, 0, &answered));
        let answered = answered.load(Ordering::Relaxed);
        println!("{name}: {answered}\n{report}");
        assert!(report.run("") > 50, "{name}:\n{report}");
        assert!(!is_esp(core) || answered > 10, "{name}: {answered}");
    }
}

#[test]
fn random_jobs_come_out_as_the_second_opinion_has_them() {
    for &(name, core) in Core::ALL {
        let answered = Arc::default();
        let report = check_random(&mut || processor(core, 30, &answered), 1, jobs());
        let answered = answered.load(Ordering::Relaxed);
        println!("{name}: {answered}\n{report}");
        for kind in ["seals", "opens", "flipped bits", "bad jobs", "unknown sessions"] {
            assert!(report.run(kind) > 20, "{name}\n{report}");
        }
        assert!(!is_esp(core) || answered > jobs() / 20, "{name}: {answered}");
    }
}
