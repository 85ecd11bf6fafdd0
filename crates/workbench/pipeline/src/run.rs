//! A run: events taken from the timetable, one after the other, until the end.

mod counting;

use std::ops::ControlFlow;

use forebay_time::{Duration, Time};

use crate::description::{Arrivals, Invalid, Overflow, Pipeline, RunEnds, Stage};
use crate::figures::{Counts, Outcome};
use crate::marks::Marks;
use crate::parts::{Core, Doing, Group, Host, Packet, Parts, Slot};
use crate::random::{self, Random};
use crate::timetable::Timetable;
use crate::turns;
use crate::ways::To;

/// Simulates a pipeline. The outcome is a pure function of the description.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
///
/// ```
/// use forebay_pipeline::{Discipline, Pipeline, simulate};
/// use forebay_time::Duration;
///
/// let core = Discipline::interrupt_driven(Duration::from_micros(100), Duration::ZERO);
/// let outcome = simulate(&Pipeline::ixp425(Duration::from_micros(70), core))?;
/// assert!(outcome.servers[0].utilisation > 0.98);
/// assert_eq!(outcome.generated, outcome.processed + outcome.lost + outcome.in_flight);
/// # Ok::<(), forebay_pipeline::Invalid>(())
/// ```
pub fn simulate(pipeline: &Pipeline) -> Result<Outcome, Invalid> {
    let outcome = simulate_with(pipeline, &|_| ControlFlow::Continue(()))?;
    Ok(outcome.expect("nobody stops it"))
}

/// [`simulate`] with progress reports: now and then it calls `watch` with the simulated time that has passed since
/// the last call. A run that `watch` stops has the figures of its time until then, those of a run with that `duration`, and
/// says so ([`Outcome::interrupted_after_s`]); `None` if it was still warming up.
///
/// # Errors
/// [`Invalid`] if the description makes no sense.
pub fn simulate_with(pipeline: &Pipeline, watch: Watch<'_>) -> Result<Option<Outcome>, Invalid> {
    pipeline.check()?;
    let mut run = Run::new(pipeline);
    if run.all(watch).is_continue() {
        return Ok(Some(run.outcome()));
    }
    let at = run.now;
    if at <= Time::ZERO + pipeline.warm_up {
        return Ok(None);
    }
    run.account_all(at);
    let outcome = run.outcome();
    Ok(Some(Outcome { interrupted_after_s: Some(at.since(Time::ZERO).as_secs()), ..outcome }))
}

/// Is told of the progress of runs, from any of their threads, and may end them.
pub type Watch<'a> = &'a (dyn Fn(Duration) -> ControlFlow<()> + Sync);

/// Events between two reports of progress.
const REPORT_EVERY: u32 = 1 << 16;

/// Sources of events: the next arrival, two for each core, behind these another for each core if anything breaks down, and one for
/// each group if a service of any stage waits for several packets.
const ARRIVAL: usize = 0;

fn done(core: usize) -> usize {
    1 + 2 * core
}

fn run_ends(core: usize) -> usize {
    2 + 2 * core
}

