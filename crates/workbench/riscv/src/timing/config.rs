//! What can be configured, and what cycles are spent on.

/// Which line of a set makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// The one not used for the longest time.
    Lru,
    /// The one that came first.
    Fifo,
    /// Any, drawn from a generator with this seed.
    Random(u32),
}

/// A cache's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheConfig {
    /// Bytes, a power of two.
    pub size: u32,
    /// Lines a set, a power of two.
    pub ways: u32,
    /// Bytes a line, a power of two.
    pub line: u32,
    /// Which line makes room.
    pub replacement: Replacement,
}

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// It goes to memory, and into the line if that is there.
    WriteThrough,
    /// It goes into the line, which is fetched if it is not there, and to memory when the line makes room.
    WriteBack,
}

/// Which way branches are expected to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Branches {
    /// Never away.
    NotTaken,
    /// Backwards yes, forwards no; the target is known after decode.
    Backward,
}

/// What a vector unit does in a cycle. A unit of as many bits as `datapath` is passed once for so many bits of elements,
/// and nothing is issued until the last pass has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorConfig {
    /// Bytes of a pass, and of what a load or store moves in a cycle.
    pub datapath: u32,
    /// Cycles of a pass of an AES round (Zvkned), 1 or more.
    pub aes: u32,
    /// Of GHASH's multiplication (Zvkg), 1 or more.
    pub ghash: u32,
    /// Of two rounds of SHA-2, or of four words of its schedule (Zvknha, Zvknhb), 1 or more.
    pub sha2: u32,
}

impl VectorConfig {
    /// 128 bits. Four S-boxes, a column a cycle, as \[E\]'s custom round has them; 32 bits of a multiplier of 128; one
    /// round of SHA-2 a cycle. The figures are ours.
    pub fn base() -> VectorConfig {
        VectorConfig { datapath: 16, aes: 4, ghash: 4, sha2: 2 }
    }

    /// Passes for so many bytes of elements, at least one.
    pub(crate) fn passes(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.datapath).max(1)
    }
}

/// A core's configuration. Cycles unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The instruction cache.
    pub icache: CacheConfig,
    /// The data cache.
    pub dcache: CacheConfig,
    /// What a store does.
    pub policy: Policy,
    /// Stores that may wait for memory; 0: each is waited for.
    pub write_slots: u32,
    /// Bytes a beat of the memory interface.
    pub width: u32,
    /// From a read's request to the first beat.
    pub latency: u32,
    /// From a write's request to its first beat.
    pub write_latency: u32,
    /// A beat.
    pub beat: u32,
    /// A multiplication, 1 or more.
    pub multiply: u32,
    /// A division, 1 or more.
    pub divide: u32,
    /// Lost when a load's value is needed by the next instruction; 0 or 1.
    pub load_use: u32,
    /// Lost when a branch goes elsewhere than expected, or by an indirect jump.
    pub branch: u32,
    /// Lost by a direct jump, or a branch that was expected to go where it goes.
    pub jump: u32,
    /// Which way branches are expected to go.
    pub branches: Branches,
    /// The vector unit, of a core that has one.
    pub vector: VectorConfig,
}

impl Config {
    /// The base of docs/models.md, "Embedded cores": 1 KiB direct-mapped caches with lines of 16 bytes, 4 slots, 32
    /// bits. The latencies are ours: the paper does not print them.
    pub fn base() -> Config {
        let cache = CacheConfig { size: 1_024, ways: 1, line: 16, replacement: Replacement::Lru };
        Config {
            icache: cache,
            dcache: cache,
            policy: Policy::WriteThrough,
            write_slots: 4,
            width: 4,
            latency: 8,
            write_latency: 4,
            beat: 1,
            multiply: 3,
            divide: 37,
            load_use: 1,
            branch: 2,
            jump: 1,
            branches: Branches::NotTaken,
            vector: VectorConfig::base(),
        }
    }

    /// Cycles for which a read of so many bytes takes the port.
    pub fn read_cycles(&self, bytes: u32) -> u64 {
        u64::from(self.latency) + u64::from(bytes.div_ceil(self.width)) * u64::from(self.beat)
    }

    /// Cycles for which a write of so many bytes takes the port.
    pub fn write_cycles(&self, bytes: u32) -> u64 {
        u64::from(self.write_latency) + u64::from(bytes.div_ceil(self.width)) * u64::from(self.beat)
    }
}

/// What a cycle was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// An instruction began.
    Issue,
    /// A line of code came from memory.
    Fetch,
    /// A line of data, or a device's word, came from memory.
    Load,
    /// A line was fetched for a store (write-back caches).
    Store,
    /// A store waited for a slot, or a read for a write.
    WriteBuffer,
    /// A loaded value was not there yet.
    LoadUse,
    /// Control went elsewhere.
    Branch,
    /// Further cycles of a multiplication or division.
    MultiCycle,
    /// Further cycles of a custom instruction.
    Custom,
    /// Further cycles of a vector instruction.
    Vector,
}

impl Cause {
    /// All, in the order of reports.
    pub const ALL: [Cause; 10] = [
        Cause::Issue,
        Cause::Fetch,
        Cause::Load,
        Cause::Store,
        Cause::WriteBuffer,
        Cause::LoadUse,
        Cause::Branch,
        Cause::MultiCycle,
        Cause::Custom,
        Cause::Vector,
    ];

    /// Its word in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Issue => "issue",
            Cause::Fetch => "fetch-miss",
            Cause::Load => "load-miss",
            Cause::Store => "store-miss",
            Cause::WriteBuffer => "write-buffer",
            Cause::LoadUse => "load-use",
            Cause::Branch => "branch",
            Cause::MultiCycle => "multi-cycle",
            Cause::Custom => "custom",
            Cause::Vector => "vector",
        }
    }
}
