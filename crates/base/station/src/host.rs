//! Processors and buses together: what happens, in order.

use forebay_time::{Duration, Time};

use crate::agenda::Agenda;
use crate::bus::{BusConfig, Line, Speed, Transfer};
use crate::station::{Held, Port, Ring, Station, StationConfig, Unit, Work};

/// A way over the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Into the card.
    Fetch,
    /// Out of it.
    WriteBack,
}

/// Is told what happens. Everything but [`Watch::finished`] may be left alone.
pub trait Watch<T> {
    /// A job left the queue: a core begins it, a card asks for the bus. A card does that once for all jobs that
    /// were submitted together.
    #[inline]
    fn taken(&mut self, station: usize, now: Time) {
        let _ = (station, now);
    }

    /// A fetch has ended: its jobs are ahead of the unit.
    #[inline]
    fn fetched(&mut self, station: usize, now: Time) {
        let _ = (station, now);
    }

    /// A job begins to be computed; it will be at `until`.
    #[inline]
    fn started(&mut self, station: usize, now: Time, until: Time) {
        let _ = (station, now, until);
    }

    /// A job is complete: computed by a core, or written back by a card.
    fn finished(&mut self, station: usize, now: Time, work: Work<T>);

    /// A transfer begins; it will end at `until`.
    #[inline]
    fn transfer(&mut self, bus: usize, station: usize, way: Way, now: Time, until: Time) {
        let _ = (bus, station, way, now, until);
    }
}

/// What can happen by itself. Each station has at most one of each ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// It ends computing.
    Computed { station: u32 },
    /// It has fetched a job.
    Fetched { station: u32 },
    /// It has written a job back.
    WrittenBack { station: u32 },
    /// It hears a doorbell.
    Bell { station: u32 },
}

/// Processors and their buses, at one point in virtual time.
#[derive(Debug)]
pub struct Host<T> {
    stations: Vec<Station<T>>,
    buses: Vec<Bus>,
    course: Course,
}

/// A bus: its speed, and its lines by the way.
#[derive(Clone, Copy, Debug)]
struct Bus {
    speed: Speed,
    inward: usize,
    outward: usize,
}

/// What the processors share.
#[derive(Debug)]
struct Course {
    /// When what happened last did, or what was submitted last was.
    now: Time,
    agenda: Agenda<Event>,
    lines: Vec<Line>,
}

impl<T: Copy> Default for Host<T> {
    fn default() -> Host<T> {
        Host::new()
    }
}

impl<T: Copy> Host<T> {
    /// A host without processors, at time zero.
    pub fn new() -> Host<T> {
        let course = Course { now: Time::ZERO, agenda: Agenda::new(), lines: Vec::new() };
        Host { stations: Vec::new(), buses: Vec::new(), course }
    }

    /// Adds a bus; returns its number.
    pub fn add_bus(&mut self, config: BusConfig) -> usize {
        let number = self.buses.len();
        let inward = self.add_line(number);
        let outward = if config.full_duplex { self.add_line(number) } else { inward };
        self.buses.push(Bus { speed: config.speed, inward, outward });
        number
    }

    fn add_line(&mut self, bus: usize) -> usize {
        let line = self.course.lines.len();
        self.course.lines.push(Line::new(bus));
        line
    }

    /// Adds a processor; returns its number. Its bus must be there.
    pub fn add_station(&mut self, config: StationConfig) -> usize {
        let station = self.stations.len();
        assert!(u32::try_from(station).is_ok(), "there are too many processors");
        let port = config.bus.map(|bus| {
            let Bus { speed, inward, outward } = *self.buses.get(bus).expect("there is such a bus");
            Port { speed, inward, outward }
        });
        self.stations.push(Station::new(config, port));
        station
    }

    /// How long a transfer of `bytes` takes on a bus.
    pub fn transfer(&self, bus: usize, bytes: u64) -> Duration {
        self.buses[bus].speed.transfer(bytes)
    }

    /// Lets everything happen that happens up to `to`, in order; returns when the next thing will
    /// ([`Time::MAX`]: never).
    #[inline]
    pub fn advance(&mut self, to: Time, watch: &mut impl Watch<T>) -> Time {
        if self.course.agenda.first().is_some_and(|at| at <= to) {
            self.catch_up(to, None, watch);
        }
        self.course.agenda.first().unwrap_or(Time::MAX)
    }

