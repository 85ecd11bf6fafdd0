//! Keys of scenarios, of embedded cores and of custom instructions: the figures with the key and without it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::table::{Row, Table, name, set_key};

/// Figures by name, as text; what is no number too.
pub type Figures = BTreeMap<String, String>;

/// Where the program keeps what it repeats from the file: not figures.
const ECHO: &[&str] = &["schema", "seed", "resolved", "notes", "model"];
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../workbench/embedded/data/ipsec.toml");
const SA: &str = "[[sa]]\nname = \"out\"\ndirection = \"out\"\nspi = 0x1001\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n";

#[test]
fn keys_of_host_scenarios_change_figures() {
    observe("host", &["simulate"]);
}

#[test]
fn keys_of_pipelines_change_figures() {
    observe("pipeline", &["simulate"]);
}

#[test]
fn keys_of_inline_cards_change_figures() {
    observe("inline-card", &["simulate"]);
}

#[test]
fn keys_of_embedded_cores_change_figures() {
    observe("embedded", &["explore", "run"]);
}

/// Rows of custom instructions say what stands in the file and what stands there instead.
#[test]
fn keys_of_custom_instructions_change_figures_or_packets() {
    let folder = folder();
    let table = Table::of("instructions");
    let text = std::fs::read_to_string(DATA).unwrap();
    let core = table.bases["core"].as_str().unwrap();
    let run = |text: &str| {
        std::fs::write(folder.path().join("mine.toml"), text).unwrap();
        let mut figures = run(folder.path(), core, &[], &["explore", "run", "--packets", "passed.pcap"])?;
        let passed = std::fs::read(folder.path().join("passed.pcap")).unwrap();
        figures.insert("passed".to_owned(), format!("{passed:?}"));
        Ok(figures)
    };
    let before = run(&text).unwrap();
    let mut wrong = Vec::new();
    for (key, row) in &table.rows {
        let Row::Here { base: from, sets, figure } = row else { continue };
        assert!(text.contains(from.as_str()), "{key}: the file has no `{from}`");
        let after = run(&text.replacen(from.as_str(), &sets[0], 1));
        wrong.extend(judge(key, figure, &before, after));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A folder with all that the scenarios name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let trace = |count: usize, size: usize| {
        let lines = (0..count).map(|at| format!("{},{:.6}\n", size + at % 7, at as f64 * 1e-5));
        "size,time\n".to_owned() + &lines.collect::<String>()
    };
    write("trace.csv", trace(50, 100).as_bytes());
    write("other.csv", trace(30, 900).as_bytes());
    write("marked.pcap", &marked());
    let gcm = |cipher: &str, key: &str| format!("{SA}proposal = \"{cipher}\"\nkey = \"{key}\"\n");
    let sas = gcm("aes128gcm16", "000102030405060708090a0b0c0d0e0f10111213");
    write("sas.toml", sas.as_bytes());
    write("other.toml", gcm("aes256gcm16", &"3c".repeat(36)).as_bytes());
    let back = gcm("aes128gcm16", &"4d".repeat(20)).replace("\"out\"", "\"in\"");
    write("both.toml", (sas + &back).as_bytes());
    let md5 = format!(
        "{SA}proposal = \"aes128-md5\"\nallow_weak = true\nkey = \"{}\"\nauth_key = \"{}\"\n",
        "5e".repeat(16),
        "6f".repeat(16)
    );
    write("md5.toml", md5.as_bytes());
    write("functions.toml", b"[groups]\ncipher = [\"aes_*\"]\n");
    let packet =
        [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1][..], &[7; 20]].concat();
    let image =
        |count: usize| forebay_embedded::image::input(false, &[], &[], &vec![(false, &packet[..]); count]);
    write("input.bin", &image(1));
    write("other.bin", &image(3));
    folder
}

/// A capture of IPv4 packets with three code points.
fn marked() -> Vec<u8> {
    let mut capture = Vec::new();
    [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101]
        .iter()
        .for_each(|word| capture.extend(word.to_le_bytes()));
    for number in 0..40_u32 {
        [1, number * 1_000, 60, 60].iter().for_each(|word| capture.extend(word.to_le_bytes()));
        capture.extend([0x45, [0xb8, 0x20, 0][number as usize % 3], 0, 60, 0, 0, 0, 0, 64, 17, 0, 0]);
        capture.extend([10, 1, 0, 1, 10, 2, 0, 1]);
        capture.extend([0; 40]);
    }
    capture
}

/// Observes every row of a kind of scenario.
fn observe(file: &str, words: &[&str]) {
    let folder = folder();
    let table = Table::of(file);
    let mut wrong = Vec::new();
    for (key, row) in &table.rows {
        let Row::Here { base, sets, figure } = row else { continue };
        let text = table.bases[base].as_str().unwrap();
        // What makes the key matter is set in both runs.
        let (own, others): (Vec<String>, Vec<String>) =
            sets.iter().cloned().partition(|set| set_key(set) == name(key));
        assert!(!own.is_empty(), "{file}: the row of `{key}` does not set it");
        let before = run(folder.path(), text, &others, words);
        let before = before.unwrap_or_else(|error| panic!("{file}: `{key}`: {error}"));
        let after = run(folder.path(), text, &[others, own].concat(), words);
        wrong.extend(judge(key, figure, &before, after));
    }
    assert!(wrong.is_empty(), "{file}:\n{}", wrong.join("\n"));
}

/// What is wrong: the figure is the same, or the file was not refused as the row says.
pub fn judge(key: &str, figure: &str, before: &Figures, after: Result<Figures, String>) -> Option<String> {
    match (figure.strip_prefix("refused: "), after) {
        (Some(words), Err(error)) if error.contains(words) => None,
        (Some(words), Err(error)) => Some(format!("`{key}` is refused without `{words}`: {error}")),
        (Some(_), Ok(_)) => Some(format!("`{key}` is not refused")),
        (None, Err(error)) => Some(format!("`{key}`: {error}")),
        (None, Ok(after)) if before.get(figure) != after.get(figure) => None,
        (None, Ok(after)) => {
            let names = before.keys().chain(after.keys());
            let changed: Vec<_> =
                names.filter(|name| before.get(*name) != after.get(*name)).take(5).collect();
            Some(format!("`{key}` does not change {figure}; it changes {changed:?}"))
        }
    }
}

/// The figures of a scenario, or what was said against it.
fn run(folder: &Path, text: &str, sets: &[String], words: &[&str]) -> Result<Figures, String> {
    let path: PathBuf = folder.join("scenario.toml");
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.args(words).args(["scenario.toml", "--json"]).current_dir(folder).env("NO_COLOR", "1");
    sets.iter().for_each(|set| _ = command.args(["--set", set]));
    let output = command.output().unwrap();
    if output.status.code() != Some(0) {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let top = document.as_object_mut().unwrap();
    ECHO.iter().for_each(|key| _ = top.remove(*key));
    let mut figures = Figures::new();
    flat("", &document, &mut figures);
    Ok(figures)
}

/// Every value by its path; entries of lists by their names.
pub fn flat(path: &str, value: &Value, out: &mut Figures) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let key = match key.as_str() {
                "processors" => "processor",
                "buses" => "bus",
                "classes" => "class",
                key => key,
            };
            flat(&below(key), value, out);
        }),
        Value::Array(list) => list.iter().for_each(|one| {
            flat(&below(one.get("name").and_then(Value::as_str).unwrap_or("?")), one, out);
        }),
        one => _ = out.insert(path.to_owned(), one.to_string()),
    }
}
