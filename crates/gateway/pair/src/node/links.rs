//! Connections: gateway 0 listens, gateway 1 connects; both read.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_admission::{Place, Places};
use forebay_privileges as privileges;
use forebay_time::Time;

use super::notes::Work;
use super::{Link, Shared, Speaker, lock, rest, spawn};
use crate::channel::{ChannelError, Side, open};
use crate::election::{Heard, Role};
use crate::key::Key;
use crate::message::Message;

/// Time between two attempts to connect; the second one after a refusal, which does not end by itself.
const AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// Maximum number of unfinished connections.
const MOST: usize = 16;
/// Time for which the same error is not logged again.
const SAID_FOR: Duration = Duration::from_secs(60);

/// Accepts connections at an address. Unknown hosts that send nothing, or no handshake of a peer, do not keep the peer out.
pub(super) fn listen(shared: &Arc<Shared>, key: &Arc<Key>, listener: TcpListener) -> std::io::Result<()> {
    let (shared, key) = (shared.clone(), key.clone());
    let places = Places::new(MOST, []);
    // So that the thread notices the end of the pair.
    listener.set_nonblocking(true)?;
    spawn("forebay-pair-link", move || {
        privileges::give_up();
        while !shared.ended.load(Ordering::Relaxed) {
            let Ok((stream, address)) = listener.accept() else {
                rest(super::TICK);
                continue;
            };
            let place = places.take(address.ip().into(), &stream);
            let (Ok(Some(place)), Ok(())) = (place, stream.set_nonblocking(false)) else { continue };
            let (shared, key) = (shared.clone(), key.clone());
            // Without a thread the connection is closed, and the peer tries again.
            let _ = spawn("forebay-pair-link", move || {
                let ended = shared.talk(stream, &key, address, Side::Responder, Some(place));
                shared.complain(address, Side::Responder, &ended);
            });
        }
    })
}

/// Keeps a connection to an address.
pub(super) fn dial(shared: &Arc<Shared>, key: &Arc<Key>, address: SocketAddr) -> std::io::Result<()> {
    let (shared, key) = (shared.clone(), key.clone());
    spawn("forebay-pair-link", move || {
        privileges::give_up();
        while !shared.ended.load(Ordering::Relaxed) {
            let stream = TcpStream::connect_timeout(&address, shared.settings.silence);
            let ended = match stream {
                Ok(stream) => shared.talk(stream, &key, address, Side::Initiator, None),
                Err(error) => ChannelError::Io(error),
            };
            shared.complain(address, Side::Initiator, &ended);
            rest(AGAIN[usize::from(!matches!(ended, ChannelError::Io(_)))]);
        }
    })
}

impl Shared {
    /// Opens a connection over a stream and reads messages until it ends; returns the reason.
    fn talk(
        &self,
        stream: TcpStream,
        key: &Key,
        address: SocketAddr,
        side: Side,
        place: Option<Place>,
    ) -> ChannelError {
        let opened = open(stream, side, key, &self.hello, self.settings.silence);
        let (mut sender, mut receiver) = match opened {
            Ok(opened) => opened,
            Err(error) => return error,
        };
        let beat = self.beat(&lock(&self.state));
        if let Err(error) = sender.send(&beat) {
            return error.into();
        }
        // The first message shows that this is the peer, and not an attacker who replays its handshake.
        let mut message = match receiver.receive() {
            Ok(message) => message,
            Err(error) => return error,
        };
        // It is the peer: from now on, no unknown host keeps its address out.
        if let Some(place) = place {
            lock(&self.state).known.insert(address.ip());
            place.settle();
        }
        let sender = Arc::new(Mutex::new(sender));
        let link = self.connected(sender.clone());
        tracing::info!(%address, "connected to the peer");
        let ended = loop {
            if self.read(link, message).is_none() {
                break ChannelError::Malformed;
            }
            message = match receiver.receive() {
                Ok(message) => message,
                Err(error) => break error,
            };
        };
        lock(&sender).close();
        if self.disconnected(link) {
            let alone = lock(&self.state).election.role() == Role::Active;
            tracing::warn!(%address, alone, "connection to the peer lost, tried again; look at the peer and the network between: {ended}");
        }
        ended
    }

