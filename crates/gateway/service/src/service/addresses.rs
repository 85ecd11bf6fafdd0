//! The addresses that two gateways share: the active one has them, and tells the hosts of their networks so.
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
    announcer: Announcer,
    address: IpNet,
}

/// The shared addresses of this host.
pub struct SharedAddresses {
    shared: Vec<Shared>,
    /// When they were announced first, and how often since.
    announced: Option<(Time, usize)>,
    /// When they were announced last.
    repeated: Time,
    leased: Time,
}

impl SharedAddresses {
    /// Finds the interfaces and opens what announces. An address that a gateway which was killed has left is removed.
    ///
    /// # Errors
    /// If an interface is not there, without `CAP_NET_ADMIN` and without `CAP_NET_RAW`.
    pub fn open(addresses: &[SharedAddress]) -> Result<SharedAddresses, StartError> {
        let open = |one: &SharedAddress| {
            let interface = Interface::by_name(&one.interface)?;
            let announcer = Announcer::open(&interface)?;
            Ok(Shared { interface, announcer, address: one.address })
        };
        let shared = addresses.iter().map(|one| {
            let what = format!("shared address {} of interface {}", one.address, one.interface);
            open(one).map_err(link_error(what))
        });
        let shared = shared.collect::<Result<_, _>>()?;
        let addresses = SharedAddresses { shared, announced: None, repeated: Time::ZERO, leased: Time::ZERO };
        addresses.take_away();
        Ok(addresses)
    }

    /// Adds the addresses, so that the gateway can use them.
    ///
    /// # Errors
    /// If one cannot be added.
    pub fn add(&mut self, now: Time) -> Result<(), StartError> {
        self.leased = now;
        self.lease().map_err(|(one, error)| {
            let what = format!("cannot add the shared address {} to {}", one.address, one.interface.name());
            link_error(what)(error)
        })
    }

    /// Announces the addresses, when the gateway can serve them.
    pub fn announce(&mut self, now: Time) {
        self.announced = Some((now, 0));
        self.announce_once(now);
    }

    /// Adds them again when that is due, and announces them again, `every` so often; not at all where that is `None`.
    pub fn look_after(&mut self, now: Time, every: Option<Duration>) {
        let Some((first, count)) = self.announced else { return };
        if now.since(self.leased) >= LEASE_AGAIN {
            self.leased = now;
            if let Err((one, error)) = self.lease() {
                tracing::error!(address = %one.address, %error, "cannot keep the shared address");
            }
        }
        let Some(every) = every else { return };
        if REPEATED.get(count).is_some_and(|&ms| now.since(first) >= Duration::from_millis(ms)) {
            self.announced = Some((first, count + 1));
            self.announce_once(now);
        } else if now.since(self.repeated) >= every {
            self.announce_once(now);
        }
    }

    /// Takes the addresses away.
    pub fn remove(&mut self) {
        self.announced = None;
        self.take_away();
    }

    fn lease(&self) -> Result<(), (&Shared, io::Error)> {
        self.shared.iter().try_for_each(|one| {
            let leased = one.interface.lease_address(one.address.addr(), one.address.prefix_len(), LEASE_S);
            leased.map_err(|error| (one, error))
        })
    }

    fn announce_once(&mut self, now: Time) {
        self.repeated = now;
        for one in &self.shared {
            if let Err(error) = one.announcer.announce(one.address.addr()) {
                tracing::warn!(address = %one.address, %error, "cannot announce the shared address");
            }
        }
    }

    fn take_away(&self) {
        for one in &self.shared {
            match one.interface.remove_address(one.address.addr(), one.address.prefix_len()) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(error) => {
                    tracing::warn!(address = %one.address, %error, "cannot remove the shared address");
                }
            }
        }
    }
}

impl Drop for SharedAddresses {
    fn drop(&mut self) {
        self.take_away();
    }
}
