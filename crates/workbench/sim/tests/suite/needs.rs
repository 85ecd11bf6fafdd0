//! Jobs that need the result of another one, and keys that a processor has to load, by hand.

use std::path::Path;

use forebay_sim::Scenario;

use crate::support::{Packet, run_columns, scenario};

/// Two cores on which a packet of 16 bytes takes 10 ps.
const CORES: &str = "[[processor]]\nkind = \"cpu\"\ninit = \"0 s\"\nblock = \"10 ps\"\ncount = 2\n";
/// The one by one order of arrival: twice SA 0, then SA 1.
const THREE: [Packet; 3] = [(0, 16, 0), (0, 16, 0), (0, 16, 1)];

/// Processor and completion of each packet.
fn ran(
    processors: &str,
    scheduler: &str,
    set: impl Fn(&mut Scenario),
    packets: &[Packet],
) -> Vec<(u16, u64)> {
    let mut scenario = scenario(&format!("{processors}[scheduler]\n{scheduler}\n"), packets);
    set(&mut scenario);
    let columns = run_columns(&scenario).1;
    columns.processor.into_iter().zip(columns.completed).collect()
}

#[test]
fn a_packet_of_a_dependent_sa_is_placed_when_the_one_before_is_done() {
    let free = ran(CORES, "", |_| {}, &THREE);
    assert_eq!(free, [(0, 10), (1, 10), (0, 20)]);
    let waits = ran(CORES, "", |scenario| scenario.traffic.dependent_sas = 1, &THREE);
    assert_eq!(waits, [(0, 10), (0, 20), (1, 10)]);
    // Those of other SAs do not wait.
    let both = ran(CORES, "", |scenario| scenario.traffic.dependent_sas = 2, &THREE);
    assert_eq!(both, waits);
}

#[test]
fn packets_of_a_dependent_sa_stay_at_one_processor() {
    let set = |scenario: &mut Scenario| {
        scenario.traffic.dependent_sas = 1;
        scenario.scheduler.dependent = forebay_sim::Dependent::SameProcessor;
    };
    let packets = [(0, 16, 0), (0, 16, 0), (0, 16, 0), (0, 16, 1), (0, 16, 1)];
    assert_eq!(ran(CORES, "", set, &packets), [(0, 10), (0, 20), (0, 30), (1, 10), (1, 20)]);
    // With affinity that of all SAs.
    let packets = [(0, 16, 0), (0, 32, 1), (0, 16, 1), (0, 16, 0), (0, 16, 0)];
    assert_eq!(
        ran(CORES, "affinity = true", |_| {}, &packets),
        [(0, 10), (1, 20), (1, 30), (0, 20), (0, 30)]
    );
}

#[test]
fn a_job_that_finds_all_idle_goes_to_the_first_of_the_fastest_accelerators() {
    let processors = "[[processor]]\nkind = \"cpu\"\ninit = \"0 s\"\nblock = \"1 ps\"\n\
                      [[processor]]\nname = \"slow\"\nkind = \"accelerator\"\ninit = \"0 s\"\nblock = \"20 ps\"\n\
                      [[processor]]\nkind = \"accelerator\"\ninit = \"0 s\"\nblock = \"10 ps\"\ncount = 2\n";
    let packets = [(0, 16, 0), (0, 16, 0), (1_000, 16, 0)];
    let at =
        |scheduler| ran(processors, scheduler, |_| {}, &packets).iter().map(|one| one.0).collect::<Vec<_>>();
    assert_eq!(at(""), [0, 0, 0]);
    assert_eq!(at("all_idle = \"accelerator\""), [2, 0, 2]);
}

/// A host of two processors with these suites, and packets of two passes.
fn passes(suites: [&str; 2], dependent: &str) -> Result<Scenario, Vec<String>> {
    let one = |name: &str, suites: &str| {
        format!(
            "[[processor]]\nname = \"{name}\"\nkind = \"cpu\"\ninit = \"3 ps\"\nblock = \"10 ps\"\n\
             suites = [{suites}]\n"
        )
    };
    // A packet of 16 bytes every 40 ps.
    let text = format!(
        "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 16\noverhead = 0\npackets = 3\n\
         rate = \"3.2 Tbit/s\"\npasses = [\"aes\", \"sha1\"]\n{}{}[scheduler]\ndependent = \"{dependent}\"\n",
        one("p0", suites[0]),
        one("p1", suites[1])
    );
    let parsed = Scenario::parse(&text, "test", &[], Path::new(""));
    parsed.map_err(|errors| errors.findings().iter().map(ToString::to_string).collect())
}

