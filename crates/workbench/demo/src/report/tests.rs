use super::super::figures::{
    CaptureFigures, Comparison, Gain, GainRun, GatewayFigures, Latency, ProcessorFigures, TimePoint,
};
use super::*;

/// Figures as a good run has them: cores take the small packets, cards the large.
pub fn plausible() -> DemoFigures {
    let timeline = |n: u64| -> Vec<TimePoint> {
        (1..=n).map(|i| TimePoint { t_s: 0.1 * i as f64, packets: vec![60 + i, 70, 100 - i, 50] }).collect()
    };
    let gateway = || GatewayFigures {
        processors: vec![
            processor("core 0", [812, 640, 120, 40, 8, 20], 118.0, 3.1e-6),
            processor("core 1", [310, 402, 260, 210, 160, 410], 512.0, 9.4e-6),
            processor("card 0", [0, 12, 88, 240, 390, 1710], 1188.0, 62e-6),
            processor("card 1", [0, 8, 61, 173, 266, 972], 1093.0, 88e-6),
        ],
        packets_per_job: 3.42,
        timeline: timeline(24),
    };
    DemoFigures {
        schema: 1,
        version: "0.1.0".to_owned(),
        host: "a machine, 2 cores".to_owned(),
        started: "2026-11-02T14:03:11Z".to_owned(),
        proposal: "ESP AES-128-GCM-16".to_owned(),
        scheduler: "earliest predicted finish, window 64".to_owned(),
        capture: CaptureFigures {
            name: "edge.pcapng".to_owned(),
            packets: 7312,
            bytes: 4_910_233,
            mean_size: 671.5,
            median_size: 462,
            protocols: vec![("TCP".to_owned(), 5320, 4_400_100), ("UDP".to_owned(), 1992, 510_133)],
        },
        elapsed_s: 2.34,
        throughput_bps: 812.4e6,
        packets_per_s: 152_300.0,
        latency: Latency {
            mean_s: 3.1e-4,
            p50_s: 2.6e-4,
            p90_s: 4.6e-4,
            p99_s: 1.21e-3,
            p999_s: 2.6e-3,
            histogram: (0..40).map(|i| (1e-4 * 1.1f64.powi(i), 400 - 10 * i as u64)).collect(),
        },
        comparison: Comparison { sent: 7312, identical: 7312, ..Comparison::default() },
        gains: vec![gained()],
        sealing: gateway(),
        opening: gateway(),
    }
}

/// Two cores, the second not quite as fast.
fn gained() -> Gain {
    let run = |name: &str, of_core_alone: f64, others: f64| GainRun {
        name: name.to_owned(),
        packets_per_s: 2e5 * of_core_alone,
        throughput_bps: 8e8 * of_core_alone,
        of_core_alone,
        half_width: 0.02,
        shares: vec![1.0 - others, others],
    };
    Gain {
        proposal: "aes128gcm16".to_owned(),
        processors: vec!["core".to_owned(), "worker".to_owned()],
        runs: vec![
            run("core alone", 1.0, 0.0),
            run("equal shares", 1.4, 0.5),
            run("best fixed split", 1.65, 0.4),
            run("finish time", 1.7, 0.41),
        ],
        splits: (0i32..=8).map(|k| (f64::from(k) / 8.0, 8e8 + 1e8 * f64::from(8 - (k - 3).abs()))).collect(),
        rounds: 5,
        others: 0.01,
    }
}

fn processor(name: &str, sizes: [u64; 6], mean_size: f64, service: f64) -> ProcessorFigures {
    let packets: u64 = sizes.iter().sum();
    ProcessorFigures {
        name: name.to_owned(),
        packets,
        bytes: (packets as f64 * mean_size) as u64,
        mean_size,
        load: 0.42,
        predicted_service_s: service,
        actual_service_s: service * 1.06,
        predicted_response_s: service * 2.2,
        actual_response_s: service * 2.4,
        response_error_s: service * 0.4,
        fitted_init_s: service * 0.4,
        fitted_block_s: service * 0.01,
        samples: (1..60).map(|i| (service * f64::from(i), service * f64::from(i % 7 + 1))).collect(),
        sizes,
    }
}

