//! Rates between two polls of a gateway, for `forebay top` and the live page.

use std::collections::HashMap;

use serde::Serialize;

use super::{LimitsDoc, LinkDoc, ProcessorDoc, SaDoc, StatusDoc};

/// A gateway between two looks; rates are a second's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Its version.
    pub version: String,
    /// Its file.
    pub config: String,
    /// Time since it began to run, in seconds.
    pub uptime_s: f64,
    /// How it stands with the gateways that it works with, and whether that needs somebody's attention.
    pub others: Option<(String, bool)>,
    /// Packets in flight, and room for more.
    pub in_flight: (u64, u64),
    /// The processors.
    pub processors: Vec<ProcessorRates>,
    /// The SAs.
    pub sas: Vec<SaRates>,
    /// The links.
    pub links: Vec<LinkRates>,
    /// Late jobs, redone jobs and refused packets a second.
    pub odd: [f64; 3],
    /// Reason, packets a second, packets in all; those of links by their names.
    pub drops: Vec<(String, f64, u64)>,
}

/// A processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessorRates {
    /// Its name.
    pub name: String,
    /// Core or card.
    pub kind: String,
    /// Whether it is taken out.
    pub out: bool,
    /// Share of its time that it worked, 0 to 1: of the core that runs an engine whatever it did, of others crypto.
    pub load: f64,
    /// Share of its time that was crypto.
    pub crypto: f64,
    /// Packets a second.
    pub packets: f64,
    /// Bits a second.
    pub bits: f64,
    /// Packets in a job.
    pub bundle: f64,
    /// Jobs that wait.
    pub queue: u64,
    /// Factor on its finish time.
    pub alpha: f64,
    /// From dispatch to answer: predicted, actual, and how far apart, means of the jobs in between, in seconds.
    pub response: Option<(f64, f64, f64)>,
}

/// An SA.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SaRates {
    /// Its name.
    pub name: String,
    /// `out` or `in`.
    pub direction: String,
    /// Its SPI.
    pub spi: String,
    /// The peer.
    pub remote: String,
    /// Its proposal.
    pub proposal: String,
    /// Packets a second.
    pub packets: f64,
    /// Bits a second.
    pub bits: f64,
    /// Forged packets a second.
    pub forged: f64,
    /// Replayed packets a second.
    pub replayed: f64,
    /// Packets in all.
    pub total: u64,
    /// `tunnel` or `transport`.
    pub mode: String,
    /// Its hard limits.
    pub hard: LimitsDoc,
    /// What is left until each of them.
    pub left: LimitsDoc,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkRates {
    /// Its name.
    pub name: String,
    /// Whether programs are on its other side.
    pub is_inside: bool,
    /// Packets and bits a second that came in.
    pub received: (f64, f64),
    /// Packets and bits a second that went out.
    pub sent: (f64, f64),
    /// Packets that wait.
    pub queue: u64,
}

impl Rates {
    /// What happened from `before` to `now`. What was not there before, or counts from the beginning again, counts
    /// from zero.
    pub fn between(before: &StatusDoc, now: &StatusDoc) -> Rates {
        // A gateway that was started again has nothing in common with the old one.
        let same = now.uptime_s >= before.uptime_s && now.pid == before.pid;
        let nothing = StatusDoc::default();
        let before = if same { before } else { &nothing };
        let seconds = now.uptime_s - before.uptime_s;
        let rate = Rate(if seconds > 0.0 { 1.0 / seconds } else { 0.0 });
        let old: HashMap<_, _> = before.processors.iter().map(|one| ((one.engine, &one.name), one)).collect();
        let several = now.engines.len() > 1;
        let processors = now.processors.iter().map(|one| ProcessorRates {
            name: at_engine(&one.name, one.engine, several),
            ..rate.processor(old.get(&(one.engine, &one.name)), one)
        });
        let mut processors: Vec<ProcessorRates> = processors.collect();
        for (place, one) in now.processors.iter().enumerate() {
            // The first of an engine is the core that runs it.
            let is_core = place == 0 || now.processors[place - 1].engine != one.engine;
            if let Some(core) = now.engines.get(one.engine).filter(|core| is_core && core.cpu_s > 0.0) {
                let old = before.engines.get(one.engine).map_or(0.0, |old| old.cpu_s);
                processors[place].load = ((core.cpu_s - old) * rate.0).clamp(0.0, 1.0);
            }
        }
        let old: HashMap<_, _> =
            before.sas.iter().map(|sa| ((&sa.direction, &sa.spi, &sa.remote, &sa.name), sa)).collect();
        let sas =
            now.sas.iter().map(|sa| rate.sa(old.get(&(&sa.direction, &sa.spi, &sa.remote, &sa.name)), sa));
        let old: HashMap<_, _> = before.links.iter().map(|link| ((link.engine, &link.name), link)).collect();
        let links = now.links.iter().map(|link| LinkRates {
            name: at_engine(&link.name, link.engine, several),
            ..rate.link(old.get(&(link.engine, &link.name)), link)
        });
        Rates {
            version: now.version.clone(),
            config: now.config.clone(),
            uptime_s: now.uptime_s,
            others: others(now),
            in_flight: now
                .engines
                .iter()
                .fold((0, 0), |(in_flight, room), one| (in_flight + one.in_flight, room + one.room)),
            processors,
            odd: rate.odd(before, now),
            sas: sas.collect(),
            links: links.collect(),
            drops: rate.drops(before, now),
        }
    }
}

