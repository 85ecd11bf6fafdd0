//! Several workers: the worker that owns a packet's SA processes it, whichever worker receives it.

#![allow(clippy::disallowed_methods)] // a test that waits has an end

mod support;

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use forebay_crypto::{Direction, SessionId};
use forebay_ipsec::{DropReason, IvRange, SaConfig, Spi};
use forebay_worker::{Worker, WorkerIndex};
use support::{end, gateway, keys, number, plain, receive, rounds, sa, spi_and_sequence};

#[test]
fn a_packet_is_sealed_and_opened_where_its_sa_is_whoever_takes_it() {
    const WORKERS: usize = 3;
    const SAS: u32 = 7;
    let mut near = gateway(WORKERS, 64, &[Direction::Seal], SAS);
    let mut far = gateway(WORKERS, 64, &[Direction::Open], 0);
    for (place, worker) in far.workers.iter_mut().enumerate() {
        for n in 0..SAS {
            let config = sa(n);
            let config = SaConfig {
                local: config.remote,
                remote: config.local,
                local_ts: config.remote_ts,
                remote_ts: vec![],
                ..config
            };
            match WorkerIndex::new(place, WORKERS).remote_by_spi(config.spi) {
                Some(owner) => drop(worker.engine().add_remote(Direction::Open, config, owner).unwrap()),
                None => drop(worker.engine().add_inbound(config, &keys()).unwrap()),
            }
        }
    }
    let ((near_workers, near_threads), (far_workers, far_threads)) = (near.run(), far.run());
    // One packet at a time, so that all sleep before the next; then many.
    for (burst, rounds) in [(1, 60), (10, 60)] {
        for round in 0..rounds {
            let n = round % SAS;
            let (taker, opener) = (round as usize % WORKERS, (round / 3) as usize % WORKERS);
            for number in 0..burst {
                near.programs[taker].send(&plain(n, number)).unwrap();
            }
            let owner = (0x1000 + n) as usize % WORKERS;
            for _ in 0..burst {
                let sealed = receive(&near.peers[owner]);
                assert_eq!(spi_and_sequence(&sealed).0, 0x1000 + n);
                far.peers[opener].send(&sealed).unwrap();
            }
            for wanted in 0..burst {
                let opened = receive(&far.programs[owner]);
                assert_eq!((opened[17], number(&opened)), (n as u8 + 2, wanted));
            }
        }
    }
    for (workers, direction) in [(&near_workers, Direction::Seal), (&far_workers, Direction::Open)] {
        let all = workers.ask(|worker| {
            let sad = worker.engine().sad();
            let packets: Vec<_> =
                sad.iter().map(|(session, way, _, one)| (session, way, one.packets)).collect();
            let away: Vec<_> = packets.iter().map(|(session, ..)| sad.remote(*session)).collect();
            (packets, away, worker.counts().clone(), worker.engine().drops().total())
        });
        let all = all.unwrap();
        let mut sum = 0;
        for (packets, away, counts, dropped) in &all {
            assert!(packets.iter().all(|(_, way, _)| *way == direction));
            assert!(packets.iter().zip(away).all(|((.., packets), away)| away.is_none() || *packets == 0));
            sum += packets.iter().map(|(.., packets)| packets).sum::<u64>();
            assert!(counts.naps > 0 && counts.handed_over > 0 && counts.taken_over > 0);
            assert_eq!(*dropped, 0);
        }
        assert_eq!(sum, 660);
        let handed = |of: fn(&forebay_worker::WorkerCounts) -> u64| {
            all.iter().map(|(_, _, counts, _)| of(counts)).sum::<u64>()
        };
        assert_eq!(handed(|one| one.handed_over), handed(|one| one.taken_over));
    }
    end(&near_workers, near_threads);
    end(&far_workers, far_threads);
}

