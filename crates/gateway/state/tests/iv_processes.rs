//! Several processes that reserve at once, some of them killed meanwhile.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use forebay_crypto::{SaKeys, SecretBytes};
use forebay_state::{IvStore, KeyId};

const DIRECTORY: &str = "FOREBAY_TEST_IV_DIRECTORY";

fn id() -> KeyId {
    let key = SecretBytes::new(vec![7; 20]);
    KeyId::of(&SaKeys::new("aes128gcm16".parse().unwrap(), &key, &SecretBytes::new(vec![])).unwrap())
}

/// Not a test by itself: what the other one's processes run. Reserves until killed, and reports each
/// range as a line that counts only if it is complete.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let store = IvStore::new(directory);
    loop {
        let range = store.reserve(&BTreeMap::from([(id(), 3)]), 1000).unwrap()[&id()].clone();
        let line = format!("\nrange {} {} .\n", range.start, range.end);
        if std::io::stdout().write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads `count` ranges, kills the process wherever it is, and reads what it still said.
fn take_and_kill(mut child: Child, count: usize) -> Vec<Range<u64>> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let parse = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["range", start, end, "."] => Some(start.parse().unwrap()..end.parse().unwrap()),
            _ => None,
        }
    };
    let mut ranges: Vec<_> = lines.by_ref().filter_map(parse).take(count).collect();
    assert_eq!(ranges.len(), count, "the process ended by itself");
    child.kill().unwrap();
    ranges.extend(lines.filter_map(parse));
    child.wait().unwrap();
    ranges
}

/// Puts the journal in the place that it was before the last of these ranges: no process begins with it.
fn refuse_without_the_last(state: &Path, ranges: &[Range<u64>]) {
    let path = state.join("records.log");
    let text = std::fs::read_to_string(&path).unwrap();
    let last = ranges.iter().map(|range| range.end).max().unwrap();
    // A journal that was replaced since has the last lines only.
    let Some(line) = text.lines().position(|line| line.ends_with(&format!(" {last}"))) else { return };
    let older: String = text.lines().take(line).map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, older).unwrap();
    let error = IvStore::new(state).reserve(&BTreeMap::from([(id(), 3)]), 1000).unwrap_err();
    assert!(error.to_string().contains("an older copy"), "{error}");
    std::fs::write(&path, text).unwrap();
}

#[test]
fn processes_get_disjoint_ranges_and_killing_them_repeats_none() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut ranges: Vec<Range<u64>> = vec![];
    for round in 0..6 {
        let children: Vec<_> = (0..4).map(|_| start(&state)).collect();
        ranges.extend(std::thread::scope(|scope| {
            let readers: Vec<_> = children
                .into_iter()
                .enumerate()
                .map(|(number, child)| scope.spawn(move || take_and_kill(child, 1 + round * 3 + number * 5)))
                .collect();
            readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
        }));
        refuse_without_the_last(&state, &ranges);
    }
    ranges.sort_by_key(|range| range.start);
    for pair in ranges.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?} overlap");
    }
}
