//! Host names of peers, resolved on a separate thread, because a resolver may need half a minute to report a failure.
//!
//! Names are resolved one after another: each at once when the file is read, and again a minute after its last answer. A name that
//! never had an answer is tried again after five seconds. Without an answer, the last address stays in use.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use forebay_engine::Clock;
use forebay_privileges as privileges;
use forebay_sas::{HostName, no_peer};
use forebay_time::{Duration, Time};

/// Between two times that a name is resolved.
const EVERY: Duration = Duration::from_millis(60_000);
/// The same while it never had an answer.
const UNTIL_FIRST: Duration = Duration::from_millis(5_000);
/// Longest wait for the answers of names that have just been read.
const ANSWERED_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);
/// Between two looks at what is due.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(500);

/// What resolves host names.
pub trait Resolver: Send + Sync {
    /// The addresses of a host, of both IP versions, those to be preferred first. May take long.
    ///
    /// # Errors
    /// Why there are none.
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver: `/etc/hosts`, DNS, and what else nsswitch.conf(5) names.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// What becomes of the address of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The last one holds.
    Keep,
    /// It has this one from now on.
    Move(IpAddr),
    /// None is known.
    None,
}

/// What becomes of the `last` address of a name by `answers`: it holds while it is among them, since their order may be another every
/// time, and while there are none. So it does where packets go to one of them already, `used`: the peer moved, was followed, and
/// DNS comes behind.
pub(super) fn choose(answers: &[IpAddr], v6: bool, last: Option<IpAddr>, used: Option<IpAddr>) -> Choice {
    let mut usable = answers.iter().filter(|one| one.is_ipv6() == v6 && no_peer(one).is_none());
    let holds = |address: IpAddr| usable.clone().any(|one| *one == address);
    match last {
        Some(last) if holds(last) || used.is_some_and(holds) => Choice::Keep,
        _ => match (usable.next(), last) {
            (Some(first), _) => Choice::Move(*first),
            (None, Some(_)) => Choice::Keep,
            (None, None) => Choice::None,
        },
    }
}

/// The names of a file with their answers.
pub(super) struct Names {
    shared: Arc<Shared>,
    resolver: Arc<dyn Resolver>,
    clock: Clock,
    /// Wakes the thread; its end is that of the thread.
    awake: Option<Sender<()>>,
}

#[derive(Default)]
struct Shared {
    known: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    names: BTreeMap<HostName, Known>,
    /// One more with each answer that is another one than the last.
    version: u64,
}

#[derive(Default)]
struct Known {
    /// The last ones, if there ever were any.
    answers: Vec<IpAddr>,
    /// When it was resolved; `None` if that is due at once.
    asked: Option<Time>,
    is_failing: bool,
}

impl Names {
    pub(super) fn new(resolver: Arc<dyn Resolver>, clock: Clock) -> Names {
        Names { shared: Arc::default(), resolver, clock, awake: None }
    }

    /// Has these names, and no others, resolved at once and from then on, and waits a little for the answers.
    pub(super) fn resolve(&mut self, names: BTreeSet<HostName>) {
        self.keep(&names);
        if names.is_empty() {
            return;
        }
        let mut state = self.shared.lock();
        for name in names {
            state.names.entry(name).or_default().asked = None;
        }
        drop(state);
        if self.awake.as_ref().is_none_or(|awake| awake.send(()).is_err()) {
            let started = self.start().inspect_err(|error| {
                tracing::error!(%error, "cannot start the thread that resolves host names of peers");
            });
            self.awake = started.ok();
        }
        let is_open = |state: &mut State| state.names.values().any(|known| known.asked.is_none());
        // Whatever is open then comes later.
        drop(self.shared.answered.wait_timeout_while(self.shared.lock(), ANSWERED_WITHIN, is_open));
    }

    /// Forgets all names but these.
    pub(super) fn keep(&mut self, names: &BTreeSet<HostName>) {
        let mut state = self.shared.lock();
        state.names.retain(|name, _| names.contains(name));
        let is_empty = state.names.is_empty();
        drop(state);
        if is_empty {
            self.awake = None;
        }
    }

    fn start(&self) -> io::Result<Sender<()>> {
        let (awake, asleep) = channel();
        let (shared, resolver, clock) = (self.shared.clone(), self.resolver.clone(), self.clock);
        std::thread::Builder::new().name("forebay-names".to_owned()).spawn(move || {
            privileges::give_up();
            shared.resolve_until(&asleep, &*resolver, clock);
        })?;
        Ok(awake)
    }

    /// A number that is another one when there are other answers.
    pub(super) fn version(&self) -> u64 {
        self.shared.lock().version
    }

