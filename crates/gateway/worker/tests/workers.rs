//! Several workers: any of them takes any packet all the way, and what leaves is in the order of each SA.

#![allow(clippy::disallowed_methods)] // a test that waits has an end

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_crypto::Direction;
use forebay_ipsec::{IvRange, SaConfig, Spi};
use forebay_worker::Worker;
use support::{end, gateway, gateway_of, keys, number, plain, receive, rounds, sa, spi_and_sequence};

fn back(config: SaConfig) -> SaConfig {
    SaConfig {
        local: config.remote,
        remote: config.local,
        local_ts: config.remote_ts,
        remote_ts: vec![],
        ..config
    }
}

#[test]
fn any_worker_seals_and_opens_what_it_takes() {
    const WORKERS: usize = 3;
    const SAS: u32 = 7;
    let mut near = gateway(WORKERS, &[Direction::Seal], SAS);
    let mut far = gateway(WORKERS, &[Direction::Open], 0);
    for n in 0..SAS {
        far.workers[0].engine().add_inbound(back(sa(n)), &keys()).unwrap();
    }
    let ((near_workers, near_threads), (far_workers, far_threads)) = (near.run(), far.run());
    // One packet at a time, so that all sleep before the next; then many.
    let mut sequences = [0; SAS as usize];
    for (burst, rounds) in [(1, 60), (10, 60)] {
        for round in 0..rounds {
            let n = round % SAS;
            let (taker, opener) = (round as usize % WORKERS, (round / 3) as usize % WORKERS);
            for number in 0..burst {
                near.programs[taker].send(&plain(n, number)).unwrap();
            }
            for _ in 0..burst {
                let sealed = receive(&near.wire);
                sequences[n as usize] += 1;
                assert_eq!(spi_and_sequence(&sealed), (0x1000 + n, sequences[n as usize]));
                far.peers[opener].send(&sealed).unwrap();
            }
            for wanted in 0..burst {
                let opened = receive(&far.lan);
                assert_eq!((opened[17], number(&opened)), (n as u8 + 2, wanted));
            }
        }
    }
    for workers in [&near_workers, &far_workers] {
        let packets = workers
            .first(|worker| worker.engine().sad().iter().map(|(_, _, _, one)| one.packets).sum::<u64>());
        assert_eq!(packets, Some(660));
        let dropped = workers.ask(|worker| worker.engine().drops().total()).unwrap();
        assert_eq!(dropped, [0; WORKERS]);
    }
    end(&near_workers, near_threads);
    end(&far_workers, far_threads);
}

/// All packets of one SA come to one worker, more than it can take: others help, and the order stays.
#[test]
fn a_crowded_link_is_helped_with_and_its_packets_stay_in_order() {
    const PACKETS: u32 = 30_000;
    let mut near = gateway(4, &[Direction::Seal], 1);
    let (workers, threads) = near.run();
    let program = near.programs[0].try_clone().unwrap();
    program.set_nonblocking(false).unwrap();
    let sender = std::thread::spawn(move || {
        (0..PACKETS).for_each(|number| _ = program.send(&plain(0, number)).unwrap());
    });
    for wanted in 0..PACKETS {
        let sealed = receive(&near.wire);
        assert_eq!(spi_and_sequence(&sealed), (0x1000, wanted + 1));
    }
    sender.join().unwrap();
    let helped: u64 = workers.ask(|worker| worker.counts().helped).unwrap().iter().sum();
    println!("{helped} of {PACKETS} packets were taken by workers that helped");
    end(&workers, threads);
}

/// Workers without a queue of their own help, and send by that of another, also while that one sleeps.
#[test]
fn several_workers_have_one_queue_together_and_its_packets_stay_in_order() {
    const PACKETS: u32 = 30_000;
    let mut near = gateway_of(4, 1, &[Direction::Seal, Direction::Open], 2);
    let (workers, threads) = near.run();
    let program = near.programs[0].try_clone().unwrap();
    program.set_nonblocking(false).unwrap();
    let mut sequences = [0; 2];
    let mut is_next = |sealed: &[u8]| {
        let (spi, sequence) = spi_and_sequence(sealed);
        let before = &mut sequences[spi as usize - 0x1000];
        *before += 1;
        assert_eq!(sequence, *before);
    };
    // One packet at a time, so that all sleep before the next; then many.
    for number in 0..50 {
        program.send(&plain(number % 2, number)).unwrap();
        is_next(&receive(&near.wire));
    }
    let sender = std::thread::spawn(move || {
        (50..PACKETS).for_each(|number| _ = program.send(&plain(number % 2, number)).unwrap());
    });
    (50..PACKETS).for_each(|_| is_next(&receive(&near.wire)));
    sender.join().unwrap();
    let counted = workers.ask(|worker| {
        worker.ports().map(|port| (port.counts().packets_in, port.counts().packets_out)).collect::<Vec<_>>()
    });
    let packets = u64::from(PACKETS);
    assert_eq!(counted.unwrap(), [vec![(packets, 0), (0, packets)], vec![], vec![], vec![]]);
    end(&workers, threads);
}

