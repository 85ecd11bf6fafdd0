//! Path MTUs (RFC 4301 8.2), as configured and as learned.

use forebay_time::{Duration, Time};
use forebay_wire::{Family, ipv6};

/// The smallest path MTU that is believed of IPv4, in bytes: what every host takes (RFC 791 3.1). A forged
/// message could ask for less to no good end; the same limit for IPv6 is [`ipv6::MIN_MTU`].
pub const MIN_PATH_MTU_V4: u16 = 576;

/// How long a path MTU that was learned holds (RFC 1191 6.3: ten minutes).
pub const LEARNED_FOR: Duration = Duration::from_millis(600_000);

/// The smallest path MTU for packets of this family, in bytes.
pub const fn min_path_mtu(family: Family) -> u16 {
    match family {
        Family::V4 => MIN_PATH_MTU_V4,
        Family::V6 => ipv6::MIN_MTU,
    }
}

/// A path MTU as configured, as learned since, and as another SA on the way leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    configured: Option<u16>,
    /// With the time at which it is forgotten.
    learned: Option<(u16, Time)>,
    /// What the SA leaves that packets go through next.
    bound: Option<u16>,
}

impl PathMtu {
    /// As configured; `None` is no limit but IP's own.
    pub fn new(configured: Option<u16>) -> PathMtu {
        PathMtu { configured, learned: None, bound: None }
    }

    /// The present value in bytes.
    pub fn get(&self) -> Option<u16> {
        let learned = self.learned.map(|(mtu, _)| mtu);
        [self.configured, learned, self.bound].into_iter().flatten().min()
    }

    /// Lowers it to `mtu`, or to the least there is for `family`, for a while; whether that changed anything. A
    /// message never raises it (RFC 1191 4, RFC 8201 4).
    pub fn learn(&mut self, mtu: u16, family: Family, now: Time) -> bool {
        let mtu = mtu.max(min_path_mtu(family));
        let lower = self.get().is_none_or(|current| mtu < current);
        if lower {
            self.learned = Some((mtu, now + LEARNED_FOR));
        }
        lower
    }

    /// Sets what the SA leaves that packets go through next; whether that changed anything.
    pub fn bound(&mut self, bound: Option<u16>) -> bool {
        std::mem::replace(&mut self.bound, bound) != bound
    }

    /// When what was learned is forgotten.
    pub fn due(&self) -> Option<Time> {
        self.learned.map(|(_, until)| until)
    }

    /// Forgets what was learned for until `now`; whether there was such a thing.
    pub fn pass_time(&mut self, now: Time) -> bool {
        let over = self.due().is_some_and(|until| until <= now);
        if over {
            self.learned = None;
        }
        over
    }
}

/// The path MTU to try after a router that did not name its own (RFC 1191 7.1): the next step below the length
/// of what was too big.
pub fn plateau_below(len: u16) -> u16 {
    const PLATEAUS: [u16; 10] = [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];
    PLATEAUS.into_iter().find(|&plateau| plateau < len).unwrap_or(68)
}
