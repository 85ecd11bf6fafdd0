//! Crypto devices through DPDK's drivers.

use std::any::Any;
use std::sync::Arc;

use forebay_crypto::Processor;
#[cfg(feature = "dpdk")]
use forebay_crypto::Suite;
use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means, Required};
use forebay_scenario::schema::Takes::{Text, Whole};
use forebay_scenario::schema::{Key, key};

use crate::registry::{Device, Kind, Surroundings, Values};

pub(crate) const KIND: Kind = Kind { word: WORD, keys: KEYS, read, sample, detailed };

const WORD: &str = "dpdk";

const KEYS: &[Key] = &[
    key(
        "device",
        Text,
        Required,
        "DPDK's name of the device: a PCI address, or a virtual device with its number, which is made if there is none",
        "\"crypto_aesni_mb0\"",
    ),
    key("arguments", Text, Means("none"), "what a virtual device is made with", "\"max_nb_queue_pairs=2\""),
    key("queue", Whole(Unit::None, 32, 4_096), Is("512"), "maximum queue length in jobs", "1024"),
    key(
        "sessions",
        Whole(Unit::None, 1, 1 << 20),
        Is("4096"),
        "most sessions of the device: one for each direction of an SA, for an AEAD two",
        "65536",
    ),
];

/// A queue pair of a crypto device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DpdkDevice {
    device: String,
    arguments: String,
    queue: usize,
    sessions: usize,
}

fn read(values: &dyn Values) -> Option<Arc<dyn Device>> {
    let (device, queue, sessions) = (values.text("device"), values.count("queue"), values.count("sessions"));
    let arguments = if values.has("arguments") { values.text("arguments") } else { Some(String::new()) };
    Some(Arc::new(DpdkDevice { device: device?, arguments: arguments?, queue: queue?, sessions: sessions? }))
}

fn sample() -> Arc<dyn Device> {
    named("crypto_aesni_mb0", "")
}

/// `DEVICE`, or `DEVICE+KEY=VALUE+...` with what a virtual device is made with.
fn detailed(words: &str) -> Option<Arc<dyn Device>> {
    let (device, arguments) = words.split_once('+').unwrap_or((words, ""));
    (!device.is_empty()).then(|| named(device, &arguments.replace('+', ",")))
}

fn named(device: &str, arguments: &str) -> Arc<dyn Device> {
    let (device, arguments) = (device.to_owned(), arguments.to_owned());
    Arc::new(DpdkDevice { device, arguments, queue: 512, sessions: 4_096 })
}

impl DpdkDevice {
    #[cfg(feature = "dpdk")]
    fn config(&self, name: &str) -> forebay_crypto_dpdk::Config {
        forebay_crypto_dpdk::Config {
            name: name.to_owned(),
            device: self.device.clone(),
            arguments: self.arguments.clone(),
            queue: self.queue,
            sessions: self.sessions,
            copies: false,
        }
    }

    #[cfg(not(feature = "dpdk"))]
    fn not_built(&self) -> miette::Report {
        miette::miette!(
            help = "install libdpdk-dev and build with `--features dpdk`, or take this `[[processor]]` out",
            "`{}` needs DPDK, and this program was built without it",
            self.device
        )
    }
}

impl Device for DpdkDevice {
    fn word(&self) -> &'static str {
        WORD
    }

    #[cfg(feature = "dpdk")]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let opened = forebay_crypto_dpdk::open(&self.config(surroundings.name));
        opened.map_err(|why| miette::miette!(help = why.help(), "{}: {why}", surroundings.name))
    }

    #[cfg(not(feature = "dpdk"))]
    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        Err(self.not_built().wrap_err(surroundings.name.to_owned()))
    }

    /// An error where this program has DPDK, and a warning where it was built without it: the file may be for another.
    #[cfg(feature = "dpdk")]
    fn lacks(&self) -> Option<miette::Report> {
        let why = forebay_crypto_dpdk::look(&self.config(&self.device)).err()?;
        Some(miette::miette!(severity = miette::Severity::Error, help = why.help(), "{why}"))
    }

    #[cfg(not(feature = "dpdk"))]
    fn lacks(&self) -> Option<miette::Report> {
        Some(self.not_built())
    }

    #[cfg(feature = "dpdk")]
    fn slowed(&self) -> Option<miette::Report> {
        (forebay_crypto_dpdk::has_huge_pages() == Some(false)).then(|| {
            miette::miette!(
                severity = miette::Severity::Warning,
                help = "reserve huge pages: `echo 512 | sudo tee /proc/sys/vm/nr_hugepages`",
                "no huge pages are free: DPDK takes 256 MB of ordinary memory, whose addresses cost more look-ups (TLB), and \
                 which devices reach only through an IOMMU"
            )
        })
    }

    #[cfg(feature = "dpdk")]
    fn suites(&self) -> Option<Vec<Suite>> {
        forebay_crypto_dpdk::look(&self.config(&self.device)).ok()?
    }

    #[cfg(feature = "dpdk")]
    fn takes_privileges(&self) -> bool {
        forebay_crypto_dpdk::takes_privileges(&self.device)
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![("device", format!("\"{}\"", self.device))];
        if !self.arguments.is_empty() {
            keys.push(("arguments", format!("\"{}\"", self.arguments)));
        }
        keys
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Device) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}