/// Names that would like to be markup, or to steer a terminal, and numbers that are none.
pub fn hostile() -> DemoFigures {
    let name = "<script>alert(\"x\")</script>&amp;' \x1b[2J\u{202e}\0".to_owned();
    let mut figures = plausible();
    for text in [&mut figures.version, &mut figures.host, &mut figures.started, &mut figures.proposal] {
        text.clone_from(&name);
    }
    figures.scheduler = format!("{name}{}", "x".repeat(300));
    figures.capture.name.clone_from(&name);
    figures.capture.mean_size = f64::NAN;
    figures.capture.protocols.push((name.clone(), 0, 0));
    figures.comparison.drops = vec![(name.clone(), 3)];
    for p in figures.sealing.processors.iter_mut().chain(&mut figures.opening.processors) {
        p.name.clone_from(&name);
        p.load = f64::NAN;
        p.mean_size = f64::INFINITY;
        p.predicted_service_s = f64::NEG_INFINITY;
        p.samples = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 0.0), (1e-6, 1e-6)];
    }
    figures.sealing.timeline.push(TimePoint { t_s: f64::NAN, packets: vec![] });
    figures.sealing.timeline.push(TimePoint { t_s: 9.0, packets: vec![1; 9] });
    figures.latency.histogram.push((f64::INFINITY, 3));
    figures.latency.p99_s = f64::NAN;
    figures.throughput_bps = f64::INFINITY;
    for gain in &mut figures.gains {
        gain.proposal.clone_from(&name);
        gain.processors[0].clone_from(&name);
        gain.runs[1].name = name.repeat(3);
        gain.runs[2].throughput_bps = f64::NAN;
        gain.runs[3].shares = vec![f64::NAN, f64::INFINITY, 2.0];
        gain.splits.extend([(f64::NAN, 1.0), (0.5, f64::INFINITY), (3.0, -1.0)]);
    }
    figures
}

/// Every number as large as its type allows.
pub fn huge() -> DemoFigures {
    let mut figures = plausible();
    for p in figures.sealing.processors.iter_mut().chain(&mut figures.opening.processors) {
        (p.packets, p.bytes, p.sizes) = (u64::MAX, u64::MAX, [u64::MAX; 6]);
        (p.mean_size, p.load) = (f64::MAX, f64::MAX);
        (p.predicted_service_s, p.actual_service_s) = (f64::MAX, f64::MIN_POSITIVE);
        p.samples = vec![(f64::MAX, f64::MIN_POSITIVE), (f64::MIN_POSITIVE, f64::MAX)];
    }
    figures.sealing.timeline = vec![TimePoint { t_s: f64::MAX, packets: vec![u64::MAX; 4] }; 500];
    figures.capture.packets = u64::MAX;
    figures.capture.bytes = u64::MAX;
    figures.comparison =
        Comparison { sent: u64::MAX, identical: u64::MAX, missing: u64::MAX, ..Comparison::default() };
    figures.latency.p50_s = f64::MAX;
    figures.latency.histogram =
        vec![(f64::MAX, u64::MAX), (f64::MIN_POSITIVE, u64::MAX), (1e-3, 4), (1e-3, 4)];
    (figures.elapsed_s, figures.throughput_bps, figures.packets_per_s) = (f64::MAX, f64::MAX, f64::MAX);
    figures
}

fn one_processor() -> DemoFigures {
    let mut figures = plausible();
    figures.sealing.processors.truncate(1);
    figures.opening.processors.clear();
    figures.gains = vec![Gain::default()];
    figures.latency.histogram.clear();
    figures
}

fn many_processors() -> DemoFigures {
    let mut figures = plausible();
    let names = (0..40).map(|i| format!("card {i}"));
    figures.sealing.processors =
        names.map(|name| processor(&name, [1, 2, 3, 4, 5, 6], 500.0, 1e-6)).collect();
    figures.sealing.timeline =
        (0..5000).map(|i| TimePoint { t_s: f64::from(i), packets: vec![2; 40] }).collect();
    figures.latency.histogram = (1..9000).map(|i| (f64::from(i) * 1e-6, 1)).collect();
    figures
}

