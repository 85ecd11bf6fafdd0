//! A gateway whose file calls its peer by a host name: it follows another address of the name, with the numbers of its SAs.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_config::Config;
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::service::{Caretaker, Host, InProcess, Service, StartError};
use forebay_gateway::serving::{Event, Process, Resolver, Serving};
use forebay_sas::{HostName, SasErrors};
use forebay_scheduler::{Cost, Kind};

/// A name server that says what the test has it say.
#[derive(Default)]
struct NameServer(Mutex<HashMap<&'static str, Vec<IpAddr>>>);

impl NameServer {
    fn says(&self, name: &'static str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.0.lock().unwrap().insert(name, addresses);
    }
}

impl Resolver for NameServer {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        self.0.lock().unwrap().get(name.as_str()).cloned().ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

struct Program {
    host: InProcess,
    directory: PathBuf,
    clock: Clock,
    text: String,
    names: Arc<NameServer>,
}

impl Process for Program {
    fn read(&mut self) -> Result<Config, SasErrors> {
        forebay_config::parse(&self.text, "gateway.toml", &self.directory)
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn unix_time(&self) -> fn() -> Duration {
        || Duration::from_secs(1_800_000_000)
    }

    fn seed(&mut self) -> u64 {
        1
    }

    fn host(&self) -> &dyn Host {
        &self.host
    }

    fn open_processors(&mut self, _config: &Config) -> miette::Result<Vec<Vec<ProcessorSetup>>> {
        Ok(vec![processors()])
    }

    fn resolver(&self) -> Arc<dyn Resolver> {
        self.names.clone()
    }
}

fn processors() -> Vec<ProcessorSetup> {
    vec![ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default())]
}

/// A file with an SA for a network behind a peer with a name, and one for all that is around it to a peer with an address.
fn file() -> String {
    let sa = |name: &str, spi: u32, remote: &str, network: &str| {
        format!(
            "[[sa]]\nname = \"{name}\"\ndirection = \"out\"\nspi = {spi}\nproposal = \"aes128gcm16\"\nkey = \"{}\"\n\
             local = \"192.0.2.1\"\nremote = \"{remote}\"\nremote_ts = [\"{network}\"]\n",
            format!("{:02x}", spi % 256).repeat(20)
        )
    };
    "[guard]\nmode = \"off\"\n[keys]\nstate = \"state\"\n[inside]\n[[outside]]\nkind = \"raw\"\naddresses = [\"192.0.2.1\"]\n\
     protocols = [\"esp\"]\n"
        .to_owned()
        + &sa("named", 4097, "peer.example", "10.2.0.0/16")
        + &sa("wide", 4098, "192.0.2.99", "10.0.0.0/8")
}

/// An IPv4 packet of 40 bytes from 10.1.0.1.
fn packet(to: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 1, 0, 1];
    packet.extend(to);
    packet.extend([7; 20]);
    packet
}

/// A gateway, and both sides of it.
struct Site {
    program: Program,
    serving: Serving,
    inside: UnixDatagram,
    network: UnixDatagram,
    _directory: tempfile::TempDir,
}

impl Site {
    fn start(names: Arc<NameServer>, now: &'static AtomicU64) -> Site {
        let directory = tempfile::tempdir().unwrap();
        let ((inside, program), (outside, network)) =
            (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        let host = InProcess::new(inside).with_outside(outside);
        let (path, clock) = (directory.path().to_owned(), Clock::told(now));
        let mut process = Program { host, directory: path, clock, text: file(), names };
        let config = process.read().unwrap();
        let caretaker = Caretaker::open(&config, process.host(), None).unwrap();
        let serving = Serving::start(&mut process, config, caretaker).unwrap();
        network.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Site { program: process, serving, inside: program, network, _directory: directory }
    }

    /// Sends a packet to a host; where it goes protected, by which SPI, and its sequence number.
    fn sent(&self, to: [u8; 4]) -> (String, u32, u32) {
        self.inside.send(&packet(to)).unwrap();
        let mut sealed = [0; 200];
        self.network.recv(&mut sealed).unwrap();
        let word = |at: usize| u32::from_be_bytes(sealed[at..at + 4].try_into().unwrap());
        (IpAddr::from(<[u8; 4]>::try_from(&sealed[16..20]).unwrap()).to_string(), word(20), word(24))
    }

    /// Steps until something happened.
    fn event(&mut self) -> Event {
        for _ in 0..60_000 {
            if let Some(event) = self.serving.step(&mut self.program).unwrap().event {
                return event;
            }
            std::thread::yield_now();
            let _ = self.network.set_read_timeout(Some(Duration::from_millis(1)));
            // The wait of a loop that has nothing else to do.
            let _ = self.network.recv(&mut [0; 1]);
        }
        panic!("nothing happened");
    }

    fn left_out(&self) -> Vec<String> {
        let names = &self.serving.config().unwrap().names;
        names.iter().flat_map(|one| one.left_out.clone()).collect()
    }
}

#[test]
fn another_address_of_a_name_is_followed_with_the_numbers_of_the_sa() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let minute = || NOW.fetch_add(60_000_000_000_000, Ordering::Relaxed);
    let names = Arc::new(NameServer::default());
    names.says("peer.example", &["2001:db8::1", "192.0.2.2"]);
    let mut site = Site::start(names.clone(), &NOW);
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.2".to_owned(), 4097, 1));
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.2".to_owned(), 4097, 2));
    // Another order, and an answer more.
    names.says("peer.example", &["192.0.2.3", "192.0.2.2"]);
    site.serving.reload(&mut site.program).unwrap();
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.2".to_owned(), 4097, 3));
    // No reload: a minute later it is resolved again.
    names.says("peer.example", &["192.0.2.3"]);
    minute();
    assert!(matches!(site.event(), Event::Resolved));
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.3".to_owned(), 4097, 4));
    // The last address holds while there is no answer.
    names.0.lock().unwrap().clear();
    site.serving.reload(&mut site.program).unwrap();
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.3".to_owned(), 4097, 5));
    assert_eq!(site.sent([10, 9, 0, 1]), ("192.0.2.99".to_owned(), 4098, 1));
    assert!(site.left_out().is_empty());
    // A version with errors changes nothing.
    names.says("peer.example", &["192.0.2.4"]);
    let text = std::mem::replace(&mut site.program.text, "nonsense".to_owned());
    site.serving.reload(&mut site.program).unwrap_err();
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.3".to_owned(), 4097, 6));
    site.program.text = text.replace("peer.example", "192.0.2.5");
    site.serving.reload(&mut site.program).unwrap();
    assert_eq!(site.sent([10, 2, 0, 1]).0, "192.0.2.5");
}

/// What fails behind the SAs is no reason to try the address again for ever.
#[test]
fn an_address_is_followed_where_keys_cannot_be_exported() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let names = Arc::new(NameServer::default());
    names.says("peer.example", &["192.0.2.2"]);
    let mut site = Site::start(names.clone(), &NOW);
    site.program.text = format!("esp_sa_export = \"nowhere/keys\"\n{}", site.program.text);
    let failed = site.serving.reload(&mut site.program).unwrap_err();
    assert!(matches!(failed.downcast_ref(), Some(StartError::InPart { .. })), "{failed:?}");
    names.says("peer.example", &["192.0.2.3"]);
    NOW.fetch_add(60_000_000_000_000, Ordering::Relaxed);
    assert!(matches!(site.event(), Event::Resolved));
    assert_eq!(site.sent([10, 2, 0, 1]).0, "192.0.2.3");
    NOW.fetch_add(5_000_000_000_000, Ordering::Relaxed);
    assert!(site.serving.step(&mut site.program).unwrap().event.is_none());
}

