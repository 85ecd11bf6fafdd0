//! Caches, the write buffer and whole programs against slow, obvious models, written otherwise: caches remember
//! when each line was used, the buffer lives cycle by cycle, the pipeline takes one instruction after the other.

mod support;

use std::collections::VecDeque;

use forebay_riscv::{
    Branches, Cache, CacheConfig, Class, Config, Instruction, Op, Policy, Replacement, WriteBuffer,
};
use proptest::prelude::*;
use support::*;

/// Lines with the times of their use.
struct SlowCache {
    config: CacheConfig,
    /// Line, whether written, last use, coming.
    lines: Vec<(u32, bool, u64, u64)>,
    clock: u64,
}

impl SlowCache {
    fn new(config: CacheConfig) -> SlowCache {
        SlowCache { config, lines: Vec::new(), clock: 0 }
    }

    fn set(&self, line: u32) -> u32 {
        line % (self.config.size / self.config.line / self.config.ways)
    }

    fn touch(&mut self, line: u32, write: bool) -> bool {
        self.clock += 1;
        let clock = self.clock;
        match self.lines.iter_mut().find(|one| one.0 == line) {
            Some(one) => {
                one.1 |= write;
                one.2 = clock;
                true
            }
            None => false,
        }
    }

    fn fill(&mut self, line: u32, write: bool) -> Option<u32> {
        self.clock += 1;
        let set = self.set(line);
        let mut written = None;
        let mine: Vec<(u32, bool, u64, u64)> =
            self.lines.iter().copied().filter(|one| self.set(one.0) == set).collect();
        if mine.len() == self.config.ways as usize {
            let victim = match self.config.replacement {
                Replacement::Fifo => mine.iter().min_by_key(|one| one.3),
                _ => mine.iter().min_by_key(|one| one.2),
            };
            let victim = *victim.unwrap();
            self.lines.retain(|one| one.0 != victim.0);
            written = victim.1.then_some(victim.0);
        }
        self.lines.push((line, write, self.clock, self.clock));
        written
    }
}

fn cache_config() -> impl Strategy<Value = CacheConfig> {
    let replacement = prop_oneof![Just(Replacement::Lru), Just(Replacement::Fifo)];
    (10_u32..13, 0_u32..3, 4_u32..7, replacement).prop_map(|(size, ways, line, replacement)| CacheConfig {
        size: 1 << size,
        ways: 1 << ways,
        line: 1 << line,
        replacement,
    })
}

/// A buffer that is asked every cycle. Writes begin when nothing else holds the port at the end of a cycle.
struct SlowBuffer {
    slots: usize,
    /// Line and cycles left of each write; the first may be in progress.
    waiting: VecDeque<(u32, u64)>,
    under_way: bool,
    now: u64,
}

impl SlowBuffer {
    fn new(slots: u32) -> SlowBuffer {
        SlowBuffer { slots: slots as usize, waiting: VecDeque::new(), under_way: false, now: 0 }
    }

    /// One cycle in which the core does not want the port.
    fn tick(&mut self) {
        if !self.waiting.is_empty() {
            self.under_way = true;
        }
        self.now += 1;
        if self.under_way {
            self.waiting[0].1 -= 1;
            if self.waiting[0].1 == 0 {
                self.waiting.pop_front();
                self.under_way = false;
            }
        }
    }

    fn to(&mut self, now: u64) {
        while self.now < now {
            self.tick();
        }
    }

    /// Returns when it begins; the port is held till it ends.
    fn read(&mut self, line: Option<u32>, cycles: u64) -> u64 {
        while self.under_way || line.is_some_and(|line| self.waiting.iter().any(|one| one.0 == line)) {
            self.tick();
        }
        let begin = self.now;
        self.now += cycles;
        begin
    }

    fn write(&mut self, line: u32, cycles: u64) -> u64 {
        if self.slots == 0 {
            self.now += cycles;
            return self.now;
        }
        while self.waiting.len() == self.slots {
            self.tick();
        }
        self.waiting.push_back((line, cycles));
        self.now
    }
}

