//! The events of a run: drawn from its seed, then a plain list that can be shortened.

use forebay_cluster::fake::Network;
use forebay_config::ShareBy;
use forebay_crypto::fault::Fault;
use forebay_random::{Random, hash};
use forebay_time::Duration;

use crate::site::{By, HOMES, Site};

/// Faults of a run at most, beside one for each ten thousand packets.
const FAULTS_MAX: u64 = 40;

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Gateways and tunnels at the begin.
    pub site: Site,
    /// How long faults last, in milliseconds; traffic goes on behind them.
    pub length_ms: u64,
    /// Bursts of packets in that time.
    pub bursts: u64,
    /// What goes wrong.
    pub faults: Vec<Event>,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in milliseconds.
    pub at_ms: u64,
    /// And for how long, if it is something that ends.
    pub for_ms: u64,
    /// The gateway, the machine or the tunnel that it is about.
    pub about: usize,
    /// What.
    pub what: What,
}

/// What happens.
#[allow(missing_docs)] // the fields' names say it, or the text above them
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The network between a gateway and all others loses, repeats, changes and delays packets: per cent of them, and
    /// milliseconds.
    Weather { loss: u8, duplicate: u8, corrupt: u8, jitter_ms: u16 },
    /// Packets that went to the gateway come again; from somewhere else.
    Replay { count: u16, elsewhere: bool },
    /// ESP with the SPIs of the gateway and numbers far ahead.
    ForgeEsp { count: u16 },
    /// ICMP about packets of the gateway, real and invented.
    ForgeIcmp { count: u16, mtu: u16 },
    /// Inner packets in the clear, on the outside links.
    ForgePlain { count: u16 },
    /// The gateway is behind NAT from now on, or behind another.
    Nat,
    /// A link takes and gives nothing.
    LinkDown { outside: bool },
    /// A link takes only so many packets.
    LinkFull { outside: bool, room: u8 },
    /// The links outside take only so large packets.
    LinkMtu { mtu: u16 },
    /// A card misbehaves.
    Processor { which: u8, how: Fault },
    /// Cores of the gateway lose their CPUs now and then, for so long that others overtake them.
    CpusLost,
    /// Clean stop, and start.
    Stop,
    /// Kill, with the power off or not.
    Kill { power: bool },
    /// Kill after so many operations of the disk.
    KillAtWrite { after: u64, power: bool },
    /// No room on the disk.
    DiskFull,
    /// The time of day makes a step.
    ClockStep { by_ms: i64 },
    /// From now on the time of day begins anew with each process, as on a host whose clock has no battery.
    ClockStuck,
    /// The tunnel's selectors become wider or narrower again.
    Reload,
    /// The tunnel's keys are replaced.
    Rekey,
    /// The process of a machine of the pair is suspended (SIGSTOP).
    Suspend,
    /// What goes to these machines of the pair from the other one is held back, and comes late.
    Partition { to: [bool; 2] },
    /// All connections between the two machines of the pair break.
    Reset,
    /// What becomes of the requests of a machine to the store.
    Store { how: Network },
    /// A machine of a pair or cluster is replaced by one with an empty state directory. Of a pair, the one that stands by.
    Replace,
    /// Such a machine is restored from a backup that was made when this began, or earlier.
    Restore,
    /// The tunnel gets another address at the end by which its SAs belong to a share: with new keys, or with those that it has, which
    /// lasts until the operator sees that it is refused.
    Move { home: u8, keys: bool },
    /// The pair is dissolved, or a gateway alone becomes one; the other machine has the records of before then or none.
    Role { keeps: bool },
}

impl Plan {
    /// Packets of a second, of all gateways.
    pub fn rate(&self) -> u64 {
        self.bursts * 10_000 / self.length_ms
    }

    /// The plan of a seed with about so many events.
    pub fn draw(seed: u64, events: u64) -> Plan {
        let mut random = Random::seeded(seed ^ hash("site"));
        let site = Site::draw(seed, &mut random);
        let mut random = Random::seeded(seed ^ hash("faults"));
        // A packet is some three events: sent, carried, delivered.
        let bursts = events / 30;
        // Some runs are long and quiet: what goes by time is seen there.
        let length_ms = match random.below(5) {
            0 => 60_000 + random.below(60_000),
            _ => 4_000 + random.below(12_000),
        };
        let count = 4 + random.below(FAULTS_MAX);
        let mut faults: Vec<Event> = (0..count).map(|_| draw(&mut random, &site, length_ms)).collect();
        let mut random = Random::seeded(seed ^ hash("cpus"));
        for (about, layout) in site.layouts.iter().enumerate() {
            if layout.cores > 1 && random.below(3) == 0 {
                let (at_ms, for_ms) = (random.below(length_ms), 200 + random.below(2_000));
                faults.push(Event { at_ms, for_ms, about, what: What::CpusLost });
            }
        }
        faults.sort_by_key(|fault| fault.at_ms);
        Plan { seed, site, length_ms, bursts, faults }
    }

