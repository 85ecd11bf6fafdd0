//! What synthesized hardware does to area, clock and cycles.

use std::path::Path;

use forebay_embedded::area::{self, Source};
use forebay_embedded::instructions::{IPSEC_FILE, Instructions, ipsec};
use forebay_embedded::{Setup, parts};

fn setup(core: &str) -> Setup {
    let text = format!("model = \"embedded\"\n[firmware]\npath = \"ipsec-custom\"\n[core]\n{core}\n");
    Setup::parse(&text, "core.toml", Path::new(""), &[]).expect("a setup")
}

fn latency(instructions: &Instructions, name: &str) -> u32 {
    let found = instructions.custom.definitions().iter().find(|one| one.name == name);
    found.expect("an instruction").latency
}

#[test]
fn the_slowest_instruction_sets_the_clock_or_takes_more_cycles() {
    let plain = area::clock(&setup(""), &Instructions::default()).expect("a clock");
    assert_eq!(plain.limit, "core");
    let custom = setup("instructions = \"ipsec\"");
    let slow = area::clock(&custom, &ipsec()).expect("a clock");
    assert_eq!(slow.limit, "md5_iteration");
    assert!(slow.mhz < 0.7 * plain.mhz, "{slow:?} {plain:?}");

    let fitted = ipsec().fitted(area::cycle(&custom));
    let fast = area::clock(&custom, &fitted).expect("a clock");
    assert_eq!((fast.limit.as_str(), fast.mhz), ("core", plain.mhz));
    assert_eq!((latency(&ipsec(), "md5_iteration"), latency(&fitted, "md5_iteration")), (1, 2));
    // A column a step.
    assert_eq!((latency(&ipsec(), "enc_round"), latency(&fitted, "enc_round")), (4, 8));
    assert_eq!(latency(&fitted, "fold64"), 1);
}

#[test]
fn a_clock_that_is_asked_for_and_cannot_be_had_is_named_with_what_is_too_slow() {
    let asked = setup("instructions = \"ipsec\"\nclock = \"150 MHz\"");
    let error = area::clock(&asked, &ipsec()).expect_err("too fast").to_string();
    assert!(
        error.contains("md5_iteration") && error.contains("103 MHz") && error.contains("150 MHz"),
        "{error}"
    );
    let fitted = ipsec().fitted(area::cycle(&asked));
    assert_eq!(area::clock(&asked, &fitted).expect("a clock").mhz, 150.0);
    let error = area::clock(&setup("clock = \"1 GHz\""), &Instructions::default()).expect_err("too fast");
    assert!(error.to_string().contains("`core`"), "{error}");
    // An extension has a path too.
    let clock =
        area::clock(&setup("extensions = \"m c zkne zknd\""), &Instructions::default()).expect("a clock");
    assert_eq!(clock.limit, "zkne-zknd");
}

#[test]
fn rv64_computes_two_columns_of_aes_a_cycle_and_its_products_grow_with_the_square() {
    let of = |core: &str| {
        let setup = setup(core);
        let kge = |name: &str| {
            let found = parts(&setup, &Instructions::default()).into_iter().find(|part| part.name == name);
            found.map_or(0, |part| (1_000.0 * part.kge).round() as u32)
        };
        let clock = area::clock(&setup, &Instructions::default()).expect("a clock");
        (kge("zkne"), kge("zknd"), kge("multiplier of one cycle"), kge("RV64"), clock)
    };
    let wide = |more: &str| of(&format!("xlen = 64\n{more}"));
    let (.., base, _) = wide("extensions = \"m c\"");
    for extensions in ["m c zkne", "m c zkne zknd"] {
        let (zkne, zknd, _, rv64, clock) = wide(&format!("extensions = \"{extensions}\""));
        assert_eq!((zkne, zknd, rv64), (2 * 2_189, 0, base));
        assert!((clock.mhz - 1_000.0 / 7.35).abs() < 0.1, "{clock:?}");
    }
    assert_eq!(wide("extensions = \"m c zknd\"").1, 2 * 2_189);
    // The core's extensions once as RV32 has them, and what they are more.
    assert_eq!(wide("extensions = \"m c zbkc\"").3, base + 3 * 3_600);
    assert_eq!(wide("extensions = \"m c zbb\"").3, base + 1_600);
    assert_eq!(wide("multiply = 1").2, 4 * of("multiply = 1").2);
}

