//! `forebay size-buffers`: the smallest buffers for a loss ratio, and the maximum throughput of given ones.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay_models as models;
use forebay_pipeline::scenario::{CardScenario, Rules, Scenario};
use forebay_pipeline::size::{By, highest_load_with, smallest_buffers_with};
use forebay_pipeline::{Arrivals, Buffer, Pipeline, Sizes, SmallestBuffers};
use forebay_time::PS_PER_S;
use miette::{IntoDiagnostic, miette};
use serde_json::Value;

use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};

/// Arguments of `forebay size-buffers`.
#[derive(Args)]
pub struct SizeBuffersArgs {
    /// The scenario (TOML), model = "pipeline" or "inline-card". Its own buffers are used for the maximum throughput only.
    scenario: PathBuf,
    /// Maximum loss ratio.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    loss: f64,
    /// Override a key: `arrivals.mean="80 us"`.
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
    /// With `--by simulation`: number of runs per design; the upper end of the 95 % interval is used.
    #[arg(long, value_name = "RUNS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    runs: u16,
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
    let scenario = Design::load(args)?;
    let way = args.by.unwrap_or(scenario.way);
    let (by, word) = match way {
        Way::Chain => (By::Chain(models::Options::default()), "chain"),
        Way::Simulation => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            (By::Simulation { runs: args.runs.into(), threads }, "simulation")
        }
    };
    let pipeline = &scenario.pipeline;
    let mut notes = if way == Way::Chain { scenario.approximations.clone() } else { scenario.notes.clone() };
    let named = |error: models::Error| match (error, &scenario.file) {
        (models::Error::Cancelled, _) => progress::Interrupted.into(),
        // These two are of the designs tried, not of the file.
        (error @ (models::Error::TooLarge { .. } | models::Error::NotConverged { .. }), _) => {
            miette!(help = "lower `--most`, or use `--by simulation`", "{error}")
        }
        (error, Some(file)) => file.objection(&error).into(),
        (error, None) => miette!("{}: {error}", args.scenario.display()),
    };
    let mut bar = Progress::designs("trying buffers");
    let mut watch = |tried: usize| {
        bar.at(tried as u64);
        progress::go_on()
    };
    // What cannot be kept whatever the buffers is known without trying.
    let most = ceiling(pipeline, args.loss);
    let offered = offered(pipeline);
    let sized = if offered > most {
        notes.push(format!(
            "the offered {offered:.1} packets/s exceed the loss ratio with buffers of any size"
        ));
        None
    } else {
        smallest_buffers_with(pipeline, args.loss, args.most, by, &mut watch).map_err(named)?
    };
    let load = match pipeline.arrivals {
        Arrivals::Trace(_) => {
            notes.push(
                "the maximum throughput is not searched for, because the load of a trace is fixed".to_owned(),
            );
            Ok(None)
        }
        _ => highest_load_with(pipeline, args.loss, most, by, &mut watch),
    };
    bar.finish();
    let load = match load {
        Ok(load) => load,
        Err(error @ (models::Error::TooLarge { .. } | models::Error::NotConverged { .. })) => {
            notes.push(format!("the maximum throughput with the file's buffers is unknown: {error}"));
            None
        }
        Err(error) => return Err(named(error)),
    };
    let smallest = sized.map(|sized| SmallestBuffers {
        total: sized.buffers.iter().map(|&buffer| u64::from(buffer)).sum(),
        loss_probability: sized.loss,
        tried: sized.tried,
        stages: (pipeline.stages.iter().zip(&sized.buffers))
            .map(|(stage, &buffer)| Buffer { name: stage.name.clone(), buffer })
            .collect(),
    });
    let answer = if smallest.is_some() { Answer::Yes } else { Answer::No };
    let resolved = &scenario.resolved;
    let sizes = Sizes {
        schema: 1,
        by: word,
        loss: args.loss,
        smallest,
        highest_load_pps: load,
        highest_load_bps: scenario.payload.and_then(|bytes| Some(load? * 8.0 * f64::from(bytes))),
        notes,
        resolved,
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&sizes).into_diagnostic()?);
    } else {
        print(&sizes, args.most);
    }
    Ok(answer)
}

/// What is to be sized.
struct Design {
    pipeline: Pipeline,
    way: Way,
    notes: Vec<String>,
    approximations: Vec<String>,
    resolved: Value,
    /// Bytes that an inline card's packets carry.
    payload: Option<u32>,
    /// The file of a pipeline.
    file: Option<Scenario>,
}

impl Design {
    fn load(args: &SizeBuffersArgs) -> miette::Result<Design> {
        let text = forebay_scenario::load(&args.scenario)?;
        if forebay_scenario::model_of(&text, &args.sets).as_deref() == Some("inline-card") {
            let card = CardScenario::parse(&text, &args.scenario.display().to_string(), &args.sets)?;
            return Ok(Design {
                pipeline: card.pipeline,
                way: Way::Simulation,
                notes: card.notes,
                approximations: vec![
                    "all times are assumed exponential, without loss between the stages".to_owned(),
                ],
                resolved: card.resolved,
                payload: Some(card.payload),
                file: None,
            });
        }
        let scenario = Scenario::load(&args.scenario, &args.sets)?;
        Ok(Design {
            pipeline: scenario.simulated(),
            way: if scenario.rules == Rules::Markov { Way::Chain } else { Way::Simulation },
            notes: scenario.notes.clone(),
            approximations: scenario.approximations(),
            resolved: scenario.resolved.clone(),
            payload: None,
            file: Some(scenario),
        })
    }
}

fn offered(pipeline: &Pipeline) -> f64 {
    match &pipeline.arrivals {
        Arrivals::Constant(gap) | Arrivals::Exponential(gap) => PS_PER_S as f64 / gap.0.max(1) as f64,
        Arrivals::Trace(_) => 0.0,
    }
}

/// A load, in packets a second, of which more than `bound` is lost for certain: more than that cannot
/// be served. Somewhat above what the busiest unit or server can do.
fn ceiling(pipeline: &Pipeline, bound: f64) -> f64 {
    let time = |stage: &forebay_pipeline::Stage| {
        stage.time.mean(pipeline.packet_bytes).as_secs() + stage.setup.as_secs() / f64::from(stage.batch)
    };
    let own = (pipeline.stages.iter().filter(|stage| stage.server.is_none()))
        .map(|stage| time(stage) / f64::from(stage.units));
    let shared = pipeline.servers.iter().enumerate().map(|(index, server)| {
        let on = pipeline.stages.iter().filter(|stage| stage.server == Some(index));
        on.map(time).sum::<f64>() / f64::from(server.cores)
    });
    let busiest = own.chain(shared).fold(0.0, f64::max).max(1e-12);
    // Short runs may serve a few more than their share.
    1.1 / (busiest * (1.0 - bound))
}

fn print(sizes: &Sizes<'_>, most: u32) {
    let percent = 100.0 * sizes.loss;
    match &sizes.smallest {
        Some(smallest) => {
            println!("smallest buffers for a loss of at most {percent} %, by {}:", sizes.by);
            for one in &smallest.stages {
                println!("{:16} {:>6}", one.name, one.buffer);
            }
            let (total, loss, tried) = (smallest.total, 100.0 * smallest.loss_probability, smallest.tried);
            println!("{:16} {total:>6}   {loss:.4} % lost, {tried} designs tried", "all");
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
