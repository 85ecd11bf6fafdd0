//! Break-even sizes: from which packets on a device is done earlier than the running core.
//!
//! ```text
//! each processor, each suite --> batches of packets, timed --> cost (what the gateway reads)
//!                                                         \--> response (the way there and back as well)
//! response of core and device --> break-even               --> measured at half and twice of it, round by round
//! ```
//!
//! The prediction may be wrong: a device can have several batches at work at once, a library be faster with some sizes than
//! the fit says, a bus be shared. So it is measured on both sides of each break-even, and what comes out is said.

mod breakeven;
mod figures;
mod fragment;
mod plan;

use std::ops::ControlFlow;

use forebay_crypto::{Processor, Suite};
use forebay_engine::{Bench, Clock, calibrate};
use forebay_loadgen::latency::Arrivals;
use forebay_loadgen::median::median;
use forebay_processors::{Costs, MeasuredCost};
use forebay_scheduler::Cost;
use forebay_time::{Duration, Time};
use miette::miette;

use crate::Error;
use breakeven::{Pays, response, text, time};
pub use figures::{BreakEven, Document, Named, Response, Side, Times, Verdict};
use plan::Given;
pub use plan::{Plan, Settings};

/// Batches that a measurement has at least, and at most: of an idle processor, and of one that has others' packets too, of
/// which the first tenth is left out.
const IDLE: (usize, usize) = (3, 1_000);
const LOADED: (usize, usize) = (30, 5_000);
/// A thread that does nothing for so long, and four times as long as a batch takes, does not run.
const STALL: Duration = Duration::from_micros(50);

/// Measures everything that is planned. `host` is the machine in words. `watch` is called with the number of measurements
/// that are done and the number that is planned, and returns whether to go on.
///
/// # Errors
/// If a processor cannot be used; [`Error::Cancelled`] if `watch` stops the work.
pub fn measure(
    plan: &Plan,
    host: &str,
    watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Document, Error> {
    let clock = Clock::start();
    let mut notes = Vec::new();
    let mut open = open(plan, &mut notes)?;
    let processors = open.iter().map(|one| Named { word: one.word.clone(), name: one.name().to_owned() });
    let mut document = Document {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        host: host.to_owned(),
        rounds: plan.rounds,
        slice_s: plan.slice.as_secs(),
        processors: processors.collect(),
        costs: Costs::default(),
        responses: Vec::new(),
        break_evens: Vec::new(),
        notes,
    };
    let mut count = Count { watch, done: 0, planned: plan.measurements() };
    for &suite in &plan.suites {
        let fitted: Vec<Option<Cost>> =
            open.iter_mut().map(|one| one.fit(suite, clock, &mut document)).collect();
        let (core, devices) = open.split_at_mut(1);
        let Some(of_core) = fitted[0] else { continue };
        for (device, of_device) in devices.iter_mut().zip(&fitted[1..]) {
            let Some(of_device) = *of_device else { continue };
            let mut pair = Pair { plan, suite, core: &mut core[0], device, of_core, of_device, clock };
            let found = pair.break_evens(&mut || count.step())?;
            document.break_evens.extend(found);
        }
    }
    if document.break_evens.is_empty() {
        return Err(Error::Setting {
            message: format!("no device has a suite of the running core: {}", document.notes.join("; ")),
            hint: "give another `--processor` or `--proposal`".to_owned(),
        });
    }
    Ok(document)
}

/// Opens the processors; devices that nobody has named may be absent.
fn open(plan: &Plan, notes: &mut Vec<String>) -> Result<Vec<Open>, Error> {
    let mut all = Vec::new();
    let names = fragment::names(&plan.processors);
    for ((place, spec), name) in plan.processors.iter().enumerate().zip(names) {
        match spec.open_alone(&name) {
            Ok(processor) => all.push(Open { word: spec.name.clone(), processor }),
            Err(why) if plan.any_device && place > 0 => notes.push(format!("no {}: {why}", spec.name)),
            Err(why) => return Err(why.into()),
        }
    }
    Ok(all)
}

/// A processor that is open.
struct Open {
    word: String,
    processor: Box<dyn Processor>,
}

impl Open {
    fn name(&self) -> &str {
        self.processor.name()
    }

    /// Measures it with a suite, and notes the costs; what its response is, if it has the suite.
    fn fit(&mut self, suite: Suite, clock: Clock, document: &mut Document) -> Option<Cost> {
        let found = calibrate(&mut *self.processor, suite, clock);
        let Some(calibration) = found else {
            document.notes.push(format!("{} does not support {suite}", self.word));
            return None;
        };
        let measured = MeasuredCost::new(self.name(), suite, &calibration);
        let response = response(&measured, suite)?;
        document.responses.push(Response {
            processor: self.word.clone(),
            proposal: suite.to_string(),
            init_s: response.init.as_secs(),
            block_s: response.block.as_secs(),
            packet_s: response.packet.as_secs(),
            submit_s: response.submit.as_secs(),
            lanes: response.lanes,
        });
        let costs = &mut document.costs.processors;
        // Cores with one library cost the same.
        if !costs.iter().any(|one| one.name == measured.name && one.proposal == measured.proposal) {
            costs.push(measured);
        }
        Some(response)
    }
}

/// Measurements that are done, of those that are planned.
struct Count<W> {
    watch: W,
    done: u64,
    planned: u64,
}

impl<W: FnMut(u64, u64) -> ControlFlow<()>> Count<W> {
    fn step(&mut self) -> Result<(), Error> {
        if (self.watch)(self.done, self.planned).is_break() {
            return Err(Error::Cancelled);
        }
        self.done += 1;
        Ok(())
    }
}

/// A device beside the running core, with one suite.
struct Pair<'a> {
    plan: &'a Plan,
    suite: Suite,
    core: &'a mut Open,
    device: &'a mut Open,
    of_core: Cost,
    of_device: Cost,
    clock: Clock,
}