#[test]
fn hardware_is_counted_once_and_says_where_its_area_is_from() {
    let of = |instructions: &Instructions| {
        let parts = parts(&setup("instructions = \"ipsec\""), instructions);
        let synthesized = parts.into_iter().filter(|part| part.source == Source::Synthesized);
        synthesized.map(|part| (part.name, (1_000.0 * part.kge).round())).collect::<Vec<_>>()
    };
    let file = Instructions::parse(IPSEC_FILE, "ipsec.toml").expect("our own file");
    assert_eq!(of(&ipsec()), of(&file));
    assert_eq!(
        of(&file).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["add64", "fold64", "enc_round", "md5_iteration"]
    );
}

#[test]
fn an_instruction_whose_hardware_was_not_synthesized_is_an_error_with_what_there_is() {
    let of = |lines: &str| {
        let text = format!(
            "[[instruction]]\nname = \"mine\"\nopcode = \"custom-0\"\nfunct3 = 0\nsemantics = \"rd = rs1\"\n{lines}\n"
        );
        let errors = Instructions::parse(&text, "mine.toml").expect_err("a finding");
        format!("{errors:?}")
    };
    let error = of("hardware = \"sha3\"");
    assert!(
        error.contains("no hardware `sha3` has been synthesized") && error.contains("md5_iteration"),
        "{error}"
    );
    assert!(of("hardware = \"add64\"\ngates = 5").contains("take `gates` or `hardware` away"));
    assert!(of("steps = 4").contains("`steps` has no effect without `hardware`"));
}

#[test]
fn several_steps_in_a_cycle_take_the_time_of_all() {
    let path = |lines: &str| {
        let text = format!(
            "[[instruction]]\nname = \"mine\"\nopcode = \"custom-0\"\nfunct3 = 0\nsemantics = \"rd = rs1\"\nhardware = \"add64\"\n{lines}"
        );
        Instructions::parse(&text, "mine.toml").expect("a good file").longest_path().expect("hardware").1
    };
    let once = path("");
    assert_eq!(path("steps = 4\nlatency = 4\n"), once);
    assert_eq!(path("steps = 4\n"), 4.0 * once);
    assert_eq!(path("steps = 4\nlatency = 3\n"), 2.0 * once);
    assert_eq!(path("latency = 2\n"), once / 2.0);
}

/// A vector unit has the area of what it does in a cycle, and the clock of its column of AES.
#[test]
fn a_faster_vector_unit_is_larger() {
    let core = "xlen = 64\nextensions = \"m c zve64x zvkned zvkg zvknha\"";
    let part = |vector: &str, name: &str| {
        let setup = setup(&format!("{core}\n[vector]\n{vector}"));
        let parts = parts(&setup, &Instructions::default());
        parts.into_iter().find(|part| part.name == name).map_or(0.0, |part| part.kge)
    };
    assert!((part("aes = 1", "zvkned") - 4.0 * part("aes = 4", "zvkned")).abs() < 1e-9);
    assert!((part("ghash = 1", "zvkg") - 4.0 * part("ghash = 4", "zvkg")).abs() < 1e-9);
    assert!((part("sha2 = 1", "zvknh") - 2.0 * part("sha2 = 2", "zvknh")).abs() < 1e-9);
    let wide = "length = 256\ndatapath = 256";
    for name in ["vector registers", "vector lanes", "zvkned", "zvkg", "zvknh"] {
        let (one, two) = (part("", name), part(wide, name));
        assert!(one > 0.0 && (two - 2.0 * one).abs() < 1e-9, "{name}: {one} {two}");
    }
    let narrow = parts(&setup(""), &Instructions::default());
    assert!(narrow.iter().all(|part| !part.name.contains("vector") && part.name != "RV64"));
    let clock = area::clock(&setup(core), &Instructions::default()).expect("a clock");
    assert_eq!(clock.limit, "zvkned");
}
