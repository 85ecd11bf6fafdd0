//! What is compared.

use forebay_processors::Backend;

use crate::Error;

/// What is compared.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Packets at each rate.
    pub packets: u64,
    /// Offered cleartext traffic of each run, such as `400 Mbit/s`; if there is none, [`RATES`].
    pub rates: Vec<String>,
    /// Emulated cards of 230 Mbit/s on a 66 MHz bus.
    pub cards: usize,
    /// Completed jobs that a card can hold for the bus while it computes the next.
    pub write_buffer: usize,
    /// Jobs that a card prefetches.
    pub prefetch: usize,
    /// Maximum queue length of each processor, in jobs.
    pub queue: usize,
    /// Factor on the predicted finish time of the running core.
    pub alpha: f64,
    /// Sliding window in packets; 1 disables bundling.
    pub window: usize,
    /// Number of SAs, which are equally likely.
    pub sas: usize,
    /// Mean length of the cleartext packets in bytes.
    pub mean: u32,
    /// Seed of the random packets.
    pub seed: u64,
    /// Cipher suite, in swanctl notation.
    pub proposal: String,
    /// Crypto library of the running core.
    pub backend: Backend,
    /// Clock of the engine.
    pub clock: EngineClock,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            packets: 100_000,
            rates: Vec::new(),
            cards: 2,
            write_buffer: 0,
            prefetch: 0,
            queue: 1_000,
            alpha: 400.0,
            window: 1,
            sas: 4,
            mean: 471,
            seed: 1,
            proposal: "aes128gcm16".to_owned(),
            backend: Backend::Auto,
            clock: EngineClock::Thread,
        }
    }
}

/// What the engine takes for time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineClock {
    /// CPU time of the engine's thread, so that other load on the machine does not affect the comparison.
    Thread,
    /// Wall-clock time; requires a dedicated core.
    Wall,
}

/// Below what two cards do, near it, and beyond it.
pub const RATES: [&str; 3] = ["200 Mbit/s", "400 Mbit/s", "1 Gbit/s"];

impl Settings {
    /// The rates that are compared.
    pub fn rates(&self) -> Vec<String> {
        match self.rates.is_empty() {
            true => RATES.map(str::to_owned).to_vec(),
            false => self.rates.clone(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let limits: [(&str, u64, u64, u64); 7] = [
            ("packets", self.packets, 1, 10_000_000),
            ("cards", self.cards as u64, 1, 64),
            ("queue", self.queue as u64, 1, 100_000),
            ("window", self.window as u64, 1, 64),
            ("sas", self.sas as u64, 1, 250),
            ("mean", self.mean.into(), 41, 1_400),
            ("prefetch", self.prefetch.max(self.write_buffer) as u64, 0, 1_000),
        ];
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(Error::range(name, value, format_args!("{least} to {most}")));
            }
        }
        if !(1.0..=1e9).contains(&self.alpha) {
            return Err(Error::range("alpha", self.alpha, "1 to 1e9"));
        }
        Ok(())
    }
}
