//! Where packets go from each stage, and what makes no sense of that.

use crate::description::{Branch, Discipline, Overflow, Pipeline};

/// What is wrong with a key of a stage, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub stage: usize,
    pub key: &'static str,
    pub message: String,
    pub help: &'static str,
}

/// How much the shares of a stage may be off 1 for it to be all of its packets.
const ROUNDED: f64 = 1e-9;

impl Pipeline {
    /// Whether packets choose among ways, or take others than from each stage to the next.
    pub fn has_branches(&self) -> bool {
        self.stages.iter().any(|stage| stage.next.is_some())
    }

    /// Where packets go from a stage; the rest of them leave.
    pub(crate) fn ways(&self, stage: usize) -> Vec<Branch> {
        match &self.stages[stage].next {
            Some(ways) => ways.clone(),
            None if stage + 1 < self.stages.len() => vec![Branch { stage: stage + 1, share: 1.0 }],
            None => Vec::new(),
        }
    }

    /// The first thing that is wrong with the ways of packets.
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        if !self.has_branches() {
            return None;
        }
        let all = 0..self.stages.len();
        all.clone()
            .find_map(|stage| self.flaw_of_shares(stage))
            .or_else(|| self.flaw_of_reach())
            .or_else(|| all.clone().find_map(|stage| self.flaw_of_span(stage)))
            .or_else(|| self.flaw_of_blocking())
    }

    fn flaw_of_shares(&self, stage: usize) -> Option<Flaw> {
        let flaw = |message, help| Some(Flaw { stage, key: "next", message, help });
        let name = &self.stages[stage].name;
        let ways = self.ways(stage);
        for (at, way) in ways.iter().enumerate() {
            let Some(to) = self.stages.get(way.stage) else {
                return flaw(
                    format!("`{name}` leads to a stage that there is not"),
                    "name one of the stages",
                );
            };
            if !(way.share > 0.0 && way.share <= 1.0) {
                let message = format!("the share of packets from `{name}` to `{}` is {}", to.name, way.share);
                return flaw(message, "expected a probability above 0, up to 1");
            }
            if ways[..at].iter().any(|other| other.stage == way.stage) {
                let message = format!("`{name}` leads to `{}` twice", to.name);
                return flaw(message, "add the shares up");
            }
        }
        let sum: f64 = ways.iter().map(|way| way.share).sum();
        if sum > 1.0 + ROUNDED {
            let message = format!("the shares of packets from `{name}` sum to {sum}");
            return flaw(message, "at most 1; what lacks to 1 leaves the pipeline");
        }
        None
    }

    /// Every stage has to be on a way from the first to an exit.
    fn flaw_of_reach(&self) -> Option<Flaw> {
        let count = self.stages.len();
        let ways: Vec<Vec<Branch>> = (0..count).map(|stage| self.ways(stage)).collect();
        let exits = |stage: usize| ways[stage].iter().map(|way| way.share).sum::<f64>() < 1.0 - ROUNDED;
        let (mut come, mut leave) = (vec![false; count], (0..count).map(exits).collect::<Vec<_>>());
        come[0] = true;
        // Each round carries the marks on by a stage at least, or is the last.
        loop {
            let mut more = false;
            for (from, way) in
                ways.iter().enumerate().flat_map(|(from, ways)| ways.iter().map(move |w| (from, w)))
            {
                let (comes, leaves) = (come[from] && !come[way.stage], leave[way.stage] && !leave[from]);
                come[way.stage] |= comes;
                leave[from] |= leaves;
                more |= comes || leaves;
            }
            if !more {
                break;
            }
        }
        let name = |stage: usize| &self.stages[stage].name;
        if let Some(stage) = come.iter().position(|comes| !comes) {
            let message = format!("no packet comes to `{}`", name(stage));
            let help =
                "packets begin in the first stage of the file: lead one of the `next` to it, or take it away";
            return Some(Flaw { stage, key: "name", message, help });
        }
        let stage = leave.iter().position(|leaves| !leaves)?;
        let message = format!("packets that come to `{}` never leave the pipeline", name(stage));
        let help = "give one of the stages that they pass shares that sum to less than 1, or `next = []`: the rest leaves";
        Some(Flaw { stage, key: "next", message, help })
    }

    /// A packet holds a busy-waiting server from the first of its stages to the last: nobody comes or goes in between.
    fn flaw_of_span(&self, stage: usize) -> Option<Flaw> {
        let inside = |at: usize| {
            self.servers.iter().enumerate().find_map(|(server, description)| {
                let (first, last) = self.span(server)?;
                let holds = matches!(description.discipline, Discipline::BusyWaiting { .. });
                (holds && first <= at && at <= last).then_some((first, last, &description.name))
            })
        };
        let name = |stage: usize| &self.stages[stage].name;
        let (key, help) =
            ("next", "make the server interrupt-driven, or give these stages units of their own");
        let ways = self.ways(stage);
        let span = inside(stage);
        if let Some((_, last, server)) = span
            && stage < last
            && ways != [Branch { stage: stage + 1, share: 1.0 }]
        {
            let next = name(stage + 1);
            let message = format!(
                "a packet holds the busy-waiting `{server}` from `{}` on to `{next}`: it cannot go elsewhere",
                name(stage)
            );
            return Some(Flaw { stage, key, message, help });
        }
        let goes_on = |to: usize| span.is_some_and(|(_, last, _)| stage < last) && to == stage + 1;
        let (to, server) = ways.iter().find_map(|way| {
            let (first, _, server) = inside(way.stage)?;
            (way.stage != first && !goes_on(way.stage)).then_some((way.stage, server))
        })?;
        let message = format!(
            "`{}` leads to `{}`, amid the stages that a packet holds the busy-waiting `{server}` through",
            name(stage),
            name(to)
        );
        Some(Flaw { stage, key, message, help })
    }

    /// Where stages wait for room, a cycle of them could wait for itself, and a batch for several.
    fn flaw_of_blocking(&self) -> Option<Flaw> {
        if self.overflow == Overflow::Drop {
            return None;
        }
        let count = self.stages.len();
        for begin in 0..count {
            let mut seen = vec![false; count];
            let mut open = vec![begin];
            while let Some(at) = open.pop() {
                for way in self.ways(at) {
                    if way.stage == begin {
                        let message = format!(
                            "packets come back to `{}`: where stages wait for room in others, these could wait for each \
                             other for ever",
                            self.stages[begin].name
                        );
                        let help = "take `overflow = \"drop\"`, or let no packet come back";
                        return Some(Flaw { stage: at, key: "next", message, help });
                    }
                    if !std::mem::replace(&mut seen[way.stage], true) {
                        open.push(way.stage);
                    }
                }
            }
        }
        let several = |stage: usize| {
            let ways = self.ways(stage);
            ways.iter().any(|way| way.share < 1.0 - ROUNDED)
        };
        let stage = (0..count).find(|&stage| self.stages[stage].batch > 1 && several(stage))?;
        let message = format!(
            "the batches of `{}` go several ways: they cannot wait for room together",
            self.stages[stage].name
        );
        let help = "leave `batch` away, or take `overflow = \"drop\"`";
        Some(Flaw { stage, key: "batch", message, help })
    }
}

