//! Scenario files: what they mean, and what is said of wrong ones.

use std::ops::ControlFlow;
use std::path::Path;

use forebay_sim::{Answers, Document, Doing, Feed, Options, RunningCore, Scenario, run};
use forebay_time::Duration;
use miette::Diagnostic;

const PAPER: &str = r#"
model = "host"
[traffic]
source = "fixed"
value = 600
packets = 1_000
rate = "1 Gbit/s"
[[processor]]
name = "cpu"
kind = "cpu"
init_ratio = 3
block_ratio = 2.0909
beta = "17.6 us"
alpha = 2.5
[[processor]]
name = "card"
kind = "accelerator"
count = 2
"#;

fn read(text: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Scenario::parse(text, "scenario.toml", &sets, Path::new("")).unwrap_or_else(|errors| {
        panic!("{:?}", errors.findings().iter().map(|one| (one.to_string(), one.line())).collect::<Vec<_>>())
    })
}

/// Line, message and hint of everything wrong.
fn wrong(text: &str, sets: &[&str]) -> Vec<(Option<usize>, String, String)> {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let errors = Scenario::parse(text, "scenario.toml", &sets, Path::new("")).unwrap_err();
    errors.findings().iter().map(|one| (one.line(), one.to_string(), one.problem().help())).collect()
}

#[test]
fn defaults_are_those_of_the_models_and_the_run_says_what_nobody_measured() {
    let scenario = read(PAPER, &[]);
    let names: Vec<&str> = scenario.processors.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["cpu", "card.0", "card.1"]);
    let [cpu, card] = [&scenario.processors[0].config, &scenario.processors[2].config];
    assert_eq!((card.cost.init, card.cost.block), (Duration::from_micros(1), Duration::from_nanos(440)));
    assert_eq!((cpu.cost.init, cpu.cost.block), (Duration::from_micros(3), Duration(919_996)));
    assert_eq!((cpu.alpha, cpu.beta, card.alpha, card.queue), (2.5, Duration(17_600_000), 1.0, 1_000));
    assert_eq!((scenario.seed, scenario.traffic.overhead, scenario.scheduler.window), (1, 40, 1));
    assert_eq!(scenario.notes.len(), 2, "{:?}", scenario.notes);
    assert!(scenario.notes[0].contains("t_init of `card` is not given: 1.00 us"));
    let resolved = &scenario.resolved;
    assert_eq!(resolved["bus"]["clock"], 66_000_000);
    assert_eq!(resolved["processor"][1]["block"], 440e-9);
    assert_eq!(resolved["processor"][1]["queue"], 1_000);
    assert_eq!(resolved["scheduler"]["policy"], "finish-time");
    assert_eq!(resolved["traffic"]["overhead"], 40);
}

#[test]
fn a_resolved_scenario_is_a_scenario_of_the_same_run() {
    let sets = ["traffic.source=paper", "traffic.sas=9", "scheduler.window=4", "scheduler.timeout=\"50 us\""];
    let text = PAPER.replace("value = 600\n", "");
    let scenario = read(&text, &sets);
    let again = read(&scenario.resolved_toml(), &[]);
    assert_eq!(again.resolved, scenario.resolved);
    let figures = |scenario| run(scenario, Options::default()).unwrap().figures;
    assert_eq!(figures(&again), figures(&scenario));
}

#[test]
fn any_key_can_be_set() {
    let sets = [
        "processor.card.count=4",
        "processor.0.alpha=7.5",
        "traffic.rate=200 Mbit/s",
        "scheduler.window=30",
        "seed=9",
    ];
    let scenario = read(PAPER, &sets);
    assert_eq!((scenario.processors.len(), scenario.processors[0].config.alpha), (5, 7.5));
    assert_eq!((scenario.scheduler.window, scenario.seed), (30, 9));
    assert_eq!(scenario.resolved["traffic"]["rate"], 2e8);
    let found = wrong(PAPER, &["processor.crad.count=4", "traffic.rat=1", "seed", "seed.x=1"]);
    let messages: Vec<&str> = found.iter().map(|(_, message, _)| message.as_str()).collect();
    assert_eq!(messages[0], "the list has no element `crad`");
    assert!(found[0].2.contains("did you mean `card`?"));
    assert!(messages.contains(&"`--set` without a key or without `=`"), "{messages:?}");
    assert_eq!(wrong(PAPER, &["traffic.rat=1"])[0].2, "did you mean `rate`?");
}