#[test]
fn a_peer_that_moves_is_followed_by_all_its_sas() {
    let mut gateway = gateway(2, &[Direction::Seal], 2);
    let inbound = |sa: SaConfig| SaConfig { local_ts: vec![], remote_ts: vec![], ..sa };
    let inbound = SaConfig { spi: Spi::new(0x2001).unwrap(), ..inbound(sa(1)) };
    let peer_s = SaConfig { local: inbound.remote, remote: inbound.local, ..inbound.clone() };
    gateway.workers[0].engine().add_inbound(inbound, &keys()).unwrap();
    let mut peer = self::gateway(1, &[], 0);
    peer.workers[0].engine().add_outbound(peer_s, IvRange::for_throwaway_key(), &keys()).unwrap();
    peer.programs[0].send(&plain(5, 0)).unwrap();
    rounds(&mut peer.workers[0]);
    let mut sealed = receive(&peer.wire);
    sealed[12..16].copy_from_slice(&[198, 51, 100, 7]);
    sealed[20..22].copy_from_slice(&1_024_u16.to_be_bytes());
    let (workers, threads) = gateway.run();
    gateway.peers[1].send(&sealed).unwrap();
    receive(&gateway.lan);
    let to = SocketAddr::from(([198, 51, 100, 7], 1_024));
    for n in [0, 1] {
        let moved = (0..2_000).any(|number| {
            gateway.programs[0].send(&plain(n, number)).unwrap();
            let packet = receive(&gateway.wire);
            let port = u16::from_be_bytes([packet[22], packet[23]]);
            let address: [u8; 4] = packet[16..20].try_into().unwrap();
            SocketAddr::from((address, port)) == to
        });
        assert!(moved, "SA {n} goes where the peer was");
    }
    let seen = workers.ask(|worker| worker.counts().moved_peers).unwrap();
    assert_eq!(seen.iter().sum::<u64>(), 1);
    end(&workers, threads);
}

#[test]
fn a_change_is_made_while_no_packet_moves_and_waits_for_nobody_who_has_ended() {
    let mut gateway = gateway(3, &[], 0);
    let (workers, threads) = gateway.run();
    let inside = Arc::new(AtomicUsize::new(0));
    // Changes from several threads, looks between.
    let changers: Vec<_> = (0..3)
        .map(|_| {
            let (workers, inside) = (workers.clone(), inside.clone());
            std::thread::spawn(move || {
                for _ in 0..200 {
                    let inside = inside.clone();
                    let rounds = workers.change(move |worker| {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two changes at a time");
                        std::thread::yield_now();
                        inside.store(0, Ordering::SeqCst);
                        worker.index()
                    });
                    assert_eq!(rounds, Some(0));
                    assert_eq!(workers.ask(|worker| worker.index()), Some(vec![0, 1, 2]));
                }
            })
        })
        .collect();
    changers.into_iter().for_each(|changer| changer.join().unwrap());
    // One of the others ends by itself.
    workers.get(1).unwrap().ask(Worker::stop).unwrap();
    // It does what it is told in its last round.
    while workers.get(1).unwrap().ask(|_| ()).is_some() {}
    assert_eq!(workers.change(|worker| worker.index()), Some(0));
    // The first one panics in the middle of a change: the others go on.
    assert_eq!(workers.change(|worker| assert_ne!(worker.index(), 0, "as meant")), None);
    assert_eq!(workers.get(2).unwrap().ask(|worker| worker.index()), Some(2));
    workers.get(2).unwrap().ask(Worker::stop).unwrap();
    let ended: Vec<bool> = threads.into_iter().map(|thread| thread.join().is_ok()).collect();
    assert_eq!(ended, [false, true, true]);
}
