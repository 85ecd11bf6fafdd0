//! One run through a capture: each core takes a burst of records, goes with it through the engine, and writes what has
//! left by then, in the order of the capture.
//!
//! ```text
//! reader --one core at a time--> prepare --> crypto, each core by itself --> writer, one core at a time
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_crypto::{Direction, Job, JobSpec};
use forebay_engine::{Answer, Engine, Output, Refusal, TAKE, Turnstile};
use forebay_ipsec::{DropCounts, DropReason};
use forebay_links::LinkType;
use forebay_links::capture::{Reader, Writer};
use forebay_links::frame::{IpAt, MAX_PREFIX, NotIp, fill_in_length, ip_length, locate, reframe};
use forebay_terminal::capture_error;
use forebay_terminal::progress::{self, Progress};
use forebay_time::{Duration, Time};
use forebay_wire::{Ip, Malformed};
use miette::miette;

/// Room that a burst may need: its packets may be cut into several.
const ROOM: usize = 2 * TAKE;
/// Packets further apart than this, in the capture, are not of one burst.
const SAME_TIME: Duration = Duration::from_millis(1);
const PS_PER_NS: u64 = 1_000;
/// Packets between two looks at interrupts and the progress bar.
const LOOK_EVERY: u64 = 1024;
/// Longest wait for the last packets: far beyond what any processor is given.
const DRAIN_MAX: Duration = Duration::from_millis(10_000);

/// What went in and came out.
#[derive(Default)]
pub struct Figures {
    pub packets_in: u64,
    pub packets_out: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// ICMP messages to sources.
    pub answers: u64,
    /// Drops that never reached the engine.
    pub drops: DropCounts,
}

/// Where the cores meet.
pub struct Pass {
    direction: Direction,
    verbose: bool,
    source: Turnstile<Source>,
    /// Records whose packets have been admitted since the sink looked last.
    admitted: Turnstile<Vec<Record>>,
    sink: Turnstile<Sink>,
    /// A core has failed.
    stop: AtomicBool,
}

/// The capture that is read.
struct Source {
    reader: Reader<File>,
    progress: Progress,
    /// The first record's time: SAs live from there.
    begin_ns: Option<u64>,
    /// The record that the next burst begins with.
    next: Option<Taken>,
    ended: bool,
    packets: u64,
    bytes: u64,
    drops: DropCounts,
}

/// The captures that are written.
struct Sink {
    writer: Writer,
    icmp: Option<Writer>,
    /// Records whose packets may still come out of the engine, which releases them in this order: one packet,
    /// several, or none of its own where it went into another's.
    waiting: VecDeque<Record>,
    frame: Vec<u8>,
    packets: u64,
    bytes: u64,
    answers: u64,
}

/// A record that was read, and when its packet is.
struct Taken {
    job: Job,
    record: Record,
    time: Time,
}

/// What is kept of a record while its packet is in flight.
struct Record {
    number: u64,
    timestamp_ns: u64,
    link: LinkType,
    at: IpAt,
    prefix: [u8; MAX_PREFIX],
}

/// One core: its engine, and the lists that its packets go through.
struct Core<'a> {
    engine: &'a mut Engine,
    burst: Vec<Job>,
    records: Vec<Record>,
    free: Vec<forebay_crypto::Packet>,
}

impl Source {
    /// Notes that no record follows, and counts one that the file ends in.
    fn end(&mut self) {
        self.ended = true;
        if let Some(cut) = self.reader.cut() {
            eprintln!("{cut}; it is left out");
            self.packets += 1;
            self.drops.count(DropReason::Snapped);
        }
    }
}

impl Pass {
    /// From `reader` to `writer`, and ICMP errors to `icmp`. The input has `size` bytes.
    pub fn new(
        (reader, size): (Reader<File>, u64),
        (writer, icmp): (Writer, Option<Writer>),
        direction: Direction,
        verbose: bool,
    ) -> Pass {
        let word = if direction == Direction::Seal { "sealing" } else { "opening" };
        let source = Source {
            reader,
            progress: Progress::bytes(word, size),
            begin_ns: None,
            next: None,
            ended: false,
            packets: 0,
            bytes: 0,
            drops: DropCounts::default(),
        };
        let (waiting, frame) = (VecDeque::new(), Vec::new());
        let sink = Sink { writer, icmp, waiting, frame, packets: 0, bytes: 0, answers: 0 };
        Pass {
            direction,
            verbose,
            source: Turnstile::new(source),
            admitted: Turnstile::default(),
            sink: Turnstile::new(sink),
            stop: AtomicBool::new(false),
        }
    }

