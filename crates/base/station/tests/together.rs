//! Jobs submitted together, and processors that have to wake up, by hand to the picosecond.

use std::num::{NonZeroU32, NonZeroU64};

use forebay_station::{BusConfig, Host, Speed, StationConfig, Watch, Work};
use forebay_time::{Duration, Time};

/// What happened: when, and what.
#[derive(Default)]
struct Log(Vec<(u64, &'static str, u32)>);

impl Watch<u32> for Log {
    fn taken(&mut self, station: usize, now: Time) {
        self.0.push((now.0, "taken", station as u32));
    }

    fn started(&mut self, _: usize, now: Time, until: Time) {
        self.0.push((now.0, "until", until.0 as u32));
    }

    fn finished(&mut self, _: usize, now: Time, work: Work<u32>) {
        self.0.push((now.0, "finished", work.tag));
    }
}

fn work(bytes: u64, time: u64, tag: u32) -> Work<u32> {
    Work { bytes, time: Duration(time), tag }
}

/// 10 ps for the address and for each 4 bytes.
fn pci() -> BusConfig {
    let clock = NonZeroU64::new(100_000_000_000).unwrap();
    BusConfig {
        speed: Speed::Cycles { clock, width: NonZeroU32::new(4).unwrap(), address_cycles: 1 },
        full_duplex: false,
    }
}

#[test]
fn a_card_fetches_a_submission_at_once_and_answers_each_job() {
    let mut host = Host::new();
    let bus = host.add_bus(pci());
    let config = StationConfig { bus: Some(bus), write_buffer: 1, prefetch: 1, ..StationConfig::default() };
    let card = host.add_station(config);
    let mut log = Log::default();
    // 16 + 16 + 32 bytes in: 10 + 160 ps. Out: 50, 50, 90.
    host.submit_all(Time(0), card, &[work(16, 100, 1), work(16, 100, 2), work(32, 5, 3)], &mut log);
    // Prefetched while the first three are computed, although two of them are still ahead.
    host.submit_all(Time(1), card, &[work(4, 30, 4)], &mut log);
    host.advance(Time::MAX, &mut log);
    // Computed 170-270; out and the fetch of 4 (20 ps) are asked for: the fetch at 170, so 170-190. 1 out 270-320, 2
    // computed 270-370, out 370-420; 3 computed 370-375, waits in the unit for the place until 420, out 420-510; 4
    // computed 420-450, waits until 510, out 510-530.
    let log: Vec<_> = log.0;
    assert_eq!(
        log,
        [
            (0, "taken", 0),
            (170, "until", 270),
            (170, "taken", 0),
            (270, "until", 370),
            (320, "finished", 1),
            (370, "until", 375),
            (420, "finished", 2),
            (420, "until", 450),
            (510, "finished", 3),
            (530, "finished", 4),
        ]
    );
}

#[test]
fn an_idle_core_wakes_up_first_and_a_busy_one_does_not() {
    let mut host = Host::new();
    let core = host.add_station(StationConfig { wake: Duration(40), ..StationConfig::default() });
    let mut log = Log::default();
    host.submit_all(Time(100), core, &[work(1, 10, 1), work(1, 10, 2)], &mut log);
    // It is waking up: no sooner for that.
    host.submit(Time(110), core, work(1, 10, 3), &mut log);
    host.submit(Time(150), core, work(1, 10, 4), &mut log);
    host.advance(Time(180), &mut log);
    // Idle since 180.
    host.submit(Time(180), core, work(1, 10, 5), &mut log);
    host.advance(Time::MAX, &mut log);
    let finished: Vec<_> = log.0.iter().filter(|one| one.1 == "finished").map(|one| (one.0, one.2)).collect();
    assert_eq!(finished, [(150, 1), (160, 2), (170, 3), (180, 4), (230, 5)]);
}

#[test]
fn a_card_that_wakes_up_hears_its_doorbell_first() {
    let mut host = Host::new();
    let bus = host.add_bus(pci());
    let (doorbell, wake) = (Duration(7), Duration(100));
    let card = host.add_station(StationConfig { bus: Some(bus), doorbell, wake, ..StationConfig::default() });
    let mut log = Log::default();
    host.submit(Time(0), card, work(4, 30, 1), &mut log);
    assert_eq!(host.earliest_finish(card), Some(Time(107 + 20 + 30 + 20)));
    host.submit(Time(50), card, work(4, 30, 2), &mut log);
    host.advance(Time::MAX, &mut log);
    let finished: Vec<_> = log.0.iter().filter(|one| one.1 == "finished").map(|one| one.0).collect();
    assert_eq!(finished, [177, 247]);
}
