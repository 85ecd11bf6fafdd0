//! What a running simulation is made of, and how a description becomes it.
//!
//! A *group* is one queue: a stage, or the span that a busy-waiting server holds a packet for. Its
//! *slots* each carry a packet (or a batch) through the group's stages; a slot is a stage's process
//! on a shared core, a unit of a stage of its own, or a context of a busy-waiting server. A slot
//! asks the *host* of the stage it is in for one of its *cores*. A stage without a server is its
//! own host.

use std::collections::VecDeque;
use std::ops::Range;

use forebay_time::{Duration, Time};

use crate::description::{Breakdowns, Discipline, Grant, Overflow, Pipeline, RunEnds};
use crate::law::Law;
use crate::random::{self, Random};
use crate::ways::{To, Ways};

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub arrived: Time,
    /// When it came to the queue that it is in.
    pub entered: Time,
    pub bytes: u32,
}

/// One queue and those that serve it.
#[derive(Debug)]
pub(crate) struct Group {
    pub first: usize,
    pub last: usize,
    /// Slots without a packet.
    pub idle: Vec<usize>,
    pub buffer: u32,
    pub batch: u32,
    /// Packets that a service waits for, and for how long.
    pub batch_min: u32,
    pub batch_timeout: Option<Duration>,
    pub waiting: VecDeque<Packet>,
    /// Packets waiting or in a slot.
    pub packets: u32,
    /// Places kept for packets that are being served in the group before.
    pub reserved: u32,
    /// Slots of other groups whose packets wait for room in this one, the first that asked in front.
    pub awaited: VecDeque<usize>,
    /// Where its packets go on to, and the stream that is drawn from if there are several ways.
    pub ways: Ways,
    pub random: Random,
}

impl Group {
    /// Where a packet goes on to.
    pub fn way(&mut self) -> To {
        self.ways.only().unwrap_or_else(|| self.ways.of(self.random.unit()))
    }
}

/// Carries packets through the stages of a group.
#[derive(Debug)]
pub(crate) struct Slot {
    pub group: usize,
    /// What a core changes to when it begins to work for this slot: its stage, or its context.
    pub key: usize,
    pub stage: usize,
    pub packets: Vec<Packet>,
    /// Work left in this stage.
    pub remaining: Duration,
    /// Where its packets go on to, once that is known; where nothing waits for room each packet is asked by itself.
    pub to: Option<To>,
}

/// The cores that work for some stages, and those that ask for them.
#[derive(Debug)]
pub(crate) struct Host {
    pub cores: Range<usize>,
    /// Slots that ask, the first that asked in front.
    pub asks: VecDeque<usize>,
    pub run_length: Option<Law>,
    pub switch_delay: Option<Law>,
    pub run_ends: RunEnds,
    pub grant: Grant,
    /// The stage of the last grant.
    pub last: usize,
    /// Whether a slot has come or gone since cores were last granted.
    pub stirred: bool,
    pub random: Random,
    /// Slots of a busy-waiting server that have a packet.
    pub held: u32,
    /// How its cores break down, and the stream that is drawn from for it.
    pub breakdowns: Option<Breakdowns>,
    pub failing: Random,
}

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Doing {
    Idle,
    Switching(usize),
    Working(usize),
    /// Broken down.
    Down,
}

/// One core of a host.
#[derive(Debug)]
pub(crate) struct Core {
    pub host: usize,
    pub doing: Doing,
    /// Since when it does that.
    pub since: Time,
    /// What it worked for last.
    pub key: Option<usize>,
    pub run_began: Time,
    /// Its run has been ended by its length: the next grant is another's.
    pub expired: bool,
}

/// Everything, before the first packet.
#[derive(Debug)]
pub(crate) struct Parts {
    pub groups: Vec<Group>,
    pub slots: Vec<Slot>,
    pub hosts: Vec<Host>,
    pub cores: Vec<Core>,
    /// The host of each stage, and its random stream.
    pub host_of: Vec<usize>,
    pub random: Vec<Random>,
}