    /// The last answers for a name; none if there never was one.
    pub(super) fn answers(&self, name: &HostName) -> Vec<IpAddr> {
        self.shared.lock().names.get(name).map_or_else(Vec::new, |known| known.answers.clone())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves what is due until there is nobody to do it for.
    fn resolve_until(&self, asleep: &Receiver<()>, resolver: &dyn Resolver, clock: Clock) {
        loop {
            let due = self.lock().due(clock.now());
            let wait = if due.is_some() { std::time::Duration::ZERO } else { LOOK_EVERY };
            if let Some(name) = due {
                let answer = resolver.resolve(&name);
                self.lock().note(&name, answer, clock.now());
                self.answered.notify_all();
            }
            if asleep.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}

impl State {
    /// The name that has waited longest, if one has waited long enough.
    fn due(&self, now: Time) -> Option<HostName> {
        let is_due = |known: &Known| {
            let every = if known.answers.is_empty() { UNTIL_FIRST } else { EVERY };
            known.asked.is_none_or(|asked| now.since(asked) >= every)
        };
        let due = self.names.iter().filter(|(_, known)| is_due(known));
        due.min_by_key(|(_, known)| known.asked).map(|(name, _)| name.clone())
    }

    /// Notes an answer. That there is none is said once.
    fn note(&mut self, name: &HostName, answer: io::Result<Vec<IpAddr>>, now: Time) {
        // The file may have lost it meanwhile.
        let Some(known) = self.names.get_mut(name) else { return };
        known.asked = Some(now);
        let answer = answer.and_then(|answers| match answers.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
            false => Ok(answers),
        });
        match answer {
            Ok(answers) => {
                if std::mem::take(&mut known.is_failing) {
                    tracing::info!(%name, "peer's host name resolves again");
                }
                self.version += u64::from(known.answers != answers);
                known.answers = answers;
            }
            Err(error) => {
                if !std::mem::replace(&mut known.is_failing, true) {
                    let then = if known.answers.is_empty() {
                        "it is tried again"
                    } else {
                        "its last address stays in use"
                    };
                    tracing::warn!(%name, %error, "cannot resolve a peer's host name: {then}; look at /etc/resolv.conf and the name server");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn chosen(answers: &[&str], v6: bool, last: Option<&str>, used: Option<&str>) -> Choice {
        let address = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        choose(&addresses(answers), v6, address(last), address(used))
    }

    #[test]
    fn an_address_holds_while_it_is_among_the_answers_or_there_are_none() {
        let moved = |to: &str| Choice::Move(to.parse().unwrap());
        assert_eq!(chosen(&["192.0.2.2", "192.0.2.1"], false, None, None), moved("192.0.2.2"));
        // Whatever their order is.
        assert_eq!(chosen(&["192.0.2.2", "192.0.2.1"], false, Some("192.0.2.1"), None), Choice::Keep);
        assert_eq!(chosen(&["192.0.2.2", "192.0.2.3"], false, Some("192.0.2.1"), None), moved("192.0.2.2"));
        assert_eq!(chosen(&[], false, Some("192.0.2.1"), None), Choice::Keep);
        assert_eq!(chosen(&[], false, None, None), Choice::None);
    }

    #[test]
    fn an_address_is_one_of_the_ip_version_that_a_peer_can_have() {
        let both = ["2001:db8::1", "192.0.2.1"];
        assert_eq!(chosen(&both, false, None, None), Choice::Move("192.0.2.1".parse().unwrap()));
        assert_eq!(chosen(&both, true, None, None), Choice::Move("2001:db8::1".parse().unwrap()));
        assert_eq!(chosen(&both[..1], false, None, None), Choice::None);
        assert_eq!(chosen(&both[..1], false, Some("192.0.2.1"), None), Choice::Keep);
        assert_eq!(chosen(&["0.0.0.0", "224.0.0.1", "255.255.255.255"], false, None, None), Choice::None);
    }

    #[test]
    fn a_peer_that_was_followed_stays_where_it_is() {
        // Its name still has the address of before, or has the new one already.
        assert_eq!(chosen(&["192.0.2.1"], false, Some("192.0.2.1"), Some("192.0.2.9")), Choice::Keep);
        assert_eq!(chosen(&["192.0.2.9"], false, Some("192.0.2.1"), Some("192.0.2.9")), Choice::Keep);
        let other = Choice::Move("192.0.2.5".parse().unwrap());
        assert_eq!(chosen(&["192.0.2.5"], false, Some("192.0.2.1"), Some("192.0.2.9")), other);
    }

    #[test]
    fn a_name_is_resolved_once_a_minute_and_sooner_until_its_first_answer() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let name: HostName = "peer.example".parse().unwrap();
        let mut state = State::default();
        state.names.insert(name.clone(), Known::default());
        assert_eq!(state.due(at(0)).as_ref(), Some(&name));
        state.note(&name, Err(io::ErrorKind::NotFound.into()), at(0));
        assert_eq!((state.due(at(4_999)), state.version), (None, 0));
        assert!(state.due(at(5_000)).is_some());
        state.note(&name, Ok(addresses(&["192.0.2.1"])), at(6_000));
        assert_eq!((state.due(at(65_999)), state.version), (None, 1));
        assert!(state.due(at(66_000)).is_some());
        // The last answer holds.
        state.note(&name, Ok(vec![]), at(66_000));
        assert_eq!((&state.names[&name].answers, state.version), (&addresses(&["192.0.2.1"]), 1));
        assert!(state.due(at(125_999)).is_none());
    }
}
