//! `forebay bench crossover`: from which packets on a device is done earlier than the running core.

use std::path::{Path, PathBuf};

use clap::Args;
use forebay_measure::crossover::{Document, Plan, Settings, Side, Verdict, measure};
use forebay_page::units;
use forebay_terminal::progress::{self, Progress};
use forebay_terminal::{Answer, host};
use miette::{IntoDiagnostic, WrapErr};

use super::write;
use crate::request::measured;

/// Arguments of `forebay bench crossover`.
#[derive(Args)]
#[command(after_help = "\
Processors, the running core first, are named as for `bench scheduler`: core, worker, ipsec-mb, aws-lc, card,
card:init=TIME+block=TIME+doorbell=TIME, dpdk:DEVICE, gpu:RUNTIME+INDEX, rtl:CORE+MHZ. Without --processor: a core, and every kind
of device that this program has and can open.

A break-even is predicted from costs that are fitted as `bench processors` fits them, and measured at half and at twice of it:
`holds` if every round agrees, `does not hold` if none does, otherwise `not decided`.

Example: forebay bench crossover --processor core,card:block=40ns --load 0,0.5 --save costs.json --config processors.toml")]
pub struct CrossoverArgs {
    /// Cipher suites, in swanctl notation.
    #[arg(long, value_delimiter = ',', default_value = "aes128gcm16,aes128-sha256,chacha20poly1305")]
    proposal: Vec<String>,
    /// Processors, the running core first (see below).
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    processor: Vec<String>,
    /// Packets that are handed over together, for each of which a break-even size is found.
    #[arg(long, value_delimiter = ',', value_name = "PACKETS", default_value = "1,8,32")]
    burst: Vec<usize>,
    /// Lengths of cleartext IP packets in bytes, for each of which a break-even number of packets is found.
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "64,576,1408")]
    size: Vec<usize>,
    /// Shares of its time that the device is busy with others' packets; 0 is an idle device.
    #[arg(long, value_delimiter = ',', value_name = "SHARE", default_value = "0,0.5")]
    load: Vec<f64>,
    /// Measuring time per point in seconds, over all rounds.
    #[arg(long, default_value_t = 0.1)]
    seconds: f64,
    /// Number of rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Write the costs to a file, as `bench processors --save` does.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write `[[processor]]` and `[scheduler]` for a gateway's file, with the file of `--save` as its costs.
    #[arg(long, value_name = "FILE", requires = "save")]
    config: Option<PathBuf>,
    /// End with code 1 if a break-even does not hold or is not decided.
    #[arg(long)]
    strict: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

impl CrossoverArgs {
    fn settings(&self) -> Settings {
        Settings {
            proposals: self.proposal.clone(),
            processors: self.processor.clone(),
            bursts: self.burst.clone(),
            sizes: self.size.clone(),
            loads: self.load.clone(),
            seconds: self.seconds,
            rounds: self.rounds,
        }
    }
}

/// Runs the command.
pub fn run(args: &CrossoverArgs) -> miette::Result<Answer> {
    forebay_terminal::refuse_inputs(args.save.iter().chain(&args.config), [] as [&Path; 0])?;
    let plan = Plan::new(&args.settings()).map_err(measured)?;
    let mut bar = Progress::runs("measuring");
    let watch = |done, planned| {
        bar.of(planned);
        bar.at(done);
        progress::go_on()
    };
    let document = measure(&plan, &host::model(), watch);
    bar.finish();
    let document = document.map_err(measured)?;
    for note in &document.notes {
        eprintln!("{note}");
    }
    if let Some(path) = &args.save {
        write(path, &serde_json::to_string_pretty(&document.costs).into_diagnostic()?)?;
        if let Some(config) = &args.config {
            write(config, &document.fragment(&plan, &seen_from(config, path)?))?;
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        print!("{}", table(&document));
    }
    Ok(if args.strict && !document.holds() { Answer::No } else { Answer::Yes })
}

/// The path of the costs in the configuration: its name beside it, otherwise the whole path.
fn seen_from(config: &Path, costs: &Path) -> miette::Result<String> {
    let whole =
        |path: &Path| path.canonicalize().into_diagnostic().wrap_err_with(|| format!("{}", path.display()));
    let (config, costs) =
        (whole(config.parent().filter(|at| *at != Path::new("")).unwrap_or(Path::new(".")))?, whole(costs)?);
    let beside = costs.strip_prefix(&config).ok().filter(|path| path.components().count() == 1);
    Ok(beside.unwrap_or(&costs).display().to_string())
}

/// The break-evens for the terminal.
fn table(document: &Document) -> String {
    let core = document.processors.first().map_or("core", |one| &one.name);
    let mut out =
        format!("{}\nWhen a device is done earlier than the running core ({core}):\n", document.host);
    let mut of = ("", "");
    for one in &document.break_evens {
        if of != (&one.proposal, &one.device) {
            of = (&one.proposal, &one.device);
            out += &format!(
                "\n{}, {}\n  {:>6}  {:<14} {:<18} {:>9}  {:<44} {}\n",
                one.proposal,
                one.device,
                "load",
                "given",
                "the device pays",
                "measured",
                "there: core, device",
                "verdict"
            );
        }
        let given = match (one.packets, one.bytes) {
            (Some(packets), _) => packets_in_words(packets),
            (None, bytes) => format!("{} bytes", bytes.unwrap_or_default()),
        };
        let measured = one.measured.map_or("-".to_owned(), |at| format!("{at:.0}"));
        let load = format!("{:.0} %", 100.0 * one.load);
        let mut lines = one.sides.iter().map(|side| side_in_words(side, one.bytes.is_some()));
        out += &format!(
            "  {load:>6}  {given:<14} {:<18} {measured:>9}  {:<44} {}\n",
            one.answer(),
            lines.next().unwrap_or_default(),
            one.verdict.in_words()
        );
        lines.for_each(|line| out += &format!("  {:>6}  {:<14} {:<18} {:>9}  {line}\n", "", "", "", ""));
    }
    out
}

fn side_in_words(side: &Side, by_packets: bool) -> String {
    let at = if by_packets { packets_in_words(side.packets) } else { format!("{} bytes", side.bytes) };
    let time = |value: f64| units::plain(&units::seconds(value));
    let not = match side.verdict {
        Verdict::Holds => "",
        Verdict::Fails => ", against the prediction",
        Verdict::NotDecided => ", rounds differ",
    };
    format!("{at}: {}, {}{not}", time(side.measured.core_s), time(side.measured.device_s))
}

fn packets_in_words(packets: usize) -> String {
    units::plain(&units::counted(packets as u64, "packet", "packets"))
}
