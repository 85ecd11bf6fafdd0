//! Files of inline cards: keys that others disable, and what a resource does with several packets, worked by hand.

use forebay_pipeline::scenario::CardScenario;
use forebay_pipeline::{Carried, Outcome, simulate};

const CARD: &str = "model = \"inline-card\"\npayload = 1000\noffered = \"500 Mbit/s\"\n";
const RATE: &str = "[[resource]]\nname = \"memory\"\nrate = \"8 Gbit/s\"\n";
const SEEN: &str = "[[resource]]\nname = \"memory\"\nseen = \"893 Mbit/s\"\nbusy = 0.38\n";

fn card(text: &str) -> Result<CardScenario, Vec<String>> {
    let read = CardScenario::parse(&format!("{CARD}{text}"), "card.toml", &[]);
    read.map_err(|errors| errors.findings().iter().map(|one| one.problem().to_string()).collect())
}

fn notes(text: &str) -> Vec<String> {
    card(text).unwrap().notes
}

#[test]
fn keys_without_an_effect_are_noted() {
    let drawn = "distribution = \"exponential\"\n";
    for key in ["seed", "runs"] {
        let text = format!("{key} = 3\n{RATE}");
        assert_eq!(notes(&text), [format!("`{key}` has no effect with `distribution = constant`")]);
        assert_eq!(notes(&format!("{drawn}{text}")), [""; 0]);
    }
    let overheads = "overhead_bytes = 38\noverhead = \"1 us\"\n";
    let nothing = ["overhead_bytes", "overhead"]
        .map(|key| format!("`{key}` of `memory` has no effect: nothing crosses it"));
    let mac = RATE.replace("memory", "mac");
    assert_eq!(notes(&format!("{mac}{RATE}{overheads}")), [""; 0]);
    assert_eq!(notes(&format!("{mac}{RATE}crossings = 0\n{overheads}")), nothing);
    assert_eq!(notes(&format!("memory_transfers = 0\n{mac}{RATE}{overheads}")), nothing);
    assert_eq!(notes(&format!("headers = 58\n{SEEN}")).len(), 1);
    assert_eq!(notes(&format!("headers = 58\n{SEEN}{mac}")), [""; 0]);
    let refused = card(&format!("memory_transfers = 6\n{SEEN}")).unwrap_err();
    assert_eq!(refused, ["`memory_transfers` means nothing where `memory` has `seen` and `busy`"]);
}

/// 1000 bytes every 16 us, for 1.6 ms: one of 8 us a packet.
const CPU: &str = "duration = \"1600 us\"\n[[resource]]\nname = \"cpu\"\nrate = \"1 Gbit/s\"\n";

/// The solution and the simulation.
fn both(text: &str) -> (serde_json::Value, Outcome) {
    let scenario = card(text).unwrap();
    assert_eq!(scenario.notes, [""; 0], "{text}");
    let again = CardScenario::parse(&scenario.resolved_toml(), "again.toml", &[]).unwrap();
    assert_eq!((again.card, again.pipeline), (scenario.card.clone(), scenario.pipeline.clone()));
    (serde_json::to_value(Carried::new(&scenario)).unwrap(), simulate(&scenario.pipeline).unwrap())
}

fn near(found: f64, exact: f64) -> bool {
    (found - exact).abs() <= 1e-9 * exact.abs()
}

#[test]
fn interrupts_for_several_packets_cost_less_and_make_packets_wait() {
    let of = |keys: &str| both(&format!("{CPU}interrupt = \"4 us\"\n{keys}"));
    let used = |solved: &serde_json::Value, key: &str| solved["resources"][0][key].as_f64().unwrap();
    // One for each: 12 of 16 us.
    let (solved, run) = of("");
    assert!(near(used(&solved, "utilisation"), 0.75) && near(run.stages[0].utilisation, 0.75));
    assert!(near(run.delay.mean_s, 12e-6) && near(used(&solved, "interrupts_per_s"), 62_500.0));
    assert!(near(solved["limit_bps"].as_f64().unwrap(), 8e3 / 12e-6));
    // One for four: packets wait for 48, 32, 16 and 0 us, then all for 4 + 4 * 8.
    let (solved, run) = of("interrupt_packets = 4\n");
    assert!(near(used(&solved, "utilisation"), 9.0 / 16.0), "{solved}");
    assert_eq!((run.generated, run.stages[0].services), (100, Some(25)));
    assert!(near(used(&solved, "interrupt_wait_s"), 24e-6) && near(run.delay.mean_s, 24e-6 + 36e-6));
    assert!(near(solved["limit_bps"].as_f64().unwrap(), 8e3 / 9e-6));
    // After 40 us: packets at 0, 16 and 32 wait for 40, 24 and 8, then for 4 + 3 * 8.
    let (solved, run) = of("interrupt_packets = 8\ninterrupt_timeout = \"40 us\"\n");
    assert!(near(used(&solved, "interrupt_wait_s"), 24e-6) && near(run.delay.mean_s, 24e-6 + 28e-6));
    assert!(near(used(&solved, "utilisation"), (4.0 / 3.0 + 8.0) / 16.0), "{solved}");
    assert!(near(used(&solved, "interrupts_per_s"), 62_500.0 / 3.0));
    // The limit is that of full ones.
    assert!(near(solved["limit_bps"].as_f64().unwrap(), 8e3 / 8.5e-6));
}

