//! Admission: packets are gathered, prepared by bursts, and done in place or put in flight.

use forebay_crypto::{Direction, Job, JobSpec, Packet, Verdict};
use forebay_ipsec::{DropReason, Path, Reassembly, Stop};
use forebay_scheduler::{Item, Work};
use forebay_time::Time;
use forebay_wire::Ip;

use crate::databases::Databases;
use crate::edges::may_be_fragment;
use crate::engine::{Core, Output, Refusal};
use crate::tickets::Run;

impl Core {
    /// Prepares the packets of `burst`: what can be admitted is left with its tickets, for [`Core::carry`].
    pub(crate) fn prepare_burst(&mut self, db: &mut Databases, direction: Direction, burst: &mut Vec<Job>) {
        let Some(last) = burst.last() else { return };
        db.edges.latest = last.token;
        self.enter(db);
        self.side_by_side.settle(direction, burst, &db.ipsec);
        if db.cores > 1 {
            self.side_by_side.touch(direction, &db.ipsec);
        }
        if self.pool.len() > 1 && self.moving.admit(burst.len(), self.clock) {
            self.scheduler.set_moving(self.moving.per_packet());
            self.pool.set_dispatching(self.moving.per_dispatched(), &mut self.scheduler);
        }
        self.scheduler.set_host_alone(self.moving.keeps_all());
        let room = self.room();
        if burst.len() > room {
            self.refuse_behind(room, burst);
        }
        match direction {
            // One by one: in a burst, aggregated packets would lose their order among the other packets.
            Direction::Seal if db.ipsec.aggregates() => return self.admit_one_by_one(db, burst),
            Direction::Seal => self.sift(db, burst, |_| false, Direction::Seal),
            Direction::Open => self.sift(db, burst, may_be_fragment, Direction::Open),
        }
        self.prepare(db, direction, burst);
        self.news = db.has_news();
    }

    /// Begins to use the databases: SAs that are bound to CPUs are chosen for this core.
    #[inline]
    fn enter(&mut self, db: &mut Databases) {
        self.now = self.clock.now();
        db.ipsec.set_cpu(self.cpu);
    }

    /// Admits one packet, to be done at the next poll with others. A packet that cannot be admitted comes back with the
    /// reason, which is counted.
    pub(crate) fn admit(
        &mut self,
        db: &mut Databases,
        direction: Direction,
        mut packet: Packet,
        tag: u64,
    ) -> Result<(), (Packet, DropReason)> {
        db.edges.latest = tag;
        db.ipsec.set_cpu(self.cpu);
        let reason = if self.room() == 0 {
            Err(DropReason::QueueFull)
        } else if packet.len() > self.limits.packet_capacity {
            Err(DropReason::TooLong)
        } else {
            self.gather(db, direction, &mut packet)
        };
        // Rarely: not worth a look of its own.
        self.news = true;
        match reason {
            Ok(true) => {
                self.start_one(db, direction, packet, tag);
                match self.refusals.pop() {
                    Some(Refusal { packet, reason, .. }) => Err((packet, reason)),
                    None => Ok(()),
                }
            }
            Ok(false) => {
                self.recycle(packet);
                Ok(())
            }
            Err(reason) => {
                self.drops.count(reason);
                Err((packet, reason))
            }
        }
    }

    /// Prepares a packet and gives it to the scheduler.
    pub(crate) fn start_one(&mut self, db: &mut Databases, direction: Direction, packet: Packet, tag: u64) {
        let mut burst = std::mem::take(&mut self.scratch.one);
        burst.push(Job::new(packet, JobSpec::default(), tag));
        self.prepare(db, direction, &mut burst);
        self.start_prepared(&mut burst);
        self.scratch.one = burst;
    }

    /// Gives what has been prepared to the scheduler.
    pub(crate) fn start_prepared(&mut self, burst: &mut Vec<Job>) {
        let mut runs = std::mem::take(&mut self.prepared);
        self.put_in_flight(burst, &mut runs);
        self.prepared = runs;
    }

    #[cold]
    fn refuse_behind(&mut self, room: usize, burst: &mut Vec<Job>) {
        for job in burst.drain(room..) {
            self.refuse(job.packet, job.token, DropReason::QueueFull);
        }
    }

