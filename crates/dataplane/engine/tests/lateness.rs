//! A processor that answers later than its costs say: with what is learnt of it, few packets wait for it.

#[allow(dead_code)]
mod pair;

use forebay_crypto::Direction;
use forebay_crypto::fault::{Fault, FaultControl, Faulty};
use forebay_crypto_aws_lc::AwsLc;
use forebay_engine::{Clock, Engine, Limits, Scheduling, Settings};
use forebay_scheduler::{Cost, Kind};
use forebay_time::Duration;

/// By far more than the core takes for a round.
const LATE: Duration = Duration::from_millis(5);
const ROUNDS: u64 = 60;
const PACKETS: u64 = 64;

/// What part of the packets goes to a processor that should be faster than the core and is late.
fn share_of_the_late(lateness: bool) -> f64 {
    let clock = Clock::start();
    let cost = |ns| Cost { init: Duration::from_nanos(ns), ..Cost::default() };
    let fault = FaultControl::new(1);
    fault.arm(Fault::Late { by: LATE });
    let core = pair::setup(Box::new(AwsLc::new()), Kind::Cpu, cost(2_000));
    let late = pair::setup(Box::new(Faulty::new(AwsLc::new(), fault)), Kind::Accelerator, cost(1_000));
    let scheduling = Scheduling { lateness, ..Scheduling::default() };
    // No processor is ejected, however busy the machine is.
    let long = Duration::from_millis(10_000);
    let limits = Limits { slack: long, hold: long, ..Limits::default() };
    let (sad, keys) = pair::sas(Direction::Seal);
    let settings = Settings { scheduling, limits, ..Settings::default() };
    let mut engine = Engine::new(sad, &keys, vec![core, late], settings, clock).expect("an engine");
    let mut bytes = Vec::new();
    for number in 0..ROUNDS * PACKETS {
        pair::plain(number, &mut bytes);
        let mut packet = engine.buffer();
        assert!(packet.fill(&bytes));
        assert!(engine.admit(Direction::Seal, packet, number).is_ok());
        if number % PACKETS == PACKETS - 1 {
            assert!(engine.drain(long));
            let out: Vec<_> = engine.outputs().map(|output| (output.result, output.packet)).collect();
            assert_eq!(out.len() as u64, PACKETS);
            for (result, packet) in out {
                assert_eq!(result, Ok(()));
                engine.recycle(packet);
            }
        }
    }
    let packets: Vec<u64> = engine.processors().map(|one| one.packets).collect();
    assert_eq!(packets.iter().sum::<u64>(), ROUNDS * PACKETS);
    packets[1] as f64 / (ROUNDS * PACKETS) as f64
}

#[test]
fn a_late_processor_gets_few_packets_once_that_is_known() {
    let (unknown, known) = (share_of_the_late(false), share_of_the_late(true));
    assert!(unknown > 0.02, "{unknown}: it should look fast");
    assert!(known > 0.0, "it is never tried");
    assert!(known < unknown / 3.0, "{known} of the packets, {unknown} without learning");
}
