//! Between two SAs of a nest: a packet that the outer SA's path takes only in pieces is divided before it goes there, and
//! pieces that have come out of an outer SA are put together before the inner one opens them (RFC 4303 3.3.4, 3.4.1).

use forebay_crypto::{Direction, Job, JobSpec, Packet};
use forebay_ipsec::{DropReason, Reassembly};

use crate::databases::Databases;
use crate::edges::may_be_fragment;
use crate::engine::Core;
use crate::tickets::Run;

impl Core {
    /// Prepares a packet that is complete for one SA, and whose turn it is there, for the next; it draws a ticket of that
    /// SA and joins [`Core::again`]. Whether it goes on: it may be dropped, or wait for other fragments.
    pub(crate) fn continue_in(
        &mut self,
        db: &mut Databases,
        run: &Run,
        spec: &JobSpec,
        mut packet: Packet,
        tag: u64,
    ) -> bool {
        match self.gather_nested(db, spec, &mut packet) {
            Ok(true) => {}
            Ok(false) => {
                self.buffers.put(packet);
                return false;
            }
            Err(reason) => {
                self.give_out(db, packet, spec.session, tag, run.admitted, Err(reason));
                return false;
            }
        }
        let before = self.again.jobs.len();
        match self.nested_pieces(db, spec, &packet) {
            None => self.continue_with(db, run, spec, packet, tag),
            Some(pieces) => {
                self.buffers.put(packet);
                pieces.into_iter().for_each(|piece| self.continue_with(db, run, spec, piece, tag));
            }
        }
        if let Some(last) = self.again.runs.last_mut().filter(|_| self.again.jobs.len() > before) {
            last.last |= run.last;
            return true;
        }
        false
    }

    /// The same for a packet that goes on as it is.
    fn continue_with(&mut self, db: &mut Databases, run: &Run, from: &JobSpec, mut packet: Packet, tag: u64) {
        let (mut path, mut spec) = (run.path, *from);
        if let Err(reason) = db.ipsec.again(&mut path, &mut packet, &mut spec) {
            return self.give_out(db, packet, from.session, tag, run.admitted, Err(reason));
        }
        self.open_here(db, spec.session);
        let is_total = db.tickets.is_total();
        let (line, ticket) =
            if is_total { (run.line, db.tickets.turn(run.line)) } else { db.tickets.draw(spec.session.0, 1) };
        self.again.jobs.push(Job::new(packet, spec, tag));
        self.again.runs.push(Run { line, ticket, len: 1, path, last: !is_total, ..*run });
    }

    /// The pieces of a packet that SA `spec.session` has sealed, if the SA that it goes through next takes it only so.
    fn nested_pieces(&mut self, db: &mut Databases, spec: &JobSpec, packet: &Packet) -> Option<Vec<Packet>> {
        if packet.len() <= db.ipsec.whole_up_to(spec.session) {
            return None;
        }
        let fragments = db.ipsec.divide_sealed(spec.session, packet.bytes())?;
        let pieces = db.edges.pieces(fragments, &mut self.buffers);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// Takes in a packet that SA `spec.session` has opened and that goes on to another. Whether it goes on now: a
    /// fragment waits for the others, its content has been copied, and the buffer is free.
    fn gather_nested(
        &mut self,
        db: &mut Databases,
        spec: &JobSpec,
        packet: &mut Packet,
    ) -> Result<bool, DropReason> {
        let is_opened = db.ipsec.direction(spec.session) == Some(Direction::Open);
        if !is_opened || !may_be_fragment(packet.bytes()) {
            return Ok(true);
        }
        let now = self.sa_time(db);
        self.buffers.keep(packet);
        match db.edges.reassembler.push_through(now, packet, spec.session.0) {
            Reassembly::Whole | Reassembly::Complete => Ok(true),
            Reassembly::Held => Ok(false),
            Reassembly::Dropped(reason) => Err(reason),
        }
    }
}