#[test]
fn a_key_or_an_element_of_a_list_can_be_removed() {
    let both = PAPER.replace("[[processor]]\nname = \"card\"", "alpha = 3.5\n[[processor]]\nname = \"card\"");
    // These refer to an accelerator, and there is none then.
    let both = both
        .replace("alpha = 2.5\n", "")
        .replace("init_ratio = 3\nblock_ratio = 2.0909\n", "block = \"440 ns\"\n");
    let scenario = read(&both, &["processor.cpu.alpha=", "processor.card="]);
    assert_eq!((scenario.processors.len(), scenario.processors[0].config.alpha), (1, 1.0));
}

#[test]
fn what_is_not_there_cannot_be_removed() {
    for (set, message) in [
        ("processor.cpu.alhpa=", "there is no `alhpa` to remove"),
        ("processor.crad=", "the list has no element `crad`"),
        ("seed.x=", "there is no `seed` to remove"),
        ("=", "`--set` without a key or without `=`"),
    ] {
        assert_eq!(wrong(PAPER, &[set])[0].1, message, "{set}");
    }
    assert_eq!(wrong(PAPER, &["traffic.rat="])[0].2, "did you mean `rate`? `--set key=value` gives a value");
}

#[test]
fn every_error_is_reported_at_once_with_its_line() {
    let text = "model = \"host\"\nsede = 1\n[traffic]\nsource = \"fixed\"\nvalue = -1\nrate = \"66 MHz\"\nsize = 3\n\
                [bus]\nclock = \"0 Hz\"\n[[processor]]\nkind = \"acelerator\"\n[[processor]]\nkind = \"cpu\"\n\
                alpha = 0.5\nprefetch = 1\nblock = \"-1 ns\"\nqueue = 0\n[scheduler]\npolicy = \"finish_time\"\nwindow = 0\n\
                prefetch_aware = 1\n";
    let found = wrong(text, &[]);
    let lines: Vec<(usize, &str)> =
        found.iter().map(|(line, message, _)| (line.unwrap(), message.as_str())).collect();
    assert_eq!(
        lines,
        [
            (2, "unknown key `sede`"),
            (5, "`value` is -1"),
            (6, "`rate` is `66 MHz`"),
            (7, "unknown key `size`"),
            (9, "`clock` is 0"),
            (11, "unknown kind `acelerator`"),
            (14, "`alpha` is 0.5"),
            (15, "a CPU has no `prefetch`"),
            (16, "`block` is -0.000000001"),
            (17, "`queue` is 0"),
            (19, "unknown policy `finish_time`"),
            (20, "`window` is 0"),
            (21, "`prefetch_aware` is a number"),
        ]
    );
    let help = |at: usize| found[at].2.as_str();
    assert_eq!(help(0), "did you mean `seed`?");
    assert!(help(2).starts_with("expected a rate: \"1 Gbit/s\""));
    assert!(help(5).ends_with("did you mean `accelerator`?"));
    assert!(help(10).ends_with("did you mean `finish-time`?"));
}

#[test]
fn a_scenario_of_another_model_is_refused_with_its_line() {
    for model in ["pipeline", "inline-card"] {
        let message = format!("unknown model `{model}`");
        let help = "expected `host`".to_owned();
        assert_eq!(wrong(&format!("model = \"{model}\"\n"), &[]), [(Some(1), message, help)]);
    }
}

#[test]
fn an_error_points_into_the_file() {
    let errors = Scenario::parse("model = \"host\"\nsede = 1\n", "s.toml", &[], Path::new("")).unwrap_err();
    let mut text = String::new();
    let handler = miette::NarratableReportHandler::new();
    handler.render_report(&mut text, &errors).unwrap();
    assert!(
        text.contains("s.toml") && text.contains("sede") && text.contains("did you mean `seed`?"),
        "{text}"
    );
    assert!(errors.code().is_none());
}

#[test]
fn a_processor_nobody_can_use_and_a_suite_nobody_has_are_errors() {
    let with =
        |traffic: &str, card: &str| PAPER.replace("value", &format!("suites = {traffic}\nvalue")) + card;
    let found = wrong(&with("[\"gcm\"]", "suites = [\"cbc\"]\n"), &[]);
    assert_eq!(found[0].1, "no packet can use this processor: none has a suite of its");
    assert_eq!(found[0].2, "the traffic has gcm");
    let found = wrong(&with("[\"gcm\", \"cbc\"]", "").replace("kind", "suites = [\"gcm\"]\nkind"), &[]);
    assert_eq!(found[0].1, "no processor can do suite `cbc`");
}

