//! `simulate`, `solve` and `size` of pipelines and inline cards, as their users meet them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn study(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name)
}

fn forebay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(args).env("NO_COLOR", "1").output().unwrap()
}

/// The JSON document of a command, which must end with exit code `code`.
fn json(args: &[&str], code: i32) -> Value {
    let output = forebay(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

#[test]
fn simulate_and_solve_of_one_file_agree() {
    let file = study("network-processor/markov.toml");
    let file = file.to_str().unwrap();
    let solved = json(&["solve", file], 0);
    assert_eq!((&solved["schema"], &solved["states"]), (&1.into(), &4_096.into()));
    assert_eq!(solved["converged"], true);
    let simulated = json(&["simulate", file, "--set", "runs=20"], 0);
    assert_eq!((&simulated["schema"], &simulated["rules"]), (&1.into(), &"markov".into()));
    for key in ["throughput_pps", "loss_probability"] {
        let found = &simulated["replications"][key];
        let [mean, half, exact] =
            [&found["mean"], &found["half_width"], &solved[key]].map(|x| x.as_f64().unwrap());
        // The interval is of 95 %: three half widths are 99.9999 %.
        assert!((mean - exact).abs() <= 3.0 * half, "{key}: {found}, by the chain {exact}");
    }
}

#[test]
fn a_run_is_kept_and_can_be_had_again() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let file = study("network-processor/interrupt-driven.toml");
    let args =
        ["simulate", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--set", "stage.ip.time=40 us"];
    let first = json(&args, 0);
    for name in ["scenario.toml", "figures.json", "manifest.json"] {
        assert!(out.join(name).exists(), "{name}");
    }
    let again = json(&["simulate", out.join("scenario.toml").to_str().unwrap()], 0);
    assert_eq!(again, first);
    let text = forebay(&args[..2]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("preprocess") && text.contains("note: interrupt-driven: a run ends"), "{text}");
}

#[test]
fn solve_says_what_it_takes_otherwise_and_what_is_too_large() {
    let file = study("network-processor/interrupt-driven.toml");
    let file = file.to_str().unwrap();
    let output = forebay(&["solve", file]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("states need about") && text.contains("stage.NAME.buffer=4"), "{text}");
    let small =
        ["receive", "preprocess", "crypto", "ip", "transmit"].map(|name| format!("stage.{name}.buffer=2"));
    let mut args = vec!["solve", file];
    small.iter().for_each(|set| args.extend(["--set", set]));
    let solved = json(&args, 0);
    assert_eq!(solved["warnings"].as_array().unwrap().len(), 4, "{solved}");
    let output = forebay(&args);
    assert!(String::from_utf8(output.stderr).unwrap().contains("warning: the times of `receive`"));
    // [N]'s closed form: 93.6 us of core a packet.
    let waiting = study("network-processor/busy-waiting.toml");
    let closed =
        json(&["solve", waiting.to_str().unwrap(), "--unlimited", "--set", "arrivals.mean=200 us"], 0);
    assert!((closed["stages"][1]["utilisation"].as_f64().unwrap() - 0.468).abs() < 1e-9, "{closed}");
}

#[test]
fn what_has_not_converged_says_so_and_answers_no() {
    let file = study("network-processor/markov.toml");
    let mut args = vec!["solve", file.to_str().unwrap(), "--cycles", "2", "--memory", "5"];
    let buffers =
        ["receive", "preprocess", "crypto", "ip", "transmit"].map(|name| format!("stage.{name}.buffer=4"));
    buffers.iter().for_each(|set| args.extend(["--set", set]));
    let output = forebay(&args);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(out.contains("NOT CONVERGED") && err.contains("not reliable"), "{out}{err}");
    let document = json(&args, 1);
    assert_eq!((&document["converged"], &document["cycles"]), (&false.into(), &2.into()));
    assert!(document["residual"].as_f64().unwrap() > 1e-9);
}

#[test]
fn size_finds_the_smallest_buffers_and_the_highest_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queue.toml");
    let text = "model = \"pipeline\"\nservice = \"exponential\"\noverflow = \"block\"\n[arrivals]\nmean = \"100 us\"\n\
                [[stage]]\nname = \"only\"\ntime = \"80 us\"\nbuffer = 4\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let sized = json(&["size-buffers", file, "--loss", "0.01"], 0);
    assert_eq!((&sized["schema"], &sized["by"]), (&1.into(), &"chain".into()));
    // M/M/1/K, rho = 0.8: (1 - rho) rho^K / (1 - rho^(K + 1)) is 0.0109 for K = 13 and 0.0087 for 14.
    let exact = |rho: f64, room: i32| (1.0 - rho) * rho.powi(room) / (1.0 - rho.powi(room + 1));
    let room = (1..).find(|&room| exact(0.8, room) <= 0.01).unwrap();
    assert_eq!(sized["smallest"]["stages"][0]["buffer"], room);
    let load = sized["highest_load_pps"].as_f64().unwrap();
    assert!(exact(load * 80e-6, 4) <= 0.01 && exact(load * 1.002 * 80e-6, 4) > 0.01, "{load}");
    // More than can be served: the answer is no.
    let none = json(&["size-buffers", file, "--loss", "0.01", "--set", "arrivals.mean=50 us"], 1);
    assert!(none["smallest"].is_null());
    assert_eq!(json(&["size-buffers", file, "--loss", "0.01", "--most", "3"], 1)["smallest"], Value::Null);
    assert_eq!(forebay(&["size-buffers", file, "--loss", "1.5"]).status.code(), Some(2));
    // A service that waits for more packets than may be tried.
    let batch = "duration = \"1 s\"\n[[stage]]\nbatch = 4\nbatch_min = 4\nbatch_timeout = \"1 ms\"\n";
    let (top, stage) = batch.split_once("[[stage]]\n").unwrap();
    std::fs::write(file, text.replace("overflow = \"block\"\n", top) + stage).unwrap();
    let refused = forebay(&["size-buffers", file, "--loss", "0.01", "--most", "3"]);
    let said = String::from_utf8_lossy(&refused.stderr).replace(['\n', ' '], "");
    assert!(said.contains("`only`waitsfor4packets") && said.contains("raise`--most`"), "{said}");
}

#[test]
fn an_inline_card_is_solved_for_its_limits_and_simulated() {
    let file = study("inline-card/bulk.toml");
    let file = file.to_str().unwrap();
    let solved = json(&["solve", file], 0);
    assert_eq!((&solved["model"], &solved["bottleneck"]), (&"inline-card".into(), &"mac".into()));
    let carried = solved["payload_bps"].as_f64().unwrap();
    // More comes than the line carries: no buffers help, and the load that they bear is known all the same.
    let more =
        ["--set", "offered=1.05 Gbit/s", "--set", "duration=200 ms", "--set", "buffer=8", "--most", "8"];
    let sized = json(&[&["size-buffers", file, "--loss", "0.001"][..], &more].concat(), 1);
    assert_eq!(sized["by"], "simulation");
    let highest = sized["highest_load_bps"].as_f64().unwrap();
    assert!((highest / carried - 1.0).abs() < 0.02 && sized["smallest"].is_null(), "{sized}");
    let simulated = json(&["simulate", file], 0);
    let found = simulated["payload_bps"].as_f64().unwrap();
    assert!((found / carried - 1.0).abs() < 2e-3, "{found} {carried}");
    assert!(simulated["lost"].as_u64().unwrap() > 0);
}

#[test]
fn broken_files_are_said_to_be() {
    let file = study("network-processor/markov.toml");
    let file = file.to_str().unwrap();
    for command in [&["simulate"][..], &["solve"], &["size-buffers", "--loss", "0.1"]] {
        let output =
            forebay(&[command, &[file, "--set", "stage.ip.bufer=3", "--set", "overflow=dorp"]].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("did you mean `buffer`?") && text.contains("unknown overflow `dorp`"),
            "{text}"
        );
    }
    let output = forebay(&["simulate", file, "--set", "model=pipelin"]);
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("unknown model `pipelin`") && text.contains("did you mean `pipeline`?"), "{text}");
}

