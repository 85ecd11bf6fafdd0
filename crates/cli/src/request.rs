//! What the commands of the workbench share: sweeps, threads, the origin of pages, and errors in the words of the options.

use forebay_page::Made;
use forebay_terminal::progress::Interrupted;
use forebay_workbench::{Axis, Error, Grid};
use miette::miette;

use forebay_measure as measured;

/// The values of `--sweep`.
pub fn grid(sweeps: &[String]) -> miette::Result<Grid> {
    let axis = |text: &String| {
        Axis::parse(text).ok_or_else(|| {
            miette!(
                help = "write --sweep processor.card.count=1,2,4",
                "--sweep {text}: no values, or an empty one"
            )
        })
    };
    Ok(Grid { axes: sweeps.iter().map(axis).collect::<miette::Result<_>>()? })
}

/// A figure with so many decimals, or a dash where there is none.
pub fn decimals(value: f64, decimals: usize) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.decimals$}") }
}

/// The threads for several runs: as many as were asked for, or one for each core.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// What a page says of its making.
pub fn made() -> miette::Result<Made> {
    Ok(Made {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: forebay_terminal::host::model(),
        at: forebay_terminal::host::timestamp()?,
    })
}

/// An error of a measurement.
pub fn measured(error: measured::Error) -> miette::Report {
    match error {
        measured::Error::Cancelled => Interrupted.into(),
        measured::Error::Setting { message, hint } if hint.is_empty() => miette!("--{message}"),
        measured::Error::Setting { message, hint } => miette!(help = hint, "--{message}"),
        measured::Error::Failed(report) => report,
        error => error.into(),
    }
}

/// An error of the workbench's library.
pub fn report(error: Error) -> miette::Report {
    match error {
        Error::Cancelled => Interrupted.into(),
        Error::Input(errors) => errors.into(),
        Error::Firmware(report) => report,
        Error::Design(error @ forebay_models::Error::Unshowable { .. }) => miette!(
            help = "raise `duration` by `--set duration=...` or `--runs`; a pipeline with `overflow = \"block\"` is solved exactly by `--by chain`",
            "{error}"
        ),
        Error::Design(error @ forebay_models::Error::BatchAboveBuffers { .. }) => {
            miette!(
                help = "raise `--most`, or lower `batch_min` (of a card `interrupt_packets` or `transfer_packets`)",
                "{error}"
            )
        }
        Error::Design(error) => miette!(help = "lower `--most`, or use `--by simulation`", "{error}"),
        Error::Unbounded => miette!(
            help = "set `--latency \"1 ms\"` (for the 99 % quantile) without `--loss`, or limit the input queue with `--set scheduler.input=1000` (not with [cores])",
            "{error}"
        ),
        error => error.into(),
    }
}
