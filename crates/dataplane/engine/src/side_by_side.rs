//! Packets of one SA are put side by side before their burst is prepared: what is done once for those that stand together,
//! the look-up, the ticket and the completion of a run, is then done once for each SA of the burst. Of an SA that another
//! core had last, its cache lines come over once, too.
//!
//! The order of an SA's packets stays as it was. That of packets of different SAs was never promised.
//!
//! The core does this by itself, before it passes to the databases. So it goes by what it knows: inbound by the SPI,
//! outbound by the SA that packets between the same addresses had, if ports and the like made no difference. No packet
//! moves past one of which nothing is known. If the policies have changed meanwhile, the burst is put back as it came.

use forebay_crypto::{Direction, Job, SessionId};
use forebay_ipsec::{Ipsec, UsualSas, esp_spi};
use forebay_wire::Addresses;

/// The longest burst that is looked at, and places for its SAs, of which half stay empty.
const LONGEST: usize = crate::TAKE;
const PLACES: usize = 2 * LONGEST;
/// Pairs of addresses that are made known with one burst, while others wait for the databases.
const LEARNED: usize = 8;
/// Neighbours that are compared before anything else is done.
const SAMPLES: usize = 8;
/// Bursts that are left as they are, and are not looked at, behind one in which too little would be gained.
const PAUSE: u32 = 31;
/// The same where there was something to learn.
const LEARNING: u32 = 3;

/// Neither an SA nor an SPI.
const NOTHING: u32 = u32::MAX;

/// Where the packets of an SA are, in this part of this burst.
#[derive(Clone, Copy, Default)]
struct Place {
    part: u32,
    key: u32,
    group: u16,
}

/// See the module.
pub(crate) struct SideBySide {
    /// Whether it is done at all: not where all packets keep their order.
    is_on: bool,
    pause: u32,
    known: UsualSas,
    /// The state of the policies under which these are known.
    policies: u64,
    places: Box<[Place]>,
    part: u32,
    /// The group of each packet, and how many packets each group has; then where each packet went.
    groups: Vec<u16>,
    counts: Vec<u16>,
    /// What the packets of each group have in common, an SA outbound and an SPI inbound; that of unknown packets names none.
    keys: Vec<u32>,
    /// Packets of which nothing was known.
    unknown: Vec<u16>,
    spare: Vec<Job>,
    /// Whether packets have been moved, so that `groups` says where to.
    has_moved: bool,
}

impl SideBySide {
    pub fn new(is_on: bool) -> SideBySide {
        SideBySide {
            is_on,
            pause: 0,
            known: UsualSas::default(),
            policies: 0,
            places: vec![Place::default(); PLACES].into(),
            part: 0,
            groups: Vec::with_capacity(LONGEST),
            counts: Vec::with_capacity(LONGEST),
            keys: Vec::with_capacity(LONGEST),
            unknown: Vec::with_capacity(LONGEST),
            spare: (0..if is_on { LONGEST } else { 0 }).map(|_| Job::default()).collect(),
            has_moved: false,
        }
    }

    /// Whether it is done: for engines beside this one.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Puts the packets of each SA behind its first one, as far as the SAs are known.
    #[inline]
    pub fn arrange(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        self.has_moved = false;
        self.unknown.clear();
        if !self.is_on || burst.len() < 3 {
            return;
        }
        if self.pause > 0 {
            self.pause -= 1;
        } else if is_in_runs(direction, burst) {
            self.pause = PAUSE;
        } else if burst.len() <= LONGEST {
            self.arrange_several(direction, burst);
        }
    }

    fn arrange_several(&mut self, direction: Direction, burst: &mut Vec<Job>) {
        let runs = self.group(direction, burst);
        // Moving a packet costs a part of what a run does.
        if 3 * self.counts.len() <= 2 * runs {
            self.put(burst);
        } else {
            self.pause = if self.unknown.is_empty() { PAUSE } else { LEARNING };
        }
    }

    /// Finds the group of each packet; how many there are if the packets stay where they are.
    fn group(&mut self, direction: Direction, burst: &[Job]) -> usize {
        self.groups.clear();
        self.counts.clear();
        self.keys.clear();
        self.next_part();
        let (mut runs, mut last) = (0, None);
        for (at, job) in burst.iter().enumerate() {
            let bytes = job.packet.bytes();
            let key = match direction {
                Direction::Seal => self.known_sa(bytes),
                Direction::Open => esp_spi(bytes),
            };
            runs += usize::from(key.is_none() || key != last);
            last = key;
            let group = match key {
                Some(key) => self.group_of(key),
                None => {
                    self.unknown.push(at as u16);
                    self.next_part();
                    self.new_group(NOTHING)
                }
            };
            self.counts[group] += 1;
            self.groups.push(group as u16);
        }
        runs
    }

