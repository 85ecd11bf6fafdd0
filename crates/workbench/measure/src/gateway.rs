//! A gateway of its own program and file between a generator and a sink on this machine, by every kind of link.
//!
//! ```text
//!        near                        gateway                         far
//!   +------------+   veth   +------------------------+   veth   +-----------+
//!   | 10.2.0.10  |----------| lan 10.2.0.1           |----------| 192.0.2.1 |
//!   | eth0       |          |      wan 192.0.2.2     |          | eth0      |
//!   +------------+          +------------------------+          +-----------+
//! ```
//!
//! Outbound, `near` sends as fast as it can and `far` counts what arrives; inbound the other way round. The generator has a CPU
//! of its own, with all that the kernel does until a packet is at the gateway's link; the gateway has another one, with all
//! that the kernel does behind that link. The sink drops what arrives at once, because its Ethernet address is another one.
//!
//! Beside a gateway, a relay is measured: the links of the same file with nothing between them, and the same rules of the guard;
//! and the kernel's own forwarding. All take turns, each with namespaces of its own, and medians of the rounds are reported.
//!
//! The caller is in network and mount namespaces of its own, as root of them: see [`measure`].
#![allow(clippy::disallowed_methods)] // processes and packets are waited for

mod bed;
mod file;
mod packets;
mod traffic;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use forebay_crypto::{Direction, Suite};
use forebay_ipsec::Encapsulation;
use forebay_loadgen::median::median;
use miette::miette;
use serde::Serialize;

use crate::Error;
use bed::Bed;
pub use packets::Front;
use traffic::Case;

/// Between two looks at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long it is looked what others have of the CPUs.
const BUSY_OVER: Duration = Duration::from_millis(500);
/// Lengths of plain packets: from an IPv4 and a UDP header with a few bytes to what fits an Ethernet with ESP around it.
const SIZES: std::ops::RangeInclusive<usize> = 32..=1400;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program, whose `gateway --config FILE` is a gateway and whose `bench relay --config FILE` is a relay.
    pub program: PathBuf,
    /// Kinds of links, such as `tun+udp`, and `kernel`.
    pub links: Vec<String>,
    /// Cipher suites, in swanctl notation.
    pub proposals: Vec<String>,
    /// The directions.
    pub directions: Vec<Direction>,
    /// Lengths of the plain IP packets, in bytes.
    pub sizes: Vec<usize>,
    /// Numbers of UDP flows, which take turns packet by packet.
    pub flows: Vec<usize>,
    /// More keys of the gateways' file, such as `[offloads]` and `[[processor]]`.
    pub keys: String,
    /// The generator's CPU, and those of the gateway.
    pub cpus: Vec<usize>,
    /// Measuring time per figure and round, in seconds.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
}

/// What was measured, as it is written to JSON.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Version of this layout.
    pub schema: u32,
    /// The machine.
    pub host: String,
    /// Share of its CPUs' time that others had before the first measurement.
    pub busy_before: f64,
    /// The generator's CPU.
    pub generator_cpu: usize,
    /// The gateway's CPUs.
    pub gateway_cpus: Vec<usize>,
    /// Measuring time per figure and round, in seconds.
    pub seconds: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// The figures.
    pub results: Vec<Line>,
    /// What could not be measured, or not in every round.
    pub missing: Vec<Missing>,
}

/// One forwarder under one kind of traffic.
#[derive(Debug, Serialize)]
pub struct Line {
    /// `tun+udp` and so on; `kernel` for the kernel's forwarding.
    pub link: String,
    /// The gateway's cipher suite, `relay`, or `kernel`.
    pub forwarder: String,
    /// `out` or `in`.
    pub direction: &'static str,
    /// Length of the plain IP packets, in bytes.
    pub size: usize,
    /// Number of UDP flows.
    pub flows: usize,
    /// What the generator sends by.
    pub generator: &'static str,
    /// Packets per second that the generator sent.
    pub offered_per_s: Spread,
    /// Packets per second that came to the sink.
    pub packets_per_s: Spread,
    /// CPU time of the forwarder's threads for each of them, in microseconds; the kernel's own forwarding has no threads.
    pub cpu_us_per_packet: Option<Spread>,
}

/// Share of what is offered from which on it counts as all of it: packets are on their way when counts are read.
const ALL: f64 = 0.97;

impl Line {
    /// Whether everything that was offered arrived, so that the generator is what is measured.
    pub fn is_offered_too_little(&self) -> bool {
        self.packets_per_s.median >= ALL * self.offered_per_s.median
    }
}

/// A figure of several rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// The median of the rounds.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl Spread {
    fn of(values: Vec<f64>) -> Spread {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Spread { median: median(values), lowest, highest }
    }
}