    pub(crate) fn refuse(&mut self, packet: Packet, tag: u64, reason: DropReason) {
        self.drops.count(reason);
        self.refusals.push(Refusal { packet, tag, reason });
    }

    #[cold]
    fn admit_one_by_one(&mut self, db: &mut Databases, burst: &mut Vec<Job>) {
        for job in burst.drain(..) {
            if let Err((packet, reason)) = self.admit(db, Direction::Seal, job.packet, job.token) {
                self.refusals.push(Refusal { packet, tag: job.token, reason });
            }
        }
    }

    /// Takes packets that are too long out of the burst, and gathers those that `needs` selects.
    #[inline]
    fn sift(
        &mut self,
        db: &mut Databases,
        burst: &mut Vec<Job>,
        needs: impl Fn(&[u8]) -> bool,
        direction: Direction,
    ) {
        let capacity = self.limits.packet_capacity;
        let unusual = |job: &Job| job.packet.len() > capacity || needs(job.packet.bytes());
        if burst.iter().any(unusual) {
            self.sift_unusual(db, burst, needs, direction);
        }
    }

    #[cold]
    fn sift_unusual(
        &mut self,
        db: &mut Databases,
        burst: &mut Vec<Job>,
        needs: impl Fn(&[u8]) -> bool,
        direction: Direction,
    ) {
        let mut kept = 0;
        for at in 0..burst.len() {
            let Job { packet, token: tag, .. } = &mut burst[at];
            let (len, tag) = (packet.len(), *tag);
            let gathered = match needs(packet.bytes()) {
                _ if len > self.limits.packet_capacity => Err(DropReason::TooLong),
                true => self.gather(db, direction, packet),
                false => Ok(true),
            };
            match gathered {
                Ok(true) => {
                    burst.swap(kept, at);
                    kept += 1;
                }
                Ok(false) => self.buffers.put(std::mem::take(&mut burst[at].packet)),
                Err(reason) => {
                    let packet = std::mem::take(&mut burst[at].packet);
                    self.refuse(packet, tag, reason);
                }
            }
        }
        burst.truncate(kept);
    }

    /// Adds a fragment to the others of its datagram, or a packet to the queue of its aggregating SA. Returns whether
    /// `packet` is now a whole packet that goes on; if not, its content has been copied and the buffer is free.
    fn gather(
        &mut self,
        db: &mut Databases,
        direction: Direction,
        packet: &mut Packet,
    ) -> Result<bool, DropReason> {
        let now = self.sa_time(db);
        match direction {
            Direction::Open => {
                let ours = Ip::parse(packet.bytes()).is_ok_and(|ip| db.ipsec.is_local(&ip.destination()));
                if !ours {
                    return Ok(true);
                }
                // The datagram takes the place of its last fragment, in a buffer that has to hold it.
                self.buffers.keep(packet);
                match db.edges.reassembler.push(now, packet) {
                    Reassembly::Whole | Reassembly::Complete => Ok(true),
                    Reassembly::Held => Ok(false),
                    Reassembly::Dropped(reason) => Err(reason),
                }
            }
            Direction::Seal if db.ipsec.aggregates() => match db.ipsec.aggregate(now, packet)? {
                None => Ok(true),
                Some(_) => {
                    self.send_aggregates(db);
                    Ok(false)
                }
            },
            Direction::Seal => Ok(true),
        }
    }

    /// Prepares the packets of `burst` and takes out those that have no job.
    #[inline]
    fn prepare(&mut self, db: &mut Databases, direction: Direction, burst: &mut Vec<Job>) {
        if self.rules.dscp.is_some() {
            self.classify(direction, burst);
        }
        match db.ipsec.prepare_burst(direction, burst) {
            Ok(()) => self.draw(db, burst),
            Err(stopped) => self.prepare_rest(db, direction, burst, stopped),
        }
    }

