//! SAs that are bound to CPUs (RFC 9611): each worker sends by its own, the rest by the fallback SA, and nothing is lost or
//! repeated when such SAs come and go.

#![allow(clippy::disallowed_methods)] // a test that waits has an end

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_config::Changes;
use forebay_crypto::{Direction, SaKeys, SecretBytes};
use forebay_ipsec::{IvRange, SaConfig, Spi};
use forebay_sas::{SaEntry, SasFile};
use forebay_worker::Worker;
use support::{end, gateway, number, plain, receive, sa, spi_and_sequence};

/// Packets that may be in flight: fewer than any queue has room for.
const IN_FLIGHT: u64 = 128;

/// An outbound SA for the traffic of `sa(0)`.
fn bound(spi: u32, cpu: Option<u32>) -> SaConfig {
    SaConfig { spi: Spi::new(spi).unwrap(), cpu, ..sa(0) }
}

fn keys(spi: u32) -> SaKeys {
    let mut key = vec![7; 20];
    key[..4].copy_from_slice(&spi.to_be_bytes());
    SaKeys::new("aes128gcm16".parse().unwrap(), &SecretBytes::new(key), &SecretBytes::new(vec![])).unwrap()
}

fn file(sas: &[(u32, Option<u32>)]) -> SasFile {
    let entry = |&(spi, cpu): &(u32, Option<u32>)| SaEntry {
        config: bound(spi, cpu),
        direction: Direction::Seal,
        keys: keys(spi),
        allow_weak: false,
        outer: None,
        remote_name: None,
        line: 1,
    };
    SasFile { entries: sas.iter().map(entry).collect(), policies: vec![], warnings: vec![] }
}

/// Of a file whose first SA stays, and whose others are new.
fn changes(new: &SasFile, old: &SasFile) -> Changes {
    let mut kept = vec![None; new.entries.len()];
    if !old.entries.is_empty() {
        kept[0] = Some(0);
    }
    Changes {
        kept,
        removed: (1..old.entries.len()).collect(),
        moved: vec![],
        policies: false,
        biases: vec![],
        log: false,
        taps: false,
        metrics: false,
        esp_sa_export: false,
        restart: vec![],
    }
}

/// Puts `new` in the place of `old`, as a reload does.
fn reload(worker: &mut Worker, old: &SasFile, new: &SasFile) {
    let changes = changes(new, old);
    let gone = worker.removed(&changes);
    worker.finish(&gone);
    let ivs = new.entries.iter().map(|_| IvRange::for_throwaway_key()).collect();
    worker.install(new, &changes, ivs).unwrap();
}

#[test]
fn each_worker_sends_by_its_own_sa_and_the_rest_by_the_fallback_sa() {
    const WORKERS: usize = 3;
    let (fallback, first, last) = (0x1000, 0x1011, 0x1010);
    let mut near = gateway(WORKERS, &[], 0);
    let (workers, threads) = near.run();
    let all = Arc::new(file(&[(fallback, None), (first, Some(0)), (last, Some(2)), (0x1012, Some(3))]));
    let install = all.clone();
    workers.change(move |worker| reload(worker, &file(&[]), &install)).unwrap();
    for round in 0..20 {
        for (worker, spi) in [(0, first), (1, fallback), (2, last)] {
            near.programs[worker].send(&plain(0, round)).unwrap();
            assert_eq!(spi_and_sequence(&receive(&near.wire)), (spi, round + 1));
        }
    }
    // Without its SA worker 2 has the fallback SA.
    let reduced = Arc::new(file(&[(fallback, None)]));
    workers.change(move |worker| reload(worker, &all, &reduced)).unwrap();
    for (round, worker) in [2, 0, 2, 1].into_iter().enumerate() {
        near.programs[worker].send(&plain(0, 7)).unwrap();
        assert_eq!(spi_and_sequence(&receive(&near.wire)), (fallback, 21 + round as u32));
    }
    let drops = workers.ask(|worker| worker.engine().drops().total()).unwrap();
    assert_eq!(drops, [0; WORKERS]);
    end(&workers, threads);
}