    /// Takes the whole capture through `engines`, which share their SAs.
    ///
    /// # Errors
    /// If a capture cannot be read or written, and if the run was interrupted; no output is left then.
    pub fn run(self, engines: &mut [Engine]) -> miette::Result<Figures> {
        let Some((first, others)) = engines.split_first_mut() else { return Err(miette!("no core")) };
        std::thread::scope(|scope| {
            let pass = &self;
            let spawn = |engine| scope.spawn(move || pass.work(engine));
            let others: Vec<_> = others.iter_mut().map(spawn).collect();
            let done = pass.work(first);
            let ended = others.into_iter().map(|other| other.join().unwrap_or(Err(miette!("a core failed"))));
            ended.fold(done, Result::and)
        })?;
        self.advance_time(first)?;
        let Pass { source, sink, .. } = self;
        let (source, sink) = (source.into_inner(), sink.into_inner());
        source.progress.finish();
        if let Some(icmp) = sink.icmp {
            icmp.finish().map_err(capture_error)?;
        }
        sink.writer.finish().map_err(capture_error)?;
        Ok(Figures {
            packets_in: source.packets,
            packets_out: sink.packets,
            bytes_in: source.bytes,
            bytes_out: sink.bytes,
            answers: sink.answers,
            drops: source.drops,
        })
    }

    fn work(&self, engine: &mut Engine) -> miette::Result<()> {
        let done = Core::new(engine).work(self);
        if done.is_err() {
            self.stop.store(true, Ordering::Release);
        }
        done
    }

    /// No packets follow, so the time is advanced until those that wait for others are released. When sealing, this ends
    /// as soon as none waits, because a tunnel of a fixed rate sends empty packets without end.
    fn advance_time(&self, engine: &mut Engine) -> miette::Result<()> {
        let mut core = Core::new(engine);
        let by_time = |due: Time| self.direction == Direction::Open && due < Time::MAX;
        while core.engine.waiting() > 0 || by_time(core.engine.next_due()) {
            let due = core.engine.next_due();
            core.engine.set_time(due);
            core.drain(self)?;
        }
        Ok(())
    }

    fn name_drop(&self, number: u64, reason: DropReason) {
        if self.verbose {
            eprintln!("packet {number}: {}: {}", reason.name(), reason.explanation());
        }
    }
}