    /// Lets everything happen up to the instant, it included, at which a processor takes a job out of its queue;
    /// returns that. `None`: it takes none any more, and all that happens has happened.
    pub fn advance_to_taking(&mut self, station: usize, watch: &mut impl Watch<T>) -> Option<Time> {
        self.catch_up(Time::MAX, Some(station), watch).then_some(self.course.now)
    }

    /// The heart: every event ends something at one station, which then does all it can do. Ends early, with the
    /// instant, when the station `taker` has taken a job; whether it has.
    #[inline(never)] // most calls find nothing due
    fn catch_up(&mut self, to: Time, taker: Option<usize>, watch: &mut impl Watch<T>) -> bool {
        let taker = taker.unwrap_or(usize::MAX);
        let (mut to, mut has_taken) = (to, false);
        let Host { stations, course, .. } = self;
        while let Some((now, event)) = course.agenda.take(to) {
            course.now = now;
            let (Event::Computed { station: number }
            | Event::Fetched { station: number }
            | Event::WrittenBack { station: number }
            | Event::Bell { station: number }) = event;
            let number = number as usize;
            let station = &mut stations[number];
            let leaves = match event {
                Event::Computed { .. } => station.computed(),
                Event::Fetched { .. } => {
                    course.free(station.port.map(|port| port.inward));
                    station.fetched();
                    watch.fetched(number, now);
                    false
                }
                Event::WrittenBack { .. } => {
                    course.free(station.port.map(|port| port.outward));
                    station.written_back();
                    true
                }
                Event::Bell { .. } => {
                    station.heard += station.bells.pop_front().map_or(0, |ring| ring.jobs);
                    if let Some(&Ring { at, number, .. }) = station.bells.front() {
                        course.agenda.put(at, number, event);
                    }
                    false
                }
            };
            if leaves {
                watch.finished(number, now, station.leave());
            }
            if course.act(number, station, watch) && number == taker {
                (to, has_taken) = (now, true);
            }
        }
        has_taken
    }

    /// Puts a job at the end of a processor's queue, after everything else of that instant. Limits
    /// of the queue are the caller's to keep.
    #[inline]
    pub fn submit(&mut self, now: Time, station: usize, work: Work<T>, watch: &mut impl Watch<T>) {
        self.advance(now, watch);
        let Host { stations, course, .. } = self;
        course.now = course.now.max(now);
        let this = &mut stations[station];
        let was_idle = this.jobs.is_empty();
        let transfer = this.port.as_ref().map_or(Duration::ZERO, |port| port.speed.transfer(work.bytes));
        let (inward, outward) = (transfer, transfer);
        this.jobs.push_back(Held { work, inward, outward, followers: 0, follows: false });
        course.ring(station, this, was_idle, 1, watch);
    }

    /// Puts jobs that are handed over together, one at least, at the end of a processor's queue: one transfer
    /// fetches them all; they are computed one after the other, and each is written back by itself.
    pub fn submit_all(&mut self, now: Time, station: usize, works: &[Work<T>], watch: &mut impl Watch<T>) {
        self.advance(now, watch);
        let Host { stations, course, .. } = self;
        course.now = course.now.max(now);
        let this = &mut stations[station];
        let was_idle = this.jobs.is_empty();
        let transfer = |bytes| this.port.as_ref().map_or(Duration::ZERO, |port| port.speed.transfer(bytes));
        let inward = transfer(works.iter().map(|work| work.bytes).sum());
        let followers = u32::try_from(works.len() - 1).expect("a submission has fewer jobs than 2^32");
        for (place, &work) in works.iter().enumerate() {
            let (follows, outward) = (place > 0, transfer(work.bytes));
            let (inward, followers) = if follows { (Duration::ZERO, 0) } else { (inward, followers) };
            this.jobs.push_back(Held { work, inward, outward, followers, follows });
        }
        course.ring(station, this, was_idle, works.len(), watch);
    }
}

impl Course {
    /// Tells a processor of the `jobs` jobs at the end of its queue, or rings its doorbell.
    #[inline(always)]
    fn ring<T: Copy>(
        &mut self,
        number: usize,
        station: &mut Station<T>,
        was_idle: bool,
        jobs: usize,
        watch: &mut impl Watch<T>,
    ) {
        let StationConfig { doorbell, wake, .. } = station.config;
        if doorbell == Duration::ZERO && wake == Duration::ZERO {
            station.heard += jobs;
            // One that does not take the job before these does not take these either.
            if station.heard == jobs {
                self.wake(number, station, watch);
            }
            return;
        }
        let at = self.now + doorbell + if was_idle { wake } else { Duration::ZERO };
        // What is submitted while it wakes up is noticed when it is awake.
        let at = station.bells.back().map_or(at, |before| at.max(before.at));
        if at == self.now {
            station.heard += jobs;
            if station.heard == jobs {
                self.wake(number, station, watch);
            }
            return;
        }
        let ring = Ring { at, number: self.agenda.number(), jobs };
        if station.bells.is_empty() {
            self.agenda.put(ring.at, ring.number, Event::Bell { station: number as u32 });
        }
        station.bells.push_back(ring);
    }