#[test]
fn a_throughput_at_a_size_stands_for_t_block() {
    // 640 bytes at 110 Mbit/s: 46.5454.. us; less 1 us, by 40 blocks: 1138636.36.. ps.
    let text = PAPER.replace(
        "init_ratio = 3\nblock_ratio = 2.0909",
        "throughput = \"110 Mbit/s\"\nthroughput_size = 640",
    );
    assert_eq!(read(&text, &[]).processors[0].config.cost.block, Duration(1_138_636));
    let found = wrong(&text, &["processor.cpu.init=\"1 ms\""]);
    assert_eq!(found[0].1, "at this throughput 640 bytes take less than t_init, 1.00 ms");
}

#[test]
fn the_document_has_the_keys_of_the_surface() {
    let scenario = read(PAPER, &[]);
    let outcome = run(&scenario, Options::default()).unwrap();
    let json = serde_json::to_value(Document::new(&scenario, &outcome)).unwrap();
    assert_eq!(json["schema"], 1);
    for key in ["elapsed_s", "packets", "throughput_bps", "packets_per_job", "notes"] {
        assert!(!json[key].is_null(), "{key}");
    }
    for key in ["mean_s", "p50_s", "p90_s", "p99_s", "p999_s"] {
        assert!(json["processing_latency"][key].is_f64() && json["total_latency"][key].is_f64());
    }
    for key in ["load", "packets", "bytes", "mean_size", "name"] {
        assert!(!json["processors"][2][key].is_null(), "{key}");
    }
    assert!(json["bus"]["load"].is_f64());
    assert_eq!(json["resolved"], scenario.resolved);
}

#[test]
fn what_is_no_toml_says_so() {
    let found = wrong("model = \n", &[]);
    assert_eq!(found[0].0, Some(1));
    assert!(found[0].1.starts_with("not TOML: "));
    assert!(
        Scenario::load(Path::new("/nonexistent/x.toml"), &[])
            .unwrap_err()
            .to_string()
            .contains("cannot be read")
    );
}

#[test]
fn an_alpha_that_follows_the_load_gives_way_to_other_work() {
    let policy = "scheduler.policy=adaptive-alpha";
    let long = ["traffic.packets=100_000", "processor.cpu.queue=50", "processor.card.queue=50", policy];
    let free = read(PAPER, &long);
    assert_eq!(free.resolved["scheduler"]["alpha_upper"], 90);
    let busy = read(PAPER, &[&long[..], &["processor.cpu.others=0.6"]].concat());
    assert_eq!(busy.processors[0].others, 0.6);
    let load = |scenario| run(scenario, Options::default()).unwrap().figures.processors[0].load;
    assert!(load(&free) > load(&busy) + 0.2, "{} {}", load(&free), load(&busy));

    for (set, words) in [
        ("processor.cpu.others=1.5", "`others` is 1.5"),
        ("processor.card.others=0.5", "no `others`"),
        ("scheduler.alpha_lower=95", "above alpha_upper"),
        ("scheduler.alpha_period=0", "alpha_period is 0"),
    ] {
        let found = wrong(PAPER, &[policy, set]);
        assert!(found.iter().any(|(_, text, _)| text.contains(words)), "{set}: {found:?}");
    }
    let found = wrong(PAPER, &["scheduler.alpha_most=5"]);
    assert!(found[0].1.contains("means nothing for policy `finish-time`"), "{found:?}");
}

#[test]
fn a_split_gives_each_processor_its_share_of_the_packets() {
    let split = ["scheduler.policy=split", "scheduler.weights=[3, 1]", "processor.card.count=1"];
    let scenario = read(PAPER, &split);
    assert_eq!(scenario.resolved["scheduler"]["weights"], serde_json::json!([3, 1]));
    let figures = run(&scenario, Options::default()).unwrap().figures;
    assert_eq!(figures.processors[0].packets, figures.packets.div_ceil(4) * 3);
    let equal = read(PAPER, &["scheduler.policy=split", "processor.card.count=2"]);
    assert_eq!(equal.resolved["scheduler"]["weights"], serde_json::json!([1, 1, 1]));

    for (set, words) in [
        ("scheduler.weights=[0, 0]", "no processor has a weight"),
        ("scheduler.weights=[1, 2, 3]", "3 weights for 2 processors"),
        ("scheduler.weights=[1, 65536]", "65536"),
        ("scheduler.weights=3", "weights"),
    ] {
        let found = wrong(PAPER, &[split[0], split[2], set]);
        assert!(found.iter().any(|(_, text, _)| text.contains(words)), "{set}: {found:?}");
    }
    let found = wrong(PAPER, &["scheduler.weights=[1]"]);
    assert!(found[0].1.contains("means nothing for policy `finish-time`"), "{found:?}");
}

