//! What is between the processor and a device: OpenCL, CUDA, or a double in tests.

use std::fmt;

use crate::keys::Record;

/// The kernels by their numbers: bits of [`Launch::kernels`]. The first three are run for each chunk, then the others for each
/// job.
pub const KERNELS: [&str; 6] =
    ["cipher_ctr", "cipher_cbc", "cipher_chacha", "tag_gcm", "tag_poly", "tag_hmac"];
/// How many of them are run for each chunk.
pub const CIPHERS: usize = 3;
/// Bytes that the kernels leave for each chunk between the two.
pub const SHARE_LEN: usize = 32;

/// The text of the kernels: one for OpenCL and CUDA.
pub const SOURCE: &str = concat!(
    include_str!("kernels/dialect.cl"),
    include_str!("kernels/aes.cl"),
    include_str!("kernels/ghash.cl"),
    include_str!("kernels/chacha.cl"),
    include_str!("kernels/sha256.cl"),
    include_str!("kernels/kernels.cl"),
);

/// How large a device's buffers are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Launches that can be in flight.
    pub slots: usize,
    /// Bytes that one is given.
    pub input: usize,
    /// Bytes that come back from one.
    pub output: usize,
    /// Chunks of one.
    pub chunks: usize,
    /// Key records.
    pub records: usize,
}

/// What is launched: copies to the device, kernels, copies back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Bytes of the slot's input.
    pub input: usize,
    /// Where the jobs are in it, in words.
    pub jobs_at: u32,
    /// Where the chunks are in it, in words.
    pub chunks_at: u32,
    /// Where the tags come in the output, in words.
    pub tags_at: u32,
    /// How many jobs.
    pub jobs: u32,
    /// How many chunks.
    pub chunks: u32,
    /// Bytes of the slot's output.
    pub output: usize,
    /// The kernels that are needed, a bit for each.
    pub kernels: u32,
}

impl Launch {
    /// The kernels with their numbers of work-items, in their order.
    pub fn steps(&self) -> impl Iterator<Item = (usize, u32)> {
        let (kernels, chunks, jobs) = (self.kernels, self.chunks, self.jobs);
        let needed = (0..KERNELS.len()).filter(move |kernel| kernels >> kernel & 1 == 1);
        needed.map(move |kernel| (kernel, if kernel < CIPHERS { chunks } else { jobs }))
    }
}

/// A device has failed, and will not do anything any more: which call, and what its driver says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The call.
    pub call: &'static str,
    /// The driver's words or number.
    pub reason: String,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.reason)
    }
}

/// A device with buffers of [`Sizes`]. Nothing here waits for the device but [`Runtime::wipe`].
pub trait Runtime: Send {
    /// What a slot is given, to be filled in. Not while a launch of the slot is in flight.
    fn input(&mut self, slot: usize) -> &mut [u8];

    /// What came back of a slot. Not while a launch of the slot is in flight.
    fn output(&self, slot: usize) -> &[u8];

    /// Begins a launch of a slot that has none in flight. It sees all records that were written before.
    fn launch(&mut self, slot: usize, launch: &Launch) -> Result<(), Lost>;

    /// Whether the slot's launch has ended, its output copied back.
    fn is_done(&mut self, slot: usize) -> Result<bool, Lost>;

    /// Begins to write a key record that no launch in flight uses.
    fn write_record(&mut self, number: u32, record: Record) -> Result<(), Lost>;

    /// How many records are still being written.
    fn writing(&mut self) -> usize;

    /// Wipes all records and what kernels have left of them, and waits for it. Not while launches are in flight.
    fn wipe(&mut self) -> Result<(), Lost>;
}