    /// [`Course::act`] of a processor that has waited for a job.
    #[inline(never)]
    fn wake<T: Copy>(&mut self, number: usize, station: &mut Station<T>, watch: &mut impl Watch<T>) {
        self.act(number, station, watch);
    }

    /// Lets a processor do all it can do now; whether it took a job out of its queue. A fetch is asked for before a
    /// write-back: "reads go before buffered writes".
    #[inline(always)]
    fn act<T: Copy>(&mut self, number: usize, station: &mut Station<T>, watch: &mut impl Watch<T>) -> bool {
        let now = self.now;
        let this = number as u32;
        let Some(Port { inward, outward, .. }) = station.port else {
            let begun = station.take(now);
            if let Some(until) = begun {
                self.agenda.schedule(until, Event::Computed { station: this });
                watch.taken(number, now);
                watch.started(number, now, until);
            }
            return begun.is_some();
        };
        station.unblock();
        if let Some(until) = station.start(now) {
            self.agenda.schedule(until, Event::Computed { station: this });
            watch.started(number, now, until);
        }
        let fetched = station.ask_fetch();
        if let Some(length) = fetched {
            watch.taken(number, now);
            self.lines[inward].asked.push_back(Transfer { length, station: this, way: Way::Fetch });
        }
        if let Some(length) = station.ask_write_back() {
            self.lines[outward].asked.push_back(Transfer { length, station: this, way: Way::WriteBack });
        }
        self.grant(inward, watch);
        if outward != inward {
            self.grant_outward(outward, watch);
        }
        fetched.is_some()
    }

    #[inline(never)]
    fn grant_outward<T>(&mut self, line: usize, watch: &mut impl Watch<T>) {
        self.grant(line, watch);
    }

    /// The transfer on a line has ended.
    #[inline]
    fn free(&mut self, line: Option<usize>) {
        if let Some(line) = line {
            self.lines[line].ended();
        }
    }

    /// Gives a line, if it is free, to the first that asked.
    #[inline(always)]
    fn grant<T>(&mut self, line: usize, watch: &mut impl Watch<T>) {
        let line = &mut self.lines[line];
        if line.busy {
            return;
        }
        let Some(&Transfer { length, station, way }) = line.asked.front() else { return };
        line.busy = true;
        line.end = self.now + length;
        let event = match way {
            Way::Fetch => Event::Fetched { station },
            Way::WriteBack => Event::WrittenBack { station },
        };
        self.agenda.schedule(line.end, event);
        watch.transfer(line.bus, station as usize, way, self.now, line.end);
    }
}

/// What can be seen from outside.
impl<T: Copy> Host<T> {
    /// Jobs submitted to a processor and not yet taken out of its queue.
    pub fn waiting(&self, station: usize) -> usize {
        self.stations[station].waiting()
    }

    /// Whether a processor would ask the bus for a job at once.
    pub fn may_fetch(&self, station: usize) -> bool {
        self.stations[station].may_fetch()
    }

    /// A time before which a card finishes no job: exact once the write-back of its oldest job is requested,
    /// otherwise computed as if no other device used the bus. `None` if it has no job.
    pub fn earliest_finish(&self, station: usize) -> Option<Time> {
        let this = &self.stations[station];
        let Held { work, inward, outward, .. } = this.jobs.front()?;
        let port = this.port?;
        let lines = &self.course.lines;
        if this.writing {
            return lines[port.outward].end_of(station, Way::WriteBack);
        }
        if this.unit == Unit::Computing {
            return Some(this.until + *outward);
        }
        if this.fetching > 0 {
            let fetched = lines[port.inward].end_of(station, Way::Fetch)?;
            return Some(fetched + work.time + *outward);
        }
        // A job that a card has heard of and does not fetch waits for one that it is busy with.
        let heard = this.bells.front()?.at;
        Some(heard + *inward + *outward + work.time)
    }
}
