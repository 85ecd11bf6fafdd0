//! What the cipher does without a data path around it.

use forebay_crypto::{Direction, Job, Processor, SaKeys, SessionId, Suite};
use forebay_engine::{BURST, Clock};
use forebay_time::{Duration, Time};
use miette::{IntoDiagnostic, miette};

use forebay_processors::Backend;

/// Buffers in turn: as many as the packets of the bench.
const PACKETS: usize = 2 * BURST;

/// The bare cipher: for AES-GCM by ipsec-mb a loop in C around the library's own call, for everything
/// else jobs submitted again and again; those always seal, because a backend that verifies first
/// would be done with a made-up packet at once.
pub enum Bare {
    Gcm(forebay_crypto_ipsec_mb::BareGcm),
    Jobs { processor: Box<dyn Processor>, jobs: Vec<Job> },
}

impl Bare {
    /// A cipher with buffers of `size` bytes.
    pub fn new(
        name: &str,
        suite: Suite,
        keys: &SaKeys,
        size: usize,
        direction: Direction,
        backend: Backend,
    ) -> miette::Result<Bare> {
        if name == "ipsec-mb" && matches!(suite.cipher(), forebay_crypto::Cipher::AesGcm(_)) {
            let open = direction == Direction::Open;
            let buffers = vec![vec![0x5a; size]; PACKETS];
            let bare = forebay_crypto_ipsec_mb::BareGcm::new(keys.cipher(), suite.icv_len(), open, buffers);
            return bare.map(Bare::Gcm).ok_or_else(|| miette!("ipsec-mb is not usable"));
        }
        let mut processor = backend.open()?;
        processor.open_session(SessionId(0), keys, Direction::Seal).into_diagnostic()?;
        let jobs = (0..PACKETS).map(|_| forebay_engine::esp_job(SessionId(0), suite, size as u32)).collect();
        Ok(Bare::Jobs { processor, jobs })
    }

    /// Packets per second over `slice`.
    pub fn rate(&mut self, slice: Duration, clock: Clock) -> f64 {
        let start = clock.now();
        let mut packets = 0u64;
        loop {
            match self {
                Bare::Gcm(bare) => {
                    bare.run(64);
                    packets += 64 * PACKETS as u64;
                }
                Bare::Jobs { processor, jobs } => {
                    processor.submit(Time::ZERO, jobs);
                    processor.poll(Time::ZERO, jobs);
                    packets += PACKETS as u64;
                }
            }
            let elapsed = clock.now().since(start);
            if elapsed >= slice {
                return packets as f64 / elapsed.as_secs();
            }
        }
    }
}
