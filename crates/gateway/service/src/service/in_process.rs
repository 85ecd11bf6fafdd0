//! A gateway inside another program, which is the protected network itself.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use forebay_config::{Config, Raw, Tun, Udp};
use forebay_engine::Clock;
use forebay_ipsec::Protocol;
use forebay_links::datagram::DatagramLink;
use forebay_links::nftables::{Counted, Table};
use forebay_state::{Files, System};

use super::host::{Firewall, Host, Queues};
use super::machine::Machine;
use super::routes::Routing;
use super::start_error::{StartError, lacking, link_error};
use forebay_worker::{Poll, Wait};

/// A host for a gateway inside a program: the inside is one end of a pair of sockets (`UnixDatagram::pair`), whose
/// other end the program reads and writes, one IP packet for each datagram. There is no interface and no route, so no
/// privilege is required.
///
/// The outside is this machine's, as for [`Machine`], or the program's too ([`InProcess::with_outside`]). Of `[inside]`
/// only `mtu`, `answer` and `mss_clamp` have an effect. Such a gateway has one worker. The guard makes no rules, because
/// nothing of the machine's traffic is the gateway's: `mode = "off"` in `[guard]` spares the log a warning.
#[derive(Debug)]
pub struct InProcess {
    inside: UnixDatagram,
    outside: Option<UnixDatagram>,
}

impl InProcess {
    /// A host whose inside is `inside`.
    pub fn new(inside: UnixDatagram) -> InProcess {
        InProcess { inside, outside: None }
    }

    /// The same with an outside in the program: instead of the sockets of every `[[outside]]`, `outside` carries the
    /// protected packets with their outer IP headers.
    #[must_use]
    pub fn with_outside(self, outside: UnixDatagram) -> InProcess {
        InProcess { outside: Some(outside), ..self }
    }
}

/// The one queue of a link over `socket`.
fn queue(name: &str, socket: &UnixDatagram, workers: usize) -> Result<Queues, StartError> {
    if workers != 1 {
        return Err(lacking("a gateway in a program has one worker: set `queues = 1`"));
    }
    let link = socket.try_clone().and_then(DatagramLink::new).map_err(link_error(name))?;
    Ok(vec![Box::new(link)])
}

/// No packet filter: that of the machine may have the rules of another gateway.
struct NoFirewall;

impl Firewall for NoFirewall {
    fn replace(&mut self, _table: &Table) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn change(&mut self, _before: &Table, _table: &Table) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn delete(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn counted(&mut self, _name: &str) -> io::Result<Counted> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Host for InProcess {
    fn tun(&self, tun: &Tun, workers: usize) -> Result<Queues, StartError> {
        queue(&tun.name, &self.inside, workers)
    }

    fn udp(
        &self,
        name: &str,
        udp: &Udp,
        local: SocketAddr,
        workers: usize,
        clock: Clock,
    ) -> Result<Queues, StartError> {
        match &self.outside {
            Some(outside) => queue(name, outside, workers),
            None => Machine.udp(name, udp, local, workers, clock),
        }
    }

    fn raw(
        &self,
        name: &str,
        raw: &Raw,
        local: IpAddr,
        protocol: Protocol,
        workers: usize,
    ) -> Result<Queues, StartError> {
        match &self.outside {
            Some(outside) => queue(name, outside, workers),
            None => Machine.raw(name, raw, local, protocol, workers),
        }
    }

    fn icmp(&self) -> Queues {
        if self.outside.is_some() { Queues::new() } else { Machine.icmp() }
    }

    fn routing(&self, _config: &Config) -> io::Result<Option<Box<dyn Routing>>> {
        Ok(None)
    }

    fn firewall(&self) -> Box<dyn Firewall> {
        Box::new(NoFirewall)
    }

    fn files(&self) -> Arc<dyn Files> {
        Arc::new(System)
    }

    fn wait(&self, _worker: usize) -> Box<dyn Wait> {
        Box::new(Poll::default())
    }
}