#[test]
fn programs_wait_for_another_worker_and_peers_packets_are_dropped() {
    const ROOM: usize = 300;
    let mut gateway = gateway(2, ROOM, &[Direction::Seal, Direction::Open], 2);
    // SA 1 is at worker 1, which does nothing yet.
    let fill = |socket: &UnixDatagram, packet: &dyn Fn(u32) -> Vec<u8>, packets: u32| {
        socket.set_nonblocking(true).unwrap();
        (0..packets).take_while(|&number| socket.send(&packet(number)).is_ok()).count()
    };
    let mut sent = 0;
    let mut taken = 0;
    for _ in 0..60 {
        sent += fill(&gateway.programs[0], &|number| plain(1, number), 10);
        rounds(&mut gateway.workers[0]);
        taken = gateway.workers[0].counts().handed_over as usize;
    }
    assert!(taken < sent && taken <= ROOM, "{taken} of {sent}");
    assert_eq!(gateway.workers[0].engine().drops().total(), 0, "programs are not to lose any");
    // Whatever peers send is taken, and dropped where it finds no room.
    let esp = |number: u32| {
        let mut packet = plain(1, number);
        packet[9] = 17;
        packet[10..12].fill(0);
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet[12..16].copy_from_slice(&[192, 0, 2, 2]);
        packet[20..32].copy_from_slice(&[0x11, 0x94, 0x11, 0x94, 0, 40, 0, 0, 0, 0, 0x10, 1]);
        let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        packet
    };
    let mut came = 0;
    for _ in 0..60 {
        came += fill(&gateway.peers[0], &esp, 10);
        rounds(&mut gateway.workers[0]);
    }
    let drops = gateway.workers[0].engine().drops();
    let handed = gateway.workers[0].counts().handed_over as usize;
    assert_eq!(drops.get(DropReason::HandOffFull) as usize, came - (handed - taken));
    assert_eq!((handed, drops.total()), (ROOM, drops.get(DropReason::HandOffFull)));
    // When the other works, programs go on.
    let (workers, threads) = gateway.run();
    for wanted in 0..sent {
        let sealed = receive(&gateway.peers[1]);
        assert_eq!(spi_and_sequence(&sealed), (0x1001, wanted as u32 + 1));
    }
    end(&workers, threads);
}

#[test]
fn buffers_come_back_to_who_gave_them() {
    let mut gateway = gateway(2, 64, &[Direction::Seal], 2);
    let (workers, threads) = gateway.run();
    let burst = |count: u32| {
        for number in 0..count {
            gateway.programs[0].send(&plain(1, number)).unwrap();
            receive(&gateway.peers[1]);
        }
        workers.ask(|worker| {
            worker.round();
            worker.engine().free_buffers()
        })
    };
    let first = burst(200).unwrap();
    let then = burst(400).unwrap();
    assert!(first.iter().sum::<usize>().abs_diff(then.iter().sum()) <= 64, "{first:?} {then:?}");
    end(&workers, threads);
}

#[test]
fn a_peer_that_moves_is_followed_where_its_other_sas_are() {
    // In at worker 1, out at worker 0 and 1.
    let mut gateway = gateway(2, 64, &[Direction::Seal], 2);
    let back = |sa: SaConfig| SaConfig { local_ts: vec![], remote_ts: vec![], ..sa };
    let inbound = SaConfig { spi: Spi::new(0x2001).unwrap(), ..back(sa(1)) };
    let peer_s = SaConfig { local: inbound.remote, remote: inbound.local, ..inbound.clone() };
    for (place, worker) in gateway.workers.iter_mut().enumerate() {
        match WorkerIndex::new(place, 2).remote_by_spi(inbound.spi) {
            Some(owner) => drop(worker.engine().add_remote(Direction::Open, inbound.clone(), owner).unwrap()),
            None => drop(worker.engine().add_inbound(inbound.clone(), &keys()).unwrap()),
        }
    }
    let mut peer = self::gateway(1, 64, &[], 0);
    peer.workers[0].engine().add_outbound(peer_s, IvRange::for_throwaway_key(), &keys()).unwrap();
    peer.programs[0].send(&plain(5, 0)).unwrap();
    rounds(&mut peer.workers[0]);
    let mut sealed = receive(&peer.peers[0]);
    sealed[12..16].copy_from_slice(&[198, 51, 100, 7]);
    sealed[20..22].copy_from_slice(&1_024_u16.to_be_bytes());
    let (workers, threads) = gateway.run();
    // At the worker that has not got the SA.
    gateway.peers[0].send(&sealed).unwrap();
    receive(&gateway.programs[1]);
    let to = SocketAddr::from(([198, 51, 100, 7], 1_024));
    for n in [0, 1] {
        let moved = (0..2_000).any(|number| {
            gateway.programs[0].send(&plain(n, number)).unwrap();
            let packet = receive(&gateway.peers[(n % 2) as usize]);
            let port = u16::from_be_bytes([packet[22], packet[23]]);
            let address: [u8; 4] = packet[16..20].try_into().unwrap();
            SocketAddr::from((address, port)) == to
        });
        assert!(moved, "SA {n} goes where the peer was");
    }
    let seen = workers.ask(|worker| worker.counts().moved_peers).unwrap();
    assert_eq!(seen, [0, 1], "who saw it counts it");
    let everywhere = workers.ask(move |worker| {
        let remotes =
            worker.engine().sad().iter().map(|(_, _, sa, _)| SocketAddr::new(sa.remote, sa.udp.remote));
        remotes.filter(|remote| *remote == to).count()
    });
    assert_eq!(everywhere, Some(vec![3, 3]));
    end(&workers, threads);
}

