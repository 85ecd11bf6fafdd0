//! Received packets that wait until their sequence numbers are recorded durably: see `forebay-state`.

use forebay_crypto::SessionId;
use forebay_engine::Output;
use forebay_ipsec::Ipsec;

/// Maximum number of waiting packets; further ones are dropped. At a million packets per second they are those of eight
/// milliseconds, and a disk usually needs less.
const HELD_MAX: usize = 8_192;

/// A packet that waits until numbers of its SA are noted up to `until`.
struct One {
    output: Output,
    session: SessionId,
    until: u64,
}

/// The packets that wait, in their order.
#[derive(Default)]
pub struct Held {
    packets: Vec<One>,
    /// A limit was raised since the last release.
    may_go: bool,
}

impl Held {
    /// Keeps a packet of `session` until its numbers up to `until` are noted.
    ///
    /// # Errors
    /// The packet, if there is no room.
    pub fn put(&mut self, session: SessionId, until: u64, output: Output) -> Result<(), Output> {
        if self.packets.len() >= HELD_MAX {
            return Err(output);
        }
        self.packets.push(One { output, session, until });
        Ok(())
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// A limit was raised: the next [`Held::release`] checks all packets.
    pub fn look_again(&mut self) {
        self.may_go = true;
    }

    /// Moves the packets whose numbers are recorded by now to `outputs`, in their order.
    pub fn release(&mut self, sad: &Ipsec, outputs: &mut Vec<Output>) {
        if !std::mem::take(&mut self.may_go) {
            return;
        }
        let is_noted = |one: &mut One| sad.noted(one.session).is_none_or(|(_, limit)| one.until <= limit);
        outputs.extend(self.packets.extract_if(.., is_noted).map(|one| one.output));
    }

    /// Takes the packets of an SA.
    pub fn take(&mut self, session: SessionId) -> Vec<Output> {
        self.packets.extract_if(.., |one| one.session == session).map(|one| one.output).collect()
    }

    /// Takes all packets.
    pub fn take_all(&mut self) -> Vec<Output> {
        self.packets.drain(..).map(|one| one.output).collect()
    }
}
