//! The powers of `[[processor]]` and the energies of `[bus]`.

use serde_json::{Map, Value as Json};

use super::decimal::Unit;
use super::section::Section;
use super::{Bus, Processor, Traffic};
use crate::energy::Power;

/// The power of a processor, if the file says any.
pub(super) fn of_processor(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<Power> {
    let mut watts = |key: &str| {
        let watts = section.not_negative(key, Unit::Power)?;
        map.insert(key.to_owned(), watts.into());
        Some(watts)
    };
    let (active, idle) = (watts("active_power"), watts("idle_power"));
    let idle_w = idle.unwrap_or(0.0);
    active.or(idle).map(|active_w| Power { active_w, idle_w })
}

/// The energy of each byte on a bus, if the file says it.
pub(super) fn of_bus(section: &Section<'_>, map: &mut Map<String, Json>) -> Option<f64> {
    let joules = section.not_negative("energy_per_byte", Unit::Energy)?;
    map.insert("energy_per_byte".to_owned(), joules.into());
    Some(joules)
}

/// Refuses energies of buses whose bytes are not counted, and notes which processors the energy leaves out, where there is one.
pub(super) fn check(
    top: &Section<'_>,
    traffic: Option<&Traffic>,
    buses: &[Bus],
    processors: &[Processor],
    notes: &mut Vec<String>,
) {
    // Bytes are counted at the processor of the last pass.
    let passes = traffic.is_some_and(|traffic| traffic.passes.len() > 1);
    if passes && buses.iter().any(|one| one.energy_per_byte_j.is_some()) {
        let message = "`energy_per_byte` excludes `passes` that are jobs of their own";
        top.conflict("bus", message, "set `dependent = \"same-processor\"` in [scheduler], or remove it");
    }
    // As `crate::energy::of` has it: the energy of a bus that no processor is on is none.
    let on_bus = |one: &Processor| buses.get(one.bus?)?.energy_per_byte_j;
    if !processors.iter().any(|one| one.power.is_some() || on_bus(one).is_some()) {
        return;
    }
    let without: Vec<String> =
        processors.iter().filter(|one| one.power.is_none()).map(|one| format!("`{}`", one.name)).collect();
    if !without.is_empty() {
        let all = without.join(", ");
        notes.push(format!("the energy is without {all}: neither `active_power` nor `idle_power` is given"));
    }
}
