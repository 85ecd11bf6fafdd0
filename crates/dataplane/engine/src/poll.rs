//! A poll: one pass through the steps between admission and release, and through everything that is due by time.

use forebay_crypto::{Direction, Job, JobSpec, Packet};
use forebay_ipsec::DropReason;
use forebay_time::{Duration, Time};

use crate::databases::Databases;
use crate::engine::{Core, Output};
use crate::pending_spi::Pending;
use crate::turnstile::Turnstile;

/// How long a core does not come to the databases only to see whether anything is due by time.
const REST: Duration = Duration::from_micros(10);

impl Core {
    /// One pass: collects answers, places jobs, does those of the running core, and watches deadlines. Returns whether
    /// anything moved; if not, the caller may sleep for a short time.
    pub(crate) fn poll(&mut self, shared: &Turnstile<Databases>) -> bool {
        let before = self.now;
        self.now = self.clock.now();
        self.polled_before = std::mem::replace(&mut self.polled, self.now);
        let mut moved = self.now >= self.rests_until && self.pass_time(&mut shared.pass());
        moved |= self.do_put_off(shared);
        if !self.in_flight.is_empty() {
            let begun = if moved { self.clock.now() } else { self.now };
            moved |= self.collect(shared, begun);
            if self.rules.lateness {
                self.see_overdue();
            }
            loop {
                moved |= self.place();
                if !self.work(shared) {
                    break;
                }
                moved = true;
                // While others work, more packets may come to share out with what is left.
                if self.pool.others_hold_any() {
                    break;
                }
            }
            self.account_waiting(moved, before);
        }
        if self.pool.len() > 1 {
            self.watch();
        }
        if !moved {
            self.give_way();
        }
        moved
    }

    /// Waiting for others is no work.
    fn account_waiting(&mut self, moved: bool, before: Time) {
        if !moved {
            self.moving.account(self.now.since(before));
        }
    }

    /// Does everything that is due by now. Returns whether packets moved.
    pub(crate) fn pass_time(&mut self, db: &mut Databases) -> bool {
        let now = self.sa_time(db);
        db.ipsec.advance(now);
        db.edges.reassembler.advance(now);
        let mut moved = db.edges.pending.len() > 0 && self.look_after_pending(db);
        moved |= db.ipsec.aggregates() && self.send_aggregates(db);
        db.tickets.look(self.now);
        moved |= db.tickets.parked() > 0 && self.overtake(db);
        while let Some(session) = db.ipsec.poll_inner(now) {
            let latest = db.edges.latest;
            self.unpack(db, session, latest, self.now);
            moved = true;
        }
        self.close_removed(db);
        self.look_at_backlog(db);
        let waits = self.parked > 0 || db.edges.pending.len() > 0 || db.ipsec.aggregates();
        let is_quiet = !waits && db.edges.told.is_none() && self.sessions.has_closed(&db.keys);
        self.rests_until = if is_quiet { self.now + REST } else { Time::ZERO };
        moved
    }

    /// Makes jobs of all aggregates that are due, as far as there is room. Returns whether there were any.
    pub(crate) fn send_aggregates(&mut self, db: &mut Databases) -> bool {
        let (now, tag) = (self.sa_time(db), db.edges.latest);
        let mut moved = false;
        while self.room() > 0 {
            let (mut packet, mut spec) = (self.buffers.take(), JobSpec::default());
            match db.ipsec.poll_aggregate(now, &mut packet, &mut spec) {
                None => {
                    self.recycle(packet);
                    break;
                }
                // An aggregate mixes classes; its DSCP is zero, so that it tells nothing (RFC 9347 2.2.5).
                Some(Ok(_)) => {
                    let mut one = std::mem::take(&mut self.scratch.one);
                    one.push(Job::new(packet, spec, tag));
                    self.draw(db, &one);
                    self.start_prepared(&mut one);
                    self.scratch.one = one;
                }
                Some(Err(reason)) => {
                    self.drops.count(reason);
                    self.recycle(packet);
                }
            }
            moved = true;
        }
        moved
    }

    /// Admits waiting packets whose SA has been installed since, and drops those that have waited too long. Returns
    /// whether any packet was dropped.
    #[cold]
    fn look_after_pending(&mut self, db: &mut Databases) -> bool {
        if db.edges.pending.take_news() {
            self.let_pending_in(db);
        }
        let mut moved = false;
        while db.edges.pending.next_due() <= self.now
            && let Some(Pending { packet, tag, came }) = db.edges.pending.pop()
        {
            self.drops.count(DropReason::InNoStates);
            self.turn_away(db, packet, tag, came, DropReason::InNoStates);
            moved = true;
        }
        moved
    }

    fn let_pending_in(&mut self, db: &mut Databases) {
        for _ in 0..db.edges.pending.len() {
            let Some(Pending { packet, tag, came }) = db.edges.pending.pop() else { break };
            let others = db.edges.pending.len();
            self.start_one(db, Direction::Open, packet, tag);
            if let Some(refusal) = self.refusals.pop() {
                self.turn_away(db, refusal.packet, tag, came, refusal.reason);
            } else if db.edges.pending.len() == others {
                self.stats.pending_spi += 1;
            } else {
                db.edges.pending.backdate(came);
            }
        }
    }

    fn turn_away(
        &mut self,
        db: &mut Databases,
        packet: Packet,
        tag: u64,
        admitted: Time,
        reason: DropReason,
    ) {
        let (session, result, released) = (None, Err(reason), self.now);
        db.outputs.push(self.cpu, Output { packet, tag, session, result, admitted, released });
    }
}
