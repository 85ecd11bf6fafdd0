//! `forebay explore` from the outside: what it prints and writes, and its exit codes.

use std::path::Path;
use std::process::{Command, Output};

const CORE: &str = r#"
model = "embedded"
[firmware]
path = "ipsec-plain"
[input]
capture = "udp:200"
packets = 10
sas = """
[[sa]]
name = "out"
direction = "out"
spi = 0x1001
protocol = "esp"
mode = "tunnel"
proposal = "aes128gcm16"
key = "000102030405060708090a0b0c0d0e0f10111213"
local = "192.0.2.1"
remote = "192.0.2.2"
"""
"#;

fn forebay(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_forebay")).args(args).current_dir(dir).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("core.toml"), CORE).unwrap();
    dir
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_has_figures_a_page_and_packets_that_open() {
    let dir = folder();
    let args = ["explore", "run", "core.toml", "--json", "--out", "run", "--packets", "sealed.pcap"];
    let document = json(&forebay(dir.path(), &args));
    let figures = &document["figures"];
    assert_eq!(document["schema"], 1);
    assert_eq!(figures["packets"], 10);
    assert_eq!(figures["dropped"], 0);
    let sum = |list: &str| -> u64 {
        figures[list].as_array().unwrap().iter().map(|one| one["cycles"].as_u64().unwrap()).sum()
    };
    for list in ["causes", "classes", "sides", "groups", "functions"] {
        assert_eq!(sum(list), figures["cycles"].as_u64().unwrap(), "{list}");
    }
    for file in ["report.html", "figures.json", "manifest.json", "config.toml", "stacks.txt", "output.bin"] {
        assert!(dir.path().join("run").join(file).exists(), "{file}");
    }
    // Our own other implementation opens what the firmware has sealed.
    let sas = CORE.split("\"\"\"").nth(1).unwrap().replace("\"out\"", "\"in\"");
    let sas = sas.replace("192.0.2.1", "X").replace("192.0.2.2", "192.0.2.1").replace('X', "192.0.2.2");
    std::fs::write(dir.path().join("in.toml"), sas).unwrap();
    let args = ["open", "--sas", "in.toml", "sealed.pcap", "-o", "plain.pcap", "--json"];
    assert_eq!(json(&forebay(dir.path(), &args))["packets_out"], 10);
}

#[test]
fn a_sweep_gives_the_same_whatever_the_threads_and_as_single_runs() {
    let dir = folder();
    let sweep = |threads: &str| {
        let args = [
            "explore",
            "sweep",
            "core.toml",
            "--sweep",
            "icache.size=1024,4096",
            "--sweep",
            "memory.width=32,128",
            "--threads",
            threads,
            "--json",
        ];
        let output = forebay(dir.path(), &args);
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = sweep("1");
    assert_eq!(lines, sweep("3"));
    let last: serde_json::Value = serde_json::from_str(lines.lines().nth(3).unwrap()).unwrap();
    let args =
        ["explore", "run", "core.toml", "--set", "icache.size=4096", "--set", "memory.width=128", "--json"];
    assert_eq!(last["figures"], json(&forebay(dir.path(), &args))["figures"]);
}

#[test]
fn each_alone_a_list_and_a_comparison() {
    let dir = folder();
    let args = [
        "explore",
        "sweep",
        "core.toml",
        "--one-at-a-time",
        "--sweep",
        "dcache.ways=2,4",
        "--sweep",
        "write_buffer.slots=0",
        "--out",
        "sweep",
    ];
    let output = forebay(dir.path(), &args);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("as configured") && text.contains("write_buffer.slots=0"), "{text}");
    let points = std::fs::read_to_string(dir.path().join("sweep/points.jsonl")).unwrap();
    assert_eq!(points.lines().count(), 4);
    for file in ["report.html", "figures.csv", "manifest.json"] {
        assert!(dir.path().join("sweep").join(file).exists(), "{file}");
    }
    std::fs::write(dir.path().join("points"), "icache.size=2048\n# none\nmemory.width=64 dcache.line=32\n")
        .unwrap();
    let output = forebay(dir.path(), &["explore", "sweep", "core.toml", "--points", "points", "--json"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    for (name, size) in [("small", "1024"), ("large", "16384")] {
        let set = format!("icache.size={size}");
        assert!(
            forebay(dir.path(), &["explore", "run", "core.toml", "--set", &set, "--out", name])
                .status
                .success()
        );
    }
    let document = json(&forebay(dir.path(), &["explore", "compare", "small", "large", "--json"]));
    let cycles = &document["figures"][0];
    assert_eq!(cycles["figure"], "cycles");
    assert!(cycles["values"][0].as_f64() > cycles["values"][1].as_f64());
}

#[test]
fn bad_input_is_named_with_its_place_and_a_hint() {
    let dir = folder();
    std::fs::write(
        dir.path().join("clash.toml"),
        "[[instruction]]\nname = \"a\"\nopcode = \"custom-0\"\nfunct3 = 0\nsemantics = \"rd = rs1\"\n\
         [[instruction]]\nname = \"b\"\nopcode = \"custom-0\"\nfunct3 = 0\nfunct7 = 3\nsemantics = \"rd = rs2\"\n",
    )
    .unwrap();
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--set", "dcache.size=3072"], &["`size` is 3072 bytes", "2048 or 4096"]),
        (&["--set", "dcach.size=1024"], &["unknown key `dcach`", "did you mean `dcache`"]),
        (
            &["--set", "core.instructions=clash.toml"],
            &["`b` has the encoding of `a`", "clash.toml:7", "funct7"],
        ),
        (
            &["--set", "firmware.path=ipsec-custom"],
            &["in `aes_encrypt` + 0x", "illegal instruction 0x0007100b", "core.instructions"],
        ),
        (&["--set", "firmware.path=none.elf"], &["none.elf", "folder of the configuration"]),
        (&["--set", "input.capture=none.pcap"], &["none.pcap"]),
    ];
    for (sets, expected) in cases {
        let output = forebay(dir.path(), &[&["explore", "run", "core.toml"], sets].concat());
        assert_eq!(output.status.code(), Some(2));
        // Lines are folded, and marked at their edges.
        let text = String::from_utf8(output.stderr).unwrap().replace(['│', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for one in expected {
            assert!(text.contains(one), "{one}: {text}");
        }
    }
}
