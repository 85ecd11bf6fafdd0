//! Who on the Ethernet gets a packet to its destination: asked of the kernel, kept for a while.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use forebay_links::interface::{NextHop, RouteLookup};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// An address on an Ethernet.
pub(crate) type Mac = [u8; 6];

/// How long an answer counts: routes and neighbours change.
const KEEP: Duration = Duration::from_secs(5);
/// How long an answer counts at most of which frames come with another address: a card has been replaced, or the way back
/// is another one.
const DOUBT: Duration = Duration::from_secs(1);
/// Interval after which a neighbour that the kernel has not resolved is asked for again.
const RETRY: Duration = Duration::from_millis(20);
/// Maximum number of neighbours that wait for address resolution.
const WANTED: usize = 64;
/// The most destinations that are kept.
const MOST: usize = 4096;

/// Next hops by destination, on one interface.
#[derive(Debug)]
pub(crate) struct Neighbours {
    interface: u32,
    routes: RouteLookup,
    resolver: Resolver,
    entries: HashMap<IpAddr, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    mac: Option<Mac>,
    asked: Instant,
    until: Instant,
}

impl Neighbours {
    pub(crate) fn new(interface: u32, resolver: Resolver) -> io::Result<Neighbours> {
        Ok(Neighbours { interface, routes: RouteLookup::open()?, resolver, entries: HashMap::new() })
    }

    /// The address that frames to `to` have; `None` if there is no way by this interface, or the kernel has
    /// yet to find out.
    pub(crate) fn towards(&mut self, to: IpAddr, now: Instant) -> Option<Mac> {
        if let Some(entry) = self.entries.get(&to).filter(|entry| now < entry.until) {
            return entry.mac;
        }
        let mac = self.ask(to);
        if self.entries.len() >= MOST {
            self.entries.clear();
        }
        let keep = if mac.is_some() { KEEP } else { RETRY };
        self.entries.insert(to, Entry { mac, asked: now, until: now + keep });
        mac
    }

    /// A frame has come from there: an answer as long as the kernel has none, and a reason to ask it again soon where it
    /// has another one. The frame itself is not believed then: anybody on the Ethernet can send it.
    pub(crate) fn seen(&mut self, from: IpAddr, mac: Mac) {
        let Some(entry) = self.entries.get_mut(&from) else { return };
        match entry.mac {
            None => entry.mac = Some(mac),
            Some(known) if known != mac => entry.until = entry.until.min(entry.asked + DOUBT),
            Some(_) => {}
        }
    }

    fn ask(&self, to: IpAddr) -> Option<Mac> {
        let hop = self.routes.next_hop(to).ok().filter(|hop| hop.index == self.interface)?;
        let known = self.routes.neighbour(&hop).ok().flatten();
        // The kernel does not see that we use it, and would not find out that it has gone.
        let _ = self.resolver.0.try_send(hop);
        known
    }
}

/// Has the kernel find neighbours on a thread of its own, which keeps `CAP_NET_ADMIN` for it: whose link it is may give
/// that up. It ends with the last link.
#[derive(Clone, Debug)]
pub(crate) struct Resolver(SyncSender<NextHop>);

impl Resolver {
    pub(crate) fn start() -> io::Result<Resolver> {
        let routes = RouteLookup::open()?;
        let (sender, wanted) = sync_channel(WANTED);
        let run = move || {
            keep_net_admin();
            for hop in wanted {
                // Asked for again as long as it is wanted.
                let _ = routes.resolve(&hop);
            }
        };
        std::thread::Builder::new().name("forebay-ways".to_owned()).spawn(run)?;
        Ok(Resolver(sender))
    }
}

/// Gives up all other capabilities in this thread.
fn keep_net_admin() {
    let Ok(has) = rustix::thread::capabilities(None) else { return };
    let kept = has.permitted & CapabilitySet::NET_ADMIN;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    let _ = rustix::thread::set_capabilities(None, sets);
}
