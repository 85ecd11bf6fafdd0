//! `[bus]` and `[[processor]]`.

use std::num::{NonZeroU32, NonZeroU64};

use forebay_scheduler::{Cost, Kind, ProcessorConfig};
use forebay_station::{BusConfig, Speed};
use forebay_time::{Duration, PS_PER_S};
use serde_json::{Map, Value as Json};

use super::decimal::{Decimal, Unit};
use super::section::Section;
use super::traffic::Suites;
use super::{Answers, Bus, Feed, MAX_PROCESSORS, PARTS, Processor, energy, known, real, seconds, tables};

/// The papers' bus: PCI, 66 MHz, 4 bytes wide, one address cycle.
const CLOCK: u64 = 66_000_000;
const WIDTH: u64 = 4;
const ADDRESS_CYCLES: u64 = 1;
/// docs/models.md, "What a claim is": not printed in the papers.
const INIT: Duration = Duration::from_micros(1);
/// \[H\] Table 1.
const BLOCK: Duration = Duration::from_nanos(440);
const QUEUE: u64 = 1_000;

pub(super) fn buses(top: &Section<'_>, resolved: &mut Map<String, Json>) -> Vec<Bus> {
    let tables = tables(top, "bus");
    let several = tables.len() > 1;
    let mut maps = Vec::new();
    let mut buses: Vec<Bus> = Vec::new();
    for (number, (table, place)) in tables.into_iter().enumerate() {
        let section = Section::new(table, "[bus]".to_owned(), place, &known(PARTS, "bus"), top.findings());
        if several && !section.has("name") {
            section.missing("name", "name = \"pci0\"");
        }
        let name = section.text("name").map_or_else(|| format!("bus{number}"), str::to_owned);
        if buses.iter().any(|bus| bus.name == name) {
            section.conflict("name", format!("there is a bus `{name}` already"), "give it another name");
        }
        let (config, mut map) = bus(&section, several.then_some(&name));
        let energy_per_byte_j = energy::of_bus(&section, &mut map);
        maps.push(map.into());
        buses.push(Bus { name, config, energy_per_byte_j });
    }
    if buses.is_empty() && !top.has("bus") {
        let speed = pci(CLOCK, WIDTH, ADDRESS_CYCLES);
        let config = BusConfig { speed, full_duplex: false };
        buses.push(Bus { name: "bus0".to_owned(), config, energy_per_byte_j: None });
        maps.push(pci_map(CLOCK, WIDTH, ADDRESS_CYCLES).into());
    }
    let value = if several { Json::Array(maps) } else { maps.pop().unwrap_or_default() };
    resolved.insert("bus".to_owned(), value);
    buses
}

fn bus(section: &Section<'_>, name: Option<&String>) -> (BusConfig, Map<String, Json>) {
    let full_duplex = section.flag("full_duplex").unwrap_or(false);
    let parallel = ["clock", "width", "address_cycles"];
    let (speed, mut map) = if section.has("bandwidth") {
        for key in parallel.into_iter().filter(|key| section.has(key)) {
            let message = format!("`{key}` means nothing for a bus with `bandwidth`");
            section.conflict(key, message, "a bus has a clock, or a bandwidth");
        }
        let rate = section.whole("bandwidth", Unit::Rate, 1, u64::MAX).unwrap_or(1);
        let overhead = section.time("transfer_overhead").unwrap_or(Duration::ZERO);
        let map = Map::from_iter([
            ("bandwidth".to_owned(), rate.into()),
            ("transfer_overhead".to_owned(), seconds(overhead)),
        ]);
        (Speed::Rate { rate: NonZeroU64::new(rate).unwrap_or(NonZeroU64::MIN), overhead }, map)
    } else {
        if section.has("transfer_overhead") {
            let message = "`transfer_overhead` means nothing for a bus with a clock";
            section.conflict("transfer_overhead", message, "that is what `address_cycles` is for");
        }
        let clock = section.whole("clock", Unit::Frequency, 1, u64::MAX).unwrap_or(CLOCK);
        let width = section.whole("width", Unit::Bytes, 1, 1 << 20).unwrap_or(WIDTH);
        let cycles =
            section.whole("address_cycles", Unit::None, 0, u32::MAX.into()).unwrap_or(ADDRESS_CYCLES);
        (pci(clock, width, cycles), pci_map(clock, width, cycles))
    };
    if full_duplex {
        map.insert("full_duplex".to_owned(), true.into());
    }
    if let Some(name) = name {
        map.insert("name".to_owned(), name.as_str().into());
    }
    (BusConfig { speed, full_duplex }, map)
}

