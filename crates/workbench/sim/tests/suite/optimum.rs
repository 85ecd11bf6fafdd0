//! No rule beats the bounds, and the exhaustive optimum is what a hand finds.

use std::path::Path;

use forebay_sim::{Options, Scenario, bound, optimum, run};
use proptest::prelude::*;

fn scenario(processors: &str, scheduler: &str, traffic: &str) -> Scenario {
    let text = format!("model = \"host\"\n[traffic]\n{traffic}\n{processors}\n[scheduler]\n{scheduler}\n");
    Scenario::parse(&text, "test", &[], Path::new("")).unwrap_or_else(|errors| panic!("{errors}"))
}

const CPU: &str = "[[processor]]\nkind = \"cpu\"\ninit = \"2 us\"\nblock = \"1 us\"\n";

#[test]
fn two_packets_on_two_processors_by_hand() {
    // 16 bytes each, at once: the CPU takes 3 us, the second CPU 5 us. One each: 5 us; both on the first: 6 us.
    let other = "[[processor]]\nname = \"slow\"\nkind = \"cpu\"\ninit = \"4 us\"\nblock = \"1 us\"\n";
    let traffic = "source = \"fixed\"\nvalue = 16\noverhead = 0\npackets = 2\nrate = \"1000 Tbit/s\"";
    let found = optimum(&scenario(&format!("{CPU}{other}"), "", traffic), 1).unwrap();
    assert!((found.elapsed_s - 5e-6).abs() < 1e-11, "{found:?}");
    // 3 and 5 in parallel: mean 4; 3 and 6 on the first alone: 4.5.
    assert!((found.total_latency_mean_s - 4e-6).abs() < 1e-11, "{found:?}");
    // Half of all weight on each: 4 * 2 / 2 is no better than the split 2 : 1 by speed, 30/8 us.
    let relaxed = bound(&scenario(&format!("{CPU}{other}"), "", traffic), 1);
    assert!((3.7e-6..=3.7501e-6).contains(&relaxed.elapsed_s), "{relaxed:?}");
}

#[test]
fn large_cases_and_bundles_have_no_optimum() {
    let traffic = "source = \"fixed\"\nvalue = 16\npackets = 9\nrate = \"1 Gbit/s\"";
    assert_eq!(optimum(&scenario(CPU, "", traffic), 1), None);
    let few = "source = \"fixed\"\nvalue = 16\npackets = 3\nrate = \"1 Gbit/s\"";
    assert_eq!(optimum(&scenario(CPU, "window = 2", few), 1), None);
    assert!(optimum(&scenario(CPU, "", few), 1).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn relaxation_below_optimum_below_every_policy(
        seed in 0u64..1000,
        packets in 1u64..=8,
        rate in 1u64..2_000,
        policy in prop::sample::select(vec!["finish-time", "round-robin", "shortest-queue", "size-threshold"]),
        init in 1u64..20,
        cards in 1u64..=2,
    ) {
        let buses = "[[bus]]\nname = \"a\"\n[[bus]]\nname = \"b\"\n";
        let card = |name: &str, bus: &str| format!(
            "[[processor]]\nname = \"{name}\"\nkind = \"accelerator\"\nbus = \"{bus}\"\ninit = \"{init} us\"\nblock = \"440 ns\"\n");
        let more = if cards == 2 { card("d", "b") } else { String::new() };
        let processors = format!("{buses}{CPU}{}{more}", card("c", "a"));
        let traffic = format!("source = \"uniform\"\nmin = 0\nmax = 1500\npackets = {packets}\nrate = \"{rate} Mbit/s\"");
        let scenario = scenario(&processors, &format!("policy = \"{policy}\""), &traffic);
        let outcome = run(&scenario, Options { seed: Some(seed), ..Options::default() }).unwrap();
        let (relaxed, exact) = (bound(&scenario, seed), optimum(&scenario, seed).unwrap());
        let below = |less: f64, more: f64| less <= more * (1.0 + 1e-6);
        prop_assert!(below(relaxed.elapsed_s, exact.elapsed_s), "{relaxed:?} {exact:?}");
        prop_assert!(below(exact.elapsed_s, outcome.figures.elapsed_s));
        prop_assert!(below(relaxed.total_latency_mean_s, exact.total_latency_mean_s));
        prop_assert!(below(exact.total_latency_mean_s, outcome.figures.total_latency.mean_s));
    }

    #[test]
    fn relaxation_below_every_run(
        seed in 0u64..1000,
        window in 1u64..20,
        cards in 1u64..5,
        write_buffer in 0u64..2,
        prefetch in 0u64..2,
        full_duplex in any::<bool>(),
    ) {
        let processors = format!(
            "[bus]\nbandwidth = \"600 Mbit/s\"\ntransfer_overhead = \"1 us\"\nfull_duplex = {full_duplex}\n{CPU}\
             [[processor]]\nkind = \"accelerator\"\ncount = {cards}\nwrite_buffer = {write_buffer}\n\
             prefetch = {prefetch}\ninit = \"3 us\"\nblock = \"440 ns\"\n");
        let traffic = "source = \"paper\"\nsas = 5\npackets = 400\nrate = \"1 Gbit/s\"";
        let scenario = scenario(&processors, &format!("window = {window}"), traffic);
        let outcome = run(&scenario, Options { seed: Some(seed), ..Options::default() }).unwrap();
        let relaxed = bound(&scenario, seed);
        prop_assert!(relaxed.elapsed_s <= outcome.figures.elapsed_s * (1.0 + 1e-6),
            "{relaxed:?} {}", outcome.figures.elapsed_s);
        prop_assert!(relaxed.throughput_bps >= outcome.figures.throughput_bps * (1.0 - 1e-6));
    }

    #[test]
    fn relaxation_below_every_run_with_batches(
        seed in 0u64..1000,
        window in 1u64..4,
        (burst, lanes, cards) in (2u64..64, 1u64..32, 1u64..4),
        each in any::<bool>(),
        polls in any::<bool>(),
    ) {
        let answers = if each { "each" } else { "batch" };
        let (moves, poll) = if polls { ("move = \"1 us\"\n", "poll = true\n") } else { ("", "") };
        let processors = format!(
            "{CPU}lanes = 4\n{moves}[[processor]]\nkind = \"accelerator\"\ncount = {cards}\nlanes = {lanes}\n\
             packet = \"100 ns\"\nsubmit = \"1 us\"\nwake = \"2 us\"\ninit = \"3 us\"\nblock = \"440 ns\"\n\
             answers = \"{answers}\"\n");
        let traffic = "source = \"paper\"\nsas = 5\npackets = 400\nrate = \"10 Gbit/s\"";
        let scenario = scenario(&processors, &format!("window = {window}\nburst = {burst}\n{poll}"), traffic);
        let outcome = run(&scenario, Options { seed: Some(seed), ..Options::default() }).unwrap();
        let relaxed = bound(&scenario, seed);
        prop_assert!(relaxed.elapsed_s <= outcome.figures.elapsed_s * (1.0 + 1e-6),
            "{relaxed:?} {}", outcome.figures.elapsed_s);
        prop_assert!(relaxed.total_latency_mean_s <= outcome.figures.total_latency.mean_s * (1.0 + 1e-6));
    }
}