/// Interrupts of a Poisson stream: the closed form against the simulation, on a resource that is hardly busy with them.
#[test]
fn interrupts_of_packets_that_come_by_chance() {
    let text = "distribution = \"exponential\"\nbuffer = 6\nruns = 2\nduration = \"4 s\"\n\
                [[resource]]\nname = \"cpu\"\nrate = \"100000 Gbit/s\"\ninterrupt = \"1 ps\"\ninterrupt_packets = 6\n\
                interrupt_timeout = \"60 us\"\n";
    let (solved, run) = both(text);
    let used = |key: &str| solved["resources"][0][key].as_f64().unwrap();
    let stage = &run.stages[0];
    let packets = stage.processed as f64 / stage.services.unwrap() as f64;
    let exact = 62_500.0 / used("interrupts_per_s");
    assert!((packets / exact - 1.0).abs() < 0.005, "{packets} {exact}");
    assert!((run.delay.mean_s / used("interrupt_wait_s") - 1.0).abs() < 0.005, "{run:?} {solved}");
}

/// The closed form counts packets one by one: as many as are allowed end at once, and more are refused.
#[test]
fn interrupts_for_very_many_packets_are_solved_or_refused() {
    let of = |packets: u64| {
        let top = "distribution = \"exponential\"\nbuffer = 4000000000\n";
        let interrupts =
            format!("interrupt = \"1 us\"\ninterrupt_packets = {packets}\ninterrupt_timeout = \"200 d\"\n");
        card(&format!("{top}{CPU}{interrupts}").replace("duration = \"1600 us\"\n", ""))
    };
    let solved = serde_json::to_value(Carried::new(&of(65_536).unwrap())).unwrap();
    assert!(near(solved["resources"][0]["interrupts_per_s"].as_f64().unwrap(), 62_500.0 / 65_536.0));
    for packets in [65_537, 4_000_000_000] {
        assert_eq!(of(packets).unwrap_err(), [format!("`interrupt_packets` is {packets}")]);
    }
}

#[test]
fn transfers_have_their_headers_and_overheads_once() {
    // 80 bytes of headers are 0.64 us at 1 Gbit/s; a transfer of 4 packets is 32 us and once 0.64 and 2 us.
    let top = "headers = 80\ntransfer_packets = 4\nduration = \"1600 us\"\n";
    let pci =
        "[[resource]]\nname = \"pci\"\nrate = \"1 Gbit/s\"\noverhead = \"2 us\"\ntakes = \"transfer\"\n";
    let mac = "[[resource]]\nname = \"mac\"\nrate = \"2 Gbit/s\"\n";
    let (solved, run) = both(&format!("{top}{pci}{mac}"));
    let share = |at: usize| solved["resources"][at]["utilisation"].as_f64().unwrap();
    assert!(near(share(0), 34.64 / 64.0) && near(share(1), 4.32 / 16.0), "{solved}");
    assert!(near(solved["limit_bps"].as_f64().unwrap(), 4.0 * 8e3 / 34.64e-6));
    // Packets wait for 48, 32, 16 and 0, cross in 34.64, and then take turns of 4.32.
    let wait = (48.0 + 32.0 + 16.0) / 4.0;
    let line = 4.32 * (1.0 + 2.0 + 3.0 + 4.0) / 4.0;
    assert!(near(run.delay.mean_s * 1e6, wait + 34.64 + line), "{run:?}");
    assert_eq!(run.stages[0].services, Some(25));
    // The other way round the line delivers them one by one, and the last completes the transfer.
    let (_, run) = both(&format!("direction = \"receive\"\n{top}{pci}{mac}"));
    assert_eq!(run.stages[0].name, "mac");
    assert!(near(run.delay.mean_s * 1e6, 4.32 + wait + 34.64), "{run:?}");
}