/// What is to be known, and what is known of it.
struct Question {
    load: f64,
    given: Given,
    pays: Pays,
    at: [usize; 2],
    /// Of each side, the times of each round.
    rounds: [Vec<Times>; 2],
}

impl Pair<'_> {
    /// All break-evens, measured on both sides in turn: what disturbs the machine for a while spoils one round of each.
    fn break_evens(&mut self, step: &mut dyn FnMut() -> Result<(), Error>) -> Result<Vec<BreakEven>, Error> {
        let mut questions = Vec::new();
        for &load in &self.plan.loads {
            for given in self.plan.given() {
                let pays = Pays::of(given.range(), |at| self.predicted(given.with(at), load).device_first());
                let at = pays.sides(given.range());
                questions.push(Question { load, given, pays, at, rounds: [vec![], vec![]] });
            }
        }
        for round in 0..self.plan.rounds as u64 {
            for one in &mut questions {
                for (at, rounds) in one.at.into_iter().zip(&mut one.rounds) {
                    step()?;
                    rounds.push(self.measured(one.given.with(at), one.load, round)?);
                }
            }
        }
        Ok(questions.into_iter().map(|one| self.answer(one)).collect())
    }

    fn predicted(&self, (bytes, packets): (usize, usize), load: f64) -> Times {
        let of = |cost, load| time(cost, self.suite, bytes, packets, load).as_secs();
        Times { core_s: of(&self.of_core, 0.0), device_s: of(&self.of_device, load) }
    }

    /// One measurement of both, of the idle core and of the device with its load.
    fn measured(&mut self, (bytes, packets): (usize, usize), load: f64, seed: u64) -> Result<Times, Error> {
        let length = Duration(self.plan.slice.0 / 2);
        let alone = time(&self.of_device, self.suite, bytes, packets, 0.0);
        let mut stand = Stand { suite: self.suite, clock: self.clock, bytes, packets, length };
        let core_s = stand.idle(self.core)?;
        let device_s = if load > 0.0 {
            stand.loaded(self.device, alone, load, seed)?
        } else {
            stand.idle(self.device)?
        };
        Ok(Times { core_s, device_s })
    }

    fn answer(&self, one: Question) -> BreakEven {
        let sides: Vec<Side> = one
            .at
            .into_iter()
            .zip(&one.rounds)
            .map(|(at, rounds)| {
                let (bytes, packets) = one.given.with(at);
                let predicted = self.predicted((bytes, packets), one.load);
                let agrees = |times: &&Times| times.device_first() == predicted.device_first();
                let agreeing = rounds.iter().filter(agrees).count();
                let middle = |of: fn(&Times) -> f64| median(rounds.iter().map(of).collect());
                let measured =
                    Times { core_s: middle(|times| times.core_s), device_s: middle(|times| times.device_s) };
                let verdict = Verdict::of_rounds(agreeing, rounds.len());
                Side { bytes, packets, predicted, measured, agreeing, verdict }
            })
            .collect();
        let (pays, at) = one.pays.in_words();
        let (packets, bytes) = match one.given {
            Given::Packets(packets) => (Some(packets), None),
            Given::Bytes(bytes) => (None, Some(bytes)),
        };
        BreakEven {
            proposal: self.suite.to_string(),
            device: self.device.word.clone(),
            load: one.load,
            packets,
            bytes,
            pays,
            at,
            measured: figures::crossing(one.at, &sides),
            verdict: Verdict::of_sides(&sides),
            sides,
        }
    }
}

