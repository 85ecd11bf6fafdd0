//! `[[stage]]`.

use forebay_diagnostics::{Place, Problem};
use forebay_scenario::{Section, Unit, Value, tables};
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use super::{PARTS, branches, breakdowns, describe, known, laws, order, power, schema};
use crate::description::{Discipline, Overflow, Server, Stage};
use crate::law::Law;
use crate::ways::Flaw;

const STAGES_MAX: usize = 1_024;

/// Why a name stands once and there are no cycles.
const PASSED_ONCE: &str = "a packet passes each stage once: give it another name";

pub(super) fn read(
    top: &Section<'_>,
    servers: &[(Server, Place)],
    service: &'static str,
    has_sizes: bool,
    overflow: Overflow,
    resolved: &mut Map<String, Json>,
) -> Vec<Stage> {
    let tables = tables(top, "stage");
    if tables.is_empty() && !top.has("stage") {
        top.missing("stage", "[[stage]]");
    }
    if tables.len() > STAGES_MAX {
        let message = format!("{} stages are too many", tables.len());
        top.conflict("stage", message, format!("at most {STAGES_MAX}"));
    }
    let mut stages: Vec<Stage> = Vec::new();
    let mut sections = Vec::new();
    let mut maps: Vec<Map<String, Json>> = Vec::new();
    for (number, (table, place)) in tables.into_iter().enumerate().take(STAGES_MAX) {
        let section =
            Section::new(table, "this [[stage]]".to_owned(), place, &known(PARTS, "stage"), top.findings());
        let name = section.text("name").map_or_else(|| format!("stage{number}"), str::to_owned);
        if stages.iter().any(|known| known.name == name) {
            section.conflict("name", format!("there is a stage `{name}` already"), PASSED_ONCE);
        }
        let mut map = Map::from_iter([("name".to_owned(), name.as_str().into())]);
        let stage = one(&section, name, servers, service, has_sizes, overflow, &mut map);
        maps.push(map);
        stages.push(stage);
        sections.push(section);
    }
    if branches::are_in(&sections) {
        branches::read(&mut stages, &sections, &mut maps);
    } else if sections.iter().any(|section| section.has("next")) {
        let Some(order) = order::of(&stages, &sections) else { return stages };
        let mut of = order.iter().copied();
        (stages, maps) = of.clone().map(|at| (stages[at].clone(), maps[at].clone())).unzip();
        let mut all: Vec<Option<Section<'_>>> = sections.into_iter().map(Some).collect();
        sections = of.by_ref().filter_map(|at| all[at].take()).collect();
    }
    for (number, (server, place)) in servers.iter().enumerate() {
        check_span(number, servers, &stages, &sections);
        if stages.iter().all(|stage| stage.server != Some(number)) && top.findings().borrow().is_empty() {
            let (name, help) = (&server.name, "take it away, or give its stages `server`");
            let message = format!("no stage is on the server `{name}`: every stage has a unit of its own");
            top.report(Problem::Conflict { message, help: help.to_owned() }, place.clone());
        }
    }
    resolved.insert("stage".to_owned(), maps.into_iter().collect());
    stages
}

/// Says what is wrong with the ways of packets, where it stands.
pub(super) fn report(top: &Section<'_>, flaw: Flaw) {
    let stage = tables(top, "stage").into_iter().nth(flaw.stage);
    let place = stage.map_or_else(
        || top.place.clone(),
        |(table, place)| table.get(flaw.key).map_or(place, |node| node.place.clone()),
    );
    top.report(Problem::Conflict { message: flaw.message, help: flaw.help.to_owned() }, place);
}

