//! Hardware in simulation: the Verilog cores of `hardware/` behind an emulated bus.

use std::any::Any;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_crypto::Processor;
#[cfg(feature = "rtl")]
use forebay_crypto::Suite;
use forebay_crypto_card::CardConfig;
use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means};
use forebay_scenario::schema::Takes::{Path, Whole, Word};
use forebay_scenario::schema::{Key, key};
use forebay_time::Duration;

use crate::card::{BUS, DOORBELL, INIT, PREFETCH, QUEUE, WRITE_BUFFER};
use crate::registry::{Device, Kind, Surroundings, Values};

pub(crate) const KIND: Kind = Kind { word: WORD, keys: KEYS, read, sample, detailed };

const WORD: &str = "rtl";

const CORES: &[&str] = &[
    "aes-gcm",
    "chacha20poly1305",
    "esp-ctr-sha1",
    "esp-cbc-sha256",
    "esp-3des-sha1",
    "esp-gcm",
    "esp-chacha20poly1305",
];
/// Clock of the devices of benchmarks in Hz.
const CLOCK_HZ: NonZeroU64 = NonZeroU64::new(100_000_000).expect("not zero");

const KEYS: &[Key] = &[
    key(
        "core",
        Word(CORES),
        Is("\"esp-gcm\""),
        "Verilog core or ESP engine that is simulated",
        "\"esp-ctr-sha1\"",
    ),
    key(
        "clock",
        Whole(Unit::Frequency, 1, 1_000_000_000_000),
        Is("\"100 MHz\""),
        "clock rate of the core, at which its cycles are time",
        "\"250 MHz\"",
    ),
    INIT,
    DOORBELL,
    QUEUE,
    WRITE_BUFFER,
    PREFETCH,
    BUS,
    key("record", Path, Means("none"), "file of a waveform (FST) of one packet", "\"packet.fst\""),
    key(
        "record_packet",
        Whole(Unit::None, 0, 1 << 40),
        Is("0"),
        "number of the packet that is recorded, counted from 0",
        "12",
    ),
];

/// A core in simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RtlDevice {
    core: &'static str,
    clock_hz: NonZeroU64,
    card: CardConfig,
    bus: usize,
    record: Option<(u64, PathBuf)>,
}

fn read(values: &dyn Values) -> Option<Arc<dyn Device>> {
    let (core, clock, packet) = (values.word("core"), values.whole("clock"), values.whole("record_packet"));
    let (init, doorbell, queue) = (values.time("init"), values.time("doorbell"), values.count("queue"));
    let (write_buffer, prefetch) = (values.count("write_buffer"), values.count("prefetch"));
    let bus = values.bus("bus");
    if values.has("record_packet") && !values.has("record") {
        let message = "`record_packet` means nothing without `record`";
        values.conflict("record_packet", message, "add `record = \"packet.fst\"`, or take it away");
        return None;
    }
    let record = if values.has("record") { Some((packet?, values.path("record")?)) } else { None };
    let card = CardConfig {
        init: init?,
        doorbell: doorbell?,
        queue: queue?,
        write_buffer: write_buffer?,
        prefetch: prefetch?,
        ..without_blocks()
    };
    Some(Arc::new(RtlDevice { core: core?, clock_hz: NonZeroU64::new(clock?)?, card, bus: bus?, record }))
}

fn sample() -> Arc<dyn Device> {
    Arc::new(of("esp-gcm", CLOCK_HZ))
}

/// `CORE`, or `CORE+MHZ`.
fn detailed(words: &str) -> Option<Arc<dyn Device>> {
    let (core, mhz) = words.split_once('+').unwrap_or((words, "100"));
    let core = CORES.iter().find(|one| **one == core)?;
    let clock_hz = mhz.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    Some(Arc::new(of(core, NonZeroU64::new(clock_hz)?)))
}

fn of(core: &'static str, clock_hz: NonZeroU64) -> RtlDevice {
    RtlDevice { core, clock_hz, card: without_blocks(), bus: 0, record: None }
}

/// The card around the core: the core says how long blocks take.
fn without_blocks() -> CardConfig {
    CardConfig { name: WORD.to_owned(), block: Duration::ZERO, ..CardConfig::paper_230_mbit() }
}

#[cfg(not(feature = "rtl"))]
fn not_built() -> miette::Report {
    miette::miette!(
        help = "install verilator (5.0 or later) and zlib1g-dev and build with `--features rtl`, or take this `[[processor]]` out",
        "this program was built without the Verilog cores"
    )
}

impl Device for RtlDevice {
    fn word(&self) -> &'static str {
        WORD
    }

    #[cfg(feature = "rtl")]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let Surroundings { name, buses, .. } = surroundings;
        let bus = buses.get(self.bus).ok_or_else(|| miette::miette!("{name}: no such bus"))?;
        let core = forebay_crypto_rtl::Core::of(self.core);
        let core = core.ok_or_else(|| miette::miette!("{name}: no such core"))?;
        let name = name.to_owned();
        let (clock_hz, record) = (self.clock_hz, self.record.clone());
        let opened = forebay_crypto_rtl::open(forebay_crypto_rtl::Config {
            name: name.clone(),
            core,
            clock_hz,
            record,
        });
        let inner = opened.map_err(|why| miette::miette!(help = why.help(), "{name}: {why}"))?;
        let config = CardConfig { name, ..self.card.clone() };
        Ok(Box::new(forebay_crypto_card::Card::timed_by_inner(config, bus, inner)))
    }

    #[cfg(not(feature = "rtl"))]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        Err(not_built().wrap_err(surroundings.name.to_owned()))
    }

    #[cfg(feature = "rtl")]
    fn lacks(&self) -> Option<miette::Report> {
        let why = forebay_crypto_rtl::lacks(self.record.is_some())?;
        Some(miette::miette!(help = why.help(), "{why}"))
    }

    #[cfg(not(feature = "rtl"))]
    fn lacks(&self) -> Option<miette::Report> {
        Some(not_built())
    }

    #[cfg(feature = "rtl")]
    fn slowed(&self) -> Option<miette::Report> {
        Some(miette::miette!(
            severity = miette::Severity::Warning,
            help = "use it to test and to look at the hardware, not for traffic",
            "the core's gates are simulated: a packet of 1,440 bytes takes about a millisecond of the CPU"
        ))
    }

    #[cfg(feature = "rtl")]
    fn suites(&self) -> Option<Vec<Suite>> {
        forebay_crypto_rtl::Core::of(self.core).map(forebay_crypto_rtl::Core::suites)
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("core", format!("\"{}\"", self.core)), ("clock", format!("\"{} Hz\"", self.clock_hz))]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Device) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_names_core_and_clock() {
        let read = |words: &str| detailed(words).map(|device| format!("{device:?}"));
        let hz = |mhz: u64| NonZeroU64::new(mhz * 1_000_000).expect("not zero");
        assert_eq!(read("esp-gcm"), Some(format!("{:?}", of("esp-gcm", hz(100)))));
        assert_eq!(read("esp-ctr-sha1+250"), Some(format!("{:?}", of("esp-ctr-sha1", hz(250)))));
        assert!(read("esp-gcm+0").is_none() && read("esp").is_none() && read("esp-gcm+x").is_none());
    }

    #[cfg(feature = "rtl")]
    #[test]
    fn the_words_are_those_of_the_cores() {
        assert!(CORES.iter().all(|word| forebay_crypto_rtl::Core::of(word).is_some()));
        assert!(forebay_crypto_rtl::Core::ALL.iter().all(|(word, _)| CORES.contains(word)));
    }
}
