//! The gateway configuration: links, keys, processors, scheduler, limits and operation in one TOML file.
//!
//! [`load`] and [`parse`] report every error in one run, each with file, line, what was found, what was expected and
//! a hint. `[[sa]]` and `[[policy]]` are those of the [SAs file](forebay_sas); all other keys are in [`schema`],
//! from which the reference (`docs/reference/gateway.md`) is made. Only files are read: whether interfaces, kernel and processors
//! support a configuration is the service's business.
//!
//! ```
//! let text = r#"
//! [[outside]]
//! kind = "raw"
//! [[sa]]
//! name = "east"
//! direction = "out"
//! spi = 0x1001
//! proposal = "aes128gcm16"
//! key = "000102030405060708090a0b0c0d0e0f10111213"
//! local = "192.0.2.1"
//! remote = "192.0.2.2"
//! remote_ts = ["10.2.0.0/16"]
//! "#;
//! let config = forebay_config::parse(text, "gateway.toml", "/etc/forebay".as_ref())?;
//! assert_eq!(config.routes()[0].to_string(), "10.2.0.0/16");
//!
//! let errors = forebay_config::parse(&text.replace("spi", "spy"), "gateway.toml", "/etc/forebay".as_ref()).unwrap_err();
//! assert_eq!((errors.findings()[0].line(), errors.findings().len()), (Some(4), 2)); // `spi` is missing, `spy` unknown
//! # Ok::<(), forebay_sas::SasErrors>(())
//! ```

mod clashes;
mod diff;
mod ends;
mod guard;
mod idle;
mod ike;
mod in_vain;
mod keys;
mod links;
mod manual_keys;
mod offloads;
mod operation;
mod peer_names;
mod per_cpu;
mod ports;
mod processors;
mod reader;
#[cfg(test)]
mod reference;
mod routes;
mod scheduling;
pub mod schema;
mod workers;
mod written;

use std::cell::RefCell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use forebay_diagnostics::{Findings, Located, Place, Problem};
use forebay_sas as sas;
use forebay_sas::{Finding, Findings as FileFindings, SaEntry, SasErrors, SasFile, mask};
use forebay_scenario::{Table, Value, tree};
use toml::de::DeTable;

pub use diff::{Changed, Changes, LIVE, Setting};
pub use keys::{KeySource, Keys, Mark, Xfrm};
pub use links::{
    Blackhole, Inside, InsideLink, MssClamp, Outside, OutsideLink, Raw, Routes, Tun, Udp, Xdp, XdpMode,
};
pub use offloads::Offloads;
pub use operation::{
    Cluster, ClusterAddress, Control, Guard, GuardMode, Level, Listen, LivePage, LockMemory, Log, Metrics,
    Pair, Privileges, ShareBy, SharedAddress, Taps,
};
pub use peer_names::PeerName;
pub use ports::NetworkDevice;
pub use processors::{Bus, Processor, ProcessorKind};
pub use routes::prefixes;
pub use scheduling::{Limits, Scheduler};
pub use workers::deal;

use reader::{Context, Reader};

/// Where the system keeps state of its services.
pub const SYSTEM_DIRECTORY: &str = "/var/lib/forebay";

/// Files of a state directory, which nothing else may be written over: those of this version, and of earlier ones.
pub const STATE_FILES: [&str; 18] = [
    "records.log",
    "manifest.json",
    "accepted.json",
    "lock",
    "manifest.lock",
    "gateway.lock",
    "records.tmp",
    "manifest.tmp",
    "accepted.tmp",
    "together.json",
    "peer-ivs.json",
    "floor.json",
    "sequences.json",
    "retired-sequences.txt",
    "windows.log",
    "lifetimes.json",
    "pair.json",
    "cluster.json",
];

