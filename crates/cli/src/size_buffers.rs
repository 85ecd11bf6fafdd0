//! `forebay size-buffers`: the smallest buffers for a loss ratio, and the maximum throughput of given ones.

use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use forebay_pipeline::Sizes;
use forebay_workbench::size_buffers::{Design, Method, Settings};
use miette::{IntoDiagnostic, miette};

use crate::request::{report, threads};
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};

/// Runs of each design where loss is found by simulation.
const RUNS: u16 = 5;

/// Arguments of `forebay size-buffers`.
#[derive(Args)]
pub struct SizeBuffersArgs {
    /// The scenario (TOML), model = "pipeline" or "inline-card". Its own buffers are used for the maximum throughput only.
    scenario: PathBuf,
    /// Maximum loss ratio.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: f64,
    /// Override a key, or remove it by `KEY=`: `arrivals.mean="80 us"`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Largest buffer to try, in packets.
    #[arg(long, value_name = "PACKETS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,
    /// Loss method [default: Markov chain if the model is solvable].
    #[arg(long)]
    by: Option<Way>,
    /// With `--by simulation`: number of runs per design. The loss ratio of a design is the upper bound of its 95 % confidence
    /// interval; without any loss it is 3 / packets. [default: 5]
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u16).range(2..))]
    runs: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Exact solution of the Markov chain.
    Chain,
    /// Several simulations.
    Simulation,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a ratio above 0 and below 1, such as 0.01".to_owned()),
    }
}

/// Runs the command; the answer is no if no buffers within the limit keep the bound.
pub fn run(args: &SizeBuffersArgs) -> miette::Result<Answer> {
    let design = Design::load(&args.scenario, &args.sets).map_err(report)?;
    let by = args.by.map(|way| match way {
        Way::Chain => Method::Chain,
        Way::Simulation => Method::Simulation,
    });
    if args.runs.is_some() && design.method(by) == Method::Chain {
        return Err(miette!(
            help = "leave out --runs, or add `--by simulation`",
            "--runs: the loss is found by solving the Markov chain, which makes no runs"
        ));
    }
    let (loss, buffer_max, runs) = (args.loss, args.most, args.runs.unwrap_or(RUNS).into());
    let settings = Settings { loss, buffer_max, by, runs, threads: threads(None) };
    let bar = Mutex::new(Progress::designs("trying buffers"));
    let watch = |tried: usize| {
        if let Ok(mut bar) = bar.lock() {
            bar.at(tried as u64);
        }
        progress::go_on()
    };
    let sizes = design.size_buffers(&settings, &watch).map_err(report)?;
    let stopped = progress::go_on().is_break();
    if let Ok(bar) = bar.into_inner() {
        bar.finish();
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&sizes).into_diagnostic()?);
    } else {
        print(&sizes, args.most);
    }
    Ok(match &sizes.smallest {
        Some(_) if stopped => Answer::Interrupted,
        Some(_) => Answer::Yes,
        None => Answer::No,
    })
}

fn print(sizes: &Sizes<'_>, most: u32) {
    // Without the last digits of the product.
    let percent = (1e14 * sizes.loss).round() / 1e12;
    match &sizes.smallest {
        Some(smallest) => {
            println!("smallest buffers found for a loss of at most {percent} %, by {}:", sizes.by);
            for one in &smallest.stages {
                println!("{:16} {:>6}", one.name, one.buffer);
            }
            let (total, loss, tried) = (smallest.total, 100.0 * smallest.loss_probability, smallest.tried);
            let most = if smallest.interval.is_some() { "at most " } else { "" };
            println!("{:16} {total:>6}   {most}{loss:.3e} % lost, {tried} designs tried", "all");
            if let (Some(packets), Some(lost), Some(one)) =
                (smallest.packets, smallest.lost, smallest.interval)
            {
                let [mean, half] = [one.mean, one.half_width].map(|share| 100.0 * share);
                println!(
                    "of {packets} packets {lost} lost: {mean:.3e} +- {half:.1e} %, with 95 % confidence"
                );
            }
        }
        None => {
            println!("no buffers of up to {most} packets per stage keep the loss at or below {percent} %")
        }
    }
    if let Some(load) = sizes.highest_load_pps {
        let payload = sizes.highest_load_bps.map(|bps| format!(", {:.1} Mbit/s of payload", bps / 1e6));
        let payload = payload.unwrap_or_default();
        println!(
            "maximum throughput of the file's buffers: {load:.1} packets/s, one every {:.3} us{payload}",
            1e6 / load
        );
    }
    for note in &sizes.notes {
        println!("note: {note}");
    }
}
