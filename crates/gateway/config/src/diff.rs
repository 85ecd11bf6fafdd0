//! The changes between two versions of a configuration, as a running gateway applies them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use forebay_crypto::Direction;
use forebay_ipsec::{Action, Rule, SaConfig, Spi};
use forebay_time::Duration;

use super::{Config, KeySource, Keys};
use forebay_sas::{Peer, PolicyEntry, SaEntry, SasFile};

/// A value as the file gives it, or its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The section: `[inside]`, or with the number of the table, from 1, `[[outside]] 2`; empty at the top.
    pub section: String,
    /// The key.
    pub key: &'static str,
    /// The value as TOML.
    pub value: String,
}

/// A setting that is another now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its section.
    pub section: String,
    /// Its key.
    pub key: &'static str,
    /// Its value in the running gateway, if it has one.
    pub old: Option<String>,
    /// Its value in the file, if it has one.
    pub new: Option<String>,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{} {}: {} -> {}", self.section, self.key, value(&self.old), value(&self.new))
    }
}

/// What is different in a new version of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// For each SA of the new version the place that it had in the old one, if nothing about it changed: it goes
    /// on with its counters. The others are to be added.
    pub kept: Vec<Option<usize>>,
    /// The places in the old version of the SAs that are to be removed.
    pub removed: Vec<usize>,
    /// The places in the new version of SAs that are kept, and whose peer's host name has another address.
    pub moved: Vec<usize>,
    /// Whether the policies, or what they refer to, changed: all are to be put anew.
    pub policies: bool,
    /// Processors, by place, whose alpha or beta changed.
    pub biases: Vec<(usize, f64, Duration)>,
    /// Whether the log changed.
    pub log: bool,
    /// Whether the captures changed.
    pub taps: bool,
    /// Whether the metrics' address changed.
    pub metrics: bool,
    /// Whether the export of keys changed.
    pub esp_sa_export: bool,
    /// What takes effect only after a restart.
    pub restart: Vec<Changed>,
}

/// Keys that take effect at once; of `""` as key all of the section.
pub const LIVE: &[(&str, &str)] = &[
    ("", "esp_sa_export"),
    ("log", ""),
    ("taps", ""),
    ("metrics", ""),
    ("page", ""),
    ("guard", ""),
    ("offloads", ""),
    ("processor", "alpha"),
    ("processor", "beta"),
    ("keys", "sas"),
    ("keys", "manual_keying"),
];

impl Changes {
    /// Those of a gateway that starts.
    pub fn all(new: &Config) -> Changes {
        Changes {
            kept: vec![None; new.sas.entries.len()],
            removed: vec![],
            moved: vec![],
            policies: true,
            biases: vec![],
            log: true,
            taps: true,
            metrics: true,
            esp_sa_export: true,
            restart: vec![],
        }
    }

    /// Those of the file `new`, all of which waits for a restart of a gateway that runs by `running`.
    pub fn none(running: &Config, new: &Config) -> Changes {
        Changes { restart: changed(running, new, &|_| true), ..Config::diff(running, running) }
    }
}

impl Config {
    /// What `new` changes in a gateway that runs by `old`.
    pub fn diff(old: &Config, new: &Config) -> Changes {
        let kept = kept(&old.sas, &new.sas);
        let removed = (0..old.sas.entries.len()).filter(|place| !kept.contains(&Some(*place))).collect();
        let remote = |file: &SasFile, place: usize| file.entries.get(place).map(|entry| entry.config.remote);
        let is_moved = |&(place, kept): &(usize, &Option<usize>)| {
            kept.is_some_and(|before| remote(&old.sas, before) != remote(&new.sas, place))
        };
        let moved = kept.iter().enumerate().filter(is_moved).map(|(place, _)| place).collect();
        let policies = !same_policies(&old.sas.policies, &new.sas.policies, &kept);
        let bias = |(place, (old, new)): (usize, (&super::Processor, &super::Processor))| {
            let changed = old.alpha != new.alpha || old.beta != new.beta;
            changed.then_some((place, new.alpha, new.beta))
        };
        let biases = if old.processors.len() == new.processors.len() {
            old.processors.iter().zip(&new.processors).enumerate().filter_map(bias).collect()
        } else {
            vec![]
        };
        Changes {
            kept,
            removed,
            moved,
            policies,
            biases,
            log: old.log != new.log,
            taps: old.taps != new.taps,
            metrics: old.metrics != new.metrics,
            esp_sa_export: old.esp_sa_export != new.esp_sa_export,
            restart: restart(old, new),
        }
    }
}

/// What names an SA to its peers: outbound the SPI is the peer's.
type Name = (Direction, Spi, Option<Peer>);

fn name(entry: &SaEntry) -> Name {
    let peer = (entry.direction == Direction::Seal).then(|| entry.peer());
    (entry.direction, entry.config.spi, peer)
}

