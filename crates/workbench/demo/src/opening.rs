//! Gateway B: sealed packets in over UDP, plain packets out and compared.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use forebay_crypto::{Direction, Job, JobSpec};
use forebay_engine::{Engine, Idle};
use miette::{IntoDiagnostic, WrapErr};

use super::compare::{Comparer, Expected, Half, Sampler};
use super::gateways::LARGEST;
use super::sealing::rebuild;
use super::traffic::Capture;
use super::{LAST_WORDS, Shared};

/// Runs the gateway until everything sent has come, or nothing more comes.
pub fn run(
    mut engine: Engine,
    socket: UdpSocket,
    capture: &Capture,
    expected: Receiver<Expected>,
    shared: &Shared,
) -> miette::Result<(Half, Comparer)> {
    let start = shared.clock.now();
    let mut sampler = Sampler::new(&engine, start);
    let mut comparer = Comparer::new(&engine);
    let (mut datagram, mut rebuilt) = (vec![0; LARGEST], vec![0; LARGEST]);
    let mut last = start;
    let (mut idle, mut burst, mut refused) = (Idle::default(), Vec::new(), Vec::new());
    loop {
        let mut moved = false;
        for _ in 0..forebay_engine::BURST {
            if engine.room() <= burst.len() {
                break;
            }
            let len = match socket.recv(&mut datagram) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).into_diagnostic().wrap_err("cannot receive on loopback"),
            };
            shared.received.fetch_add(1, Ordering::Relaxed);
            moved = true;
            let mut packet = engine.buffer();
            let fits = rebuild(&datagram[..len], &mut rebuilt).is_ok_and(|len| packet.fill(&rebuilt[..len]));
            if !fits {
                engine.recycle(packet);
                continue;
            }
            burst.push(Job::new(packet, JobSpec::default(), 0));
        }
        engine.admit_burst(Direction::Open, &mut burst);
        refused.extend(engine.refusals().map(|refusal| refusal.packet));
        refused.drain(..).for_each(|packet| engine.recycle(packet));
        if !moved {
            engine.flush();
        }
        moved |= engine.poll();
        comparer.learn(&expected);
        let mut free = Vec::new();
        for output in engine.outputs() {
            if output.result.is_ok() {
                comparer.compare(&output, capture);
            }
            shared.released.fetch_add(1, Ordering::Relaxed);
            free.push(output.packet);
        }
        free.into_iter().for_each(|packet| engine.recycle(packet));
        let now = shared.clock.now();
        sampler.look(&engine, now);
        idle.after(moved);
        if moved {
            last = now;
            continue;
        }
        let all = shared.sent_all.load(Ordering::Acquire)
            && shared.sent.load(Ordering::Relaxed) == shared.received.load(Ordering::Relaxed);
        if engine.in_flight() == 0 && all {
            break;
        }
        // What was lost on the way is not waited for for ever.
        let stuck = shared.sent_all.load(Ordering::Acquire) && now.since(last) > LAST_WORDS;
        if shared.stop.load(Ordering::Relaxed) || stuck {
            break;
        }
    }
    comparer.learn(&expected);
    Ok((sampler.finish(&engine, start, last), comparer))
}
