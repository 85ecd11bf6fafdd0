//! `[[server]]`.

use forebay_diagnostics::Place;
use forebay_scenario::{Section, Unit, tables};
use forebay_time::Duration;
use serde_json::{Map, Value as Json};

use super::{PARTS, breakdowns, known, power, schema};
use crate::description::{Discipline, Grant, RunEnds, Server};
use crate::law::Law;

const CORES_MAX: u64 = 1_024;
/// The paper's own is 0.5 s, as long as its runs; this is what its Markov chain is tuned around.
const RUN_LENGTH: Duration = Duration::from_micros(100);

/// The servers, and where each stands.
pub(super) fn read(
    top: &Section<'_>,
    notes: &mut Vec<String>,
    resolved: &mut Map<String, Json>,
) -> Vec<(Server, Place)> {
    let mut servers: Vec<(Server, Place)> = Vec::new();
    let mut maps = Vec::new();
    for (number, (table, place)) in tables(top, "server").into_iter().enumerate() {
        let name = "this [[server]]".to_owned();
        let section = Section::new(table, name, place.clone(), &known(PARTS, "server"), top.findings());
        let name = section.text("name").map_or_else(|| format!("server{number}"), str::to_owned);
        if servers.iter().any(|(known, _)| known.name == name) {
            section.conflict("name", format!("there is a server `{name}` already"), "give it another name");
        }
        let cores = section.whole("cores", Unit::None, 1, CORES_MAX).unwrap_or(1) as u32;
        let mut map =
            Map::from_iter([("name".to_owned(), name.as_str().into()), ("cores".to_owned(), cores.into())]);
        // A wrong discipline has left its finding; the stages still need their server.
        let discipline =
            discipline(&section, &name, notes, &mut map).unwrap_or_else(Discipline::busy_waiting);
        let breakdowns = breakdowns::read(&section, &mut map);
        let power = power::read(&section, &mut map);
        maps.push(map.into());
        servers.push((Server { name, cores, discipline, breakdowns, power }, place));
    }
    if !maps.is_empty() {
        resolved.insert("server".to_owned(), Json::Array(maps));
    }
    servers
}

fn discipline(
    section: &Section<'_>,
    name: &str,
    notes: &mut Vec<String>,
    map: &mut Map<String, Json>,
) -> Option<Discipline> {
    if !section.has("discipline") {
        section.missing("discipline", "discipline = \"interrupt-driven\"");
    }
    let exponential = section.word("distribution", &["constant", "exponential"]) == Some("exponential");
    let law = |time| if exponential { Law::Exponential(time) } else { Law::Constant(time) };
    let switch_delay = section.time("switch_delay").unwrap_or(Duration::ZERO);
    let run_length = section.time("run_length");
    let contexts = section.whole("contexts", Unit::None, 1, schema::WORKERS).unwrap_or(1) as u32;
    let ends = section.word("run_ends", &["packet", "slice"]).unwrap_or("packet");
    let grants = ["first-asked", "round-robin", "priority", "preemptive-priority"];
    let grant = section.word("grant", &grants).unwrap_or("first-asked");
    let word = section.word("discipline", &["busy-waiting", "interrupt-driven"])?;
    map.insert("discipline".to_owned(), word.into());
    map.insert("switch_delay".to_owned(), switch_delay.as_secs().into());
    map.insert("distribution".to_owned(), if exponential { "exponential" } else { "constant" }.into());
    // Keys of the other discipline stay without effect, so that one word of a file compares the two.
    if word == "busy-waiting" {
        map.insert("contexts".to_owned(), contexts.into());
        return Some(Discipline::BusyWaiting { contexts, switch_delay: law(switch_delay) });
    }
    if run_length == Some(Duration::ZERO) {
        let help = "of two stages that ask, neither would ever come to work; leave it away for 100 us";
        section.conflict("run_length", "`run_length` is 0: a run has to be a time above zero", help);
    }
    if !section.has("run_length") {
        notes.push(format!("run_length of `{name}` is not given: {RUN_LENGTH}"));
    }
    let run_length = run_length.unwrap_or(RUN_LENGTH);
    map.insert("run_length".to_owned(), run_length.as_secs().into());
    map.insert("run_ends".to_owned(), ends.into());
    map.insert("grant".to_owned(), grant.into());
    Some(Discipline::InterruptDriven {
        run_length: law(run_length),
        switch_delay: law(switch_delay),
        run_ends: if ends == "slice" { RunEnds::Slice } else { RunEnds::Packet },
        grant: match grant {
            "round-robin" => Grant::RoundRobin,
            "priority" => Grant::Priority,
            "preemptive-priority" => Grant::PreemptivePriority,
            _ => Grant::FirstAsked,
        },
    })
}