#[test]
fn every_page_is_well_formed() {
    let pages = [
        ("plausible", plausible()),
        ("nothing", DemoFigures::default()),
        ("one processor", one_processor()),
        ("many processors", many_processors()),
        ("hostile", hostile()),
        ("huge", huge()),
    ];
    for (name, figures) in pages {
        if let Err(error) = check(&render(&figures)) {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn the_check_finds_faults() {
    for faulty in
        ["<p>", "</p>", "<p></b></p>", "<p class=\"a></p>", "<p>a & b</p>", "<rect x=\"NaN\"></rect>"]
    {
        assert!(check(&format!("<!DOCTYPE html>\n{faulty}")).is_err(), "{faulty}");
    }
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    for page in [render(&plausible()), render(&hostile())] {
        for forbidden in ["<script", "http", "url(", "@import", "<link", " src=", " href=", " onload="] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}

#[test]
fn headline_and_sentences_come_from_the_figures() {
    let page = render(&plausible());
    assert!(page.contains("7,312 of 7,312 packets identical"));
    assert!(
        page.contains("core 0 was given the smallest packets, 118\u{a0}B on average, and card 0 the largest")
    );
    let mut figures = plausible();
    figures.comparison.identical = 7311;
    figures.comparison.missing = 1;
    let page = render(&figures);
    assert!(page.contains("verdict bad") && page.contains("Compared with the original: 1 missing."));
}

#[test]
fn the_page_opens_with_what_the_scheduler_gains() {
    let page = render(&plausible());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    let verdict = "One SA in strict order: core and worker carry so many times the packets of the core alone: 1.70 with";
    assert!(at(verdict) < at("Four ways to place"));
    assert!(at("Four ways to place") < at("packets identical"));
    assert!(
        page.contains("aes128gcm16: 1.70 \u{b1} 0.02") && page.contains("1.03 times the best fixed split")
    );
    // Where a fixed split is better, the page says so, and does not open with it.
    let mut figures = plausible();
    figures.gains[0].runs[2].of_core_alone = 1.8;
    figures.gains[0].others = 0.2;
    let page = render(&figures);
    assert!(page.contains("the best fixed split that a search found has 1.06 times that"));
    assert!(page.contains("Other programs used 20") && page.contains("of the machine meanwhile"));
    let without = render(&DemoFigures { gains: vec![], ..plausible() });
    assert!(!without.contains("finish time") && without.contains("<h1 class=\"verdict good\">"));
}

#[test]
fn a_name_has_one_colour_in_both_gateways() {
    let mut figures = plausible();
    figures.opening.processors.reverse();
    let sides = sides(&figures);
    let slot =
        |side: &Side<'_>, name: &str| side.processors().find(|(_, p)| p.name == name).map(|(slot, _)| slot);
    assert_eq!(slot(&sides[0], "card 1"), slot(&sides[1], "card 1"));
    assert_ne!(slot(&sides[0], "card 1"), slot(&sides[0], "card 0"));
    // Two of the same name are still two.
    figures.sealing.processors[1].name = "core 0".to_owned();
    let sides = super::sides(&figures);
    let slots: Vec<usize> = sides[0].processors().map(|(slot, _)| slot).collect();
    assert_eq!(slots, [0, 1, 2, 3]);
}

#[test]
fn units_read_as_people_write_them() {
    let cases = [
        (units::count(1_234_567), "1,234,567"),
        (units::seconds(312.4e-6), "312 us"),
        (units::seconds(999.7e-6), "1.00 ms"),
        (units::seconds(0.0), "0 s"),
        (units::seconds(4e-12), "0.00400 ns"),
        (units::seconds(f64::NAN), "-"),
        (units::bits_per_second(812.4e6), "812 Mbit/s"),
        (units::bytes(4_910_233.0), "4.91 MB"),
        (units::short(7312.0), "7,312"),
        (units::short(152_300.0), "152 k"),
        (units::percent(0.00001), "<0.1 %"),
        (units::percent(1.0), "100 %"),
        (units::ratio(1.0, 0.0), "-"),
        (units::round(units::seconds(1.5e-3)), "1.5 ms"),
        (units::round(units::seconds(0.1)), "100 ms"),
    ];
    for (text, expected) in cases {
        assert_eq!(units::plain(&text), expected);
    }
}

/// Reads a page as XML would be read: tags closed in order, attributes quoted, numbers finite.
fn check(page: &str) -> Result<(), String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").ok_or("no document type")?;
    let mut open: Vec<&str> = Vec::new();
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start])?;
        let end = rest.find('>').ok_or("a tag without its end")?;
        if end < start {
            return Err("a bare >".to_owned());
        }
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        check_attributes(attributes).map_err(|e| format!("<{name}>: {e}"))?;
        if !closed {
            open.push(name);
        }
        if name == "style" {
            let end = rest.find("</style>").ok_or("an open style")?;
            rest = &rest[end..];
        }
    }
    check_text(rest)?;
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

fn check_text(text: &str) -> Result<(), String> {
    if let Some(c) = text.chars().find(|c| *c == '>' || (c.is_control() && *c != '\n')) {
        return Err(format!("{c:?} in text"));
    }
    let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    match text.split('&').skip(1).find(|after| !known.iter().any(|entity| after.starts_with(entity))) {
        Some(after) => Err(format!("a bare & before {after:?}")),
        None => Ok(()),
    }
}

fn check_attributes(mut rest: &str) -> Result<(), String> {
    const NUMBERS: [&str; 12] = ["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "width", "height"];
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or("an attribute without a value")?;
        let (value, after) = after.split_once('"').ok_or("an open quote")?;
        check_text(value)?;
        if NUMBERS.contains(&name) && !value.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(format!("{name} is {value:?}"));
        }
        if ["d", "viewBox", "transform"].contains(&name) && (value.contains("NaN") || value.contains("inf")) {
            return Err(format!("{name} is {value:?}"));
        }
        rest = after.trim_start();
    }
    Ok(())
}
