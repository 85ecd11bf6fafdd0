//! Interrupts for several packets at once: how many they are for, and how long packets wait for theirs.

use serde::{Deserialize, Serialize};

/// An interrupt is raised when so many packets wait for it, or when the first of them has waited long enough
/// (\[G\] 15.3.1: programmable interrupt mitigation).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupts {
    /// Time of each interrupt, in seconds.
    pub cost_s: f64,
    /// Packets that it is for at most.
    pub packets: u32,
    /// Longest time that the first packet waits for it, in seconds; `None`: until there are enough.
    pub timeout_s: Option<f64>,
}

/// What interrupts do with packets that come at some rate, if each has been handled before the next is due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moderated {
    /// Mean number of packets for each.
    pub packets: f64,
    /// Mean time that a packet waits until its interrupt is raised, in seconds.
    pub wait_s: f64,
}

impl Interrupts {
    /// With packets that come `gap_s` apart: evenly, or in the mean as a Poisson stream.
    pub fn at(&self, gap_s: f64, poisson: bool) -> Moderated {
        if poisson { self.by_chance(gap_s) } else { self.evenly(gap_s) }
    }

    /// The first packet waits for (n - 1) gaps or for the timeout, each after it for one gap less. A packet that comes with the
    /// timeout is the first of the next: the timeout was set before it.
    fn evenly(&self, gap_s: f64) -> Moderated {
        // In whole picoseconds, as in the simulation, so that ties are ties.
        let ps = |seconds: f64| (seconds * 1e12).round();
        let timeout = self.timeout_s.map_or(f64::INFINITY, ps);
        let within = (timeout / ps(gap_s)).ceil().max(1.0);
        let packets = within.min(f64::from(self.packets));
        let first_s = if within < f64::from(self.packets) { timeout / 1e12 } else { (packets - 1.0) * gap_s };
        Moderated { packets, wait_s: first_s - 0.5 * (packets - 1.0) * gap_s }
    }

    /// Cycles begin with a packet and end with the k-th or after the timeout T, so that a cycle has 1 + min(k - 1, N) packets with N
    /// of Poisson's law with mean T / gap. Its packets together wait for the integral of their number over the cycle:
    /// the sum over j < k - 1 of (1 + j) times the mean time in [0, T] in which j have come after the first, gap P(N > j).
    fn by_chance(&self, gap_s: f64) -> Moderated {
        let Some(timeout_s) = self.timeout_s else { return self.evenly(gap_s) };
        let load = timeout_s / gap_s;
        let (mut packets, mut waits, mut above) = (1.0, 0.0, 1.0);
        // The logarithm of P(N = j), which is too small a number where many come.
        let mut exactly = -load;
        for j in 0..self.packets.saturating_sub(1) {
            // P(N > j), from P(N > j - 1).
            above -= libm::exp(exactly);
            if above < 1e-15 {
                break;
            }
            packets += above;
            waits += f64::from(1 + j) * gap_s * above;
            exactly += libm::log(load) - libm::log(f64::from(j + 1));
        }
        Moderated { packets, wait_s: waits / packets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: f64 = 1e-6;

    fn interrupts(packets: u32, timeout_us: Option<f64>) -> Interrupts {
        Interrupts { cost_s: 0.0, packets, timeout_s: timeout_us.map(|time| time * US) }
    }

    fn near(found: f64, exact: f64) -> bool {
        (found - exact).abs() <= 1e-12 * exact.abs().max(1e-6)
    }

    #[test]
    fn even_packets_by_hand() {
        // Packets at 0, 10, 20 and 30 us: the fourth raises the interrupt, and they have waited for 30, 20, 10 and 0 us.
        let four = interrupts(4, None).at(10.0 * US, false);
        assert!(four.packets == 4.0 && near(four.wait_s, 15.0 * US), "{four:?}");
        // A timeout of 25 us ends the wait of those at 0, 10 and 20: 25, 15 and 5 us.
        let three = interrupts(8, Some(25.0)).at(10.0 * US, false);
        assert!(three.packets == 3.0 && near(three.wait_s, 15.0 * US), "{three:?}");
        // One of 20 us comes before the packet at 20 us: 20 and 10.
        let two = interrupts(8, Some(20.0)).at(10.0 * US, false);
        assert!(two.packets == 2.0 && near(two.wait_s, 15.0 * US), "{two:?}");
        let alone = interrupts(1, Some(20.0)).at(10.0 * US, false);
        assert!(alone.packets == 1.0 && alone.wait_s == 0.0, "{alone:?}");
        let rare = interrupts(8, Some(20.0)).at(50.0 * US, false);
        assert!(rare.packets == 1.0 && near(rare.wait_s, 20.0 * US), "{rare:?}");
    }

    #[test]
    fn packets_by_chance_by_hand() {
        // Two at most, timeout T: P(none comes) is e^-a with a = T / gap; the first waits for gap (1 - e^-a).
        let a = 0.7_f64;
        let two = interrupts(2, Some(7.0)).at(10.0 * US, true);
        let come = 1.0 - (-a).exp();
        assert!(
            near(two.packets, 1.0 + come) && near(two.wait_s, 10.0 * US * come / (1.0 + come)),
            "{two:?}"
        );
        // Without a timeout: k packets, whose mean wait is (k - 1) / 2 gaps.
        let all = interrupts(5, None).at(10.0 * US, true);
        assert!(near(all.packets, 5.0) && near(all.wait_s, 20.0 * US), "{all:?}");
        // Any number within the timeout: 1 + a packets. The first waits for T, and a more for T / 2 each.
        let many = interrupts(1_000, Some(30.0)).at(10.0 * US, true);
        assert!((many.packets - 4.0).abs() < 1e-9, "{many:?}");
        assert!((many.wait_s - (30.0 + 3.0 * 15.0) * US / 4.0).abs() < 1e-12, "{many:?}");
        let most = interrupts(100_000, Some(20_000.0)).at(10.0 * US, true);
        assert!((most.packets - 2_001.0).abs() < 1e-6, "{most:?}");
    }
}
