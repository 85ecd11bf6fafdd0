//! A gateway as the report sees it: its figures, its name, and each processor's colour.

use super::super::figures::{DemoFigures, GatewayFigures, ProcessorFigures};
use super::draw;
use super::element::{Element, element};

/// One of the two gateways.
pub struct Side<'a> {
    /// `Gateway A`.
    pub name: &'static str,
    /// What it does, after its name.
    pub role: &'static str,
    /// Its figures.
    pub figures: &'a GatewayFigures,
    /// The colour and mark of each processor.
    slots: Vec<usize>,
}

/// Both gateways; a processor's name has the same colour in both.
pub fn sides(figures: &DemoFigures) -> [Side<'_>; 2] {
    let mut known = Vec::new();
    let sealing = slots(&figures.sealing, &mut known);
    let opening = slots(&figures.opening, &mut known);
    [
        Side { name: "Gateway A", role: "sealing", figures: &figures.sealing, slots: sealing },
        Side { name: "Gateway B", role: "opening", figures: &figures.opening, slots: opening },
    ]
}

/// A slot for each processor, by its name; a name given twice stands for two processors.
fn slots<'a>(gateway: &'a GatewayFigures, known: &mut Vec<(&'a str, usize)>) -> Vec<usize> {
    let mut slots = Vec::new();
    for (i, processor) in gateway.processors.iter().enumerate() {
        let name = processor.name.as_str();
        let key = (name, gateway.processors[..i].iter().filter(|other| other.name == name).count());
        slots.push(known.iter().position(|other| *other == key).unwrap_or_else(|| {
            known.push(key);
            known.len() - 1
        }));
    }
    slots
}

impl Side<'_> {
    /// Each processor after its slot.
    pub fn processors(&self) -> impl Iterator<Item = (usize, &ProcessorFigures)> {
        self.slots.iter().copied().zip(&self.figures.processors)
    }

    /// Packets of all processors; as a real number, since a sum of counts may pass their limit.
    pub fn packets(&self) -> f64 {
        self.figures.processors.iter().map(|p| p.packets as f64).sum()
    }

    /// Bytes of all processors.
    pub fn bytes(&self) -> f64 {
        self.figures.processors.iter().map(|p| p.bytes as f64).sum()
    }

    /// Its name and what it does.
    pub fn title(&self) -> String {
        format!("{}, {}", self.name, self.role)
    }
}

/// Names the colours and marks of all processors.
pub fn legend(sides: &[Side<'_>]) -> Element {
    let mut entries: Vec<(usize, &str)> = Vec::new();
    for (slot, processor) in sides.iter().flat_map(Side::processors) {
        if entries.iter().all(|entry| entry.0 != slot) {
            entries.push((slot, &processor.name));
        }
    }
    let entry = |(slot, name)| element("li").class(draw::colour(slot)).child(swatch(slot)).text(name);
    element("ul").class("legend").children(entries.into_iter().map(entry))
}

/// A processor's mark at the size of a letter.
pub fn swatch(slot: usize) -> Element {
    let svg = element("svg").at("viewBox", "0 0 14 14").class("swatch").at("aria-hidden", "true");
    svg.child(draw::mark(slot, 7.0, 7.0, 5.0, "fill"))
}
