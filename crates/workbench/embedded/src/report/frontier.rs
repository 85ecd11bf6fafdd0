//! What speed costs.

use forebay_page::draw::{Scale, WIDTH, axis_below, axis_left, line, mark, nothing, svg, text};
use forebay_page::element::{Element, Path, element};
use forebay_page::units;

use super::table as html_table;
use crate::figures::Figures;

/// A configuration that was run.
#[derive(Clone, Debug)]
pub struct Point {
    /// What it is called: its keys and values.
    pub name: String,
    /// Its keys and values.
    pub values: Vec<(String, String)>,
    /// What came.
    pub figures: Figures,
}

/// The points that no other beats: none that is as fast is smaller; where all have an energy, none that is as fast and as small
/// takes less of it for a packet. The smallest first.
pub fn best(points: &[Point]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    if !points.is_empty() && points.iter().all(|one| one.figures.energy_per_packet_j.is_some()) {
        return best_of_three(points, order);
    }
    let key = |at: usize| (points[at].figures.area_kge, points[at].figures.us());
    order.sort_by(|&a, &b| key(a).0.total_cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)).then(a.cmp(&b)));
    let mut fastest = f64::INFINITY;
    order.retain(|&at| {
        let better = points[at].figures.us() < fastest;
        fastest = fastest.min(points[at].figures.us());
        better
    });
    order
}

/// The same by area, time and energy.
fn best_of_three(points: &[Point], mut order: Vec<usize>) -> Vec<usize> {
    let key = |at: usize| {
        let one = &points[at].figures;
        [one.area_kge, one.us(), one.energy_per_packet_j.unwrap_or_default()]
    };
    order.sort_by(|&a, &b| {
        let pairs = key(a).into_iter().zip(key(b));
        pairs.map(|(a, b)| a.total_cmp(&b)).find(|one| one.is_ne()).unwrap_or(a.cmp(&b))
    });
    // What beats a point stands before it, and is kept or beaten by one that is; of equal points the first stays.
    let mut kept: Vec<usize> = Vec::new();
    for at in order {
        let beaten = |&other: &usize| key(other).iter().zip(&key(at)).all(|(a, b)| a <= b);
        if !kept.iter().any(beaten) {
            kept.push(at);
        }
    }
    kept
}

/// What one step of an option pays: the mean, over all pairs of points that differ in it alone, of the time
/// that it saves and the area that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The key.
    pub key: String,
    /// From which value, to which.
    pub values: (String, String),
    /// Pairs of points.
    pub pairs: usize,
    /// Share of the time saved.
    pub saved: f64,
    /// Area, thousand gate equivalents.
    pub kge: f64,
}

/// All steps between two values of one key, those that save most per area first.
pub fn marginal(points: &[Point]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for a in points {
        for b in points.iter().filter(|b| b.values.len() == a.values.len()) {
            let unlike: Vec<usize> = (0..a.values.len()).filter(|&at| a.values[at] != b.values[at]).collect();
            let [at] = unlike[..] else { continue };
            let dearer = (b.figures.area_kge, a.figures.us()) > (a.figures.area_kge, b.figures.us());
            if !dearer || a.values[at].0 != b.values[at].0 {
                continue;
            }
            let values = (a.values[at].1.clone(), b.values[at].1.clone());
            let saved = 1.0 - b.figures.us() / a.figures.us().max(f64::MIN_POSITIVE);
            let kge = b.figures.area_kge - a.figures.area_kge;
            let key = a.values[at].0.as_str();
            let known = steps.iter_mut().find(|one| one.key == key && one.values == values);
            match known {
                Some(step) => {
                    step.pairs += 1;
                    step.saved += saved;
                    step.kge += kge;
                }
                None => steps.push(Step { key: key.to_owned(), values, pairs: 1, saved, kge }),
            }
        }
    }
    for step in &mut steps {
        step.saved /= step.pairs as f64;
        step.kge /= step.pairs as f64;
    }
    steps.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    steps
}

/// Saved share per kGE; what costs nothing and saves is worth most.
fn worth(step: &Step) -> f64 {
    if step.kge.abs() < 1e-9 { step.saved * 1e9 } else { step.saved / step.kge }
}

