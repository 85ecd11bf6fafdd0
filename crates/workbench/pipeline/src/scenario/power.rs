//! The powers of `[[stage]]` and `[[server]]`.

use forebay_scenario::{Section, Unit};
use serde_json::{Map, Value as Json};

use crate::description::{Pipeline, Power};

/// The keys.
pub(super) const KEYS: [&str; 2] = ["active_power", "idle_power"];

/// The power of a unit or core, if the file says any.
pub(super) fn read(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<Power> {
    let mut watts = |key: &str| {
        let watts = section.not_negative(key, Unit::Power)?;
        map.insert(key.to_owned(), watts.into());
        Some(watts)
    };
    let (active, idle) = (watts(KEYS[0]), watts(KEYS[1]));
    let idle_w = idle.unwrap_or(0.0);
    active.or(idle).map(|active_w| Power { active_w, idle_w })
}

/// Names the units and cores without a power, if others have one.
pub(super) fn note(pipeline: &Pipeline) -> Option<String> {
    let stages = pipeline.stages.iter().filter(|stage| stage.server.is_none());
    let all: Vec<(&str, bool)> = stages
        .map(|stage| (stage.name.as_str(), stage.power.is_some()))
        .chain(pipeline.servers.iter().map(|server| (server.name.as_str(), server.power.is_some())))
        .collect();
    let without: Vec<String> =
        all.iter().filter(|(_, has)| !has).map(|(name, _)| format!("`{name}`")).collect();
    let some = !without.is_empty() && without.len() < all.len();
    some.then(|| {
        let names = without.join(", ");
        format!("the energy is without {names}: neither `active_power` nor `idle_power` is given")
    })
}
