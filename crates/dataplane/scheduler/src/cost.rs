//! The demand of a job, and its cost on one processor.

use forebay_time::{Duration, PS_PER_S};

/// The work of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Packets bundled in the job.
    pub packets: u32,
    /// 16-byte blocks, each packet's last one counted whole; 32 bits are 64 GB.
    pub blocks: u32,
    /// Bytes of all packets.
    pub bytes: u64,
}

impl Work {
    /// The work of one packet of `bytes` bytes.
    #[inline]
    pub fn packet(bytes: u32) -> Work {
        let mut work = Work::default();
        work.add_packet(bytes);
        work
    }

    /// Both together.
    #[inline]
    pub(crate) fn plus(&self, other: &Work) -> Work {
        Work {
            packets: self.packets + other.packets,
            blocks: self.blocks.saturating_add(other.blocks),
            bytes: self.bytes + other.bytes,
        }
    }

    /// What is left without a part.
    #[inline]
    pub(crate) fn minus(&self, part: &Work) -> Work {
        Work {
            packets: self.packets - part.packets,
            blocks: self.blocks - part.blocks,
            bytes: self.bytes - part.bytes,
        }
    }

    /// Bundles one more packet of `bytes` bytes.
    #[inline]
    pub fn add_packet(&mut self, bytes: u32) {
        self.packets += 1;
        self.blocks += bytes.div_ceil(16);
        self.bytes += u64::from(bytes);
    }
}

/// How long a processor needs: t_init and t_block of \[H\] eq 13, and the terms of real processors
/// (docs/models.md, "Real processors"), without which it is the papers'.
///
/// A batch of jobs that are handed over together takes `submit`, `packet` for each packet, and for each group of
/// `lanes` jobs, in the order given, as long as the longest (init + block * blocks) of the group; an idle
/// processor begins `wake` after the hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Per job: t_init.
    pub init: Duration,
    /// Per packet, also where jobs are computed side by side: packets are prepared one after the other. Zero in
    /// the papers.
    pub packet: Duration,
    /// Per 16-byte block: t_block.
    pub block: Duration,
    /// Per batch handed over together; zero in the papers. The job that opens a batch bears it (see
    /// [`crate::Scheduler::submitted`]).
    pub submit: Duration,
    /// Time from the hand-over to an idle processor until it begins; zero in the papers.
    pub wake: Duration,
    /// Jobs of a batch that are computed side by side, 1 in the papers; 0 counts as 1.
    pub lanes: u32,
}

impl Default for Cost {
    fn default() -> Cost {
        let zero = Duration::ZERO;
        Cost { init: zero, packet: zero, block: zero, submit: zero, wake: zero, lanes: 1 }
    }
}

impl Cost {
    /// The time `work` takes as one job by itself, without `submit` and `wake`.
    #[inline]
    pub fn of(&self, work: &Work) -> Duration {
        saturated(self.exact(work))
    }

    /// The time a batch of jobs takes that are handed over together, without `wake`.
    pub fn of_batch(&self, jobs: impl IntoIterator<Item = Work>) -> Duration {
        let mut batch = Batch::default();
        jobs.into_iter().for_each(|job| batch.add(self, &job));
        if batch.jobs == 0 { Duration::ZERO } else { self.submit + batch.time() }
    }

    /// The time that as many jobs take one after the other, `work` being that of all of them, without `submit`
    /// and `wake`.
    #[inline]
    pub(crate) fn of_jobs(&self, jobs: usize, work: &Work) -> Duration {
        let inits = u128::from(self.init.0) * (jobs as u128).saturating_sub(1);
        saturated(self.exact(work) + inits)
    }

    /// The time of `jobs` jobs that are `job` each, in so many groups, without `submit` and `wake`.
    #[inline]
    pub(crate) fn of_groups(&self, groups: usize, job: &Work, jobs: usize) -> Duration {
        let packets = self.packet.times(u64::from(job.packets));
        let group = self.init + self.block.times(u64::from(job.blocks));
        group.times(groups as u64) + packets.times(jobs as u64)
    }

