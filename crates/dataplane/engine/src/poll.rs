//! A poll: one pass through the steps between admission and release, and through everything that is due by time.

use forebay_crypto::{Direction, Job, JobSpec};
use forebay_ipsec::DropReason;
use forebay_time::Time;

use crate::engine::{Engine, Output};
use crate::pending_spi::Pending;

impl Engine {
    /// One pass: collects answers, places jobs, does those of the running core, and watches deadlines. Returns whether
    /// anything moved; if not, the caller may sleep for a short time.
    pub fn poll(&mut self) -> bool {
        let before = self.now;
        self.now = self.clock.now();
        self.polled_before = std::mem::replace(&mut self.polled, self.now);
        let mut moved = self.pass_time();
        if !self.in_flight.is_empty() {
            let begun = if moved { self.clock.now() } else { self.now };
            moved |= self.collect(begun);
            if self.rules.lateness {
                self.see_overdue();
            }
            loop {
                moved |= self.place();
                if !self.work() {
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
        self.close_ended();
        moved
    }

    /// Waiting for others is no work.
    fn account_waiting(&mut self, moved: bool, before: Time) {
        if !moved {
            self.moving.account(self.now.since(before));
        }
    }

    /// Tells the SAs the time. From now on it replaces the time of the clock: packets of a file have their own times.
    pub fn set_time(&mut self, time: Time) {
        self.edges.told = Some(time);
        self.pass_time();
    }

    /// Does everything that is due by now. Returns whether packets moved.
    fn pass_time(&mut self) -> bool {
        let now = self.sa_time();
        self.sad.advance(now);
        self.edges.reassembler.advance(now);
        let mut moved = self.edges.pending.len() > 0 && self.look_after_pending();
        moved |= self.sad.aggregates() && self.send_aggregates();
        while let Some(session) = self.sad.poll_inner(now) {
            self.unpack(session, self.edges.latest, self.now);
            moved = true;
        }
        moved
    }

    /// Makes jobs of all aggregates that are due, as far as there is room. Returns whether there were any.
    pub(crate) fn send_aggregates(&mut self) -> bool {
        let (now, tag) = (self.sa_time(), self.edges.latest);
        let mut moved = false;
        while self.room() > 0 {
            let (mut packet, mut spec) = (self.buffer(), JobSpec::default());
            match self.sad.poll_aggregate(now, &mut packet, &mut spec) {
                None => {
                    self.recycle(packet);
                    break;
                }
                // An aggregate mixes classes; its DSCP is zero, so that it tells nothing (RFC 9347 2.2.5).
                Some(Ok(_)) => {
                    let mut one = std::mem::take(&mut self.scratch.one);
                    one.push(Job::new(packet, spec, tag));
                    self.put_in_flight(&mut one);
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
    fn look_after_pending(&mut self) -> bool {
        if self.edges.pending.take_news() {
            self.let_pending_in();
        }
        let mut moved = false;
        while self.edges.pending.next_due() <= self.now
            && let Some(Pending { packet, tag, came }) = self.edges.pending.pop()
        {
            self.drops.count(DropReason::InNoStates);
            self.turn_away(packet, tag, came, DropReason::InNoStates);
            moved = true;
        }
        moved
    }

    fn let_pending_in(&mut self) {
        let mut burst = std::mem::take(&mut self.scratch.one);
        for _ in 0..self.edges.pending.len() {
            let Some(Pending { packet, tag, came }) = self.edges.pending.pop() else { break };
            let others = self.edges.pending.len();
            burst.push(Job::new(packet, JobSpec::default(), tag));
            self.enter(Direction::Open, &mut burst);
            if let Some(refusal) = self.outward.refusals.pop() {
                self.turn_away(refusal.packet, tag, came, refusal.reason);
            } else if self.edges.pending.len() == others {
                self.stats.pending_spi += 1;
            } else {
                self.edges.pending.backdate(came);
            }
        }
        self.scratch.one = burst;
    }

    fn turn_away(&mut self, packet: forebay_crypto::Packet, tag: u64, admitted: Time, reason: DropReason) {
        let (session, result, released) = (None, Err(reason), self.now);
        self.outward.outputs.push(Output { packet, tag, session, result, admitted, released });
    }
}