fn one(
    section: &Section<'_>,
    name: String,
    servers: &[(Server, Place)],
    service: &'static str,
    has_sizes: bool,
    overflow: Overflow,
    map: &mut Map<String, Json>,
) -> Stage {
    let time = laws::read(section, service);
    if let Some(Law::Rate { overhead_bytes, .. }) = time
        && !has_sizes
        && overhead_bytes == 0
    {
        let help = "give `packet_bytes` at the top of the file";
        section.conflict("rate", "packets without a size take no time at a rate", help);
    }
    let time = time.unwrap_or(Law::Constant(Duration(1)));
    if !section.has("buffer") {
        section.missing("buffer", "buffer = 101");
    }
    let empty =
        section.node("buffer").is_some_and(|node| matches!(&node.value, Value::Number(n) if n == "0"));
    if empty {
        let help = match overflow {
            Overflow::Block | Overflow::BlockAfterService => {
                "nothing could be passed on to it, and without loss all before it would \
                                wait for ever. The packet in service counts: 1 is no waiting place"
            }
            Overflow::Drop => {
                "it would lose every packet. The packet in service counts: 1 is no waiting place"
            }
        };
        section.conflict("buffer", "`buffer` is 0", help);
    }
    let number = |key, default| section.whole(key, Unit::None, 1, u32::MAX.into()).unwrap_or(default) as u32;
    let buffer = if empty { 1 } else { number("buffer", 1) };
    let units = section.whole("units", Unit::None, 1, schema::WORKERS).unwrap_or(1) as u32;
    let batch = number("batch", 1);
    let (batch_min, batch_timeout) = least(section, batch, buffer, map);
    let setup = section.time("setup").unwrap_or(Duration::ZERO);
    let priority = section.whole("priority", Unit::None, 0, u32::MAX.into()).unwrap_or(0) as u32;
    let server = server(section, servers);
    if let Some(server) = server {
        map.insert("server".to_owned(), servers[server].0.name.as_str().into());
        if units > 1 {
            let help = format!("give `cores = {units}` to the server");
            section.conflict("units", "a stage on a shared server has no units of its own", help);
        }
        for key in ["mtbf", "mttr", "breakdowns"].into_iter().filter(|key| section.has(key)) {
            let message = "a stage on a shared server has no units of its own that break down";
            section.conflict(key, message, format!("give `{key}` to the server"));
        }
        for key in power::KEYS.into_iter().filter(|key| section.has(key)) {
            let message = "a stage on a shared server has no units of its own that take power";
            section.conflict(key, message, format!("give `{key}` to the server"));
        }
    }
    describe(&time, map);
    map.extend([
        ("buffer".to_owned(), buffer.into()),
        ("units".to_owned(), units.into()),
        ("batch".to_owned(), batch.into()),
        ("setup".to_owned(), setup.as_secs().into()),
        ("priority".to_owned(), priority.into()),
    ]);
    let breakdowns = if server.is_none() { breakdowns::read(section, map) } else { None };
    let power = if server.is_none() { power::read(section, map) } else { None };
    Stage {
        name,
        time,
        buffer,
        server,
        units,
        batch,
        batch_min,
        batch_timeout,
        setup,
        priority,
        next: None,
        breakdowns,
        power,
    }
}

/// For how many packets a service waits, and how long.
fn least(
    section: &Section<'_>,
    batch: u32,
    buffer: u32,
    map: &mut Map<String, Json>,
) -> (u32, Option<Duration>) {
    let given = section.whole("batch_min", Unit::None, 1, u32::MAX.into()).map(|least| least as u32);
    let timeout = section.time("batch_timeout");
    let Some(least) = given else {
        if section.has("batch_timeout") {
            let message =
                "`batch_timeout` means nothing without `batch_min`: a service begins with any packet";
            section.conflict("batch_timeout", message, "give `batch_min`, or take it away");
        }
        return (1, None);
    };
    if least > batch {
        let message = format!("`batch_min` is {least}, and a service takes {batch} packets at most");
        section.conflict("batch_min", message, format!("give `batch = {least}` or more"));
    } else if least > buffer {
        let message = format!("a service waits for {least} packets, and there is room for {buffer}");
        section.conflict("batch_min", message, format!("give `buffer = {least}` or more"));
    }
    if timeout.is_none() && least > 1 && !section.has("batch_timeout") {
        section.missing("batch_timeout", "batch_timeout = \"100 us\"");
    }
    map.insert("batch_min".to_owned(), least.into());
    timeout.map(|timeout| map.insert("batch_timeout".to_owned(), timeout.as_secs().into()));
    (least, timeout)
}

fn server(section: &Section<'_>, servers: &[(Server, Place)]) -> Option<usize> {
    if servers.is_empty() && section.has("server") {
        section.conflict("server", "there is no [[server]]", "add one, or leave `server` away");
        return None;
    }
    let names: Vec<&str> = servers.iter().map(|(server, _)| server.name.as_str()).collect();
    let name = section.word("server", &names)?;
    names.iter().position(|known| *known == name)
}

/// A packet holds a busy-waiting server through all stages between its first and its last.
fn check_span(number: usize, servers: &[(Server, Place)], stages: &[Stage], sections: &[Section<'_>]) {
    let server = &servers[number].0;
    let waits = |other: usize| matches!(servers[other].0.discipline, Discipline::BusyWaiting { .. });
    let Discipline::BusyWaiting { .. } = server.discipline else { return };
    let on = |stage: &Stage| stage.server == Some(number);
    let (Some(first), Some(last)) = (stages.iter().position(on), stages.iter().rposition(on)) else { return };
    for (stage, section) in stages[first..=last].iter().zip(&sections[first..=last]) {
        if stage.server.is_some_and(|other| other != number && waits(other)) {
            let message = format!(
                "`{}` is on another busy-waiting server while its packet holds the busy-waiting `{}`",
                stage.name, server.name
            );
            section.conflict(
                "server",
                message,
                "give it a unit of its own, or make the other server interrupt-driven",
            );
        }
        if stage.batch > 1 && last > first {
            let message =
                format!("a context of the busy-waiting `{}` holds one packet, not a batch", server.name);
            section.conflict("batch", message, "leave `batch` away");
        }
    }
}