fn pci(clock: u64, width: u64, address_cycles: u64) -> Speed {
    Speed::Cycles {
        clock: NonZeroU64::new(clock).unwrap_or(NonZeroU64::MIN),
        width: NonZeroU32::new(width as u32).unwrap_or(NonZeroU32::MIN),
        address_cycles: address_cycles as u32,
    }
}

fn pci_map(clock: u64, width: u64, address_cycles: u64) -> Map<String, Json> {
    Map::from_iter([
        ("clock".to_owned(), clock.into()),
        ("width".to_owned(), width.into()),
        ("address_cycles".to_owned(), address_cycles.into()),
    ])
}

/// An entry's times, exact where they were given so.
#[derive(Clone, Copy)]
struct Times {
    init: Duration,
    block: Duration,
}

pub(super) fn read(
    top: &Section<'_>,
    buses: &[Bus],
    suites: &mut Suites,
    notes: &mut Vec<String>,
    resolved: &mut Map<String, Json>,
) -> Vec<Processor> {
    let tables = tables(top, "processor");
    if tables.is_empty() {
        top.missing("processor", "[[processor]]");
    }
    let used = suites.words().len();
    let known = known(PARTS, "processor");
    let sections: Vec<Section<'_>> = tables
        .into_iter()
        .map(|(table, place)| {
            let name = "this [[processor]]".to_owned();
            Section::new(table, name, place, &known, top.findings())
        })
        .collect();
    // Ratios are against the first accelerator, wherever it stands.
    let kinds: Vec<Option<Kind>> = sections.iter().map(kind).collect();
    let first = kinds.iter().position(|kind| *kind == Some(Kind::Accelerator));
    let exact = first.map(|at| reference(&sections[at]));
    let mut processors: Vec<Processor> = Vec::new();
    let mut maps = Vec::new();
    let polls = super::scheduler::polls(top);
    let mut can = 0u64;
    for (at, section) in sections.iter().enumerate() {
        let Some(kind) = kinds[at] else { continue };
        let word = if kind == Kind::Cpu { "cpu" } else { "accelerator" };
        let name = section.text("name").unwrap_or(if kind == Kind::Cpu { "cpu" } else { "card" });
        let count = section.whole("count", Unit::None, 1, MAX_PROCESSORS as u64).unwrap_or(1) as usize;
        let reference = exact.filter(|_| first != Some(at));
        let wrong = Times { init: INIT, block: BLOCK };
        let times = times(section, name, kind, reference, notes).unwrap_or(wrong);
        let mut map = Map::from_iter([
            ("name".to_owned(), name.into()),
            ("kind".to_owned(), word.into()),
            ("count".to_owned(), count.into()),
            ("init".to_owned(), seconds(times.init)),
            ("block".to_owned(), seconds(times.block)),
        ]);
        let mask = mask(section, used, suites, &mut map);
        can |= mask;
        let mut processor = one(section, kind, times, mask, buses, &mut map);
        real::costs(section, &mut processor, &mut map);
        real::moves(section, &mut processor, count, polls, &mut map);
        processor.power = energy::of_processor(section, &mut map);
        for number in 0..count {
            let name = if count == 1 { name.to_owned() } else { format!("{name}.{number}") };
            if processors.iter().any(|known| known.name == name) {
                section.conflict(
                    "name",
                    format!("there is a processor `{name}` already"),
                    "give it another name",
                );
            }
            processors.push(Processor { name, ..processor.clone() });
        }
        maps.push(map.into());
    }
    // A bus that the file does not have is none that it says anything of.
    for (number, bus) in buses.iter().enumerate().filter(|_| top.has("bus") && !processors.is_empty()) {
        if processors.iter().all(|one| one.bus != Some(number)) {
            notes.push(format!("[bus] `{}` has no effect: no accelerator is on it", bus.name));
        }
    }
    if processors.len() > MAX_PROCESSORS {
        let message = format!("{} processors are too many", processors.len());
        top.conflict("processor", message, format!("at most {MAX_PROCESSORS}"));
    }
    if kinds.iter().all(Option::is_some) && !processors.is_empty() {
        for (bit, word) in suites.words().iter().enumerate().take(used.min(64)) {
            if can & 1 << bit == 0 {
                let help = "add it to the `suites` of one, or take it out of the traffic's";
                top.conflict("processor", format!("no processor can do suite `{word}`"), help);
            }
        }
    }
    resolved.insert("processor".to_owned(), Json::Array(maps));
    processors
}