#[test]
fn keys_that_another_one_disables_are_noted_or_refused() {
    let noted = |set: &[&str]| {
        let notes = read(PAPER, set).notes;
        notes.into_iter().filter(|note| note.contains("has no effect")).collect::<Vec<_>>()
    };
    for (key, by, other) in [
        ("scheduler.timeout=5 us", "scheduler.window=1", "scheduler.window=4"),
        ("scheduler.max_bytes=4000", "scheduler.window=1", "scheduler.window=4"),
        ("scheduler.windowing=adaptive-window", "scheduler.window=1", "scheduler.window=4"),
        ("processor.card.answers=each", "scheduler.burst=1", "scheduler.burst=4"),
        ("processor.card.alpha=5", "scheduler.policy=round-robin", "scheduler.policy=finish-time"),
        ("processor.card.beta=5 us", "scheduler.policy=split", "scheduler.policy=finish-time"),
        ("processor.cpu.others=0.5", "scheduler.policy=finish-time", "scheduler.policy=adaptive-alpha"),
        (
            "scheduler.predict_transfer=true",
            "scheduler.policy=shortest-queue",
            "scheduler.policy=finish-time",
        ),
        ("scheduler.prefetch_aware=true", "processor.card.prefetch=0", "processor.card.prefetch=2"),
        ("processor.card.key_slots=2", "processor.card.key_load=0", "processor.card.key_load=1 us"),
        ("scheduler.affinity=true", "scheduler.policy=single", "scheduler.policy=finish-time"),
        ("processor.card.alpha=5", "scheduler.policy=single", "scheduler.policy=finish-time"),
        ("processor.cpu.beta=5 us", "scheduler.policy=size-threshold", "scheduler.policy=adaptive-alpha"),
        (
            "scheduler.predict_transfer=true",
            "scheduler.policy=size-threshold",
            "scheduler.policy=finish-time",
        ),
    ] {
        let name = key.split('=').next().unwrap().rsplit('.').next().unwrap();
        let says =
            |set: &[&str]| noted(set).iter().filter(|one| one.contains(&format!("`{name}` of ["))).count();
        assert_eq!(
            (says(&[key, by]), says(&[key, other])),
            (1, 0),
            "{key} {by} {other}: {:?}",
            noted(&[key, by])
        );
    }
    // What the processor of a policy's choice cannot do goes by the rule of finish time.
    let suites = ["traffic.suites=[\"aes\",\"3des\"]", "scheduler.policy=single", "processor.cpu.alpha=5"];
    let found = noted(&suites);
    assert!(found.iter().any(|one| one.contains("`suites` of [traffic] has no effect")), "{found:?}");
    assert!(found.iter().any(|one| one.contains("`alpha` of [processor]")), "{found:?}");
    assert_eq!(noted(&[&suites[..], &["processor.card.suites=[\"aes\"]"]].concat()), Vec::<String>::new());
    // A burst is of one suite.
    let bursts = [&suites[..1], &["scheduler.burst=32", "scheduler.policy=round-robin"]].concat();
    assert!(!noted(&bursts).iter().any(|one| one.contains("`suites` of [traffic]")));
    let prefetches =
        ["scheduler.prefetch_aware=true", "processor.card.prefetch=2", "scheduler.policy=round-robin"];
    assert!(noted(&prefetches).iter().any(|one| one.contains("`prefetch_aware` of [scheduler]")));
    let only_cores =
        PAPER.replace("init_ratio = 3\nblock_ratio = 2.0909", "init = \"1 us\"\nblock = \"50 ns\"");
    let only_cores = only_cores.replace("\"accelerator\"", "\"cpu\"\ninit = \"1 us\"\nblock = \"50 ns\"");
    for (text, set, note) in [
        (&*only_cores, &["scheduler.all_idle=accelerator"][..], "`all_idle` of [scheduler] has no effect"),
        (
            PAPER,
            &["traffic.dependent_sas=1", "scheduler.dependent=same-processor", "scheduler.affinity=true"],
            "`dependent` of [scheduler] has no effect with `affinity`",
        ),
    ] {
        let says = |set: &[&str]| read(text, set).notes.iter().filter(|one| one.contains(note)).count();
        assert_eq!((says(set), says(&[])), (1, 0), "{set:?}");
    }
    let found = wrong(PAPER, &["processor.card.key_slots=2"]);
    assert!(found[0].1.contains("means nothing without `key_load`"), "{found:?}");
    let found = wrong(PAPER, &["processor.card.throughput_size=64"]);
    assert!(found[0].1.contains("means nothing without `throughput`"), "{found:?}");
    let buses = format!("{PAPER}\n[[bus]]\nname = \"a\"\n[[bus]]\nname = \"b\"\n");
    let notes = read(&buses, &[]).notes;
    assert!(notes.contains(&"[bus] `b` has no effect: no accelerator is on it".to_owned()), "{notes:?}");
}

