//! Between two SAs of a nest: a packet that the outer SA's path takes only in pieces is divided before it goes there, and
//! pieces that have come out of an outer SA are put together before the inner one opens them (RFC 4303 3.3.4, 3.4.1).

use forebay_crypto::{Direction, Job, JobSpec, Packet};
use forebay_ipsec::{DropReason, Next, Path, Reassembly};

use crate::edges::may_be_fragment;
use crate::engine::Engine;

impl Engine {
    /// The pieces of a packet that SA `spec.session` has sealed, if the SA that it goes through next takes it only so.
    pub(crate) fn nested_pieces(&mut self, spec: &JobSpec, packet: &Packet) -> Option<Vec<Packet>> {
        if packet.len() <= self.sad.whole_up_to(spec.session) {
            return None;
        }
        let fragments = self.sad.divide_sealed(spec.session, packet.bytes())?;
        let pieces = self.edges.pieces(fragments, &mut self.buffers);
        (!pieces.is_empty()).then_some(pieces)
    }

    /// Takes in a packet that SA `spec.session` has opened and that goes on to another. Whether it goes on now: a
    /// fragment waits for the others, its content has been copied, and the buffer is free.
    pub(crate) fn gather_nested(&mut self, spec: &JobSpec, packet: &mut Packet) -> Result<bool, DropReason> {
        let is_opened = self.sad.direction(spec.session) == Some(Direction::Open);
        if !is_opened || !may_be_fragment(packet.bytes()) {
            return Ok(true);
        }
        let now = self.sa_time();
        match self.edges.reassembler.push_through(now, packet, spec.session.0) {
            Reassembly::Whole | Reassembly::Complete => Ok(true),
            Reassembly::Held => Ok(false),
            Reassembly::Dropped(reason) => Err(reason),
        }
    }

    /// Lets the pieces of a packet, which is first in the order of `session`, go on through its next SA one behind the
    /// other: the first in the packet's slot.
    pub(crate) fn continue_in_pieces(
        &mut self,
        session: u32,
        index: u32,
        path: Path,
        spec: JobSpec,
        pieces: Vec<Packet>,
    ) {
        let slot = self.in_flight.slots.get(index);
        let (class, admitted, tag) = (slot.class, slot.admitted, self.in_flight.slots.job(index).token);
        let mut pieces = pieces.into_iter();
        let Some(first) = pieces.next() else { return };
        if pieces.len() > self.in_flight.slots.free() {
            pieces.for_each(|piece| self.buffers.put(piece));
            return self.drop_in_flight(session, index, first, &spec, DropReason::QueueFull);
        }
        if !self.continue_whole(session, index, path, first, spec) {
            return pieces.for_each(|piece| self.buffers.put(piece));
        }
        let mut before = index;
        for mut piece in pieces {
            let (mut path, mut spec) = (path, spec);
            if let Err(reason) = self.sad.again(&mut path, &mut piece, &mut spec) {
                self.give_out(piece, spec.session, tag, admitted, Err(reason));
                continue;
            }
            let next = spec.session.0;
            let mut job = Job::new(piece, spec, tag);
            // Room has been looked for above.
            let Some(index) = self.in_flight.slots.admit(&mut job, class, admitted) else { continue };
            self.in_flight.slots.get_mut(index).path = path;
            self.in_flight.reorder.admit_behind(next, before, index);
            if !self.schedule(index) {
                self.retries.push_back(index);
            }
            before = index;
        }
    }

    /// Puts pieces in the places of packets of a burst that go on only so. `again` and `fates` name the packets by
    /// their places.
    pub(crate) fn divide_in_place(
        &mut self,
        burst: &mut Vec<Job>,
        again: &mut Vec<(usize, Path)>,
        fates: &mut Vec<Result<Next, DropReason>>,
    ) {
        // From behind, so that the places before stay what they are.
        for at in (0..again.len()).rev() {
            let (place, path) = again[at];
            let (spec, tag) = (burst[place].spec, burst[place].token);
            let Some(pieces) = self.nested_pieces(&spec, &burst[place].packet) else { continue };
            let more = pieces.len().saturating_sub(1);
            let jobs = pieces.into_iter().map(|piece| Job::new(piece, spec, tag));
            burst.splice(place..=place, jobs).for_each(|whole| self.buffers.put(whole.packet));
            fates.splice(place..place, std::iter::repeat_n(Ok(Next::Again), more));
            again[at + 1..].iter_mut().for_each(|(place, _)| *place += more);
            again.splice(at + 1..at + 1, (1..=more).map(|n| (place + n, path)));
        }
    }
}
