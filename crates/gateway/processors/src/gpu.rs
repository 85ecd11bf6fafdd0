//! GPUs, by OpenCL or CUDA.

use std::any::Any;
use std::sync::Arc;

use forebay_crypto::Processor;
#[cfg(feature = "gpu")]
use forebay_crypto::Suite;
use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::Is;
use forebay_scenario::schema::Takes::{Time, Whole, Word};
use forebay_scenario::schema::{Key, key};
use forebay_time::Duration;

use crate::registry::{Device, Kind, Surroundings, Values};

pub(crate) const KIND: Kind = Kind { word: WORD, keys: KEYS, read, sample, detailed };

const WORD: &str = "gpu";

const RUNTIMES: &[&str] = &["auto", "opencl", "cuda"];

const KEYS: &[Key] = &[
    key(
        "runtime",
        Word(RUNTIMES),
        Is("\"auto\""),
        "what the GPU is reached by; `auto`: CUDA where it has a device, otherwise OpenCL",
        "\"opencl\"",
    ),
    key(
        "device",
        Whole(Unit::None, 0, 255),
        Is("0"),
        "index of the GPU among the devices of the runtime, for OpenCL of all platforms",
        "1",
    ),
    key("batch", Whole(Unit::None, 1, 65_536), Is("1024"), "maximum number of packets per launch", "4096"),
    key("queue", Whole(Unit::None, 1, 1 << 20), Is("4096"), "maximum queue length in jobs", "16384"),
    key(
        "sessions",
        Whole(Unit::None, 1, 1 << 20),
        Is("16384"),
        "maximum number of sessions, one for each direction of an SA; each takes 512 bytes of the GPU's memory",
        "65536",
    ),
    key(
        "timeout",
        Time("1 ms", "1 h"),
        Is("\"2 s\""),
        "time after which the jobs of a launch without result are computed elsewhere",
        "\"500 ms\"",
    ),
];

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GpuDevice {
    runtime: &'static str,
    device: usize,
    batch: usize,
    queue: usize,
    sessions: usize,
    timeout: Duration,
}

fn read(values: &dyn Values) -> Option<Arc<dyn Device>> {
    let (runtime, device, batch) = (values.word("runtime"), values.count("device"), values.count("batch"));
    let (queue, sessions, timeout) =
        (values.count("queue"), values.count("sessions"), values.time("timeout"));
    Some(Arc::new(GpuDevice {
        runtime: runtime?,
        device: device?,
        batch: batch?,
        queue: queue?,
        sessions: sessions?,
        timeout: timeout?,
    }))
}

fn sample() -> Arc<dyn Device> {
    Arc::new(of("auto", 0))
}

/// `RUNTIME`, `INDEX` or `RUNTIME+INDEX`.
fn detailed(words: &str) -> Option<Arc<dyn Device>> {
    let (word, index) = words.split_once('+').unwrap_or(match words.parse::<usize>() {
        Ok(_) => ("auto", words),
        Err(_) => (words, "0"),
    });
    let runtime = RUNTIMES.iter().find(|runtime| **runtime == word)?;
    Some(Arc::new(of(runtime, index.parse().ok()?)))
}

fn of(runtime: &'static str, device: usize) -> GpuDevice {
    let timeout = Duration::from_millis(2_000);
    GpuDevice { runtime, device, batch: 1_024, queue: 4_096, sessions: 16_384, timeout }
}

#[cfg(feature = "gpu")]
impl GpuDevice {
    fn runtime(&self) -> forebay_crypto_gpu::Runtime {
        forebay_crypto_gpu::Runtime::named(self.runtime).unwrap_or_default()
    }
}

#[cfg(not(feature = "gpu"))]
fn not_built() -> miette::Report {
    miette::miette!(
        help = "build with `--features gpu`, or take this `[[processor]]` out",
        "this program was built without GPUs"
    )
}

impl Device for GpuDevice {
    fn word(&self) -> &'static str {
        WORD
    }

    #[cfg(feature = "gpu")]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let config = forebay_crypto_gpu::Config {
            name: surroundings.name.to_owned(),
            runtime: self.runtime(),
            device: self.device,
            batch: self.batch,
            queue: self.queue,
            sessions: self.sessions,
            timeout: self.timeout,
        };
        let opened = forebay_crypto_gpu::open(&config);
        opened.map_err(|why| miette::miette!(help = why.help(), "{}: {why}", surroundings.name))
    }

    #[cfg(not(feature = "gpu"))]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let why = not_built();
        let help = why.help().map_or_else(String::new, |help| help.to_string());
        Err(miette::miette!(help = help, "{}: {why}", surroundings.name))
    }

    #[cfg(feature = "gpu")]
    fn lacks(&self) -> Option<miette::Report> {
        let why = forebay_crypto_gpu::look(self.runtime(), self.device).err()?;
        Some(miette::miette!(help = why.help(), "{why}"))
    }

    #[cfg(feature = "gpu")]
    fn suites(&self) -> Option<Vec<Suite>> {
        Some(forebay_crypto_gpu::suites())
    }

    #[cfg(not(feature = "gpu"))]
    fn lacks(&self) -> Option<miette::Report> {
        Some(not_built())
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("runtime", format!("\"{}\"", self.runtime)), ("device", self.device.to_string())]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Device) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_names_runtime_index_or_both() {
        let read = |words: &str| detailed(words).map(|device| format!("{device:?}"));
        let same = |words: &str, runtime, index| read(words) == Some(format!("{:?}", of(runtime, index)));
        assert!(same("opencl", "opencl", 0) && same("1", "auto", 1) && same("cuda+2", "cuda", 2));
        assert!(read("vulkan").is_none() && read("cuda+x").is_none() && read("").is_none());
    }
}