fn kind(section: &Section<'_>) -> Option<Kind> {
    if !section.has("kind") {
        section.missing("kind", "kind = \"accelerator\"");
    }
    Some(match section.word("kind", &["cpu", "accelerator"])? {
        "cpu" => Kind::Cpu,
        _ => Kind::Accelerator,
    })
}

/// The exact times of the first accelerator, for ratios; what is wrong with them is said elsewhere.
fn reference(section: &Section<'_>) -> (Decimal, Decimal) {
    let exact = |key, default: &str| {
        let node = section.node(key).map(|node| &node.value);
        let read = match node {
            Some(super::Value::Number(digits)) => Decimal::parse(digits),
            Some(super::Value::Text(text)) => Decimal::parse_quantity(text, Unit::Time).ok(),
            _ => None,
        };
        read.or_else(|| Decimal::parse(default)).expect("the default is a number")
    };
    (exact("init", "1e-6"), exact("block", "440e-9"))
}

fn times(
    section: &Section<'_>,
    name: &str,
    kind: Kind,
    reference: Option<(Decimal, Decimal)>,
    notes: &mut Vec<String>,
) -> Option<Times> {
    for (given, ratio) in [("init", "init_ratio"), ("block", "block_ratio"), ("block", "throughput")] {
        if section.has(given) && section.has(ratio) {
            let help = "one of them says it all";
            section.conflict(ratio, format!("both `{given}` and `{ratio}` are given"), help);
        }
    }
    let scaled = |key: &str, of: fn((Decimal, Decimal)) -> Decimal| {
        let ratio = section.positive(key, Unit::None)?;
        let Some(reference) = reference else {
            let help = "ratios are against the first accelerator, which has to have times of its own";
            section.conflict(key, "there is no accelerator to compare with", help);
            return None;
        };
        let product = of(reference).times(ratio).and_then(|product| product.scaled(12));
        if product.is_none() {
            section.conflict(key, "this ratio makes too long a time", "give the time itself");
        }
        product.map(Duration)
    };
    let init = if section.has("init") {
        section.time("init")?
    } else if section.has("init_ratio") {
        scaled("init_ratio", |reference| reference.0)?
    } else if section.has("block_ratio")
        && let Some(reference) = reference
    {
        reference.0.scaled(12).map(Duration)?
    } else {
        notes.push(format!("t_init of `{name}` is not given: {INIT} (the papers do not print it)"));
        INIT
    };
    if section.has("throughput_size") && !section.has("throughput") {
        let message = "`throughput_size` means nothing without `throughput`";
        section.conflict("throughput_size", message, "add `throughput`, or take it away");
    }
    let block = if section.has("block") {
        section.time("block")?
    } else if section.has("block_ratio") {
        scaled("block_ratio", |reference| reference.1)?
    } else if section.has("throughput") {
        of_throughput(section, init)?
    } else if section.has("init_ratio")
        && let Some(reference) = reference
    {
        reference.1.scaled(12).map(Duration)?
    } else if kind == Kind::Accelerator {
        notes.push(format!("t_block of `{name}` is not given: {BLOCK} (Table 1 of the papers)"));
        BLOCK
    } else {
        section.missing("block", "block = \"920 ns\"");
        return None;
    };
    Some(Times { init, block })
}

