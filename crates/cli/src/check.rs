//! `forebay check`: what is wrong with a gateway's file.

mod host;
mod machine;

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_config::{self as config, Config, ProcessorKind};
use forebay_crypto::Suite;
use forebay_diagnostics::Plain;
use forebay_gateway::control::Token;
use forebay_gateway::service::{
    LacksDevice, find_ways, kernel_entries, lacks_guard, lacks_network_devices, lacks_offloads,
};
use forebay_guard::{Host, Plan};
use forebay_sas::Finding;
use forebay_state::IvStore;
use miette::{Context, Diagnostic, IntoDiagnostic, Severity};
use serde::Serialize;

use forebay_terminal::Answer;

/// Arguments of `forebay check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The gateway's configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print errors, warnings and settings as JSON.
    #[arg(long)]
    json: bool,
    /// Print the guard's rules for `nft -f -` instead. They follow from the policies of the file, or with
    /// `source = "xfrm"` from those of the kernel (requires CAP_NET_ADMIN).
    #[arg(long, conflicts_with = "json")]
    print_rules: bool,
    /// Do not look at this machine: its devices, kernel and settings. For the file of another machine.
    #[arg(long, conflicts_with = "print_rules")]
    offline: bool,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    file: String,
    ok: bool,
    errors: Vec<Entry>,
    /// Errors beyond those that are named.
    left_out: usize,
    warnings: Vec<Entry>,
    /// What the gateway will change on this machine, and what it cannot.
    advice: Vec<Entry>,
    /// Every setting but SAs and policies, with its default where the file has none; empty with errors.
    settings: Vec<Value>,
}

/// One thing that was found.
#[derive(Serialize)]
struct Entry {
    file: String,
    line: Option<usize>,
    message: String,
    help: String,
}

#[derive(Serialize)]
struct Value {
    section: String,
    key: &'static str,
    /// As TOML.
    value: String,
}

impl Entry {
    fn new(finding: &Finding) -> Entry {
        let Plain { file, line, message, hint: help, .. } = finding.plain();
        Entry { file, line, message, help }
    }

