//! Service classes: separate inputs, and the order in which they are served.

use std::fmt;
use std::str::FromStr;

use forebay_time::Duration;

use crate::config::UnknownWord;
use crate::{Config, Windowing};

/// The order of service when several classes have a job.
///
/// As in IEEE 802.1Qaz and Linux's `ets`, the strict classes come first, in the order of their numbers; the others
/// share the rest by weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Before every class with a higher number, which gets only what this one leaves over.
    Strict,
    /// Deficit round robin by bytes: while several weighted classes have jobs, the bytes that leave
    /// are shared in proportion to the weights, and none starves.
    Weighted {
        /// At least 1; a round gives the class this many times [`Service::QUANTUM`] bytes.
        weight: u32,
    },
}

impl Service {
    /// Bytes that a round gives a class for each unit of its weight: a full Ethernet packet, so that
    /// most turns send one at least.
    pub const QUANTUM: u32 = 1_500;

    /// The word it has in scenario and configuration files.
    pub fn word(&self) -> &'static str {
        match self {
            Service::Strict => "strict",
            Service::Weighted { .. } => "weighted",
        }
    }
}

impl fmt::Display for Service {
    /// Its word, without the weight.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Service {
    type Err = UnknownWord;

    /// Reads its word; `weighted` has the weight 1, which is set afterwards.
    fn from_str(text: &str) -> Result<Service, UnknownWord> {
        let all = [Service::Strict, Service::Weighted { weight: 1 }];
        UnknownWord::find("service", text, &all, Service::word)
    }
}

/// One service class: an input window of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassConfig {
    /// The order of service.
    pub service: Service,
    /// Sliding window in packets; 1 bundles nothing. With [`Windowing::Adaptive`] the largest.
    pub window: usize,
    /// Whether the window stays as it is set.
    pub windowing: Windowing,
    /// How long the packet at the head waits for the window to fill; `None`: for ever. With
    /// [`Windowing::Adaptive`] the longest.
    pub timeout: Option<Duration>,
    /// Most bytes that packets are bundled to; `None`: no limit. A packet larger than this goes alone.
    pub max_bytes: Option<u64>,
    /// Most packets that wait in this class's input, at least `window`.
    pub input: usize,
    /// Most jobs that wait in a processor's queue once one of this class has joined it, at least 1;
    /// above the processor's own limit it changes nothing. The places that a bulk class leaves
    /// free are the urgent ones', and bound how much bulk an urgent job finds ahead of it.
    pub queue: usize,
    /// Time after the choice by which another processor than the [host](Config::host) has to be predicted to be done
    /// with jobs of this class, where any is; the host does what others cannot. `None`: no bound. Only where `batch` is
    /// above 1: a single job goes to the processor that is done first anyway.
    pub latency_bound: Option<Duration>,
}

impl ClassConfig {
    /// A class without a window, with an input and a share of the queues without limit.
    pub fn new(service: Service) -> ClassConfig {
        ClassConfig {
            service,
            window: 1,
            windowing: Windowing::Fixed,
            timeout: None,
            max_bytes: None,
            input: usize::MAX,
            queue: usize::MAX,
            latency_bound: None,
        }
    }

    /// The one class that a configuration without classes has.
    pub(crate) fn only(config: &Config) -> ClassConfig {
        ClassConfig {
            window: config.window,
            windowing: config.windowing,
            timeout: config.timeout,
            max_bytes: config.max_bytes,
            input: config.input,
            ..ClassConfig::new(Service::Strict)
        }
    }

    /// What is wrong with the class by itself.
    pub(crate) fn check(&self) -> Result<(), ClassFault> {
        match *self {
            ClassConfig { window: 0, .. } => Err(ClassFault::ZeroWindow),
            ClassConfig { input, window, .. } if input < window => {
                Err(ClassFault::InputBelowWindow { input, window })
            }
            ClassConfig { queue: 0, .. } => Err(ClassFault::ZeroQueue),
            ClassConfig { service: Service::Weighted { weight: 0 }, .. } => Err(ClassFault::ZeroWeight),
            _ => Ok(()),
        }
    }
}

/// Errors in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassFault {
    /// A window of no packets.
    ZeroWindow,
    /// The input cannot hold a full window, which therefore would never fill.
    InputBelowWindow {
        /// The input's limit in packets.
        input: usize,
        /// The window in packets.
        window: usize,
    },
    /// No job of the class could join a queue.
    ZeroQueue,
    /// A share of nothing.
    ZeroWeight,
    /// A strict class behind a weighted one, which would go before classes of a lower number.
    StrictBehindWeighted,
}

impl fmt::Display for ClassFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ClassFault::ZeroWindow => f.write_str("the window is 0 packets; 1 is none"),
            ClassFault::InputBelowWindow { input, window } => {
                write!(f, "an input of {input} packets never fills a window of {window}")
            }
            ClassFault::ZeroQueue => f.write_str("it may use no place of a queue; it needs at least 1"),
            ClassFault::ZeroWeight => f.write_str("the weight is 0; it is at least 1"),
            ClassFault::StrictBehindWeighted => {
                f.write_str("it is strict but stands behind a weighted one; strict classes come first")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for service in [Service::Strict, Service::Weighted { weight: 1 }] {
            assert_eq!(service.to_string().parse(), Ok(service));
        }
        let error = "priority".parse::<Service>().unwrap_err();
        assert_eq!(error.to_string(), "unknown service `priority`; there are strict, weighted");
    }
}