    /// No packet behind this point goes to a group in front of it.
    fn next_part(&mut self) {
        self.part = self.part.wrapping_add(1);
        if self.part == 0 {
            self.places.fill(Place::default());
            self.part = 1;
        }
    }

    #[inline]
    fn known_sa(&self, packet: &[u8]) -> Option<u32> {
        self.known.get(&Addresses::of_packet(packet)?).map(|session| session.0)
    }

    #[inline]
    fn group_of(&mut self, key: u32) -> usize {
        let mut at = key as usize % PLACES;
        // There are fewer keys than places.
        loop {
            let place = &mut self.places[at];
            if place.part != self.part {
                *place = Place { part: self.part, key, group: self.counts.len() as u16 };
                return self.new_group(key);
            }
            if place.key == key {
                return place.group.into();
            }
            at = (at + 1) % PLACES;
        }
    }

    fn new_group(&mut self, key: u32) -> usize {
        self.counts.push(0);
        self.keys.push(key);
        self.counts.len() - 1
    }

    /// Moves the packets, one group behind the other.
    fn put(&mut self, burst: &mut Vec<Job>) {
        let mut from = 0;
        for count in &mut self.counts {
            from += std::mem::replace(count, from);
        }
        self.spare.resize_with(burst.len(), Job::default);
        for (job, group) in burst.iter_mut().zip(&mut self.groups) {
            let to = &mut self.counts[usize::from(*group)];
            self.spare[usize::from(*to)] = std::mem::take(job);
            *group = *to;
            *to += 1;
        }
        std::mem::swap(burst, &mut self.spare);
        self.has_moved = true;
    }

    /// At the databases: puts the burst back if what was known holds no longer, and learns the SAs of packets that were not
    /// known. The packets are as they came in.
    #[inline]
    pub fn settle(&mut self, direction: Direction, burst: &mut Vec<Job>, ipsec: &Ipsec) {
        if direction == Direction::Open || (!self.has_moved && self.unknown.is_empty()) {
            return;
        }
        if self.policies != ipsec.policies_state() {
            self.policies = ipsec.policies_state();
            self.known.forget();
            if std::mem::take(&mut self.has_moved) {
                self.put_back(burst);
            }
        }
        for at in self.unknown.drain(..).take(LEARNED) {
            let at = if self.has_moved { self.groups[usize::from(at)] } else { at };
            if let Some(addresses) = Addresses::of_packet(burst[usize::from(at)].packet.bytes())
                && let Some(session) = ipsec.usual_sa(&addresses)
            {
                self.known.put(&addresses, session);
            }
        }
    }

    /// Loads the SAs of the packets that were moved, which other cores may have changed last.
    #[inline]
    pub fn touch(&self, direction: Direction, ipsec: &Ipsec) {
        match direction {
            _ if !self.has_moved => {}
            Direction::Seal => ipsec.touch(self.keys.iter().map(|key| SessionId(*key))),
            Direction::Open => ipsec.touch_by_spi(&self.keys),
        }
    }

    #[cold]
    fn put_back(&mut self, burst: &mut Vec<Job>) {
        for (job, from) in self.spare.iter_mut().zip(&self.groups) {
            *job = std::mem::take(&mut burst[usize::from(*from)]);
        }
        std::mem::swap(burst, &mut self.spare);
    }
}

/// Whether no two neighbours differ at some places, so that hardly anything stands apart.
#[inline]
fn is_in_runs(direction: Direction, burst: &[Job]) -> bool {
    let step = burst.len().div_ceil(SAMPLES);
    (0..burst.len() - 1).step_by(step).all(|at| is_alike(direction, &burst[at], &burst[at + 1]))
}

/// Whether two packets stand side by side already.
#[inline]
fn is_alike(direction: Direction, one: &Job, other: &Job) -> bool {
    let (one, other) = (one.packet.bytes(), other.packet.bytes());
    match direction {
        Direction::Seal => Addresses::of_packet(one) == Addresses::of_packet(other),
        Direction::Open => esp_spi(one) == esp_spi(other),
    }
}
