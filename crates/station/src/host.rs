//! Processors and buses together: what happens, in order.

use forebay_time::{Duration, Time};

use crate::agenda::Agenda;
use crate::bus::{BusConfig, Line, Speed, Transfer};
use crate::station::{Held, Station, StationConfig, Unit, Work};

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
    /// A job left the queue: a core begins it, a card asks for the bus.
    #[inline]
    fn taken(&mut self, station: usize, now: Time) {
        let _ = (station, now);
    }

    /// A fetch has ended: the job is ahead of the unit.
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

/// What can happen by itself.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A unit ends computing.
    Unit { station: usize },
    /// A station hears a doorbell.
    Bell { station: usize },
    /// The transfer on a line ends.
    Line { line: usize },
}

/// Processors and their buses, at one point in virtual time.
#[derive(Debug)]
pub struct Host<T> {
    /// Everything up to here has happened.
    now: Time,
    agenda: Agenda<Event>,
    stations: Vec<Station<T>>,
    buses: Vec<Bus>,
    lines: Vec<Line>,
}

/// A bus: its speed, and its lines by the way.
#[derive(Clone, Copy, Debug)]
struct Bus {
    speed: Speed,
    inward: usize,
    outward: usize,
}

impl<T: Copy> Default for Host<T> {
    fn default() -> Host<T> {
        Host::new()
    }
}

impl<T: Copy> Host<T> {
    /// A host without processors, at time zero.
    pub fn new() -> Host<T> {
        Host {
            now: Time::ZERO,
            agenda: Agenda::new(),
            stations: Vec::new(),
            buses: Vec::new(),
            lines: Vec::new(),
        }
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
        let line = self.lines.len();
        self.lines.push(Line::new(bus));
        line
    }

    /// Adds a processor; returns its number. Its bus must be there.
    pub fn add_station(&mut self, config: StationConfig) -> usize {
        assert!(config.bus.is_none_or(|bus| bus < self.buses.len()), "there is no such bus");
        let station = self.stations.len();
        self.stations.push(Station::new(config));
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
        if self.agenda.first().is_some_and(|at| at <= to) {
            self.catch_up(to, watch);
        }
        self.now = self.now.max(to);
        self.agenda.first().unwrap_or(Time::MAX)
    }

    #[inline(never)] // most calls find nothing due
    fn catch_up(&mut self, to: Time, watch: &mut impl Watch<T>) {
        while let Some((at, event)) = self.agenda.take(to) {
            self.now = at;
            self.happen(event, watch);
        }
    }

    /// Puts a job at the end of a processor's queue, after everything else of that instant. Limits
    /// of the queue are the caller's to keep.
    #[inline]
    pub fn submit(&mut self, now: Time, station: usize, work: Work<T>, watch: &mut impl Watch<T>) {
        self.advance(now, watch);
        let now = self.now;
        let this = &mut self.stations[station];
        let transfer = match this.config.bus {
            Some(bus) => self.buses[bus].speed.transfer(work.bytes),
            None => Duration::ZERO,
        };
        if this.config.doorbell == Duration::ZERO {
            this.jobs.push_back(Held { work, transfer });
            this.heard += 1;
            self.act(station, watch);
            return;
        }
        let bell = (now + this.config.doorbell, self.agenda.number());
        if this.bells.is_empty() {
            self.agenda.put(bell.0, bell.1, Event::Bell { station });
        }
        this.bells.push_back(bell);
        this.jobs.push_back(Held { work, transfer });
    }

    #[inline]
    fn happen(&mut self, event: Event, watch: &mut impl Watch<T>) {
        match event {
            Event::Unit { station } => {
                let this = &mut self.stations[station];
                if this.config.bus.is_some() {
                    this.unit = Unit::Finished;
                } else {
                    this.unit = Unit::Idle;
                    let work = this.leave();
                    watch.finished(station, self.now, work);
                }
                self.act(station, watch);
            }
            Event::Bell { station } => {
                let this = &mut self.stations[station];
                this.heard += 1;
                this.bells.pop_front();
                if let Some(&(at, number)) = this.bells.front() {
                    self.agenda.put(at, number, Event::Bell { station });
                }
                self.act(station, watch);
            }
            Event::Line { line } => {
                let Some((Transfer { station, way, .. }, _)) = self.lines[line].under_way else { return };
                match way {
                    Way::Fetch => {
                        self.stations[station].fetched();
                        watch.fetched(station, self.now);
                    }
                    Way::WriteBack => {
                        let work = self.stations[station].written_back();
                        watch.finished(station, self.now, work);
                    }
                }
                self.act(station, watch);
                self.lines[line].under_way = None;
                self.grant(line, watch);
            }
        }
    }

    /// Lets a processor do all it can do now. A fetch is asked for before a write-back: "reads go
    /// before buffered writes".
    #[inline]
    fn act(&mut self, station: usize, watch: &mut impl Watch<T>) {
        let now = self.now;
        let this = &mut self.stations[station];
        let Some(bus) = this.config.bus else {
            if let Some(until) = this.take(now) {
                self.agenda.schedule(until, Event::Unit { station });
                watch.taken(station, now);
                watch.started(station, now, until);
            }
            return;
        };
        let Bus { inward, outward, .. } = self.buses[bus];
        this.unblock();
        if let Some(until) = this.start(now) {
            self.agenda.schedule(until, Event::Unit { station });
            watch.started(station, now, until);
        }
        if let Some(length) = this.ask_fetch() {
            watch.taken(station, now);
            self.ask(inward, Transfer { station, way: Way::Fetch, length }, watch);
        }
        if let Some(length) = self.stations[station].ask_write_back() {
            self.ask(outward, Transfer { station, way: Way::WriteBack, length }, watch);
        }
    }

    #[inline]
    fn ask(&mut self, line: usize, transfer: Transfer, watch: &mut impl Watch<T>) {
        if self.lines[line].under_way.is_none() {
            self.begin(line, transfer, watch);
        } else {
            self.lines[line].asked.push_back(transfer);
        }
    }

    /// Gives a free line to the first that asked.
    #[inline]
    fn grant(&mut self, line: usize, watch: &mut impl Watch<T>) {
        if let Some(transfer) = self.lines[line].asked.pop_front() {
            self.begin(line, transfer, watch);
        }
    }

    #[inline]
    fn begin(&mut self, line: usize, transfer: Transfer, watch: &mut impl Watch<T>) {
        let end = self.now + transfer.length;
        let this = &mut self.lines[line];
        this.under_way = Some((transfer, end));
        self.agenda.schedule(end, Event::Line { line });
        watch.transfer(this.bus, transfer.station, transfer.way, self.now, end);
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

    /// A time before which a card finishes nothing: exact once the write-back of its oldest job is
    /// asked for, else as if nobody else wanted the bus. `None` if it has no job.
    pub fn earliest_finish(&self, station: usize) -> Option<Time> {
        let this = &self.stations[station];
        let Held { work, transfer } = this.jobs.front()?;
        let bus = self.buses[this.config.bus?];
        if this.writing {
            return self.lines[bus.outward].end_of(station, Way::WriteBack);
        }
        if let Unit::Computing { until } = this.unit {
            return Some(until + *transfer);
        }
        if this.fetching {
            let fetched = self.lines[bus.inward].end_of(station, Way::Fetch)?;
            return Some(fetched + work.time + *transfer);
        }
        // A job that a card has heard of and does not fetch waits for one that it is busy with.
        let (heard, _) = this.bells.front()?;
        Some(*heard + transfer.times(2) + work.time)
    }
}
