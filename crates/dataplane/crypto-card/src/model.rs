//! The bus and its cards in virtual time, without a byte of the jobs: what each card has delivered.

use std::collections::VecDeque;

use forebay_station::{Host, StationConfig, Watch, Work};
use forebay_time::Time;

use crate::{BusConfig, CardConfig};

/// A bus and the cards behind it.
#[derive(Debug)]
pub(crate) struct Model {
    host: Host<()>,
    bus: usize,
    deliveries: Deliveries,
}

/// By card: when each submission that has not been collected was written back.
#[derive(Debug, Default)]
struct Deliveries(Vec<VecDeque<Time>>);

impl Watch<()> for Deliveries {
    fn finished(&mut self, card: usize, now: Time, _: Work<()>) {
        self.0[card].push_back(now);
    }
}

impl Model {
    pub(crate) fn new(config: BusConfig) -> Model {
        let mut host = Host::new();
        let bus = host.add_bus(config.station_bus());
        Model { host, bus, deliveries: Deliveries::default() }
    }

    /// Plugs in a card; returns its number.
    pub(crate) fn plug(&mut self, config: &CardConfig) -> usize {
        let &CardConfig { doorbell, write_buffer, prefetch, .. } = config;
        self.deliveries.0.push(VecDeque::new());
        let config = StationConfig {
            bus: Some(self.bus),
            doorbell,
            write_buffer,
            prefetch,
            ..StationConfig::default()
        };
        self.host.add_station(config)
    }

    /// Lets everything happen that happens up to `to`, in order.
    pub(crate) fn advance(&mut self, to: Time) {
        self.host.advance(to, &mut self.deliveries);
    }

    /// What a card has delivered up to the last [`Model::advance`].
    pub(crate) fn delivered(&mut self, card: usize) -> &mut VecDeque<Time> {
        &mut self.deliveries.0[card]
    }

    /// Whether a card takes one more submission: into its queue, or past an empty one.
    pub(crate) fn has_room(&self, card: usize, queue: usize) -> bool {
        let waiting = self.host.waiting(card);
        waiting < queue || (waiting == 0 && self.host.may_fetch(card))
    }

    /// Submits to `card` at `now`; the caller has made sure that there is room.
    pub(crate) fn submit(&mut self, now: Time, card: usize, work: Work<()>) {
        self.host.submit(now, card, work, &mut self.deliveries);
    }

    /// A time before which `card` delivers nothing more than it has; `None` if it has no work.
    pub(crate) fn next_due(&self, card: usize) -> Option<Time> {
        let delivered = self.deliveries.0[card].front().copied();
        delivered.or_else(|| self.host.earliest_finish(card))
    }
}