/// The ways out of a group, as the simulator takes them.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    /// Upper ends of the shares of (0, 1], and the groups that they lead to; above the last a packet leaves.
    ends: Vec<(f64, usize)>,
}

/// Where a packet goes on to: a group, or out of the pipeline.
pub(crate) type To = Option<usize>;

impl Ways {
    pub fn new(branches: &[Branch], group_of: impl Fn(usize) -> usize) -> Ways {
        let mut sum = 0.0;
        let mut ends: Vec<(f64, usize)> = Vec::new();
        for branch in branches {
            sum += branch.share;
            ends.push((sum, group_of(branch.stage)));
        }
        if let Some(last) = ends.last_mut().filter(|(end, _)| *end > 1.0 - ROUNDED) {
            last.0 = 1.0;
        }
        Ways { ends }
    }

    /// The one way that all packets take, if there is one.
    pub fn only(&self) -> Option<To> {
        match self.ends[..] {
            [] => Some(None),
            [(1.0, to)] => Some(Some(to)),
            _ => None,
        }
    }

    /// The way of a packet by a number of (0, 1].
    pub fn of(&self, number: f64) -> To {
        self.ends.iter().find(|(end, _)| number <= *end).map(|&(_, to)| to)
    }

    /// All groups that they lead to.
    pub fn groups(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().map(|&(_, to)| to)
    }
}