/// What a gateway's file says.
#[derive(Debug)]
pub struct Config {
    /// The side that programs see.
    pub inside: Inside,
    /// The links to peers, one at least.
    pub outside: Vec<Outside>,
    /// Where SAs and policies come from.
    pub keys: Keys,
    /// SAs and policies; none where they come from the kernel.
    pub sas: SasFile,
    /// What the guard drops and what is discarded without a route, where `sas` is a part of the file only
    /// ([`Config::of_shares`]).
    whole: Option<(Vec<forebay_guard::Entry>, Vec<ipnet::IpNet>)>,
    /// The host names of peers and their addresses, once they are resolved ([`Config::with_addresses`]).
    pub names: Vec<PeerName>,
    /// The processors; the first is the core that runs the loop.
    pub processors: Vec<Processor>,
    /// The buses of emulated cards.
    pub buses: Vec<Bus>,
    /// How packets find their processors.
    pub scheduler: Scheduler,
    /// Every limit.
    pub limits: Limits,
    /// The rules of the host.
    pub guard: Guard,
    /// The offloads of its interfaces.
    pub offloads: Offloads,
    /// The gateway that stands by, or for which this one does.
    pub pair: Option<Pair>,
    /// The gateways that this one shares its SAs with.
    pub cluster: Option<Cluster>,
    /// The control socket.
    pub control: Control,
    /// Figures for Prometheus, if they are wanted.
    pub metrics: Option<Metrics>,
    /// The live page, if it is wanted.
    pub page: Option<LivePage>,
    /// What is logged.
    pub log: Log,
    /// What the process may do.
    pub privileges: Privileges,
    /// Captures, if they are wanted.
    pub taps: Option<Taps>,
    /// Where the keys of all SAs are written for Wireshark; `None`: nowhere.
    pub esp_sa_export: Option<PathBuf>,
    /// Every setting but SAs and policies, defaults filled in, in the order of the reader.
    pub settings: Vec<Setting>,
    /// What should be looked at but hinders nothing.
    pub warnings: Vec<Finding>,
}

/// Reads the file at `path`; what it names is relative to its directory.
///
/// # Errors
/// Everything that is wrong with it, and with the file of SAs that it names.
pub fn load(path: &Path) -> Result<Config, SasErrors> {
    let name = path.display().to_string();
    let text = sas::read_text(path).map_err(|problem| sas::of_file(&name, of_gateway(problem)))?;
    let directory = path.parent().map(PathBuf::from).unwrap_or_default();
    let mut notes = FileFindings::beside(schema::OTHER_KEYS);
    sas::report_exposed(path, &text, &mut notes);
    read(&text, &name, &directory, notes)
}

/// Reads a file from `text`, calling it `name` in errors; what it names is relative to `directory`.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Config, SasErrors> {
    read(text, name, directory, FileFindings::beside(schema::OTHER_KEYS))
}

fn read(text: &str, name: &str, directory: &Path, mut notes: FileFindings) -> Result<Config, SasErrors> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let document = document.get_ref();
    for error in &errors {
        let problem = sas::Problem::Syntax { message: mask::shown(error.message()) };
        notes.add(of_gateway(problem), error.span().unwrap_or(0..0), "");
    }
    // What was recovered from a broken text would only bring errors that are none.
    if !errors.is_empty() {
        return Err(notes.finish(name, text).expect_err("a broken text has an error"));
    }
    let context = Context {
        directory,
        findings: RefCell::new(Findings::default()),
        notes: RefCell::new(notes),
        settings: RefCell::default(),
    };
    // The tree omits keys, which only their own reader copies.
    let top = tree::of(document, 0, |key| !sas::is_table(key));
    let mut parts = sections(&top, &context);
    let source = parts.as_ref().map(|config| config.keys.source.clone());
    let mut other = None;
    let sas = match &source {
        Some(KeySource::Xfrm(_)) => {
            none_wanted(document, "`source` is \"xfrm\": SAs and policies come from the kernel", &context);
            None
        }
        Some(KeySource::Static { sas: Some(path), .. }) => {
            none_wanted(document, "`sas` names another file for SAs and policies", &context);
            other = Some(sas::load_for_gateway(path));
            None
        }
        // If `[keys]` could not be read, what is wrong with SAs is said all the same.
        Some(KeySource::Static { sas: None, .. }) | None => {
            let files = sas::KeyFiles::In(directory.to_owned());
            let mut notes = context.notes.borrow_mut();
            if source.is_some() || document.keys().any(|key| sas::is_table(key.get_ref())) {
                Some(sas::read_tables(document, text, &files, &mut notes))
            } else {
                None
            }
        }
    };
    if let (Some(config), Some((entries, policies))) = (&mut parts, sas) {
        config.sas = SasFile { entries, policies, warnings: vec![] };
    }
    let other = match (other, &mut parts) {
        (Some(Ok(file)), Some(config)) => {
            config.sas = file;
            None
        }
        (other, _) => other.and_then(Result::err),
    };
    if let Some(config) = &parts {
        check_together(config, &top, text, &context);
        written::check(config, name, &top, &context);
        idle::note(config, &top, &context);
    }
    let Context { findings, notes, settings, .. } = context;
    let mut notes = notes.into_inner();
    for Located { problem, place } in findings.into_inner().into_problems() {
        notes.add(sas::Problem::Setting(masked(problem)), place.span, "");
    }
    let warnings = match (notes.finish(name, text), other) {
        (Ok(warnings), None) => warnings,
        (Ok(_), Some(other)) => return Err(other),
        (Err(errors), None) => return Err(errors),
        (Err(errors), Some(other)) => return Err(errors.and(other)),
    };
    let Some(mut config) = parts else {
        // Never: but a reader that says nothing must not end a gateway that runs.
        let message = "internal error: a value was rejected without a reason".to_owned();
        let problem = Problem::Conflict { message, help: "please report this file".to_owned() };
        return Err(sas::of_file(name, sas::Problem::Setting(problem)));
    };
    let of_sas = std::mem::take(&mut config.sas.warnings);
    config.settings = settings.into_inner();
    config.warnings = warnings.into_iter().chain(of_sas).collect();
    Ok(config)
}

