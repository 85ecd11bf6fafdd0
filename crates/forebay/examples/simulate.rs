//! Which policy suits a host with a CPU and two cards? Each is simulated with the same packets, in virtual time.

use std::ops::ControlFlow;
use std::path::Path;

use forebay::simulation::{Model, Options, Outcome, Way};

const HOST: &str = r#"
model = "host"
seed = 1
[traffic]
source = "imix"
packets = 20_000
rate = "400 Mbit/s"
[bus]
clock = "66 MHz"
width = 4
[[processor]]
name = "cpu"
kind = "cpu"
init = "1 us"
throughput = "110 Mbit/s"
throughput_size = 640
[[processor]]
name = "card"
kind = "accelerator"
count = 2
init = "1 us"
block = "440 ns"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:15} {:>10} {:>12} {:>12}", "policy", "Mbit/s", "mean us", "99 % us");
    for policy in ["finish-time", "round-robin", "shortest-queue", "single"] {
        let sets = [format!("scheduler.policy={policy}")];
        let model = Model::parse(HOST, "host.toml", &sets, Path::new("."))?;
        let ran = model.run(Way::Simulation, &Options::default(), &|_| ControlFlow::Continue(()))?;
        // Typed figures; `document` is the JSON of `forebay simulate --json`.
        let Outcome::Host(host) = &ran.outcome else { return Err("not a host".into()) };
        let (throughput, latency) = (host.figures.throughput_bps / 1e6, host.figures.total_latency);
        println!(
            "{policy:15} {throughput:>10.1} {:>12.1} {:>12.1}",
            latency.mean_s * 1e6,
            latency.p99_s * 1e6
        );
        assert_eq!(model.document(&ran.outcome)["packets"], 20_000);
    }
    Ok(())
}