/// A forwarder that cannot be had here.
#[derive(Debug, Serialize)]
pub struct Missing {
    /// Its link.
    pub link: String,
    /// Its cipher suite, `relay`, or `kernel`.
    pub forwarder: String,
    /// Why.
    pub why: String,
}

/// Settings that were looked at.
#[derive(Debug)]
pub struct Plan {
    settings: Settings,
    turns: Vec<Turn>,
    cases: Vec<Case>,
}

/// A forwarder, which is measured in turn with the others.
#[derive(Clone, Debug)]
struct Turn {
    link: String,
    forwarder: Forwarder,
}

#[derive(Clone, Debug)]
enum Forwarder {
    Gateway(Suite, Kinds),
    Relay(Kinds),
    Kernel,
}

/// Both kinds of a gateway's links.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    inside: Kind,
    outside: Kind,
}

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tun,
    Udp,
    Raw,
    Xdp,
    XdpGeneric,
    Dpdk,
}

impl Kinds {
    fn parse(word: &str) -> Option<Kinds> {
        let (inside, outside) = word.split_once('+')?;
        let both = |word| match word {
            "xdp" => Some(Kind::Xdp),
            "xdp-generic" => Some(Kind::XdpGeneric),
            "dpdk" => Some(Kind::Dpdk),
            _ => None,
        };
        let inside = if inside == "tun" { Kind::Tun } else { both(inside)? };
        let outside = match outside {
            "udp" => Kind::Udp,
            "raw" => Kind::Raw,
            word => both(word)?,
        };
        Some(Kinds { inside, outside })
    }

    /// What is around ESP.
    fn encapsulation(self) -> Encapsulation {
        if self.outside == Kind::Raw { Encapsulation::None } else { Encapsulation::Udp }
    }
}

impl Forwarder {
    fn name(&self) -> String {
        match self {
            Forwarder::Gateway(suite, _) => suite.to_string(),
            Forwarder::Relay(_) => "relay".to_owned(),
            Forwarder::Kernel => "kernel".to_owned(),
        }
    }
}

impl Plan {
    /// Looks at the settings; nothing is started yet.
    ///
    /// # Errors
    /// If one is out of range.
    pub fn new(settings: Settings) -> Result<Plan, Error> {
        let suites: Vec<Suite> =
            settings.proposals.iter().map(|one| one.parse()).collect::<Result<_, _>>()?;
        let mut turns = Vec::new();
        for link in &settings.links {
            let turn = |forwarder| Turn { link: link.clone(), forwarder };
            if link == "kernel" {
                turns.push(turn(Forwarder::Kernel));
                continue;
            }
            let Some(kinds) = Kinds::parse(link) else {
                return Err(Error::Setting {
                    message: format!("link {link}: unknown kinds of links"),
                    hint: "write INSIDE+OUTSIDE with tun, xdp, xdp-generic or dpdk inside and udp, raw, xdp, xdp-generic or dpdk outside; or kernel".to_owned(),
                });
            };
            turns.extend(suites.iter().map(|&suite| turn(Forwarder::Gateway(suite, kinds))));
            turns.push(turn(Forwarder::Relay(kinds)));
        }
        if let Some(size) = settings.sizes.iter().find(|size| !SIZES.contains(*size)) {
            return Err(Error::range("size", size, "32 to 1400 bytes"));
        }
        if let Some(flows) = settings.flows.iter().find(|flows| !(1..=4096).contains(*flows)) {
            return Err(Error::range("flows", flows, "1 to 4096"));
        }
        if !(0.05..=60.0).contains(&settings.seconds) {
            return Err(Error::range("seconds", settings.seconds, "0.05 to 60"));
        }
        if !(1..=99).contains(&settings.rounds) {
            return Err(Error::range("rounds", settings.rounds, "1 to 99"));
        }
        if settings.cpus.is_empty() {
            return Err(Error::range("cpus", "", "the generator's, and those of the gateway"));
        }
        let mut cases = Vec::new();
        for &direction in &settings.directions {
            for &size in &settings.sizes {
                cases.extend(settings.flows.iter().map(|&flows| Case { direction, size, flows }));
            }
        }
        Ok(Plan { settings, turns, cases })
    }

    /// The CPUs of the gateway: the generator's where it has none of its own.
    fn gateway_cpus(&self) -> &[usize] {
        match &self.settings.cpus[..] {
            [_, gateway @ ..] if !gateway.is_empty() => gateway,
            cpus => cpus,
        }
    }
}

/// The figures of a forwarder, by case and round.
type Figures = Vec<Vec<traffic::Figure>>;