    /// The same with gateway 0 as a pair of machines, and with faults of such pairs.
    pub fn draw_pair(seed: u64, events: u64) -> Plan {
        Plan::draw_two(seed, events, By::Links)
    }

    /// The same with gateway 0 as two machines that share their SAs by a store, and with faults of such clusters.
    pub fn draw_cluster(seed: u64, events: u64) -> Plan {
        Plan::draw_two(seed, events, By::Store)
    }

    /// The same as two or three machines with several shares, which tunnels change.
    pub fn draw_shares(seed: u64, events: u64) -> Plan {
        let mut plan = Plan::draw_cluster(seed, events);
        let mut random = Random::seeded(seed ^ hash("shares"));
        let site = &mut plan.site;
        let (gateways, second) = (site.layouts.len(), site.machines() - 1);
        site.members = 2 + random.below(2) as usize;
        site.shares = 2 + random.below(6) as u16;
        site.share_by =
            [ShareBy::Local, ShareBy::Local, ShareBy::Remote, ShareBy::Spi][random.below(4) as usize];
        for tunnel in site.tunnels.iter_mut().filter(|tunnel| tunnel.ends[0] == 0) {
            tunnel.homes = vec![homes(site.share_by, random.below(HOMES.into()) as u8)];
        }
        for fault in plan.faults.iter_mut().filter(|fault| fault.what.is_of_machine()) {
            if site.members > 2 && fault.about == second && random.below(2) == 0 {
                fault.about += 1;
            }
        }
        if site.share_by == ShareBy::Spi {
            // A machine without the inbound SA does not see that its peer has moved.
            plan.faults.retain(|fault| fault.what != What::Nat);
        }
        for _ in 0..=random.below(5) {
            let (at_ms, for_ms) = (random.below(plan.length_ms), 500 + random.below(6_000));
            let about = random.below(gateways as u64 - 1) as usize;
            let (home, keys) = (random.below(HOMES.into()) as u8, random.below(2) == 0);
            plan.faults.push(Event { at_ms, for_ms, about, what: What::Move { home, keys } });
        }
        plan.faults.sort_by_key(|fault| fault.at_ms);
        plan
    }

    /// The same as a pair that is dissolved, and as a machine alone that becomes one of a pair.
    pub fn draw_roles(seed: u64, events: u64) -> Plan {
        let mut plan = Plan::draw_pair(seed, events);
        let mut random = Random::seeded(seed ^ hash("roles"));
        if random.below(2) == 0 {
            plan.site.alone = Some(if random.below(2) == 0 { 0 } else { plan.site.machines() - 1 });
        }
        for _ in 0..=random.below(4) {
            let (at_ms, keeps) = (random.below(plan.length_ms), random.below(2) == 0);
            plan.faults.push(Event { at_ms, for_ms: 0, about: 0, what: What::Role { keeps } });
        }
        plan.faults.sort_by_key(|fault| fault.at_ms);
        plan
    }

    fn draw_two(seed: u64, events: u64, by: By) -> Plan {
        let mut plan = Plan::draw(seed, events);
        (plan.site.pair, plan.site.by) = (Some(0), by);
        // A machine that stops does less that the other rules could find.
        plan.site.stops_alone = by == By::Store && Random::seeded(seed ^ hash("alone")).below(3) == 0;
        let mut random = Random::seeded(seed ^ hash("pair"));
        let (gateways, machines) = (plan.site.layouts.len(), plan.site.machines());
        // Others take over when a lease has ended, after seconds.
        let slow = if by == By::Store { 4 } else { 1 };
        plan.length_ms *= slow;
        plan.faults.iter_mut().for_each(|fault| fault.at_ms *= slow);
        for fault in &mut plan.faults {
            // As often of the second machine as of the first.
            if fault.what.is_of_machine() && fault.about == 0 && random.below(2) == 0 {
                fault.about = gateways;
            }
        }
        let count = match by {
            By::Links => 2 + random.below(10),
            By::Store => 4 + random.below(12),
        };
        for _ in 0..count {
            let side = random.below(2) as usize;
            let what = match random.below(8) {
                0..2 => What::Kill { power: random.below(2) == 0 },
                2 => What::Stop,
                3..5 => What::Suspend,
                5.. if by == By::Store => What::Store {
                    how: [
                        Network::Cut,
                        Network::AnswerLost,
                        Network::Lost,
                        Network::Full,
                        Network::Late,
                        Network::Late,
                    ][random.below(6) as usize],
                },
                5..7 => What::Partition {
                    to: [[true, true], [true, false], [false, true]][random.below(3) as usize],
                },
                _ => What::Reset,
            };
            let about = if side == 0 { 0 } else { machines - 1 };
            let for_ms = [100, 1_000, 4_000][random.below(3) as usize];
            let for_ms = 20 + random.below(for_ms * slow);
            let at_ms = random.below(plan.length_ms);
            if (what == What::Store { how: Network::Late }) && random.below(2) == 0 {
                // A request that is late does harm only if the other machine has taken over meanwhile, and is replaced itself.
                let (for_ms, power) = (2_000 + random.below(4_000), random.below(2) == 0);
                plan.faults.push(Event { at_ms, for_ms, about, what });
                let about = if side == 0 { machines - 1 } else { 0 };
                let at_ms = at_ms + for_ms + random.below(2_000);
                plan.faults.push(Event { at_ms, for_ms: 4_000, about, what: What::Kill { power } });
                continue;
            }
            plan.faults.push(Event { at_ms, for_ms, about, what });
        }
        plan.lose_directories();
        plan.faults.sort_by_key(|fault| fault.at_ms);
        plan
    }