pub(super) fn plot(points: &[Point], frontier: &[usize]) -> Element {
    let per = |point: &Point| match point.figures.packets {
        0 => point.figures.us(),
        packets => point.figures.us() / packets as f64,
    };
    let (width, height, left) = (2.0 * WIDTH, 380.0, 70.0);
    let x = Scale::logarithmic(points.iter().map(|one| one.figures.area_kge), left, width - 20.0);
    let y = Scale::logarithmic(points.iter().map(per), height - 40.0, 10.0);
    let (Some(x), Some(y)) = (x, y) else { return nothing("No points") };
    let place = |at: usize| (x.at(points[at].figures.area_kge), y.at(per(&points[at])));
    let mut drawing = svg(width, height, "time against area")
        .child(axis_below(&x, 10.0, height - 40.0, units::digits))
        .child(axis_left(&y, left, width - 20.0, units::short))
        .child(text(width / 2.0, height - 4.0, "middle quiet", "area, kGE"))
        .child(text(left + 6.0, 22.0, "quiet", "us a packet"))
        .child(line((left, 10.0), (left, height - 40.0), "axis"));
    let mut path = Path::default();
    let mut before: Option<usize> = None;
    for &at in frontier {
        let (px, py) = place(at);
        if let Some(last) = before {
            // One that is there for its energy is no step.
            if points[at].figures.us() >= points[last].figures.us() {
                continue;
            }
            path = path.to('L', &[px, place(last).1]);
        }
        path = path.to(if before.is_none() { 'M' } else { 'L' }, &[px, py]);
        before = Some(at);
    }
    drawing = drawing.child(path.element().class("frame"));
    for (at, point) in points.iter().enumerate() {
        let on = frontier.contains(&at);
        let (px, py) = place(at);
        let dot = mark(if on { 1 } else { 0 }, px, py, if on { 5.0 } else { 3.5 }, "fill dot");
        let title = format!(
            "{}: {} cycles, {:.0} MHz, {:.1} kGE",
            point.name,
            units::count(point.figures.cycles),
            point.figures.clock.mhz,
            point.figures.area_kge
        );
        drawing = drawing.child(dot.title(title));
    }
    element("figure").child(drawing)
}

pub(super) fn table(points: &[Point], frontier: &[usize]) -> Element {
    let mut head = vec![
        "configuration",
        "kGE",
        "MHz",
        "limit",
        "cycles a packet",
        "us a packet",
        "against the smallest",
    ];
    let energy = frontier.iter().any(|&at| points[at].figures.energy_per_packet_j.is_some());
    if energy {
        head.push("nJ per packet");
    }
    let first = frontier.first().map_or(0.0, |&at| points[at].figures.us());
    let rows = frontier.iter().map(|&at| {
        let one = &points[at].figures;
        let mut row = vec![
            points[at].name.clone(),
            format!("{:.1}", one.area_kge),
            format!("{:.0}", one.clock.mhz),
            one.clock.limit.clone(),
            units::digits(one.cycles_per_packet),
            units::digits(one.us_per_packet),
            format!("{:.2} times as fast", first / one.us().max(f64::MIN_POSITIVE)),
        ];
        if energy {
            row.push(one.energy_per_packet_j.map_or(String::new(), |joules| units::digits(1e9 * joules)));
        }
        row
    });
    html_table(&head, rows)
}

pub(super) fn marginals(points: &[Point]) -> Element {
    let rows = marginal(points).into_iter().take(60).map(|step| {
        let (from, to) = &step.values;
        let per = if step.kge.abs() < 1e-9 {
            "free".to_owned()
        } else {
            format!("{:.3}", 100.0 * step.saved / step.kge)
        };
        vec![
            format!("{}: {from} to {to}", step.key),
            step.pairs.to_string(),
            units::percent(step.saved),
            format!("{:.2}", step.kge),
            per,
        ]
    });
    html_table(&["one option, all others alike", "pairs", "time saved", "kGE", "% a kGE"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, values: &[(&str, &str)], cycles: u64, kge: f64) -> Point {
        let mut figures = Figures::nothing();
        (figures.cycles, figures.area_kge) = (cycles, kge);
        let values = values.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        Point { name: name.to_owned(), values, figures }
    }

    #[test]
    fn the_frontier_has_what_nothing_beats() {
        let points = [
            point("slow and large", &[], 100, 50.0),
            point("small", &[], 100, 10.0),
            point("fast", &[], 20, 40.0),
            point("between", &[], 50, 20.0),
            point("as fast, larger", &[], 20, 41.0),
        ];
        assert_eq!(best(&points), [1, 3, 2]);
    }

    #[test]
    fn energy_is_a_third_objective_where_all_points_have_one() {
        let with = |name: &str, cycles, kge, joules| {
            let mut one = point(name, &[], cycles, kge);
            one.figures.energy_per_packet_j = Some(joules);
            one
        };
        let points = [
            with("slow and large, and thrifty", 100, 50.0, 1.0),
            with("small", 100, 10.0, 3.0),
            with("fast", 20, 40.0, 4.0),
            with("beaten in all", 110, 50.0, 3.0),
            with("the same as small", 100, 10.0, 3.0),
        ];
        assert_eq!(best(&points), [1, 2, 0]);
        let mixed = [points.to_vec(), vec![point("of unknown energy", &[], 20, 40.0)]].concat();
        assert_eq!(best(&mixed), [1, 2]);
    }

    #[test]
    fn a_step_is_between_points_that_differ_in_one_key() {
        let points = [
            point("", &[("a", "1"), ("b", "1")], 100, 10.0),
            point("", &[("a", "2"), ("b", "1")], 50, 20.0),
            point("", &[("a", "1"), ("b", "2")], 80, 11.0),
            point("", &[("a", "2"), ("b", "2")], 60, 21.0),
        ];
        let steps = marginal(&points);
        let one = steps.iter().find(|step| step.key == "a").unwrap();
        assert_eq!((one.pairs, one.kge), (2, 10.0));
        assert!((one.saved - (0.5 + 0.25) / 2.0).abs() < 1e-12);
        assert_eq!(steps.len(), 2);
    }
}