/// What a processor is given.
struct Stand {
    suite: Suite,
    clock: Clock,
    bytes: usize,
    packets: usize,
    length: Duration,
}

impl Stand {
    /// Median time of batches that are handed over one after the other, in seconds.
    fn idle(&mut self, to: &mut Open) -> Result<f64, Error> {
        let (least, most) = IDLE;
        let mut times = Vec::new();
        let end = self.clock.now() + self.length;
        let mut bench = self.bench(to)?;
        while times.len() < most && (times.len() < least || self.clock.now() < end) {
            let Some(found) = bench.batch(text(self.bytes), self.packets) else { break };
            times.push(found.elapsed.as_secs());
        }
        drop(bench);
        self.answered(times.len() >= least, to).map(|()| median(times))
    }

    /// Mean time of batches that come at random moments and take `load` of the time of a processor, if each takes it
    /// `alone`.
    fn loaded(&mut self, to: &mut Open, alone: Duration, load: f64, seed: u64) -> Result<f64, Error> {
        let (least, most) = LOADED;
        let gap = alone.as_secs() / load;
        let count = ((self.length.as_secs() / gap) as usize).clamp(least, most);
        // Long enough for all arrivals.
        let length = Duration::from_secs(4.0 * gap * count as f64);
        let mut arrivals = Arrivals::new(1.0 / gap, length, seed).begin(Time::ZERO);
        let due: Vec<Duration> =
            (0..count).filter_map(|_| arrivals.due(Time::MAX)).map(|at| at.since(Time::ZERO)).collect();
        let stall = Duration(STALL.0 + 4 * alone.0);
        let times = self.bench(to)?.offered(text(self.bytes), self.packets, &due, stall);
        let counted = times.into_iter().flatten().skip(count / 10).flatten();
        let counted: Vec<f64> = counted.map(|time| time.as_secs()).collect();
        self.answered(!counted.is_empty(), to)?;
        Ok(counted.iter().sum::<f64>() / counted.len() as f64)
    }