/// What an option of `simulate` does with a pipeline or an inline card.
enum Does<'a> {
    /// The document, or what is printed, is another one.
    Changes(&'a [&'a str]),
    /// Figures stay, as the help says.
    Nothing(&'a [&'a str]),
    /// It is refused with a reason.
    Refused(&'a [&'a str], &'a str),
}

#[test]
fn every_option_of_simulate_has_its_effect_on_every_model_or_is_refused() {
    use Does::{Changes, Nothing, Refused};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let help = String::from_utf8(forebay(&["simulate", "--help"]).stdout).unwrap();
    let options: Vec<&str> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    let models = [
        ("network-processor/markov.toml", "arrivals.mean=70 us,80 us", "arrivals.maen=70 us", "seed=9"),
        ("inline-card/bulk.toml", "offered=0.5 Gbit/s,0.9 Gbit/s", "offerd=0.9 Gbit/s", "payload=4000"),
    ];
    for (file, axis, misspelt, set) in models {
        let file = study(file);
        let file = file.to_str().unwrap();
        let table = [
            ("--set", Changes(&["--set", set])),
            ("--json", Changes(&["--json"])),
            ("--out", Nothing(&["--out", out])),
            ("--sweep", Changes(&["--sweep", axis])),
            ("--sweep", Refused(&["--sweep", misspelt], "unknown key")),
            ("--replications", Changes(&["--replications", "3"])),
            ("--replications", Refused(&["--replications", "0"], "expected at least 1")),
            ("--threads", Nothing(&["--threads", "2"])),
            ("--threads", Refused(&["--threads", "0"], "expected at least 1")),
            ("--sweep", Refused(&["--sweep", axis, "--sweep", axis], "set by another one too")),
            ("--timing", Changes(&["--json", "--timing"])),
            ("--timing", Refused(&["--json", "--timing", "--sweep", axis], "the time of a single run")),
            ("--timeline", Refused(&["--timeline", "5", "--out", out], "only runs of the host model")),
            ("--columns", Refused(&["--columns", "--out", out], "only runs of the host model")),
            ("--highest-rate", Refused(&["--highest-rate"], "only the host model has a rate")),
            ("--loss", Refused(&["--highest-rate", "--loss", "0.1"], "only the host model has a rate")),
            (
                "--latency",
                Refused(&["--highest-rate", "--latency", "1 ms"], "only the host model has a rate"),
            ),
        ];
        for option in options.iter().filter(|one| !["--help", "--json`"].contains(*one)) {
            let option = option.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let option = option.split('[').next().unwrap();
            assert!(table.iter().any(|(known, _)| *known == option), "no row for {option}");
        }
        let plain = forebay(&["simulate", file]);
        for (option, does) in table {
            let (Changes(args) | Nothing(args) | Refused(args, _)) = does;
            let came = forebay(&[&["simulate", file], args].concat());
            let (said, code) = (String::from_utf8_lossy(&came.stderr), came.status.code());
            let one_line = said.replace("\n  │ ", " ");
            match does {
                Refused(_, why) => {
                    assert!(code == Some(2) && one_line.contains(why), "{file} {option}: {code:?} {said}");
                }
                Changes(_) => {
                    assert!(code == Some(0) && came.stdout != plain.stdout, "{file} {option}: {said}")
                }
                Nothing(_) => {
                    assert!(code == Some(0) && came.stdout == plain.stdout, "{file} {option}: {said}")
                }
            }
        }
    }
}

