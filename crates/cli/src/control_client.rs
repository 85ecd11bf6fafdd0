//! `forebay status`, `show` and `reload`: asking a running gateway.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use forebay_config as config;
use forebay_gateway::control::rates::at_engine;
use forebay_gateway::control::reasons::explanation;
use forebay_gateway::control::{
    Client, ClusterDoc, ControlError, DropsDoc, EngineDoc, FindingDoc, GuardDoc, LimitsDoc, NameDoc,
    OffloadDoc, OffloadsDoc, PairDoc, PolicyDoc, ProcessorDoc, ReloadDoc, Request, Response, SaDoc,
    StatusDoc, TapsDoc,
};
use miette::{IntoDiagnostic, miette};
use serde::Serialize;

use forebay_terminal::Answer;

use crate::columns::{fit, table, width};

/// Where a gateway listens unless its file says otherwise.
const SOCKET: &str = "/run/forebay/control.sock";

/// Which gateway is asked.
#[derive(Args, Clone)]
pub struct SocketArgs {
    /// Control socket of the gateway [default: /run/forebay/control.sock].
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    socket: Option<PathBuf>,
    /// Configuration file of the gateway, from which the path of the socket is read.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SocketArgs {
    /// Connects to the gateway.
    pub fn connect(&self) -> miette::Result<Client> {
        let socket = match (&self.socket, &self.config) {
            (Some(socket), _) => socket.clone(),
            (None, Some(file)) => config::load(file)?.control.socket,
            (None, None) => Path::new(SOCKET).to_owned(),
        };
        let mut client = Client::connect(&socket).map_err(report)?;
        if let Some(file) = &self.config {
            check_file(&mut client, file, &socket)?;
        }
        Ok(client)
    }
}

/// Refuses the answers of a gateway that runs by another file: several gateways may have been given one socket.
fn check_file(client: &mut Client, file: &Path, socket: &Path) -> miette::Result<()> {
    // A standby, and an earlier version, does not say by what file it runs.
    let Ok(Response::Drops(DropsDoc { config_file, .. })) = client.ask(Request::Drops) else { return Ok(()) };
    let full = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    if config_file.is_empty() || full(file) == full(Path::new(&config_file)) {
        return Ok(());
    }
    Err(miette!(
        help = format!(
            "`--config {config_file}`, or `--socket {}` whatever its file is; to run both, give each a `socket` of its \
             own in `[control]`",
            socket.display()
        ),
        "the gateway at {} runs by {config_file}, not by {}",
        socket.display(),
        file.display()
    ))
}

/// Arguments of `forebay status` and `reload`.
#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    gateway: SocketArgs,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

/// What is shown.
#[derive(Subcommand)]
pub enum ShowCommand {
    /// The security associations, with packets, bytes and failures of each.
    Sas(AskArgs),
    /// The policies, in the order of evaluation.
    Policies(AskArgs),
    /// The processors: utilization, queue, predicted and actual response time, costs.
    Processors(AskArgs),
    /// Dropped packets, by reason.
    Drops(AskArgs),
}

/// An error with its hint.
pub fn report(error: ControlError) -> miette::Report {
    match error.help() {
        Some(help) => miette!(help = help, "{error}"),
        None => miette!("{error}"),
    }
}

/// Runs `forebay status`.
pub fn status(args: &AskArgs) -> miette::Result<Answer> {
    match ask(args, Request::Status)? {
        Some(Response::Status(status)) => print!("{}", overview(&status, width())),
        Some(_) => return Err(unexpected()),
        None => {}
    }
    Ok(Answer::Yes)
}

