//! What is under way: a slot per packet, a group per scheduler job, and the order of release.

use forebay_crypto::{JobSpec, Packet, Verdict};
use forebay_ipsec::Path;
use forebay_scheduler::{JobHead, Prediction};
use forebay_time::{Duration, Time};

/// A packet under way. The packet stays here, untouched, while a processor other than the running
/// core works on a copy, so that it can be done again elsewhere.
#[derive(Debug)]
pub struct Flight {
    /// Changes whenever an answer that may still come must not count any more.
    pub generation: u32,
    pub packet: Option<Packet>,
    pub spec: JobSpec,
    /// The SAs that the packet has been through before that of `spec`.
    pub path: Path,
    /// The caller's.
    pub tag: u64,
    /// Service class, for the scheduler.
    pub class: u8,
    /// It has no job, a policy lets it pass as it is, and it only waits for its turn.
    pub bypass: bool,
    /// Length of the packet as the scheduler was told it, in bytes.
    pub len: u32,
    pub admitted: Time,
    pub group: Option<u32>,
    pub verdict: Verdict,
    /// How often it went to the scheduler again, because the running core cannot do it.
    pub tries: u8,
    /// Who could not do it or rejected it, and with what verdict, if the running core is to see for itself.
    pub doubted: Option<(usize, Verdict)>,
}

/// The slots, a fixed number of them.
#[derive(Debug)]
pub struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    pub fn new(limit: usize) -> Flights {
        let slot = |_| Flight {
            generation: 0,
            packet: None,
            spec: JobSpec::default(),
            path: Path::default(),
            tag: 0,
            class: 0,
            bypass: false,
            len: 0,
            admitted: Time::ZERO,
            group: None,
            verdict: Verdict::Pending,
            tries: 0,
            doubted: None,
        };
        Flights { slots: (0..limit).map(slot).collect(), free: (0..limit as u32).rev().collect() }
    }

    pub fn free(&self) -> usize {
        self.free.len()
    }

    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub fn give_back(&mut self, index: u32) {
        let flight = &mut self.slots[index as usize];
        flight.generation = flight.generation.wrapping_add(1);
        flight.verdict = Verdict::Pending;
        flight.group = None;
        flight.doubted = None;
        self.free.push(index);
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Flight {
        &mut self.slots[index as usize]
    }

    pub fn get(&self, index: u32) -> &Flight {
        &self.slots[index as usize]
    }

    /// What names this flight, in this generation, in a job.
    pub fn token(&self, index: u32) -> u64 {
        u64::from(self.slots[index as usize].generation) << 32 | u64::from(index)
    }

    /// The flight that `token` names, unless its answer no longer counts.
    pub fn by_token(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let flight = self.slots.get(index as usize)?;
        let is_current = flight.generation == (token >> 32) as u32;
        (is_current && flight.packet.is_some() && flight.verdict == Verdict::Pending).then_some(index)
    }

    /// Readies a flight that is done for the job of another SA, behind those of `path`.
    pub fn begin_again(&mut self, index: u32, path: Path) {
        self.disown(index);
        let flight = &mut self.slots[index as usize];
        flight.path = path;
        flight.verdict = Verdict::Pending;
        flight.doubted = None;
    }

    /// Makes answers to jobs given out so far count no more.
    pub fn disown(&mut self, index: u32) {
        let flight = &mut self.slots[index as usize];
        flight.generation = flight.generation.wrapping_add(1);
        flight.group = None;
    }
}

/// What the scheduler said of a job.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub prediction: Prediction,
    /// When its processor was chosen: before it was dispatched if the queue was full then.
    pub chosen: Time,
}

/// One scheduler job on a processor: the packets that were submitted together.
#[derive(Debug)]
pub struct Group {
    pub head: JobHead,
    pub placed: Placed,
    /// When it must be done, or the processor counts as having stopped answering.
    pub deadline: Time,
    pub members: Vec<u32>,
    pub remaining: u32,
    pub took: Duration,
}

