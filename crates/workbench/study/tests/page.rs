//! The page of findings, as the package of Python writes them.

use serde_json::{Value, json};

/// No address that a browser would fetch, and every element closed.
fn stands_alone(page: &str) {
    // Names of a namespace and of a part of the page itself are none.
    let page = ["\"http://www.w3.org/2000/svg\"", "url(#", "href=\"#"]
        .iter()
        .fold(page.to_owned(), |page, own| page.replace(own, ""));
    for wrong in ["http:", "https:", "src=", "href=", "url(", "@import", "//cdn", "NaN", "inf<"] {
        assert!(!page.contains(wrong), "the page has `{wrong}`");
    }
    for element in ["svg", "figure", "table", "section", "g", "div", "ul", "li", "td"] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}

fn claim(id: &str, kind: &str, holds: bool) -> Value {
    json!({
        "id": id, "kind": kind, "claim": "Our reading of 17.6 us.", "quote": if kind == "claim" { "Its <words>." } else { "" },
        "where": "[H] figure 3",
        "parameters": [
            { "key": "processor.cpu.queue", "value": 1000, "whose": "printed", "source": "figure 3" },
            { "key": "traffic.rate", "value": "400 Mbit/s", "whose": "assumed", "source": "the rate is not printed" },
        ],
        "band": { "low": 0.9, "high": null, "unit": "us", "source": "printed 1.0, ten per cent" },
        "since": { "date": "2026-11-26", "commit": "63b95849" },
        "values": [null], "figure": "240,000 packets", "holds": holds, "why": "Because.",
        "basis": "test", "because": "", "verdict": if holds { "holds" } else { "fails" }, "open": "",
        "control": { "name": "turns", "says": "In turns.", "holds": false, "values": [0.5], "figure": "half as much" },
        "readings": [{ "name": "other", "says": "As printed.", "holds": true, "values": [1.0], "figure": "the same" }],
        "interval": { "over": "seeds", "count": 5, "held": if holds { 5 } else { 0 }, "margin": if holds { 0.25 } else { -0.25 },
            "half_width": 0.125 },
    })
}

/// The same with another basis, and not decided.
fn open(id: &str, basis: &str) -> Value {
    let mut claim = claim(id, "claim", true);
    claim["basis"] = json!(basis);
    claim["because"] = json!(if basis == "test" { "" } else { "Two printed numbers." });
    claim["verdict"] = json!("not decided");
    claim["open"] = json!("it holds under its control too");
    claim["control"]["holds"] = json!(true);
    claim["interval"] = Value::Null;
    claim
}

fn series(name: &str, xs: Value, ys: Value, place: &str) -> Value {
    json!({ "name": name, "xs": xs, "ys": ys, "spread": [], "where": place })
}

fn plot(title: &str, series: Value, paper: Value) -> Value {
    json!({ "plot": {
        "title": title, "x": "size (KiB)", "y": "share (%)", "series": series, "paper": paper, "log_x": false,
        "log_y": false, "note": "A note.", "counterpart": "[H] figure 3",
    } })
}

fn findings() -> Value {
    let names = json!(["fetch-and-decode waits", "uniform 0 to 1960 B", "a third name that is long"]);
    json!({
        "name": "own", "about": ["A title", "An introduction."], "quick": true, "complete": false,
        "claims": [claim("one", "claim", true), claim("two", "claim", false), claim("three", "observation", true),
            open("four", "test"), open("five", "arithmetic")],
        "readings": [{ "name": "other", "says": "As printed.", "held": 2, "claims": 3 }],
        "blocks": [
            { "section": "A section" },
            { "text": "A paragraph." },
            plot("Lines", json!([series("ours", json!([16, 32, 64]), json!([1.0, 2.0, null]), "")]),
                json!([series("printed", json!([32]), json!([1.5]), "figure 3")])),
            plot("Bars", json!([series("ours", names.clone(), json!([0.98, 0.99, 1.0]), "")]),
                json!([series("printed", json!(["uniform 0 to 1960 B"]), json!([0.985]), "")])),
            { "table": { "title": "A table", "head": ["a"], "rows": [["b"]], "note": "", "counterpart": "[H] table 1" } },
            { "heat": { "title": "A map", "x": "x", "y": "y", "columns": ["1", "2"], "rows": ["3"],
                "values": [[0.5, 2.0]], "note": "", "counterpart": "" } },
        ],
        "runs": [
            { "run": 1, "scenario": "host.toml", "set": [["processor.cpu.beta", "17.6 us"]], "by": "simulation", "seed": 1,
              "figures": { "throughput_bps": 1e9, "processors": [{ "name": "cpu", "load": 0.5 }], "bus": { "load": 0.25 },
                "processing_latency": { "mean_s": 1e-6 }, "packets_per_job": 1.0 }, "notes": ["A note of a run."] },
            { "run": 2, "scenario": "line.toml", "set": [], "by": "solution", "seed": 0,
              "figures": { "throughput_pps": 2.4e5, "stages": [{ "name": "receive", "utilisation": 0.75 }] }, "notes": [] },
            { "run": 3, "scenario": "esp.toml", "set": [], "by": "simulation", "seed": 0,
              "figures": { "cycles": 240_000, "packets": 20, "area_kge": 12.5 }, "notes": [] },
        ],
    })
}

