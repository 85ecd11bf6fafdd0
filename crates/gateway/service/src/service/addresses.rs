//! Addresses that gateways share: the gateway that serves an address has it on an interface, and announces it to the hosts of its network.
//!
//! The kernel gets each address for some seconds only, and the gateway renews it, so that the address of a killed or
//! suspended gateway disappears by itself. Until then, the other gateway repeats its announcements.

use std::io;

use forebay_links::announce::Announcer;
use forebay_links::interface::Interface;
use forebay_planted::{Fault, planted};
use forebay_time::{Duration, Time};
use ipnet::IpNet;

use forebay_config::SharedAddress;

use super::host::{Address, Host};
use super::start_error::{StartError, link_error};

/// Time for which the kernel keeps an address that is not renewed, in seconds, and the interval of renewals.
const LEASE_S: u32 = 10;
const LEASE_AGAIN: Duration = Duration::from_millis(2_000);
/// The first repetitions of an announcement in milliseconds; later ones have the interval of the caller.
const REPEATED: [u64; 5] = [50, 150, 400, 900, 1_500];

/// An address of an interface of this machine.
pub(super) struct OnInterface {
    interface: Interface,
    /// None on an interface without Ethernet, such as a TUN interface, where no host needs announcements.
    announcer: Option<Announcer>,
    address: IpNet,
}

impl OnInterface {
    pub(super) fn open(shared: &SharedAddress) -> io::Result<OnInterface> {
        let interface = Interface::by_name(&shared.interface)?;
        let announcer = match interface.ethernet_address() {
            Ok(_) => Some(Announcer::open(&interface)?),
            Err(_) => None,
        };
        Ok(OnInterface { interface, announcer, address: shared.address })
    }
}

impl Address for OnInterface {
    fn lease(&self, seconds: u32) -> io::Result<()> {
        self.interface.lease_address(self.address.addr(), self.address.prefix_len(), seconds)
    }

    fn announce(&self) -> io::Result<()> {
        self.announcer.as_ref().map_or(Ok(()), |announcer| announcer.announce(self.address.addr()))
    }

    fn remove(&self) -> io::Result<()> {
        self.interface.remove_address(self.address.addr(), self.address.prefix_len())
    }
}

struct Shared {
    on_host: Box<dyn Address>,
    address: IpNet,
    interface: String,
    /// Whether this host has it.
    held: bool,
    /// The time of the first announcement, and the number of announcements since.
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
    /// Finds the interfaces and opens their announcers. Addresses that a killed gateway has left are removed.
    ///
    /// # Errors
    /// If an interface does not exist, or without `CAP_NET_ADMIN` or `CAP_NET_RAW`.
    pub fn open<'a>(
        host: &dyn Host,
        addresses: impl IntoIterator<Item = &'a SharedAddress>,
    ) -> Result<SharedAddresses, StartError> {
        let open = |one: &SharedAddress| {
            let (on_host, interface) = (host.address(one)?, one.interface.clone());
            let (address, held, announced, repeated) = (one.address, false, None, Time::ZERO);
            Ok(Shared { on_host, address, interface, held, announced, repeated })
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

    /// Adds the addresses that `holds` selects by place, and removes the others. Present ones are renewed, because
    /// a restart of a data plane may have taken longer than a lease.
    ///
    /// # Errors
    /// If one cannot be added; the others are added.
    pub fn hold(&mut self, holds: impl Fn(usize) -> bool, now: Time) -> Result<(), StartError> {
        let mut failed = Ok(());
        for (place, one) in self.shared.iter_mut().enumerate() {
            let holds = holds(place) || one.held && planted(Fault::AddressesKept);
            if one.held && !holds {
                one.take_away();
                one.announced = None;
            } else if holds && let Err(error) = one.lease() {
                let what = format!("cannot add the shared address {} to {}", one.address, one.interface);
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

    /// Renews the addresses when that is due, and repeats announcements at the interval `every`; `None` means no announcements.
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

    /// Removes the addresses.
    pub fn remove(&mut self) {
        for one in &mut self.shared {
            (one.held, one.announced) = (false, None);
            one.take_away();
        }
    }
}

impl Shared {
    fn lease(&self) -> io::Result<()> {
        self.on_host.lease(LEASE_S)
    }

    fn announce_once(&mut self, now: Time) {
        self.repeated = now;
        if let Err(error) = self.on_host.announce() {
            tracing::warn!(address = %self.address, %error, "cannot announce the shared address; neighbours find the old one until their caches end (CAP_NET_RAW, state of the interface)");
        }
    }

    fn take_away(&self) {
        match self.on_host.remove() {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Counts leases and announcements.
    #[derive(Clone, Default)]
    struct Counted(Arc<[AtomicU32; 2]>);

    impl Address for Counted {
        fn lease(&self, _seconds: u32) -> io::Result<()> {
            self.0[0].fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn announce(&self) -> io::Result<()> {
            self.0[1].fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn remove(&self) -> io::Result<()> {
            Err(io::ErrorKind::AddrNotAvailable.into())
        }
    }

    #[test]
    fn addresses_are_leased_again_when_a_data_plane_starts_again_and_announced_once() {
        let counted = Counted::default();
        let shared = Shared {
            on_host: Box::new(counted.clone()),
            address: "192.0.2.9/24".parse().unwrap(),
            interface: "wan".to_owned(),
            held: false,
            announced: None,
            repeated: Time::ZERO,
        };
        let mut addresses = SharedAddresses { shared: vec![shared], leased: Time::ZERO };
        for seconds in [100, 114] {
            let now = Time::ZERO + Duration::from_millis(seconds * 1_000);
            addresses.add(now).unwrap();
            addresses.announce(now);
        }
        assert_eq!([0, 1].map(|place| counted.0[place].load(Ordering::Relaxed)), [2, 1]);
    }
}