/// Everything but SAs and policies.
fn sections(top: &Table, context: &Context<'_>) -> Option<Config> {
    let first = Reader::new("", top, whole(), context).checked();
    let esp_sa_export = first.path("esp_sa_export");
    let inside = links::inside(top, context);
    let outside = links::outside(top, context);
    let privileges = operation::privileges(top, context);
    let keys = keys::read(top, context);
    let buses = processors::buses(top, context);
    let processors = processors::read(top, buses.as_deref(), context);
    let limits = scheduling::limits(top, context);
    let scheduler = scheduling::read(top, processors.as_deref(), limits.as_ref(), context);
    let guard = operation::guard(top, context);
    let offloads = offloads::read(top, context);
    let pair = operation::pair(top, context);
    let cluster = operation::cluster(top, context);
    let control = operation::control(top, context);
    let metrics = operation::metrics(top, context);
    let page = operation::page(top, control.as_ref(), context);
    let log = operation::log(top, context);
    let taps = operation::taps(top, context);
    let mut keys = keys?;
    let privileges = privileges?;
    if privileges.user.is_some() {
        // Not that of the user who starts it.
        keys.state.get_or_insert_with(|| PathBuf::from(SYSTEM_DIRECTORY));
    }
    Some(Config {
        inside: inside?,
        outside: outside?,
        keys,
        sas: SasFile { entries: vec![], policies: vec![], warnings: vec![] },
        whole: None,
        names: vec![],
        processors: processors?,
        buses: buses?,
        scheduler: scheduler?,
        limits: limits?,
        guard: guard?,
        offloads: offloads?,
        pair: pair?,
        cluster: cluster?,
        control: control?,
        metrics: metrics?,
        page: page?,
        log: log?,
        privileges,
        taps: taps?,
        esp_sa_export,
        settings: vec![],
        warnings: vec![],
    })
}

impl Config {
    /// The addresses that this gateway may have in place of another one of its pair or cluster.
    pub fn shared_addresses(&self) -> impl Iterator<Item = &SharedAddress> {
        let pair = self.pair.iter().flat_map(|pair| &pair.addresses);
        pair.chain(self.cluster.iter().flat_map(|cluster| &cluster.addresses).map(|one| &one.shared))
    }

    /// A copy of the file. Warnings are left out.
    #[must_use]
    pub fn copy(&self) -> Config {
        self.of_shares(&vec![true; self.sas.entries.len()])
    }

    /// A copy of the file with the SAs that `keeps` says, by their places: what a gateway of a cluster serves. What is guarded and
    /// discarded stays all that the file protects. Warnings are left out.
    #[must_use]
    pub fn of_shares(&self, keeps: &[bool]) -> Config {
        Config {
            inside: self.inside.clone(),
            outside: self.outside.clone(),
            keys: self.keys.clone(),
            sas: self.sas.with(keeps),
            whole: Some((self.guard_entries(), self.discarded())),
            names: self.names.clone(),
            processors: self.processors.clone(),
            buses: self.buses.clone(),
            scheduler: self.scheduler.clone(),
            limits: self.limits.clone(),
            guard: self.guard.clone(),
            offloads: self.offloads.clone(),
            pair: self.pair.clone(),
            cluster: self.cluster.clone(),
            control: self.control.clone(),
            metrics: self.metrics.clone(),
            page: self.page.clone(),
            log: self.log.clone(),
            privileges: self.privileges.clone(),
            taps: self.taps.clone(),
            esp_sa_export: self.esp_sa_export.clone(),
            settings: self.settings.clone(),
            warnings: vec![],
        }
    }
}

