//! What is wrong with a scenario of a pipeline or an inline card is said with file, line and hint, and ends
//! with exit code 2: one row of the table for each thing that can be wrong.

use std::path::Path;
use std::process::Command;

const LINE: &str = r#"model = "pipeline"
overflow = "drop"
service = "exponential"
duration = "10 ms"
[arrivals]
mean = "70 us"
[[server]]
name = "core"
discipline = "interrupt-driven"
run_length = "100 us"
[[stage]]
name = "receive"
time = "27 us"
buffer = 4
[[stage]]
name = "preprocess"
server = "core"
time = "32 us"
buffer = 5
[[stage]]
name = "crypto"
time = "12 us"
buffer = 6
[[stage]]
name = "ip"
server = "core"
time = "49 us"
buffer = 7
"#;

const CARD: &str = r#"model = "inline-card"
payload = 8942
offered = "890 Mbit/s"
memory_transfers = 6
duration = "1 ms"
[[resource]]
name = "memory"
rate = "8 Gbit/s"
[[resource]]
name = "mac"
rate = "1 Gbit/s"
"#;

/// A command, what is replaced in the file by what, where that is wrong (words of the line, "" for no
/// line of its own), what is said of it and what is hinted at.
type Row = (&'static [&'static str], &'static str, &'static str, &'static str, &'static str, &'static str);

const SIMULATE: &[&str] = &["simulate"];
const SOLVE: &[&str] = &["solve"];
const CLOSED: &[&str] = &["solve", "--unlimited"];
const SIZE: &[&str] = &["size-buffers", "--loss", "0.01"];

