//! How many cores move packets: the queues of the links.

use super::reader::Context;
use super::{Config, InsideLink, OutsideLink, Xdp, whole};

impl Config {
    /// Number of cores that move packets, each with an engine of its own: the largest `queues` of all links, and at
    /// least 1. Each core has a queue of every link over TUN and sockets, whatever the link's own `queues`. A card
    /// counts with its configured `queues`; where all of them are wanted, `of_card` returns their number by
    /// interface.
    pub fn workers(&self, of_card: impl Fn(&str) -> usize) -> usize {
        let cards =
            self.cards().map(|card| card.queues.as_ref().map_or_else(|| of_card(&card.interface), Vec::len));
        let inside = if let InsideLink::Tun(tun) = &self.inside.link { tun.queues } else { 1 };
        let sockets = self.outside.iter().map(|one| match &one.link {
            OutsideLink::Udp(udp) => udp.queues,
            OutsideLink::Raw(_) | OutsideLink::Xdp { .. } => 1,
        });
        cards.chain(sockets).chain([inside, 1]).max().unwrap_or(1)
    }

    /// The network cards by AF_XDP.
    pub fn cards(&self) -> impl Iterator<Item = &Xdp> {
        let inside = if let InsideLink::Xdp { card, .. } = &self.inside.link { Some(card) } else { None };
        let outside = self.outside.iter().filter_map(|one| match &one.link {
            OutsideLink::Xdp { card, .. } => Some(card),
            OutsideLink::Udp(_) | OutsideLink::Raw(_) => None,
        });
        inside.into_iter().chain(outside)
    }

    /// What is wrong with queues and `pin` for so many cores that move packets: what was found, and a hint.
    pub fn check_workers(
        &self,
        workers: usize,
        of_card: impl Fn(&str) -> usize,
    ) -> Result<(), (String, String)> {
        for card in self.cards() {
            let name = &card.interface;
            let queues = card.queues.as_ref().map_or_else(|| of_card(name), Vec::len);
            if queues < workers {
                let message = format!("{name} has {queues} queues, but there are {workers} worker threads");
                let help = format!(
                    "each core wants a queue of the card: give it more (`ethtool -L {name} combined {workers}`), or \
                     the other links `queues = {queues}`"
                );
                return Err((message, help));
            }
        }
        let pinned = self.processors.first().map_or(0, |first| first.cpus().len());
        if pinned != 0 && pinned != workers {
            let message = format!("`pin` of the first processor has {pinned} CPUs for the worker threads");
            let help = format!("give {workers} CPUs, one for each worker thread");
            return Err((message, help));
        }
        Ok(())
    }
}

/// The same check of a file alone; what depends on the system is checked at the start.
pub(super) fn check(config: &Config, context: &Context<'_>) {
    if config.cards().any(|card| card.queues.is_none()) {
        return;
    }
    if let Err((message, help)) = config.check_workers(config.workers(|_| 1), |_| 1) {
        context.findings.borrow_mut().add(forebay_diagnostics::Problem::Conflict { message, help }, whole());
    }
}

/// The processors of each of the cores that move packets, by their places: all have the first, the others are dealt
/// out in turn.
pub fn deal(processors: usize, workers: usize) -> Vec<Vec<usize>> {
    let of = |worker: usize| {
        let others = (1..processors).filter(|place| (place - 1) % workers.max(1) == worker);
        std::iter::once(0).chain(others).collect()
    };
    (0..workers.max(1)).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::deal;

    #[test]
    fn processors_are_dealt_out_in_turn() {
        assert_eq!(deal(1, 1), [[0]]);
        assert_eq!(deal(4, 1), [[0, 1, 2, 3]]);
        assert_eq!(deal(1, 3), [[0], [0], [0]]);
        assert_eq!(deal(6, 3), [vec![0, 1, 4], vec![0, 2, 5], vec![0, 3]]);
    }
}
