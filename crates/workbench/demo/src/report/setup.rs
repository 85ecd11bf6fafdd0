//! The drawing of the set-up: packets flow from the capture through gateway A, the
//! tunnel and gateway B to the comparison, in streams as wide as their shares.

use super::super::figures::DemoFigures;
use super::draw::{TEXT, coloured, fit, line, mark, rect, svg, text};
use super::element::{Element, Path, element};
use super::side::Side;
use super::units;

/// Width of a gateway's frame.
const FRAME: f64 = 380.0;
/// Width of the stretch between the frames, and before the first and after the last.
const GAP: f64 = 166.0;
const END: f64 = 112.0;
/// Height of a processor's box and of the space below it.
const BOX: f64 = 50.0;
const SPACE: f64 = 12.0;
/// Where the boxes lie in the frame.
const BOX_LEFT: f64 = 84.0;
const BOX_RIGHT: f64 = FRAME - 84.0;
/// Height of the frame's title.
const TITLE: f64 = 44.0;
/// Width of the stream of all packets.
const STREAM: f64 = 46.0;

/// The drawing twice: abreast for wide windows, one above the other for narrow ones.
pub fn setup(figures: &DemoFigures, sides: &[Side<'_>; 2]) -> Element {
    element("figure").class("setup").child(wide(figures, sides)).child(narrow(figures, sides))
}

const NAME: &str =
    "The set-up: capture, gateway A, UDP loopback, gateway B, comparison, and the processors' shares";

fn wide(figures: &DemoFigures, sides: &[Side<'_>; 2]) -> Element {
    let (middle, right) = (END + FRAME, END + FRAME + GAP);
    let width = right + FRAME + END;
    let height = frame_height(&sides[0]).max(frame_height(&sides[1]));
    let y = centre(height);
    svg(width, height + 4.0, NAME)
        .class("wide")
        .child(stream(0.0, END, y))
        .child(stream(middle, right, y))
        .child(stream(right + FRAME, width, y))
        .child(caption(END / 2.0, y, capture_lines(figures, true)))
        .child(caption(middle + GAP / 2.0, y, tunnel_lines(figures, GAP)))
        .child(caption(width - END / 2.0, y, outcome_lines(figures)))
        .child(gateway(&sides[0], END, 2.0, height))
        .child(gateway(&sides[1], right, 2.0, height))
}

/// The tunnel goes round the corner: out at the right of A, in at the left of B.
fn narrow(figures: &DemoFigures, sides: &[Side<'_>; 2]) -> Element {
    let stub = 86.0;
    let width = FRAME + 2.0 * stub;
    let heights = [frame_height(&sides[0]), frame_height(&sides[1])];
    let below = heights[0] + 44.0;
    let (a, b) = (centre(heights[0]), below + centre(heights[1]));
    svg(width, below + heights[1] + 4.0, NAME)
        .class("narrow")
        .child(stream(0.0, stub, a))
        .child(stream(width - stub, width, a))
        .child(stream(0.0, stub, b))
        .child(stream(width - stub, width, b))
        .child(caption(stub / 2.0, a, capture_lines(figures, false)))
        .child(caption(width - stub / 2.0, a, ["UDP".to_owned(), "loopback".to_owned()]))
        .child(caption(stub / 2.0, b, ["UDP".to_owned(), "loopback".to_owned()]))
        .child(caption(width - stub / 2.0, b, outcome_lines(figures)))
        .child(gateway(&sides[0], stub, 2.0, heights[0]))
        .child(gateway(&sides[1], stub, below, heights[1]))
}

fn frame_height(side: &Side<'_>) -> f64 {
    TITLE + side.figures.processors.len().max(1) as f64 * (BOX + SPACE) + 4.0
}

/// The middle of the boxes of a frame that begins at the top of the drawing.
fn centre(height: f64) -> f64 {
    2.0 + TITLE + (height - TITLE - SPACE - 4.0) / 2.0
}

/// `words` where there is room for the noun.
fn capture_lines(figures: &DemoFigures, words: bool) -> [String; 2] {
    let packets = figures.comparison.sent;
    let count = if packets < 1_000_000 { units::count(packets) } else { units::short(packets as f64) };
    let noun = if packets == 1 { "packet" } else { "packets" };
    ["capture".to_owned(), if words { format!("{count} {noun}") } else { count }]
}

fn tunnel_lines(figures: &DemoFigures, room: f64) -> [String; 2] {
    ["UDP loopback".to_owned(), fit(&figures.proposal, room - 8.0, TEXT)]
}

fn outcome_lines(figures: &DemoFigures) -> [String; 2] {
    let outcome = &figures.comparison;
    let share = units::share(outcome.identical as f64, outcome.sent as f64);
    ["comparison".to_owned(), format!("{} same", units::percent_short(share))]
}

/// Two lines of text, above and below the stream.
fn caption(x: f64, y: f64, [above, below]: [String; 2]) -> Element {
    let above = text(x, y - STREAM / 2.0 - 9.0, "middle strong", above);
    element("g").child(above).child(text(x, y + STREAM / 2.0 + 20.0, "middle quiet", below))
}

/// All packets between two rooms, with an arrow's head in the stream's middle.
fn stream(from: f64, to: f64, y: f64) -> Element {
    let middle = (from + to) / 2.0;
    let arrow =
        Path::default().to('M', &[middle - 4.0, y - 8.0]).to('L', &[middle + 5.0, y, middle - 4.0, y + 8.0]);
    element("g")
        .child(rect(from, y - STREAM / 2.0, to - from, STREAM, "stream"))
        .child(arrow.element().class("arrow"))
}

fn gateway(side: &Side<'_>, x: f64, y: f64, height: f64) -> Element {
    let frame = element("g").at("transform", format!("translate({x} {y})"));
    let mut frame = frame.child(rect(0.0, 0.0, FRAME, height, "frame").at("rx", 8.0));
    frame = frame.child(text(16.0, 27.0, "strong large", side.name));
    let jobs = side.figures.packets_per_job;
    let bundled = match units::usable(jobs) {
        true => format!("{}, {} packets per job", side.role, units::digits(jobs)),
        false => side.role.to_owned(),
    };
    frame = frame.child(text(FRAME - 16.0, 27.0, "end quiet", bundled));
    // Boxes are centred about the stream, which enters at the same height in both gateways.
    let count = side.figures.processors.len();
    let trunk = centre(height) - 2.0;
    let top = trunk - (count as f64 * (BOX + SPACE) - SPACE) / 2.0;
    if count == 0 {
        return frame.child(text(FRAME / 2.0, trunk + 4.0, "middle quiet", "no processors"));
    }
    let total = side.packets();
    let mut done = 0.0;
    let (mut ribbons, mut boxes) = (element("g"), element("g"));
    for (i, (slot, processor)) in side.processors().enumerate() {
        let share = units::share(processor.packets as f64, total);
        let y = top + i as f64 * (BOX + SPACE);
        ribbons = ribbons.child(ribbon(slot, trunk + (done - 0.5) * STREAM, y + BOX / 2.0, share * STREAM));
        boxes = boxes.child(processor_box(slot, &processor.name, processor.packets, share, y));
        done += share;
    }
    frame.child(ribbons).child(boxes)
}

/// A processor's part of the stream: from the trunk's slice `from` to its box and back.
fn ribbon(slot: usize, from: f64, to: f64, width: f64) -> Element {
    if width <= 0.0 {
        return element("g").child(line((BOX_LEFT - 16.0, to), (BOX_LEFT, to), "idle")).child(line(
            (BOX_RIGHT, to),
            (BOX_RIGHT + 16.0, to),
            "idle",
        ));
    }
    let drawn = width.max(1.5);
    let (low, high) = (to - drawn / 2.0, to + drawn / 2.0);
    let half = |outer: f64, inner: f64| {
        let bend = (outer + inner) / 2.0;
        let path = Path::default().to('M', &[outer, from]).to('C', &[bend, from, bend, low, inner, low]);
        let path = path.to('L', &[inner, high]);
        path.to('C', &[bend, high, bend, from + drawn, outer, from + drawn]).to('Z', &[])
    };
    let class = coloured("ribbon mark", slot);
    element("g")
        .child(half(0.0, BOX_LEFT).element().class(class.as_str()))
        .child(half(FRAME, BOX_RIGHT).element().class(class.as_str()))
}

fn processor_box(slot: usize, name: &str, packets: u64, share: f64, y: f64) -> Element {
    let width = BOX_RIGHT - BOX_LEFT;
    let told =
        format!("{name}: {} ({})", units::counted(packets, "packet", "packets"), units::percent(share));
    let numbers = match packets {
        0 => "idle".to_owned(),
        // A count of more digits than the box has room for is shortened.
        _ if packets >= 1_000_000_000 => {
            format!("{} \u{b7} {}", units::percent(share), units::short(packets as f64))
        }
        _ => format!("{} \u{b7} {}", units::percent(share), units::counted(packets, "packet", "packets")),
    };
    element("g")
        .child(rect(BOX_LEFT, y, width, BOX, &coloured("box mark", slot)).at("rx", 5.0).title(told))
        .child(mark(slot, BOX_LEFT + 16.0, y + 17.0, 5.0, "fill"))
        .child(text(BOX_LEFT + 28.0, y + 21.5, "strong", fit(name, width - 34.0, TEXT)))
        .child(text(BOX_LEFT + 12.0, y + 40.0, "quiet", numbers))
}
