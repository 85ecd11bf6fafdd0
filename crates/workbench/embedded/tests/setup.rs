//! Configuration files: defaults, what is wrong with them, and where.

use std::path::Path;

use forebay_embedded::Setup;
use forebay_riscv::Config;

const LEAST: &str = "model = \"embedded\"\n[firmware]\npath = \"a.elf\"\n";

fn setup(text: &str, sets: &[&str]) -> Result<Setup, String> {
    let sets: Vec<String> = sets.iter().map(|one| (*one).to_owned()).collect();
    Setup::parse(text, "core.toml", Path::new("here"), &sets).map_err(|errors| {
        let lines = errors.findings().iter().map(|one| {
            format!(
                "{}:{}: {} ({})",
                one.file(),
                one.line().unwrap_or(0),
                one.problem(),
                one.problem().help()
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn the_default_is_the_base_of_the_specification() {
    let setup = setup(LEAST, &[]).unwrap();
    assert_eq!(setup.config, Config::base());
    assert_eq!(setup.firmware, Path::new("here/a.elf"));
    let base = setup.config;
    assert_eq!((base.icache.size, base.icache.ways, base.icache.line), (1_024, 1, 16));
    assert_eq!((base.write_slots, base.width), (4, 4));
    assert_eq!(setup.resolved["memory"]["width"], 32);
    assert_eq!(setup.resolved["icache"]["replacement"], "lru");
}

#[test]
fn values_are_taken() {
    let text = format!(
        "{LEAST}[icache]\nsize = \"4 KiB\"\nways = 4\nline = 64\nreplacement = \"random\"\nseed = 5\n[dcache]\nsize = 2048\npolicy = \"write-back\"\n[memory]\nwidth = 128\n[core]\nextensions = [\"m\", \"c\", \"zbb\"]\n"
    );
    let setup = setup(&text, &["write_buffer.slots=32", "memory.latency=20"]).unwrap();
    let config = setup.config;
    assert_eq!((config.icache.size, config.icache.ways, config.icache.line), (4_096, 4, 64));
    assert_eq!((config.dcache.size, config.width, config.write_slots, config.latency), (2_048, 16, 32, 20));
    assert_eq!(setup.extensions.len(), 3);
}

#[test]
fn keys_that_another_one_disables_are_noted_or_refused() {
    let notes = |text: &str, sets: &[&str]| setup(&format!("{LEAST}{text}"), sets).unwrap().notes;
    let long = "[core]\nlong_paths = \"latency\"\n";
    assert_eq!(notes(long, &[]), ["`long_paths` of [core] has no effect with `instructions = none`"]);
    assert_eq!(notes(long, &["core.instructions=ipsec"]), [""; 0]);
    for cache in ["icache", "dcache"] {
        let random = format!("[{cache}]\nreplacement = \"random\"\nseed = 5\n");
        let expected =
            ["replacement", "seed"].map(|key| format!("`{key}` of [{cache}] has no effect with `ways = 1`"));
        assert_eq!(notes(&random, &[]), expected);
        assert_eq!(notes(&random, &[&format!("{cache}.ways=2")]), [""; 0]);
    }
    let packets = ["packets = 5", "direction = \"in\"", "checksums = false"];
    for key in packets {
        for other in ["image = \"input.bin\"", ""] {
            let error = setup(&format!("{LEAST}[input]\n{other}\n{key}\n"), &[]).unwrap_err();
            assert!(error.contains("has no effect") && !error.contains('\n'), "{key} {other}: {error}");
        }
        assert_eq!(notes(&format!("[input]\ncapture = \"demo\"\nsas = \"sas.toml\"\n{key}\n"), &[]), [""; 0]);
    }
}

#[test]
fn vector_units_are_of_rv64_and_keys_of_units_that_are_not_there_are_noted() {
    let all = "[core]\nxlen = 64\nextensions = \"m c zve64x zvkb zvkned zvkg zvknha\"\n[vector]\nlength = 512\n\
               datapath = 256\naes = 1\nghash = 2\nsha2 = 3\n";
    let found = setup(&format!("{LEAST}{all}"), &[]).unwrap();
    let vector = found.config.vector;
    assert_eq!((vector.datapath, vector.aes, vector.ghash, vector.sha2), (32, 1, 2, 3));
    assert_eq!((found.xlen.bits(), found.vlen, found.notes.len()), (64, 512, 0));
    assert_eq!(found.resolved["vector"]["datapath"], 256);
    let less = |extensions: &str| {
        let sets = [&format!("core.extensions={extensions}")[..]];
        setup(&format!("{LEAST}{all}"), &sets).unwrap().notes
    };
    assert_eq!(
        less("m c zve64x zvkned"),
        [
            "`ghash` of [vector] has no effect without `zvkg`",
            "`sha2` of [vector] has no effect without `zvknha` or `zvknhb`"
        ]
    );
    assert_eq!(less("m c").len(), 5);
    let notes = |sets: &[&str]| setup(&format!("{LEAST}{all}"), sets).unwrap().notes;
    let energies = ["multiply", "divide", "bits", "crypto", "custom", "vector", "vector_crypto"]
        .map(|key| format!("energy.{key}=1e-12"));
    let mut sets: Vec<&str> = energies.iter().map(String::as_str).collect();
    let without = |key: &str, parts: &str| format!("`{key}` of [energy] has no effect without `{parts}`");
    let (bits, crypto, custom) = (
        without("bits", "zbb` or `zbkb` or `zbkc` or `zbkx"),
        without("crypto", "zkne` or `zknd` or `zknh"),
        without("custom", "instructions"),
    );
    assert_eq!(notes(&sets), [bits, crypto, custom]);
    sets.extend(["core.extensions=c zbb zknh", "core.divide=20"]);
    let found: Vec<String> = notes(&sets).into_iter().filter(|note| !note.contains("[vector]")).collect();
    let expected = [
        "`divide` of [core] has no effect without `m`".to_owned(),
        without("multiply", "m"),
        without("divide", "m"),
        without("custom", "instructions"),
        without("vector", "zve64x"),
        without("vector_crypto", "zvkned` or `zvkg` or `zvknha` or `zvknhb"),
    ];
    assert_eq!(found, expected);
    let refused = |text: &str| setup(&format!("{LEAST}{text}"), &[]).unwrap_err();
    let without = refused("[core]\nextensions = \"m c zve64x\"\n");
    assert!(without.contains("`zve64x` is of RV64 here (write `xlen = 64`)"), "{without}");
    let registers = refused("[core]\nxlen = 64\nextensions = \"m c zvkned\"\n");
    assert!(registers.contains("`zvkned` needs vector registers (add `zve64x`)"), "{registers}");
    let custom = refused("[core]\nxlen = 64\ninstructions = \"ipsec\"\n");
    assert!(custom.contains("custom instructions are of 32 bits"), "{custom}");
    let wide = refused("[core]\nxlen = 64\nextensions = \"zve64x\"\n[vector]\ndatapath = 256\n");
    assert!(wide.contains("`datapath` has 256 bits, and a register 128"), "{wide}");
    assert!(refused("[core]\nxlen = 48\n").contains("expected one of 32, 64"));
}

#[test]
fn a_firmware_of_another_width_than_the_core_is_refused() {
    let error = |firmware: &str, sets: &[&str]| {
        let setup = setup(&LEAST.replace("a.elf", firmware), sets).unwrap();
        format!("{:?}", forebay_embedded::Prepared::new(&setup).unwrap_err())
    };
    let narrow = error("ipsec-rv64", &[]);
    assert!(narrow.contains("built for RV64, and the core is RV32"), "{narrow}");
    assert!(error("ipsec-plain", &["core.xlen=64"]).contains("set `xlen = 32`"));
}

#[test]
fn mistakes_have_their_place_and_a_hint() {
    let cases = [
        (
            "[dcache]\nsize = \"3 KB\"\n",
            "core.toml:5: `size` is 3072 bytes (a cache has a power of two of bytes: 2048 or 4096)",
        ),
        ("[dcache]\nsize = 65536\n", "1 to 32 KiB"),
        ("[dcache]\nsiez = 1024\n", "core.toml:5: unknown key `siez` (did you mean `size`?)"),
        ("[dcach]\nsize = 1024\n", "core.toml:4: unknown key `dcach` (did you mean `dcache`?)"),
        ("[icache]\npolicy = \"write-back\"\n", "unknown key `policy`"),
        ("[icache]\nways = 3\n", "core.toml:5: `ways` is 3 (expected one of 1, 2, 4)"),
        ("[icache]\nseed = 3\n", "random"),
        ("[memory]\nwidth = 48\n", "expected one of 32, 64, 128"),
        ("[write_buffer]\nslots = -1\n", "0 to 256"),
        ("[core]\nextensions = [\"zkn\"]\n", "unknown extensions `zkn`"),
        ("[core]\ninstructions = \"ipsek\"\n", "unknown instructions `ipsek`"),
        ("[core]\nload_use = 2\n", "0 to 1"),
        ("[input]\ncapture = \"a.pcap\"\n", "[input] has no `sas`"),
        ("[input]\nimage = \"a.bin\"\nsas = \"b.toml\"\n", "take one away"),
    ];
    for (text, expected) in cases {
        let found = setup(&format!("{LEAST}{text}"), &[]).unwrap_err();
        assert!(found.contains(expected), "{found}");
    }
    assert!(
        setup("model = \"host\"\n[firmware]\npath = \"a\"\n", &[]).unwrap_err().contains("unknown model")
    );
    assert!(setup("model = \"embedded\"\n", &[]).unwrap_err().contains("path = \"firmware.elf\""));
    assert!(setup(LEAST, &["dcache.size=3000"]).unwrap_err().contains("--set dcache.size=3000"));
}