const ROWS: &[Row] = &[
    // Services that wait for several packets.
    (
        SIMULATE,
        "buffer = 6",
        "buffer = 6\nbatch = 2\nbatch_min = 3\nbatch_timeout = \"1 ms\"",
        "batch_min = 3",
        "`batch_min` is 3, and a service takes 2 packets at most",
        "give `batch = 3` or more",
    ),
    (
        SIMULATE,
        "buffer = 6",
        "buffer = 6\nbatch = 8\nbatch_min = 8\nbatch_timeout = \"1 ms\"",
        "batch_min = 8",
        "a service waits for 8 packets, and there is room for 6",
        "give `buffer = 8` or more",
    ),
    (
        SIMULATE,
        "buffer = 6",
        "buffer = 6\nbatch = 3\nbatch_min = 3",
        "[[stage]]\nname = \"crypto",
        "has no `batch_timeout`",
        "add `batch_timeout",
    ),
    (
        SIMULATE,
        "buffer = 6",
        "buffer = 6\nbatch_timeout = \"1 ms\"",
        "batch_timeout",
        "`batch_timeout` means nothing without `batch_min`",
        "give `batch_min`, or take it away",
    ),
    // Servers and stages.
    (
        SIMULATE,
        "server = \"core\"\ntime = \"49",
        "server = \"cor\"\ntime = \"49",
        "\"cor\"",
        "unknown server `cor`",
        "did you mean `core`?",
    ),
    (
        SIMULATE,
        "server = \"core\"\ntime = \"49",
        "server = 7\ntime = \"49",
        "server = 7",
        "`server` is",
        "a string in quotes",
    ),
    (
        SIMULATE,
        "[[server]]\nname = \"core\"\ndiscipline = \"interrupt-driven\"\nrun_length = \"100 us\"\n",
        "",
        "server = \"core\"",
        "there is no [[server]]",
        "add one",
    ),
    (
        SIMULATE,
        "name = \"core\"\ndis",
        "name = \"other\"\ndis",
        "server = \"core\"",
        "unknown server `core`",
        "expected `other`",
    ),
    (
        SIMULATE,
        "run_length = \"100 us\"\n",
        "run_length = \"100 us\"\n[[server]]\nname = \"spare\"\ndiscipline = \"busy-waiting\"\n",
        "[[server]]\nname = \"spare",
        "no stage is on the server `spare`",
        "give its stages `server`",
    ),
    (
        SIMULATE,
        "discipline = \"interrupt-driven\"",
        "discipline = \"polling\"",
        "polling",
        "unknown discipline `polling`",
        "`busy-waiting`",
    ),
    (
        SIMULATE,
        "discipline = \"interrupt-driven\"\n",
        "",
        "[[server]]",
        "has no `discipline`",
        "add `discipline",
    ),
    (
        SIMULATE,
        "run_length = \"100 us\"",
        "run_length = 0",
        "run_length = 0",
        "`run_length` is 0",
        "leave it away",
    ),
    (SIMULATE, "run_length = \"100 us\"", "cores = 0", "cores = 0", "`cores` is 0", "1 to"),
    (
        SIMULATE,
        "run_length = \"100 us\"",
        "grant = \"lottery\"",
        "lottery",
        "unknown grant `lottery`",
        "`round-robin`",
    ),
    (
        SIMULATE,
        "name = \"ip\"",
        "name = \"receive\"",
        "",
        "there is a stage `receive` already",
        "passes each stage once",
    ),
    (
        SIMULATE,
        "[[stage]]\nname = \"ip\"",
        "[[stages]]\nname = \"ip\"",
        "[[stages]]",
        "unknown key `stages`",
        "did you mean `stage`?",
    ),
    // Cycles and chains that are none.
    (
        SIMULATE,
        "name = \"receive\"\n",
        "name = \"receive\"\nnext = \"crypto\"\n",
        "name = \"preprocess\"",
        "two chains begin, with `receive` and with `preprocess`",
        "change a `next`",
    ),
    (
        SIMULATE,
        "name = \"ip\"\n",
        "name = \"ip\"\nnext = \"receive\"\n",
        "next = \"receive\"",
        "receive -> preprocess -> crypto -> ip -> receive is a cycle",
        "each once",
    ),
    (
        SIMULATE,
        "name = \"crypto\"\n",
        "name = \"crypto\"\nnext = \"crypto\"\n",
        "next = \"crypto\"",
        "is a cycle",
        "each once",
    ),
    (
        SOLVE,
        "name = \"ip\"\n",
        "name = \"ip\"\nnext = \"receive\"\n",
        "next = \"receive\"",
        "is a cycle",
        "each once",
    ),
    (
        SIMULATE,
        "name = \"ip\"\n",
        "name = \"ip\"\nnext = \"trasmit\"\n",
        "next = \"trasmit\"",
        "unknown next `trasmit`",
        "expected `receive`",
    ),
    // Buffers.
    (SIMULATE, "buffer = 6", "buffer = 0", "buffer = 0", "`buffer` is 0", "would lose every packet"),
    (
        SIMULATE,
        "overflow = \"drop\"",
        "overflow = \"block\"\n# \nbuffer = 0",
        "buffer = 0",
        "unknown key `buffer`",
        "no key here has a similar name",
    ),
    (SIMULATE, "buffer = 6", "buffer = -1", "buffer = -1", "`buffer` is -1", "1 to"),
    (SIMULATE, "buffer = 6\n", "", "[[stage]]\nname = \"crypto", "has no `buffer`", "add `buffer = 101`"),
    // Times and laws.
    (SIMULATE, "time = \"12 us\"", "time = \"-12 us\"", "-12 us", "`time` is -0.000012", "expected 0 to"),
    (SIMULATE, "time = \"12 us\"", "time = \"12 MHz\"", "12 MHz", "`time` is `12 MHz`", "us"),
    (SIMULATE, "time = \"12 us\"\n", "", "[[stage]]\nname = \"crypto", "has no `time`", "add `time"),
    (SIMULATE, "time = \"12 us\"", "time = \"12 us\"\nphases = 0", "phases = 0", "`phases` is 0", "1 to"),
    (SIMULATE, "time = \"12 us\"", "times = []", "times = []", "the list of times is empty", "at least one"),
    (
        SIMULATE,
        "time = \"12 us\"",
        "rate = \"1 Gbit/s\"",
        "rate = ",
        "packets without a size",
        "`packet_bytes`",
    ),
    (
        SIMULATE,
        "time = \"12 us\"",
        "distribution = \"levy\"",
        "levy",
        "unknown distribution `levy`",
        "`erlang`",
    ),
    (
        SIMULATE,
        "time = \"49 us\"",
        "units = 2\ntime = \"49 us\"",
        "units = 2",
        "on a shared server has no units",
        "`cores = 2`",
    ),
    (
        SIMULATE,
        "service = \"exponential\"",
        "service = \"normal\"",
        "normal",
        "unknown service `normal`",
        "`constant`",
    ),
    (
        SIMULATE,
        "duration = \"10 ms\"",
        "duration = 0",
        "duration = 0",
        "ends before it is warm",
        "above zero",
    ),
    (SIMULATE, "duration = \"10 ms\"", "duration = \"10 ms\"\nruns = 0", "runs = 0", "`runs` is 0", "1 to"),
    // Arrivals.
    (SIMULATE, "mean = \"70 us\"", "mean = 0", "mean = 0", "`mean` is 0", "above zero"),
    (SIMULATE, "mean = \"70 us\"\n", "", "[arrivals]", "has no `mean`", "add `mean"),
    (
        SIMULATE,
        "mean = \"70 us\"",
        "path = \"nowhere.csv\"",
        "nowhere.csv",
        "nowhere.csv",
        "is the path right?",
    ),
    (
        SIMULATE,
        "mean = \"70 us\"",
        "path = \"sizes.csv\"",
        "sizes.csv",
        "has sizes and no times",
        "add `rate",
    ),
    (
        SIMULATE,
        "mean = \"70 us\"",
        "path = \"broken.csv\"",
        "broken.csv",
        "broken.csv:3: the size is `many`",
        "size[,time]",
    ),
    (
        SIMULATE,
        "mean = \"70 us\"",
        "mean = \"70 us\"\nrate = \"1 Gbit/s\"",
        "rate = ",
        "`rate` means nothing for distribution `exponential`",
        "take it away",
    ),
    // What cannot be solved.
    (
        CLOSED,
        "discipline = \"interrupt-driven\"",
        "discipline = \"busy-waiting\"",
        "mean = \"70 us\"",
        "grows without limit: utilisation 1.329",
        "offer less",
    ),
    (CLOSED, "overflow", "overflow", "[[stage]]\nname = \"receive", "no closed form", "simulate"),
    (SOLVE, "buffer = 7", "buffer = 60000", "buffer = 60000", "more than the", "smaller buffers"),
    (
        SOLVE,
        "buffer = 6",
        "buffer = 6\nbatch = 3",
        "[[stage]]\nname = \"crypto",
        "works in batches",
        "`forebay simulate` takes it",
    ),
    (
        SOLVE,
        "run_length = \"100 us\"",
        "cores = 2",
        "[[server]]",
        "with its cores",
        "`forebay simulate` takes it",
    ),
    (
        SOLVE,
        "mean = \"70 us\"",
        "path = \"timed.csv\"",
        "[arrivals]",
        "arrivals from a trace",
        "`forebay simulate` takes it",
    ),
    (
        &["size-buffers", "--loss", "0.01", "--by", "chain"],
        "buffer = 6",
        "buffer = 6\nbatch = 3",
        "[[stage]]\nname = \"crypto",
        "works in batches",
        "`forebay simulate` takes it",
    ),
    // What would have no effect.
    (
        SIMULATE,
        "duration = \"10 ms\"\n[arrivals]\nmean = \"70 us\"",
        "packet_bytes = 40\n[arrivals]\npath = \"timed.csv\"",
        "packet_bytes = 40",
        "`packet_bytes` means nothing beside a trace",
        "take it away",
    ),
    // Files that are none.
    (
        SIZE,
        "model = \"pipeline\"",
        "model = \"pipelin\"",
        "pipelin",
        "unknown model `pipelin`",
        "did you mean `pipeline`?",
    ),
    (SOLVE, "model = \"pipeline\"", "model = \"host\"", "\"host\"", "unknown model `host`", "`pipeline`"),
    (SIMULATE, "[arrivals]", "[arrivals", "[arrivals", "not TOML", "sections are like"),
];