#[derive(Clone, Copy, Debug)]
enum Request {
    Read(Option<u32>),
    Write(u32),
}

proptest! {
    #[test]
    fn caches_hold_what_the_slow_model_holds(
        config in cache_config(),
        accesses in prop::collection::vec((0_u32..1 << 14, any::<bool>()), 1..400),
    ) {
        let (mut cache, mut slow) = (Cache::new(config), SlowCache::new(config));
        for (address, write) in accesses {
            let line = cache.line(address);
            prop_assert_eq!(line, address / config.line);
            let hit = cache.touch(line, write);
            prop_assert_eq!(hit, slow.touch(line, write));
            if !hit {
                prop_assert_eq!(cache.fill(line, write), slow.fill(line, write));
            }
        }
    }

    /// A random victim is one of its set, and the same with the same seed.
    #[test]
    fn random_replacement_keeps_to_its_set(
        seed in any::<u32>(),
        ways in 0_u32..3,
        lines in prop::collection::vec(0_u32..1 << 10, 1..300),
    ) {
        let config =
            CacheConfig { size: 1_024, ways: 1 << ways, line: 16, replacement: Replacement::Random(seed) };
        let mut caches = [Cache::new(config), Cache::new(config)];
        let mut held: Vec<u32> = Vec::new();
        for line in lines {
            let hits = caches.each_mut().map(|cache| cache.touch(line, true));
            prop_assert_eq!(hits[0], hits[1]);
            prop_assert_eq!(hits[0], held.contains(&line));
            if !hits[0] {
                let gone = caches.each_mut().map(|cache| cache.fill(line, true));
                prop_assert_eq!(gone[0], gone[1]);
                if let Some(gone) = gone[0] {
                    let sets = 64 >> ways;
                    prop_assert_eq!(gone % sets, line % sets);
                    prop_assert!(held.contains(&gone));
                    held.retain(|&one| one != gone);
                }
                held.push(line);
            }
        }
    }

    #[test]
    fn the_buffer_does_in_one_step_what_the_slow_one_does_in_cycles(
        slots in prop::sample::select(vec![0_u32, 1, 2, 4, 16]),
        requests in prop::collection::vec(
            (
                0_u64..12,
                prop_oneof![
                    prop::option::of(0_u32..4).prop_map(Request::Read),
                    (0_u32..4).prop_map(Request::Write),
                ],
                1_u64..12,
            ),
            1..200,
        ),
    ) {
        let (mut buffer, mut slow) = (WriteBuffer::new(slots), SlowBuffer::new(slots));
        let mut now = 0;
        for (gap, request, cycles) in requests {
            now += gap;
            slow.to(now);
            match request {
                Request::Read(line) => {
                    let begin = buffer.read(now, line, cycles);
                    prop_assert_eq!(begin, slow.read(line, cycles));
                    now = begin + cycles;
                }
                Request::Write(line) => {
                    let end = buffer.write(now, line, cycles);
                    prop_assert_eq!(end, slow.write(line, cycles));
                    now = end;
                }
            }
        }
    }

    #[test]
    fn programs_take_the_cycles_that_the_slow_model_counts(
        pieces in prop::collection::vec(piece(), 1..120),
        config in config(),
    ) {
        let words = program(&pieces);
        let (core, account) = timed(&words, config);
        let ran = recorded(&words);
        prop_assert_eq!(core.instructions(), ran.len() as u64);
        prop_assert_eq!(account.cycles, slow_cycles(&ran, config));
    }
}

