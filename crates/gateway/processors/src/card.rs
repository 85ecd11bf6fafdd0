//! Emulated cards: a library does real crypto, and results are delivered at the times of a card on a bus.

use std::any::Any;
use std::sync::Arc;

use forebay_crypto::{Processor, Suite};
use forebay_crypto_card::{Card, CardConfig};
use forebay_scenario::schema::Absent::{Is, Means};
use forebay_scenario::schema::Takes::{Either, Text, Time, Whole};
use forebay_scenario::schema::{Key, TEXTS, key};
use forebay_scenario::{Decimal, Unit};
use forebay_time::Duration;
use miette::miette;

use crate::registry::{Device, Kind, Surroundings, Values};

/// See [`EmulatedCard`].
pub(crate) const KIND: Kind = Kind { word: WORD, keys: KEYS, read, sample, detailed };

const WORD: &str = "card";

pub(crate) const INIT: Key = key(
    "init",
    Time("0 s", "1 s"),
    Is("\"1 us\""),
    "setup time per submission, before its first block (t_init)",
    "\"500 ns\"",
);
pub(crate) const DOORBELL: Key = key(
    "doorbell",
    Time("0 s", "1 s"),
    Is("0"),
    "time from a submission until the card sees it",
    "\"200 ns\"",
);
pub(crate) const QUEUE: Key =
    key("queue", Whole(Unit::None, 1, 65_536), Is("1000"), "maximum queue length in submissions", "512");
pub(crate) const WRITE_BUFFER: Key = key(
    "write_buffer",
    Whole(Unit::None, 0, 65_536),
    Is("0"),
    "completed submissions that can wait for the bus while the card computes the next",
    "2",
);
pub(crate) const PREFETCH: Key = key(
    "prefetch",
    Whole(Unit::None, 0, 65_536),
    Is("0"),
    "submissions that the card prefetches while it computes",
    "2",
);
pub(crate) const BUS: Key = key("bus", Text, Means("the first"), "name of the card's bus", "\"pci0\"");

const KEYS: &[Key] = &[
    INIT,
    key("block", Time("1 ps", "1 ms"), Is("\"440 ns\""), "time per block of 16 bytes (t_block)", "\"40 ns\""),
    DOORBELL,
    QUEUE,
    WRITE_BUFFER,
    PREFETCH,
    key(
        "suites",
        Either("proposals", TEXTS),
        Means("all of its library"),
        "proposals that the card supports",
        "[\"aes128gcm16\", \"aes128-sha256\"]",
    ),
    BUS,
];

/// An emulated card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedCard {
    /// Its figures; its name is given when it is opened.
    pub card: CardConfig,
    /// The bus that it is plugged into, by its position.
    pub bus: usize,
}

fn read(values: &dyn Values) -> Option<Arc<dyn Device>> {
    let (init, block, doorbell) = (values.time("init"), values.time("block"), values.time("doorbell"));
    let (write_buffer, prefetch) = (values.count("write_buffer"), values.count("prefetch"));
    let (queue, suites, bus) = (values.count("queue"), values.suites("suites"), values.bus("bus"));
    let card = CardConfig {
        name: WORD.to_owned(),
        init: init?,
        block: block?,
        doorbell: doorbell?,
        queue: queue?,
        write_buffer: write_buffer?,
        prefetch: prefetch?,
        suites: suites?,
    };
    Some(Arc::new(EmulatedCard { card, bus: bus? }))
}

fn sample() -> Arc<dyn Device> {
    let card = CardConfig { name: WORD.to_owned(), ..CardConfig::paper_230_mbit() };
    Arc::new(EmulatedCard { card, bus: 0 })
}

/// `KEY=VALUE+...`, with the keys of a `[[processor]]` that are times.
fn detailed(words: &str) -> Option<Arc<dyn Device>> {
    let mut card = CardConfig { name: WORD.to_owned(), ..CardConfig::paper_230_mbit() };
    for pair in words.split('+') {
        let (name, value) = pair.split_once('=')?;
        let Time(least, most) = KEYS.iter().find(|key| key.name == name)?.takes else { return None };
        let time = |text| Decimal::parse_quantity(text, Unit::Time).ok()?.scaled(12).map(Duration);
        let value = time(value).filter(|value| time(least) <= Some(*value) && Some(*value) <= time(most))?;
        match name {
            "init" => card.init = value,
            "block" => card.block = value,
            "doorbell" => card.doorbell = value,
            _ => return None,
        }
    }
    Some(Arc::new(EmulatedCard { card, bus: 0 }))
}

/// A time in TOML, exactly.
pub(crate) fn exact(time: Duration) -> String {
    let (scale, unit) = [(1_000_000, "us"), (1_000, "ns"), (1, "ps")]
        .into_iter()
        .find(|(scale, _)| time.0.is_multiple_of(*scale))
        .unwrap_or((1, "ps"));
    format!("\"{} {unit}\"", time.0 / scale)
}

impl Device for EmulatedCard {
    fn word(&self) -> &'static str {
        WORD
    }

    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let Surroundings { name, library, buses } = surroundings;
        let bus = buses.get(self.bus).ok_or_else(|| miette!("{name}: no such bus"))?;
        let config = CardConfig { name: name.to_owned(), ..self.card.clone() };
        Ok(Box::new(Card::new(config, bus, library)))
    }

    fn suites(&self) -> Option<Vec<Suite>> {
        self.card.suites.clone()
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let CardConfig { init, block, doorbell, .. } = self.card;
        vec![("init", exact(init)), ("block", exact(block)), ("doorbell", exact(doorbell))]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Device) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

/// Opens a device that has the papers' bus to itself, and AWS-LC to compute by.
///
/// # Errors
/// Those of [`Device::open`].
#[cfg(feature = "libraries")]
pub fn open_alone(device: &dyn Device, name: &str) -> miette::Result<Box<dyn Processor>> {
    let buses = [forebay_crypto_card::Bus::new(forebay_crypto_card::BusConfig::pci_66())];
    let library = Box::new(forebay_crypto_aws_lc::AwsLc::new());
    device.open(Surroundings { name, library, buses: &buses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_gives_the_times_of_a_card_and_a_file_says_them_again() {
        let keys = |words: &str| detailed(words).map(|device| device.keys());
        let written = |words: &str| {
            keys(words).map(|keys| {
                keys.into_iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>()
            })
        };
        let expected = ["init = \"1500 ns\"", "block = \"40 ns\"", "doorbell = \"0 us\""];
        assert_eq!(written("init=1.5us+block=40 ns").unwrap(), expected);
        assert_eq!(written("doorbell=7ps").unwrap()[2], "doorbell = \"7 ps\"");
        for wrong in ["", "2", "init", "init=", "init=2s", "block=0", "queue=3", "blocks=1us", "init=1us+"] {
            assert!(keys(wrong).is_none(), "{wrong}");
        }
    }
}
