//! `forebay demo`: what the scheduler gains on the cores of this machine, then a real capture through two gateways
//! and back, compared byte by byte.
//!
//! ```text
//! capture --> gateway A: seal --> UDP on loopback --> gateway B: open --> compare with the capture
//!             the core that runs it, and              the same three
//!             two emulated 230 Mbit/s cards
//! ```

#[macro_use]
extern crate forebay_terminal;

mod compare;
mod figures;
mod gain;
mod gateways;
mod opening;
mod report;
mod sealing;
mod table;
mod traffic;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use clap::Args;
use forebay_engine::Clock;
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};

use figures::DemoFigures;
use forebay_processors::Backend;
use forebay_processors::Costs;
use forebay_terminal::{Answer, host, progress};

/// What is written into the folder.
const WRITTEN: [&str; 6] =
    ["report.html", "figures.json", "sealed.pcapng", "esp_sa", "sas-a.toml", "sas-b.toml"];

/// Arguments of `forebay demo`.
#[derive(Args)]
pub struct DemoArgs {
    /// Capture to send instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Folder for sealed.pcapng, esp_sa, the SA files and report.html.
    #[arg(long, value_name = "DIR", default_value = "forebay-demo")]
    out: PathBuf,
    /// Offered cleartext traffic in Mbit/s.
    #[arg(long, default_value_t = 600.0)]
    rate: f64,
    /// Number of times the capture is sent.
    #[arg(long, default_value_t = 100)]
    repeat: u32,
    /// Cipher suite of the tunnel, in swanctl notation.
    #[arg(long, default_value = "aes128gcm16")]
    proposal: String,
    /// Factor on the predicted finish time of the cores; higher values give more packets to the cards.
    #[arg(long, default_value_t = 400.0)]
    alpha: f64,
    /// Sliding window in packets; 1 disables bundling.
    #[arg(long, default_value_t = 8)]
    window: usize,
    /// Crypto library of the cores.
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,
    /// File of measured costs (`forebay bench processors --save`) [default: costs are measured at start].
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    #[command(flatten)]
    gain: gain::GainArgs,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// What both gateways share while they run.
struct Shared {
    clock: Clock,
    /// Set when one side cannot go on, or the user asks.
    stop: AtomicBool,
    /// Set when everything has been sent.
    sent_all: AtomicBool,
    /// Datagrams sent and received, so that the sender never overruns the socket's buffer: the
    /// demo shows the gateways, not how loopback drops.
    sent: AtomicU64,
    received: AtomicU64,
    /// Packets released by the opening gateway, for the progress display.
    released: AtomicU64,
}

/// Runs the command.
///
/// # Errors
/// A wrong argument, a capture that cannot be read, or what keeps the gateways from running.
pub fn run(args: &DemoArgs) -> miette::Result<Answer> {
    check(args)?;
    let written = WRITTEN.map(|name| args.out.join(name));
    forebay_terminal::refuse_inputs(written, args.capture.iter().chain(&args.costs))?;
    let comparison = args.gain.comparison()?;
    let capture = traffic::load(args.capture.as_deref())?;
    std::fs::create_dir_all(&args.out)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot make {}", args.out.display()))?;
    let costs = args.costs.as_deref().map(Costs::load).transpose()?.unwrap_or_default();
    let gains =
        comparison.map(|comparison| gain::measure(&comparison, &capture)).transpose()?.unwrap_or_default();
    let clock = Clock::start();
    let files = gateways::write_sa_files(&args.out, &args.proposal)?;
    let sealing = gateways::sealing(args, &files, &costs, clock)?;
    let opening = gateways::opening(args, &files, &costs, clock)?;
    let started = host::timestamp()?;
    let shared = Shared {
        clock,
        stop: AtomicBool::new(false),
        sent_all: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        released: AtomicU64::new(0),
    };
    let (near, far) = traffic::loopback_pair()?;
    let (expected, arriving) = mpsc::channel();
    let total = u64::from(args.repeat) * capture.packets.len() as u64;
    let (sealed, opened) = std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let result = opening::run(opening, far, &capture, arriving, &shared);
            shared.stop.store(true, Ordering::Relaxed);
            result
        });
        let shown = (progress::is_shown() && !args.json).then(|| scope.spawn(|| show(&shared, total)));
        let sealed = sealing::run(args, sealing, near, &capture, expected, &shared);
        if sealed.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.sent_all.store(true, Ordering::Release);
        let opened = opener.join().unwrap_or_else(|_| Err(miette!("the opening gateway failed")));
        if let Some(shown) = shown {
            let _ = shown.join();
        }
        (sealed, opened)
    });
    let figures = DemoFigures {
        schema: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host::model(),
        started,
        proposal: args.proposal.clone(),
        scheduler: format!("finish-time, alpha {} on the cores, window {}", args.alpha, args.window),
        capture: capture.figures(),
        gains,
        ..DemoFigures::default()
    };
    let figures = compare::combine(figures, sealed?, opened?, total, &capture);
    finish(args, &figures)
}

fn check(args: &DemoArgs) -> miette::Result<()> {
    let bad = |what: String| Err(miette!("{what}"));
    if !(1.0..=100_000.0).contains(&args.rate) {
        return bad(format!("--rate {}: expected 1 to 100000 Mbit/s", args.rate));
    }
    if !(1..=100_000).contains(&args.repeat) {
        return bad(format!("--repeat {}: expected 1 to 100000", args.repeat));
    }
    if !(1..=64).contains(&args.window) {
        return bad(format!("--window {}: expected 1 to 64 packets", args.window));
    }
    if !(1.0..=1e6).contains(&args.alpha) {
        return bad(format!("--alpha {}: expected 1 to 1000000", args.alpha));
    }
    Ok(())
}

/// The live display: packets through, rate, time left.
fn show(shared: &Shared, total: u64) {
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style =
        "gateway A -> UDP -> gateway B [{bar:30}] {human_pos} of {human_len} packets, {per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    while !shared.stop.load(Ordering::Relaxed) {
        bar.set_position(shared.released.load(Ordering::Relaxed));
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

fn finish(args: &DemoArgs, figures: &DemoFigures) -> miette::Result<Answer> {
    let json = serde_json::to_string_pretty(figures).into_diagnostic()?;
    for (name, text) in [("report.html", report::render(figures)), ("figures.json", json.clone())] {
        let path = args.out.join(name);
        forebay_links::output::write(&path, text)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        println!("{json}");
    } else {
        print!("{}", table::table(figures, progress::is_coloured(), 80));
        let out = args.out.display();
        println!("\nFiles in {out}:");
        println!("  report.html     the pictures; open it in a browser");
        println!("  sealed.pcapng   what crossed the wire (the first pass of the capture)");
        println!("  esp_sa          its keys for Wireshark (Preferences, Protocols, ESP)");
        println!(
            "  sas-*.toml      the gateways' SAs: forebay open --sas {out}/sas-b.toml {out}/sealed.pcapng -o plain.pcap"
        );
    }
    let c = &figures.comparison;
    let good = c.different + c.missing + c.out_of_order + c.duplicated == 0 && c.identical > 0;
    Ok(if good { Answer::Yes } else { Answer::No })
}

/// The longest that either side waits for the last packets.
const LAST_WORDS: Duration = Duration::from_millis(5_000);
