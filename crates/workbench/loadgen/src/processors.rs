//! The processors by the names they are given on the command line.

use std::sync::Arc;

use forebay_crypto::{Processor, Suite};
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig};
use forebay_engine::{Clock, ProcessorSetup};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;
use miette::miette;

use forebay_processors::{Absent, Backend, CORE, Costs, Device, Surroundings, set_up};

/// The word for a running core that moves packets and leaves all crypto to others.
const IO: &str = "io";

/// A processor that was asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name in all figures: the word, followed by a number if it is not the first of its kind.
    pub name: String,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Core(Backend),
    /// The running core without crypto.
    Io,
    Worker(Backend),
    /// Of a kind of the registry.
    Device(Arc<dyn Device>),
}

impl Spec {
    /// Reads the words of `--processor`.
    pub fn parse_all(words: &[String]) -> miette::Result<Vec<Spec>> {
        let mut specs: Vec<Spec> = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let what = parse(word)?;
            let is_core = matches!(what, What::Core(_) | What::Io);
            if place == 0 && !is_core {
                let help = format!("start with the running core: `--processor core,{}`", words.join(","));
                return Err(miette!(
                    help = help,
                    "--processor {word}: the first processor must be the running core"
                ));
            }
            if place > 0 && is_core {
                let help = "use `worker` for another core";
                return Err(miette!(
                    help = help,
                    "--processor {word}: only the first processor can be the running core"
                ));
            }
            let alike = words[..place].iter().filter(|other| *other == word).count();
            let name = if alike == 0 { word.clone() } else { format!("{word}.{}", alike + 1) };
            specs.push(Spec { name, what });
        }
        if let [Spec { what: What::Io, .. }] = specs[..] {
            return Err(miette!(
                help = "add a processor, such as `--processor io,worker`",
                "--processor io: no processor is left that does crypto"
            ));
        }
        Ok(specs)
    }

    /// Reads a word of `--rival`: a processor that is not the running core.
    pub fn parse_rival(word: &str) -> miette::Result<Spec> {
        match parse(word)? {
            What::Core(_) | What::Io => Err(miette!(
                help = "use worker, or a device",
                "--rival {word}: the running core is no rival of itself"
            )),
            what => Ok(Spec { name: word.to_owned(), what }),
        }
    }

    /// The word of its kind in the gateway's file.
    pub fn kind(&self) -> &'static str {
        match &self.what {
            What::Device(device) => device.word(),
            What::Core(_) | What::Io | What::Worker(_) => CORE,
        }
    }

    /// Whether it is a core.
    pub fn is_core(&self) -> bool {
        !matches!(self.what, What::Device(_))
    }

    /// The keys by which the gateway's file describes it, beside kind and name, with their values in TOML.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        match &self.what {
            What::Device(device) => device.keys(),
            What::Core(Backend::Auto) | What::Worker(Backend::Auto) | What::Io => vec![],
            What::Core(library) | What::Worker(library) => {
                vec![("backend", format!("\"{}\"", library.word()))]
            }
        }
    }

    /// Opens it by itself, under a name.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_alone(&self, name: &str) -> miette::Result<Box<dyn Processor>> {
        let alone = Spec { name: name.to_owned(), what: self.what.clone() };
        open(&alone, &Bus::new(BusConfig::pci_66())).map(|(processor, _)| processor)
    }

    /// Whether it does no crypto.
    pub fn is_io(&self) -> bool {
        matches!(self.what, What::Io)
    }
}

fn parse(word: &str) -> miette::Result<What> {
    let (kind, detail) = word.split_once(':').map_or((word, None), |(kind, detail)| (kind, Some(detail)));
    let library = |detail: Option<&str>| match detail {
        None => Ok(Backend::Auto),
        Some(name) => Backend::of(name).ok_or_else(|| {
            miette!(help = "use ipsec-mb or aws-lc", "--processor {word}: unknown library `{name}`")
        }),
    };
    match (kind, detail) {
        ("core", detail) => Ok(What::Core(library(detail)?)),
        ("worker", detail) => Ok(What::Worker(library(detail)?)),
        ("ipsec-mb", None) => Ok(What::Worker(Backend::IpsecMb)),
        ("aws-lc", None) => Ok(What::Worker(Backend::AwsLc)),
        (IO, None) => Ok(What::Io),
        _ => {
            forebay_processors::device(word).map(What::Device).ok_or_else(|| {
                miette!(
                    help = format!(
                        "use core, worker (both optionally with :ipsec-mb or :aws-lc), io, ipsec-mb, aws-lc or {}",
                        kinds()
                    ),
                    "--processor {word}: unknown processor"
                )
            })
        }
    }
}

/// The words of the registry's kinds.
fn kinds() -> String {
    forebay_processors::kinds().iter().map(|kind| kind.word).collect::<Vec<_>>().join(", ")
}

