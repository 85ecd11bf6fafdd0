//! Runs seeds: `forebay-gateway-sim [pairs|roles|clusters|shares] [SEEDS [FIRST [EVENTS [THREADS]]]]`; with such a word one gateway is
//! several machines. For each seed that breaks a rule, it prints the shortest list of faults that breaks it.
//! `forebay-gateway-sim planted [pairs|roles|clusters|shares] [SEEDS [EVENTS]]`, with the feature `planted`, prints for each planted fault the
//! first seed that finds it.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_gateway_sim::{Plan, run, shrink};
use forebay_planted::Kind;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let finds_planted = words.next_if(|word| word == "planted").is_some();
    let kind_of = |word: &str| match word {
        "pairs" => Some(Kind::Pair),
        "roles" => Some(Kind::Roles),
        "clusters" => Some(Kind::Cluster),
        "shares" => Some(Kind::Shares),
        _ => None,
    };
    let word = words.next_if(|word| kind_of(word).is_some());
    let kind = word.as_deref().and_then(kind_of).unwrap_or(Kind::Single);
    let draw = draw_of(kind);
    let mut numbers = words.map(|word| word.parse::<u64>().unwrap_or_else(|_| panic!("{word} is no number")));
    let mut number = |default| numbers.next().unwrap_or(default);
    if finds_planted {
        return planted(number(2_000), number(2_000), kind);
    }
    let (seeds, first, events, threads) = (number(500), number(0), number(2_000), number(2));
    let (next, failed, all) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let (take_overs, repeated) = (AtomicU64::new(0), AtomicU64::new(0));
    let (fewest, done) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
    let shows_progress = std::io::stderr().is_terminal();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                break;
            }
            let plan = draw(seed, events);
            match run(&plan) {
                Ok(report) => {
                    all.fetch_add(report.events, Ordering::Relaxed);
                    fewest.fetch_min(report.events, Ordering::Relaxed);
                    take_overs.fetch_add(report.take_overs, Ordering::Relaxed);
                    repeated.fetch_add(report.repeated, Ordering::Relaxed);
                }
                Err(violation) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    println!("seed {seed}, {events} events: {violation}");
                    explain(&plan);
                }
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if shows_progress && (done.is_multiple_of(100) || done == seeds) {
                eprint!("\r{done} of {seeds} seeds{}", if done == seeds { "\n" } else { "" });
            }
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (failed, all, fewest) = (failed.into_inner(), all.into_inner(), fewest.into_inner());
    println!("{seeds} seeds from {first}, {all} events, at least {fewest} a seed: {failed} broke a rule");
    let (take_overs, repeated) = (take_overs.into_inner(), repeated.into_inner());
    if take_overs > 0 {
        println!(
            "{take_overs} take-overs, {repeated} packets delivered by both machines of a gateway while they were cut off"
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Draws the plan of a seed with about so many events.
fn draw_of(kind: Kind) -> fn(u64, u64) -> Plan {
    match kind {
        Kind::Single => Plan::draw,
        Kind::Pair => Plan::draw_pair,
        Kind::Roles => Plan::draw_roles,
        Kind::Shares => Plan::draw_shares,
        Kind::Cluster | Kind::Store => Plan::draw_cluster,
    }
}

/// Says what the shortest list of faults is that breaks the same rule.
fn explain(plan: &Plan) {
    let Some((plan, violation)) = shrink(plan) else { return };
    println!("  with {} faults: {violation}", plan.faults.len());
    plan.faults.iter().for_each(|fault| println!("    {fault:?}"));
}

/// Says for each planted fault which of so many seeds finds it first, as a table in Markdown.
#[cfg(feature = "planted")]
#[allow(clippy::disallowed_methods)] // what is reported is the time that it takes
fn planted(seeds: u64, events: u64, kind: Kind) -> ExitCode {
    // A fault that panics is found, and needs no backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = 0;
    println!("| fault | seeds | rule | seconds |\n|---|---|---|---|");
    let draw = draw_of(kind);
    for &fault in forebay_planted::Fault::ALL.iter().filter(|fault| fault.kind() == kind) {
        forebay_planted::plant(Some(fault));
        let began = std::time::Instant::now();
        let find = |seed| run(&draw(seed, events)).err().map(|violation| (seed + 1, violation.rule));
        let found = (0..seeds).find_map(find);
        let seconds = began.elapsed().as_secs_f64();
        let text = fault.explanation();
        match found {
            Some((tried, rule)) => println!("| {text} | {tried} | {rule:?} | {seconds:.1} |"),
            None => {
                missed += 1;
                println!("| {text} | **not in {seeds}** | | {seconds:.1} |");
            }
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(feature = "planted"))]
fn planted(_seeds: u64, _events: u64, _kind: Kind) -> ExitCode {
    eprintln!(
        "planted faults are not compiled: cargo run -p forebay-gateway-sim --features planted -- planted"
    );
    ExitCode::FAILURE
}