    /// Draws the tickets of prepared packets, and sees to it that this core has the keys of their SAs.
    #[inline]
    pub(crate) fn draw(&mut self, db: &mut Databases, mut jobs: &[Job]) {
        while let Some(first) = jobs.first() {
            let session = first.spec.session;
            let len = jobs.iter().take_while(|job| job.spec.session == session).count();
            self.open_here(db, session);
            let (line, ticket) = db.tickets.draw(session.0, len as u32);
            let (path, admitted) = (Path::default(), self.now);
            let (class, bypass, last) = (0, false, true);
            self.prepared.push(Run { line, ticket, len: len as u32, class, bypass, last, admitted, path });
            jobs = &jobs[len..];
        }
    }

    /// Continues at a packet that has no job. Each such packet is taken out of its place, and at the end the burst
    /// keeps only the packets that have a job.
    #[cold]
    fn prepare_rest(
        &mut self,
        db: &mut Databases,
        direction: Direction,
        burst: &mut Vec<Job>,
        stopped: (usize, Stop),
    ) {
        let (mut from, mut stopped) = (0, Some(stopped));
        while let Some((place, stop)) = stopped {
            // Those before it draw their tickets first.
            self.draw(db, &burst[from..from + place]);
            from += place;
            self.stopped(db, burst, from, stop);
            from += 1;
            stopped = db.ipsec.prepare_burst(direction, &mut burst[from..]).err();
        }
        self.draw(db, &burst[from..]);
        let mut jobs = burst.iter();
        self.scratch.classes.retain(|_| jobs.next().is_some_and(has_packet));
        burst.retain(has_packet);
    }

    /// Handles the packet at `at`, which has no job.
    fn stopped(&mut self, db: &mut Databases, burst: &mut Vec<Job>, at: usize, stop: Stop) {
        let (packet, tag) = (std::mem::take(&mut burst[at].packet), burst[at].token);
        match stop {
            Stop::Bypass => self.bypass(db, packet, tag),
            Stop::Drop(DropReason::OutPathMtu) => self.too_big(db, burst, at, packet, tag),
            Stop::Drop(DropReason::InNoStates) => {
                self.rests_until = Time::ZERO;
                if let Err(packet) = db.edges.pending.keep(packet, tag, self.now) {
                    self.refuse(packet, tag, DropReason::InNoStates);
                }
            }
            Stop::Drop(reason) => self.refuse(packet, tag, reason),
            // Nothing is complete before its crypto.
            Stop::Again | Stop::Unpack => self.refuse(packet, tag, DropReason::InError),
        }
    }

    /// Handles a packet that is larger than the path MTU of its SA: its fragments take its place in the burst, or its
    /// source gets an ICMP error (RFC 4301 8.2.1).
    fn too_big(&mut self, db: &mut Databases, burst: &mut Vec<Job>, at: usize, packet: Packet, tag: u64) {
        let Some(fragments) = db.ipsec.divide(packet.bytes()) else {
            self.tell_source(db, &packet, tag);
            return self.refuse(packet, tag, DropReason::OutPathMtu);
        };
        let pieces = db.edges.pieces(fragments, &mut self.buffers);
        if pieces.len() + burst.len() > self.in_flight.slots.free() {
            pieces.into_iter().for_each(|piece| self.recycle(piece));
            return self.refuse(packet, tag, DropReason::QueueFull);
        }
        if let Some(&class) = self.scratch.classes.get(at) {
            self.scratch.classes.splice(at..at, std::iter::repeat_n(class, pieces.len()));
        }
        let pieces = pieces.into_iter().map(|piece| Job::new(piece, JobSpec::default(), tag));
        burst.splice(at + 1..at + 1, pieces);
        self.recycle(packet);
    }

    fn tell_source(&mut self, db: &mut Databases, packet: &Packet, tag: u64) {
        let Ok(ip) = Ip::parse(packet.bytes()) else { return };
        let ipsec = &mut db.ipsec;
        db.edges.answer(ip.destination(), tag, |from, room| ipsec.icmp_error(packet.bytes(), from, room));
    }

    /// Lets a packet through unprotected: in its place in the order if all packets keep their order, otherwise at once.
    fn bypass(&mut self, db: &mut Databases, packet: Packet, tag: u64) {
        let (admitted, released) = (self.now, self.now);
        if !db.tickets.is_total() {
            return db
                .outputs
                .push(self.cpu, Output { packet, tag, session: None, result: Ok(()), admitted, released });
        }
        db.tickets.open(0);
        let (line, ticket) = db.tickets.draw(0, 1);
        let (path, last, bypass) = (Path::default(), true, true);
        let run = Run { line, ticket, len: 1, class: 0, bypass, last, admitted, path };
        db.tickets.park(run, &mut [Job::new(packet, JobSpec::default(), tag)], admitted);
        self.release_parked(db, line);
    }

