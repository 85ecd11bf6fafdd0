//! `forebay bench esp`: whole packets through the data plane, in memory.

use std::ops::ControlFlow;

use clap::Args;
use forebay_processors::Backend;
use forebay_terminal::Answer;
use forebay_wire::Family;
use miette::IntoDiagnostic;

use super::Which;
use crate::request::measured;
use forebay_measure::esp::{Line, Settings, measure};

/// Arguments of `forebay bench esp`.
#[derive(Args)]
#[command(
    after_help = "Example: forebay bench esp --proposal aes128gcm16 --size 64,1408 --direction both --json"
)]
pub struct EspArgs {
    /// Cipher suite, in swanctl notation.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Lengths of the cleartext IP packets, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "64,256,576,1408")]
    size: Vec<usize>,
    /// Direction: outbound, inbound, or both.
    #[arg(long, value_enum, default_value_t = Which::Both)]
    direction: Which,
    /// IPv6 in IPv6, in place of IPv4 in IPv4.
    #[arg(long)]
    ipv6: bool,
    /// Number of cores, which share one SA in each direction, in strict order.
    #[arg(long, default_value_t = 1)]
    cores: usize,
    /// Crypto library.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// Measuring time per figure, in seconds.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &EspArgs) -> miette::Result<Answer> {
    let settings = Settings {
        proposal: args.proposal.clone(),
        sizes: args.size.clone(),
        directions: args.direction.directions(),
        family: if args.ipv6 { Family::V6 } else { Family::V4 },
        cores: args.cores,
        backend: args.backend,
        seconds: args.seconds,
    };
    let mut first = true;
    let show = |line: &Line| {
        if !args.json {
            print_line(line, first, args);
        }
        first = false;
        ControlFlow::Continue(())
    };
    let document = measure(&settings, show).map_err(measured)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document).into_diagnostic()?);
    }
    Ok(Answer::Yes)
}

fn print_line(line: &Line, first: bool, args: &EspArgs) {
    if first {
        let version = if args.ipv6 { "IPv6" } else { "IPv4" };
        println!("{}, tunnel, {version} in {version}, {}", args.proposal, line.backend);
        println!(
            "{:>6}  {:<4} {:>12} {:>10} {:>8}  of the bare cipher's",
            "size", "", "Mpacket/s", "Gbit/s", "cycles"
        );
    }
    println!(
        "{:>6}  {:<4} {:>12.2} {:>10.2} {:>8.0}  {:.0} % of {:.2} Mpacket/s",
        line.size,
        line.direction,
        line.packets_per_s / 1e6,
        line.bits_per_s / 1e9,
        line.cycles_per_packet,
        100.0 * line.packets_per_s / line.limit_packets_per_s,
        line.limit_packets_per_s / 1e6,
    );
}