/// Whether nothing is different but the address of a peer's host name.
fn is_same(old: &SaEntry, new: &SaEntry) -> bool {
    if old.config.remote == new.config.remote || old.peer() != new.peer() {
        return old.config == new.config && old.keys == new.keys;
    }
    let config = SaConfig { remote: old.config.remote, ..new.config.clone() };
    old.config == config && old.keys == new.keys
}

/// The place in `old` of each SA of `new` that is the same.
fn kept(old_file: &SasFile, new_file: &SasFile) -> Vec<Option<usize>> {
    let (old, new) = (&old_file.entries, &new_file.entries);
    let by_name: HashMap<Name, usize> =
        old.iter().enumerate().map(|(place, entry)| (name(entry), place)).collect();
    let outbound: HashSet<_> = match old.iter().any(|entry| entry.remote_name.is_some()) {
        true => old.iter().map(|one| (one.direction, one.config.spi, one.config.remote)).collect(),
        false => HashSet::new(),
    };
    let same = |entry: &SaEntry| {
        let place = *by_name.get(&name(entry))?;
        // Two peers may have changed places, and each has the SPI of the other.
        let place_of = |one: &SaEntry| (one.direction, one.config.spi, one.config.remote);
        let is_free = || !outbound.contains(&place_of(entry));
        let moves = entry.config.remote != old[place].config.remote && entry.direction == Direction::Seal;
        (is_same(&old[place], entry) && (!moves || is_free())).then_some(place)
    };
    let mut kept: Vec<Option<usize>> = new.iter().map(same).collect();
    in_order(&new_file.policies, &old_file.policies, new, &mut kept);
    // An SA whose outer one is another now, or is added anew, is added anew; so are those inside of it.
    loop {
        let moved = (0..new.len()).find(|&at| {
            kept[at].is_some_and(|place| match (new[at].outer, old[place].outer) {
                (None, None) => false,
                (Some(outer), Some(before)) => kept[outer] != Some(before),
                _ => true,
            })
        });
        match moved {
            Some(at) => {
                kept[at] = None;
                in_order(&new_file.policies, &old_file.policies, new, &mut kept);
            }
            None => return kept,
        }
    }
}

/// Lets the selectors of outbound SAs, where these are the policies, be asked in the order of the file: an SA that is added goes behind all
/// that are there, so those that are behind it in the file and have packets in common with it are added anew, too.
fn in_order(policies: &[PolicyEntry], before: &[PolicyEntry], new: &[SaEntry], kept: &mut [Option<usize>]) {
    let decides =
        |policies: &[PolicyEntry]| policies.iter().any(|one| one.policy.direction == Direction::Seal);
    if decides(policies) {
        return;
    }
    // One that is bound to a CPU only ever stands in for another.
    let asked = |entry: &SaEntry| entry.direction == Direction::Seal && entry.config.cpu.is_none();
    let places: Vec<usize> = (0..new.len()).filter(|&place| asked(&new[place])).collect();
    if decides(before) {
        places.iter().for_each(|&place| kept[place] = None);
    }
    let of = |place: usize| kept[place].map_or(usize::MAX, |old| old);
    if places.windows(2).all(|two| of(two[0]) <= of(two[1])) {
        return;
    }
    let rule = |place: &usize| {
        let config = &new[*place].config;
        Rule::new(&config.local_ts, &config.remote_ts, config.dscp)
    };
    let rules: Vec<Rule> = places.iter().map(rule).collect();
    for (at, &place) in places.iter().enumerate() {
        let Some(old) = kept[place] else { continue };
        let is_behind = |&(earlier, &other): &(usize, &usize)| {
            kept[other].is_none_or(|other| other > old) && rules[earlier].meets(&rules[at])
        };
        if places[..at].iter().enumerate().any(|one| is_behind(&one)) {
            kept[place] = None;
        }
    }
}

