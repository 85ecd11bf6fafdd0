//! SAs that are bound to CPUs: what is read, and what is said where two are bound to one or none is left for the others.

mod common;

use common::*;
use forebay_sas::{SasFile, parse};

fn right(text: &str) -> SasFile {
    parse(text, "SAS.toml").unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

fn wrong(text: &str) -> String {
    outcome(text.as_bytes(), &[]).map(|file| panic!("accepted: {file:?}")).unwrap_err()
}

/// Outbound SAs between the same two addresses, with these lines each.
fn outbound(sas: &[&str]) -> String {
    let one = |(n, more): (usize, &&str)| named(&format!("sa-{n}"), "out", 1 + n as u32, more);
    sas.iter().enumerate().map(one).collect()
}

#[test]
fn one_sa_for_each_cpu_and_a_fallback_sa() {
    let inbound = named("in-0", "in", 9, "cpu = 0") + &named("in-0-old", "in", 8, "cpu = 0");
    let file = right(&(outbound(&["", "cpu = 0", "cpu = 255"]) + &inbound));
    let cpus: Vec<_> = file.entries.iter().map(|entry| entry.config.cpu).collect();
    assert_eq!(cpus, [None, Some(0), Some(255), Some(0), Some(0)]);
    assert!(file.warnings.is_empty());
    // For other traffic, and in other policies, there may be another.
    let other = "cpu = 0\nremote_ts = [\"10.9.0.0/16\"]";
    right(&outbound(&["", "cpu = 0", other, "remote_ts = [\"10.9.0.0/16\"]"]));
}

#[test]
fn a_number_that_no_worker_thread_has_is_refused() {
    for (cpu, found) in [("256", "256"), ("-1", "-1"), ("\"x\"", "x")] {
        let text = wrong(&outbound(&["", &format!("cpu = {cpu}")]));
        assert_says(&text, &["`cpu`", found]);
    }
}

#[test]
fn two_sas_of_one_cpu_are_refused_with_both_places() {
    let text = wrong(&outbound(&["", "cpu = 1", "cpu = 0", "cpu = 1"]));
    assert_says(
        &text,
        &[
            "CPU 1 already has SA `sa-1` for the same traffic",
            "SAS.toml:36",
            "used again here",
            "first used here",
            "change `cpu` of one of the two",
        ],
    );
    assert_eq!(text.matches("already has").count(), 1);
    // In two policies it is one fault; in one policy each they are none.
    let policy = |sas: &str| format!("[[policy]]\ndirection = \"out\"\naction = \"protect\"\nsa = [{sas}]\n");
    let sas = outbound(&["", "cpu = 1", "cpu = 1"]);
    let both = sas.clone() + &policy("\"sa-0\", \"sa-1\", \"sa-2\"").repeat(2);
    assert_eq!(wrong(&both).matches("already has").count(), 1);
    right(&(sas + &policy("\"sa-0\", \"sa-1\"") + &policy("\"sa-2\", \"sa-0\"")));
}

#[test]
fn packets_of_other_cpus_need_a_fallback_sa() {
    let hint = ["no fallback SA for the same traffic", "packets of other CPUs have no SA", "without `cpu`"];
    assert_says(&wrong(&outbound(&["cpu = 0"])), &hint);
    // One for other traffic is none.
    let text = wrong(&outbound(&["remote_ts = [\"10.9.0.0/16\"]", "cpu = 0"]));
    assert_says(&text, &["SA `sa-1` is bound to a CPU", hint[0]]);
    // Nor is one of another policy.
    let policy = |sa: &str| format!("[[policy]]\ndirection = \"out\"\naction = \"protect\"\nsa = \"{sa}\"\n");
    assert_says(&wrong(&(outbound(&["", "cpu = 0"]) + &policy("sa-0") + &policy("sa-1"))), &hint);
}

#[test]
fn an_sa_of_a_cpu_is_nested_in_one_of_that_cpu() {
    let nested = |outer: &str| outbound(&[outer, "cpu = 1\nouter = \"sa-0\"", "outer = \"sa-3\"", ""]);
    let text = wrong(&nested(""));
    assert_says(&text, &["bound to CPU 1, but SA `sa-0`, in which it is nested, is not", "set `cpu = 1`"]);
    right(&nested("cpu = 1\nremote_ts = [\"192.0.2.0/24\"]").replace(
        "outer = \"sa-3\"",
        // The fallback SA of the outer one.
        "remote_ts = [\"192.0.2.0/24\"]",
    ));
}