    /// Adds a connection and returns its number.
    pub(super) fn connected(&self, speaker: Arc<dyn Speaker>) -> u64 {
        let mut state = lock(&self.state);
        let link = state.next_link;
        state.next_link += 1;
        state.links.insert(link, Link { speaker, heard: (self.clock)() });
        link
    }

    /// Removes a connection and returns whether it was the last.
    pub(super) fn disconnected(&self, link: u64) -> bool {
        let mut state = lock(&self.state);
        state.links.remove(&link);
        if let Some((session, _)) = state.session.take_if(|(_, at)| *at == link) {
            self.outbox.close(session);
            // Another connection takes its place at once.
            state.session_began = None;
        }
        let was_last = state.links.is_empty();
        if was_last {
            state.election.closed((self.clock)());
        }
        was_last
    }

    /// Handles a message; `None` if the connection has to end.
    pub(super) fn read(&self, link: u64, message: Message) -> Option<()> {
        let mut state = lock(&self.state);
        state.links.get_mut(&link)?.heard = (self.clock)();
        let is_session = state.session.is_some_and(|(_, at)| at == link);
        match message {
            // Newer records have arrived over a faster connection.
            Message::Beat { session, .. } if state.source.is_behind(session) => {}
            Message::Beat { active, term, preferred, unmerged, wants, session, open, blank, whole } => {
                let role = if active { Role::Active } else { Role::Standby };
                state.peer_wants = wants;
                (state.peer_unmerged, state.peer_blank, state.peer_whole) = (unmerged, blank, whole);
                if unmerged && (!open || Some(session) != state.received_session) {
                    // It has used numbers whose records it could not send, or sends them in another session.
                    state.complete = None;
                }
                self.hear(&mut state, Heard { role, term, preferred, resigned: false });
            }
            Message::Noted { at } if is_session => self.outbox.acknowledge(at),
            // An answer to an earlier transmission does not cover numbers that were used since.
            Message::Merged { number } if is_session && state.merge_sent && number == state.merges => {
                state.merged = true;
                if let Some((session, _)) = state.session {
                    self.outbox.merged(session);
                }
                // Without this the peer could not take over until the next heartbeat.
                self.send_on(&state, link, &self.beat(&state));
            }
            // Of a session that has ended.
            Message::Noted { .. } | Message::Merged { .. } => {}
            Message::Session { process, number } => state.source.begin(process, number, link),
            // Sent before the peer changed to another connection, and late.
            Message::Note { .. } | Message::Merge { .. } if !state.source.is(link) => {}
            Message::Note { at, records } => self.work.send(Work::Note { link, at, records }).ok()?,
            Message::Merge { records, active, term, number, last } => {
                self.work.send(Work::Merge { link, records, active, term, number, last }).ok()?;
            }
            Message::Resign { term, unmerged } => {
                state.peer_unmerged = unmerged;
                self.work.send(Work::Resign { term }).ok()?;
            }
        }
        Some(())
    }

    /// Logs the reason for which a connection ended or failed: each reason at a limited rate, and those of unknown hosts together at a limited rate.
    fn complain(&self, address: SocketAddr, side: Side, error: &ChannelError) {
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        // The peer's port is different each time.
        let (text, now) = (format!("{}: {error}", address.ip()), (self.clock)());
        let mut state = lock(&self.state);
        state.said.retain(|_, at| now.saturating_sub(*at) < SAID_FOR);
        if state.said.contains_key(&text) {
            return;
        }
        let mut unsaid = 0;
        if side == Side::Responder && !state.known.contains(&address.ip()) {
            let now = Time::ZERO + forebay_time::Duration::from_millis(now.as_millis() as u64);
            let Some(others) = state.strangers.admit(now) else { return };
            unsaid = others;
        }
        state.said.insert(text, now);
        drop(state);
        match error {
            ChannelError::Io(error) => tracing::info!(%address, unsaid, "no connection to the peer: {error}"),
            refused => tracing::error!(%address, unsaid, "refused the connection to the peer: {refused}"),
        }
    }
}