    fn bench<'p>(&self, to: &'p mut Open) -> Result<Bench<'p>, Error> {
        let Open { word, processor } = to;
        let opened = Bench::open(&mut **processor, self.suite, self.clock);
        Ok(opened.ok_or_else(|| miette!("{word} does not open a session of {}", self.suite))?)
    }

    fn answered(&self, has: bool, by: &Open) -> Result<(), Error> {
        let Stand { suite, bytes, packets, .. } = self;
        match has {
            true => Ok(()),
            false => {
                Err(miette!("{} does not do {packets} packets of {bytes} bytes with {suite}", by.word).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use forebay_crypto::{Capabilities, Direction, Job, SaKeys, SessionError, SessionId, Verdict as Came};
    use forebay_loadgen::processors::Spec;

    use super::*;

    /// A processor that takes a time for a submission and for each block, and for packets that are longer than those by which costs are
    /// fitted another one.
    struct Timed {
        capabilities: Capabilities,
        submit: Duration,
        block: Duration,
        long: Option<Duration>,
        free: Time,
        held: VecDeque<(Time, Job)>,
    }

    impl Processor for Timed {
        fn name(&self) -> &str {
            "timed"
        }

        fn capabilities(&self) -> &Capabilities {
            &self.capabilities
        }

        fn open_session(&mut self, _: SessionId, _: &SaKeys, _: Direction) -> Result<(), SessionError> {
            Ok(())
        }

        fn close_session(&mut self, _: SessionId) {}

        fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
            let blocks: u64 = jobs.iter().map(|job| job.packet.len().div_ceil(16) as u64).sum();
            let is_long = jobs.iter().any(|job| job.packet.len() > 1_500);
            let by_blocks = self.submit + self.block.times(blocks);
            let took = if is_long { self.long.unwrap_or(by_blocks) } else { by_blocks };
            self.free = self.free.max(now) + took;
            let at = self.free;
            self.held.extend(jobs.drain(..).map(|job| (at, Job { verdict: Came::Done, ..job })));
        }

        fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
            let there = self.held.iter().take_while(|(at, _)| *at <= now).count();
            done.extend(self.held.drain(..there).map(|(_, job)| job));
        }

        fn next_due(&self) -> Option<Time> {
            self.held.front().map(|(at, _)| *at)
        }
    }

    fn timed(word: &str, submit_us: u64, block_ns: u64, long: Option<Duration>) -> Open {
        let suites = ["aes128gcm16"].map(|word| word.parse().unwrap()).into_iter().collect();
        let capabilities = Capabilities { suites, best_burst: 1, queue: 64 };
        let (submit, block) = (Duration::from_micros(submit_us), Duration::from_nanos(block_ns));
        let processor = Timed { capabilities, submit, block, long, free: Time::ZERO, held: VecDeque::new() };
        Open { word: word.to_owned(), processor: Box::new(processor) }
    }

    /// The break-even of one packet at a time of two processors.
    fn of_pair(mut open: [Open; 2]) -> BreakEven {
        let settings = Settings {
            proposals: vec!["aes128gcm16".to_owned()],
            processors: vec!["core".to_owned(), "card".to_owned()],
            bursts: vec![1],
            sizes: vec![],
            loads: vec![0.0],
            seconds: 0.06,
            rounds: 3,
        };
        let plan = Plan::new(&settings).unwrap();
        let (clock, suite) = (Clock::start(), plan.suites[0]);
        let mut document = Document {
            schema: 1,
            version: "",
            host: String::new(),
            rounds: 3,
            slice_s: 0.0,
            processors: vec![],
            costs: Costs::default(),
            responses: vec![],
            break_evens: vec![],
            notes: vec![],
        };
        let [of_core, of_device] = [0, 1].map(|one| open[one].fit(suite, clock, &mut document).unwrap());
        let [core, device] = &mut open;
        let mut pair = Pair { plan: &plan, suite, core, device, of_core, of_device, clock };
        let mut found = pair.break_evens(&mut || Ok(())).unwrap();
        document.break_evens.clone_from(&found);
        assert_eq!(document.holds(), found[0].verdict == Verdict::Holds);
        found.remove(0)
    }

    #[test]
    fn a_break_even_is_where_the_lines_of_both_meet() {
        // 1 us for each block against 100 us once: beyond 100 blocks, and 100 blocks are 1600 bytes with 32 of header, IV and ICV.
        let found = of_pair([timed("core", 0, 1_000, None), timed("card", 100, 0, None)]);
        assert_eq!((found.pays, found.packets), ("from", Some(1)));
        let at = found.at.unwrap() as f64;
        assert!((at / 1_566.0 - 1.0).abs() < 0.15, "{found:#?}");
        assert_eq!(
            [found.sides[0].bytes, found.sides[1].bytes],
            [found.at.unwrap() / 2, found.at.unwrap() * 2]
        );
        assert_ne!(found.verdict, Verdict::Fails, "{found:#?}");
    }

    #[test]
    fn a_prediction_that_the_measurement_refutes_does_not_hold() {
        // The fit sees nothing longer than 1440 bytes, where this device is fast.
        let slow = Duration::from_micros(50_000);
        let found = of_pair([timed("core", 0, 1_000, None), timed("card", 100, 0, Some(slow))]);
        assert_eq!(found.pays, "from");
        let above = &found.sides[1];
        assert!(above.predicted.device_first() && !above.measured.device_first(), "{found:#?}");
        assert_eq!((above.agreeing, above.verdict, found.verdict), (0, Verdict::Fails, Verdict::Fails));
        assert_eq!(found.measured, None);
    }

    fn card(words: &str) -> Open {
        let words = ["core", words].map(str::to_owned);
        let specs = Spec::parse_all(&words).unwrap();
        Open { word: words[1].clone(), processor: specs[1].open_alone("card").unwrap() }
    }

    fn stand(packets: usize) -> Stand {
        let suite = "aes128gcm16".parse().unwrap();
        Stand { suite, clock: Clock::start(), bytes: 64, packets, length: Duration::from_micros(1) }
    }

    #[test]
    fn batches_that_are_due_wait_for_those_before_them() {
        let mut card = card("card:init=200us+block=1ns");
        let stand = stand(2);
        let never = Duration::from_micros(60_000_000);
        let due = [Duration::ZERO; 4];
        let times = stand.bench(&mut card).unwrap().offered(text(64), 2, &due, never).unwrap();
        // Each takes the card 200 us and more, whatever this machine does meanwhile.
        for (number, time) in times.into_iter().enumerate() {
            assert!(time.unwrap() > Duration::from_micros(200 * (number as u64 + 1)), "{number}: {time:?}");
        }
    }

    #[test]
    fn what_was_at_work_while_the_thread_did_not_run_does_not_count() {
        let mut card = card("card:init=200us+block=1ns");
        let stand = stand(1);
        // Every step takes longer than that.
        let times =
            stand.bench(&mut card).unwrap().offered(text(64), 1, &[Duration::ZERO; 3], Duration::ZERO);
        assert_eq!(times.unwrap(), [None; 3]);
    }

    #[test]
    fn a_processor_without_the_suite_is_said() {
        let mut card = card("card");
        let mut stand = stand(1);
        stand.suite = "null-sha256".parse().unwrap();
        card.processor = Box::new(forebay_processors::Absent::new("card"));
        assert!(stand.idle(&mut card).unwrap_err().to_string().contains("does not open a session"));
    }
}