#[test]
fn a_window_may_follow_the_traffic() {
    let many = ["scheduler.window=16", "scheduler.windowing=adaptive-window", "traffic.packets=20_000"];
    let crowded = run(&read(PAPER, &many), Options::default()).unwrap().figures;
    let calm = read(PAPER, &[&many[..], &["traffic.rate=1 Mbit/s"]].concat());
    assert_eq!(calm.resolved["scheduler"]["windowing"], "adaptive-window");
    let calm = run(&calm, Options::default()).unwrap().figures;
    assert!(crowded.packets_per_job > 2.0 && calm.packets_per_job < 1.01, "{crowded:?} {calm:?}");
}

#[test]
fn the_terms_of_real_processors_are_read_and_resolved() {
    let text = PAPER.replace(
        "alpha = 2.5\n",
        "alpha = 2.5\nmove = \"300 ns\"\nsubmit = \"1 us\"\nlanes = 16\nanswers = \"each\"\n",
    ) + "submit = 2e-6\npacket = \"40 ns\"\nwake = \"5 us\"\nlanes = 4096\nfeed = \"100 ns\"\nfeed_block = \"1 ns\"\n\
         [scheduler]\nburst = 32\npoll = true\n";
    let scenario = read(&text, &[]);
    let [cpu, card] = [&scenario.processors[0], &scenario.processors[2]];
    assert_eq!((cpu.config.cost.submit, cpu.config.cost.lanes), (Duration::from_micros(1), 16));
    assert_eq!((cpu.answers, card.answers), (Answers::Each, Answers::Batch));
    let cost = &card.config.cost;
    assert_eq!(
        (cost.packet, cost.submit, cost.wake, cost.lanes),
        (Duration::from_nanos(40), Duration::from_micros(2), Duration::from_micros(5), 4_096)
    );
    assert_eq!(card.feed, Feed { packet: Duration::from_nanos(100), block: Duration::from_nanos(1) });
    let core = RunningCore { processor: 0, moves: Duration::from_nanos(300) };
    assert_eq!((scenario.scheduler.burst, scenario.scheduler.running_core), (32, Some(core)));
    let resolved = &scenario.resolved;
    assert_eq!((&resolved["scheduler"]["burst"], &resolved["scheduler"]["poll"]), (&32.into(), &true.into()));
    assert_eq!(resolved["processor"][0]["answers"], "each");
    assert_eq!(resolved["processor"][1]["wake"], 5e-6);
    let again = read(&scenario.resolved_toml(), &[]);
    assert_eq!(again.resolved, *resolved);
    let outcome = run(&scenario, Options::default()).unwrap();
    let json = serde_json::to_value(Document::new(&scenario, &outcome)).unwrap();
    for key in ["load", "moving", "feeding", "packets_per_poll"] {
        assert!(json["running_core"][key].is_f64(), "{key}");
    }
    assert!(json["running_core"]["reorder_hold"]["p99_s"].is_f64());
    assert_eq!(json["running_core"]["name"], "cpu");

    // Without them nothing of this is there.
    let plain = read(PAPER, &[]);
    let outcome = run(&plain, Options::default()).unwrap();
    let json = serde_json::to_value(Document::new(&plain, &outcome)).unwrap();
    assert!(json["running_core"].is_null() && plain.resolved["scheduler"]["burst"].is_null());
    assert_eq!(plain.scheduler.burst, 1);
    // What does nothing is said.
    let idle = read(PAPER, &["processor.card.lanes=8"]);
    assert!(
        idle.notes.iter().any(|note| note.contains("`lanes` of `card.0` has no effect")),
        "{:?}",
        idle.notes
    );
}