    /// The same in picoseconds that cannot overflow: a choice adds up much for every processor, and
    /// saturates once, at the end.
    #[inline(always)]
    pub(crate) fn exact(&self, work: &Work) -> u128 {
        let product = |one: Duration, count: u32| u128::from(one.0) * u128::from(count);
        u128::from(self.init.0) + product(self.packet, work.packets) + product(self.block, work.blocks)
    }
}

/// The time of a batch as its jobs are added one by one: see [`Cost`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Jobs so far.
    pub jobs: u32,
    /// Time of the groups that are full, and of every job's packets.
    full: Duration,
    /// Jobs in the group that is being filled, and its longest job.
    filling: u32,
    longest: Duration,
}

impl Batch {
    /// Adds a job at the end.
    #[inline]
    pub fn add(&mut self, cost: &Cost, job: &Work) {
        self.jobs += 1;
        self.full += cost.packet.times(u64::from(job.packets));
        self.longest = self.longest.max(cost.init + cost.block.times(u64::from(job.blocks)));
        self.filling += 1;
        if self.filling >= cost.lanes {
            self.full += self.longest;
            (self.filling, self.longest) = (0, Duration::ZERO);
        }
    }

    /// How long the jobs so far take, without [`Cost::submit`] and [`Cost::wake`].
    #[inline]
    pub fn time(&self) -> Duration {
        self.full + self.longest
    }

    /// How many jobs may still join the last group without a new one being opened: none if it is full.
    #[inline]
    pub fn room(&self, cost: &Cost) -> u32 {
        if self.filling == 0 { 0 } else { cost.lanes - self.filling }
    }
}

/// The nearest length of time that there is.
#[inline(always)]
pub(crate) fn saturated(ps: u128) -> Duration {
    Duration(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// The bus between memory and a processor, for predictions that count its transfers (\[H\] eq 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Clock in Hz.
    pub clock: u64,
    /// Bytes moved in a cycle.
    pub width: u32,
    /// Cycles for the address, once per transfer.
    pub address_cycles: u32,
}

impl Transfer {
    /// The time one transfer of `bytes` bytes takes: its whole number of cycles, rounded once to
    /// the nearest picosecond, halves up.
    #[cold] // a division, beside which a call is nothing, and the choice is shorter without it
    pub fn of(&self, bytes: u64) -> Duration {
        let cycles = bytes.div_ceil(u64::from(self.width)) + u64::from(self.address_cycles);
        // 64 bits hold 18 million cycles' worth; a 128-bit division is tens of times slower.
        let exact = match cycles.checked_mul(PS_PER_S).and_then(|ps| ps.checked_add(self.clock / 2)) {
            Some(ps) => ps / self.clock,
            None => {
                let ps = u128::from(cycles) * u128::from(PS_PER_S) + u128::from(self.clock / 2);
                u64::try_from(ps / u128::from(self.clock)).unwrap_or(u64::MAX)
            }
        };
        Duration(exact)
    }
}

/// The factor alpha of \[H\] eq 4, multiplied without a rounding that could differ between machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alpha {
    /// The binary fraction that an `f64` is, mantissa / 2^shift, in lowest terms.
    mantissa: u64,
    shift: u32,
    /// Half of 2^shift.
    half: u64,
}

impl Alpha {
    /// `None` unless 1 <= alpha < 2^53.
    pub(crate) fn new(alpha: f64) -> Option<Alpha> {
        const FRACTION_BITS: u32 = 52;
        if !(1.0..9_007_199_254_740_992.0).contains(&alpha) {
            return None;
        }
        let bits = alpha.to_bits();
        let exponent = (bits >> FRACTION_BITS) as u32 - 1023;
        let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
        let common = mantissa.trailing_zeros().min(FRACTION_BITS - exponent);
        let (mantissa, shift) = (mantissa >> common, FRACTION_BITS - exponent - common);
        Some(Alpha { mantissa, shift, half: (1 << shift) >> 1 })
    }

    /// The factor itself.
    pub(crate) fn value(self) -> f64 {
        self.mantissa as f64 / (1u64 << self.shift) as f64
    }

