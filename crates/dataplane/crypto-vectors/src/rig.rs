//! A processor under test, with a clock that the test sets.

use forebay_crypto::{Direction, Job, Processor, SaKeys, SessionError, SessionId, Suite, Verdict};
use forebay_time::{Duration, Time};

use crate::case::Case;

/// How often in a row a processor may be polled without a job taken or finished before it counts
/// as stuck. The clock moves with each poll, so this is ten seconds of a timed processor.
const PATIENCE: usize = 10_000_000;

/// A processor and its time.
pub struct Rig {
    processor: Box<dyn Processor>,
    now: Time,
}

impl Rig {
    /// Puts `processor` under test, at time zero.
    pub fn new(processor: Box<dyn Processor>) -> Rig {
        Rig { processor, now: Time::ZERO }
    }

    /// The suites that the processor declares.
    pub fn suites(&self) -> &[Suite] {
        &self.processor.capabilities().suites
    }

    /// Opens a session; a processor must take every suite that it declares.
    pub fn open(&mut self, id: SessionId, keys: &SaKeys, direction: Direction) {
        if let Err(error) = self.processor.open_session(id, keys, direction) {
            panic!("{}: {} {direction:?}: {error}", self.processor.name(), keys.suite());
        }
    }

    /// Tries to open a session of a suite that the processor does not declare, which it must say.
    pub fn refuse(&mut self, id: SessionId, keys: &SaKeys) {
        for direction in [Direction::Seal, Direction::Open] {
            let refused = self.processor.open_session(id, keys, direction);
            let expected = Err(SessionError::Unsupported(keys.suite()));
            assert_eq!(refused, expected, "{}: {} {direction:?}", self.processor.name(), keys.suite());
        }
    }

    /// Closes a session.
    pub fn close(&mut self, id: SessionId) {
        self.processor.close_session(id);
    }

    /// Gives all `cases` as one burst and holds each verdict and each byte against what is expected.
    pub fn check(&mut self, cases: &[Case]) {
        let jobs = cases.iter().enumerate().map(|(token, case)| case.job(token as u64)).collect();
        let done = self.run(jobs);
        for (case, job) in cases.iter().zip(&done) {
            if let Err(difference) = case.compare(job) {
                panic!("{}: {}: {difference}\n{:?}", self.processor.name(), case.name, case.spec);
            }
        }
    }

    /// Runs `jobs`, whose tokens count from zero, until each is back; in the order of the tokens.
    fn run(&mut self, mut jobs: Vec<Job>) -> Vec<Job> {
        let (name, given) = (self.processor.name().to_owned(), jobs.len());
        let (mut done, mut idle) = (Vec::with_capacity(given), 0);
        while done.len() < given {
            let before = (jobs.len(), done.len());
            self.processor.submit(self.now, &mut jobs);
            self.processor.poll(self.now, &mut done);
            idle = if before == (jobs.len(), done.len()) { idle + 1 } else { 0 };
            assert!(idle < PATIENCE, "{name}: stuck with {} of {given} jobs", given - done.len());
            if idle > 0 {
                self.wait();
            }
        }
        assert!(jobs.is_empty() && done.len() == given, "{name}: more jobs back than given");
        done.sort_by_key(|job| job.token);
        for (token, job) in done.iter().enumerate() {
            assert_eq!(job.token, token as u64, "{name}: a job came back twice, and another not");
            assert_ne!(job.verdict, Verdict::Pending, "{name}: job {token} came back undone");
        }
        done
    }

    /// Lets time pass: to when the processor says that something is due, or by a microsecond.
    fn wait(&mut self) {
        let later = self.now + Duration::from_micros(1);
        self.now = self.processor.next_due().map_or(later, |due| due.max(self.now + Duration(1)));
        std::thread::yield_now();
    }
}
