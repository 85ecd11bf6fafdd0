//! A run on a time line, for Perfetto (ui.perfetto.dev) and Chrome's tracing: the JSON trace event format.

use std::io::{self, Write};

use forebay_station::Way;
use forebay_time::{Duration, Time};

use crate::probe::Probe;
use crate::scenario::Scenario;

/// What happened first in a run: a track for each processor with what it computes and its queue's length,
/// and a track for each bus with its transfers; and why jobs went where they went.
#[derive(Clone, Debug)]
pub struct Timeline {
    processors: Vec<String>,
    buses: Vec<String>,
    entries: Vec<Entry>,
    choices: Vec<Choice>,
    limit: usize,
    left_out: u64,
}

/// The choice of a processor for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of the job's first packet in the order of arrival, from 0.
    pub packet: u64,
    /// When it was made.
    pub at: Time,
    /// The processor.
    pub processor: usize,
    /// By processor the finish time f_i from then on that was compared (\[H\] eqs 4 and 5); none of one that cannot do the job.
    pub finish: Vec<Option<Duration>>,
}

/// Something on a time line that took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What was done.
    pub what: Doing,
    /// By or for which processor.
    pub processor: usize,
    /// On which bus.
    pub bus: Option<usize>,
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub until: Time,
}

/// What takes time on a time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A processor computes.
    Compute,
    /// A job comes over a bus.
    Fetch,
    /// A job goes back over it.
    WriteBack,
    /// A core takes a burst and prepares it, as one core does at a time.
    Take,
    /// A core completes a burst, as one core does at a time.
    Complete,
}

impl Doing {
    /// Its name on time lines.
    pub fn word(self) -> &'static str {
        match self {
            Doing::Compute => "compute",
            Doing::Fetch => "fetch",
            Doing::WriteBack => "write back",
            Doing::Take => "take",
            Doing::Complete => "complete",
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Computes { processor: u16, now: Time, until: Time },
    Carries { bus: u16, processor: u16, way: Way, now: Time, until: Time },
    Waiting { processor: u16, now: Time, jobs: u32 },
    Passes { core: u16, what: Doing, now: Time, until: Time },
}

impl Timeline {
    pub(crate) fn new(scenario: &Scenario, limit: usize) -> Timeline {
        Timeline {
            processors: scenario.processors.iter().map(|one| one.name.clone()).collect(),
            buses: scenario.buses.iter().map(|bus| bus.name.clone()).collect(),
            entries: Vec::new(),
            choices: Vec::new(),
            limit,
            left_out: 0,
        }
    }

    /// Entries beyond the limit, which are not on it.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The first choices of processors; as many as there may be entries.
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    #[inline]
    fn add(&mut self, entry: Entry) {
        if self.entries.len() < self.limit {
            self.entries.push(entry);
        } else {
            self.left_out += 1;
        }
    }

    /// What took time, in the order in which it began.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.entries.iter().filter_map(|entry| match *entry {
            Entry::Computes { processor, now, until } => {
                let processor = usize::from(processor);
                Some(Span { what: Doing::Compute, processor, bus: None, from: now, until })
            }
            Entry::Carries { bus, processor, way, now, until } => {
                let what = carried(way);
                Some(Span { what, processor: processor.into(), bus: Some(bus.into()), from: now, until })
            }
            Entry::Passes { core, what, now, until } => {
                Some(Span { what, processor: core.into(), bus: None, from: now, until })
            }
            Entry::Waiting { .. } => None,
        })
    }

    /// Writes the trace. Its unit is the microsecond, with six decimals: picoseconds.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let tracks =
            self.processors.iter().map(|name| (name, "")).chain(self.buses.iter().map(|name| (name, "bus ")));
        for (track, (name, kind)) in tracks.enumerate() {
            let name = serde_json::to_string(&format!("{kind}{name}"))?;
            writeln!(
                out,
                "{{\"ph\":\"M\",\"pid\":1,\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}},"
            )?;
        }
        for entry in &self.entries {
            match *entry {
                Entry::Computes { processor, now, until } => {
                    slice(&mut out, processor.into(), Doing::Compute.word(), now, until)?;
                }
                Entry::Passes { core, what, now, until } => {
                    slice(&mut out, core.into(), what.word(), now, until)?;
                }
                Entry::Carries { bus, processor, way, now, until } => {
                    let label =
                        format!("{} {}", carried(way).word(), self.processors[usize::from(processor)]);
                    slice(&mut out, self.processors.len() + usize::from(bus), &label, now, until)?;
                }
                Entry::Waiting { processor, now, jobs } => {
                    let name =
                        serde_json::to_string(&format!("queue {}", self.processors[usize::from(processor)]))?;
                    writeln!(
                        out,
                        "{{\"ph\":\"C\",\"pid\":1,\"name\":{name},\"ts\":{},\"args\":{{\"jobs\":{jobs}}}}},",
                        Micros(now.0)
                    )?;
                }
            }
        }
        writeln!(
            out,
            "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"host\"}}}}]}}"
        )
    }
}

fn carried(way: Way) -> Doing {
    if way == Way::Fetch { Doing::Fetch } else { Doing::WriteBack }
}

fn slice(out: &mut impl Write, track: usize, label: &str, now: Time, until: Time) -> io::Result<()> {
    let label = serde_json::to_string(label)?;
    let length = Micros(until.since(now).0);
    writeln!(
        out,
        "{{\"ph\":\"X\",\"pid\":1,\"tid\":{track},\"name\":{label},\"ts\":{},\"dur\":{length}}},",
        Micros(now.0)
    )
}

/// Picoseconds shown as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl Probe for Timeline {
    fn computes(&mut self, processor: usize, now: Time, until: Time) {
        self.add(Entry::Computes { processor: processor as u16, now, until });
    }

    fn carries(&mut self, bus: usize, processor: usize, way: Way, now: Time, until: Time) {
        self.add(Entry::Carries { bus: bus as u16, processor: processor as u16, way, now, until });
    }

    fn waiting(&mut self, processor: usize, now: Time, jobs: usize) {
        self.add(Entry::Waiting { processor: processor as u16, now, jobs: jobs as u32 });
    }

    fn passes(&mut self, core: usize, what: Doing, now: Time, until: Time) {
        self.add(Entry::Passes { core: core as u16, what, now, until });
    }

    fn wants_choices(&self) -> bool {
        self.choices.len() < self.limit
    }

    fn chosen(&mut self, choice: Choice) {
        // A job that was held up may be placed at the same instant: its choice is on the line already.
        if self.choices.last().is_none_or(|last| last.packet != choice.packet) {
            self.choices.push(choice);
        }
    }
}