fn config() -> impl Strategy<Value = Config> {
    let memory = (prop::sample::select(vec![4_u32, 8, 16]), 0_u32..12, 0_u32..12, 1_u32..3);
    let costs = (1_u32..5, 1_u32..40, 0_u32..2, 0_u32..5, 0_u32..4);
    let slots = prop::sample::select(vec![0_u32, 1, 4, 16, 32]);
    (cache_config(), cache_config(), any::<bool>(), slots, memory, costs, any::<bool>()).prop_map(
        |(icache, dcache, back, write_slots, memory, costs, backward)| Config {
            icache,
            dcache,
            policy: if back { Policy::WriteBack } else { Policy::WriteThrough },
            write_slots,
            width: memory.0,
            latency: memory.1,
            write_latency: memory.2,
            beat: memory.3,
            multiply: costs.0,
            divide: costs.1,
            load_use: costs.2,
            branch: costs.3,
            jump: costs.4,
            branches: if backward { Branches::Backward } else { Branches::NotTaken },
            vector: Config::base().vector,
        },
    )
}

/// A piece of a program: an instruction, or a loop around some.
#[derive(Clone, Debug)]
enum Piece {
    Arithmetic(u32, u32, u32),
    Multiply(u32, u32, u32),
    Divide(u32, u32, u32),
    Load(u32, i32),
    Store(u32, i32),
    /// Over so many instructions, if two registers are alike.
    Skip(u32, u32, u32),
    Jump(u32),
    /// So many rounds over the last few instructions.
    Loop(i32, u32),
    /// A call and its return.
    Call,
    /// Two bytes: what follows straddles words and lines.
    Half,
}

fn piece() -> impl Strategy<Value = Piece> {
    let register = 1_u32..12;
    let offset = (0_i32..512).prop_map(|word| 4 * (word % 500));
    prop_oneof![
        4 => (register.clone(), register.clone(), register.clone()).prop_map(|(a, b, c)| Piece::Arithmetic(a, b, c)),
        1 => (register.clone(), register.clone(), register.clone()).prop_map(|(a, b, c)| Piece::Multiply(a, b, c)),
        1 => (register.clone(), register.clone(), register.clone()).prop_map(|(a, b, c)| Piece::Divide(a, b, c)),
        4 => (register.clone(), offset.clone()).prop_map(|(a, b)| Piece::Load(a, b)),
        4 => (register.clone(), offset).prop_map(|(a, b)| Piece::Store(a, b)),
        2 => (register.clone(), register, 1_u32..6).prop_map(|(a, b, c)| Piece::Skip(a, b, c)),
        1 => (1_u32..6).prop_map(Piece::Jump),
        1 => (1_i32..6, 1_u32..10).prop_map(|(a, b)| Piece::Loop(a, b)),
        1 => Just(Piece::Call),
        1 => Just(Piece::Half),
    ]
}

/// The words of pieces. Code is made of halves so that compressed instructions may stand anywhere.
fn program(pieces: &[Piece]) -> Vec<u32> {
    let mut halves: Vec<u16> = Vec::new();
    let push = |halves: &mut Vec<u16>, word: u32| halves.extend([word as u16, (word >> 16) as u16]);
    let nop = addi(0, 0, 0);
    for piece in pieces {
        match *piece {
            Piece::Arithmetic(a, b, c) => push(&mut halves, add(a, b, c)),
            Piece::Multiply(a, b, c) => push(&mut halves, mul(a, b, c)),
            Piece::Divide(a, b, c) => push(&mut halves, divu(a, b, c)),
            Piece::Load(a, offset) => push(&mut halves, lw(a, 30, offset)),
            Piece::Store(a, offset) => push(&mut halves, sw(a, 30, offset)),
            Piece::Skip(a, b, count) => {
                push(&mut halves, branch(0, a, b, 4 * count as i32 + 4));
                (0..count).for_each(|_| push(&mut halves, addi(a, a, 1)));
            }
            Piece::Jump(count) => {
                push(&mut halves, jal(0, 4 * count as i32 + 4));
                (0..count).for_each(|_| push(&mut halves, nop));
            }
            Piece::Loop(rounds, length) => {
                push(&mut halves, addi(20, 0, rounds));
                push(&mut halves, lw(21, 30, 4 * rounds));
                (1..length).for_each(|n| push(&mut halves, lw(21, 30, 64 * n as i32)));
                push(&mut halves, addi(20, 20, -1));
                push(&mut halves, branch(1, 20, 0, -4 * (length as i32 + 1)));
            }
            Piece::Call => {
                // Over the function, which is called from behind it.
                push(&mut halves, jal(0, 12));
                push(&mut halves, lw(22, 30, 128));
                push(&mut halves, jalr(0, 1, 0));
                push(&mut halves, jal(1, -8));
            }
            // c.nop
            Piece::Half => halves.push(1),
        }
    }
    push(&mut halves, sw(0, 31, 0));
    if !halves.len().is_multiple_of(2) {
        halves.push(1);
    }
    halves.chunks(2).map(|pair| u32::from(pair[1]) << 16 | u32::from(pair[0])).collect()
}