/// The processors of a plan with what a job costs on each, measured once.
pub struct Bank {
    specs: Vec<Spec>,
    measured: Vec<Measured>,
}

/// Initial parameters of a processor for the scheduler.
#[derive(Clone, Copy)]
struct Measured {
    kind: Kind,
    cost: Cost,
    queue: usize,
}

impl Bank {
    /// Opens each processor and measures it by itself.
    ///
    /// # Errors
    /// If one cannot be opened, or lacks the suite.
    pub fn new(specs: &[Spec], suite: Suite, clock: Clock) -> miette::Result<Bank> {
        let mut measured = Vec::new();
        for spec in specs {
            let (processor, kind) = open(spec, &Bus::new(BusConfig::pci_66()))?;
            if spec.is_io() {
                measured.push(Measured { kind, cost: Cost::default(), queue: 1 });
                continue;
            }
            let setup = set_up(processor, kind, suite, &Costs::default(), clock);
            let setup = setup.map_err(|error| miette!("--processor {}: {error}", spec.name))?;
            measured.push(Measured { kind, cost: setup.cost, queue: setup.queue });
        }
        Ok(Bank { specs: specs.to_vec(), measured })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.specs.len()
    }

    /// The name of a processor.
    pub fn name(&self, place: usize) -> &str {
        &self.specs[place].name
    }

    /// What a processor is, and the length of its queue.
    pub fn kind(&self, place: usize) -> (Kind, usize) {
        (self.measured[place].kind, self.measured[place].queue)
    }

    /// New processors at `places`, the running core first, by the cores that take bursts: the first one has all devices,
    /// and each further core is by itself.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn open(&self, places: &[usize]) -> miette::Result<Team> {
        let bus = Bus::new(BusConfig::pci_66());
        let moves_only = places.first().is_some_and(|&first| self.specs[first].is_io());
        let mut team = Team { engines: vec![vec![]], places: vec![] };
        for &place in places {
            let (processor, kind) = open(&self.specs[place], &bus)?;
            let Measured { cost, queue, .. } = self.measured[place];
            let setup = ProcessorSetup { processor, kind, cost, alpha: 1.0, beta: Duration::ZERO, queue };
            let engine = match self.specs[place].what {
                // Beside a core without crypto, others do its crypto.
                What::Worker(_) if !moves_only => {
                    team.engines.push(vec![]);
                    team.engines.len() - 1
                }
                _ => 0,
            };
            team.places.push((engine, team.engines[engine].len()));
            team.engines[engine].push(setup);
        }
        Ok(team)
    }
}

/// Processors by the cores that take bursts.
pub struct Team {
    /// Of each core, itself first.
    pub engines: Vec<Vec<ProcessorSetup>>,
    /// Where each processor is, in the order in which they were asked for: its core, and its number there.
    pub places: Vec<(usize, usize)>,
}

fn open(spec: &Spec, bus: &Bus) -> miette::Result<(Box<dyn Processor>, Kind)> {
    Ok(match &spec.what {
        What::Core(library) | What::Worker(library) => (library.open()?, Kind::Cpu),
        What::Io => (Box::new(Absent::new(IO)), Kind::Cpu),
        What::Device(device) => {
            let library = Box::new(AwsLc::new());
            let buses = std::slice::from_ref(bus);
            let device = device.open(Surroundings { name: &spec.name, library, buses })?;
            (device, Kind::Accelerator)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.split(',').map(str::to_owned).collect();
        match Spec::parse_all(&words) {
            Ok(specs) => Ok(specs.into_iter().map(|spec| spec.name).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn names_are_the_words_and_a_number_where_they_repeat() {
        let names = read("core:aws-lc,worker,aws-lc,worker,card,card").unwrap();
        assert_eq!(names, ["core:aws-lc", "worker", "aws-lc", "worker.2", "card", "card.2"]);
        let device = "dpdk:crypto_scheduler0+worker=crypto_aesni_mb1+mode=round-robin";
        assert_eq!(read(&format!("io,{device}")).unwrap(), ["io", device]);
    }

    #[test]
    fn the_running_core_is_no_rival() {
        assert!(Spec::parse_rival("core").is_err() && Spec::parse_rival("io").is_err());
        assert_eq!(Spec::parse_rival("worker:aws-lc").unwrap().name, "worker:aws-lc");
    }

    #[test]
    fn wrong_words_are_refused_with_the_reason() {
        for (words, reason) in [
            ("worker,core", "the first processor must be the running core"),
            ("core,core:aws-lc", "only the first processor can be the running core"),
            ("core:openssl", "unknown library `openssl`"),
            ("io", "no processor is left that does crypto"),
            ("core,io", "only the first processor can be the running core"),
            ("core,dpdk:", "unknown processor"),
            ("core,card:2", "unknown processor"),
            ("core,", "unknown processor"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(reason), "{words}: {error}");
        }
    }
}
