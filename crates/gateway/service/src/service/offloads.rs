//! The offloads of the host's interfaces with which UDP packets pass in batches: switched on, maintained and switched off again as the
//! file says.
//!
//! A single packet costs a system call at the TUN interface and a pass through the kernel's stack; a batch of forty packets of one flow
//! costs as much. The kernel joins TCP segments by default (GRO). It joins forwarded UDP only if the interface at
//! which it arrives has `rx-udp-gro-forwarding`, and splits a batch in front of an interface without
//! `tx-udp-segmentation`.

mod interfaces;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_config::Config;

pub use interfaces::Interfaces;
pub(super) use interfaces::Kernel;
use interfaces::State;
pub(super) use wanted::Ends;
use wanted::Wanted;
pub use wanted::lacks_offloads;

use crate::control::{OffloadDoc, OffloadsDoc};

/// Looks between two times that the interfaces are looked up: routes change.
const FIND_EVERY: u32 = 4;

/// The offloads that a gateway looks after.
#[derive(Default)]
pub(super) struct Offloads(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// `None` on a host whose interfaces have none.
    interfaces: Option<Box<dyn Interfaces>>,
    wanted: Wanted,
    offloads: BTreeMap<(String, &'static str), Offload>,
    looks: u32,
    restored: u64,
    has_ended: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Offload {
    state: State,
    /// It was off before the gateway switched it on.
    is_ours: bool,
}

impl Offloads {
    /// Those of a host; nothing is switched before [`Offloads::look_after`].
    pub fn new(interfaces: Option<Box<dyn Interfaces>>) -> Offloads {
        Offloads(Mutex::new(Kept { interfaces, ..Kept::default() }))
    }

    /// Goes by another version of the file.
    pub fn configure(&self, config: &Config) {
        let kept = &mut *self.lock();
        (kept.wanted, kept.looks) = (Wanted::of(config), 0);
    }

    /// Whether there is anything to look after.
    pub fn has_work(&self) -> bool {
        let kept = self.lock();
        kept.interfaces.is_some() && kept.wanted.is_any()
    }

    /// Switches on what is to be on, where that is found or another program has switched it off, and back what is not to be on
    /// any more. `ends` are asked for every few looks, and `at_once` where something is new.
    pub fn look_after(&self, at_once: bool, ends: impl FnOnce() -> Ends) {
        let kept = &mut *self.lock();
        if at_once {
            kept.looks = 0;
        }
        kept.look_after(ends);
    }

    /// Switches back what the gateway has switched on.
    pub fn end(&self) {
        let kept = &mut *self.lock();
        kept.has_ended = true;
        kept.give_back(&BTreeSet::new());
    }

    /// The status of the offloads.
    pub fn document(&self) -> OffloadsDoc {
        let kept = self.lock();
        let one = |((interface, name), offload): (&(String, &'static str), &Offload)| OffloadDoc {
            interface: interface.clone(),
            offload: (*name).to_owned(),
            state: offload.state.word().to_owned(),
            switched: offload.is_ours,
        };
        OffloadsDoc { restored: kept.restored, offloads: kept.offloads.iter().map(one).collect() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn look_after(&mut self, ends: impl FnOnce() -> Ends) {
        if self.has_ended {
            return;
        }
        if self.looks.is_multiple_of(FIND_EVERY) {
            self.find(ends);
        }
        self.looks = self.looks.wrapping_add(1);
        let Some(interfaces) = &mut self.interfaces else { return };
        for ((interface, name), offload) in &mut self.offloads {
            match State::read(&mut **interfaces, interface, name) {
                Ok(State::Off) if offload.state == State::Refused => {}
                Ok(State::Off) => {
                    let was_on = offload.state == State::On;
                    self.restored +=
                        u64::from(offload.switch_on(&mut **interfaces, interface, name) && was_on);
                }
                Ok(state) => offload.note(state, interface, name),
                Err(_) => {
                    // Another interface of that name begins anew.
                    offload.is_ours = false;
                    offload.note(State::Absent, interface, name);
                }
            }
        }
    }

    /// Looks up what is to be on.
    fn find(&mut self, ends: impl FnOnce() -> Ends) {
        let Some(interfaces) = &mut self.interfaces else { return };
        let interfaces = &mut **interfaces;
        let wanted = self.wanted.now(interfaces);
        let wanted = if wanted.is_any() { wanted.find(&ends(), interfaces) } else { BTreeSet::new() };
        self.give_back(&wanted);
        for one in wanted {
            // Without a state it has not been read yet.
            self.offloads.entry(one).or_insert(Offload { state: State::Off, is_ours: false });
        }
    }

    /// Switches back what is not among these any more.
    fn give_back(&mut self, wanted: &BTreeSet<(String, &'static str)>) {
        let Some(interfaces) = &mut self.interfaces else { return };
        self.offloads.retain(|one, offload| {
            if wanted.contains(one) {
                return true;
            }
            let (interface, name) = one;
            if offload.is_ours {
                match interfaces.switch(interface, name, false) {
                    Ok(_) => tracing::info!(%interface, offload = name, "offload switched off again"),
                    Err(error) => tracing::warn!(%interface, offload = name, %error, "cannot switch the offload off again: do it by hand (ethtool -K INTERFACE OFFLOAD off)"),
                }
            }
            false
        });
    }
}

impl Offload {
    /// Whether it is on then.
    fn switch_on(&mut self, interfaces: &mut dyn Interfaces, interface: &str, name: &'static str) -> bool {
        let was_on = self.state == State::On;
        let why = match interfaces.switch(interface, name, true) {
            Ok(true) if was_on => {
                tracing::warn!(
                    interface,
                    offload = name,
                    "an offload was switched off by another program; it is on again. Have that program leave it alone, or set mode = \"keep\" in [offloads]"
                );
                return true;
            }
            Ok(true) => {
                tracing::info!(interface, offload = name, "offload switched on");
                (self.state, self.is_ours) = (State::On, true);
                return true;
            }
            Ok(false) => "the driver does not switch it on".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(interface, offload = name, %why, "cannot switch an offload on: UDP packets pass one by one there. Set mode = \"keep\" in [offloads] if that is intended");
        self.state = State::Refused;
        false
    }

    /// Notes how it is without anything to do; once in the log.
    fn note(&mut self, state: State, interface: &str, name: &'static str) {
        if std::mem::replace(&mut self.state, state) == state {
            return;
        }
        match state {
            State::On | State::Off | State::Refused => {}
            State::Absent => tracing::warn!(
                interface,
                offload = name,
                "interface not found; its offloads cannot be switched on: see `inside` of [offloads]"
            ),
            _ => tracing::info!(
                interface,
                offload = name,
                state = state.word(),
                "an offload is left: UDP packets do not pass in batches there"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;
    use std::path::Path;
    use std::sync::Arc;

    use forebay_links::features::{
        Feature, RX_GRO, RX_UDP_GRO_FORWARDING, TX_GENERIC_SEGMENTATION, TX_UDP_SEGMENTATION,
    };

    use super::*;

    type Features = BTreeMap<(String, String), Feature>;

    /// A host in memory: 10.0.0.0/8 is behind `lan`, all else behind `wan`; what is not there is lacking.
    #[derive(Clone, Default)]
    struct Fake(Arc<Mutex<Features>>);

    impl Fake {
        fn new() -> Fake {
            let fake = Fake::default();
            for interface in ["lan", "wan"] {
                for name in [RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION] {
                    fake.set(interface, name, false, true);
                }
                fake.set(interface, RX_GRO, true, true);
                fake.set(interface, TX_GENERIC_SEGMENTATION, true, true);
            }
            fake.set("fb0", TX_UDP_SEGMENTATION, true, true);
            fake
        }

        fn set(&self, interface: &str, name: &str, is_on: bool, is_changeable: bool) {
            let feature = Feature { is_on, is_changeable };
            self.0.lock().unwrap().insert((interface.to_owned(), name.to_owned()), feature);
        }

        /// What is on of what can be switched on.
        fn on(&self) -> Vec<String> {
            let all = self.0.lock().unwrap();
            let on = all.iter().filter(|((interface, name), one)| {
                one.is_on && interface != "fb0" && ![RX_GRO, TX_GENERIC_SEGMENTATION].contains(&&**name)
            });
            on.map(|((interface, name), _)| format!("{interface} {name}")).collect()
        }
    }

    impl Interfaces for Fake {
        fn towards(&mut self, address: IpAddr, _mark: u32) -> io::Result<Option<String>> {
            Ok(match address {
                IpAddr::V4(v4) if v4.octets() == [10, 1, 0, 0] => None,
                IpAddr::V4(v4) if v4.octets()[0] == 10 => Some("lan".to_owned()),
                _ => Some("wan".to_owned()),
            })
        }

        fn addresses(&mut self) -> io::Result<Vec<(String, IpAddr)>> {
            Ok(vec![])
        }

        fn read(&mut self, interface: &str, names: [&str; 2]) -> io::Result<[Option<Feature>; 2]> {
            let all = self.0.lock().unwrap();
            if !all.keys().any(|(known, _)| known == interface) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(names.map(|name| all.get(&(interface.to_owned(), name.to_owned())).copied()))
        }

        fn switch(&mut self, interface: &str, name: &str, is_on: bool) -> io::Result<bool> {
            self.set(interface, name, is_on, true);
            Ok(true)
        }
    }

    fn config(section: &str) -> Config {
        let sa = |direction: &str, spi: u32, key: &str| {
            format!(
                "[[sa]]\nname = \"{direction}\"\ndirection = \"{direction}\"\nspi = {spi}\nproposal = \"aes128gcm16\"\n\
                 encapsulation = \"udp\"\nkey = \"{}\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\
                 local_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]\n",
                key.repeat(20)
            )
        };
        let text = format!(
            "[inside]\nname = \"fb0\"\n[[outside]]\nkind = \"udp\"\n{section}\n{}{}",
            sa("out", 0x1001, "5a"),
            sa("in", 0x2001, "5b")
        );
        forebay_config::parse(&text, "g.toml", Path::new("")).unwrap()
    }

    fn offloads(fake: &Fake, config: &Config) -> Offloads {
        let offloads = Offloads::new(Some(Box::new(fake.clone())));
        offloads.configure(config);
        offloads
    }

    fn look(offloads: &Offloads, config: &Config) {
        offloads.look_after(false, || Ends::of(&config.guard_entries()));
    }

    #[test]
    fn offloads_that_were_off_are_on_until_the_end() {
        let (fake, config) = (Fake::new(), config(""));
        fake.set("lan", TX_UDP_SEGMENTATION, true, true);
        let offloads = offloads(&fake, &config);
        assert!(offloads.has_work() && fake.on().len() == 1);
        look(&offloads, &config);
        let all = ["lan rx-udp-gro-forwarding", "lan tx-udp-segmentation", "wan tx-udp-segmentation"];
        assert_eq!(fake.on(), all);
        fake.set("wan", TX_UDP_SEGMENTATION, false, true);
        look(&offloads, &config);
        assert_eq!((fake.on().len(), offloads.document().restored), (3, 1));
        offloads.end();
        assert_eq!(fake.on(), ["lan tx-udp-segmentation"], "what was on before stays on");
        look(&offloads, &config);
        assert_eq!(fake.on().len(), 1, "nothing is switched behind the end");
    }

    #[test]
    fn offloads_follow_the_file_and_the_gateways_interface() {
        let (fake, auto, keep) = (Fake::new(), config(""), config("[offloads]\nmode = \"keep\""));
        let offloads = offloads(&fake, &auto);
        fake.0.lock().unwrap().remove(&("fb0".to_owned(), TX_UDP_SEGMENTATION.to_owned()));
        look(&offloads, &auto);
        assert_eq!(fake.on(), ["wan tx-udp-segmentation"], "an interface without batches gets none");
        fake.set("fb0", TX_UDP_SEGMENTATION, true, true);
        offloads.configure(&auto);
        look(&offloads, &auto);
        assert_eq!(fake.on().len(), 3);
        offloads.configure(&keep);
        look(&offloads, &keep);
        assert!(fake.on().is_empty() && !offloads.has_work());
        let named = config("[offloads]\ninside = [\"wan\"]");
        offloads.configure(&named);
        look(&offloads, &named);
        assert_eq!(fake.on(), ["wan rx-udp-gro-forwarding", "wan tx-udp-segmentation"]);
    }

    #[test]
    fn a_look_at_once_finds_what_has_come_since_the_last_one() {
        let (fake, config) = (Fake::new(), config(""));
        let own = ("fb0".to_owned(), TX_UDP_SEGMENTATION.to_owned());
        let feature = fake.0.lock().unwrap().remove(&own).unwrap();
        let offloads = offloads(&fake, &config);
        look(&offloads, &config);
        fake.0.lock().unwrap().insert(own, feature);
        look(&offloads, &config);
        assert_eq!(fake.on().len(), 1, "interfaces are looked up every few looks");
        offloads.look_after(true, || Ends::of(&config.guard_entries()));
        assert_eq!(fake.on().len(), 3);
    }

    #[test]
    fn offloads_that_cannot_be_on_are_left_and_named() {
        let (fake, config) = (Fake::new(), config(""));
        fake.set("lan", TX_UDP_SEGMENTATION, false, false);
        fake.set("lan", RX_GRO, false, true);
        fake.0.lock().unwrap().remove(&("wan".to_owned(), TX_UDP_SEGMENTATION.to_owned()));
        let offloads = offloads(&fake, &config);
        for _ in 0..2 {
            look(&offloads, &config);
        }
        let said: Vec<_> =
            offloads.document().offloads.into_iter().map(|one| (one.state, one.switched)).collect();
        let expected = [("without rx-gro", false), ("fixed", false), ("lacking", false)];
        assert_eq!(said, expected.map(|(state, switched)| (state.to_owned(), switched)));
        assert!(fake.on().is_empty());
        // Whoever switches generic segmentation off wants no batches there.
        fake.set("lan", RX_GRO, true, true);
        fake.set("lan", TX_UDP_SEGMENTATION, false, true);
        fake.set("lan", TX_GENERIC_SEGMENTATION, false, true);
        look(&offloads, &config);
        assert_eq!(fake.on(), ["lan rx-udp-gro-forwarding"]);
        offloads.end();
        assert!(fake.on().is_empty());
    }
}
