//! Admission: packets are gathered, prepared by bursts, and done in place or put in flight.

use forebay_crypto::{Direction, Job, JobSpec, Packet, Verdict};
use forebay_ipsec::{DropReason, Reassembly, Stop};
use forebay_scheduler::{Item, Work};
use forebay_wire::Ip;

use crate::edges::may_be_fragment;
use crate::engine::{Engine, Output, Refusal, RemotePacket};
use crate::in_flight::InFlight;

impl Engine {
    /// Admits the packets of `burst`, of whose jobs only `packet` and `token`, the caller's tag, are looked at,
    /// and leaves it empty. Packets that cannot be admitted are counted, and [`Engine::refusals`] gives them back.
    ///
    /// A burst that stays at the running core is done at once, and its packets wait in [`Engine::outputs`]; any other
    /// burst moves on at the next [`Engine::poll`].
    ///
    /// One packet may become several outputs (fragments, the packets of an aggregate), and several packets may become
    /// one (a reassembled datagram, an aggregate), which then has the tag of the last one.
    pub fn admit_burst(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        let Some(last) = burst.last() else { return };
        self.edges.latest = last.token;
        self.now = self.clock.now();
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
            Direction::Seal if self.sad.aggregates() => return self.admit_one_by_one(burst),
            Direction::Seal => self.sift(burst, |_| false, Direction::Seal),
            Direction::Open => self.sift(burst, may_be_fragment, Direction::Open),
        }
        self.enter(direction, burst);
    }

    /// Admits one packet, to be done at the next [`Engine::poll`] with others. A packet that cannot be admitted comes
    /// back with the reason, which is counted.
    pub fn admit(
        &mut self,
        direction: Direction,
        mut packet: Packet,
        tag: u64,
    ) -> Result<(), (Packet, DropReason)> {
        self.edges.latest = tag;
        let reason = if self.room() == 0 {
            Err(DropReason::QueueFull)
        } else if packet.len() > self.limits.packet_capacity {
            Err(DropReason::TooLong)
        } else {
            self.gather(direction, &mut packet)
        };
        match reason {
            Ok(true) => {
                let mut burst = std::mem::take(&mut self.scratch.one);
                burst.push(Job::new(packet, JobSpec::default(), tag));
                self.prepare(direction, &mut burst);
                self.put_in_flight(&mut burst);
                self.scratch.one = burst;
                match self.outward.refusals.pop() {
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

    #[cold]
    fn refuse_behind(&mut self, room: usize, burst: &mut Vec<Job>) {
        for job in burst.drain(room..) {
            self.refuse(job.packet, job.token, DropReason::QueueFull);
        }
    }

    pub(crate) fn refuse(&mut self, packet: Packet, tag: u64, reason: DropReason) {
        self.drops.count(reason);
        self.outward.refusals.push(Refusal { packet, tag, reason });
    }

    #[cold]
    fn admit_one_by_one(&mut self, burst: &mut Vec<Job>) {
        for job in burst.drain(..) {
            if let Err((packet, reason)) = self.admit(Direction::Seal, job.packet, job.token) {
                self.outward.refusals.push(Refusal { packet, tag: job.token, reason });
            }
        }
    }

    /// Takes packets that are too long out of the burst, and gathers those that `needs` selects.
    #[inline]
    fn sift(&mut self, burst: &mut Vec<Job>, needs: impl Fn(&[u8]) -> bool, direction: Direction) {
        let capacity = self.limits.packet_capacity;
        let unusual = |job: &Job| job.packet.len() > capacity || needs(job.packet.bytes());
        if burst.iter().any(unusual) {
            self.sift_unusual(burst, needs, direction);
        }
    }

    #[cold]
    fn sift_unusual(&mut self, burst: &mut Vec<Job>, needs: impl Fn(&[u8]) -> bool, direction: Direction) {
        let mut kept = 0;
        for at in 0..burst.len() {
            let Job { packet, token: tag, .. } = &mut burst[at];
            let (len, tag) = (packet.len(), *tag);
            let gathered = match needs(packet.bytes()) {
                _ if len > self.limits.packet_capacity => Err(DropReason::TooLong),
                true => self.gather(direction, packet),
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
    fn gather(&mut self, direction: Direction, packet: &mut Packet) -> Result<bool, DropReason> {
        let now = self.sa_time();
        match direction {
            Direction::Open => {
                let ours = Ip::parse(packet.bytes()).is_ok_and(|ip| self.sad.is_local(&ip.destination()));
                if !ours {
                    return Ok(true);
                }
                match self.edges.reassembler.push(now, packet) {
                    Reassembly::Whole | Reassembly::Complete => Ok(true),
                    Reassembly::Held => Ok(false),
                    Reassembly::Dropped(reason) => Err(reason),
                }
            }
            Direction::Seal if self.sad.aggregates() => match self.sad.aggregate(now, packet)? {
                None => Ok(true),
                Some(_) => {
                    self.send_aggregates();
                    Ok(false)
                }
            },
            Direction::Seal => Ok(true),
        }
    }

    /// Prepares whole packets, and does their jobs in place or puts them in flight.
    pub(crate) fn enter(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        self.prepare(direction, burst);
        if burst.is_empty() {
        } else if self.stays(burst) {
            self.do_in_place(burst);
        } else {
            self.put_in_flight(burst);
        }
    }

    /// Prepares the packets of `burst` and takes out those that have no job.
    #[inline]
    fn prepare(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        if self.rules.dscp.is_some() {
            self.classify(direction, burst);
        }
        if let Err(stopped) = self.sad.prepare_burst(direction, burst) {
            self.prepare_rest(direction, burst, stopped);
        }
    }

    /// Continues at a packet that has no job. Each such packet is taken out of its place, and at the end the burst
    /// keeps only the packets that have a job.
    #[cold]
    fn prepare_rest(&mut self, direction: Direction, burst: &mut Vec<Job>, stopped: (usize, Stop)) {
        let (mut from, mut stopped) = (0, Some(stopped));
        while let Some((place, stop)) = stopped {
            from = self.stopped(direction, burst, from + place, stop);
            stopped = self.sad.prepare_burst(direction, &mut burst[from..]).err();
        }
        let mut jobs = burst.iter();
        self.scratch.classes.retain(|_| jobs.next().is_some_and(has_packet));
        burst.retain(has_packet);
    }

    /// Handles the packet at `at`, which has no job. Returns the place at which to go on.
    fn stopped(&mut self, direction: Direction, burst: &mut Vec<Job>, at: usize, stop: Stop) -> usize {
        let (packet, tag) = (std::mem::take(&mut burst[at].packet), burst[at].token);
        match stop {
            Stop::Bypass if self.in_flight.reorder.is_total() => {
                self.bypass_in_place(burst, at, packet, tag);
                return 0;
            }
            Stop::Bypass => self.bypass(packet, tag),
            Stop::Remote(core) => {
                self.outward.remote_packets.push(RemotePacket { core, direction, packet, tag });
            }
            Stop::Drop(DropReason::OutPathMtu) => self.too_big(burst, at, packet, tag),
            Stop::Drop(DropReason::InNoStates) => {
                if let Err(packet) = self.edges.pending.keep(packet, tag, self.now) {
                    self.refuse(packet, tag, DropReason::InNoStates);
                }
            }
            Stop::Drop(reason) => self.refuse(packet, tag, reason),
            // Nothing is complete before its crypto.
            Stop::Again | Stop::Unpack => self.refuse(packet, tag, DropReason::InError),
        }
        at + 1
    }

    /// Lets a packet through unprotected where all packets keep their order: those before it go first.
    fn bypass_in_place(&mut self, burst: &mut Vec<Job>, at: usize, packet: Packet, tag: u64) {
        let behind = burst.split_off(at + 1);
        let classes_behind = self.scratch.classes.split_off((at + 1).min(self.scratch.classes.len()));
        burst.truncate(at);
        let mut jobs = burst.iter();
        self.scratch.classes.retain(|_| jobs.next().is_some_and(has_packet));
        burst.retain(has_packet);
        self.put_in_flight(burst);
        burst.extend(behind);
        self.scratch.classes = classes_behind;
        self.bypass(packet, tag);
    }

    /// Handles a packet that is larger than the path MTU of its SA: its fragments take its place in the burst, or its
    /// source gets an ICMP error (RFC 4301 8.2.1).
    fn too_big(&mut self, burst: &mut Vec<Job>, at: usize, packet: Packet, tag: u64) {
        let Some(fragments) = self.sad.divide(packet.bytes()) else {
            self.tell_source(&packet, tag);
            return self.refuse(packet, tag, DropReason::OutPathMtu);
        };
        let pieces = self.edges.pieces(fragments, &mut self.buffers);
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

    fn tell_source(&mut self, packet: &Packet, tag: u64) {
        let Ok(ip) = Ip::parse(packet.bytes()) else { return };
        let sad = &mut self.sad;
        self.edges.answer(ip.family(), tag, |from, room| sad.icmp_error(packet.bytes(), from, room));
    }

    /// Lets a packet through unprotected: in its place in the order if all packets keep their order, otherwise at once.
    fn bypass(&mut self, packet: Packet, tag: u64) {
        let (admitted, released) = (self.now, self.now);
        let is_total = self.in_flight.reorder.is_total();
        if !is_total || self.in_flight.slots.free() == 0 {
            let output = Output { packet, tag, session: None, result: Ok(()), admitted, released };
            self.outward.outputs.push(output);
            return;
        }
        let mut done = Job { verdict: Verdict::Done, ..Job::new(packet, JobSpec::default(), tag) };
        let Some(index) = self.in_flight.slots.admit(&mut done, 0, admitted) else { return };
        let slot = self.in_flight.slots.get_mut(index);
        slot.bypass = true;
        slot.done = admitted;
        self.in_flight.reorder.admit(0, index);
        self.release(0);
    }

    /// Gives prepared packets their slots and their places in the order, and gives their jobs to the scheduler. There
    /// are enough slots: admission is limited to the free ones.
    pub(crate) fn put_in_flight(&mut self, burst: &mut Vec<Job>) {
        let mut classes = std::mem::take(&mut self.scratch.classes);
        let known = classes.len().min(burst.len());
        let mut class = classes.drain(..known);
        let mut items = std::mem::take(&mut self.scratch.items);
        let InFlight { slots, reorder, .. } = &mut self.in_flight;
        let mut left_over = None;
        for job in burst.iter_mut() {
            let (session, bytes) = (job.spec.session, job.packet.len() as u32);
            let class = class.next().unwrap_or(0);
            match slots.admit(job, class, self.now) {
                Some(index) => {
                    reorder.admit(session.0, index);
                    let suite = self.sessions.kind(session);
                    items.push(Item { id: index.into(), sa: session.0, class, suite, bytes });
                }
                None => left_over.get_or_insert_with(Vec::new).push(std::mem::take(job)),
            }
        }
        burst.clear();
        drop(class);
        self.scratch.classes = classes;
        let retries = &mut self.retries;
        self.scheduler.push_all(self.now, &items, |item| retries.push_back(item.id as u32));
        items.clear();
        self.scratch.items = items;
        left_over.into_iter().flatten().for_each(|job| self.start_without_slot(job));
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

    /// Cannot be, there was room; the packet's number is lost as a lost packet's is.
    #[cold]
    fn start_without_slot(&mut self, job: Job) {
        let _ = self.sad.complete(&mut Packet::with_capacity(0), &job.spec, Verdict::Failed);
        self.refuse(job.packet, job.token, DropReason::QueueFull);
    }

    /// Gives the packet of a slot and its job for the next SA to the scheduler.
    pub(crate) fn launch(&mut self, index: u32, packet: Packet, spec: JobSpec) {
        let slot = self.in_flight.slots.get_mut(index);
        slot.len = packet.len() as u32;
        slot.tries = 0;
        let job = self.in_flight.slots.job_mut(index);
        job.packet = packet;
        job.spec = spec;
        // There is room on admission, `room` has looked; for the next SA's turn there may be none.
        if !self.schedule(index) {
            self.retries.push_back(index);
        }
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
    fn stays(&mut self, burst: &[Job]) -> bool {
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
        for other in self.pool.others() {
            self.scheduler.set_asleep(other, self.pool.get(other).processor.is_asleep());
        }
        self.scheduler.keeps(self.now, kind, burst.len(), &all)
    }
}

/// Whether a job of a burst still has its packet, and so is to be done.
fn has_packet(job: &Job) -> bool {
    job.packet.has_buffer()
}