/// The t_block with which packets of a size pass at a throughput.
fn of_throughput(section: &Section<'_>, init: Duration) -> Option<Duration> {
    if !section.has("throughput_size") {
        section.missing("throughput_size", "throughput_size = 640");
    }
    let size = section.whole("throughput_size", Unit::Bytes, 1, 1 << 30)?;
    let (bits, seconds) = section.positive("throughput", Unit::Rate)?.as_fraction()?;
    let (bits, seconds) = (u128::from(bits), u128::from(seconds));
    let whole = 8 * u128::from(size) * u128::from(PS_PER_S) * seconds;
    let Some(left) = whole.checked_sub(u128::from(init.0) * bits) else {
        let message = format!("at this throughput {size} bytes take less than t_init, {init}");
        section.conflict("throughput", message, "give a smaller `init`, or a larger `throughput_size`");
        return None;
    };
    let divisor = bits * u128::from(size.div_ceil(16));
    u64::try_from((2 * left + divisor) / (2 * divisor)).ok().map(Duration)
}

/// The suites that an entry can do.
fn mask(section: &Section<'_>, used: usize, suites: &mut Suites, map: &mut Map<String, Json>) -> u64 {
    let Some(words) = section.texts("suites") else { return u64::MAX };
    let bits = words.iter().filter_map(|word| suites.bit(word)).fold(0u64, |mask, bit| mask | 1 << bit);
    let wanted = if used >= 64 { u64::MAX } else { (1 << used) - 1 };
    if bits & wanted == 0 {
        let message = "no packet can use this processor: none has a suite of its";
        let help = format!("the traffic has {}", suites.words()[..used].join(", "));
        section.conflict("suites", message, help);
    }
    map.insert("suites".to_owned(), words.into());
    bits
}

fn one(
    section: &Section<'_>,
    kind: Kind,
    times: Times,
    suites: u64,
    buses: &[Bus],
    map: &mut Map<String, Json>,
) -> Processor {
    let alpha = match section.decimal("alpha", Unit::None) {
        Some(alpha) if !(1.0..9_007_199_254_740_992.0).contains(&alpha.as_f64()) => {
            let message = format!("`alpha` is {}", alpha.as_f64());
            section.conflict("alpha", message, "alpha is at least 1 and below 2^53");
            1.0
        }
        alpha => alpha.map_or(1.0, Decimal::as_f64),
    };
    let beta = section.time("beta").unwrap_or(Duration::ZERO);
    let queue = section.whole("queue", Unit::None, 1, u32::MAX.into()).unwrap_or(QUEUE) as usize;
    map.insert("alpha".to_owned(), alpha.into());
    map.insert("beta".to_owned(), seconds(beta));
    map.insert("queue".to_owned(), queue.into());
    let others = section.decimal("others", Unit::None).map_or(0.0, Decimal::as_f64);
    if !(0.0..=1.0).contains(&others) {
        section.conflict("others", format!("`others` is {others}"), "a share of time: 0 to 1");
    }
    if section.has("others") {
        map.insert("others".to_owned(), others.into());
    }
    let (mut bus, mut write_buffer, mut prefetch) = (None, 0, 0);
    if kind == Kind::Cpu {
        for key in ["write_buffer", "prefetch", "bus"].into_iter().filter(|key| section.has(key)) {
            section.conflict(key, format!("a CPU has no `{key}`"), "take it away, or make it an accelerator");
        }
    } else {
        if section.has("others") {
            section.conflict("others", "an accelerator has no `others`", "only a CPU does other work");
        }
        let places = |key| section.whole(key, Unit::None, 0, 1 << 20).unwrap_or(0) as usize;
        (write_buffer, prefetch) = (places("write_buffer"), places("prefetch"));
        map.insert("write_buffer".to_owned(), write_buffer.into());
        map.insert("prefetch".to_owned(), prefetch.into());
        let names: Vec<&str> = buses.iter().map(|bus| bus.name.as_str()).collect();
        let name = section.word("bus", &names);
        bus = Some(names.iter().position(|known| Some(*known) == name).unwrap_or(0));
        if let Some(name) = name {
            map.insert("bus".to_owned(), name.into());
        }
    }
    let cost = Cost { init: times.init, block: times.block, ..Cost::default() };
    let config = ProcessorConfig { kind, alpha, beta, queue, suites, ..ProcessorConfig::cpu(cost) };
    let (answers, feed) = (Answers::default(), Feed::default());
    let (moves, power) = (None, None);
    Processor {
        name: String::new(),
        config,
        bus,
        write_buffer,
        prefetch,
        others,
        answers,
        feed,
        moves,
        power,
    }
}
