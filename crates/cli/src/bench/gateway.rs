//! `forebay bench gateway`: a gateway by every kind of link, between a generator and a sink on this machine.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use forebay_terminal::progress::{self, Progress};
use forebay_terminal::{Answer, host};
use miette::{Context, IntoDiagnostic, miette};
use rustix::thread::{CpuSet, sched_getaffinity};

use super::Which;
use crate::columns;
use crate::request::measured;
use forebay_measure::gateway::{Document, Line, Plan, Settings, Spread, measure};

/// The number of the process that has namespaces of its own.
const ENTERED: &str = "FOREBAY_BENCH_ENTERED";

/// Share of the CPUs that others may have without a word.
const BUSY: f64 = 0.1;

/// Arguments of `forebay bench gateway`.
#[derive(Args)]
#[command(after_help = "\
Links, the inside first:
  tun+udp, tun+raw           a TUN interface; ESP in UDP, or ESP by raw sockets
  xdp+udp, xdp+xdp           AF_XDP in the driver of a veth
  xdp-generic+xdp-generic    AF_XDP in front of the kernel's stack
  dpdk+dpdk                  AF_PACKET by DPDK (build with `--features dpdk`)
  kernel                     the kernel's own forwarding, without a gateway
Others can be combined likewise: tun, xdp, xdp-generic or dpdk inside; udp, raw, xdp, xdp-generic or dpdk outside.

Beside each gateway runs a relay: the links of the same file with nothing between them. Network namespaces are made for
all of it, as root or in a user namespace (where AF_XDP is not allowed), and go when the command ends.

Example: forebay bench gateway --link tun+udp,xdp+xdp --size 64,1400 --flows 1,8 --json")]
pub struct GatewayArgs {
    /// Kinds of links (see below) [default: all that stand there].
    #[arg(long, value_delimiter = ',', value_name = "INSIDE+OUTSIDE")]
    link: Vec<String>,
    /// Cipher suites, in swanctl notation; each has a gateway of its own.
    #[arg(long, value_delimiter = ',', default_value = "aes128gcm16")]
    proposal: Vec<String>,
    /// Lengths of the cleartext IP packets, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "64,1400")]
    size: Vec<usize>,
    /// Numbers of UDP flows, whose packets take turns.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    flows: Vec<usize>,
    /// Direction: outbound, inbound, or both.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    direction: Which,
    /// File with more keys of the gateways' configuration, such as `[offloads]` or `[[processor]]`.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// CPUs: the generator's, then those of the gateway [default: the first two of this process].
    #[arg(long, value_delimiter = ',', value_name = "CPU")]
    cpus: Vec<usize>,
    /// Measuring time per figure and round, in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Number of rounds; medians are reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

impl GatewayArgs {
    fn settings(&self) -> miette::Result<Settings> {
        let keys = match &self.keys {
            Some(path) => std::fs::read_to_string(path)
                .into_diagnostic()
                .wrap_err_with(|| format!("--keys {}", path.display()))?,
            None => String::new(),
        };
        let all =
            ["tun+udp", "tun+raw", "xdp+udp", "xdp+xdp", "xdp-generic+xdp-generic", "dpdk+dpdk", "kernel"];
        let links = if self.link.is_empty() { all.map(str::to_owned).to_vec() } else { self.link.clone() };
        Ok(Settings {
            program: std::env::current_exe().into_diagnostic()?,
            links,
            proposals: self.proposal.clone(),
            directions: self.direction.directions(),
            sizes: self.size.clone(),
            flows: self.flows.clone(),
            keys,
            cpus: self.cpus()?,
            seconds: self.seconds,
            rounds: self.rounds,
        })
    }

