//! `forebay-gateway-sim [SEEDS [FIRST [EVENTS [THREADS]]]]`: runs seeds, and says of each that breaks a rule what the
//! shortest list of faults is that breaks it.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_gateway_sim::{Plan, run, shrink};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let mut argument = |default| arguments.next().unwrap_or(default);
    let (seeds, first, events, threads) = (argument(500), argument(0), argument(2_000), argument(2));
    let (next, failed, all) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        break;
                    }
                    let plan = Plan::draw(seed, events);
                    match run(&plan) {
                        Ok(report) => drop(all.fetch_add(report.events, Ordering::Relaxed)),
                        Err(violation) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            println!("seed {seed}, {events} events: {violation}");
                            if let Some((plan, violation)) = shrink(&plan) {
                                println!("  with {} faults: {violation}", plan.faults.len());
                                plan.faults.iter().for_each(|fault| println!("    {fault:?}"));
                            }
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    println!("{seeds} seeds from {first}, {} events: {failed} broke a rule", all.into_inner());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
