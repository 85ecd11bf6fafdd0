//! GPUs as crypto devices, by OpenCL or CUDA, both looked for when a device is opened: nothing of either is needed to build or
//! to start a program with this crate.
//!
//! The kernels are one text for both (`src/kernels`), compiled by the driver when a device is opened. They are constant-time:
//! AES is bitsliced, GHASH multiplies integers with masked bits, nothing is looked up by secret data. A launch is a batch of
//! packets. Its texts are enciphered in chunks of 256 bytes, each by a work-item, and its tags are computed by one work-item
//! for each packet. Several launches are in flight, each with buffers and a queue of its own, so that copies overlap with
//! kernels.
//!
//! Key schedules, powers of GHASH's key and HMAC's states are computed on the host when a session is opened, and stay in the
//! device's memory until it is closed, when they are overwritten.

mod cuda;
#[cfg(test)]
mod double;
mod error;
#[cfg(test)]
mod faults;
mod keys;
mod opencl;
mod pack;
mod processor;
mod runtime;

use forebay_crypto::Processor;
use forebay_time::Duration;

pub use error::Unavailable;
use processor::{Gpu, Limits};
pub use runtime::Lost;
use runtime::Sizes;

/// By what a device is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// By CUDA where it has a device, by OpenCL otherwise.
    #[default]
    Auto,
    /// By OpenCL: any vendor's driver, or pocl, which computes on the CPU.
    OpenCl,
    /// By CUDA: NVIDIA's driver and NVRTC.
    Cuda,
}

impl Runtime {
    /// The runtime with this word: `auto`, `opencl` or `cuda`.
    pub fn named(word: &str) -> Option<Runtime> {
        match word {
            "auto" => Some(Runtime::Auto),
            "opencl" => Some(Runtime::OpenCl),
            "cuda" => Some(Runtime::Cuda),
            _ => None,
        }
    }
}

/// A device to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Name in figures and logs.
    pub name: String,
    /// By what it is reached.
    pub runtime: Runtime,
    /// Its index among all devices of the runtime.
    pub device: usize,
    /// Most packets of a launch.
    pub batch: usize,
    /// Most jobs between submit and poll.
    pub queue: usize,
    /// Most sessions, each a direction of an SA.
    pub sessions: usize,
    /// After this time a launch counts as hung: its jobs come back as failed.
    pub timeout: Duration,
}

impl Default for Config {
    /// The first device, with launches of 1,024 packets, a queue of 4,096 jobs and 16,384 sessions.
    fn default() -> Config {
        Config {
            name: "gpu".to_owned(),
            runtime: Runtime::Auto,
            device: 0,
            batch: 1_024,
            queue: 4_096,
            sessions: 16_384,
            timeout: Duration::from_millis(2_000),
        }
    }
}

/// Opens a device.
///
/// # Errors
/// If the runtime is not installed, has no such device, or does not compile the kernels.
pub fn open(config: &Config) -> Result<Box<dyn Processor>, Unavailable> {
    let limits = Limits {
        batch: config.batch,
        queue: config.queue,
        sessions: config.sessions,
        timeout: config.timeout,
    };
    let runtime = runtime(config, &limits.sizes())?;
    Ok(Box::new(Gpu::new(&config.name, runtime, limits)))
}

fn runtime(config: &Config, sizes: &Sizes) -> Result<Box<dyn runtime::Runtime>, Unavailable> {
    match chosen(config.runtime)? {
        (Runtime::Cuda, _) => Ok(Box::new(cuda::Cuda::open(config.device, sizes)?)),
        _ => Ok(Box::new(opencl::OpenCl::open(config.device, sizes)?)),
    }
}

/// The runtime that is meant, and the names of its devices.
fn chosen(of: Runtime) -> Result<(Runtime, Vec<String>), Unavailable> {
    let opencl = || {
        let all = opencl::devices()?;
        Ok((Runtime::OpenCl, all.into_iter().map(|(_, name)| name).collect()))
    };
    let cuda = || Ok((Runtime::Cuda, cuda::devices()?));
    match of {
        Runtime::OpenCl => opencl(),
        Runtime::Cuda => cuda(),
        Runtime::Auto => cuda().or_else(|no_cuda: Unavailable| {
            let neither =
                |no_opencl| Unavailable::Neither { cuda: no_cuda.into(), opencl: Box::new(no_opencl) };
            opencl().map_err(neither)
        }),
    }
}

/// Looks whether there is such a device, without opening it.
///
/// # Errors
/// If the runtime is not installed, or has no such device.
pub fn look(of: Runtime, device: usize) -> Result<(), Unavailable> {
    let found = devices(of)?;
    if device < found.len() { Ok(()) } else { Err(Unavailable::NoDevice { index: device, found }) }
}

/// The suites that every GPU does.
pub fn suites() -> Vec<forebay_crypto::Suite> {
    forebay_crypto::Suite::all().filter(|&suite| pack::has(suite)).collect()
}

/// The names of a runtime's devices, in the order of their indices.
///
/// # Errors
/// If the runtime is not installed, or has no device.
pub fn devices(of: Runtime) -> Result<Vec<String>, Unavailable> {
    chosen(of).map(|(_, names)| names)
}