fn page(findings: &Value) -> String {
    let made = json!({ "version": "1.2.3", "host": "a machine", "at": "2026-01-31T00:00:00Z" });
    forebay_study::page(&findings.to_string(), &made.to_string()).unwrap()
}

#[test]
fn a_claim_shows_words_place_parameters_band_and_verdict() {
    let page = page(&findings());
    stands_alone(&page);
    for words in [
        "1 of 3 claims hold, 1 fails, 1 not decided",
        "Of 3, 1 hold, 1 do not hold, and 1 are not decided",
        "?\u{a0}not decided: it holds under its control too",
        "href=\"#four\"",
        "Control: In turns. Under it it fails: half as much",
        "Over 5 seeds the values lie in the band in 5; the nearest value to its end is 0.25\u{a0}\u{b1}\u{a0}0.125\u{a0}µs inside.",
        "0.25\u{a0}\u{b1}\u{a0}0.125\u{a0}µs outside.",
        "Other reading: As printed. With it the values are inside the band: the same",
        "With it, 2 of 3 claims",
        "Set on 2026-11-26 (commit 63b95849).",
        "Arithmetic of the paper",
        "Two printed numbers.",
        "Its &lt;words&gt;.",
        "[H] figure 3",
        "Our reading of 17.6 µs.",
        "processor.cpu.queue\u{a0}= 1,000",
        "(printed, figure 3)",
        "(assumed: the rate is not printed",
        "at least 0.9\u{a0}µs",
        "printed 1.0, ten per cent",
        "does not hold",
        "href=\"#two\"",
        "Observations",
        "Broken off",
        "A quick run",
        "forebay 1.2.3 on a machine",
    ] {
        assert!(page.contains(words), "the page lacks `{words}`");
    }
    // What is no test is counted in a section of its own.
    let (tests, arithmetic) = page.split_once("<h2>Arithmetic of the paper</h2>").unwrap();
    assert!(tests.contains("id=\"four\"") && !tests.contains("id=\"five\""));
    assert!(arithmetic.contains("id=\"five\"") && !page.contains("set before the first run"));
    // Observations are in a table of their own, and only there.
    let (claims, observations) = page.split_once("<h2>Observations</h2>").unwrap();
    assert!(claims.contains("id=\"two\"") && !claims.contains("id=\"three\""));
    assert!(observations.contains("id=\"three\""));
}

#[test]
fn runs_of_each_model_are_listed() {
    let page = page(&findings());
    for words in [
        "All 3\u{a0}runs",
        "17.6 µs",
        "240,000 packets/s",
        "receive, 75.0\u{a0}%",
        "12.5\u{a0}kGE",
        "A note of a run.",
    ] {
        assert!(page.contains(words), "the page lacks `{words}`");
    }
}

#[test]
fn printed_values_are_marks_and_no_label_is_cut() {
    let page = page(&findings());
    assert_eq!(page.matches("class=\"printed p0\"").count(), 4, "two legends and two marks");
    assert!(page.contains("printed, figure 3</li>"));
    assert!(page.contains("Counterpart of [H] figure 3. A note."));
    assert!(page.contains("Counterpart of [H] table 1."));
    assert!(!page.contains('\u{2026}'), "a label is cut");
    // Ticks of the axis are the simulated values, and bars that hardly differ do not begin at zero.
    for value in ["16", "32", "64"] {
        assert!(page.contains(&format!(">{value}</text>")), "no tick at {value}");
    }
    assert!(page.contains("(the axis begins at 0.96"), "{page}");
}

#[test]
fn findings_of_another_form_are_an_error() {
    let made = json!({ "version": "", "host": "", "at": "" }).to_string();
    let error = forebay_study::page("{\"name\": 1}", &made).unwrap_err();
    assert!(error.to_string().contains("the findings of the study cannot be read"), "{error}");
}