    /// Gives prepared packets their slots, and gives their jobs to the scheduler. There are enough slots: admission is
    /// limited to the free ones.
    pub(crate) fn put_in_flight(&mut self, burst: &mut Vec<Job>, runs: &mut Vec<Run>) {
        let mut classes = std::mem::take(&mut self.scratch.classes);
        let known = classes.len().min(burst.len());
        let mut class = classes.drain(..known);
        let mut items = std::mem::take(&mut self.scratch.items);
        let mut jobs = burst.iter_mut();
        let mut left_over = None;
        for run in runs.drain(..) {
            for (place, job) in (0..run.len).zip(jobs.by_ref()) {
                let (session, bytes) = (job.spec.session, job.packet.len() as u32);
                let class = class.next().unwrap_or(run.class);
                match self.in_flight.slots.admit(job, class, &run, place) {
                    Some(index) => {
                        let suite = self.sessions.kind(session);
                        items.push(Item { id: index.into(), sa: session.0, class, suite, bytes });
                    }
                    None => {
                        let job = Job { verdict: Verdict::Failed, ..std::mem::take(job) };
                        let ticket = run.ticket.wrapping_add(place);
                        left_over.get_or_insert_with(Vec::new).push((job, Run { ticket, len: 1, ..run }));
                    }
                }
            }
        }
        burst.clear();
        drop(class);
        self.scratch.classes = classes;
        let retries = &mut self.retries;
        self.scheduler.push_all(self.now, &items, |item| retries.push_back(item.id as u32));
        items.clear();
        self.scratch.items = items;
        // The pieces of a packet may be more than there was room for. What has a ticket is to use it.
        for (job, run) in left_over.into_iter().flatten() {
            self.done.jobs.push(job);
            self.done.runs.push(run);
        }
    }

    /// Notes the class of each packet: outbound by its DSCP. Inbound packets are of the first class, because their
    /// sender has already scheduled them by class.
    #[cold]
    fn classify(&mut self, direction: Direction, burst: &[Job]) {
        let Some(dscp) = self.rules.dscp.as_ref().filter(|_| direction == Direction::Seal) else { return };
        let class = |packet: &Packet| {
            Ip::parse(packet.bytes()).map_or(0, |ip| dscp.class_of_octet(ip.traffic_class()))
        };
        self.scratch.classes.clear();
        self.scratch.classes.extend(burst.iter().map(|job| class(&job.packet)));
    }

    /// Gives the job of a slot to the scheduler; `false` if its input is full.
    #[inline]
    pub(crate) fn schedule(&mut self, index: u32) -> bool {
        let slot = self.in_flight.slots.get(index);
        let session = self.in_flight.slots.job(index).spec.session;
        let suite = self.sessions.kind(session);
        let item = Item { id: index.into(), sa: session.0, class: slot.class, suite, bytes: slot.len };
        self.scheduler.push(self.now, item).is_ok()
    }

    /// Whether the running core does a prepared burst at once: nothing is in flight that the burst would overtake, and
    /// no division among other processors would finish it earlier.
    #[inline]
    pub(crate) fn stays(&mut self, burst: &[Job]) -> bool {
        if !self.in_flight.is_empty() {
            return false;
        }
        if self.rules.alone {
            return true;
        }
        let Some(first) = burst.first().filter(|_| self.rules.may_keep) else { return false };
        let (session, kind) = (first.spec.session, self.sessions.kind(first.spec.session));
        let mut all = Work::default();
        for job in burst {
            if job.spec.session != session && self.sessions.kind(job.spec.session) != kind {
                return false;
            }
            all.add_packet(job.packet.len() as u32);
        }
        self.scheduler.moved(self.now);
        self.scheduler.keeps(self.now, kind, burst.len(), &all)
    }
}

/// Whether a job of a burst still has its packet, and so is to be done.
fn has_packet(job: &Job) -> bool {
    job.packet.has_buffer()
}
