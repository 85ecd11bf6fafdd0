//! The clock: reads a trace and counts.

use crate::call::Way;
use crate::core::Sink;
use crate::program::{Program, Trace};

use super::account::{Account, Misses};
use super::block::{Ask, Cost, Step, cost};
use super::buffer::WriteBuffer;
use super::cache::Cache;
use super::config::{Config, Policy};
use super::windows::Windows;

/// Counts the cycles of one configuration.
#[derive(Clone, Debug)]
pub struct Timing {
    pub(super) config: Config,
    icache: Cache,
    dcache: Cache,
    buffer: WriteBuffer,
    memory: std::ops::Range<u32>,
    now: u64,
    /// The line of code fetched last: it is there.
    line: u32,
    /// Registers that the last instruction loads.
    loaded: u32,
    pub(super) costs: Vec<Cost>,
    pub(super) steps: Vec<Step>,
    pub(super) blocks: Vec<Counts>,
    /// Cycles waited in each block's steps: for lines, for writes.
    pub(super) waits: Vec<[u64; 2]>,
    pub(super) misses: Misses,
    pub(super) windows: [Windows; 2],
    read_line: [u64; 2],
    read_word: u64,
    write: u64,
    write_line: u64,
}

/// What happened to a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) runs: u64,
    /// Cycles lost behind it.
    pub(super) branch: u64,
    /// Cycles lost before it by a load.
    pub(super) load_use: u64,
    /// Where its waits are.
    pub(super) waits: u32,
}