#[test]
fn reloads_that_add_and_remove_sas_of_cpus_under_traffic_lose_and_repeat_nothing() {
    const WORKERS: usize = 2;
    const RELOADS: u32 = 150;
    let mut near = gateway(WORKERS, &[], 0);
    let mut far = gateway(1, &[], 0);
    let ((workers, threads), (far_workers, far_threads)) = (near.run(), far.run());
    let expect = |spi: u32| {
        let here = bound(spi, None);
        let there = SaConfig {
            local: here.remote,
            remote: here.local,
            local_ts: here.remote_ts,
            remote_ts: vec![],
            replay_window: 4_096,
            ..here
        };
        far_workers.change(move |worker| worker.engine().add_inbound(there, &keys(spi)).map(drop).unwrap())
    };
    expect(0x1000).unwrap();
    let mut installed = Arc::new(file(&[(0x1000, None)]));
    let first = installed.clone();
    workers.change(move |worker| reload(worker, &file(&[]), &first)).unwrap();

    // Programs at both queues, peers that pass on what they get, and who counts behind them.
    let (sent, heard, done) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut talkers = vec![];
    for (worker, program) in near.programs.drain(..).enumerate() {
        let (sent, heard, done) = (sent.clone(), heard.clone(), done.clone());
        talkers.push(std::thread::spawn(move || {
            let mut next = 0;
            while done.load(Ordering::Relaxed) == 0 {
                if sent.load(Ordering::Relaxed) - heard.load(Ordering::Relaxed) >= IN_FLIGHT {
                    std::thread::yield_now();
                    continue;
                }
                let mut packet = plain(0, next);
                packet[24..28].copy_from_slice(&(worker as u32).to_be_bytes());
                sent.fetch_add(1, Ordering::Relaxed);
                program.send(&packet).unwrap();
                next += 1;
            }
            next
        }));
    }
    let spis = Arc::new(std::sync::Mutex::new(HashSet::new()));
    let wire = near.wire;
    let (to, heard_of) = (far.peers[0].try_clone().unwrap(), spis.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        // Ends with the socket.
        while let Ok(len @ 1..) = wire.recv(&mut buffer) {
            heard_of.lock().unwrap().insert(spi_and_sequence(&buffer[..len]).0);
            to.send(&buffer[..len]).unwrap();
        }
    });
    let program = far.lan;
    let counted = heard.clone();
    // Ends if none comes any more.
    let counter = std::thread::spawn(move || {
        let mut seen = HashSet::new();
        loop {
            let packet = receive(&program);
            let flow = u32::from_be_bytes(*packet[24..].first_chunk().unwrap());
            assert!(seen.insert((flow, number(&packet))), "a packet is repeated");
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    for round in 0..RELOADS {
        let sas = |cpu: u32| (0x2000 + 2 * round + cpu, Some(cpu));
        let sas = match round % 3 {
            0 => vec![(0x1000, None), sas(0), sas(1)],
            1 => vec![(0x1000, None), sas(1)],
            _ => vec![(0x1000, None)],
        };
        sas.iter().skip(1).for_each(|&(spi, _)| expect(spi).unwrap());
        let (old, new) = (installed, Arc::new(file(&sas)));
        installed = new.clone();
        workers.change(move |worker| reload(worker, &old, &new)).unwrap();
        let before = heard.load(Ordering::Relaxed);
        while heard.load(Ordering::Relaxed) < before + 50 {
            std::thread::yield_now();
            assert!(!counter.is_finished(), "a packet is lost or repeated");
        }
    }
    done.store(1, Ordering::Relaxed);
    let total: u64 = talkers.into_iter().map(|talker| u64::from(talker.join().unwrap())).sum();
    while heard.load(Ordering::Relaxed) < total {
        std::thread::yield_now();
        assert!(!counter.is_finished(), "{} of {total} packets came", heard.load(Ordering::Relaxed));
    }
    assert_eq!(heard.load(Ordering::Relaxed), total);
    let spis = spis.lock().unwrap();
    for cpu in 0..WORKERS as u32 {
        assert!(spis.iter().any(|spi| *spi >= 0x2000 && spi % 2 == cpu), "{cpu}: {spis:x?}");
    }
    assert!(spis.contains(&0x1000), "the fallback SA had packets too");
    drop(spis);
    for workers in [&workers, &far_workers] {
        let drops = workers.ask(|worker| worker.engine().drops().total()).unwrap();
        assert!(drops.iter().all(|drops| *drops == 0), "{drops:?}");
    }
    end(&workers, threads);
    end(&far_workers, far_threads);
}