/// Whether the policies are the same, in the same order, with the same SAs.
fn same_policies(old: &[PolicyEntry], new: &[PolicyEntry], kept: &[Option<usize>]) -> bool {
    let same = |(old, new): (&PolicyEntry, &PolicyEntry)| {
        let mut moved = new.policy.clone();
        if let (Action::Protect(old), Action::Protect(new)) = (&old.policy.action, &mut moved.action) {
            let place = |session: &forebay_crypto::SessionId| kept.get(session.0 as usize).copied().flatten();
            if !new.iter().map(place).eq(old.iter().map(|session| Some(session.0 as usize))) {
                return false;
            }
            new.clone_from(old);
        }
        moved == old.policy
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

/// Sections that the process goes by, and not its data plane, and keys of others.
const OF_PROCESS: &[(&str, &str)] = &[
    ("pair", ""),
    ("cluster", ""),
    ("control", ""),
    ("privileges", ""),
    ("keys", "source"),
    ("keys", "state"),
];

impl Config {
    /// What a gateway whose data plane runs by `running` goes by once it has read this file, and what of the file waits for a
    /// restart: of that it has what `running` has, so that rules and routes of the host stay those of the data plane, and the next
    /// reload says again what waits. SAs wait, too, if their source is another.
    #[must_use]
    pub fn until_restart(self, running: &Config) -> (Config, Vec<Changed>) {
        let waiting = restart(running, &self);
        if waiting.is_empty() {
            return (self, waiting);
        }
        let settings = until_restart(running, &self, &is_live);
        let mut processors = running.processors.clone();
        if processors.len() == self.processors.len() {
            for (one, new) in processors.iter_mut().zip(&self.processors) {
                (one.alpha, one.beta) = (new.alpha, new.beta);
            }
        }
        let config = Config {
            inside: running.inside.clone(),
            outside: running.outside.clone(),
            keys: Keys { iv_reserve: running.keys.iv_reserve, ..self.keys.clone() },
            processors,
            buses: running.buses.clone(),
            scheduler: running.scheduler.clone(),
            limits: running.limits.clone(),
            ..self
        };
        (Config { settings, ..config.with_process_of(running) }, waiting)
    }

    /// Whether the SAs of both come from files, or those of both from the kernel.
    pub fn has_source_of(&self, other: &Config) -> bool {
        std::mem::discriminant(&self.keys.source) == std::mem::discriminant(&other.keys.source)
    }

    /// The same where no data plane runs: the next one starts with all but what the process goes by.
    #[must_use]
    pub fn until_process_restarts(self, running: &Config) -> (Config, Vec<Changed>) {
        let is_of_process = |setting: &Setting| is_one_of(OF_PROCESS, setting);
        let of = |one: &Changed| Setting { section: one.section.clone(), key: one.key, value: String::new() };
        let waiting: Vec<Changed> =
            restart(running, &self).into_iter().filter(|one| is_of_process(&of(one))).collect();
        if waiting.is_empty() {
            return (self, waiting);
        }
        let settings = until_restart(running, &self, &|setting| !is_of_process(setting));
        (Config { settings, ..self.with_process_of(running) }, waiting)
    }

    /// With what the process goes by as `running` has it.
    fn with_process_of(self, running: &Config) -> Config {
        let sources = (&running.keys.source, &self.keys.source);
        let is_other = !matches!(sources, (KeySource::Static { .. }, KeySource::Static { .. }));
        let keys = Keys { state: running.keys.state.clone(), ..self.keys.clone() };
        let mut config = Config {
            keys,
            pair: running.pair.clone(),
            cluster: running.cluster.clone(),
            control: running.control.clone(),
            privileges: running.privileges.clone(),
            ..self
        };
        if is_other {
            let before = running.copy();
            (config.keys, config.sas) = (before.keys, before.sas);
            (config.whole, config.names) = (before.whole, before.names);
        }
        config
    }
}

/// The settings of `new` that `is_live` says, and the others of `running`.
fn until_restart(running: &Config, new: &Config, is_live: &dyn Fn(&Setting) -> bool) -> Vec<Setting> {
    let kept = running.settings.iter().filter(|setting| !is_live(setting));
    kept.chain(new.settings.iter().filter(|setting| is_live(setting))).cloned().collect()
}

/// The name of the section of a setting.
fn section(setting: &Setting) -> &str {
    setting.section.trim_start_matches('[').split(']').next().unwrap_or_default()
}

fn is_one_of(keys: &[(&str, &str)], setting: &Setting) -> bool {
    keys.iter().any(|&(of, key)| of == section(setting) && (key.is_empty() || key == setting.key))
}

fn is_live(setting: &Setting) -> bool {
    is_one_of(LIVE, setting)
}

/// The settings that are different, where that means something, and that take a restart.
fn restart(old: &Config, new: &Config) -> Vec<Changed> {
    let means = |section: &str| match section {
        "inside" => old.inside != new.inside,
        "outside" => old.outside != new.outside,
        "keys" => old.keys != new.keys,
        "processor" => old.processors != new.processors,
        "bus" => old.buses != new.buses,
        "scheduler" | "class" => old.scheduler != new.scheduler,
        "limits" => old.limits != new.limits,
        "pair" => old.pair != new.pair,
        "cluster" => old.cluster != new.cluster,
        "control" => old.control != new.control,
        "privileges" => old.privileges != new.privileges,
        _ => false,
    };
    changed(old, new, &|setting| means(section(setting)) && !is_live(setting))
}

/// The settings that are different, of those that `counts` says.
fn changed(old: &Config, new: &Config, counts: &dyn Fn(&Setting) -> bool) -> Vec<Changed> {
    let value = |settings: &[Setting], wanted: &Setting| {
        let found = settings.iter().find(|one| one.section == wanted.section && one.key == wanted.key);
        found.map(|setting| setting.value.clone())
    };
    let gone = old.settings.iter().filter(|setting| value(&new.settings, setting).is_none());
    let all = new.settings.iter().chain(gone);
    all.filter(|setting| counts(setting))
        .map(|setting| Changed {
            section: setting.section.clone(),
            key: setting.key,
            old: value(&old.settings, setting),
            new: value(&new.settings, setting),
        })
        .filter(|changed| changed.old != changed.new)
        .collect()
}
