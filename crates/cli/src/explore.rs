//! `forebay explore`: firmware on simulated cores.

mod compare;
mod sweep;

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use forebay_embedded::{Figures, Setup, packets};
use forebay_page::units;
use forebay_terminal::Answer;
use forebay_terminal::progress::{self, Progress};
use forebay_workbench::{explore, results};
use miette::{IntoDiagnostic, miette};

use crate::request::{made, report};

/// What to explore.
#[derive(Subcommand)]
pub enum Explore {
    /// Run one configuration; report cycles by function, kind of instruction and cause.
    #[command(after_help = "Example: forebay explore run core.toml --set icache.size='4 KiB' --out run")]
    Run(RunArgs),
    /// Run many configurations in parallel; report speed against area.
    #[command(
        after_help = "Example: forebay explore sweep core.toml --sweep icache.size=1024,4096 --sweep memory.width=32,128"
    )]
    Sweep(sweep::SweepArgs),
    /// Compare runs by their output directories.
    #[command(after_help = "Example: forebay explore compare plain custom")]
    Compare(compare::CompareArgs),
}

/// Arguments of `forebay explore run`.
#[derive(Args)]
pub struct RunArgs {
    /// The configuration (TOML), model = "embedded".
    config: PathBuf,
    /// Override a key, or remove it by `KEY=`: `dcache.ways=2`, `memory.width=128`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// Output directory for report.html, figures.json, manifest.json, stacks.txt and the output image.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Capture file (raw IP) for the packets that the firmware passes.
    #[arg(long, value_name = "PCAP")]
    packets: Option<PathBuf>,
}

impl Explore {
    /// Runs the command.
    pub fn run(&self) -> miette::Result<Answer> {
        match self {
            Explore::Run(args) => run(args),
            Explore::Sweep(args) => sweep::run(args),
            Explore::Compare(args) => compare::run(args),
        }
    }
}

/// Work on `total` runs with a bar, until the user interrupts.
fn with_bar<T>(total: usize, work: impl FnOnce(&mut dyn FnMut(usize) -> ControlFlow<()>) -> T) -> T {
    let mut bar = Progress::runs("exploring");
    bar.of(total as u64);
    let worked = work(&mut |done| {
        bar.at(done as u64);
        progress::go_on()
    });
    bar.finish();
    worked
}

fn run(args: &RunArgs) -> miette::Result<Answer> {
    let written = args.out.iter().flat_map(|dir| results::files(dir)).chain(args.packets.clone());
    forebay_terminal::refuse_inputs(written, forebay_scenario::files_named(&args.config, &args.sets))?;
    let setup = Setup::load(&args.config, &args.sets)?;
    let mut got = None;
    let ran = with_bar(1, |look| {
        explore::run_all(std::slice::from_ref(&setup), 1, look, |_, figures, done| {
            got = Some((figures, done));
            Ok(())
        })
    });
    ran.map_err(report)?;
    let Some((figures, done)) = got else { return Err(progress::Interrupted.into()) };
    if !done.printed.is_empty() {
        eprintln!("{}", done.printed.trim_end());
    }
    if let Some(path) = &args.packets {
        packets::write(path, &done.output).map_err(|error| miette!(help = error.help.clone(), "{error}"))?;
    }
    if let Some(dir) = &args.out {
        let request = results::explore::Request { config: &args.config, sets: &args.sets, sweeps: &[] };
        let kept = results::explore::keep(dir, request, &setup, &figures, &done.output, &made()?);
        kept.map_err(report)?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&figures.document(&setup)).into_diagnostic()?);
    } else {
        print(&figures);
        setup.notes.iter().for_each(|note| println!("note: {note}"));
    }
    Ok(answer(&figures))
}

/// Whether the firmware is content.
fn answer(figures: &Figures) -> Answer {
    if figures.code != 0 {
        eprintln!("the firmware exited with code {}", figures.code);
    }
    if figures.dropped > 0 {
        eprintln!("the firmware dropped {} of {} packets", figures.dropped, figures.packets);
    }
    if figures.code == 0 { Answer::Yes } else { Answer::No }
}

fn print(figures: &Figures) {
    println!(
        "{} cycles, {} instructions, {:.3} cycles each; {:.1} kGE (estimate)",
        units::count(figures.cycles),
        units::count(figures.instructions),
        figures.cpi,
        figures.area_kge
    );
    if figures.packets > 0 {
        println!(
            "{} packets, {} bytes: {:.1} cycles per packet, {:.2} per byte",
            figures.packets, figures.bytes, figures.cycles_per_packet, figures.cycles_per_byte
        );
    }
    if let (Some(joules), Some(watts)) = (figures.energy_per_packet_j, figures.average_power_w) {
        println!("{:.3} nJ per packet, {:.3} mW in the mean", 1e9 * joules, 1e3 * watts);
    }
    let percent = |cycles: u64| 100.0 * cycles as f64 / figures.cycles.max(1) as f64;
    println!("\n{:24} {:>16} {:>8}", "cause", "cycles", "share");
    for one in figures.causes.iter().filter(|one| one.cycles > 0) {
        println!("{:24} {:>16} {:>6.1} %", one.name, one.cycles, percent(one.cycles));
    }
    println!("\n{:24} {:>16} {:>8} {:>14}  side", "group", "cycles", "share", "instructions");
    for one in figures.groups.iter().filter(|one| one.cycles > 0) {
        let share = percent(one.cycles);
        println!("{:24} {:>16} {share:>6.1} % {:>14}  {}", one.name, one.cycles, one.instructions, one.side);
    }
    println!("\n{:24} {:>16} {:>8} {:>14}", "function", "cycles", "share", "instructions");
    for one in figures.functions.iter().take(16) {
        let share = percent(one.cycles);
        println!("{:24} {:>16} {share:>6.1} % {:>14}", one.name, one.cycles, one.instructions);
    }
}