const CARD_ROWS: &[Row] = &[
    (SOLVE, "payload = 8942", "payload = 0", "payload = 0", "`payload` is 0", "1 to"),
    (
        SOLVE,
        "name = \"memory\"",
        "name = \"ram\"",
        "memory_transfers",
        "there is no resource `memory`",
        "name the resource",
    ),
    (
        SOLVE,
        "memory_transfers = 6",
        "memory_transfers = -1",
        "memory_transfers = -1",
        "`memory_transfers` is -1",
        "from 0 on",
    ),
    (SOLVE, "rate = \"1 Gbit/s\"", "rate = 0", "rate = 0", "`rate` is 0", "above zero"),
    (
        SOLVE,
        "rate = \"1 Gbit/s\"",
        "seen = \"1 Gbit/s\"",
        "[[resource]]\nname = \"mac",
        "has no `busy`",
        "add `busy",
    ),
    (SIMULATE, "offered = \"890 Mbit/s\"\n", "", "", "has no `offered`", "add `offered"),
    (
        SOLVE,
        "rate = \"1 Gbit/s\"",
        "rate = \"1 Gbit/s\"\nstreams = 2",
        "streams = 2",
        "`streams` means nothing without `depth`",
        "give `depth`",
    ),
    (
        SOLVE,
        "rate = \"1 Gbit/s\"",
        "rate = \"1 Gbit/s\"\ninterrupt = \"5 us\"\ninterrupt_packets = 65",
        "interrupt_packets = 65",
        "an interrupt waits for 65 packets, and a resource can hold 64",
        "give `buffer = 65` or more",
    ),
    (
        SOLVE,
        "rate = \"1 Gbit/s\"",
        "rate = \"1 Gbit/s\"\ntakes = \"transfers\"",
        "takes = \"transfers\"",
        "unknown takes `transfers`",
        "did you mean `transfer`?",
    ),
    (
        SOLVE,
        "memory_transfers = 6",
        "memory_transfers = 6\ntransfer_packets = 65",
        "transfer_packets = 65",
        "a transfer is of 65 packets, and a resource can hold 64",
        "give `buffer = 65` or more",
    ),
    (
        SIMULATE,
        "name = \"mac\"",
        "name = \"memory\"",
        "",
        "there is a resource `memory` already",
        "another name",
    ),
    (
        SIZE,
        "rate = \"1 Gbit/s\"",
        "rat = \"1 Gbit/s\"",
        "rat = ",
        "unknown key `rat`",
        "did you mean `rate`?",
    ),
];