#[test]
fn wrong_terms_of_real_processors_are_named_with_a_hint() {
    let one = |sets: &[&str]| {
        let mut found = wrong(PAPER, sets);
        assert_eq!(found.len(), 1, "{found:?}");
        let (_, message, help) = found.remove(0);
        (message, help)
    };
    let cases: &[(&[&str], &str, &str)] = &[
        (&["processor.card.lanes=0"], "`lanes` is 0", "expected a whole number, 1 to 1048576"),
        (&["processor.card.answers=\"eahc\""], "unknown answers `eahc`", "did you mean `each`?"),
        (&["processor.card.wake=-1"], "`wake` is -1", "expected 0 to 18 million seconds"),
        (&["processor.card.submit=\"3 MHz\""], "`submit` is `3 MHz`", "expected a time: \"17.6 us\""),
        (&["processor.card.lames=3"], "unknown key `lames`", "did you mean `lanes`?"),
        (&["scheduler.burst=0"], "`burst` is 0", "expected a whole number, 1 to 65536"),
        (
            &["processor.card.feed=1e-7"],
            "`feed` has no effect without `poll`",
            "set `poll = true` in [scheduler]",
        ),
        (
            &["scheduler.poll=true"],
            "`poll` is set, and no processor has `move`",
            "set `move = \"300 ns\"` in",
        ),
        (
            &["scheduler.poll=true", "processor.card.move=1e-7"],
            "`move` is set for 2 processors; one core moves the packets",
            "give the running core a [[processor]] of its own",
        ),
        (
            &["scheduler.poll=true", "processor.cpu.move=1e-7", "processor.cpu.feed=1e-7"],
            "the running core has no `feed`",
            "remove the key here",
        ),
        (
            &["scheduler.poll=true", "processor.cpu.move=1e-7", "processor.cpu.wake=1e-7"],
            "the running core has no `wake`",
            "remove the key here",
        ),
        (
            &["scheduler.prefetch_aware=true", "scheduler.burst=2"],
            "`prefetch_aware` and `burst` exclude each other",
            "batches are known by their answers only",
        ),
    ];
    for &(sets, message, help) in cases {
        let found = if message.contains("2 processors") {
            // An accelerator it is, too.
            let found = wrong(PAPER, sets);
            assert!(found.iter().any(|one| one.1 == "an accelerator has no `move`"), "{found:?}");
            found.into_iter().find(|one| one.1 == message).map(|one| (one.1, one.2)).unwrap()
        } else {
            one(sets)
        };
        assert_eq!(found.0, message);
        assert!(found.1.contains(help), "{message}: {}", found.1);
    }
    // In the file, with its line.
    let found = wrong(&PAPER.replace("alpha = 2.5", "move = \"1 us\""), &[]);
    assert_eq!((found[0].0, found[0].1.as_str()), (Some(14), "`move` has no effect without `poll`"));
}

const CORES: &str = "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 1360\nrate = \"100 Gbit/s\"\npackets = 6400\n\
    [cores]\nburst = 32\ntake = \"100 ns\"\ntake_packet = \"5 ns\"\ncomplete = \"200 ns\"\ncomplete_packet = \"2 ns\"\n\
    [[processor]]\nname = \"cpu\"\nkind = \"cpu\"\ncount = 2\ninit = \"40 ns\"\nblock = \"4 ns\"\n";