#[test]
fn chained_streams_fill_a_pipeline_one_place_each() {
    let core = |keys: &str| {
        let top = "duration = \"1600 us\"\n[[resource]]\nname = \"core\"\nrate = \"1 Gbit/s\"\n";
        both(&format!("{top}{keys}"))
    };
    let limit = |solved: &serde_json::Value| solved["limit_bps"].as_f64().unwrap();
    // 8 us at the full rate; one stream of a pipeline of four takes 32 for each packet.
    for (streams, rate) in [(1, 0.25e9), (2, 0.5e9), (3, 0.75e9), (4, 1e9), (9, 1e9)] {
        let (solved, run) = core(&format!("depth = 4\nstreams = {streams}\n"));
        assert!(near(limit(&solved), rate), "{streams}: {solved}");
        let carried = rate.min(0.5e9);
        assert!(near(solved["payload_bps"].as_f64().unwrap(), carried));
        // A packet takes as long however full the pipeline is.
        if streams > 1 {
            assert!(near(run.delay.mean_s, 32e-6) && run.lost == 0, "{run:?}");
            assert!(
                (run.stages[0].utilisation - solved["resources"][0]["utilisation"].as_f64().unwrap()).abs()
                    < 0.02
            );
        }
    }
    // Without dependent blocks, and with a depth of one, one stream fills it.
    for keys in ["", "depth = 1\n"] {
        assert!(near(limit(&core(keys).0), 1e9) && near(core(keys).1.delay.mean_s, 8e-6));
    }
    assert!(near(limit(&core("units = 3\n").0), 3e9));
    assert!(near(limit(&core("units = 3\ndepth = 2\nstreams = 1\n").0), 1.5e9));
}

#[test]
fn keys_of_several_packets_without_an_effect_are_noted_or_refused() {
    let io = "[[resource]]\nname = \"io\"\nrate = \"1 Gbit/s\"\n";
    let of = |keys: &str| notes(&format!("{io}{CPU}{keys}").replace("duration = \"1600 us\"\n", ""));
    assert_eq!(of("takes = \"transfer\"\n"), ["`takes` of `cpu` has no effect with `transfer_packets = 1`"]);
    assert_eq!(of("depth = 1\nstreams = 3\n"), ["`streams` of `cpu` has no effect with `depth = 1`"]);
    let timeout = "interrupt = \"1 us\"\ninterrupt_timeout = \"9 us\"\n";
    assert_eq!(of(timeout), ["`interrupt_timeout` of `cpu` has no effect with `interrupt_packets = 1`"]);
    assert_eq!(of("crossings = 0\nunits = 2\n"), ["`units` of `cpu` has no effect: nothing crosses it"]);
    let transfers = notes(&format!("transfer_packets = 3\n{io}"));
    assert_eq!(transfers, ["`transfer_packets` has no effect: no resource has `takes = transfer`"]);
    let alone = notes(&format!("direction = \"receive\"\n{io}"));
    assert_eq!(alone, ["`direction` has no effect with a single resource"]);
    let refused = |top: &str, keys: &str| card(&format!("{top}{io}{keys}")).unwrap_err();
    let one = |top: &str, keys: &str| refused(top, keys).join("; ");
    assert_eq!(
        one("", "streams = 2\n"),
        "`streams` means nothing without `depth`: one stream fills the core"
    );
    assert_eq!(
        one("", "interrupt_packets = 2\n"),
        "`interrupt_packets` means nothing without `interrupt`, the time of one"
    );
    assert_eq!(
        one("transfer_packets = 2\n", "takes = \"transfer\"\ninterrupt = \"1 us\"\n"),
        "a resource that takes transfers has a cost once for each already"
    );
    assert_eq!(
        one("", "interrupt = \"1 us\"\ninterrupt_packets = 65\n"),
        "an interrupt waits for 65 packets, and a resource can hold 64"
    );
    assert_eq!(
        one("buffer = 3\ntransfer_packets = 4\n", "takes = \"transfer\"\n"),
        "a transfer is of 4 packets, and a resource can hold 3"
    );
    let seen = card(&format!("{SEEN}depth = 2\n")).unwrap_err();
    assert_eq!(seen, ["`depth` means nothing where `seen` and `busy` are given"]);
}
