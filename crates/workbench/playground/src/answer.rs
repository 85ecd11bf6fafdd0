//! What the page gets of a run.

use forebay_diagnostics::{self as diagnostics, FileErrors, Plain};
use forebay_page::document::parts as elements;
use std::collections::HashMap;

use forebay_sim::{Columns, Timeline};
use forebay_workbench::pages::Parts;
use serde::Serialize;

/// What came of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Figures.
    Results(Box<Results>),
    /// The text is right, and more was not asked for.
    Right,
    /// Why there are no figures.
    Fault(Fault),
}

/// The figures of a run.
#[derive(Debug, Serialize)]
pub struct Results {
    /// The document of `forebay simulate --json`, to the byte but for the line break behind it.
    pub document: String,
    /// How many packets were simulated.
    pub packets: u64,
    /// Every figure by name.
    pub figures: Vec<Figure>,
    /// What the reader of the figures should know.
    pub notes: Vec<String>,
    /// The scenario with every default filled in.
    pub resolved: String,
    /// What the report shows, if that was asked for.
    pub shown: Option<Shown>,
    /// What took time at the beginning of a run of the host model, if that was asked for.
    pub spans: Vec<Span>,
    /// Its first packets.
    pub beginning: Vec<Packet>,
    /// The names of its processors.
    pub processors: Vec<String>,
}

/// A figure as a number and as it is read.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Its name as tables have it: `processor.card.load`.
    pub name: String,
    /// Its value in the unit of the document.
    pub value: f64,
    /// The value with a unit.
    pub text: String,
}

/// A report as pieces of a page.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// What came out.
    pub verdict: String,
    /// More of it.
    pub facts: Vec<String>,
    /// Plots and tables as HTML, every text of the scenario escaped.
    pub html: String,
}

impl Shown {
    pub(crate) fn new(parts: &Parts) -> Shown {
        let mut html = String::new();
        elements(&parts.blocks).iter().for_each(|part| part.write(&mut html));
        Shown { verdict: parts.frame.verdict.clone(), facts: parts.frame.intro.clone(), html }
    }
}

/// Something that took time: see [`forebay_sim::Span`].
#[derive(Debug, Serialize)]
pub struct Span {
    what: &'static str,
    processor: usize,
    bus: Option<usize>,
    from_s: f64,
    until_s: f64,
}

/// The spans of a time line.
pub(crate) fn spans(timeline: &Timeline) -> impl Iterator<Item = Span> + '_ {
    timeline.spans().map(|span| Span {
        what: span.what.word(),
        processor: span.processor,
        bus: span.bus,
        from_s: span.from.0 as f64 / 1e12,
        until_s: span.until.0 as f64 / 1e12,
    })
}

/// A packet and its moments, in seconds; a lost one has no processor.
#[derive(Debug, Serialize)]
pub struct Packet {
    bytes: u32,
    sa: u32,
    /// Its number among the packets of its SA that were not lost, in the order of arrival, from 1.
    ticket: u32,
    arrived_s: f64,
    chosen_s: f64,
    completed_s: f64,
    /// When it left: later than it was complete if it waited for an earlier one of its SA.
    left_s: f64,
    /// The ticket of that one.
    behind: Option<u32>,
    processor: Option<u16>,
    /// The first packet of a job: by processor, how long after the choice it was predicted to be done, as the choice compares it.
    finish_s: Option<Vec<Option<f64>>>,
}

/// What is known of an SA's packets so far.
#[derive(Default)]
struct Sa {
    tickets: u32,
    /// When the last of them leaves, if they keep their order, and the ticket of the one that it then waited for.
    left: u64,
    latest: u32,
}

/// The first `count` packets of a run, in which packets of an SA leave in their order if it `keeps` it.
pub(crate) fn packets(
    columns: &Columns,
    timeline: Option<&Timeline>,
    keeps: bool,
    count: usize,
) -> Vec<Packet> {
    let seconds = |ps: u64| ps as f64 / 1e12;
    let choices = timeline.map(Timeline::choices).unwrap_or_default();
    let choices: HashMap<u64, &forebay_sim::Choice> =
        choices.iter().map(|choice| (choice.packet, choice)).collect();
    let mut sas: HashMap<u32, Sa> = HashMap::new();
    let packet = |at: usize| {
        let (sa, completed) = (columns.sa[at], columns.completed[at]);
        let processor = Some(columns.processor[at]).filter(|&processor| processor != u16::MAX);
        let of = sas.entry(sa).or_default();
        let (mut left, mut behind) = (completed, None);
        if processor.is_some() {
            of.tickets += 1;
            if keeps && of.left > completed {
                (left, behind) = (of.left, Some(of.latest));
            } else {
                (of.left, of.latest) = (completed, of.tickets);
            }
        }
        let finish = choices
            .get(&(at as u64))
            .map(|choice| choice.finish.iter().map(|finish| finish.map(|finish| finish.as_secs())).collect());
        Packet {
            bytes: columns.bytes[at],
            sa,
            ticket: of.tickets,
            arrived_s: seconds(columns.arrived[at]),
            chosen_s: seconds(columns.chosen[at]),
            completed_s: seconds(completed),
            left_s: seconds(left),
            behind,
            processor,
            finish_s: finish,
        }
    };
    (0..columns.bytes.len().min(count)).map(packet).collect()
}

/// Why there are no figures: what the command writes to stderr.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
    /// What is wrong in the text, each with its place.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub left_out: usize,
}

/// One thing that is wrong in a text.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The text, or the `--set`.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl Fault {
    pub(crate) fn of(message: String, help: String) -> Fault {
        Fault { message, help, findings: Vec::new(), left_out: 0 }
    }

    pub(crate) fn of_file(errors: &FileErrors) -> Fault {
        let finding = |found: &diagnostics::Finding| {
            let Plain { file, line, column, message, hint: help, .. } = found.plain();
            Finding { file, line, column, message, help }
        };
        Fault {
            message: errors.to_string(),
            help: String::new(),
            findings: errors.findings().iter().map(finding).collect(),
            left_out: errors.left_out(),
        }
    }
}