impl Timing {
    /// A clock at zero, with empty caches. Addresses outside `memory` are devices', and not cached.
    pub fn new(config: Config, memory: std::ops::Range<u32>) -> Timing {
        Timing {
            icache: Cache::new(config.icache),
            dcache: Cache::new(config.dcache),
            buffer: WriteBuffer::new(config.write_slots),
            memory,
            now: 0,
            line: u32::MAX,
            loaded: 0,
            costs: Vec::new(),
            steps: Vec::new(),
            blocks: Vec::new(),
            waits: Vec::new(),
            misses: Misses::default(),
            windows: [32, 64].map(Windows::new),
            read_line: [config.read_cycles(config.icache.line), config.read_cycles(config.dcache.line)],
            read_word: config.read_cycles(4),
            write: config.write_cycles(4),
            write_line: config.write_cycles(config.dcache.line),
            config,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Cycles so far.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Where all cycles went.
    pub fn account(&self, program: &Program) -> Account {
        Account::new(self, program)
    }

    /// What is new in the program is worked out.
    fn learn(&mut self, program: &Program) {
        for code in &program.codes()[self.costs.len()..] {
            let cost = cost(&self.config, program, code, &mut self.steps);
            self.costs.push(cost);
        }
        for block in self.blocks.len()..program.blocks() {
            let steps = self.costs[program.code_of(block as u32) as usize].steps;
            self.blocks.push(Counts { waits: self.waits.len() as u32, ..Counts::default() });
            self.waits.resize(self.waits.len() + steps as usize, [0; 2]);
        }
    }

    /// A line of code that is not in the cache; says when it is.
    #[cold]
    fn fetch(&mut self, now: u64, line: u32) -> [u64; 2] {
        self.misses.fetch += 1;
        self.icache.fill(line, false);
        // Waiting writes are not searched for the line: a program that writes code must execute `fence.i`.
        let cycles = self.read_line[0];
        let begin = self.buffer.read(now, None, cycles);
        [cycles, begin - now]
    }

    /// A load that may have to wait.
    #[inline(always)]
    fn load(&mut self, now: u64, address: u32) -> [u64; 2] {
        self.misses.loads += 1;
        let line = self.dcache.line(address);
        if self.dcache.touch(line, false) {
            return [0; 2];
        }
        self.load_missed(now, address, line)
    }

    #[cold]
    fn load_missed(&mut self, now: u64, address: u32, line: u32) -> [u64; 2] {
        if !self.memory.contains(&address) {
            let begin = self.buffer.read(now, Some(line), self.read_word);
            return [self.read_word, begin - now];
        }
        self.misses.load += 1;
        self.bring(now, line, false)
    }

    /// A line of data is fetched; one that has been written makes room by way of the buffer.
    fn bring(&mut self, now: u64, line: u32, write: bool) -> [u64; 2] {
        let mut at = now;
        if let Some(old) = self.dcache.fill(line, write) {
            self.misses.written_back += 1;
            at = self.buffer.write(at, old, self.write_line);
        }
        let cycles = self.read_line[1];
        let begin = self.buffer.read(at, Some(line), cycles);
        [cycles, begin - now]
    }

    #[inline(always)]
    fn store(&mut self, now: u64, address: u32) -> [u64; 2] {
        self.misses.stores += 1;
        let line = self.dcache.line(address);
        let through = self.config.policy == Policy::WriteThrough;
        let hit = self.dcache.touch(line, !through);
        if !hit {
            self.misses.store += 1;
        }
        if through || !self.memory.contains(&address) {
            return [0, self.buffer.write(now, line, self.write) - now];
        }
        if hit { [0; 2] } else { self.bring(now, line, true) }
    }

    /// A store wider than the memory interface is several, one after the other.
    fn store_parts(&mut self, now: u64, address: u32, bytes: u32) -> [u64; 2] {
        let mut waited = [0; 2];
        let mut part = address;
        let end = address.saturating_add(bytes);
        while part < end {
            let [fill, write] = self.store(now + waited[0] + waited[1], part);
            waited = [waited[0] + fill, waited[1] + write];
            part = (part & !(self.config.width - 1)).saturating_add(self.config.width);
        }
        waited
    }

    /// Every line of a vector is a load.
    fn load_lines(&mut self, now: u64, address: u32, bytes: u32) -> [u64; 2] {
        let mut waited = [0; 2];
        let lines = if bytes == 0 { 0 } else { self.lines(address, bytes) };
        let size = self.config.dcache.line;
        for line in 0..lines {
            let place = if line == 0 { address } else { (address & !(size - 1)).wrapping_add(line * size) };
            let [fill, write] = self.load(now + waited[0] + waited[1], place);
            waited = [waited[0] + fill, waited[1] + write];
        }
        waited
    }

    /// Lines of data that bytes from an address on lie in.
    fn lines(&self, address: u32, bytes: u32) -> u32 {
        let within = address & (self.config.dcache.line - 1);
        (within + bytes).div_ceil(self.config.dcache.line)
    }

    /// Cycles besides the first for which a vector is moved: each line is an access of its own, and within it as many
    /// bytes a cycle as the datapath has.
    fn moving(&self, address: u32, bytes: u32) -> u64 {
        let size = self.config.dcache.line;
        let (mut at, mut left, mut passes) = (address & (size - 1), bytes, 0);
        while left > 0 {
            let here = left.min(size - at);
            passes += u64::from(self.config.vector.passes(here));
            (at, left) = (0, left - here);
        }
        passes.saturating_sub(1)
    }

    /// What an access wider than a word or a vector instruction waits for, and how many words it takes of what is left
    /// of the trace.
    // Out of the loop, whose words are read from registers.
    #[cold]
    #[inline(never)]
    fn wide(&mut self, when: u64, ask: Ask, trace: &[u32]) -> ([u64; 2], usize) {
        let word = |at: usize| trace.get(at).copied().unwrap_or(0);
        let (first, second) = (word(0), word(1));
        match ask {
            Ask::StoreDouble => (self.store_parts(when, first, 8), 1),
            Ask::VectorLoad => (self.load_lines(when, first, second), 0),
            Ask::VectorStore => (self.store_parts(when, first, second), 0),
            Ask::VectorPass(cycles) => {
                let passes = self.config.vector.passes(first);
                ([u64::from(passes) * u64::from(cycles) - 1, 0], 1)
            }
            _ => ([self.moving(first, second), 0], 2),
        }
    }
}

impl Sink for Timing {
    fn consume(&mut self, program: &Program, trace: &Trace) {
        self.learn(program);
        let mut addresses = trace.addresses.iter();
        let mut now = self.now;
        for &entry in &trace.blocks {
            let (block, taken) = ((entry >> 1) as usize, entry & 1 != 0);
            let cost = self.costs[program.code_of(block as u32) as usize];
            let counts = &mut self.blocks[block];
            counts.runs += 1;
            let behind = if taken { cost.taken } else { cost.onwards };
            counts.branch += u64::from(behind);
            let waits = counts.waits as usize;
            if cost.needs & self.loaded != 0 {
                counts.load_use += u64::from(self.config.load_use);
                now += u64::from(self.config.load_use);
            }
            // Whatever is lost behind a block gives its load time enough.
            self.loaded = if behind > 0 { 0 } else { cost.loads };
            for at in 0..cost.steps as usize {
                let step = self.steps[cost.first as usize + at];
                let when = now + u64::from(step.offset);
                let [fill, write] = match step.ask {
                    Ask::Fetch(line) => {
                        if line == self.line {
                            continue;
                        }
                        self.line = line;
                        if self.icache.touch(line, false) {
                            continue;
                        }
                        self.fetch(when, line)
                    }
                    Ask::Load => self.load(when, addresses.next().copied().unwrap_or(0)),
                    Ask::Store => self.store(when, addresses.next().copied().unwrap_or(0)),
                    ask => {
                        let left = addresses.as_slice();
                        let (waited, taken) = self.wide(when, ask, left);
                        addresses = left.get(taken..).unwrap_or_default().iter();
                        waited
                    }
                };
                if fill | write != 0 {
                    now += fill + write;
                    let wait = &mut self.waits[waits + at];
                    wait[0] += fill;
                    wait[1] += write;
                }
            }
            now += u64::from(cost.cycles + behind);
            if cost.way != Way::Jump {
                self.windows.iter_mut().for_each(|file| file.follow(cost.way));
            }
        }
        self.now = now;
    }

    fn cycles(&self, _: u64) -> Option<u64> {
        Some(self.now)
    }
}

/// Several configurations read one trace.
impl Sink for Vec<Timing> {
    fn consume(&mut self, program: &Program, trace: &Trace) {
        self.iter_mut().for_each(|one| one.consume(program, trace));
    }

    fn cycles(&self, instructions: u64) -> Option<u64> {
        if let [one] = self.as_slice() { one.cycles(instructions) } else { None }
    }
}
