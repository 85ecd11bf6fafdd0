//! The port to memory and the buffer of writes in front of it.

use std::collections::VecDeque;

/// A write that waits or is in progress.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// The line of the data cache that it belongs to.
    line: u32,
    /// When it came.
    since: u64,
    /// How long it takes the port.
    cycles: u64,
}

/// The port to memory: one read or write at a time.
#[derive(Clone, Debug, Default)]
pub struct Port {
    /// When what was last begun ends.
    free: u64,
}

/// Writes in front of the port. A slot is free when its write has ended.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    slots: usize,
    /// The first may be in progress.
    waiting: VecDeque<Write>,
    under_way: bool,
    port: Port,
}

impl WriteBuffer {
    /// An empty buffer before an idle port.
    pub fn new(slots: u32) -> WriteBuffer {
        let waiting = VecDeque::with_capacity(slots as usize);
        WriteBuffer { slots: slots as usize, waiting, under_way: false, port: Port::default() }
    }

    /// Begins the first write, if it has not begun; says when it ends.
    fn begin(&mut self) -> u64 {
        if let Some(first) = self.waiting.front().filter(|_| !self.under_way) {
            self.port.free = self.port.free.max(first.since) + first.cycles;
            self.under_way = true;
        }
        self.port.free
    }

    fn end_first(&mut self) -> u64 {
        let end = self.begin();
        self.waiting.pop_front();
        self.under_way = false;
        end
    }

    /// Lets writes begin and end that do so before `now`. One that could begin just now does not: a read goes first.
    #[inline]
    fn until(&mut self, now: u64) {
        while let Some(first) = self.waiting.front() {
            if !self.under_way && self.port.free.max(first.since) >= now {
                return;
            }
            if self.begin() > now {
                return;
            }
            self.end_first();
        }
    }

    /// A read at `now` that takes the port for `cycles`; says when it begins. `line` is the line of the data cache
    /// that it reads, whose waiting writes go first.
    pub fn read(&mut self, now: u64, line: Option<u32>, cycles: u64) -> u64 {
        self.until(now);
        let own = line.and_then(|line| self.waiting.iter().rposition(|one| one.line == line));
        let first = match own {
            Some(last) => last + 1,
            None => usize::from(self.under_way),
        };
        let mut begin = now.max(self.port.free);
        for _ in 0..first {
            begin = begin.max(self.end_first());
        }
        self.port.free = begin + cycles;
        begin
    }

    /// A write at `now`; says when the core goes on.
    pub fn write(&mut self, now: u64, line: u32, cycles: u64) -> u64 {
        self.until(now);
        if self.slots == 0 {
            self.port.free = self.port.free.max(now) + cycles;
            return self.port.free;
        }
        let since = if self.waiting.len() < self.slots { now } else { self.end_first() };
        self.waiting.push_back(Write { line, since, cycles });
        since
    }
}