    /// alpha times `length`, exact, then rounded once to the nearest picosecond, halves up.
    #[inline]
    pub(crate) fn times(self, length: Duration) -> Duration {
        // In lowest terms only 1 has the mantissa 1, and most processors have it.
        if self.mantissa == 1 {
            return length;
        }
        // 53 bits times 64 bits: never more than 117.
        let exact = u128::from(self.mantissa) * u128::from(length.0) + u128::from(self.half);
        // The mask changes nothing (shift <= 52) but lets the compiler drop the case of 64 and more.
        let shift = self.shift & 63;
        let fits = (exact >> 64) as u64 >> shift == 0;
        Duration(if fits { (exact >> shift) as u64 } else { u64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_table_1_is_640_bytes_in_17_6_us() {
        let cost = Cost { block: Duration::from_nanos(440), ..Cost::default() };
        assert_eq!(cost.of(&Work::packet(640)), Duration(17_600_000));
        assert_eq!(cost.of(&Work::packet(641)), Duration(18_040_000));
        assert_eq!(cost.of(&Work::packet(0)), Duration::ZERO);
    }

    #[test]
    fn a_bundle_pays_init_once_and_whole_blocks_per_packet() {
        let cost = Cost {
            init: Duration(1_000),
            packet: Duration(10),
            block: Duration(3),
            submit: Duration(9_999),
            ..Cost::default()
        };
        let mut work = Work::packet(17);
        work.add_packet(16);
        assert_eq!(work, Work { packets: 2, blocks: 3, bytes: 33 });
        assert_eq!(cost.of(&work), Duration(1_000 + 20 + 9));
    }

    #[test]
    fn a_batch_takes_as_long_as_the_longest_job_of_each_group() {
        let cost = Cost { init: Duration(100), block: Duration(1), submit: Duration(7), ..Cost::default() };
        let jobs = || [16, 32, 64, 160].map(Work::packet);
        assert_eq!(cost.of_batch(jobs()), Duration(7 + 400 + 1 + 2 + 4 + 10));
        let wide = Cost { lanes: 3, ..cost };
        assert_eq!(wide.of_batch(jobs()), Duration(7 + 104 + 110));
        assert_eq!(wide.of_batch([]), Duration::ZERO);
        let marshalled = Cost { packet: Duration(5), ..wide };
        assert_eq!(marshalled.of_batch(jobs()), wide.of_batch(jobs()) + Duration(20));
        let mut batch = Batch::default();
        jobs()[..2].iter().for_each(|job| batch.add(&wide, job));
        assert_eq!((batch.time(), batch.room(&wide)), (Duration(102), 1));
    }

    #[test]
    fn a_transfer_is_rounded_once_from_its_cycles() {
        let pci = Transfer { clock: 66_000_000, width: 4, address_cycles: 1 };
        assert_eq!(pci.of(0), Duration(15_152)); // 15151.51..
        assert_eq!(pci.of(5), Duration(45_455)); // 3 cycles: 45454.54..
        assert_eq!(pci.of(1_500), Duration(5_696_970)); // 376 cycles: 5696969.69..
        let slow = Transfer { clock: 3, width: 1, address_cycles: 0 };
        assert_eq!(slow.of(40_000_000), Duration(13_333_333_333_333_333_333));
        // More cycles than 64 bits hold as picoseconds.
        let bus = Transfer { clock: 900_001, width: 1, address_cycles: 1 };
        assert_eq!(bus.of(40_000_000), Duration(44_444_396_172_893));
    }

    #[test]
    fn alpha_multiplies_exactly_and_rounds_halves_up() {
        let times = |alpha, ps| Alpha::new(alpha).unwrap().times(Duration(ps)).0;
        assert_eq!(times(1.0, u64::MAX), u64::MAX);
        assert_eq!(times(2.5, 3), 8); // 7.5
        assert_eq!(times(2.5, 4), 10);
        assert_eq!(times(1.1, 10_000_000_000_000), 11_000_000_000_000);
        assert_eq!(times(500.0, u64::MAX), u64::MAX);
        assert_eq!(times(9_007_199_254_740_991.0, 2), 18_014_398_509_481_982);
        for wrong in [0.99, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Alpha::new(wrong).is_none());
        }
    }
}
