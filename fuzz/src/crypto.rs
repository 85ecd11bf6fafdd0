//! The real cipher, with a pair of sessions for every suite there is, opened once: keys take far longer to set
//! up than a packet to protect.

use forebay_crypto::{
    Direction, Job, JobSpec, Layout, Processor, SaKeys, SecretBytes, SessionId, Span, Suite, Verdict,
};
use forebay_crypto_aws_lc::AwsLc;
use forebay_time::Time;

/// Every suite's number is that of its two sessions, halved.
pub struct Crypto {
    processor: AwsLc,
    suites: Vec<Suite>,
    jobs: Vec<Job>,
    done: Vec<Job>,
}

impl Crypto {
    pub fn new() -> Crypto {
        let suites: Vec<Suite> = Suite::all().collect();
        let mut processor = AwsLc::new();
        for (number, &suite) in suites.iter().enumerate() {
            let key = |len: usize| SecretBytes::new((1..=len).map(|at| at as u8).collect());
            let cipher = key(suite.cipher_key_len() + suite.salt_len());
            let keys = SaKeys::new(suite, &cipher, &key(suite.integrity_key_len())).expect("keys that fit");
            for direction in [Direction::Seal, Direction::Open] {
                processor.open_session(session(number, direction), &keys, direction).expect("a session");
            }
        }
        Crypto { processor, suites, jobs: Vec::new(), done: Vec::new() }
    }

    /// Does a job that an SA with this suite has stated; the job must keep to the rules.
    pub fn work(&mut self, suite: Suite, direction: Direction, job: Job) -> Job {
        self.check(suite, direction, &job);
        self.run(suite, direction, job)
    }

    /// Gives an inbound job the ICV and the cipher text that a holder of the keys would have sent, with the job's
    /// present bytes as the plain text.
    pub fn forge(&mut self, suite: Suite, mut job: Job) -> Job {
        self.check(suite, Direction::Open, &job);
        let spec = job.spec;
        if suite.is_chained() {
            job.spec.cipher = Span { start: spec.iv, len: spec.cipher.len + suite.iv_len() as u32 };
        }
        let mut job = self.run(suite, Direction::Seal, job);
        assert_eq!(job.verdict, Verdict::Done, "{suite} {spec:?}");
        job.spec = spec;
        job
    }

    fn check(&self, suite: Suite, direction: Direction, job: &Job) {
        let (spec, packet) = (&job.spec, &job.packet);
        let layout = Layout::check(spec, suite, direction, packet.buffer().len());
        assert!(layout.is_some(), "{suite} {spec:?}");
        let (from, to) = (packet.offset(), packet.offset() + packet.len());
        let field = |start: u32, len: usize| Span { start, len: len as u32 };
        for span in [spec.cipher, spec.auth, field(spec.iv, suite.iv_len()), field(spec.icv, suite.icv_len())]
        {
            assert!(from <= span.range().start && span.end() <= to, "{span:?} in {from}..{to}");
        }
    }

    fn run(&mut self, suite: Suite, direction: Direction, mut job: Job) -> Job {
        let number = self.suites.iter().position(|other| *other == suite).expect("all are there");
        let spec = job.spec;
        job.spec = JobSpec { session: session(number, direction), ..spec };
        self.jobs.push(job);
        self.processor.submit(Time::ZERO, &mut self.jobs);
        self.processor.poll(Time::ZERO, &mut self.done);
        let mut job = self.done.pop().expect("done at once");
        job.spec = spec;
        assert_ne!(job.verdict, Verdict::Failed, "{suite} {spec:?}");
        job
    }
}

fn session(number: usize, direction: Direction) -> SessionId {
    SessionId(2 * number as u32 + u32::from(direction == Direction::Open))
}
