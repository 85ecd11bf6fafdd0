//! The bus and its cards as events in virtual time, without a byte of the jobs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use forebay_time::Time;

use crate::station::{Station, Unit, Way, Work};
use crate::{BusConfig, CardConfig};

/// What can happen by itself. The order of the variants means nothing: no two events have one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A card hears a doorbell.
    Rung { card: usize },
    /// The transfer on the bus ends.
    Transferred,
    /// A card's unit has finished computing.
    Computed { card: usize },
}

/// A transfer asked for or under way.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    card: usize,
    way: Way,
    bytes: u64,
}

/// A bus and the cards behind it (models.md section 1, "Bus" and "Accelerator").
///
/// What the text there leaves open is read so:
/// - A place in the write buffer is free when the write-back from it has ended, as a card without
///   buffer is blocked until then.
/// - Jobs are fetched ahead whenever the unit is not idle, so also while it is blocked.
/// - When a transfer ends, its card acts before the bus is given to the next that asked; what it
///   asks for goes behind those.
/// - What is submitted at an instant comes after everything else of that instant.
#[derive(Debug)]
pub(crate) struct Model {
    bus: BusConfig,
    /// Everything up to here has happened.
    now: Time,
    /// Future events, with the number that keeps those of one instant in the order of scheduling.
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    /// The transfer under way and when it ends.
    on_bus: Option<(Transfer, Time)>,
    /// Transfers that wait for the bus, in the order in which they were asked for.
    asked: VecDeque<Transfer>,
    cards: Vec<Station>,
}

impl Model {
    pub(crate) fn new(bus: BusConfig) -> Model {
        Model {
            bus,
            now: Time::ZERO,
            events: BinaryHeap::new(),
            scheduled: 0,
            on_bus: None,
            asked: VecDeque::new(),
            cards: Vec::new(),
        }
    }

    /// Plugs in a card; returns its number.
    pub(crate) fn plug(&mut self, config: &CardConfig) -> usize {
        self.cards.push(Station::new(config));
        self.cards.len() - 1
    }

    /// The card of that number, up to date with the last [`Model::advance`].
    pub(crate) fn card(&mut self, card: usize) -> &mut Station {
        &mut self.cards[card]
    }

    /// Lets everything happen that happens up to `to`, in order.
    pub(crate) fn advance(&mut self, to: Time) {
        while let Some(&Reverse((at, _, event))) = self.events.peek()
            && at <= to
        {
            self.events.pop();
            self.now = at;
            self.happen(event);
        }
        self.now = self.now.max(to);
    }

    /// Submits to `card` at `now`; the caller has made sure that there is room.
    pub(crate) fn submit(&mut self, now: Time, card: usize, mut work: Work) {
        self.advance(now);
        let station = &mut self.cards[card];
        work.rung = self.now + station.doorbell;
        station.waiting.push_back(work);
        self.schedule(work.rung, Event::Rung { card });
        self.advance(now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Rung { card } => {
                self.cards[card].heard += 1;
                self.step(card);
            }
            Event::Computed { card } => {
                self.cards[card].computed();
                self.step(card);
            }
            Event::Transferred => {
                let Some((Transfer { card, way, .. }, _)) = self.on_bus else { return };
                match way {
                    Way::Fetch => self.cards[card].fetched(),
                    Way::WriteBack => self.cards[card].written_back(self.now),
                }
                self.step(card);
                self.on_bus = None;
                self.grant();
            }
        }
    }

    /// Lets a card do all it can do now. A fetch is asked for before a write-back: "reads go before
    /// buffered writes".
    fn step(&mut self, card: usize) {
        let station = &mut self.cards[card];
        station.unblock();
        if let Some(until) = station.start(self.now) {
            self.schedule(until, Event::Computed { card });
        }
        if let Some(bytes) = self.cards[card].ask_fetch() {
            self.ask(Transfer { card, way: Way::Fetch, bytes });
        }
        if let Some(bytes) = self.cards[card].ask_write_back() {
            self.ask(Transfer { card, way: Way::WriteBack, bytes });
        }
    }

    fn ask(&mut self, transfer: Transfer) {
        self.asked.push_back(transfer);
        self.grant();
    }

    /// Gives a free bus to the first that asked.
    fn grant(&mut self) {
        if self.on_bus.is_none()
            && let Some(transfer) = self.asked.pop_front()
        {
            let end = self.now + self.bus.transfer(transfer.bytes);
            self.on_bus = Some((transfer, end));
            self.schedule(end, Event::Transferred);
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    /// A time before which `card` delivers nothing more than it has: exact once the write-back of its
    /// oldest submission is asked for, else as if nobody else wanted the bus. `None` if it has no work.
    pub(crate) fn next_due(&self, card: usize) -> Option<Time> {
        let station = &self.cards[card];
        if let Some(&at) = station.delivered.front() {
            return Some(at);
        }
        if station.writing {
            return self.transfer_end(card, Way::WriteBack);
        }
        if let Unit::Computing { work, until } = station.unit {
            return Some(until + self.bus.transfer(work.bytes));
        }
        if let Some(work) = station.fetching {
            let fetched = self.transfer_end(card, Way::Fetch)?;
            return Some(fetched + work.time + self.bus.transfer(work.bytes));
        }
        let work = station.waiting.front()?;
        Some(work.rung + self.bus.transfer(work.bytes).times(2) + work.time)
    }

    /// When a transfer that is asked for or under way will end: first come, first served, so known.
    fn transfer_end(&self, card: usize, way: Way) -> Option<Time> {
        let wanted = |transfer: &Transfer| (transfer.card, transfer.way) == (card, way);
        let (under_way, mut end) = self.on_bus?;
        if wanted(&under_way) {
            return Some(end);
        }
        for transfer in &self.asked {
            end = end + self.bus.transfer(transfer.bytes);
            if wanted(transfer) {
                return Some(end);
            }
        }
        None
    }
}
