//! The crypto job: what a processor is asked to do to a packet.

use forebay_time::Duration;

use crate::Packet;

/// Whether a session protects or opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Encrypt, then compute the ICV.
    Seal,
    /// Verify the ICV, then decrypt.
    Open,
}

/// A key session of one processor. The same number names the same SA on every processor; the caller that opens the
/// session chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A range of a packet's buffer, in bytes from the buffer's begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Span {
    /// The span as a range of indices.
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end()
    }

    /// One past the last byte.
    #[inline]
    pub fn end(self) -> usize {
        self.start as usize + self.len as usize
    }
}

/// What a job does and where, without the bytes: plain data that is the same on every processor,
/// so a job can be done again elsewhere with the same result.
///
/// Every processor refuses a job ([`Verdict::Failed`]) that breaks one of these rules, and
/// [`Layout::check`](crate::Layout::check) is their one implementation:
/// - All parts lie inside the buffer.
/// - The ICV overlaps no other part: sealing would destroy what opening needs. AH, whose ICV stands
///   inside what it covers (RFC 4302 3.3.3), keeps it outside of the packet while a processor works.
/// - IV and cipher text do not overlap, nor do AAD and cipher text of an AEAD that enciphers: what
///   comes out would depend on the order in which a processor reads and writes.
/// - For a [chained](crate::Suite::is_chained) cipher the text is whole blocks, as long as the IV, and
///   when sealing, if there are any, it starts at the IV.
/// - An AEAD with `seq_hi` has an SPI at least, 4 bytes, in front of it in its AAD. One that enciphers
///   has 60 bytes of AAD with it [at most](crate::Layout::ESN_AAD_MAX); AES-CCM has
///   [46](crate::Layout::CCM_AAD_MAX) at most, the four bytes of `seq_hi` included.
/// - A separate integrity algorithm covers something: `auth` is not empty, as it never is in ESP and AH.
/// - For a separate integrity algorithm with `seq_hi`, the four bytes behind `auth` lie inside the
///   buffer and overlap neither cipher text nor IV: a processor may put the high half there while it
///   hashes, and then restores what stood there. They may be the ICV's place, as in ESP.
///
/// Without encryption (NULL, AES-GMAC) the text is not touched, and without integrity nothing of `auth`
/// and `seq_hi` is looked at but that `auth` lies inside the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobSpec {
    /// Key session, the SA's.
    pub session: SessionId,
    /// What the cipher works on. For a chained cipher when sealing it starts with the IV field, which
    /// holds a number that never repeats, and the chain starts from zero: the first block of output is
    /// then the unpredictable IV, made from the number by the cipher itself (NIST SP 800-38A
    /// appendix C, first method).
    pub cipher: Span,
    /// Where the IV field starts; its length is the suite's.
    pub iv: u32,
    /// What only integrity covers: the AAD of an AEAD (SPI and sequence number); or, where integrity
    /// [covers the text](crate::Suite::covers_text) by itself, everything that it covers: in ESP from
    /// the SPI to the end of the ciphertext, in AH the image of the whole packet (RFC 4302 3.3.3).
    pub auth: Span,
    /// Where the ICV stands or goes; its length is the suite's.
    pub icv: u32,
    /// High half of the sequence number where the ICV covers it (ESN): between SPI and low half in the AAD of an AEAD
    /// (RFC 4106 5, RFC 4543 3.3), behind all other data for a separate algorithm (RFC 4303 2.2.1). In AH the image
    /// over which the ICV is computed contains it already, and this is `None`.
    pub seq_hi: Option<u32>,
}

impl JobSpec {
    /// Length of the high half of an extended sequence number, in bytes.
    pub const SEQ_HI_LEN: usize = 4;
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not done yet.
    Pending,
    /// Sealed, or opened with a matching ICV.
    Done,
    /// The ICV does not match. The text may have been deciphered and must not be used.
    AuthFailed,
    /// The processor could not do it (unknown session, a [`JobSpec`] against the rules, device
    /// error). The packet is as it was.
    Failed,
}

/// A packet with its [`JobSpec`]: owned by the processor from submit to poll.
#[derive(Debug)]
pub struct Job {
    /// The bytes, worked on in place.
    pub packet: Packet,
    /// What to do.
    pub spec: JobSpec,
    /// Whose job it is: chosen by the submitter, not looked at by processors.
    pub token: u64,
    /// Outcome, set by the processor.
    pub verdict: Verdict,
    /// How long the processor worked on it, waiting left out; zero if it does not say.
    /// For jobs submitted together, their sum is the time for all of them.
    pub took: Duration,
}

/// A job without a packet: what is left where one was taken.
impl Default for Job {
    fn default() -> Job {
        Job::new(Packet::default(), JobSpec::default(), 0)
    }
}

impl Job {
    /// A job that is still to be done.
    #[inline]
    pub fn new(packet: Packet, spec: JobSpec, token: u64) -> Job {
        Job { packet, spec, token, verdict: Verdict::Pending, took: Duration::ZERO }
    }
}