/// A packet of 1400 bytes has 88 blocks.
#[test]
fn cores_that_go_with_their_bursts_reach_what_the_formula_says() {
    let text = CORES.replace("100 Gbit/s", "10 Tbit/s");
    let scenario = read(&text, &[]);
    let (taking, computing, completing) = (100 + 32 * 5, 32 * (40 + 88 * 4), 200 + 32 * 2);
    for (count, warm_up) in [(1, 0), (2, 3200)] {
        let sets = [format!("processor.cpu.count={count}"), format!("traffic.warm_up={warm_up}")];
        let outcome = run(&read(&text, &[&sets[0], &sets[1]]), Options::default()).unwrap();
        let figures = &outcome.figures;
        // All arrive nearly at once, so that those of the warm-up are waited for.
        let packets_per_s = 6400.0 / figures.elapsed_s;
        let expected = 32e9 * f64::from(count) / f64::from(taking + computing + completing);
        assert!((packets_per_s / expected - 1.0).abs() < 0.02, "{packets_per_s} {expected}");
        // The first one finds one packet only.
        assert!(
            figures.packets == 6400 - warm_up && figures.packets_per_job > 31.5,
            "{}",
            figures.packets_per_job
        );
    }
    // Every default is in what is resolved, and nothing that has no effect.
    let again = read(&scenario.resolved_toml(), &[]);
    assert_eq!(again.resolved, scenario.resolved);
    assert_eq!(scenario.resolved["cores"]["ordered"], true);
    assert!(
        scenario.resolved.get("scheduler").is_none()
            && scenario.resolved["processor"][0].get("alpha").is_none()
    );
    let options = Options { columns: true, timeline: Some(100_000), ..Options::default() };
    let outcome = run(&scenario, options).unwrap();
    let (columns, timeline) = (outcome.columns.unwrap(), outcome.timeline.unwrap());
    assert_eq!((columns.processor[0], columns.processor[1]), (0, 1));
    assert!(columns.completed.is_sorted(), "one SA in order");
    // Each burst is taken, computed and completed, one core at a time in each turnstile.
    for what in [Doing::Take, Doing::Compute, Doing::Complete] {
        let mut of: Vec<_> = timeline.spans().filter(|span| span.what == what).collect();
        of.sort_by_key(|span| span.from);
        assert_eq!(of.len(), 201);
        assert!(what == Doing::Compute || of.windows(2).all(|two| two[0].until <= two[1].from), "{what:?}");
    }
    assert!(columns.chosen.iter().zip(&columns.arrived).all(|(chosen, arrived)| chosen >= arrived));
    let json =
        serde_json::to_value(Document::new(&scenario, &run(&scenario, Options::default()).unwrap())).unwrap();
    let held = json["cores"]["take"]["load"].as_f64().unwrap();
    assert!(
        (held - 2.0 * f64::from(taking) / f64::from(taking + computing + completing)).abs() < 0.01,
        "{held}"
    );
}

#[test]
fn a_run_of_cores_that_is_broken_off_has_what_was_done() {
    let scenario = read(CORES, &["traffic.packets=300000"]);
    let mut watch = |_, _| ControlFlow::Break(());
    let outcome =
        run(&scenario, Options { progress: Some(&mut watch), keep: true, ..Options::default() }).unwrap();
    let cut = outcome.cut.unwrap();
    let whole = run(&read(CORES, &[&format!("traffic.packets={cut}")]), Options::default()).unwrap();
    assert_eq!(outcome.figures, whole.figures);
    let mut watch = |_, _| ControlFlow::Break(());
    let options = Options { progress: Some(&mut watch), ..Options::default() };
    assert_eq!(run(&scenario, options).unwrap_err(), forebay_sim::RunError::Cancelled);
}

fn said(text: &str) -> Vec<String> {
    wrong(text, &[]).into_iter().map(|(_, message, _)| message).collect()
}

#[test]
fn what_has_no_effect_on_cores_is_refused() {
    for (more, what) in [
        ("queue = 7\n", "`queue` has no effect with [cores]"),
        ("alpha = 2\n", "`alpha` has no effect with [cores]"),
        ("[scheduler]\nwindow = 4\n", "[scheduler] has no effect with [cores]"),
        ("[[bus]]\nwidth = 8\n", "[bus] has no effect with [cores]"),
        ("[[class]]\nname = \"a\"\nshare = 1\n", "[class] has no effect with [cores]"),
        (
            "[[processor]]\nkind = \"accelerator\"\ninit = 1e-6\nblock = 1e-6\n",
            "an accelerator has no effect",
        ),
    ] {
        let found = said(&format!("{CORES}{more}"));
        assert!(found.iter().any(|one| one.contains(what)), "{more}: {found:?}");
    }
    let found = said(&CORES.replace("packets = 6400", "packets = 10000001"));
    assert!(found[0].contains("keeps in memory"), "{found:?}");
    let found = said(&CORES.replace("[cores]", "suites = [\"aes\"]\n[cores]"));
    assert!(found[0].contains("`suites` has no effect"), "{found:?}");
}
