//! What comes out of the engine goes to its link.

use forebay_crypto::Direction;
use forebay_engine::{Engine, Output};
use forebay_planted::{Fault, planted};

use super::Worker;
use crate::intake::{self, FROM_INSIDE};
use crate::port::{Outgoing, Port};

impl Worker {
    /// Puts what is through onto its link, and sends.
    pub(super) fn give_out(&mut self) -> bool {
        let mut outputs = std::mem::take(&mut self.outputs);
        if !planted(Fault::HeldNotReleased) {
            self.held.release(self.engine.sad(), &mut outputs);
        }
        let noted = outputs.len();
        outputs.extend(self.engine.outputs());
        // Packets come in runs of an SA, which receives nothing meanwhile.
        let mut passes = None;
        for (place, output) in outputs.drain(..).enumerate() {
            let origin = if output.tag == FROM_INSIDE { Direction::Seal } else { Direction::Open };
            let direction =
                output.session.and_then(|session| self.engine.sad().direction(session)).unwrap_or(origin);
            let is_received = place >= noted && direction == Direction::Open && output.result.is_ok();
            let output = match is_received && output.session != passes {
                false => output,
                true => {
                    let Some(output) = self.hold_unless_noted(output) else { continue };
                    passes = output.session;
                    output
                }
            };
            let Output { mut packet, session, result, .. } = output;
            if let Err(reason) = result {
                self.intake.dropped(&mut self.engine, direction, reason, packet);
                continue;
            }
            let port = match direction {
                Direction::Open => {
                    if let Some(mtu) = self.mss_clamp {
                        intake::clamp_mss(&mut packet, mtu);
                    }
                    Some(&mut self.inside)
                }
                Direction::Seal => {
                    let fitting = self.outside.iter_mut().find(|one| one.takes(packet.bytes()));
                    fitting.map(|one| &mut one.port)
                }
            };
            let refused = match port {
                Some(port) => port.put(Outgoing { packet, session }).err(),
                None => {
                    self.counts.no_link += 1;
                    Some(packet)
                }
            };
            if let Some(packet) = refused {
                self.engine.recycle(packet);
            }
        }
        self.outputs = outputs;
        self.answer();
        self.send()
    }

    /// Tells programs that their packets are too big.
    fn answer(&mut self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(self.engine.answers());
        for answer in answers.drain(..) {
            self.counts.answers +=
                u64::from(Self::put_new(&mut self.engine, &mut self.inside, &answer.message));
        }
        self.answers = answers;
    }

    fn send(&mut self) -> bool {
        let engine = &mut self.engine;
        let mut moved = false;
        let ports = std::iter::once(&mut self.inside).chain(self.outside.iter_mut().map(|one| &mut one.port));
        for port in ports {
            moved |= port.send(&mut |outgoing: Outgoing, over| {
                if let (Some(session), Some(mtu)) = (outgoing.session, over) {
                    engine.lower_path_mtu(session, mtu.min(u32::from(u16::MAX)) as u16);
                }
                engine.recycle(outgoing.packet);
            });
        }
        moved
    }

    /// Puts a packet of the gateway's own onto a port; whether it is there. What does not fit a buffer is not sent: that
    /// would still hold an earlier packet.
    pub(super) fn put_new(engine: &mut Engine, port: &mut Port, bytes: &[u8]) -> bool {
        let mut packet = engine.buffer();
        let refused = match packet.fill(bytes) {
            true => port.put(Outgoing { packet, session: None }).err(),
            false => Some(packet),
        };
        let is_put = refused.is_none();
        refused.into_iter().for_each(|packet| engine.recycle(packet));
        is_put
    }
}