impl Core<'_> {
    fn new(engine: &mut Engine) -> Core<'_> {
        Core { engine, burst: Vec::with_capacity(TAKE), records: Vec::new(), free: Vec::new() }
    }

    fn work(&mut self, pass: &Pass) -> miette::Result<()> {
        while !pass.stop.load(Ordering::Acquire) {
            self.make_room(pass)?;
            // Where something goes by time, a burst is through before the next has its time.
            let by_time = self.engine.goes_by_time();
            let mut source = pass.source.pass();
            let Some(time) = self.gather(pass, &mut source, by_time)? else { break };
            pass.admitted.pass().append(&mut self.records);
            self.engine.set_time(time);
            self.engine.prepare_burst(pass.direction, &mut self.burst);
            if !by_time {
                drop(source);
            }
            self.engine.carry(&mut self.burst);
            self.take_refusals(pass);
            self.engine.poll();
            // Where another core writes, what has left waits, and this core goes on with the next burst.
            if let Some(mut sink) = pass.sink.try_pass() {
                self.give_out(pass, &mut sink)?;
            }
        }
        self.drain(pass)
    }

    /// Waits until a burst can be admitted.
    fn make_room(&mut self, pass: &Pass) -> miette::Result<()> {
        while self.engine.room() < ROOM && self.engine.in_flight() + self.engine.untaken() > 0 {
            self.engine.poll();
            self.give_out(pass, &mut pass.sink.pass())?;
        }
        Ok(())
    }

    /// Takes the records of the next burst, and returns their time; `None` if there are no more.
    fn gather(&mut self, pass: &Pass, source: &mut Source, by_time: bool) -> miette::Result<Option<Time>> {
        let apart = if by_time { Duration::ZERO } else { SAME_TIME };
        let mut of_burst = None;
        let most = self.engine.take_limit(TAKE).max(1);
        while self.burst.len() < most {
            let next = match source.next.take() {
                None => self.take(pass, source)?,
                taken => taken,
            };
            let Some(taken) = next else { break };
            if taken.time.since(*of_burst.get_or_insert(taken.time)) > apart {
                source.next = Some(taken);
                break;
            }
            self.records.push(taken.record);
            self.burst.push(taken.job);
        }
        Ok(of_burst)
    }

    /// Takes the next record that has a packet.
    fn take(&mut self, pass: &Pass, source: &mut Source) -> miette::Result<Option<Taken>> {
        while !source.ended {
            let Some(record) = source.reader.next_whole_record().map_err(capture_error)? else {
                source.end();
                break;
            };
            source.packets += 1;
            source.bytes += record.data.len() as u64;
            if record.number.is_multiple_of(LOOK_EVERY) {
                source.progress.at(record.offset);
                if progress::is_interrupted() {
                    return Err(progress::Interrupted.into());
                }
            }
            let begin_ns = *source.begin_ns.get_or_insert(record.timestamp_ns);
            match self.packet(&record) {
                Ok((packet, kept)) => {
                    let since = record.timestamp_ns.saturating_sub(begin_ns);
                    let time = Time(since.saturating_mul(PS_PER_NS));
                    let job = Job::new(packet, JobSpec::default(), kept.number);
                    return Ok(Some(Taken { job, record: kept, time }));
                }
                Err((reason, why)) => {
                    source.drops.count(reason);
                    match why {
                        Some(why) if pass.verbose => {
                            eprintln!("packet {}: {}: {why}", record.number, reason.name())
                        }
                        _ => pass.name_drop(record.number, reason),
                    }
                }
            }
        }
        Ok(None)
    }

    /// The packet of a record, and what is kept of the record.
    fn packet(
        &mut self,
        record: &forebay_links::capture::Record<'_>,
    ) -> Result<(forebay_crypto::Packet, Record), (DropReason, Option<NotIp>)> {
        let at = locate(record.link, record.data).map_err(|why| (DropReason::NotIp, Some(why)))?;
        let bytes = &record.data[at.start..];
        let cut = record.data.len() < record.original_len as usize;
        let known = ip_length(&at, record.data, record.original_len);
        let lacking = known.is_none_or(|length| length > bytes.len());
        if cut && (lacking || matches!(Ip::parse(bytes), Err(Malformed::Truncated))) {
            return Err((DropReason::Snapped, None));
        }
        let mut packet = self.engine.buffer();
        if !packet.fill(bytes) {
            self.engine.recycle(packet);
            return Err((DropReason::TooLong, None));
        }
        fill_in_length(at.family, packet.bytes_mut());
        let mut prefix = [0; MAX_PREFIX];
        prefix[..at.start].copy_from_slice(&record.data[..at.start]);
        let (number, timestamp_ns, link) = (record.number, record.timestamp_ns, record.link);
        Ok((packet, Record { number, timestamp_ns, link, at, prefix }))
    }

    fn take_refusals(&mut self, pass: &Pass) {
        for Refusal { packet, tag, reason } in self.engine.refusals() {
            self.free.push(packet);
            pass.name_drop(tag, reason);
        }
    }

    /// Waits until nothing is in this core's engine.
    fn drain(&mut self, pass: &Pass) -> miette::Result<()> {
        while self.engine.in_flight() > 0 && !pass.stop.load(Ordering::Acquire) {
            if !self.engine.drain(DRAIN_MAX) {
                let left = self.engine.in_flight();
                return Err(miette!("{left} packets were not returned by their processors"));
            }
        }
        self.give_out(pass, &mut pass.sink.pass())
    }

    /// Writes what has left.
    fn give_out(&mut self, pass: &Pass, sink: &mut Sink) -> miette::Result<()> {
        for output in self.engine.outputs() {
            sink.write(pass, &output)?;
            self.free.push(output.packet);
        }
        self.free.drain(..).for_each(|packet| self.engine.recycle(packet));
        self.engine.answers().iter().try_for_each(|answer| sink.answer(answer))
    }
}

impl Sink {
    fn write(&mut self, pass: &Pass, output: &Output) -> miette::Result<()> {
        if self.waiting.back().is_none_or(|last| last.number < output.tag) {
            self.waiting.extend(pass.admitted.pass().drain(..));
        }
        while self.waiting.front().is_some_and(|record| record.number < output.tag) {
            self.waiting.pop_front();
        }
        let record = self.waiting.front().filter(|record| record.number == output.tag);
        let record = record.ok_or_else(|| miette!("packet {} is out of order", output.tag))?;
        if let Err(reason) = output.result {
            pass.name_drop(record.number, reason);
            return Ok(());
        }
        self.frame.clear();
        let link = record.link.rewritten();
        let prefix = &record.prefix[..record.at.start];
        reframe(&record.at, prefix, output.packet.bytes(), &mut self.frame)
            .map_err(|error| miette!("packet {}: {error}", record.number))?;
        let len = self.frame.len() as u32;
        self.writer.write(link, record.timestamp_ns, len, &self.frame).map_err(capture_error)?;
        self.packets += 1;
        self.bytes += u64::from(len);
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> miette::Result<()> {
        self.answers += 1;
        let stamp = self.waiting.iter().find(|record| record.number == answer.tag);
        let stamp = stamp.or(self.waiting.back()).map_or(0, |record| record.timestamp_ns);
        if let Some(icmp) = &mut self.icmp {
            let len = answer.message.len() as u32;
            icmp.write(LinkType::Raw, stamp, len, &answer.message).map_err(capture_error)?;
        }
        Ok(())
    }
}