/// A name with the number of the engine that it belongs to, where there are several.
pub fn at_engine(name: &str, engine: usize, several: bool) -> String {
    if several { format!("{name}@{engine}") } else { name.to_owned() }
}

/// The pair or the cluster, in a few words.
fn others(now: &StatusDoc) -> Option<(String, bool)> {
    let pair = now.pair.as_ref().map(|pair| match (&pair.peer, pair.in_sync) {
        (None, _) => (format!("pair: {}, peer NOT heard", pair.role), true),
        (Some(_), false) => (format!("pair: {}, NOT in sync", pair.role), true),
        (Some(_), true) => (format!("pair: {}, in sync", pair.role), false),
    });
    let cluster = now.cluster.as_ref().map(|cluster| match cluster.connected {
        true => (format!("cluster: {} of {} shares", cluster.serves.len(), cluster.shares), false),
        false => ("cluster: NO answer of etcd".to_owned(), true),
    });
    pair.or(cluster)
}

/// One over the seconds in between.
struct Rate(f64);

impl Rate {
    fn of(&self, before: Option<u64>, now: u64) -> f64 {
        now.checked_sub(before.unwrap_or(0)).unwrap_or(now) as f64 * self.0
    }

    fn processor(&self, old: Option<&&ProcessorDoc>, now: &ProcessorDoc) -> ProcessorRates {
        let nothing = ProcessorDoc::default();
        let old = old.filter(|old| old.jobs <= now.jobs).map_or(&nothing, |old| *old);
        let jobs = (now.jobs - old.jobs) as f64;
        let mean = |old: f64, now: f64| (now - old) / jobs;
        let response = (jobs > 0.0).then(|| {
            (
                mean(old.predicted_response_s, now.predicted_response_s),
                mean(old.response_s, now.response_s),
                mean(old.response_error_s, now.response_error_s),
            )
        });
        let packets = self.of(Some(old.packets), now.packets);
        let crypto = ((now.busy_s - old.busy_s) * self.0).clamp(0.0, 1.0);
        ProcessorRates {
            name: now.name.clone(),
            kind: now.kind.clone(),
            out: now.out,
            load: crypto,
            crypto,
            packets,
            bits: 8.0 * self.of(Some(old.bytes), now.bytes),
            bundle: if jobs > 0.0 { (now.packets - old.packets) as f64 / jobs } else { 0.0 },
            queue: now.queue,
            alpha: now.alpha,
            response,
        }
    }

    fn sa(&self, old: Option<&&SaDoc>, now: &SaDoc) -> SaRates {
        let of = |value: fn(&SaDoc) -> u64| self.of(old.map(|old| value(old)), value(now));
        SaRates {
            name: now.name.clone(),
            direction: now.direction.clone(),
            spi: now.spi.clone(),
            remote: now.remote.clone(),
            proposal: now.proposal.clone(),
            packets: of(|sa| sa.packets),
            bits: 8.0 * of(|sa| sa.bytes),
            forged: of(|sa| sa.auth_failures),
            replayed: of(|sa| sa.replays),
            total: now.packets,
            mode: now.mode.clone(),
            hard: now.lifetime.hard.clone(),
            left: now.left.clone(),
        }
    }

