//! What scripts may do, and what they hear when it is wrong.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use forebay_study::{Findings, Made, Options, Study, StudyError, keep, render, run};

const HOST: &str = "model = \"host\"
traffic = { source = \"fixed\", value = 100, packets = 2000, rate = \"100 Mbit/s\" }
[[processor]]
name = \"cpu\"
kind = \"cpu\"
block = \"1 us\"
";

fn study(script: &str) -> Study {
    let files = [("study.rhai", script), ("host.toml", HOST)];
    let files: BTreeMap<_, _> = files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    Study { name: "test".to_owned(), files, directory: None }
}

fn options(threads: usize) -> Options {
    Options { quick: false, threads, watch: Box::new(|_, _| ControlFlow::Continue(())) }
}

fn findings(script: &str) -> Findings {
    run(&study(script), options(2)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn errors_name_file_line_and_column() {
    for (script, place, words) in [
        ("let a = 1;\nlet s = scenario(\"hots.toml\");", "test/study.rhai:2:9:", "no file `hots.toml`"),
        (
            "let s = scenario(\"host.toml\");\n\nrun(s.set(\"traffic.rat\", 1));",
            "3:1:",
            "did you mean `rate`?",
        ),
        ("run(scenario(\"host.toml\"))[\"cpu.lod\"]", "1:27:", "no figure `cpu.lod`"),
        (
            "fn f() {\n  claim(\"a\", \"\", \"\", true, \"\");\n  claim(\"a\", \"\", \"\", true, \"\")\n}\nf();",
            "3:3:",
            "there already",
        ),
        ("series(\"a\", [1, 2], [1]);", "1:1:", "2 places and 1 values"),
        ("table(\"t\", [\"a\"], [[1, 2]]);", "1:1:", "2 cells for 1 columns"),
        ("plot(\"t\", \"x\", \"y\", [], #{ logx: true });", "1:1:", "unknown `logx`"),
        ("let a = ;", "1:9:", ""),
        ("plott(1);", "1:1:", "plott"),
    ] {
        let error = run(&study(script), options(1)).unwrap_err();
        assert!(matches!(error, StudyError::Script { .. }));
        let text = error.to_string();
        assert!(text.contains(place) && text.contains(words), "{text}");
    }
}

#[test]
fn runs_come_in_order_whatever_the_threads_and_the_same_is_run_once() {
    let script = "let s = scenario(\"host.toml\");
        let runs = sweep(s, \"traffic.value\", [10, 100, 1000, 10]);
        let again = run(s.set(\"traffic.value\", 100));
        claim(\"a\", \"\", `${figure(runs, \"cpu.mean_size\")} ${again[\"packets\"]}`, true, \"\");";
    let one = run(&study(script), options(1)).unwrap();
    assert_eq!(one.claims[0].figure, "[50.0, 140.0, 1040.0, 50.0] 2000.0");
    assert_eq!(one.runs.len(), 3);
    let many = run(&study(script), options(8)).unwrap();
    assert_eq!(one.claims, many.claims);
    let figures = |findings: &Findings| serde_json::to_string(&findings.runs).unwrap();
    assert_eq!(figures(&one), figures(&many));
}

#[test]
fn pipelines_and_cards_are_simulated_and_solved() {
    let mut study = study(
        "let line = scenario(\"line.toml\"); let card = scenario(\"card.toml\");
        let exact = run(line.solved()); let closed = run(line.closed().set(\"arrivals.mean\", \"200 us\"));
        let found = run(line.set(\"runs\", 3)); let carried = run(card.solved());
        claim(\"a\", \"\", `${exact[\"a.b.utilisation\"]} ${closed[\"a.b.mean_delay_s\"]}`, exact[\"states\"] == 4.0, \"\");
        claim(\"b\", \"\", \"\", found[\"replications.a.b.utilisation.mean\"] > 0.0 && found[\"processed\"] > 0.0, \"\");
        claim(\"c\", \"\", `${carried[\"line.utilisation\"]}`, run(card)[\"payload_bps\"] < 1e9, \"\");",
    );
    let line = "model = \"pipeline\"\nservice = \"exponential\"\noverflow = \"block\"\narrivals = { mean = \"100 us\" }
        [[stage]]\nname = \"a.b\"\ntime = \"100 us\"\nbuffer = 3\n";
    let card = "model = \"inline-card\"\npayload = 1000\noffered = \"500 Mbit/s\"
        [[resource]]\nname = \"line\"\nrate = \"1 Gbit/s\"\n";
    study.files.insert("line.toml".to_owned(), line.to_owned());
    study.files.insert("card.toml".to_owned(), card.to_owned());
    let findings = run(&study, options(2)).unwrap_or_else(|error| panic!("{error}"));
    assert!(findings.all_hold(), "{:?}", findings.claims);
    // M/M/1/3 at full load: each of four states a quarter of the time. M/M/1 at half: 200 us.
    assert_eq!(findings.claims[0].figure, "0.75 0.0002");
    assert_eq!(findings.claims[2].figure, "0.5");
    let page = render(&findings, &Made::default());
    assert!(page.contains("in closed form") && page.contains("solved"), "{page}");
    for (script, words) in [
        ("run(scenario(\"host.toml\").solved());", "the model is simulated, there is no solution"),
        ("run(scenario(\"card.toml\").closed());", "`solved` gives"),
        ("bound(scenario(\"card.toml\"));", "bounds are of the host model"),
        ("run(scenario(\"line.toml\").closed());", "grows without limit"),
        ("run(scenario(\"line.toml\"))[\"a.b.bussy\"];", "utilisation"),
        ("run(scenario(\"line.toml\").set(\"stage.0.bufer\", 1));", "did you mean `buffer`?"),
    ] {
        study.files.insert("study.rhai".to_owned(), script.to_owned());
        let error = run(&study, options(1)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_interrupt_keeps_what_is_done() {
    let script = "let s = scenario(\"host.toml\");\nclaim(\"a\", \"\", \"\", true, \"\");
        sweep(s, \"seed\", [1, 2]);\nsweep(s, \"seed\", [3, 4, 5, 6, 7, 8]);\nclaim(\"b\", \"\", \"\", true, \"\");";
    let watch =
        Box::new(|done, _| if done >= 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    let findings = run(&study(script), Options { quick: false, threads: 1, watch }).unwrap();
    assert!(!findings.complete);
    assert_eq!(findings.claims.len(), 1);
    assert!((3..=8).contains(&findings.runs.len()), "{}", findings.runs.len());
    assert!(render(&findings, &Made::default()).contains("Broken off"));
}

#[test]
fn a_directory_has_all_that_is_needed_to_do_it_again() {
    let script = "// A title\n// and more\nlet s = scenario(\"host.toml\").set(\"traffic.value\", 7);
        claim(\"a\", \"<b>\", `${run(s)[\"throughput_bps\"]}`, false, \"\");";
    let study = study(script);
    let findings = run(&study, options(2)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    keep(directory.path(), &study, &findings, &Made::default()).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert!(read("scenarios/0001.toml").contains("value = 7"));
    assert!(read("report.html").contains("&lt;b&gt;"));
    let results: serde_json::Value = serde_json::from_str(&read("results.json")).unwrap();
    assert_eq!(results[0]["set"][0], serde_json::json!(["traffic.value", "7"]));
    let manifest: serde_json::Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(manifest["claims"], 1);
    let again = Study::load(&directory.path().join("study")).unwrap();
    assert_eq!(again.files, study.files);
    assert_eq!(again.title(), "A title");
}

#[test]
fn bounds_are_there_for_scripts() {
    let found = findings(
        "let s = scenario(\"host.toml\").set(\"traffic.packets\", 4);
        claim(\"a\", \"\", \"\", bound(s).elapsed_s <= optimum(s).elapsed_s && optimum(s).elapsed_s <= run(s)[\"elapsed_s\"], \"\");
        claim(\"b\", \"\", \"\", optimum(s.set(\"traffic.packets\", 9)) == (), \"\");",
    );
    assert!(found.all_hold());
}
