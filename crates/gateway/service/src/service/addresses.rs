//! Addresses that gateways share: the one that serves what comes for an address has it, and tells the hosts of its network so.
//!
//! The kernel gets each address for some seconds only, again and again, so that the address of a gateway that was killed or
//! suspended goes by itself; until it has, the announcements of the other one are repeated.

use std::io;

use forebay_links::announce::Announcer;
use forebay_links::interface::Interface;
use forebay_time::{Duration, Time};
use ipnet::IpNet;

use forebay_config::SharedAddress;

use super::start_error::{StartError, link_error};

/// How long the kernel keeps an address that is not added again, in seconds, and when that is done.
const LEASE_S: u32 = 10;
const LEASE_AGAIN: Duration = Duration::from_millis(2_000);
/// The first repetitions of an announcement; then as often as is asked for.
const REPEATED: [u64; 5] = [50, 150, 400, 900, 1_500];

struct Shared {
    interface: Interface,
    /// None on an interface without Ethernet, such as a TUN interface: there is nobody to tell.
    announcer: Option<Announcer>,
    address: IpNet,
    /// Whether it is here.
    held: bool,
    /// When it was announced first, and how often since.
    announced: Option<(Time, usize)>,
    /// When it was announced last.
    repeated: Time,
}

/// The shared addresses of this host.
pub struct SharedAddresses {
    shared: Vec<Shared>,
    leased: Time,
}

impl SharedAddresses {
    /// Finds the interfaces and opens what announces. An address that a gateway which was killed has left is removed.
    ///
    /// # Errors
    /// If an interface is not there, without `CAP_NET_ADMIN` and without `CAP_NET_RAW`.
    pub fn open<'a>(
        addresses: impl IntoIterator<Item = &'a SharedAddress>,
    ) -> Result<SharedAddresses, StartError> {
        let open = |one: &SharedAddress| {
            let interface = Interface::by_name(&one.interface)?;
            let announcer = match interface.ethernet_address() {
                Ok(_) => Some(Announcer::open(&interface)?),
                Err(_) => None,
            };
            let (address, held, announced, repeated) = (one.address, false, None, Time::ZERO);
            Ok(Shared { interface, announcer, address, held, announced, repeated })
        };
        let shared = addresses.into_iter().map(|one| {
            let what = format!("shared address {} of interface {}", one.address, one.interface);
            open(one).map_err(link_error(what))
        });
        let shared = SharedAddresses { shared: shared.collect::<Result<_, _>>()?, leased: Time::ZERO };
        shared.shared.iter().for_each(Shared::take_away);
        Ok(shared)
    }

    /// Adds all addresses, so that the gateway can use them.
    ///
    /// # Errors
    /// If one cannot be added.
    pub fn add(&mut self, now: Time) -> Result<(), StartError> {
        self.hold(|_| true, now)
    }

    /// Adds the addresses that `holds` says, by their places, and takes the others away.
    ///
    /// # Errors
    /// If one cannot be added; the others are.
    pub fn hold(&mut self, holds: impl Fn(usize) -> bool, now: Time) -> Result<(), StartError> {
        let mut failed = Ok(());
        for (place, one) in self.shared.iter_mut().enumerate() {
            let holds = holds(place);
            if one.held && !holds {
                one.take_away();
                one.announced = None;
            } else if !one.held
                && holds
                && let Err(error) = one.lease()
            {
                let what =
                    format!("cannot add the shared address {} to {}", one.address, one.interface.name());
                failed = failed.and(Err(link_error(what)(error)));
            }
            one.held = holds;
        }
        if self.leased == Time::ZERO {
            self.leased = now;
        }
        failed
    }

    /// Announces the addresses that were added, when the gateway can serve them.
    pub fn announce(&mut self, now: Time) {
        for one in self.shared.iter_mut().filter(|one| one.held && one.announced.is_none()) {
            one.announced = Some((now, 0));
            one.announce_once(now);
        }
    }

    /// Adds them again when that is due, and announces them again, `every` so often; not at all where that is `None`.
    pub fn look_after(&mut self, now: Time, every: Option<Duration>) {
        if now.since(self.leased) >= LEASE_AGAIN {
            self.leased = now;
            for one in self.shared.iter().filter(|one| one.held) {
                if let Err(error) = one.lease() {
                    tracing::error!(address = %one.address, %error, "cannot keep the shared address; look at the interface (ip address show) and at CAP_NET_ADMIN");
                }
            }
        }
        let Some(every) = every else { return };
        for one in &mut self.shared {
            let Some((first, count)) = one.announced else { continue };
            if REPEATED.get(count).is_some_and(|&ms| now.since(first) >= Duration::from_millis(ms)) {
                one.announced = Some((first, count + 1));
                one.announce_once(now);
            } else if now.since(one.repeated) >= every {
                one.announce_once(now);
            }
        }
    }

    /// Takes the addresses away.
    pub fn remove(&mut self) {
        for one in &mut self.shared {
            (one.held, one.announced) = (false, None);
            one.take_away();
        }
    }
}

impl Shared {
    fn lease(&self) -> io::Result<()> {
        self.interface.lease_address(self.address.addr(), self.address.prefix_len(), LEASE_S)
    }

    fn announce_once(&mut self, now: Time) {
        self.repeated = now;
        let Some(announcer) = &self.announcer else { return };
        if let Err(error) = announcer.announce(self.address.addr()) {
            tracing::warn!(address = %self.address, %error, "cannot announce the shared address; neighbours find the old one until their caches end (CAP_NET_RAW, state of the interface)");
        }
    }

    fn take_away(&self) {
        match self.interface.remove_address(self.address.addr(), self.address.prefix_len()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) => {
                tracing::warn!(address = %self.address, %error, "cannot remove the shared address; it ends by itself within 10 s, or remove it by hand (ip address del)");
            }
        }
    }
}

impl Drop for SharedAddresses {
    fn drop(&mut self) {
        self.shared.iter().for_each(Shared::take_away);
    }
}
