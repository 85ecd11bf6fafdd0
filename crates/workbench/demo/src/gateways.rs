//! The two gateways: their SA files, keys and processors.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use forebay_crypto::Suite;
use forebay_crypto_aws_lc::AwsLc;
use forebay_crypto_card::{Bus, BusConfig, Card, CardConfig};
use forebay_engine::{Clock, Engine, Limits, Order, Scheduling, Settings};
use forebay_links::output::Output;
use forebay_sas::{self as sas, esp_sa};
use forebay_scheduler::Kind;
use forebay_state::{IVS_PER_SA, IvStore};
use forebay_time::Duration;
use miette::{IntoDiagnostic, WrapErr, miette};

use super::DemoArgs;
use forebay_processors::{self as processors, Costs};
use forebay_terminal::host;

/// Outer addresses of the gateways (RFC 5737's documentation range).
pub const EAST: [u8; 4] = [192, 0, 2, 1];
/// See [`EAST`].
pub const WEST: [u8; 4] = [192, 0, 2, 2];

/// Packets in flight in a gateway.
const IN_FLIGHT: usize = 1024;
/// Submissions that wait at a card: half a millisecond's work or so, so that latency stays low.
const CARD_QUEUE: usize = 32;
/// Longest wait for the window to fill.
const WINDOW_TIMEOUT: Duration = Duration::from_micros(100);

/// The SAs: which traffic of the capture each protects.
const SAS: [(&str, u32, &str, &str); 4] = [
    ("east-to-west", 0x1001, "10.1.0.0/16", "10.2.0.0/16"),
    ("west-to-east", 0x1002, "10.2.0.0/16", "10.1.0.0/16"),
    ("ipv6", 0x1003, "::/0", "::/0"),
    ("rest", 0x1004, "0.0.0.0/0", "0.0.0.0/0"),
];

/// Where the two SA files are.
pub struct SaFiles {
    a: PathBuf,
    b: PathBuf,
    state: PathBuf,
}

/// Writes both gateways' SA files with fresh keys, and `esp_sa` for Wireshark, into `out`.
pub fn write_sa_files(out: &Path, proposal: &str) -> miette::Result<SaFiles> {
    let suite: Suite = proposal
        .parse()
        .map_err(|error: forebay_crypto::SuiteError| miette!(help = error.hint(), "{error}"))?;
    let mut random = fs::File::open("/dev/urandom").into_diagnostic()?;
    let mut key = |len: usize| -> miette::Result<String> {
        let mut bytes = vec![0; len];
        random.read_exact(&mut bytes).into_diagnostic().wrap_err("no random keys to be had")?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    };
    let (mut a, mut b) = (String::new(), String::new());
    for (name, spi, local_ts, remote_ts) in SAS {
        let mut keys = format!("key = \"{}\"\n", key(suite.cipher_key_len() + suite.salt_len())?);
        if suite.integrity_key_len() > 0 {
            keys += &format!("auth_key = \"{}\"\n", key(suite.integrity_key_len())?);
        }
        let one = |direction, local: [u8; 4], remote: [u8; 4], local_ts, remote_ts| {
            let dotted = |a: [u8; 4]| std::net::Ipv4Addr::from(a);
            format!(
                "[[sa]]\nname = \"{name}\"\ndirection = \"{direction}\"\nspi = {spi:#x}\nprotocol = \"esp\"\n\
                 mode = \"tunnel\"\nproposal = \"{suite}\"\n{keys}local = \"{}\"\nremote = \"{}\"\n\
                 replay_window = 4096\nencapsulation = \"udp\"\nlocal_ts = [\"{local_ts}\"]\n\
                 remote_ts = [\"{remote_ts}\"]\n\n",
                dotted(local),
                dotted(remote)
            )
        };
        a += &one("out", EAST, WEST, local_ts, remote_ts);
        b += &one("in", WEST, EAST, remote_ts, local_ts);
    }
    let files = SaFiles { a: out.join("sas-a.toml"), b: out.join("sas-b.toml"), state: out.join("state") };
    write_secret(&files.a, a.as_bytes())?;
    write_secret(&files.b, b.as_bytes())?;
    let exported = esp_sa::export(&sas::load(&files.a)?.entries);
    write_secret(&out.join("esp_sa"), exported.as_bytes())?;
    Ok(files)
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, content: &[u8]) -> miette::Result<()> {
    let write = || -> std::io::Result<()> {
        let mut output = Output::create_with_mode(path, 0o600)?;
        output.write_all(content)?;
        output.finish()
    };
    write().into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))
}

/// Gateway A.
pub fn sealing(args: &DemoArgs, files: &SaFiles, costs: &Costs, clock: Clock) -> miette::Result<Engine> {
    let store = IvStore::new(&files.state);
    let now_ns = host::unix_ns()?;
    let (sad, keys) =
        sas::load(&files.a)?.into_sad(host::seed(), |keys| store.ranges(keys, now_ns, IVS_PER_SA))?;
    engine(args, sad, &keys, costs, clock)
}

/// Gateway B.
pub fn opening(args: &DemoArgs, files: &SaFiles, costs: &Costs, clock: Clock) -> miette::Result<Engine> {
    let (sad, keys) = sas::load(&files.b)?.into_inbound_sad(host::seed())?;
    engine(args, sad, &keys, costs, clock)
}

/// The running core, and two of the paper's cards on one PCI bus.
fn engine(
    args: &DemoArgs,
    sad: forebay_ipsec::Ipsec,
    keys: &[forebay_crypto::SaKeys],
    costs: &Costs,
    clock: Clock,
) -> miette::Result<Engine> {
    let suite = keys.first().map(forebay_crypto::SaKeys::suite).ok_or_else(|| miette!("no SA"))?;
    let mut setups = vec![processors::set_up(args.backend.open()?, Kind::Cpu, suite, costs, clock)?];
    setups[0].alpha = args.alpha;
    let bus = Bus::new(BusConfig::pci_66());
    for number in 0..2 {
        let config =
            CardConfig { name: format!("card.{number}"), queue: CARD_QUEUE, ..CardConfig::paper_230_mbit() };
        let card = Card::new(config, &bus, Box::new(AwsLc::new()));
        let mut setup = processors::set_up(Box::new(card), Kind::Accelerator, suite, costs, clock)?;
        setup.queue = CARD_QUEUE;
        setups.push(setup);
    }
    let scheduling =
        Scheduling { window: args.window, timeout: Some(WINDOW_TIMEOUT), ..Scheduling::default() };
    let limits = Limits { in_flight: IN_FLIGHT, packet_capacity: LARGEST, ..Limits::default() };
    Engine::new(
        sad,
        keys,
        setups,
        Settings { scheduling, limits, order: Order::PerSa, seed: host::seed(), ..Settings::default() },
        clock,
    )
    .into_diagnostic()
}

/// The largest IP packet.
pub const LARGEST: usize = 65_535 + 40;
