//! Two gateways in this program, joined by a pair of sockets: an IP packet goes into one and comes out of the other.
//! It requires neither privileges nor a network.
#![allow(clippy::disallowed_methods)] // the program gives the gateways the time of day

use std::hash::{BuildHasher, RandomState};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forebay::gateway::{Clock, InProcess, Service, open_processors, parse};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The file of the gateway of 10.`me`.0.0/24, whose peer is that of 10.`peer`.0.0/24.
fn file(me: u8, peer: u8) -> String {
    let sa = |direction: &str, receiver: u8| {
        format!(
            "[[sa]]\nname = \"{direction}\"\ndirection = \"{direction}\"\nspi = {}\nproposal = \"aes128gcm16\"\n\
             key = \"{}\"\nlocal = \"192.0.2.{me}\"\nremote = \"192.0.2.{peer}\"\n\
             local_ts = [\"10.{me}.0.0/24\"]\nremote_ts = [\"10.{peer}.0.0/24\"]\n",
            0x1000 + u32::from(receiver),
            format!("{receiver:02x}").repeat(20),
        )
    };
    format!(
        "[guard]\nmode = \"off\"\n[keys]\nstate = \"state-{me}\"\n\
         [[outside]]\nkind = \"raw\"\naddresses = [\"192.0.2.{me}\"]\nprotocols = [\"esp\"]\n{}{}",
        sa("out", peer),
        sa("in", me),
    )
}

/// Starts that gateway; its state is kept in `directory`.
fn start(me: u8, peer: u8, directory: &Path, host: InProcess) -> Result<Service> {
    let config = parse(&file(me, peer), "gateway.toml", directory)?;
    let clock = Clock::start();
    let processors = open_processors(&config, clock)?;
    let unix_time = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Service::start_on(&host, config, processors, clock, RandomState::new().hash_one(0), unix_time)?)
}

fn main() -> Result<()> {
    let state = tempfile::tempdir()?;
    let (east_outside, west_outside) = UnixDatagram::pair()?;
    let ((east_inside, east), (west_inside, west)) = (UnixDatagram::pair()?, UnixDatagram::pair()?);
    let (east_host, west_host) = (InProcess::new(east_inside), InProcess::new(west_inside));
    let east_gateway = start(1, 2, state.path(), east_host.with_outside(east_outside))?;
    let west_gateway = start(2, 1, state.path(), west_host.with_outside(west_outside))?;

    let header = [0x45, 0, 0, 25, 0, 0, 0x40, 0, 64, 253, 0x24, 0xd3, 10, 1, 0, 1, 10, 2, 0, 1];
    east.send(&[&header[..], b"hello"].concat())?;
    west.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut packet = [0; 2000];
    let length = west.recv(&mut packet)?;
    println!("{length} bytes from 10.{}.0.1: {}", packet[13], String::from_utf8_lossy(&packet[20..length]));
    east_gateway.stop()?;
    Ok(west_gateway.stop()?)
}