/// What is said of a file, with exit code 2.
fn said(folder: &Path, command: &[&str], text: &str) -> String {
    std::fs::write(folder.join("broken.toml"), text).unwrap();
    let (name, rest) = command.split_first().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .arg(name)
        .arg("broken.toml")
        .args(rest)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{command:?}: {text}");
    assert!(output.stdout.is_empty(), "{command:?}");
    // Long lines are broken anywhere, with marks at the margin.
    let words = text.split_whitespace().filter(|word| !matches!(*word, "│" | "╰─▶"));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn everything_wrong_has_file_line_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("sizes.csv", "size\n40\n1500\n");
    write("broken.csv", "size,time\n40,0\nmany,1\n");
    write("timed.csv", "size,time\n40,0\n1500,0.001\n");
    let mut wrong = Vec::new();
    for (whole, rows) in [(LINE, ROWS), (CARD, CARD_ROWS)] {
        for (command, what, by, place, message, hint) in rows {
            assert!(whole.contains(what), "{what}");
            let text = whole.replacen(what, by, 1);
            let said = said(folder.path(), command, &text);
            let row = format!("{command:?} {by:?}: {said}");
            let mut expect = |words: &str| {
                if !said.contains(words) {
                    wrong.push(format!("{row}\nexpected: {words}"));
                }
            };
            expect(message);
            expect(hint);
            if !place.is_empty() {
                let at = text.find(place).unwrap_or_else(|| panic!("{place}"));
                let line = 1 + text[..at].matches('\n').count();
                expect(&format!("broken.toml:{line}:"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_stage_without_room_that_all_would_wait_for() {
    let folder = tempfile::tempdir().unwrap();
    let text = LINE.replace("\"drop\"", "\"block\"").replace("buffer = 7", "buffer = 0");
    for command in [SIMULATE, SOLVE, SIZE] {
        let said = said(folder.path(), command, &text);
        assert!(said.contains("`buffer` is 0") && said.contains("would wait for ever"), "{said}");
        assert!(said.contains("broken.toml:28:"), "{said}");
    }
}