/// One instruction after the other.
fn slow_cycles(ran: &[Ran], config: Config) -> u64 {
    let (mut icache, mut dcache) = (SlowCache::new(config.icache), SlowCache::new(config.dcache));
    let mut buffer = SlowBuffer::new(config.write_slots);
    let beats = |bytes: u32| u64::from(bytes.div_ceil(config.width) * config.beat);
    let read = |bytes| u64::from(config.latency) + beats(bytes);
    let write = |bytes| u64::from(config.write_latency) + beats(bytes);
    let mut fetched = None;
    let mut before: Option<&Ran> = None;
    for one in ran {
        for line in one.pc / config.icache.line..=(one.pc + one.length - 1) / config.icache.line {
            if fetched != Some(line) && !icache.touch(line, false) {
                icache.fill(line, false);
                buffer.read(None, read(config.icache.line));
            }
            fetched = Some(line);
        }
        // A load's register is needed by the next instruction, and nothing was lost between the two.
        if before.is_some_and(|before| waits(before.one, one.one)) {
            buffer.to(buffer.now + u64::from(config.load_use));
        }
        let line = one.address / config.dcache.line;
        let device = one.address == EXIT;
        match one.one.op.class() {
            Class::Load if !dcache.touch(line, false) => {
                if let Some(old) = dcache.fill(line, false) {
                    buffer.write(old, write(config.dcache.line));
                }
                buffer.read(Some(line), read(config.dcache.line));
            }
            Class::Store => {
                let back = config.policy == Policy::WriteBack;
                let hit = dcache.touch(line, back);
                if !back || device {
                    buffer.write(line, write(4));
                } else if !hit {
                    if let Some(old) = dcache.fill(line, true) {
                        buffer.write(old, write(config.dcache.line));
                    }
                    buffer.read(Some(line), read(config.dcache.line));
                }
            }
            _ => {}
        }
        let own = match one.one.op {
            Op::Mul => config.multiply,
            Op::Divu => config.divide,
            _ => 1,
        };
        let lost = match one.one.op {
            Op::Jal => config.jump,
            Op::Jalr => config.branch,
            op if op.class() == Class::Branch => {
                let backward = (one.one.imm as u32) < one.pc;
                match (config.branches == Branches::Backward && backward, one.taken) {
                    (true, true) => config.jump,
                    (true, false) | (false, true) => config.branch,
                    (false, false) => 0,
                }
            }
            _ => 0,
        };
        buffer.to(buffer.now + u64::from(own + lost));
        before = Some(one);
    }
    buffer.now
}

fn waits(load: Instruction, next: Instruction) -> bool {
    let loads = load.op.class() == Class::Load && load.rd != Instruction::NOWHERE;
    let reads_second = !matches!(next.op.class(), Class::Load | Class::Store | Class::Jump)
        && !matches!(next.op, Op::Addi | Op::Slli | Op::Srli | Op::Srai | Op::Andi | Op::Lui);
    let reads_first = !matches!(next.op, Op::Jal | Op::Lui);
    loads && (reads_first && next.rs1 == load.rd || reads_second && next.rs2 == load.rd)
}
