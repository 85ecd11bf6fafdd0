//! The fast x86-64 crypto backend, on Intel's multi-buffer library (libipsec-mb).
//!
//! AES-GCM and AES-GMAC go one packet at a time through the library's direct calls, which are its
//! fastest way for them; the other suites go through its job manager, which works on up to sixteen packets
//! at once and so wins most where single packets are serial (AES-CBC, HMAC). It lacks AES-CCM with keys of
//! 192 bits.
//!
//! Unlike the portable backend, the library deciphers while or before it verifies: after
//! [`Verdict::AuthFailed`](forebay_crypto::Verdict) the packet holds garbage. And the job manager
//! takes parts of up to 65,534 bytes: enough for every IP packet but IPv6 jumbograms (RFC 2675),
//! whose jobs fail unchanged.

#[cfg(ipsec_mb)]
mod gcm;
#[cfg(ipsec_mb)]
mod gmac;
#[cfg(ipsec_mb)]
mod manager;
#[cfg(ipsec_mb)]
mod processor;
#[cfg(ipsec_mb)]
mod session;

#[cfg(ipsec_mb)]
pub use processor::IpsecMb;

/// Why there is no such backend here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The library was not installed when Forebay was built.
    NotBuilt,
    /// Forebay was built for another architecture than x86-64, the library's only one.
    Architecture,
    /// The processor lacks AES-NI or the [`Instructions`] asked for, or the library's self test failed.
    NotUsable,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unavailable::NotBuilt => {
                f.write_str("built without libipsec-mb (install libipsec-mb-dev and build again)")
            }
            Unavailable::Architecture => {
                write!(
                    f,
                    "libipsec-mb is for x86-64, and this program was built for {}",
                    std::env::consts::ARCH
                )
            }
            Unavailable::NotUsable => {
                f.write_str("the processor lacks the instructions, or libipsec-mb failed its self test")
            }
        }
    }
}

/// Which of its ways of doing things the library takes, each written for the instructions of a
/// generation of processors. Those before the best are for tests: a machine checks them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// The best that the processor has.
    Best,
    /// 128-bit vectors, with SHA instructions where the processor has them.
    Sse,
    /// 128-bit vectors with three operands; versions of the library from 2.0 on lack it.
    Avx,
    /// 256-bit vectors.
    Avx2,
    /// 512-bit vectors, with the AES instructions for them where the processor has these.
    Avx512,
}

/// A processor on this backend, or why there is none.
pub fn new() -> Result<Box<dyn forebay_crypto::Processor>, Unavailable> {
    with_instructions(Instructions::Best)
}

/// As [`new`], with the given instructions.
pub fn with_instructions(
    instructions: Instructions,
) -> Result<Box<dyn forebay_crypto::Processor>, Unavailable> {
    #[cfg(ipsec_mb)]
    {
        IpsecMb::with_instructions(instructions)
            .map(|processor| Box::new(processor) as Box<dyn forebay_crypto::Processor>)
    }
    #[cfg(not(ipsec_mb))]
    {
        let _ = instructions;
        Err(if cfg!(target_arch = "x86_64") { Unavailable::NotBuilt } else { Unavailable::Architecture })
    }
}

/// The bare cipher, AES-GCM sealing or opening in place and nothing else: the limit that the data plane
/// is judged against.
pub struct BareGcm {
    #[cfg(ipsec_mb)]
    inner: manager::BareGcm,
}

impl BareGcm {
    /// A run over `buffers` of equal length; `None` where the library is missing, or for what is no
    /// AES key, an ICV over 16 bytes or buffers that differ.
    pub fn new(key: &[u8], icv_len: usize, open: bool, buffers: Vec<Vec<u8>>) -> Option<BareGcm> {
        #[cfg(ipsec_mb)]
        {
            manager::BareGcm::new(key, icv_len, open, buffers).map(|inner| BareGcm { inner })
        }
        #[cfg(not(ipsec_mb))]
        {
            let _ = (key, icv_len, open, buffers);
            None
        }
    }

    /// Goes `rounds` times over all buffers.
    pub fn run(&mut self, rounds: u64) {
        #[cfg(ipsec_mb)]
        self.inner.run(rounds);
        #[cfg(not(ipsec_mb))]
        let _ = rounds;
    }
}