    fn cpus(&self) -> miette::Result<Vec<usize>> {
        let ours = sched_getaffinity(None).into_diagnostic()?;
        let has = |cpu: &usize| *cpu < CpuSet::MAX_CPU && ours.is_set(*cpu);
        if let Some(cpu) = self.cpus.iter().find(|cpu| !has(cpu)) {
            return Err(miette!("--cpus {cpu}: this CPU does not exist, or the process may not run on it"));
        }
        let first = || (0..CpuSet::MAX_CPU).filter(has).take(2).collect();
        Ok(if self.cpus.is_empty() { first() } else { self.cpus.clone() })
    }
}

/// Runs the command.
pub fn run(args: &GatewayArgs) -> miette::Result<Answer> {
    let plan = Plan::new(args.settings()?).map_err(measured)?;
    let pid = std::process::id().to_string();
    if std::env::var(ENTERED) != Ok(pid) {
        return Err(enter()?);
    }
    let mut bar = Progress::runs("measuring");
    let watch = |done, total| {
        bar.of(total);
        bar.at(done);
        progress::go_on()
    };
    let document = measure(&plan, &host::model(), watch);
    bar.finish();
    let document = document.map_err(measured)?;
    if document.busy_before > BUSY {
        eprintln!(
            "The machine was busy with something else, {:.0} % of its CPUs before the first measurement: the figures are those of a crowd.",
            100.0 * document.busy_before
        );
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        print(&document);
    }
    // By default some links are not expected everywhere.
    let is_asked_for = !args.link.is_empty() && !document.missing.is_empty();
    Ok(if is_asked_for || document.results.is_empty() { Answer::No } else { Answer::Yes })
}

/// Begins again in namespaces of its own, in this process; returns only what is wrong.
fn enter() -> miette::Result<miette::Report> {
    let mut words = vec!["--mount", "--net"];
    if !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-root-user"]);
    }
    let tried = Command::new("unshare").args(&words).arg("true").output();
    let tried = tried.into_diagnostic().wrap_err("cannot run unshare, of util-linux")?;
    if !tried.status.success() {
        return Ok(miette!(
            help = "run it as root, or allow unprivileged user namespaces",
            "cannot make network namespaces: {}",
            String::from_utf8_lossy(&tried.stderr).trim()
        ));
    }
    let program = std::env::current_exe().into_diagnostic()?;
    let error = Command::new("unshare")
        .args(words)
        .arg("--")
        .arg(program)
        .args(std::env::args_os().skip(1))
        .env(ENTERED, std::process::id().to_string())
        .exec();
    Err(error).into_diagnostic().wrap_err("cannot run unshare, of util-linux")
}

fn print(document: &Document) {
    if !document.results.is_empty() {
        print_results(document);
    }
    for one in &document.missing {
        let text = format!("\n{}, {}: not measured: {}\n", one.link, one.forwarder, one.why);
        print!("{}", columns::fit(&text, columns::width()));
    }
}

fn print_results(document: &Document) {
    let gateway: Vec<String> = document.gateway_cpus.iter().map(usize::to_string).collect();
    let mut generators: Vec<_> = document.results.iter().map(|line| line.generator).collect();
    generators.sort_unstable();
    generators.dedup();
    let head = format!(
        "{}\nGenerator ({}) on CPU {}, gateway on CPU {}; {} of {} s. Million packets per second (lowest to highest round), and \
         microseconds of CPU time of the gateway's threads per packet.\n\n",
        document.host,
        generators.join(", "),
        document.generator_cpu,
        gateway.join(", "),
        if document.rounds == 1 {
            "1 round".to_owned()
        } else {
            format!("medians of {} rounds", document.rounds)
        },
        document.seconds,
    );
    print!("{}", columns::fit(&head, columns::width()));
    let words = ["link", "forwarder", "direction", "size", "flows", "M/s", "rounds", "us", "offered"];
    let mut rows = vec![words.map(str::to_owned).to_vec()];
    rows.extend(document.results.iter().map(row));
    print!("{}", columns::table(3, &rows, columns::width()));
    if document.results.iter().any(Line::is_offered_too_little) {
        let text =
            "* The generator was the limit: all that it sent arrived, and the forwarder may carry more.\n";
        print!("{}", columns::fit(text, columns::width()));
    }
}

fn row(line: &Line) -> Vec<String> {
    let Spread { median, lowest, highest } = line.packets_per_s;
    let cpu = line.cpu_us_per_packet.map_or("-".to_owned(), |cpu| format!("{:.3}", cpu.median));
    vec![
        line.link.clone(),
        line.forwarder.clone(),
        line.direction.to_owned(),
        line.size.to_string(),
        line.flows.to_string(),
        format!("{:.3}{}", median / 1e6, if line.is_offered_too_little() { "*" } else { "" }),
        format!("{:.3} to {:.3}", lowest / 1e6, highest / 1e6),
        cpu,
        format!("{:.2}", line.offered_per_s.median / 1e6),
    ]
}
