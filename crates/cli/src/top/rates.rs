//! What happened between two looks.

use std::collections::HashMap;

use forebay_gateway::control::{LinkDoc, ProcessorDoc, SaDoc, StatusDoc};

/// A gateway between two looks; rates are a second's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Its version.
    pub version: String,
    /// Its file.
    pub config: String,
    /// Time since it began to run, in seconds.
    pub uptime_s: f64,
    /// Packets under way, and room for more.
    pub in_flight: (u64, u64),
    /// The processors.
    pub processors: Vec<ProcessorRates>,
    /// The SAs.
    pub sas: Vec<SaRates>,
    /// The links.
    pub links: Vec<LinkRates>,
    /// Reason, packets a second, packets in all; those of links by their names.
    pub drops: Vec<(String, f64, u64)>,
}

/// A processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessorRates {
    /// Its name.
    pub name: String,
    /// Core or card.
    pub kind: String,
    /// Whether it is taken out.
    pub out: bool,
    /// Share of its time that it worked, 0 to 1.
    pub load: f64,
    /// Packets a second.
    pub packets: f64,
    /// Bits a second.
    pub bits: f64,
    /// Packets in a job.
    pub bundle: f64,
    /// Jobs that wait.
    pub queue: u64,
    /// Factor on its finishing time.
    pub alpha: f64,
    /// From dispatch to answer: predicted, actual, and how far apart, means of the jobs in between, in seconds.
    pub response: Option<(f64, f64, f64)>,
}

/// An SA.
#[derive(Clone, Debug, Default, PartialEq)]
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
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRates {
    /// Its name.
    pub name: String,
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
        let processors =
            now.processors.iter().map(|one| rate.processor(old.get(&(one.engine, &one.name)), one));
        let old: HashMap<_, _> =
            before.sas.iter().map(|sa| ((&sa.direction, &sa.spi, &sa.remote, &sa.name), sa)).collect();
        let sas =
            now.sas.iter().map(|sa| rate.sa(old.get(&(&sa.direction, &sa.spi, &sa.remote, &sa.name)), sa));
        let old: HashMap<_, _> = before.links.iter().map(|link| (&link.name, link)).collect();
        let links = now.links.iter().map(|link| rate.link(old.get(&link.name), link));
        Rates {
            version: now.version.clone(),
            config: now.config.clone(),
            uptime_s: now.uptime_s,
            in_flight: now
                .engines
                .iter()
                .fold((0, 0), |(in_flight, room), one| (in_flight + one.in_flight, room + one.room)),
            processors: processors.collect(),
            sas: sas.collect(),
            links: links.collect(),
            drops: rate.drops(before, now),
        }
    }
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
        ProcessorRates {
            name: now.name.clone(),
            kind: now.kind.clone(),
            out: now.out,
            load: ((now.busy_s - old.busy_s) * self.0).clamp(0.0, 1.0),
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
        }
    }

    fn link(&self, old: Option<&&LinkDoc>, now: &LinkDoc) -> LinkRates {
        let of = |value: fn(&LinkDoc) -> u64| self.of(old.map(|old| value(old)), value(now));
        LinkRates {
            name: now.name.clone(),
            received: (of(|link| link.packets_in), 8.0 * of(|link| link.bytes_in)),
            sent: (of(|link| link.packets_out), 8.0 * of(|link| link.bytes_out)),
            queue: now.queue,
        }
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
            let old = before.links.iter().find(|old| old.name == link.name);
            for (reason, &count) in &link.drops {
                let old = old.and_then(|old| old.drops.get(reason).copied());
                drops.push((format!("{}: {reason}", link.name), self.of(old, count), count));
            }
        }
        drops.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)));
        drops
    }
}
