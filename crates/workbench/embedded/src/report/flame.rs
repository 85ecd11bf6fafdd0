//! A flame graph: paths of calls, as wide as their cycles.

use std::collections::BTreeMap;

use forebay_page::draw::{TEXT, WIDTH, coloured, fit, nothing, rect, svg, text};
use forebay_page::element::Element;
use forebay_page::units;

use crate::figures::Figures;

const ROW: f64 = 20.0;
/// Narrower boxes are left out.
const NARROW: f64 = 0.5;

/// A function on a path.
#[derive(Default)]
struct Tree {
    /// With all below.
    cycles: u64,
    group: usize,
    below: BTreeMap<String, Tree>,
}

impl Tree {
    fn depth(&self) -> usize {
        self.below.values().map(|one| 1 + one.depth()).max().unwrap_or(0)
    }
}

pub(super) fn graph(figures: &Figures) -> Element {
    let mut root = Tree::default();
    for stack in &figures.stacks {
        let mut at = &mut root;
        at.cycles += stack.cycles;
        for name in &stack.path {
            at = at.below.entry(name.clone()).or_default();
            at.cycles += stack.cycles;
        }
        at.group = stack.group;
    }
    if root.cycles == 0 {
        return nothing("No cycles");
    }
    let width = 2.0 * WIDTH;
    let mut drawing = svg(width, ROW * root.depth() as f64 + 2.0, "paths of calls and their cycles");
    let mut boxes = Vec::new();
    draw(&root, 0.0, width / root.cycles as f64, 0, root.cycles, &mut boxes);
    drawing = drawing.children(boxes);
    drawing
}

fn draw(tree: &Tree, from: f64, scale: f64, depth: usize, all: u64, out: &mut Vec<Element>) {
    let mut children: Vec<_> = tree.below.iter().collect();
    children.sort_by(|a, b| (b.1.cycles, a.0).cmp(&(a.1.cycles, b.0)));
    let mut x = from;
    for (name, child) in children {
        let (width, y) = (child.cycles as f64 * scale, ROW * depth as f64);
        if width >= NARROW {
            let share = units::percent(units::share(child.cycles as f64, all as f64));
            let title = format!("{name}: {} cycles, {share}", units::count(child.cycles));
            let part = rect(x, y + 1.0, width, ROW - 2.0, &coloured("fill part", child.group));
            out.push(part.title(title));
            if width > 30.0 {
                let class = coloured("inside", child.group);
                out.push(text(x + 4.0, y + 14.5, &class, fit(name, width - 6.0, TEXT)));
            }
            draw(child, x, scale, depth + 1, all, out);
        }
        x += width;
    }
}