/// Reports tables of SAs and policies where there should be none.
fn none_wanted(document: &DeTable<'_>, why: &str, context: &Context<'_>) {
    for key in document.keys().filter(|key| sas::is_table(key.get_ref())) {
        let message = format!("`[[{}]]` conflicts with the configured source", key.get_ref());
        let problem = Problem::Conflict { message, help: format!("{why}; remove one of the two") };
        context.findings.borrow_mut().add(problem, Place { source: 0, span: key.span() });
    }
}

/// What is right by itself but not together.
fn check_together(config: &Config, top: &Table, text: &str, context: &Context<'_>) {
    let report = |message: String, help: String, (section, key): (&str, &str)| {
        let place = place_of_key(top, section, key).unwrap_or_else(whole);
        context.findings.borrow_mut().add(Problem::Conflict { message, help }, place);
    };
    let limits = &config.limits;
    if config.sas.entries.len() > limits.sas {
        let help = "raise `sas` in `[limits]`".to_owned();
        report(
            format!("{} SAs exceed the limit of {}", config.sas.entries.len(), limits.sas),
            help,
            ("limits", "sas"),
        );
    }
    if config.sas.policies.len() > limits.policies {
        let help = "raise `policies` in `[limits]`".to_owned();
        let message =
            format!("{} policies exceed the limit of {}", config.sas.policies.len(), limits.policies);
        report(message, help, ("limits", "policies"));
    }
    if let InsideLink::Tun(tun) = &config.inside.link
        && usize::from(tun.mtu) + HEADERS > limits.engine.packet_capacity
    {
        let (mtu, size) = (tun.mtu, limits.engine.packet_capacity);
        let help = format!("set `packet_size` in `[limits]` to at least {}", usize::from(mtu) + HEADERS);
        report(
            format!("packets of {mtu} bytes (the MTU) do not fit buffers of {size} bytes once protected"),
            help,
            ("inside", "mtu"),
        );
    }
    if config.pair.is_some() && matches!(config.keys.source, KeySource::Xfrm(_)) {
        let help =
            "set `source = \"static\"`: what an IKE daemon negotiates is not shared between gateways yet";
        report("a pair whose SAs come from the kernel".to_owned(), help.to_owned(), ("keys", "source"));
    }
    if config.cluster.is_some() && matches!(config.keys.source, KeySource::Xfrm(_)) {
        let help = "set `source = \"static\"`: what an IKE daemon negotiates is not shared between gateways";
        report("a cluster whose SAs come from the kernel".to_owned(), help.to_owned(), ("keys", "source"));
    }
    if config.cluster.is_some() && config.pair.is_some() {
        let help = "remove one of the two: a cluster of two gateways needs no pair";
        report("a gateway of a pair and of a cluster".to_owned(), help.to_owned(), ("cluster", "name"));
    }
    workers::check(config, context);
    per_cpu::check(config, text, context);
    check_carried(config, text, context);
    ends::check(config, text, context);
    in_vain::check(config, top, text, context);
    ike::check(config, report);
    clashes::check(config, report);
    manual_keys::check(config, text, context);
    peer_names::check(config, text, context);
    routes::check(config, top, context);
    guard::check(config, context);
    offloads::check(config, report);
}

/// The place of a key of a section that is there once.
fn place_of_key(top: &Table, section: &str, key: &str) -> Option<Place> {
    match top.get(section).map(|node| &node.value) {
        Some(Value::Table(table)) => table.get(key).map(|node| node.place.clone()),
        _ => None,
    }
}

/// What protection may add to a packet: IPv6, UDP, ESP with IV, padding and ICV, and room for a nested SA.
const HEADERS: usize = 256;