#[test]
fn sas_of_a_name_that_never_had_an_answer_drop_their_packets_until_it_has() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let names = Arc::new(NameServer::default());
    let mut site = Site::start(names.clone(), &NOW);
    assert_eq!(site.left_out(), ["named"]);
    // The SA around it does not take the packet.
    site.inside.send(&packet([10, 2, 0, 1])).unwrap();
    assert_eq!(site.sent([10, 9, 0, 1]), ("192.0.2.99".to_owned(), 4098, 1));
    names.says("peer.example", &["192.0.2.2"]);
    NOW.fetch_add(5_000_000_000_000, Ordering::Relaxed);
    assert!(matches!(site.event(), Event::Resolved));
    assert!(site.left_out().is_empty());
    assert_eq!(site.sent([10, 2, 0, 1]), ("192.0.2.2".to_owned(), 4097, 1));
    // It is added behind it again, and goes on with its numbers.
    let (to, spi, number) = site.sent([10, 9, 0, 1]);
    assert_eq!((to.as_str(), spi), ("192.0.2.99", 4098));
    assert!(number > 1);
}

#[test]
fn a_gateway_that_resolves_no_names_refuses_them() {
    let directory = tempfile::tempdir().unwrap();
    let config = forebay_config::parse(&file(), "gateway.toml", directory.path()).unwrap();
    let host = InProcess::new(UnixDatagram::pair().unwrap().0).with_outside(UnixDatagram::pair().unwrap().0);
    let unix_time = || Duration::from_secs(1_800_000_000);
    let started = Service::start_on(&host, config, vec![processors()], Clock::start(), 1, unix_time);
    let Err(StartError::Lacking(error)) = started else { panic!("it has started") };
    assert!(error.contains("SA named: the host name `peer.example`"), "{error}");
}