/// The groups under way, reused so that their lists keep their memory.
#[derive(Debug)]
pub struct Groups {
    groups: Vec<Group>,
    free: Vec<u32>,
    /// Packets that a list has room for from the start.
    window: usize,
}

impl Groups {
    pub fn new(flights: usize, window: usize) -> Groups {
        Groups { groups: Vec::with_capacity(flights), free: Vec::with_capacity(flights), window }
    }

    pub fn open(
        &mut self,
        head: JobHead,
        placed: Placed,
        deadline: Time,
        members: impl Iterator<Item = u32>,
    ) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            let members = Vec::with_capacity(self.window);
            let (remaining, took) = (0, Duration::ZERO);
            self.groups.push(Group { head, placed, deadline, members, remaining, took });
            self.groups.len() as u32 - 1
        });
        let group = &mut self.groups[index as usize];
        group.head = head;
        group.placed = placed;
        group.deadline = deadline;
        group.members.clear();
        group.members.extend(members);
        group.remaining = group.members.len() as u32;
        group.took = Duration::ZERO;
        index
    }

    pub fn get_mut(&mut self, index: u32) -> &mut Group {
        &mut self.groups[index as usize]
    }

    pub fn get(&self, index: u32) -> &Group {
        &self.groups[index as usize]
    }

    pub fn close(&mut self, index: u32) {
        self.free.push(index);
    }
}

/// What is released in the order in which it was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The packets of an SA: what IPsec needs.
    PerSa,
    /// All packets: what a file needs.
    Total,
}

/// A queue per domain of order; a packet leaves when it is first and done.
///
/// The queues are chained through one table of all flights, so that memory is set aside once,
/// however the packets are spread over the SAs.
#[derive(Debug)]
pub struct ReleaseQueues {
    order: Order,
    queues: Vec<Ends>,
    /// By flight: the one behind it in its queue.
    behind: Vec<u32>,
}

/// First and last of a queue.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// No flight.
const NONE: u32 = u32::MAX;

impl ReleaseQueues {
    pub fn new(order: Order, sas: usize, flights: usize) -> ReleaseQueues {
        let domains = if order == Order::PerSa { sas } else { 1 };
        let queues = vec![Ends { first: NONE, last: NONE }; domains];
        ReleaseQueues { order, queues, behind: vec![NONE; flights] }
    }

    /// Whether all packets keep their order.
    pub fn is_total(&self) -> bool {
        self.order == Order::Total
    }

    /// Makes room for the queue of one more SA.
    pub fn open(&mut self, session: u32) {
        let domain = self.domain(session);
        if domain >= self.queues.len() {
            self.queues.resize(domain + 1, Ends { first: NONE, last: NONE });
        }
    }

    fn domain(&self, session: u32) -> usize {
        if self.order == Order::PerSa { session as usize } else { 0 }
    }

    pub fn admit(&mut self, session: u32, flight: u32) {
        let domain = self.domain(session);
        let ends = &mut self.queues[domain];
        match ends.first {
            NONE => ends.first = flight,
            _ => self.behind[ends.last as usize] = flight,
        }
        ends.last = flight;
        self.behind[flight as usize] = NONE;
    }

    /// Moves the first flight of one SA behind those of another, whose job is its next; in total order it
    /// keeps its place, and those behind it wait.
    pub fn go_on(&mut self, from: u32, to: u32, flight: u32) {
        if self.order == Order::PerSa {
            self.release(from);
            self.admit(to, flight);
        }
    }

    /// The flight that must leave before any other of the domain that `session` is in.
    pub fn first(&self, session: u32) -> Option<u32> {
        let first = self.queues[self.domain(session)].first;
        (first != NONE).then_some(first)
    }

    pub fn release(&mut self, session: u32) {
        let domain = self.domain(session);
        let first = self.queues[domain].first;
        self.queues[domain].first = self.behind[first as usize];
    }
}
