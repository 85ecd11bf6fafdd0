//! `forebay study`: what is here without Python, and how Python is found and asked. What a study does is tested with the
//! package of Python.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn study(python: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("study").args(args).env("FOREBAY_PYTHON", python).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A message without the line breaks by which it fits into the terminal.
fn unwrapped(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A shell script in the place of Python.
fn script(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("python");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn studies_are_listed_and_copied_without_python() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("nowhere");
    let listed = text(&study(&nowhere, &["list"]).stdout);
    for name in ["multi-accelerator", "small-packets", "network-processor", "inline-card", "embedded-ipsec"] {
        assert!(listed.lines().any(|line| line.starts_with(name) && line.len() > 30), "{listed}");
    }
    let copy = directory.path().join("copy");
    let copied = study(&nowhere, &["copy", "scaling", copy.to_str().unwrap()]);
    assert_eq!(copied.status.code(), Some(0), "{}", text(&copied.stderr));
    assert!(copy.join("study.py").is_file() && copy.join("cores.toml").is_file());
    let again = study(&nowhere, &["copy", "scaling", copy.to_str().unwrap()]);
    assert!(again.status.code() == Some(2) && unwrapped(&again.stderr).contains("must not exist yet"));
}

#[test]
fn arguments_reach_python_and_its_exit_code_is_that_of_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let python = script(directory.path(), "shift 2; printf '%s|' \"$@\"; exit 1");
    let ran = study(&python, &["run", "own", "--out", "a b", "--json", "--quick", "--strict"]);
    assert_eq!(text(&ran.stdout), "run|--json|--quick|--strict|--out|a b|--|own|");
    assert_eq!(ran.status.code(), Some(1));
}

#[test]
fn what_is_missing_is_said_with_how_to_install_it() {
    let directory = tempfile::tempdir().unwrap();
    let missing = study(&directory.path().join("nowhere"), &["run", "scaling"]);
    // A terminal's lines may break within it.
    let said = text(&missing.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(missing.status.code() == Some(2) && said.contains("nowhere is not installed"), "{said}");
    assert!(said.contains("`make wheel`"), "{said}");
    if Command::new("python3").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: python3 is not installed");
    }
    // Isolated and without site packages there is no package, whatever this machine has.
    let python = script(directory.path(), "exec python3 -I -S \"$@\"");
    let missing = study(&python, &["run", "scaling"]);
    let said = unwrapped(&missing.stderr);
    assert!(
        missing.status.code() == Some(2) && said.contains("the package forebay of Python is not installed"),
        "{said}"
    );
    assert!(said.contains("make wheel") && said.contains("pip install target/wheels/forebay"), "{said}");
}