    fn all(findings: &[Finding]) -> Vec<Entry> {
        findings.iter().map(Entry::new).collect()
    }
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> miette::Result<Answer> {
    let file = args.config.display().to_string();
    match config::load(&args.config) {
        Ok(mut config) => {
            if args.print_rules {
                print_rules(&config)?;
                config.warnings.into_iter().for_each(show);
                return Ok(Answer::Yes);
            }
            let mut errors = never_working(&mut config);
            let Lacking { errors: lacking, warnings, advice } = lacking(&file, &config, args.offline);
            errors.extend(lacking);
            let answer = if errors.is_empty() { Answer::Yes } else { Answer::Broken };
            if args.json {
                let warnings = Entry::all(&config.warnings).into_iter().chain(warnings).collect();
                print(&Document {
                    schema: 1,
                    file,
                    ok: errors.is_empty(),
                    errors,
                    left_out: 0,
                    warnings,
                    advice,
                    settings: settings(&config),
                })?;
                return Ok(answer);
            }
            if errors.is_empty() {
                println!("{file}: {}", summary(&config));
            }
            let all = [(errors, Severity::Error), (warnings, Severity::Warning), (advice, Severity::Advice)];
            for (entries, severity) in all {
                for Entry { file, line, message, help } in entries {
                    let message = line.map_or(message.clone(), |line| format!("{file}:{line}: {message}"));
                    show(miette::diagnostic!(severity = severity, help = help, "{message}"));
                }
            }
            config.warnings.into_iter().for_each(show);
            Ok(answer)
        }
        Err(mut errors) => {
            if args.json {
                print(&Document {
                    schema: 1,
                    file,
                    ok: false,
                    errors: Entry::all(errors.findings()),
                    left_out: errors.left_out(),
                    warnings: Entry::all(errors.warnings()),
                    advice: vec![],
                    settings: vec![],
                })?;
                return Ok(Answer::Broken);
            }
            errors.take_warnings().into_iter().for_each(show);
            Err(errors.into())
        }
    }
}

/// Takes out of the warnings what can never work. A gateway starts with it, as the rest of its file is well.
fn never_working(config: &mut Config) -> Vec<Entry> {
    let warnings = std::mem::take(&mut config.warnings).into_iter();
    let (never, warnings): (Vec<_>, Vec<_>) = warnings.partition(|finding| finding.problem().never_works());
    config.warnings = warnings;
    Entry::all(&never)
}

/// What the file needs and this machine or build lacks.
struct Lacking {
    /// With these the gateway does not run as the file has it.
    errors: Vec<Entry>,
    warnings: Vec<Entry>,
    /// Where there is nothing to do.
    advice: Vec<Entry>,
}

/// `offline`: the machine is another one.
fn lacking(file: &str, config: &Config, offline: bool) -> Lacking {
    let mut found: Vec<(Severity, Entry)> = without_sas(file, config).collect();
    if !offline {
        let warnings = guard(file, config).into_iter().chain(library(file, config));
        found.extend(warnings.map(|entry| (Severity::Warning, entry)));
        found.extend(devices(file, config).chain(pair(file, config)).chain(cluster(file, config)));
        found.extend(network_devices(file, config));
        found.extend(tokens(file, config).chain(state(file, config)));
        found.extend(astray(file, config).map(|entry| (Severity::Advice, entry)));
        found.extend(offloads(file, config).map(|entry| (Severity::Advice, entry)));
        let root = Path::new("/");
        found.extend(machine::lacks(config, root).into_iter().chain(host::misses(config, root)).map(
            |machine::Lack { severity, message, help }| {
                (severity, Entry { file: file.to_owned(), line: None, message, help: help.to_owned() })
            },
        ));
    }
    let mut lacking = Lacking { errors: vec![], warnings: vec![], advice: vec![] };
    for (severity, entry) in found {
        match severity {
            Severity::Error => lacking.errors.push(entry),
            Severity::Warning => lacking.warnings.push(entry),
            Severity::Advice => lacking.advice.push(entry),
        }
    }
    lacking
}

/// An error if the key of a pair cannot be used.
fn pair(file: &str, config: &Config) -> Option<(Severity, Entry)> {
    let error = forebay_pair::Key::read(&config.pair.as_ref()?.key_file).err()?;
    let (message, help) = (error.to_string(), error.hint().to_owned());
    Some((Severity::Error, Entry { file: file.to_owned(), line: None, message, help }))
}

/// An error if the certificates or the key for etcd cannot be used, or SAs of different shares have one key.
fn cluster(file: &str, config: &Config) -> Option<(Severity, Entry)> {
    let error = forebay_cluster::check(config.cluster.as_ref()?, &config.sas).err()?;
    let help = error.help().map_or_else(String::new, |help| help.to_string());
    let entry = Entry { file: file.to_owned(), line: None, message: error.to_string(), help };
    Some((Severity::Error, entry))
}

/// An error for each token that cannot be used: the gateway then serves neither metrics nor the page. A warning if it is only
/// this user who may not read it, as one who is not the gateway's.
fn tokens<'a>(file: &'a str, config: &'a Config) -> impl Iterator<Item = (Severity, Entry)> + 'a {
    let metrics = config.metrics.as_ref().and_then(|metrics| metrics.token_file.as_deref());
    let page = config.page.as_ref().and_then(|page| page.token_file.as_deref());
    [("metrics", metrics), ("page", page)].into_iter().filter_map(move |(section, path)| {
        let error = Token::read(path?).err()?;
        let message = format!("`token_file` of [{section}]: {error}");
        let help = "write a token of 16 to 256 characters into the file, which the gateway's user can read and others cannot".to_owned();
        let is_denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        let severity = if is_denied { Severity::Warning } else { Severity::Error };
        Some((severity, Entry { file: file.to_owned(), line: None, message, help }))
    })
}

/// An error if others than the gateway can write to its state directory.
fn state(file: &str, config: &Config) -> Option<(Severity, Entry)> {
    let store = config.keys.state.clone().map(IvStore::new).or_else(|| crate::state::usual().ok())?;
    let error = store.exposed()?;
    let help = error.help().map_or_else(String::new, |help| help.to_string());
    Some((Severity::Error, Entry { file: file.to_owned(), line: None, message: error.to_string(), help }))
}

/// A warning for the first processor whose crypto library is lacking.
fn library(file: &str, config: &Config) -> Option<Entry> {
    let mut opened = vec![];
    config.processors.iter().find_map(|one| {
        if opened.contains(&one.backend) {
            return None;
        }
        opened.push(one.backend);
        let error = one.backend.open().err()?;
        Some(Entry {
            file: file.to_owned(),
            line: None,
            message: format!("processor `{}`: {error}", one.name),
            help: error.help().map_or_else(String::new, |help| help.to_string()),
        })
    })
}

/// What each device lacks on this machine or in this build, or what slows it down; a warning where it does not say that it is
/// an error.
fn devices<'a>(file: &'a str, config: &'a Config) -> impl Iterator<Item = (Severity, Entry)> + 'a {
    let mut said = vec![];
    config.processors.iter().filter_map(move |one| {
        let ProcessorKind::Device(device) = &one.kind else { return None };
        let slowed = device.slowed();
        let (report, about) = match device.lacks() {
            Some(error) => (error, format!("processor `{}`: ", one.name)),
            // The same of all devices of a kind.
            None => (slowed?, String::new()),
        };
        let message = format!("{about}{report}");
        if said.contains(&message) {
            return None;
        }
        said.push(message.clone());
        let help = report.help().map_or_else(String::new, |help| help.to_string());
        let severity = report.severity().unwrap_or(Severity::Warning);
        Some((severity, Entry { file: file.to_owned(), line: None, message, help }))
    })
}

/// What this machine or build lacks for links by DPDK.
fn network_devices(file: &str, config: &Config) -> Vec<(Severity, Entry)> {
    let lacks = lacks_network_devices(config).into_iter();
    let entry = |LacksDevice { is_error, message, help }| {
        let severity = if is_error { Severity::Error } else { Severity::Warning };
        (severity, Entry { file: file.to_owned(), line: None, message, help })
    };
    lacks.map(entry).collect()
}

/// An error for each device that supports the suite of no SA of the file, and so would never be given a job.
fn without_sas<'a>(file: &'a str, config: &'a Config) -> impl Iterator<Item = (Severity, Entry)> + 'a {
    let mut of_sas: Vec<Suite> = config.sas.entries.iter().map(|sa| sa.config.suite).collect();
    of_sas.sort();
    of_sas.dedup();
    config.processors.iter().filter_map(move |one| {
        let ProcessorKind::Device(device) = &one.kind else { return None };
        let suites = device.suites().filter(|_| !of_sas.is_empty())?;
        if suites.iter().any(|suite| of_sas.contains(suite)) {
            return None;
        }
        let proposals = |suites: &[Suite]| {
            let mut words: Vec<String> = suites.iter().take(8).map(|suite| format!("`{suite}`")).collect();
            words.extend(suites.is_empty().then(|| "none".to_owned()));
            words.extend((suites.len() > 8).then(|| format!("{} more", suites.len() - 8)));
            words.join(", ")
        };
        let message = format!(
            "processor `{}` supports the proposal of no SA (found {}); traffic goes on without it",
            one.name,
            proposals(&of_sas)
        );
        let help = format!(
            "give an SA a `proposal` that the device supports ({}), or take this `[[processor]]` out",
            proposals(&suites)
        );
        Some((Severity::Error, Entry { file: file.to_owned(), line: None, message, help }))
    })
}

/// What is said of offloads of interfaces that are not on, in a line for each thing to do.
fn offloads(file: &str, config: &Config) -> impl Iterator<Item = Entry> {
    let lacks = lacks_offloads(config);
    let (off, others): (Vec<_>, Vec<_>) = lacks.into_iter().partition(|(.., state)| *state == "off");
    let names = |all: &[(String, &str, &str)]| {
        let one = |(interface, offload, state): &(String, &str, &str)| {
            let why = if *state == "off" { String::new() } else { format!(" ({state})") };
            format!("{offload} of {interface}{why}")
        };
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let off = (!off.is_empty()).then(|| {
        (
            format!("the gateway will switch on offloads of interfaces: {}", names(&off)),
            "set mode = \"keep\" in `[offloads]` if they are to stay off",
        )
    });
    let others = (!others.is_empty()).then(|| {
        (
            format!("UDP packets do not pass in batches where these offloads are left: {}", names(&others)),
            "nothing can be done where the driver or the kernel lacks them; where `rx-gro` or `tx-generic-segmentation` is off: \
             ethtool -K INTERFACE gro on gso on",
        )
    });
    let file = file.to_owned();
    off.into_iter().chain(others).map(move |(message, help)| Entry {
        file: file.clone(),
        line: None,
        message,
        help: help.to_owned(),
    })
}

/// A warning where this machine makes no rules for the guard.
fn guard(file: &str, config: &Config) -> Option<Entry> {
    let error = lacks_guard(config)?;
    Some(Entry {
        file: file.to_owned(),
        line: None,
        message: format!("cannot install the guard's rules: {error}"),
        help: "load nf_tables (modprobe nf_tables nft_fib_inet); or set `mode` of `[guard]` to \"print\" and load \
               what `forebay check --print-rules` prints with another packet filter's means, or to \"off\""
            .to_owned(),
    })
}

/// The local networks that only the way to peers or the default route leads to on this machine.
fn astray(file: &str, config: &Config) -> Option<Entry> {
    let is_tun = matches!(config.inside.link, config::InsideLink::Tun(_));
    if !is_tun || config.guard.mode == config::GuardMode::Off {
        return None;
    }
    let (_, astray) = find_ways(config, &config.guard_entries());
    Some(Entry {
        file: file.to_owned(),
        line: None,
        message: format!(
            "as routes are now, decrypted packets to local networks would leave by the way to peers or the default route, and the \
             guard drops them: {}, {} in all",
            astray.first()?,
            astray.len()
        ),
        help: "bring up the interface of the network or add its route; if that interface is the right one, name it in \
               `local_interfaces` of `[guard]`"
            .to_owned(),
    })
}

/// The table of the guard as nft(8) reads it: in the place of what has its name.
fn print_rules(config: &Config) -> miette::Result<()> {
    let entries = match &config.keys.source {
        config::KeySource::Static { .. } => config.guard_entries(),
        config::KeySource::Xfrm(options) => kernel_entries(options)
            .into_diagnostic()
            .wrap_err("the kernel's policies (XFRM, CAP_NET_ADMIN)")?,
    };
    let host = Host { ways: Some(find_ways(config, &entries).0), ..config.guard_host() };
    let table = host.table(&Plan::of(&entries, &config.guard.except));
    let name = &table.name;
    print!("table inet {name} {{ }}\ndelete table inet {name}\n{table}");
    Ok(())
}

fn show(finding: impl Diagnostic + Send + Sync + 'static) {
    eprintln!("{:?}", miette::Report::new(finding));
}

fn settings(config: &Config) -> Vec<Value> {
    let settings = config.settings.iter().cloned();
    settings.map(|one| Value { section: one.section, key: one.key, value: one.value }).collect()
}

fn print(document: &Document) -> miette::Result<()> {
    println!("{}", serde_json::to_string_pretty(document).into_diagnostic()?);
    Ok(())
}

/// What a file is for, in one line.
fn summary(config: &Config) -> String {
    let counted = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let sas = match config.keys.source {
        config::KeySource::Xfrm(_) => "SAs from the kernel".to_owned(),
        config::KeySource::Static { .. } => {
            let policies = match config.sas.policies.len() {
                1 => "1 policy".to_owned(),
                n => format!("{n} policies"),
            };
            format!("{}, {policies}", counted(config.sas.entries.len(), "SA"))
        }
    };
    let links = counted(config.outside.len(), "link");
    let processors = counted(config.processors.len(), "processor");
    let warnings = match config.warnings.len() {
        0 => "no warnings".to_owned(),
        n => counted(n, "warning"),
    };
    format!("valid ({sas}, {links} to peers, {processors}; {warnings})")
}