impl ShowCommand {
    /// Runs `forebay show`.
    pub fn run(&self) -> miette::Result<Answer> {
        let response = match self {
            ShowCommand::Sas(args) => ask(args, Request::Sas)?,
            ShowCommand::Policies(args) => ask(args, Request::Policies)?,
            ShowCommand::Processors(args) => ask(args, Request::Processors)?,
            ShowCommand::Drops(args) => ask(args, Request::Drops)?,
        };
        match response {
            Some(Response::Sas(document)) => print!("{}", sas(&document.sas, width())),
            Some(Response::Policies(document)) => print!("{}", policies(&document.policies, width())),
            Some(Response::Processors(document)) => {
                print!("{}", processors(&document.processors, &document.engines, width()))
            }
            Some(Response::Drops(document)) => print!("{}", drops(&document.drops, width())),
            Some(_) => return Err(unexpected()),
            None => {}
        }
        Ok(Answer::Yes)
    }
}

/// Runs `forebay reload`.
pub fn reload(args: &AskArgs) -> miette::Result<Answer> {
    let response = args.gateway.connect()?.ask(Request::Reload).map_err(report)?;
    let Response::Reload(document) = response else { return Err(unexpected()) };
    if args.json {
        json(&document)?;
    } else {
        say_reload(&document);
    }
    Ok(if document.ok { Answer::Yes } else { Answer::Broken })
}

fn say_reload(document: &ReloadDoc) {
    let finding = |what: &str, one: &FindingDoc| {
        let line = one.line.map_or_else(String::new, |line| format!(":{line}"));
        let place = if one.file.is_empty() { String::new() } else { format!("{}{line}: ", one.file) };
        eprintln!("{what}: {place}{}", one.message);
        if !one.help.is_empty() {
            eprintln!("    {}", one.help);
        }
    };
    document.errors.iter().for_each(|one| finding("error", one));
    document.warnings.iter().for_each(|one| finding("warning", one));
    let ReloadDoc { added, removed, kept, .. } = document;
    if !document.ok && !document.in_part {
        eprintln!("the configuration was rejected; the running gateway is unchanged");
        return;
    }
    println!("{}", kept_in_words(*kept, *added, *removed));
    for setting in &document.restart {
        println!("restart required: {setting}");
    }
    if document.in_part {
        eprintln!("the file is in use, but the operations above failed: correct them and reload");
    }
}

/// How many SAs a reload kept, added and removed.
pub fn kept_in_words(kept: usize, added: usize, removed: usize) -> String {
    let kept = if kept == 1 { "1 SA kept".to_owned() } else { format!("{kept} SAs kept") };
    format!("{kept}, {added} added, {removed} removed")
}

fn unexpected() -> miette::Report {
    miette!("the gateway sent a reply of another type than was requested")
}

/// The answer, `None` if it has been printed as JSON.
fn ask(args: &AskArgs, request: Request) -> miette::Result<Option<Response>> {
    let response = args.gateway.connect()?.ask(request).map_err(report)?;
    if !args.json {
        return Ok(Some(response));
    }
    match &response {
        Response::Status(document) => json(document)?,
        Response::Sas(document) => json(document)?,
        Response::Policies(document) => json(document)?,
        Response::Processors(document) => json(document)?,
        Response::Drops(document) => json(document)?,
        _ => return Err(unexpected()),
    }
    Ok(None)
}

fn json(document: &impl Serialize) -> miette::Result<()> {
    println!("{}", serde_json::to_string_pretty(document).into_diagnostic()?);
    Ok(())
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// A number with k, M, G or T, so that three digits tell.
pub fn short(value: f64) -> String {
    // Of no numbers the sum is -0.
    let value = value + 0.0;
    let (scale, unit) = match value.abs() {
        v if v >= 1e12 => (1e12, "T"),
        v if v >= 1e9 => (1e9, "G"),
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e4 => (1e3, "k"),
        v if v >= 100.0 || v.fract() == 0.0 => return format!("{value:.0}"),
        _ => return format!("{value:.1}"),
    };
    let value = value / scale;
    let decimals = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.decimals$}{unit}")
}