/// Notes SAs that no link carries.
fn check_carried(config: &Config, text: &str, context: &Context<'_>) {
    use forebay_ipsec::{Encapsulation, Protocol};
    // What goes into another SA is not on the wire, and what goes around it is looked at itself.
    for entry in config.sas.entries.iter().filter(|entry| entry.outer.is_none()) {
        let wanted = (entry.config.protocol, entry.config.encapsulation);
        let carries = |link: &&Outside| match (&link.link, wanted) {
            (OutsideLink::Xdp { .. } | OutsideLink::Dpdk { .. }, _) => true,
            (OutsideLink::Udp(_), (_, encapsulation)) => encapsulation == Encapsulation::Udp,
            (OutsideLink::Raw(_), (_, Encapsulation::Udp)) => false,
            (OutsideLink::Raw(raw), (protocol, _)) => raw.protocols.contains(&protocol),
        };
        let local = entry.config.local;
        let is_at = |at: IpAddr| at == local || at.is_unspecified() && at.is_ipv4() == local.is_ipv4();
        let reaches = |link: &Outside| match &link.link {
            OutsideLink::Xdp { .. } => true,
            OutsideLink::Udp(udp) => udp.listen.iter().any(|at| is_at(at.ip())),
            OutsideLink::Raw(raw) => raw.addresses.iter().any(|at| is_at(*at)),
            OutsideLink::Dpdk { device, .. } => device.addresses.iter().any(|own| own.addr() == local),
        };
        let links: Vec<_> = config.outside.iter().filter(carries).collect();
        if let ([first, ..], false) = (&links[..], links.iter().any(|link| reaches(link))) {
            let version = if local.is_ipv4() { "IPv4" } else { "IPv6" };
            let message = format!(
                "SA `{}` has packets of {local}, which no link does ({version})",
                mask::shown(&entry.config.name)
            );
            let (key, all) = match (&first.link, local.is_ipv4()) {
                (OutsideLink::Udp(_), true) => ("listen", "\"0.0.0.0:4500\""),
                (OutsideLink::Udp(_), false) => ("listen", "\"[::]:4500\""),
                (_, true) => ("addresses", "[\"0.0.0.0\"]"),
                (_, false) => ("addresses", "[\"::\"]"),
            };
            let help = match &first.link {
                OutsideLink::Dpdk { .. } => {
                    format!("add {local} with the length of its network to `addresses` of the link")
                }
                _ => format!(
                    "remove `{key}` of the link, so that it has all addresses, or add a link with {key} = {all}"
                ),
            };
            context.advise(message, &help, &place_of_sa(config, text, entry));
        }
        if links.is_empty() {
            let what = match wanted {
                (Protocol::Ah, _) => "AH",
                (_, Encapsulation::Udp) => "ESP in UDP",
                (_, Encapsulation::None) => "ESP without UDP encapsulation",
            };
            let help = match wanted.1 {
                Encapsulation::Udp => "add `[[outside]]` of kind `udp`, or encapsulation = \"none\"",
                Encapsulation::None => "add `[[outside]]` of kind `raw`, or encapsulation = \"udp\" for ESP",
            };
            let message =
                format!("no link carries {what}, which SA `{}` requires", mask::shown(&entry.config.name));
            context.advise(message, help, &place_of_sa(config, text, entry));
        }
    }
}

/// The line where an SA begins. One of another file has no place in this one.
fn place_of_sa(config: &Config, text: &str, entry: &SaEntry) -> Place {
    let inside = matches!(config.keys.source, KeySource::Static { sas: None, .. });
    if inside { place_of_line(text, entry.line) } else { whole() }
}

/// The line with this number, from 1.
fn place_of_line(text: &str, line: usize) -> Place {
    let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let len = text.get(start..).and_then(|rest| rest.lines().next()).map_or(0, str::len);
    Place { source: 0, span: start..start + len }
}

/// Reports a name that is there already.
fn unique(what: &str, name: &str, names: &mut Vec<String>, section: &Reader<'_>) {
    if names.iter().any(|known| known == name) {
        let message = format!("the name `{}` of this {what} is already in use", mask::shown(name));
        section.conflict("name", message, "choose a unique name");
    }
    names.push(name.to_owned());
}

/// No place of its own: the file.
fn whole() -> Place {
    Place { source: 0, span: 0..0 }
}

/// The problem with the words for a gateway's file.
fn of_gateway(problem: sas::Problem) -> sas::Problem {
    let message = problem.to_string();
    let (message, help) = match problem {
        sas::Problem::Unreadable(error) => (
            format!("cannot read the file: {error}"),
            "check the path: `--config` takes a gateway configuration (TOML)",
        ),
        sas::Problem::TooLong { .. } => (message, "check that this is a gateway configuration"),
        sas::Problem::NotUtf8 { .. } => {
            (message, "check that this is a gateway configuration; TOML is UTF-8 text")
        }
        sas::Problem::Syntax { .. } => (
            message,
            "write sections such as `[inside]` and `[[sa]]`, and lines such as `mtu = 1400`, `name = \"east\"`",
        ),
        other => return other,
    };
    sas::Problem::Setting(Problem::Conflict { message, help: help.to_owned() })
}

/// The problem with what it quotes of the file made harmless.
fn masked(problem: Problem) -> Problem {
    match problem {
        Problem::UnknownWord { key, found, expected } => {
            Problem::UnknownWord { key, found: mask::shown(&found), expected }
        }
        Problem::BadQuantity { key, found, expected } => {
            Problem::BadQuantity { key, found: mask::shown(&found), expected }
        }
        other => other,
    }
}