struct Run<'a> {
    pipeline: &'a Pipeline,
    now: Time,
    table: Timetable,
    /// The first source of those by which groups look whether they have waited long enough.
    timeouts: usize,
    groups: Vec<Group>,
    slots: Vec<Slot>,
    hosts: Vec<Host>,
    cores: Vec<Core>,
    host_of: Vec<usize>,
    random: Vec<Random>,
    counts: Counts,
    arrivals: Random,
    arrived: usize,
    marks: Marks,
    /// Hosts to look at before the next event.
    stirred: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(pipeline: &'a Pipeline) -> Run<'a> {
        let Parts { groups, slots, hosts, cores, host_of, random } = Parts::new(pipeline);
        let timeouts = 1 + if pipeline.has_breakdowns() { 3 } else { 2 } * cores.len();
        let gathers = pipeline.stages.iter().any(Stage::gathers);
        let mut run = Run {
            pipeline,
            now: Time::ZERO,
            table: Timetable::new(timeouts + if gathers { groups.len() } else { 0 }),
            timeouts,
            groups,
            slots,
            hosts,
            cores,
            host_of,
            random,
            counts: Counts::new(pipeline),
            arrivals: random::stream(pipeline.seed, "arrivals"),
            arrived: 0,
            marks: Marks::default(),
            stirred: Vec::new(),
        };
        run.schedule_arrival();
        (0..run.cores.len()).for_each(|core| run.schedule_failure(core));
        run
    }

    fn all(&mut self, watch: Watch<'_>) -> ControlFlow<()> {
        let end = self.pipeline.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
        let warm = Time::ZERO + self.pipeline.warm_up;
        let mut cold = warm > Time::ZERO;
        if !cold {
            self.marks = Marks::begin(self.pipeline, warm);
        }
        let (mut events, mut told) = (0u32, Time::ZERO);
        // Breakdowns go on when the last packet has left.
        let ends_empty = end == Time::MAX && self.pipeline.has_breakdowns();
        loop {
            let (at, source) = self.table.first();
            if cold && at >= warm {
                cold = false;
                self.account_all(warm);
                self.counts.restart(warm);
                self.marks = Marks::begin(self.pipeline, warm);
            }
            while let Some(mark) = self.marks.next
                && mark <= at.min(end)
                && at.min(end) < Time::MAX
            {
                self.marks.pass(&self.counts);
            }
            if at >= end {
                break;
            }
            self.now = at;
            events += 1;
            if events == REPORT_EVERY {
                watch(at.since(told))?;
                (events, told) = (0, at);
            }
            let hash = self.counts.fingerprint ^ at.0 ^ ((source as u64) << 52);
            self.counts.fingerprint = hash.wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
            self.table.take(source);
            match source {
                ARRIVAL => self.arrival(),
                _ if source >= self.timeouts => self.fill(source - self.timeouts),
                _ if source > 2 * self.cores.len() => self.breakdown(source - 1 - 2 * self.cores.len()),
                _ if source % 2 == 1 => self.core_done(source / 2),
                _ => self.cut(source / 2 - 1, true),
            }
            while let Some(host) = self.stirred.pop() {
                self.hosts[host].stirred = false;
                self.dispatch(host);
            }
            self.table.leave(source);
            if ends_empty && self.counts.in_flight == 0 && self.table.at(ARRIVAL) == Time::MAX {
                break;
            }
        }
        if end < Time::MAX {
            self.now = end;
        }
        self.account_all(self.now);
        // The run is complete; the answer is ignored.
        let _ = watch(self.now.since(told));
        ControlFlow::Continue(())
    }

    fn outcome(self) -> Outcome {
        let units: Vec<u32> = self.host_of.iter().map(|&host| self.hosts[host].cores.len() as u32).collect();
        let elapsed = self.now.since(Time::ZERO + self.pipeline.warm_up);
        self.counts.outcome(self.now, elapsed, self.pipeline, &units, self.marks)
    }

    // Packets

    fn schedule_arrival(&mut self) {
        let at = match &self.pipeline.arrivals {
            Arrivals::Constant(_) if self.arrived == 0 => Time::ZERO,
            Arrivals::Constant(gap) => self.now + *gap,
            Arrivals::Exponential(mean) => self.now + random::exponential(&mut self.arrivals, *mean),
            Arrivals::Trace(trace) => trace.get(self.arrived).map_or(Time::MAX, |packet| packet.at),
        };
        self.table.set(ARRIVAL, at);
    }

    fn arrival(&mut self) {
        let bytes = match &self.pipeline.arrivals {
            Arrivals::Trace(trace) => trace[self.arrived].bytes,
            _ => self.pipeline.packet_bytes,
        };
        self.arrived += 1;
        self.counts.generated += 1;
        self.counts.in_flight += 1;
        self.enter(0, Packet { arrived: self.now, entered: self.now, bytes });
        self.fill(0);
        // Last: what this packet has set in motion comes before another that comes at the same instant.
        self.schedule_arrival();
    }

    /// A packet joins the queue of a group, or is lost.
    fn enter(&mut self, group: usize, packet: Packet) {
        let queue = &mut self.groups[group];
        let stage = &mut self.counts.stages[queue.first];
        if queue.packets >= queue.buffer {
            stage.lost += 1;
            self.counts.in_flight -= 1;
            return;
        }
        queue.packets += 1;
        queue.waiting.push_back(Packet { entered: self.now, ..packet });
        stage.packets.add(self.now, 1);
        // A packet that finds an idle slot does not wait.
        if queue.idle.is_empty() {
            stage.waiting.set(self.now, queue.waiting.len() as u32);
        }
    }

    /// Idle slots of a group take what waits.
    fn fill(&mut self, group: usize) {
        while self.is_ready(group) {
            let queue = &mut self.groups[group];
            let Some(slot) = queue.idle.pop() else { return };
            let taken = queue.waiting.len().min(queue.batch as usize);
            self.slots[slot].packets.extend(queue.waiting.drain(..taken));
            let stage = &mut self.counts.stages[queue.first];
            stage.waiting.set(self.now, queue.waiting.len() as u32);
            stage.services += 1;
            if queue.batch_min > 1 {
                self.table.cancel(self.timeouts + group);
            }
            self.hosts[self.host_of[queue.first]].held += 1;
            self.begin(slot, None);
        }
    }

    /// Whether a service may begin with what waits in a group. If more packets have to come first, it is looked at again when the
    /// first of them has waited long enough.
    fn is_ready(&mut self, group: usize) -> bool {
        let queue = &self.groups[group];
        let Some(first) = queue.waiting.front() else { return false };
        if queue.waiting.len() >= queue.batch_min as usize {
            return true;
        }
        let due = queue.batch_timeout.map_or(Time::MAX, |timeout| first.entered + timeout);
        if due <= self.now {
            return true;
        }
        // They wait, though a slot is idle.
        self.counts.stages[queue.first].waiting.set(self.now, queue.waiting.len() as u32);
        let timeout = self.timeouts + group;
        if self.table.at(timeout) != due {
            self.table.set(timeout, due);
        }
        false
    }

    /// A slot begins the stage it is in: at once on the core that it is still on, else it asks for
    /// one. Whether it works on that core.
    fn begin(&mut self, slot: usize, core: Option<usize>) -> bool {
        let at = &self.slots[slot];
        let (stage, group, packets) = (at.stage, at.group, at.packets.len() as u32);
        if stage == self.groups[group].last
            && self.pipeline.overflow == Overflow::Block
            && let Some(to) = self.way(slot)
        {
            let next = &mut self.groups[to];
            if next.packets + next.reserved + packets > next.buffer {
                next.awaited.push_back(slot);
                self.counts.stages[stage].blocked.add(self.now, packets);
                return false;
            }
            next.reserved += packets;
        }
        let description = &self.pipeline.stages[stage];
        let random = &mut self.random[stage];
        let at = &self.slots[slot];
        let work =
            at.packets.iter().fold(description.setup, |sum, p| sum + description.time.draw(random, p.bytes));
        self.slots[slot].remaining = work;
        match core {
            Some(core) => self.work(core, slot),
            None => self.ask(slot),
        }
        core.is_some()
    }

    /// Where a slot's packets go on to together: drawn once.
    fn way(&mut self, slot: usize) -> To {
        let at = &mut self.slots[slot];
        *at.to.get_or_insert_with(|| self.groups[at.group].way())
    }

    /// There is room in a group again: slots that wait for it go on.
    fn unblock(&mut self, group: usize) {
        while let Some(&slot) = self.groups[group].awaited.front() {
            let packets = self.slots[slot].packets.len() as u32;
            let room = &self.groups[group];
            if room.packets + room.reserved + packets > room.buffer {
                return;
            }
            self.groups[group].awaited.pop_front();
            self.counts.stages[self.slots[slot].stage].blocked.take(self.now, packets);
            match self.pipeline.overflow {
                Overflow::BlockAfterService => self.leave(slot),
                _ => drop(self.begin(slot, None)),
            }
        }
    }

    /// A slot has done its last stage: its packets go on, or it holds them until there is room for them.
    fn finish(&mut self, slot: usize) {
        let packets = self.slots[slot].packets.len() as u32;
        if self.pipeline.overflow == Overflow::BlockAfterService
            && let Some(to) = self.way(slot)
        {
            let next = &mut self.groups[to];
            if next.packets + packets > next.buffer {
                next.awaited.push_back(slot);
                self.counts.stages[self.slots[slot].stage].blocked.add(self.now, packets);
                return;
            }
        }
        self.leave(slot);
    }

    /// A slot has done its last stage: its packets go on to the next group, and it is idle.
    fn leave(&mut self, slot: usize) {
        let group = self.slots[slot].group;
        let mut packets = std::mem::take(&mut self.slots[slot].packets);
        let left = packets.len() as u32;
        let queue = &mut self.groups[group];
        queue.packets -= left;
        self.counts.stages[queue.last].packets.take(self.now, left);
        self.slots[slot].stage = queue.first;
        queue.idle.push(slot);
        self.hosts[self.host_of[queue.first]].held -= 1;
        match self.slots[slot].to.take().or_else(|| self.groups[group].ways.only()) {
            Some(Some(to)) => {
                if self.pipeline.overflow == Overflow::Block {
                    self.groups[to].reserved -= left;
                }
                packets.iter().for_each(|&packet| self.enter(to, packet));
                self.fill(to);
            }
            Some(None) => packets.iter().for_each(|packet| self.go(packet)),
            None => self.part(group, &packets),
        }
        packets.clear();
        // A packet that has come back may be in it again.
        if self.slots[slot].packets.is_empty() {
            self.slots[slot].packets = packets;
        }
        self.unblock(group);
        self.fill(group);
    }

    /// Each packet takes a way of its own.
    fn part(&mut self, group: usize, packets: &[Packet]) {
        for &packet in packets {
            match self.groups[group].way() {
                Some(to) => {
                    self.enter(to, packet);
                    self.fill(to);
                }
                None => self.go(&packet),
            }
        }
    }

    /// A packet leaves the pipeline.
    fn go(&mut self, packet: &Packet) {
        self.counts.delay(self.now.since(packet.arrived));
        self.counts.processed += 1;
        self.counts.in_flight -= 1;
    }

    // Cores

    fn ask(&mut self, slot: usize) {
        let host = self.host_of[self.slots[slot].stage];
        self.hosts[host].asks.push_back(slot);
        self.stir(host);
    }

    fn stir(&mut self, host: usize) {
        if !std::mem::replace(&mut self.hosts[host].stirred, true) {
            self.stirred.push(host);
        }
    }

    /// A core has finished a switch, or a slot's work in a stage.
    fn core_done(&mut self, core: usize) {
        self.account(core, self.now);
        let slot = match self.cores[core].doing {
            Doing::Working(slot) => slot,
            Doing::Switching(slot) => {
                self.cores[core].run_began = self.now;
                self.work(core, slot);
                self.stir(self.cores[core].host);
                return;
            }
            Doing::Idle | Doing::Down => unreachable!("such a core has no event"),
        };
        self.cores[core].doing = Doing::Idle;
        let host = self.cores[core].host;
        self.stir(host);
        let packets = self.slots[slot].packets.len() as u32;
        let stage = self.slots[slot].stage;
        self.counts.stages[stage].processed += u64::from(packets);
        if stage == self.groups[self.slots[slot].group].last {
            self.finish(slot);
            return;
        }
        self.slots[slot].stage += 1;
        self.counts.stages[stage].packets.take(self.now, packets);
        self.counts.stages[stage + 1].packets.add(self.now, packets);
        let stays = (self.host_of[stage + 1] == host).then_some(core);
        self.begin(slot, stays);
    }

    fn work(&mut self, core: usize, slot: usize) {
        self.cores[core].doing = Doing::Working(slot);
        self.cores[core].since = self.now;
        self.table.set(done(core), self.now + self.slots[slot].remaining);
    }

    /// A core's work is cut off; it resumes where it stopped when it is granted again.
    fn cut(&mut self, core: usize, expired: bool) {
        let Doing::Working(slot) = self.cores[core].doing else { return };
        self.account(core, self.now);
        self.slots[slot].remaining = self.table.at(done(core)).since(self.now);
        self.table.cancel(done(core));
        self.cores[core].doing = Doing::Idle;
        self.cores[core].expired = expired;
        self.ask(slot);
    }

    // Breakdowns

    fn schedule_failure(&mut self, core: usize) {
        let host = &mut self.hosts[self.cores[core].host];
        if let Some(breakdowns) = &host.breakdowns {
            let up = breakdowns.up.draw(&mut host.failing, 0);
            self.table.set(1 + 2 * self.cores.len() + core, self.now + up);
        }
    }

    /// A core breaks down, or is repaired.
    fn breakdown(&mut self, core: usize) {
        self.account(core, self.now);
        let host = self.cores[core].host;
        self.stir(host);
        let doing = std::mem::replace(&mut self.cores[core].doing, Doing::Down);
        match doing {
            Doing::Down => {
                self.cores[core].doing = Doing::Idle;
                self.schedule_failure(core);
                return;
            }
            Doing::Working(slot) => {
                self.slots[slot].remaining = self.table.at(done(core)).since(self.now);
                self.hosts[host].asks.push_front(slot);
            }
            // The change has been for nothing.
            Doing::Switching(slot) => self.hosts[host].asks.push_front(slot),
            Doing::Idle => {}
        }
        self.table.cancel(done(core));
        self.table.cancel(run_ends(core));
        // What it changes from when it works again: nothing.
        (self.cores[core].key, self.cores[core].expired) = (None, false);
        let server = self.counts.servers.get_mut(host);
        match server {
            Some(server) => server.breakdowns += 1,
            None => self.counts.own[host - self.counts.servers.len()].breakdowns += 1,
        }
        let host = &mut self.hosts[host];
        if let Some(breakdowns) = &host.breakdowns {
            let repair = breakdowns.repair.draw(&mut host.failing, 0);
            self.table.set(1 + 2 * self.cores.len() + core, self.now + repair);
        }
    }

    /// Grants free cores, cuts off what has to give way, and sets the ends of runs.
    fn dispatch(&mut self, host: usize) {
        let stages = &self.pipeline.stages;
        loop {
            if let Some((core, place)) = turns::next(&self.hosts[host], &self.cores, &self.slots, stages) {
                let slot = self.hosts[host].asks.remove(place).expect("the place of an ask");
                self.grant(core, slot);
                continue;
            }
            let at = &self.hosts[host];
            let cut =
                at.asks.iter().find_map(|&slot| turns::preempted(at, slot, &self.cores, &self.slots, stages));
            match cut {
                Some(core) => self.cut(core, false),
                None => break,
            }
        }
        if self.hosts[host].run_length.is_some() {
            self.set_run_ends(host);
        }
        if host < self.counts.servers.len() {
            self.count_kept(host);
        }
    }

    fn grant(&mut self, core: usize, slot: usize) {
        let (key, stage) = (self.slots[slot].key, self.slots[slot].stage);
        let at = &mut self.cores[core];
        let host = &mut self.hosts[at.host];
        host.last = stage;
        let changes = at.key.is_some_and(|last| last != key);
        let begins = host.run_ends == RunEnds::Packet || at.key != Some(key) || at.expired;
        at.key = Some(key);
        at.expired = false;
        if begins {
            at.run_began = self.now;
            self.table.cancel(run_ends(core));
        }
        if changes && let Some(law) = &host.switch_delay {
            let delay = law.draw(&mut host.random, 0);
            self.counts.servers[at.host].switches += 1;
            if delay > Duration::ZERO {
                at.doing = Doing::Switching(slot);
                at.since = self.now;
                self.table.set(done(core), self.now + delay);
                return;
            }
        }
        self.work(core, slot);
    }

    fn set_run_ends(&mut self, host: usize) {
        for core in self.hosts[host].cores.clone() {
            let asked =
                turns::is_asked(&self.hosts[host], &self.cores[core], &self.slots, &self.pipeline.stages);
            if !asked {
                self.table.cancel(run_ends(core));
            } else if self.table.at(run_ends(core)) == Time::MAX {
                let at = turns::run_end(&mut self.hosts[host], &self.cores[core], self.now);
                self.table.set(run_ends(core), at);
            }
        }
    }
}