impl Parts {
    pub fn new(pipeline: &Pipeline) -> Parts {
        let mut parts = Parts {
            groups: Vec::new(),
            slots: Vec::new(),
            hosts: Vec::new(),
            cores: Vec::new(),
            host_of: Vec::new(),
            random: Vec::new(),
        };
        for server in &pipeline.servers {
            let random = random::stream(pipeline.seed, &format!("server {}", server.name));
            let host = parts.host(server.cores, random);
            host.breakdowns = server.breakdowns.clone();
            host.failing = random::stream(pipeline.seed, &format!("breakdowns of server {}", server.name));
            match &server.discipline {
                Discipline::BusyWaiting { switch_delay, .. } => {
                    host.switch_delay = Some(switch_delay.clone())
                }
                Discipline::InterruptDriven { run_length, switch_delay, run_ends, grant } => {
                    host.run_length = Some(run_length.clone());
                    host.switch_delay = Some(switch_delay.clone());
                    (host.run_ends, host.grant) = (*run_ends, *grant);
                }
            }
        }
        for stage in &pipeline.stages {
            parts.random.push(random::stream(pipeline.seed, &format!("stage {}", stage.name)));
            let host = stage.server.unwrap_or_else(|| {
                let host = parts.host(stage.units, random::stream(pipeline.seed, "unused"));
                host.breakdowns = stage.breakdowns.clone();
                host.failing = random::stream(pipeline.seed, &format!("breakdowns of stage {}", stage.name));
                parts.hosts.len() - 1
            });
            parts.host_of.push(host);
        }
        let mut first = 0;
        while first < pipeline.stages.len() {
            first = parts.group(pipeline, first);
        }
        parts.ways(pipeline);
        parts
    }

    fn host(&mut self, cores: u32, random: Random) -> &mut Host {
        let begin = self.cores.len();
        let host = self.hosts.len();
        self.cores.extend((0..cores).map(|_| Core {
            host,
            doing: Doing::Idle,
            since: Time::ZERO,
            key: None,
            run_began: Time::ZERO,
            expired: false,
        }));
        self.hosts.push(Host {
            cores: begin..self.cores.len(),
            asks: VecDeque::new(),
            run_length: None,
            switch_delay: None,
            run_ends: RunEnds::Packet,
            grant: Grant::FirstAsked,
            last: 0,
            stirred: false,
            failing: random.clone(),
            random,
            held: 0,
            breakdowns: None,
        });
        &mut self.hosts[host]
    }

    /// Lays the group out that begins with this stage, and says where the next begins.
    fn group(&mut self, pipeline: &Pipeline, first: usize) -> usize {
        let stage = &pipeline.stages[first];
        let holds = stage.server.and_then(|server| match pipeline.servers[server].discipline {
            Discipline::BusyWaiting { contexts, .. } => Some((contexts, pipeline.span(server)?.1)),
            Discipline::InterruptDriven { .. } => None,
        });
        let cores = self.hosts[self.host_of[first]].cores.len() as u32;
        let (slots, last) = holds.unwrap_or((cores, first));
        let begin = self.slots.len();
        for slot in 0..slots as usize {
            self.slots.push(Slot {
                group: self.groups.len(),
                key: if holds.is_some() { begin + slot } else { begin },
                stage: first,
                packets: Vec::new(),
                remaining: Duration::ZERO,
                to: None,
            });
        }
        self.groups.push(Group {
            first,
            last,
            idle: (begin..self.slots.len()).rev().collect(),
            buffer: stage.buffer,
            batch: stage.batch,
            batch_min: stage.batch_min,
            batch_timeout: stage.batch_timeout,
            waiting: VecDeque::new(),
            packets: 0,
            reserved: 0,
            awaited: VecDeque::new(),
            ways: Ways::new(&[], |stage| stage),
            random: random::stream(pipeline.seed, &format!("next {}", pipeline.stages[last].name)),
        });
        last + 1
    }

    /// Tells every group where its packets go on to.
    fn ways(&mut self, pipeline: &Pipeline) {
        let firsts: Vec<usize> = self.groups.iter().map(|group| group.first).collect();
        let group_of = |stage: usize| firsts.partition_point(|&first| first <= stage) - 1;
        let buffers: Vec<u32> = self.groups.iter().map(|group| group.buffer).collect();
        for group in &mut self.groups {
            group.ways = Ways::new(&pipeline.ways(group.last), group_of);
            if pipeline.overflow != Overflow::Drop {
                // A batch that the next group could never take would block for ever.
                let room = group.ways.groups().map(|to| buffers[to]).min();
                group.batch = group.batch.min(room.unwrap_or(u32::MAX));
                group.batch_min = group.batch_min.min(group.batch);
            }
        }
    }
}
