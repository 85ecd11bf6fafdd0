//! `cargo run -p forebay-study --example run -- STUDY OUT [quick]`: a study without the command line.

use std::ops::ControlFlow;
use std::path::Path;

use forebay_study::{Made, Options, Study, keep, run};

fn main() -> miette::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let study = Study::find(&args[1])?;
    let quick = args.get(3).is_some_and(|word| word == "quick");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let findings =
        run(&study, Options { quick, threads, watch: Box::new(|_, _| ControlFlow::Continue(())) })?;
    for claim in &findings.claims {
        let holds = if claim.holds { "holds" } else { "DOES NOT HOLD" };
        println!("{:22} {holds}: {}\n    {}\n    {}", claim.id, claim.claim, claim.figure, claim.why);
    }
    println!("{} runs", findings.runs.len());
    keep(Path::new(&args[2]), &study, &findings, &Made::default()).expect("the directory can be written");
    Ok(())
}
