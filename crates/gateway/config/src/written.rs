//! Files that the gateway writes and that are also its inputs.

use std::path::{Path, PathBuf};

use forebay_diagnostics::Problem;
use forebay_sas::files_named;
use forebay_scenario::{Node, Table, Value};

use super::reader::Context;
use super::{Config, KeySource, Listen, LivePage, STATE_FILES};

/// Refuses what the gateway writes in the place of a file that it reads, such as keys.
pub(super) fn check(config: &Config, name: &str, top: &Table, context: &Context<'_>) {
    let mut read = files_named(Path::new(name));
    if let KeySource::Static { sas: Some(path), .. } = &config.keys.source {
        read.extend(files_named(path));
    }
    // Without `state` it is the environment that says where, and the start that refuses it.
    read.extend(config.keys.state.iter().flat_map(|state| STATE_FILES.map(|name| state.join(name))));
    let key_of = |section: &str, key: &str| match top.get(section).map(|node| &node.value) {
        Some(Value::Table(table)) => table.get(key),
        _ => None,
    };
    let page = match &config.page {
        Some(LivePage { listen: Listen::Unix(control), .. }) => Some(control.socket.as_path()),
        _ => None,
    };
    let written = [
        ("esp_sa_export", config.esp_sa_export.as_deref(), top.get("esp_sa_export")),
        ("socket", Some(config.control.socket.as_path()), key_of("control", "socket")),
        ("listen", page, key_of("page", "listen")),
    ];
    let directory = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
    let written = written.into_iter().filter_map(|(key, path, node)| Some((key, path?.to_owned(), node)));
    let records = records(top, directory).map(|(key, path, node)| (key, path, Some(node)));
    let written: Vec<_> = written.chain(records).collect();
    // What two keys name is written by one in the place of the other's.
    for (at, (key, path, node)) in written.iter().enumerate() {
        let is_same = |other: &Path| {
            other == path || forebay_links::output::keep_apart(&[] as &[&Path], [other, path]).is_err()
        };
        // Of two sockets that is said where they are read.
        let is_file = |&&(other, ..): &&(&str, PathBuf, Option<&Node>)| {
            [*key, other].iter().any(|key| ["esp_sa_export", "record"].contains(key))
        };
        let mut others = written[..at].iter().filter(is_file);
        let other = others.find(|(_, other, _)| is_same(other)).map(|(other, ..)| *other);
        if let Some((other, node)) = other.zip(node.or_else(|| top.get("esp_sa_export"))) {
            let message = format!("`{key}` and `{other}` name the same file: {}", path.display());
            let help = "give it a name that no other file has".to_owned();
            context.findings.borrow_mut().add(Problem::Conflict { message, help }, node.place.clone());
        }
    }
    for (key, path, node) in written.into_iter().filter_map(|(key, path, node)| Some((key, path, node?))) {
        if let Err(same) = forebay_links::output::keep_apart(&read, [path.as_path()]) {
            let message = format!("`{key}` names a file that the gateway uses: {same}");
            let help = "give it a name that no other file has".to_owned();
            context.findings.borrow_mut().add(Problem::Conflict { message, help }, node.place.clone());
        }
    }
}

/// The waveforms that simulated cores write.
fn records<'a>(top: &'a Table, directory: &Path) -> impl Iterator<Item = (&'static str, PathBuf, &'a Node)> {
    let processors = match top.get("processor").map(|node| &node.value) {
        Some(Value::List(list)) => list.as_slice(),
        _ => &[],
    };
    let record = |node: &'a Node| match &node.value {
        Value::Table(table) => table.get("record"),
        _ => None,
    };
    processors.iter().filter_map(record).filter_map(move |node| match &node.value {
        Value::Text(path) => Some(("record", directory.join(path), node)),
        _ => None,
    })
}
