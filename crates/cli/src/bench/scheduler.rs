//! `forebay bench scheduler`: real processors of this machine behind the engine, by every policy.

mod table;

use std::path::PathBuf;

use clap::Args;
use forebay_terminal::progress::{self, Progress};
use forebay_terminal::{Answer, host};
use miette::{IntoDiagnostic, WrapErr};

use crate::request::measured;
use forebay_measure::scheduler::{Plan, Settings, keep, measure};
use forebay_workbench::results;

/// Arguments of `forebay bench scheduler`.
#[derive(Args)]
#[command(after_help = "\
Processors, the running core first:
  core         the core that runs the engine
  io           the same in its place, without crypto: it only moves packets
  worker       another core; repeat it for several
  ipsec-mb     a worker that uses this library
  aws-lc       a worker that uses this library
  card         an emulated card of 230 Mbit/s, or card:init=TIME+block=TIME+doorbell=TIME; all cards share one 66 MHz bus
  dpdk:DEVICE  a crypto device by DPDK; a virtual one as DEVICE+KEY=VALUE+... (build with `--features dpdk`)
`core` and `worker` use the fastest library available, or the one named after a colon.

Example: forebay bench scheduler --processor core,worker:aws-lc --proposal 3des-sha1 --size 64,1408 --json")]
pub struct SchedulerArgs {
    /// Cipher suite, in swanctl notation.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Lengths of the cleartext IP packets in bytes, `imix`, or a capture whose first 16384 packets give lengths and order.
    #[arg(long, value_delimiter = ',', value_name = "SIZE|imix|PCAP", default_value = "64,1408")]
    size: Vec<String>,
    /// Processors, the running core first (see below).
    #[arg(long, value_delimiter = ',', value_name = "NAME", default_value = "core,worker")]
    processor: Vec<String>,
    /// Another processor to compare with, measured by itself through the same engine; repeat it for several.
    #[arg(long, value_name = "NAME")]
    rival: Vec<String>,
    /// Number of SAs, which are equally likely.
    #[arg(long, default_value_t = 4)]
    sas: usize,
    /// Policies [default: all but `adaptive-alpha`; `size-threshold` wants exactly two processors]. The best static split is always measured.
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    policy: Vec<String>,
    /// Sliding windows in packets; 1 disables bundling.
    #[arg(long, value_delimiter = ',', value_name = "PACKETS", default_value = "1,16")]
    window: Vec<usize>,
    /// Measuring time per figure in seconds, over all rounds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Number of rounds; medians are reported.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Folder for report.html and figures.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

impl SchedulerArgs {
    fn settings(&self) -> Settings {
        Settings {
            proposal: self.proposal.clone(),
            sizes: self.size.clone(),
            processors: self.processor.clone(),
            rivals: self.rival.clone(),
            sas: self.sas,
            policies: self.policy.clone(),
            windows: self.window.clone(),
            seconds: self.seconds,
            rounds: self.rounds,
        }
    }
}

/// Runs the command.
pub fn run(args: &SchedulerArgs) -> miette::Result<Answer> {
    if let Some(dir) = &args.out {
        forebay_terminal::refuse_inputs(results::files(dir), &args.size)?;
    }
    let plan = Plan::new(&args.settings()).map_err(measured)?;
    if let Some(dir) = &args.out {
        let made = std::fs::create_dir_all(dir).into_diagnostic();
        made.wrap_err_with(|| format!("cannot make {}", dir.display()))?;
    }
    let mut bar = Progress::runs("measuring");
    let watch = |done, planned| {
        bar.of(planned);
        bar.at(done);
        progress::go_on()
    };
    let document = measure(&plan, &host::model(), watch);
    bar.finish();
    let document = document.map_err(measured)?;
    if let Some(dir) = &args.out {
        keep(dir, &document).map_err(measured)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    } else {
        print!("{}", table::table(&document, progress::is_coloured()));
    }
    Ok(Answer::Yes)
}