    fn link(&self, old: Option<&&LinkDoc>, now: &LinkDoc) -> LinkRates {
        let of = |value: fn(&LinkDoc) -> u64| self.of(old.map(|old| value(old)), value(now));
        LinkRates {
            name: now.name.clone(),
            is_inside: now.side == "inside",
            received: (of(|link| link.packets_in), 8.0 * of(|link| link.bytes_in)),
            sent: (of(|link| link.packets_out), 8.0 * of(|link| link.bytes_out)),
            queue: now.queue,
        }
    }

    fn odd(&self, before: &StatusDoc, now: &StatusDoc) -> [f64; 3] {
        let late = |status: &StatusDoc| status.processors.iter().map(|one| one.late).sum::<u64>();
        let redone = |status: &StatusDoc| status.engines.iter().map(|one| one.redone).sum::<u64>();
        let refused =
            |status: &StatusDoc| status.sas.iter().map(|sa| sa.auth_failures + sa.replays).sum::<u64>();
        [
            late(now).saturating_sub(late(before)),
            redone(now).saturating_sub(redone(before)),
            refused(now).saturating_sub(refused(before)),
        ]
        .map(|count| count as f64 * self.0)
    }

    /// The reasons, those of now first.
    fn drops(&self, before: &StatusDoc, now: &StatusDoc) -> Vec<(String, f64, u64)> {
        let mut drops: Vec<(String, f64, u64)> = now
            .drops
            .iter()
            .map(|(reason, &count)| {
                (reason.clone(), self.of(before.drops.get(reason).copied(), count), count)
            })
            .collect();
        for link in &now.links {
            let old = before.links.iter().find(|old| (&old.name, old.engine) == (&link.name, link.engine));
            let name = at_engine(&link.name, link.engine, now.engines.len() > 1);
            for (reason, &count) in &link.drops {
                let old = old.and_then(|old| old.drops.get(reason).copied());
                drops.push((format!("{name}: {reason}"), self.of(old, count), count));
            }
        }
        drops.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)));
        drops
    }
}

#[cfg(test)]
use super::EngineDoc;
#[cfg(test)]
mod sample;

#[cfg(test)]
mod tests {
    use super::sample::status;
    use super::*;

    #[test]
    fn rates_are_differences_over_the_time_in_between() {
        let rates = Rates::between(&status(10), &status(12));
        let helper = &rates.processors[1];
        assert_eq!((helper.packets, helper.bits, helper.load, helper.bundle), (4_000.0, 32e6, 0.25, 4.0));
        // The core does more than crypto.
        let core = &rates.processors[0];
        assert!((core.load - 0.3).abs() < 1e-9 && core.crypto == 0.0, "{core:?}");
        assert_eq!((helper.load, helper.crypto), (0.25, 0.25));
        assert_eq!(rates.odd, [0.0, 2.0, 1.0]);
        let (predicted, actual, off) = helper.response.unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(predicted, 2e-6) && near(actual, 3e-6) && near(off, 1.5e-6));
        assert_eq!((rates.sas[7].packets, rates.sas[7].bits, rates.sas[5].forged), (7.0, 56_000.0, 1.0));
        assert_eq!((rates.links[0].received, rates.links[0].sent), ((2_000.0, 16e6), (1_000.0, 8e6)));
        let drops: Vec<_> = rates.drops.iter().map(|drop| (drop.0.as_str(), drop.1, drop.2)).collect();
        assert_eq!(drops[0], ("in_state_seq_error", 7.0, 84));
        assert_eq!(drops[3], ("out_no_states", 0.0, 5));
    }

    #[test]
    fn another_process_or_a_new_sa_counts_from_zero() {
        let again = StatusDoc { pid: 7, ..status(3) };
        assert_eq!(Rates::between(&status(10), &again).processors[0].packets, 4_000.0);
        assert_eq!(Rates::between(&status(10), &status(3)).sas[6].packets, 6.0);
        let mut rekeyed = status(12);
        rekeyed.sas[9].packets = 2;
        rekeyed.sas[8].spi = "0x00000009".to_owned();
        let rates = Rates::between(&status(10), &rekeyed);
        assert_eq!((rates.sas[9].packets, rates.sas[8].packets), (1.0, 48.0));
        // The same document twice has no rates, and no end of them either.
        let still = Rates::between(&status(10), &status(10));
        assert!(
            still
                .processors
                .iter()
                .all(|one| one.packets == 0.0 && one.load == 0.0 && one.response.is_none())
        );
    }
}