#[test]
fn a_change_is_made_by_all_at_one_moment_and_waits_for_nobody_who_has_ended() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let mut gateway = gateway(3, 64, &[], 0);
    let (workers, threads) = gateway.run();
    let inside = Arc::new(AtomicUsize::new(0));
    // Changes from several threads, looks between.
    let changers: Vec<_> = (0..3)
        .map(|_| {
            let (workers, inside) = (workers.clone(), inside.clone());
            std::thread::spawn(move || {
                for _ in 0..200 {
                    let inside = inside.clone();
                    let all = workers.change(move |worker| {
                        let before = inside.fetch_add(1, Ordering::SeqCst);
                        let place = worker.index().get();
                        assert!(before < 3, "of two changes at a time");
                        while !(inside.load(Ordering::SeqCst)).is_multiple_of(3) {
                            std::thread::yield_now();
                        }
                        inside.store(0, Ordering::SeqCst);
                        place
                    });
                    assert_eq!(all, Some(vec![0, 1, 2]));
                    assert_eq!(workers.ask(|worker| worker.index().get()), Some(vec![0, 1, 2]));
                }
            })
        })
        .collect();
    changers.into_iter().for_each(|changer| changer.join().unwrap());
    // One ends by itself; then one panics in the middle of a change.
    workers.get(1).unwrap().ask(Worker::stop).unwrap();
    // It does what it is told in its last round.
    while workers.get(1).unwrap().ask(|_| ()).is_some() {}
    assert_eq!(workers.change(|worker| worker.index().get()), None);
    assert_eq!(workers.change(|worker| assert_ne!(worker.index().get(), 2, "as meant")), None);
    assert_eq!(workers.get(0).unwrap().ask(|worker| worker.index().get()), Some(0));
    workers.get(0).unwrap().ask(Worker::stop).unwrap();
    let ended: Vec<bool> = threads.into_iter().map(|thread| thread.join().is_ok()).collect();
    assert_eq!(ended, [true, true, false]);
}

#[test]
fn numbers_need_not_be_the_same_everywhere() {
    let mut gateway = gateway(2, 64, &[Direction::Seal], 2);
    gateway.workers[1].engine().remove_sa(SessionId(0)).unwrap();
    let other = SaConfig { spi: Spi::new(0x1007).unwrap(), ..sa(7) };
    let here = gateway.workers[1].engine().add_outbound(other.clone(), IvRange::for_throwaway_key(), &keys());
    let there = gateway.workers[0].engine().add_remote(Direction::Seal, other, 1);
    assert_eq!((here.unwrap(), there.unwrap()), (SessionId(0), SessionId(2)));
    let (workers, threads) = gateway.run();
    gateway.programs[0].send(&plain(7, 3)).unwrap();
    assert_eq!(spi_and_sequence(&receive(&gateway.peers[1])), (0x1007, 1));
    end(&workers, threads);
}