/// A length of time in the unit that fits.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 172_800.0 => format!("{:.0}d", s / 86_400.0),
        s if s >= 7_200.0 => format!("{:.1}h", s / 3_600.0),
        s if s >= 120.0 => format!("{:.0}m", s / 60.0),
        s if s >= 1.0 => format!("{s:.1}s"),
        s if s >= 1e-3 => format!("{:.1}ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.1}us", s * 1e6),
        0.0 => "0".to_owned(),
        s if s >= 1e-8 => format!("{:.0}ns", s * 1e9),
        // A block of a fast cipher takes less than a nanosecond.
        s => {
            let text = format!("{:.3}", s * 1e9);
            format!("{}ns", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

fn overview(status: &StatusDoc, width: usize) -> String {
    let outbound = status.sas.iter().filter(|sa| sa.direction == "out").count();
    let mut text = format!(
        "forebay {}, configuration {}, uptime {}, process {}\nSAs: {} ({outbound} outbound), policies: {}\n\n",
        status.version,
        status.config,
        time(status.uptime_s),
        status.pid,
        status.sas.len(),
        status.policies.len(),
    );
    text += &processors(&status.processors, &status.engines, width);
    text += &odd(status);
    let mut rows = vec![row(&["LINK", "SIDE", "IN", "BYTES", "OUT", "BYTES", "NOT SENT"])];
    for link in &status.links {
        let lost: u64 = link.drops.values().sum();
        let counts = [link.packets_in, link.bytes_in, link.packets_out, link.bytes_out, lost];
        let counts = counts.map(|count| short(count as f64));
        let name = at_engine(&link.name, link.engine, status.engines.len() > 1);
        rows.push([vec![name, link.side.clone()], counts.to_vec()].concat());
    }
    text += &format!("\n{}\n{}", table(2, &rows, width), drops(&status.drops, width));
    let text = text
        + &names(&status.names)
        + &guard(&status.guard)
        + &offloads(&status.offloads)
        + &captures(&status.taps, width)
        + &status.pair.as_ref().map_or_else(String::new, pair)
        + &status.cluster.as_ref().map_or_else(String::new, cluster);
    fit(&text, width)
}

/// The host names of peers, in a line each.
fn names(names: &[NameDoc]) -> String {
    let line = |one: &NameDoc| {
        let address = one.address.as_deref().unwrap_or("NO ADDRESS");
        let left_out = match one.left_out.len() {
            0 => String::new(),
            count => format!("; {count} SAs LEFT OUT: {}", one.left_out.join(" ")),
        };
        format!("\nPeer {}: {address}{left_out}", one.name)
    };
    let text: String = names.iter().map(line).collect();
    if text.is_empty() { text } else { text + "\n" }
}

/// The pair that the gateway is one of, in a line.
fn pair(pair: &PairDoc) -> String {
    let peer = match &pair.peer {
        Some(role) => format!("peer {role} on {} links", pair.links),
        None => "peer not heard".to_owned(),
    };
    let records = if pair.in_sync { "in sync" } else { "NOT in sync" };
    let reason = pair.reason.as_ref().map_or_else(String::new, |reason| format!(", last because {reason}"));
    let waits = pair.waits.as_ref().map_or_else(String::new, |why| {
        format!("      it may lack records and is NOT active although {why}: start its peer, or see `forebay state`\n")
    });
    let refused = match pair.refused {
        0 => String::new(),
        count => format!("      {count} implausible records or terms of the peer REFUSED\n"),
    };
    let PairDoc { number, role, term, take_overs, .. } = pair;
    format!(
        "\nPair: gateway {number} {role}, term {term}, {peer}, records {records}; take-overs: {take_overs}{reason}\n{waits}{refused}"
    )
}

/// The cluster that the gateway is one of, in a line or two.
fn cluster(cluster: &ClusterDoc) -> String {
    let ClusterDoc { name, members, shares, serves, unowned, take_overs, lag_s, .. } = cluster;
    let etcd = match cluster.silence_s {
        _ if cluster.connected => format!("etcd answers in {:.1} ms", lag_s * 1e3),
        Some(silence) => format!("NO answer of etcd for {silence:.0} s"),
        None => "NO answer of etcd yet".to_owned(),
    };
    let trouble =
        cluster.trouble.as_ref().map_or_else(String::new, |trouble| format!("         {trouble}\n"));
    format!(
        "\nCluster: gateway {name} of {}, serves {} of {shares} shares ({unowned} unowned), {etcd}; take-overs: {take_overs}\n{trouble}",
        members.len(),
        serves.len(),
    )
}

/// The rules of the host, in a line.
fn guard(guard: &GuardDoc) -> String {
    let GuardDoc { state, table, ranges, forged, leaked, restored, blackholes, .. } = guard;
    let restored = if *restored > 0 { format!(", restored {restored} times") } else { String::new() };
    match (state.as_str(), &guard.error) {
        ("on", _) => format!(
            "\nGuard: table inet {table}, {ranges} address ranges, {blackholes} blackhole routes; cleartext packets dropped: \
             {forged} inbound, {leaked} outbound{restored}\n"
        ),
        ("missing", Some(error)) => {
            format!("\nGuard: missing ({error}); cleartext packets can bypass the gateway\n")
        }
        ("missing", None) => "\nGuard: not installed yet\n".to_owned(),
        ("print", _) => {
            "\nGuard: rules installed by the administrator (forebay check --print-rules)\n".to_owned()
        }
        _ => String::new(),
    }
}

/// The offloads of the host's interfaces, in a line each; nothing where the gateway looks after none.
fn offloads(offloads: &OffloadsDoc) -> String {
    let mut text = String::new();
    for OffloadDoc { interface, offload, state, switched } in &offloads.offloads {
        let by = if *switched { ", switched on by this gateway" } else { "" };
        text += &format!("\nOffload: {interface} {offload}: {state}{by}");
    }
    if offloads.restored > 0 {
        text += &format!("\nOffloads restored {} times", offloads.restored);
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// What is captured; nothing where captures have never been asked for.
fn captures(taps: &TapsDoc, width: usize) -> String {
    if taps.failures == 0 && taps.sides.iter().all(|side| side.files == 0) {
        return String::new();
    }
    let error = taps.error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    let mut rows = vec![row(&["CAPTURE", "PACKETS", "BYTES", "LOST", "FILES", "FILE"])];
    for side in taps.sides.iter().filter(|side| side.files > 0) {
        let counts = [side.packets, side.bytes, side.lost, side.files].map(|count| short(count as f64));
        let file = side.file.clone().unwrap_or_default();
        rows.push([vec![side.side.clone()], counts.to_vec(), vec![file]].concat());
    }
    format!("\nCaptures are {}{error}\n{}", taps.state, table(1, &rows, width))
}

fn sas(sas: &[SaDoc], width: usize) -> String {
    // Most gateways have no SAs of single CPUs.
    let cpus = sas.iter().any(|sa| sa.cpu.is_some());
    let header = [
        "NAME", "DIR", "SPI", "PROPOSAL", "REMOTE", "PACKETS", "BYTES", "ICV FAIL", "REPLAYED", "EXPIRES",
        "CPU",
    ];
    let mut rows = vec![row(&header[..header.len() - usize::from(!cpus)])];
    for sa in sas {
        let remote = match &sa.remote_name {
            Some(name) => format!("{} ({name})", sa.remote),
            None => sa.remote.clone(),
        };
        let texts = [&sa.name, &sa.direction, &sa.spi, &sa.proposal, &remote].map(Clone::clone);
        let counts = [sa.packets, sa.bytes, sa.auth_failures, sa.replays].map(|count| short(count as f64));
        let mut last = vec![expires(&sa.lifetime.hard, &sa.left)];
        if cpus {
            last.push(sa.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string()));
        }
        rows.push([texts.to_vec(), counts.to_vec(), last].concat());
    }
    table(5, &rows, width) + &aggregation(sas, width)
}

/// Counters of SAs that aggregate, and the payloads a second of those at a fixed rate.
fn aggregation(sas: &[SaDoc], width: usize) -> String {
    let header =
        ["IP-TFS", "DIR", "PAYLOADS/S", "PAYLOADS", "ALL PAD", "LOST", "MARKED", "PACKETS", "REASSEMBLED"];
    let mut rows = vec![row(&header)];
    for sa in sas.iter().filter(|sa| sa.iptfs.is_some() || sa.iptfs_rate.is_some()) {
        let rate = sa.iptfs_rate.map_or_else(String::new, |rate| short(rate as f64));
        let counts = sa.iptfs.map_or_else(Default::default, |of| {
            [of.payloads, of.all_pad, of.lost, of.marked, of.packets, of.reassembled]
                .map(|count| short(count as f64))
        });
        rows.push([vec![sa.name.clone(), sa.direction.clone(), rate], counts.to_vec()].concat());
    }
    if rows.len() == 1 { String::new() } else { format!("\n{}", table(2, &rows, width)) }
}

/// What is left until an SA ends, by the limit of which the smallest share is left.
fn expires(hard: &LimitsDoc, left: &LimitsDoc) -> String {
    let count = |value: Option<u64>| value.map(|value| value as f64);
    let limits = [
        (hard.time_s, left.time_s),
        (hard.use_time_s, left.use_time_s),
        (count(hard.bytes), count(left.bytes)),
        (count(hard.packets), count(left.packets)),
    ];
    let shares = limits.into_iter().enumerate();
    let shares = shares.filter_map(|(place, (hard, left))| Some((left? / hard?.max(1e-9), place, left?)));
    match shares.min_by(|one, two| one.0.total_cmp(&two.0)) {
        None => "never".to_owned(),
        Some((_, _, 0.0)) => "expired".to_owned(),
        Some((_, 0, left)) => time(left),
        Some((_, 1, left)) => format!("{} of use", time(left)),
        Some((_, 2, left)) => format!("{}B", short(left)),
        Some((.., left)) => format!("{} packets", short(left)),
    }
}

fn policies(policies: &[PolicyDoc], width: usize) -> String {
    let any = |texts: &[String]| if texts.is_empty() { "any".to_owned() } else { texts.join(" ") };
    let mut rows = vec![row(&["NAME", "DIR", "ACTION", "LOCAL", "REMOTE", "SAS"])];
    for policy in policies {
        let texts = [&policy.name, &policy.direction, &policy.action].map(Clone::clone);
        let rest = [any(&policy.local_ts), any(&policy.remote_ts), policy.sas.join(" ")];
        rows.push([texts, rest].concat());
    }
    table(6, &rows, width)
}

/// A gateway's processors. Of an engine the first is its core, whose load is that of the worker thread, for it does more
/// than crypto.
fn processors(processors: &[ProcessorDoc], engines: &[EngineDoc], width: usize) -> String {
    let mut processors = processors.to_vec();
    let mut shares = Vec::new();
    for at in 0..processors.len() {
        let is_core = at == 0 || processors[at - 1].engine != processors[at].engine;
        let core = engines.get(processors[at].engine).filter(|engine| is_core && engine.cpu_s > 0.0);
        shares.push(core.map(|_| processors[at].load));
        if let Some(core) = core {
            processors[at].load = core.load;
        }
    }
    processor_table(&processors, &shares, width)
}

/// `crypto`: the share of a core's time that is crypto, where the load is that of all of its work.
fn processor_table(processors: &[ProcessorDoc], crypto: &[Option<f64>], width: usize) -> String {
    let header = [
        "PROCESSOR",
        "KIND",
        "STATE",
        "PACKETS",
        "BYTES",
        "LOAD",
        "CRYPTO",
        "QUEUE",
        "PREDICTED",
        "ACTUAL",
        "OFF BY",
        "COSTS",
    ];
    let mut rows = vec![row(&header)];
    let several = processors.iter().any(|one| one.engine > 0);
    let percent = |share: f64| format!("{:.0}%", 100.0 * share);
    for (one, crypto) in processors.iter().zip(crypto) {
        let jobs = one.jobs.max(1) as f64;
        let state = if one.out { "ejected" } else { "ok" };
        let costs: Vec<String> = one
            .costs
            .iter()
            .map(|cost| format!("{} {}+{}/16B", cost.proposal, time(cost.init_s), time(cost.block_s)))
            .collect();
        rows.push(vec![
            at_engine(&one.name, one.engine, several),
            one.kind.clone(),
            state.to_owned(),
            short(one.packets as f64),
            short(one.bytes as f64),
            percent(one.load),
            percent(crypto.unwrap_or(one.load)),
            one.queue.to_string(),
            time(one.predicted_response_s / jobs),
            time(one.response_s / jobs),
            time(one.response_error_s / jobs),
            costs.join(", "),
        ]);
    }
    table(3, &rows, width)
}

/// What should not be many, in a line.
fn odd(status: &StatusDoc) -> String {
    let late: u64 = status.processors.iter().map(|one| one.late).sum();
    let redone: u64 = status.engines.iter().map(|one| one.redone).sum();
    let forged: u64 = status.sas.iter().map(|sa| sa.auth_failures).sum();
    let replayed: u64 = status.sas.iter().map(|sa| sa.replays).sum();
    format!("Jobs late {late}, redone {redone}; packets refused: ICV failure {forged}, replayed {replayed}\n")
}

fn drops(drops: &std::collections::BTreeMap<String, u64>, width: usize) -> String {
    if drops.is_empty() {
        return fit("No packets were dropped.\n", width);
    }
    let mut sorted: Vec<_> = drops.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut rows = vec![row(&["DROPPED", "REASON", ""])];
    for (reason, count) in sorted {
        rows.push(vec![count.to_string(), reason.clone(), explanation(reason).to_owned()]);
    }
    table(3, &rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_gateway::control::IptfsDoc;

    #[test]
    fn an_sa_expires_by_the_limit_that_comes_first_and_never_without() {
        let hard =
            LimitsDoc { time_s: Some(3_600.0), bytes: Some(1_000_000), packets: Some(100), use_time_s: None };
        let left = |time_s, bytes, packets| {
            let left = LimitsDoc {
                time_s: Some(time_s),
                bytes: Some(bytes),
                packets: Some(packets),
                use_time_s: None,
            };
            expires(&hard, &left)
        };
        assert_eq!(left(1_800.0, 900_000, 90), "30m");
        assert_eq!(left(1_800.0, 20_000, 90), "20.0kB");
        assert_eq!(left(1_800.0, 900_000, 7), "7 packets");
        assert_eq!(left(1_800.0, 900_000, 0), "expired");
        assert_eq!(expires(&LimitsDoc::default(), &LimitsDoc::default()), "never");
        let used = LimitsDoc { use_time_s: Some(60.0), ..LimitsDoc::default() };
        assert_eq!(expires(&used, &used), "60.0s of use");
    }

    /// A gateway with long names, IPv6 and something in every part.
    fn full() -> StatusDoc {
        let sa = |name: &str, direction: &str| SaDoc {
            name: name.to_owned(),
            spi: "0x12345678".to_owned(),
            direction: direction.to_owned(),
            proposal: "aes256gcm16-esn".to_owned(),
            remote: "2001:db8:1234:5678:9abc:def0:1234:5678".to_owned(),
            remote_name: Some("vpn.branch-office.example.org".to_owned()),
            packets: 123_456_789,
            bytes: 987_654_321_000,
            replays: 77_777,
            cpu: Some(11),
            iptfs: Some(IptfsDoc {
                payloads: 123_456_789,
                lost: 12_345,
                packets: 987_654_321,
                ..IptfsDoc::default()
            }),
            iptfs_rate: Some(1_000_000),
            ..SaDoc::default()
        };
        let policy = PolicyDoc {
            name: "office-to-branch".to_owned(),
            direction: "out".to_owned(),
            action: "protect".to_owned(),
            local_ts: vec!["10.1.0.0/16".to_owned(), "2001:db8:aaaa:bbbb::/64".to_owned()],
            remote_ts: vec!["10.2.0.0/16".to_owned(), "2001:db8:cccc:dddd::/64".to_owned()],
            sas: vec!["office-to-branch-out".to_owned(), "office-to-branch-out-cpu1".to_owned()],
        };
        let cost = |proposal: &str| forebay_gateway::control::CostDoc {
            proposal: proposal.to_owned(),
            init_s: 1.25e-6,
            block_s: 5.92e-10,
        };
        let processor = |name: &str, engine: usize| ProcessorDoc {
            name: name.to_owned(),
            engine,
            kind: "emulated-card".to_owned(),
            jobs: 3,
            packets: 34_567_890_123,
            bytes: 45_678_901_234_567,
            load: 0.97,
            queue: 1_999,
            late: 17,
            costs: vec![cost("aes256gcm16"), cost("aes256-sha256")],
            ..ProcessorDoc::default()
        };
        let mut status = StatusDoc {
            version: "0.1.0".to_owned(),
            config: "/etc/forebay/gateway.toml".to_owned(),
            uptime_s: 1_234_567.0,
            pid: 4_194_304,
            sas: vec![sa("office-to-branch-out", "out"), sa("branch-to-office-in", "in")],
            policies: vec![policy],
            processors: vec![processor("core", 0), processor("card-of-230-mbit", 1)],
            ..StatusDoc::default()
        };
        status.drops.insert("in_no_states".to_owned(), 12_345_678_901);
        status.drops.insert("out_no_link".to_owned(), 7);
        status.guard = GuardDoc {
            state: "on".to_owned(),
            table: "forebay_forebay0".to_owned(),
            ranges: 1_024,
            forged: 65_535,
            leaked: 1_048_576,
            restored: 3,
            ..GuardDoc::default()
        };
        status.names = vec![NameDoc {
            name: "vpn.branch-office.example.org".to_owned(),
            address: None,
            left_out: vec!["office-to-branch-out".to_owned(), "branch-to-office-in".to_owned()],
        }];
        status.offloads.restored = 1_048_576;
        status.offloads.offloads = vec![OffloadDoc {
            interface: "an-interface-15".to_owned(),
            offload: "rx-udp-gro-forwarding".to_owned(),
            state: "without rx-gro".to_owned(),
            switched: true,
        }];
        status
    }

    #[test]
    fn tables_fit_50_80_and_160_columns_and_nothing_is_cut() {
        let status = full();
        let shown = |width: usize| {
            [
                overview(&status, width),
                sas(&status.sas, width),
                policies(&status.policies, width),
                processors(&status.processors, &status.engines, width),
                drops(&status.drops, width),
            ]
        };
        for width in [50, 80, 160] {
            for (whole, narrow) in shown(usize::MAX).iter().zip(&shown(width)) {
                for line in narrow.lines() {
                    assert!(line.chars().count() <= width, "{width} columns:\n{narrow}");
                }
                let words: Vec<&str> = narrow.split_whitespace().collect();
                for word in whole.split_whitespace() {
                    assert!(words.contains(&word), "{width} columns without {word}:\n{narrow}");
                }
            }
        }
    }

    #[test]
    fn numbers_and_times_are_short() {
        let shown = [0.0, 7.0, 9.5, 1_234.0, 12_345.0, 123_456.0, 9.99e6, 1e9, 2.5e12].map(short);
        assert_eq!(shown, ["0", "7", "9.5", "1234", "12.3k", "123k", "9.99M", "1.00G", "2.50T"]);
        assert_eq!([std::iter::empty::<f64>().sum(), -0.0].map(short), ["0", "0"]);
        assert_eq!([5.92e-10, 1.25e-9, 12.6e-9].map(time), ["0.592ns", "1.25ns", "13ns"]);
        let shown = [0.0, 4e-9, 2.5e-6, 0.02, 3.0, 600.0, 9_000.0, 259_200.0].map(time);
        assert_eq!(shown, ["0", "4ns", "2.5us", "20.0ms", "3.0s", "10m", "2.5h", "3d"]);
    }
}