#[test]
fn a_swept_element_that_is_not_there_is_named() {
    let file = study("network-processor/markov.toml");
    let swept = forebay(&["simulate", file.to_str().unwrap(), "--sweep", "stage.recieve.time=1 us,2 us"]);
    let said = String::from_utf8(swept.stderr).unwrap();
    assert_eq!(swept.status.code(), Some(2));
    assert!(
        said.contains("`recieve`") && said.contains("receive") && !said.contains("set by another"),
        "{said}"
    );
}

#[test]
fn a_sweep_of_a_pipeline_has_the_figures_of_its_single_runs() {
    let file = study("network-processor/markov.toml");
    let file = file.to_str().unwrap();
    let swept = forebay(&["simulate", file, "--sweep", "arrivals.mean=70 us,90 us", "--json"]);
    let lines = String::from_utf8(swept.stdout).unwrap();
    let points: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(points.len(), 2);
    for (point, mean) in points.iter().zip(["70 us", "90 us"]) {
        let alone = json(&["simulate", file, "--set", &format!("arrivals.mean={mean}")], 0);
        for key in ["processed", "throughput_pps", "loss_probability"] {
            assert_eq!(point["figures"][key].as_f64(), alone[key].as_f64(), "{mean} {key}");
        }
        assert_eq!(point["figures"]["stages.ip.lost"].as_f64(), alone["stages"][3]["lost"].as_f64());
        assert_eq!((&point["model"], &point["sweep"]["arrivals.mean"]), (&"pipeline".into(), &mean.into()));
    }
    // Replications are the seeds s, s + 1, ..., as `runs` of the file makes them.
    let three = json(&["simulate", file, "--replications", "3"], 0);
    assert_eq!(three["replications"], json(&["simulate", file, "--set", "runs=3"], 0)["replications"]);
    let args = ["simulate", file, "--sweep", "arrivals.mean=70 us", "--replications", "3"];
    let point = json(&args, 0);
    let alone = json(&[&args[..2], &["--set", "arrivals.mean=70 us", "--set", "runs=3"]].concat(), 0);
    assert_eq!(point["estimates"]["throughput_pps"], alone["replications"]["throughput_pps"]);
}