    /// Whether a machine loses its state directory.
    pub fn loses_directories(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.what, What::Replace | What::Restore))
    }

    /// Adds faults of state directories to a quarter of the plans; the others are what they were before there were such faults.
    fn lose_directories(&mut self) {
        let mut random = Random::seeded(self.seed ^ hash("directories"));
        if random.below(4) > 0 {
            return;
        }
        for _ in 0..=random.below(3) {
            let about = if random.below(2) == 0 { 0 } else { self.site.machines() - 1 };
            let what = if random.below(2) == 0 { What::Replace } else { What::Restore };
            let (at_ms, for_ms) = (random.below(self.length_ms), 100 + random.below(5_000));
            self.faults.push(Event { at_ms, for_ms, about, what });
        }
    }
}

impl What {
    /// Whether it happens to a machine, and not to a gateway or a tunnel.
    fn is_of_machine(&self) -> bool {
        !matches!(
            self,
            What::Weather { .. }
                | What::Replay { .. }
                | What::ForgeEsp { .. }
                | What::ForgeIcmp { .. }
                | What::ForgePlain { .. }
                | What::Nat
                | What::Reload
                | What::Rekey
                | What::Move { .. }
                | What::Role { .. }
        )
    }
}

/// The addresses of the ends of a tunnel of gateway 0 whose SAs belong to shares.
pub fn homes(by: ShareBy, home: u8) -> [u8; 2] {
    match by {
        ShareBy::Local => [home, 0],
        ShareBy::Remote => [0, home],
        ShareBy::Spi => [0, 0],
    }
}

fn draw(random: &mut Random, site: &Site, length_ms: u64) -> Event {
    let percent = |random: &mut Random, most: u64| random.below(most) as u8;
    let what = match random.below(26) {
        0..3 => What::Weather {
            loss: percent(random, 40),
            duplicate: percent(random, 30),
            corrupt: percent(random, 20),
            jitter_ms: [0, 2, 40][random.below(3) as usize],
        },
        3..6 => What::Replay { count: 1 + random.below(200) as u16, elsewhere: random.below(2) == 0 },
        6 => What::ForgeEsp { count: 1 + random.below(60) as u16 },
        7 => What::ForgeIcmp { count: 1 + random.below(30) as u16, mtu: 60 + random.below(1_400) as u16 },
        8 => What::ForgePlain { count: 1 + random.below(20) as u16 },
        9 => What::Nat,
        10 => What::LinkDown { outside: random.below(2) == 0 },
        11 => What::LinkFull { outside: random.below(2) == 0, room: random.below(20) as u8 },
        12 => What::LinkMtu { mtu: 600 + random.below(700) as u16 },
        13..16 => What::Processor {
            which: random.below(2) as u8,
            how: [
                Fault::Stop,
                Fault::Slow { factor: 50 },
                Fault::Late { by: Duration::from_millis(30) },
                Fault::CorruptIcv { every: 3 },
                Fault::RejectGood { every: 2 },
                Fault::DropJobs { every: 3 },
                Fault::Reorder { depth: 4 },
            ][random.below(7) as usize],
        },
        16 => What::Stop,
        17 => What::Kill { power: random.below(2) == 0 },
        18..20 => What::KillAtWrite { after: random.below(24), power: random.below(2) == 0 },
        20 => What::DiskFull,
        21 if random.below(3) == 0 => What::ClockStuck,
        21 => What::ClockStep { by_ms: random.below(20_000_000) as i64 - 10_000_000 },
        22..24 => What::Reload,
        _ => What::Rekey,
    };
    let of = match what {
        What::Reload | What::Rekey => site.tunnels.len(),
        _ => site.layouts.len(),
    };
    // Of two that have moved, one of which has been restarted, neither could find the other.
    let last = site.layouts.len() - 1;
    let at_ms = random.below(length_ms);
    let drawn = random.below(of as u64) as usize;
    let about = if what == What::Nat { last } else { drawn };
    Event { at_ms, for_ms: 20 + random.below(1_500), about, what }
}