#[test]
fn a_second_pass_begins_when_the_first_is_done_or_follows_it_as_one_job() {
    let (aes, sha1, both) = ("\"aes\"", "\"sha1\"", "\"aes\", \"sha1\"");
    let done = |scenario: Scenario| {
        let (outcome, columns) = run_columns(&scenario);
        (columns.processor, columns.completed, outcome.figures.packets_per_job)
    };
    let apart = done(passes([aes, sha1], "when-ready").unwrap());
    assert_eq!(apart, (vec![1, 1, 1], vec![26, 66, 106], 0.5));
    let one = done(passes([aes, both], "same-processor").unwrap());
    assert_eq!(one, (vec![1, 1, 1], vec![26, 66, 106], 1.0));
    let errors = passes([aes, sha1], "same-processor").unwrap_err();
    assert_eq!(errors, ["no processor can do all of aes, sha1"]);
}

#[test]
fn keys_are_loaded_where_a_processor_has_no_place_for_all_sas() {
    let core = |slots: u32| {
        format!(
            "[[processor]]\nkind = \"cpu\"\ninit = \"0 s\"\nblock = \"10 ps\"\nkey_slots = {slots}\n\
             key_load = \"100 ps\"\nsession = \"1 ns\"\n"
        )
    };
    let packets = [(0, 16, 0), (0, 16, 1), (0, 16, 0), (0, 16, 1)];
    let last = |slots, scheduler| ran(&core(slots), scheduler, |_| {}, &packets)[3].1;
    for scheduler in ["", "burst = 4"] {
        assert_eq!(last(1, scheduler), 4 * 10 + 4 * 100 + 2 * 1_000, "{scheduler}");
        assert_eq!(last(2, scheduler), 4 * 10 + 2 * 100 + 2 * 1_000, "{scheduler}");
    }
}

#[test]
fn predictions_know_which_keys_are_loaded() {
    let processors = "[[processor]]\nkind = \"cpu\"\ninit = \"0 s\"\nblock = \"10 ps\"\nkey_load = \"100 ps\"\ncount = 2\n";
    // Each SA once, and then both again, when nothing else is to be done.
    let packets = [(0, 16, 0), (0, 16, 1), (1_000, 16, 1), (2_000, 16, 0), (3_000, 16, 1)];
    for scheduler in ["", "burst = 2"] {
        let at: Vec<u16> = ran(processors, scheduler, |_| {}, &packets).iter().map(|one| one.0).collect();
        assert_eq!(at, [0, 1, 1, 0, 1], "{scheduler}");
    }
}

#[test]
fn what_has_no_effect_is_refused() {
    let finds = |traffic: &str, processor: &str, scheduler: &str, more: &str| {
        let text = format!(
            "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 16\nrate = \"1 Gbit/s\"\n{traffic}\n\
             [[processor]]\nkind = \"cpu\"\nblock = \"10 ns\"\n{processor}\n{scheduler}\n{more}"
        );
        let parsed = Scenario::parse(&text, "test", &[], Path::new(""));
        parsed.err().map_or(String::new(), |errors| errors.findings()[0].to_string())
    };
    let dependent = "dependent_sas = 1";
    assert_eq!(finds(dependent, "", "", ""), "");
    let said = finds("", "", "[scheduler]\ndependent = \"when-ready\"", "");
    assert!(said.contains("no packet needs the result of another job"), "{said}");
    for scheduler in ["burst = 2", "window = 2", "input = 5"] {
        let said = finds(dependent, "", &format!("[scheduler]\n{scheduler}"), "");
        assert!(said.contains("`dependent_sas` in [traffic] excludes"), "{said}");
    }
    let said = finds(dependent, "", "", "[[class]]\nshare = 1\n[[class]]\nshare = 1\n");
    assert!(said.contains("excludes classes"), "{said}");
    for key in ["affinity = true", "all_idle = \"accelerator\""] {
        let said = finds("", "", &format!("[scheduler]\nburst = 2\n{key}"), "");
        assert!(said.contains("means nothing where jobs are placed together"), "{said}");
    }
    let said = finds("", "", "[scheduler]\npolicy = \"round-robin\"\nall_idle = \"accelerator\"", "");
    assert!(said.contains("means nothing for policy `round-robin`"), "{said}");
    let said = finds("", "key_slots = 4", "", "");
    assert!(said.contains("`key_slots` means nothing without `key_load`"), "{said}");
    let said = finds("passes = [\"a\", \"b\"]\nsuites = [\"a\"]", "", "", "");
    assert!(said.contains("both `suites` and `passes` are given"), "{said}");
    assert!(finds("passes = [\"a\"]", "", "", "").contains("1 passes"));
}

#[test]
fn nothing_is_lost_where_a_full_queue_is_passed_by_and_the_input_has_no_limit() {
    let text = "model = \"host\"\n[traffic]\nsource = \"fixed\"\nvalue = 1000\nrate = \"10 Gbit/s\"\npackets = 500\n\
                [[processor]]\nkind = \"cpu\"\nblock = \"100 ns\"\nqueue = 2\n[scheduler]\nfull_queue = \"pass\"\n";
    let scenario = Scenario::parse(text, "test", &[], Path::new("")).unwrap();
    assert_eq!(run_columns(&scenario).0.figures.lost, 0);
}
