//! The examples run to their ends, and print what they are to show.

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, which `cargo test` has built beside this test, and returns what it prints.
fn output(name: &str) -> String {
    let test = std::env::current_exe().expect("this test has a path");
    let folder: PathBuf =
        test.parent().and_then(|deps| deps.parent()).expect("target/debug").join("examples");
    let out = Command::new(folder.join(name))
        .output()
        .unwrap_or_else(|error| panic!("{name} (`cargo build --examples` makes it): {error}"));
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

#[cfg(feature = "scheduler")]
#[test]
fn schedule_gives_the_slow_starter_the_large_jobs() {
    let printed = output("schedule");
    let mean = |name: &str| -> u32 {
        let line = printed.lines().find(|line| line.starts_with(name)).expect("a line for each processor");
        line.split(' ').nth(4).and_then(|bytes| bytes.parse().ok()).expect("a mean size")
    };
    assert!(mean("core") < mean("card"), "{printed}");
}

#[cfg(feature = "aws-lc")]
#[test]
fn ipsec_opens_what_it_sealed_and_drops_a_replay() {
    let printed = output("ipsec");
    assert!(printed.contains("opened 5, 5 with the payload that was sealed"), "{printed}");
    assert!(printed.contains("opened 0 when the first was sent again"), "{printed}");
}

#[cfg(feature = "simulation")]
#[test]
fn simulate_compares_four_policies() {
    assert_eq!(output("simulate").lines().count(), 5);
}

#[cfg(all(feature = "gateway", target_os = "linux"))]
#[test]
fn gateway_carries_a_packet_from_one_site_to_the_other() {
    assert_eq!(output("gateway"), "25 bytes from 10.1.0.1: hello\n");
}