#[test]
fn options_that_a_search_or_several_runs_ignore_are_refused_of_the_host_too() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = study("policies/papers.toml");
    let base =
        ["simulate", file.to_str().unwrap(), "--set", "traffic.packets=200", "--out", out.to_str().unwrap()];
    for (args, why) in [
        (&["--columns", "--replications", "2"][..], "single runs"),
        (&["--timeline", "5", "--sweep", "seed=1,2"], "single runs"),
        (&["--timeline", "5", "--highest-rate", "--latency", "1 ms"], "figures only"),
        (&["--highest-rate", "--latency", "1 ms", "--replications", "2"], "runs of its own"),
        (&["--json", "--timing", "--replications", "2"], "single run"),
    ] {
        let came = forebay(&[&base, args].concat());
        let said = String::from_utf8(came.stderr).unwrap().replace("\n  │ ", " ");
        assert!(came.status.code() == Some(2) && said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn a_window_without_packets_is_said_to_be_one_and_firmware_is_not_simulated() {
    let file = study("network-processor/markov.toml");
    let output = forebay(&["simulate", file.to_str().unwrap(), "--set", "arrivals.mean=10 s"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("no packet came") && !said.contains("% lost"), "{said}");
    let core = study("embedded-ipsec/esp.toml");
    let output = forebay(&["simulate", core.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("forebay explore run"), "{said}");
    let output = forebay(&["simulate", core.to_str().unwrap(), "--set", "model=embeded"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("embedded"), "all models are named");
}

#[test]
fn the_limits_of_a_chain_are_refused_where_none_is_solved() {
    let card = study("inline-card/video.toml");
    for limit in ["--cycles", "--memory"] {
        let output = forebay(&["solve", card.to_str().unwrap(), limit, "9"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(&format!("leave out {limit}")), "{said}");
    }
}

#[test]
fn buffers_of_what_has_no_chain_are_sized_by_simulation() {
    let file = study("network-processor/markov.toml");
    let sets =
        ["--set", "stage.receive.setup=5 us", "--set", "arrivals.mean=400 us", "--set", "duration=200 ms"];
    let base = ["size-buffers", file.to_str().unwrap(), "--loss", "0.1", "--json"];
    let output = forebay(&[&base[..], &sets].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), said["by"].as_str()), (Some(0), Some("simulation")));
    let output = forebay(&[&base[..], &sets, &["--by", "chain"]].concat());
    assert!(output.status.code() == Some(2));
}

#[test]
fn the_smallest_configuration_of_the_page_runs() {
    let page = std::fs::read_to_string(study("../docs/explore.md")).unwrap();
    let lines = page.lines().skip_while(|line| *line != "    model = \"embedded\"");
    let text: String =
        lines.map_while(|line| line.strip_prefix("    ")).flat_map(|line| [line, "\n"]).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("core.toml");
    std::fs::write(&file, text).unwrap();
    let run = json(&["explore", "run", file.to_str().unwrap(), "--set", "input.packets=3"], 0);
    assert_eq!(run["figures"]["packets"], 3);
}