/// Measures everything in turn. `watch` is called every few milliseconds with how many figures there are and how many there
/// will be, and returns whether to go on.
///
/// The caller is in network and mount namespaces of its own (`unshare --mount --net`) and root in them. Over /run, which the rest
/// of the process no longer sees, this mounts a file system in memory for all that it writes. The processes that it starts
/// end with it.
///
/// # Errors
/// If a tool is missing or namespaces cannot be made; [`Error::Cancelled`] if `watch` stops the work. A forwarder that cannot be had is
/// no error.
pub fn measure(
    plan: &Plan,
    host: &str,
    mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Document, Error> {
    bed::prepare()?;
    let before = cpu_times();
    wait_for(BUSY_OVER, &mut || watch(0, 0), || Ok(false))?;
    let busy_before = before.zip(cpu_times()).map_or(0.0, |(before, after)| {
        after.0.saturating_sub(before.0) as f64 / after.1.saturating_sub(before.1).max(1) as f64
    });
    let Settings { seconds, rounds, .. } = plan.settings;
    let total = (rounds * plan.turns.len() * plan.cases.len()) as u64;
    let mut done = 0;
    let mut figures: Vec<Figures> = vec![vec![vec![]; plan.cases.len()]; plan.turns.len()];
    let mut failures: Vec<Option<String>> = vec![None; plan.turns.len()];
    for _ in 0..rounds {
        for ((turn, figures), failure) in plan.turns.iter().zip(&mut figures).zip(&mut failures) {
            let first = done;
            let all = plan.cases.len() as u64;
            if failure.is_none() {
                let mut go_on = |done: u64| watch(first + done, total);
                match measure_turn(plan, turn, figures, &mut go_on) {
                    Err(Error::Cancelled) => return Err(Error::Cancelled),
                    Err(error) => *failure = Some(words(&error)),
                    Ok(()) => {}
                }
            }
            done = first + all;
        }
    }
    let mut results = Vec::new();
    let mut missing = Vec::new();
    for ((turn, figures), failure) in plan.turns.iter().zip(figures).zip(failures) {
        let (link, forwarder) = (turn.link.clone(), turn.forwarder.name());
        if let Some(why) = failure {
            missing.push(Missing { link: link.clone(), forwarder: forwarder.clone(), why });
        }
        // What was measured before it failed stays.
        let measured = plan.cases.iter().zip(figures).filter(|(_, figures)| !figures.is_empty());
        results.extend(measured.map(|(case, figures)| {
            let spread = |of: fn(&traffic::Figure) -> f64| Spread::of(figures.iter().map(of).collect());
            let has_threads = figures.iter().all(|one| one.cpu_us_per_packet.is_some());
            Line {
                link: link.clone(),
                forwarder: forwarder.clone(),
                direction: if case.direction == Direction::Seal { "out" } else { "in" },
                size: case.size,
                flows: case.flows,
                generator: figures.first().map_or("", |one| one.generator),
                offered_per_s: spread(|one| one.offered_per_s),
                packets_per_s: spread(|one| one.packets_per_s),
                cpu_us_per_packet: has_threads.then(|| spread(|one| one.cpu_us_per_packet.unwrap_or(0.0))),
            }
        }));
    }
    Ok(Document {
        schema: 1,
        host: host.to_owned(),
        busy_before,
        generator_cpu: plan.settings.cpus[0],
        gateway_cpus: plan.gateway_cpus().to_vec(),
        seconds,
        rounds,
        results,
        missing,
    })
}

fn measure_turn(
    plan: &Plan,
    turn: &Turn,
    figures: &mut Figures,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut bed = Bed::make(plan, &turn.forwarder, &mut || watch(0))?;
    for (done, (case, figures)) in plan.cases.iter().zip(figures).enumerate() {
        let found = traffic::measure(plan, &turn.forwarder, *case, &mut bed, &mut || watch(done as u64));
        figures.push(found.map_err(|error| match error {
            Error::Cancelled => Error::Cancelled,
            error => {
                let direction = if case.direction == Direction::Seal { "outbound" } else { "inbound" };
                miette!("{direction}, {} bytes: {}", case.size, words(&error)).into()
            }
        })?);
    }
    Ok(())
}

/// Times of all CPUs since the machine was started, busy and in all (proc_stat(5)).
fn cpu_times() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Option<Vec<u64>> =
        text.lines().next()?.split_whitespace().skip(1).take(8).map(|field| field.parse().ok()).collect();
    let (fields, all) = (fields.as_ref()?, fields.as_ref()?.iter().sum::<u64>());
    Some((all - fields.get(3)? - fields.get(4)?, all))
}

/// An error in one line.
fn words(error: &Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits for what `is_there` finds, and says whether it came within `limit`; `watch` may end it.
fn wait_for(
    limit: Duration,
    watch: &mut dyn FnMut() -> ControlFlow<()>,
    mut is_there: impl FnMut() -> Result<bool, Error>,
) -> Result<bool, Error> {
    let begin = std::time::Instant::now();
    loop {
        if is_there()? {
            return Ok(true);
        }
        if watch().is_break() {
            return Err(Error::Cancelled);
        }
        let left = limit.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}
