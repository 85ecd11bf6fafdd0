//! A gateway inside a program: what goes in comes out protected, and what it cannot be is refused.

use std::net::Ipv4Addr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use forebay_config::{Config, GuardMode};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, ProcessorSetup};
use forebay_gateway::service::{InProcess, Service, StartError, open_processors};
use forebay_scheduler::{Cost, Kind};

fn config(directory: &Path, more: &str) -> Config {
    let key = "5a".repeat(20);
    let text = format!(
        "[guard]\nmode = \"off\"\n[keys]\nstate = \"state\"\n[inside]\n{more}\n[[outside]]\nkind = \"raw\"\n\
         addresses = [\"192.0.2.1\"]\nprotocols = [\"esp\"]\n[[sa]]\nname = \"out\"\ndirection = \"out\"\nspi = 4097\n\
         proposal = \"aes128gcm16\"\nkey = \"{key}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\
         remote_ts = [\"10.2.0.0/16\"]\n"
    );
    forebay_config::parse(&text, "gateway.toml", directory).expect("a configuration")
}

fn start(host: &InProcess, config: Config, workers: usize) -> Result<Service, StartError> {
    let core = || vec![ProcessorSetup::new(Box::new(AwsLc::new()), Kind::Cpu, Cost::default())];
    let processors = (0..workers).map(|_| core()).collect();
    let unix_time = || Duration::from_secs(1_800_000_000);
    Service::start_on(host, config, processors, Clock::start(), 1, unix_time)
}

/// An IPv4 packet of 40 bytes from 10.1.0.1.
fn packet(to: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 1, 0, 1];
    packet.extend(to.octets());
    packet.extend([7; 20]);
    packet
}

#[test]
fn packets_of_the_program_leave_protected_and_others_do_not_leave() {
    let directory = tempfile::tempdir().unwrap();
    let ((inside, program), (outside, network)) =
        (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
    let host = InProcess::new(inside).with_outside(outside);
    let service = start(&host, config(directory.path(), ""), 1).unwrap();
    program.send(&packet(Ipv4Addr::new(10, 3, 0, 1))).unwrap();
    program.send(&packet(Ipv4Addr::new(10, 2, 0, 1))).unwrap();
    network.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut sealed = [0; 200];
    let length = network.recv(&mut sealed).unwrap();
    assert_eq!((sealed[9], &sealed[16..20]), (50, &[192, 0, 2, 2][..]));
    assert_eq!(sealed[20..28], [0, 0, 0x10, 0x01, 0, 0, 0, 1], "the first packet of SPI 4097");
    assert!(length > 60);
    service.stop().unwrap();
    network.set_nonblocking(true).unwrap();
    assert!(network.recv(&mut sealed).is_err(), "the packet without a policy was dropped");
}

#[test]
fn the_guard_makes_no_rules_and_a_file_that_insists_on_them_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, _program) = UnixDatagram::pair().unwrap();
    let host = InProcess::new(inside).with_outside(UnixDatagram::pair().unwrap().0);
    let with = |mode| {
        let mut config = config(directory.path(), "");
        config.guard.mode = mode;
        start(&host, config, 1)
    };
    with(GuardMode::Auto).unwrap().stop().unwrap();
    assert!(matches!(with(GuardMode::Nftables), Err(StartError::Link { .. })));
}

#[test]
fn several_queues_are_refused_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, _program) = UnixDatagram::pair().unwrap();
    let Err(error) = start(&InProcess::new(inside), config(directory.path(), "queues = 2"), 2) else {
        panic!("two workers");
    };
    assert!(error.to_string().contains("queues = 1"), "{error}");
}

/// The file is one of another machine, or the device is gone: traffic goes on by the core.
#[test]
fn a_device_that_cannot_be_opened_is_out_and_traffic_continues_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let ((inside, program), (outside, network)) =
        (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
    let host = InProcess::new(inside).with_outside(outside);
    let devices = "[[processor]]\nkind = \"core\"\n[[processor]]\nkind = \"dpdk\"\nname = \"gone\"\n\
                   device = \"crypto_of_nobody0\"\n[scheduler]\npolicy = \"round-robin\"\n";
    let config = config(directory.path(), &format!("name = \"forebay0\"\n{devices}"));
    let processors = open_processors(&config, Clock::start()).unwrap();
    let names: Vec<_> = processors[0].iter().map(|one| one.processor.name().to_owned()).collect();
    assert_eq!((processors.len(), &names[1..]), (1, &["gone".to_owned()][..]));
    assert!(processors[0][1].processor.capabilities().suites.is_empty());
    let unix_time = || Duration::from_secs(1_800_000_000);
    let service = Service::start_on(&host, config, processors, Clock::start(), 1, unix_time).unwrap();
    network.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for number in 1..=20 {
        program.send(&packet(Ipv4Addr::new(10, 2, 0, 1))).unwrap();
        let mut sealed = [0; 200];
        network.recv(&mut sealed).unwrap();
        assert_eq!(sealed[20..28], [0, 0, 0x10, 0x01, 0, 0, 0, number]);
    }
    service.stop().unwrap();
}
