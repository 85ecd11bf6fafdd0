//! The studies that come with the program run, say all that they should, and their pages stand alone.

use std::ops::ControlFlow;

use forebay_study::{Findings, Made, Options, Study, render, run};

fn quick(name: &str) -> Findings {
    let study = Study::find(name).unwrap();
    let options = Options { quick: true, threads: 2, watch: Box::new(|_, _| ControlFlow::Continue(())) };
    let findings = run(&study, options).unwrap_or_else(|error| panic!("{error}"));
    assert!(findings.complete && findings.quick && !findings.runs.is_empty());
    stands_alone(&render(&findings, &Made::default()));
    findings
}

/// No address that a browser would fetch.
fn stands_alone(page: &str) {
    // Names of a namespace and of a part of the page itself are none.
    let page = ["\"http://www.w3.org/2000/svg\"", "url(#", "href=\"#"]
        .iter()
        .fold(page.to_owned(), |page, own| page.replace(own, ""));
    for wrong in ["http:", "https:", "src=", "href=", "url(", "@import", "//cdn", "NaN", "inf<"] {
        assert!(!page.contains(wrong), "the page has `{wrong}`");
    }
    for element in ["svg", "figure", "table", "section", "g", "div"] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}

fn has_claims(findings: &Findings, ids: &[&str]) {
    let found: Vec<&str> = findings.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(found, ids);
    assert!(findings.claims.iter().all(|claim| !claim.figure.is_empty() && !claim.why.is_empty()));
}

/// `spec/models.md`, "What \[H\] and \[S\] claim", the part of \[H\].
#[test]
fn multi_accelerator_answers_every_claim() {
    has_claims(
        &quick("multi-accelerator"),
        &[
            "cpu-load-alpha",
            "cpu-load-beta",
            "throughput-follows",
            "global-latency",
            "queue-50-amplified",
            "throughput-500",
            "latency-minimum",
            "calm-cpu",
            "calm-unchanged",
            "four-bus",
            "queue-50",
            "one-card-alpha",
            "scheduling-wins",
            "alpha-none",
            "buffer-or-prefetch",
            "both-more",
            "prefetch-aware",
            "aware-worse",
            "small-on-cpu",
        ],
    );
}

/// The part of \[S\].
#[test]
fn small_packets_answers_every_claim() {
    has_claims(
        &quick("small-packets"),
        &[
            "bundle-1.3",
            "cpu-slower-less",
            "cpu-slower-throughput",
            "throughput-up",
            "small-gain-most",
            "cpu-down",
            "cpu-time-down",
            "fixed-faster",
            "singles-on-cpu",
            "latency-up",
            "latency-large",
            "latency-ratio",
        ],
    );
}

/// `spec/models.md` section 2, "To be shown", and what \[N\] and its reference claim beside it.
#[test]
fn network_processor_answers_every_claim() {
    has_claims(
        &quick("network-processor"),
        &[
            "id-processes-more",
            "id-loses-less",
            "fifo-1",
            "bw-queues",
            "id-queues",
            "id-empty",
            "core-id",
            "core-bw",
            "receiver",
            "transmitter-id",
            "transmitter-bw",
            "remove-empty",
            "cut-fifo-1",
            "cut-fifo-2",
            "lin-bw",
            "n-id",
            "id-delay",
            "run-length",
            "lin-buffers",
            "chain",
        ],
    );
}

/// `spec/models.md` section 3. Solutions are as exact in a quick run, so that the claims hold or not alike.
#[test]
fn inline_card_answers_every_claim() {
    let findings = quick("inline-card");
    has_claims(
        &findings,
        &[
            "video",
            "bulk",
            "video-idle",
            "bulk-one",
            "sha-1",
            "memory",
            "dma-first",
            "proposals-now",
            "lookaside",
            "same",
            "mtu",
        ],
    );
    let fails = findings.claims.iter().filter(|claim| !claim.holds).map(|claim| claim.id.as_str());
    assert_eq!(fails.collect::<Vec<_>>(), ["bulk-one", "memory", "proposals-now"]);
}

#[test]
fn modern_and_policies_run() {
    assert!(quick("modern").claims.is_empty());
    quick("policies");
}

/// One SA over 1 to 16 cores: costs are placeholders, so only what any costs give is asked for.
#[test]
fn scaling_answers_for_every_suite_and_size() {
    let findings = quick("scaling");
    assert!(findings.claims.is_empty());
    // By size, suite and cores; then by alpha.
    assert!(findings.runs.len() >= 30 + 45, "{}", findings.runs.len());
    let rates = findings.runs.iter().filter_map(|run| match &run.figures {
        forebay_study::Figures::Host(figures) => Some(figures.throughput_bps),
        forebay_study::Figures::Other(_) => None,
    });
    let rates: Vec<f64> = rates.collect();
    // 3des-sha1 at 1408 bytes over 1, 2, 4, 8 and 16 cores.
    assert!(rates[..5].is_sorted() && rates[4] > 4.0 * rates[0], "{:?}", &rates[..5]);
}
