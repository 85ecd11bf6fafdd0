//! The number of worker threads: the largest number of queues of a link, and one for each further core of the file.

use super::reader::Context;
use super::{Config, InsideLink, NetworkDevice, OutsideLink, Processor, ProcessorKind, Xdp, whole};

impl Config {
    /// Number of cores that move packets, each on a thread of its own: the largest `queues` of all links, and at
    /// least 1, and one for each further processor that is a core. Each core has a queue of every link over TUN and sockets,
    /// whatever the link's own `queues`; of a card that has fewer some cores share one. A card counts with its configured `queues`; where all of them are wanted, `of_card` returns their number by
    /// interface.
    pub fn workers(&self, of_card: impl Fn(&str) -> usize) -> usize {
        let cards =
            self.cards().map(|card| card.queues.as_ref().map_or_else(|| of_card(&card.interface), Vec::len));
        let inside = match &self.inside.link {
            InsideLink::Tun(tun) => tun.queues,
            InsideLink::Dpdk(device) => device.queues,
            InsideLink::Xdp { .. } => 1,
        };
        let sockets = self.outside.iter().map(|one| match &one.link {
            OutsideLink::Udp(udp) => udp.queues,
            OutsideLink::Dpdk { device, .. } => device.queues,
            OutsideLink::Raw(_) | OutsideLink::Xdp { .. } => 1,
        });
        let queues = cards.chain(sockets).chain([inside, 1]).max().unwrap_or(1);
        queues + self.cores().count().saturating_sub(1)
    }

    /// The places of the processors that are cores.
    fn cores(&self) -> impl Iterator<Item = usize> {
        let is_core = |one: &Processor| matches!(one.kind, ProcessorKind::Core { .. });
        let all = self.processors.iter().enumerate();
        all.filter(move |(_, one)| is_core(one)).map(|(place, _)| place)
    }

    /// The CPUs that the cores which move packets stay on, in their order; none if the system chooses.
    pub fn pinned(&self) -> Vec<u32> {
        self.processors.iter().flat_map(|one| one.cpus()).copied().collect()
    }

    /// The network cards by AF_XDP.
    pub fn cards(&self) -> impl Iterator<Item = &Xdp> {
        let inside = if let InsideLink::Xdp { card, .. } = &self.inside.link { Some(card) } else { None };
        let outside = self.outside.iter().filter_map(|one| match &one.link {
            OutsideLink::Xdp { card, .. } => Some(card),
            OutsideLink::Udp(_) | OutsideLink::Raw(_) | OutsideLink::Dpdk { .. } => None,
        });
        inside.into_iter().chain(outside)
    }

    /// The network devices by DPDK.
    pub fn network_devices(&self) -> impl Iterator<Item = &NetworkDevice> {
        let inside = if let InsideLink::Dpdk(device) = &self.inside.link { Some(device) } else { None };
        let outside = self.outside.iter().filter_map(|one| match &one.link {
            OutsideLink::Dpdk { device, .. } => Some(device),
            _ => None,
        });
        inside.into_iter().chain(outside)
    }

    /// What is wrong with `pin` for so many cores that move packets: what was found, and a hint.
    pub fn check_workers(&self, workers: usize) -> Result<(), (String, String)> {
        let pinned = self.pinned().len();
        if pinned != 0 && pinned != workers {
            let message = format!("`pin` names {pinned} CPUs for {workers} worker threads");
            let help = format!("give {workers} CPUs, one for each worker thread");
            return Err((message, help));
        }
        Ok(())
    }
}

/// The same check of a file alone; what depends on the system is checked at the start.
pub(super) fn check(config: &Config, context: &Context<'_>) {
    let devices: Vec<_> = config.network_devices().map(|one| &one.device).collect();
    if let Some(twice) = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at])) {
        let message = format!("two links have the network device {}", devices[twice]);
        let help = "give each link a device of its own".to_owned();
        context.findings.borrow_mut().add(forebay_diagnostics::Problem::Conflict { message, help }, whole());
    }
    if config.cards().any(|card| card.queues.is_none()) {
        return;
    }
    if let Err((message, help)) = config.check_workers(config.workers(|_| 1)) {
        context.findings.borrow_mut().add(forebay_diagnostics::Problem::Conflict { message, help }, whole());
    }
}

/// The processors of each of so many cores that move packets, by their places in the file: the core itself, which is the
/// first one if the file names no more, and the devices, which are dealt out in turn.
pub fn deal(config: &Config, workers: usize) -> Vec<Vec<usize>> {
    let cores: Vec<usize> = config.cores().collect();
    deal_out(&cores, config.processors.len(), workers)
}

fn deal_out(cores: &[usize], processors: usize, workers: usize) -> Vec<Vec<usize>> {
    let workers = workers.max(1);
    let alike = (workers + 1).saturating_sub(cores.len());
    let devices = (0..processors).filter(|place| !cores.contains(place));
    let devices: Vec<usize> = devices.collect();
    let of = |worker: usize| {
        let core = (worker + 1).checked_sub(alike).and_then(|at| cores.get(at)).or(cores.first());
        let own = devices.iter().enumerate().filter(|(turn, _)| turn % workers == worker);
        core.copied().into_iter().chain(own.map(|(_, place)| *place)).collect()
    };
    (0..workers).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::deal_out;

    #[test]
    fn each_core_has_its_library_and_devices_are_dealt_out_in_turn() {
        assert_eq!(deal_out(&[0], 1, 1), [[0]]);
        assert_eq!(deal_out(&[0], 4, 1), [[0, 1, 2, 3]]);
        assert_eq!(deal_out(&[0], 1, 3), [[0], [0], [0]]);
        assert_eq!(deal_out(&[0], 6, 3), [vec![0, 1, 4], vec![0, 2, 5], vec![0, 3]]);
        // Two queues and two further cores.
        assert_eq!(deal_out(&[0, 1, 3], 5, 4), [vec![0, 2], vec![0, 4], vec![1], vec![3]]);
        assert_eq!(deal_out(&[0, 1], 2, 2), [[0], [1]]);
    }
}
