//! The simulator's side: the same host as a scenario, kept so that anybody can run it again.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use forebay_crypto_card::CardConfig;
use forebay_links::output;
use forebay_sim::{Columns, Options, Scenario};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, WrapErr, miette};

use super::compare::{Figures, Processor};
use super::emulated::{Emulated, WINDOW_TIMEOUT, percentiles};
use super::packets::Plain;
use super::settings::Settings;
use crate::Error;

/// Runs the packets as the engine had them; leaves `scenario.toml` and `packets.csv` in `dir`.
pub fn run(settings: &Settings, dir: &Path, packets: &[Plain], engine: &Emulated) -> Result<Figures, Error> {
    write(settings, dir, packets, engine)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", dir.display()))?;
    let scenario = Scenario::load(&dir.join("scenario.toml"), &[])?;
    let options = Options { columns: true, ..Options::default() };
    let outcome = forebay_sim::run(&scenario, options).map_err(|error| miette!("the simulator: {error}"))?;
    let figures = outcome.figures;
    let costs = scenario.processors.iter().map(|one| one.config.cost);
    let processors = figures.processors.iter().zip(costs).map(|(one, cost)| Processor {
        name: one.name.clone(),
        packets: one.packets,
        load: one.load,
        cost_s: (cost.init.as_secs(), cost.block.as_secs()),
    });
    let mut totals = outcome.columns.map(|columns| in_order(&columns)).unwrap_or_default();
    Ok(Figures {
        elapsed_s: figures.elapsed_s,
        packets: figures.packets,
        throughput_bps: figures.throughput_bps,
        processors: processors.collect(),
        processing_mean_s: figures.processing_latency.mean_s,
        total_mean_s: totals.iter().map(|total| total.as_secs()).sum::<f64>() / totals.len().max(1) as f64,
        total_s: percentiles(&mut totals),
        packets_per_job: figures.packets_per_job,
        real: None,
    })
}

/// Total latencies with the release in order that the engine has: no packet before those of its SA that
/// came before it.
fn in_order(columns: &Columns) -> Vec<Duration> {
    let sas = columns.sa.iter().max().map_or(0, |&last| last as usize + 1);
    let mut released = vec![0; sas];
    let packets = columns.sa.iter().zip(&columns.arrived).zip(&columns.completed);
    packets
        .map(|((&sa, &arrived), &completed)| {
            let at = &mut released[sa as usize];
            *at = completed.max(*at);
            Time(*at).since(Time(arrived))
        })
        .collect()
}

fn write(settings: &Settings, dir: &Path, packets: &[Plain], engine: &Emulated) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut csv = "size,time,sa\n".to_owned();
    for (plain, sealed) in packets.iter().zip(&engine.sealed) {
        let (s, ps) = (plain.at.0 / 1_000_000_000_000, plain.at.0 % 1_000_000_000_000);
        let _ = writeln!(csv, "{sealed},{s}.{ps:012},{}", plain.sa);
    }
    output::write(dir.join("packets.csv"), csv)?;
    output::write(dir.join("scenario.toml"), scenario(settings, engine))
}

fn scenario(settings: &Settings, engine: &Emulated) -> String {
    let card = CardConfig::paper_230_mbit();
    let ps = |time: Duration| format!("\"{} ps\"", time.0);
    let timeout =
        if settings.window > 1 { format!("timeout = {}\n", ps(WINDOW_TIMEOUT)) } else { String::new() };
    format!(
        "# Made by validate-model. Sizes are those of sealed packets; the core's cost is what the engine measured.\n\
         model = \"host\"\n\n[traffic]\nsource = \"file\"\npath = \"packets.csv\"\narrivals = \"stamps\"\n\
         overhead = 0\n\n[bus]\nclock = \"66 MHz\"\nwidth = 4\naddress_cycles = 1\n\n\
         [[processor]]\nname = \"core\"\nkind = \"cpu\"\ninit = {}\nblock = {}\nalpha = {:?}\nqueue = {queue}\n\n\
         [[processor]]\nname = \"card\"\nkind = \"accelerator\"\ncount = {}\ninit = {}\nblock = {}\n\
         queue = {queue}\nwrite_buffer = {}\nprefetch = {}\n\n[scheduler]\nwindow = {}\n{timeout}",
        ps(engine.core.init),
        ps(engine.core.block),
        settings.alpha,
        settings.cards,
        ps(card.init),
        ps(card.block),
        settings.write_buffer,
        settings.prefetch,
        settings.window,
        queue = settings.queue,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_waits_for_those_of_its_sa() {
        let columns = Columns {
            sa: vec![0, 0, 1, 0],
            arrived: vec![0, 10, 20, 30],
            completed: vec![100, 50, 60, 130],
            ..Columns::default()
        };
        assert_eq!(in_order(&columns), [100, 90, 40, 100].map(Duration));
    }
}
