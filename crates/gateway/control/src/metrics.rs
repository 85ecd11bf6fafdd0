//! The status in Prometheus's text format (exposition format 0.0.4).
//!
//! No client library is used: those keep counters of their own, which code increments. Here the workers
//! count, and their counts are read as one status, which this module prints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use forebay_admission::Place;
use forebay_drops::DropReason;

use super::http::{Body, Head, Reply, Site};
use super::{Answer, Request, Response};
use super::{ClusterDoc, GuardDoc, IptfsDoc, LimitsDoc, OffloadsDoc, PairDoc, SaDoc, StatusDoc, TapsDoc};

/// The content type for HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long figures are given again: what they cost the loops that move packets does not grow with those who ask.
const FRESH: StdDuration = StdDuration::from_secs(1);

/// `/metrics`.
pub(super) struct Figures {
    answer: Arc<Answer>,
    /// The last text, and when it was made.
    last: Mutex<Option<(Instant, Arc<str>)>>,
    exporter: Mutex<Exporter>,
}

impl Figures {
    /// Those of a gateway that answers so.
    pub fn new(answer: Arc<Answer>) -> Figures {
        Figures { answer, last: Mutex::default(), exporter: Mutex::default() }
    }

    /// The metrics as they were within the last second; those who ask at once have the same.
    #[allow(clippy::disallowed_methods)] // the age of an answer
    fn text(&self) -> Option<Arc<str>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = last.as_ref().filter(|(made, _)| made.elapsed() < FRESH) {
            return Some(text.clone());
        }
        let Response::Status(status) = (self.answer)(Request::Status) else { return None };
        let text = self.exporter.lock().unwrap_or_else(PoisonError::into_inner).text(&status);
        let text: Arc<str> = text.into();
        *last = Some((Instant::now(), text.clone()));
        Some(text)
    }
}

impl Site for Figures {
    fn get(&self, head: &Head, place: &Place) -> Reply {
        if head.path != "/metrics" {
            return Reply::text("404 Not Found", "see /metrics");
        }
        match place.busy(|| self.text()) {
            Some(text) => Reply { status: "200 OK", kind: CONTENT_TYPE, body: Body::Whole(text) },
            None => Reply::text("503 Service Unavailable", "the gateway does not respond"),
        }
    }
}

/// The document as text.
pub fn text(status: &StatusDoc) -> String {
    Exporter::default().text(status)
}

/// Makes one text after the other. Between them it keeps what SAs that are gone have counted: a rekey puts another SA in
/// the place of one, and the counters of both are one series, which must not fall.
#[derive(Default)]
pub struct Exporter {
    /// By SPI, peer and direction: the SAs of the last status with what they had counted.
    last: HashMap<(String, String, String), (SaLabels, [u64; OF_SA])>,
    /// By labels: what SAs counted that are gone.
    gone: HashMap<SaLabels, [u64; OF_SA]>,
}

/// `sa`, `direction` and `remote`: what stays the same when an SA is rekeyed.
type SaLabels = [String; 3];

/// Counters of an SA: of any, and of one that aggregates too.
const OF_ANY_SA: usize = 5;
const OF_SA: usize = OF_ANY_SA + 6;

fn counts_of(sa: &SaDoc) -> [u64; OF_SA] {
    let IptfsDoc { payloads, all_pad, lost, packets, reassembled, marked } = sa.iptfs.unwrap_or_default();
    let SaDoc { packets: all, bytes, auth_failures, replays, unsure, .. } = *sa;
    [all, bytes, auth_failures, replays, unsure, payloads, all_pad, lost, packets, reassembled, marked]
}

impl Exporter {
    /// The document as text.
    pub fn text(&mut self, status: &StatusDoc) -> String {
        let mut text = Text { out: String::with_capacity(16_384 + 512 * status.sas.len()), family: None };
        text.family("forebay_info", "gauge", "Version of the running gateway.");
        text.sample(&[("version", &status.version)], 1);
        text.family("forebay_uptime_seconds", "gauge", "Time since the gateway started.");
        text.sample(&[], status.uptime_s);
        self.sas(status, &mut text);
        processors(status, &mut text);
        links(status, &mut text);
        drops(&status.drops, &mut text);
        engines(status, &mut text);
        taps(&status.taps, &mut text);
        guard(&status.guard, &mut text);
        offloads(&status.offloads, &mut text);
        status.pair.iter().for_each(|one| pair(one, &mut text));
        status.cluster.iter().for_each(|one| cluster(one, &mut text));
        text.end_family();
        text.out
    }

    fn sas(&mut self, status: &StatusDoc, text: &mut Text) {
        self.note(status);
        let families = [
            ("forebay_sa_packets_total", "Packets processed by the SA."),
            ("forebay_sa_bytes_total", "Bytes of the SA's packets outside the tunnel."),
            ("forebay_sa_auth_failures_total", "Packets with an ICV failure."),
            ("forebay_sa_replays_total", "Packets rejected by the replay check."),
            (
                "forebay_sa_unsure_total",
                "Packets rejected by the replay check because they may have been received before a crash; included in forebay_sa_replays_total.",
            ),
            ("forebay_sa_iptfs_payloads_total", "Received IP-TFS payloads of the SA."),
            (
                "forebay_sa_iptfs_all_pad_payloads_total",
                "Received IP-TFS payloads that contained only padding.",
            ),
            (
                "forebay_sa_iptfs_lost_payloads_total",
                "IP-TFS payloads that were considered lost (`lost_after`, `reorder_window`).",
            ),
            ("forebay_sa_iptfs_packets_total", "Inner packets extracted from IP-TFS payloads."),
            ("forebay_sa_iptfs_reassembled_total", "Inner packets reassembled from several IP-TFS payloads."),
            (
                "forebay_sa_iptfs_marked_payloads_total",
                "Received IP-TFS payloads whose outer packet had a congestion mark (ECN CE).",
            ),
        ];
        for (place, (name, help)) in families.into_iter().enumerate() {
            text.family(name, "counter", help);
            let of_gone = |sa: &SaDoc| self.gone.get(&labels_of(sa)).map_or(0, |counts| counts[place]);
            let mut said = HashSet::new();
            for sa in &status.sas {
                if place >= OF_ANY_SA && sa.iptfs.is_none() {
                    continue;
                }
                let labels = labels_of(sa);
                let counts = counts_of(sa);
                let before = if said.insert(labels.clone()) { of_gone(sa) } else { 0 };
                text.sample(&with_names(&labels), before + counts[place]);
            }
        }
        let said = "Current rate of an outbound IP-TFS SA with a fixed rate, in payloads per second: less than the configured rate if the path is congested.";
        // While an SA is replaced by another, both send.
        text.family_of("forebay_sa_iptfs_payloads_per_second", "gauge", said, |one, other| one + other);
        for sa in &status.sas {
            if let Some(rate) = sa.iptfs_rate {
                text.sample(&with_names(&labels_of(sa)), rate as f64);
            }
        }
        let left: [OfLeft; 3] = [
            ("forebay_sa_left_seconds", "Time until the SA's hard lifetime ends.", |left| {
                [left.time_s, left.use_time_s].into_iter().flatten().min_by(f64::total_cmp)
            }),
            ("forebay_sa_left_bytes", "Bytes until the SA's hard lifetime ends.", |left| {
                left.bytes.map(|bytes| bytes as f64)
            }),
            ("forebay_sa_left_packets", "Packets until the SA's hard lifetime ends.", |left| {
                left.packets.map(|packets| packets as f64)
            }),
        ];
        for (name, help, value) in left {
            // While an SA is replaced by another, what the later one has left counts.
            text.family_of(name, "gauge", help, f64::max);
            for sa in &status.sas {
                if let Some(value) = value(&sa.left) {
                    text.sample(&with_names(&labels_of(sa)), value);
                }
            }
        }
    }

    /// Takes over the counts of a status.
    fn note(&mut self, status: &StatusDoc) {
        let before = std::mem::take(&mut self.last);
        for sa in &status.sas {
            let counts = counts_of(sa);
            let key = (sa.spi.clone(), sa.remote.clone(), sa.direction.clone());
            self.last.insert(key, (labels_of(sa), counts));
        }
        for (key, (labels, counts)) in before {
            // One that counts anew is another one with the same SPI.
            if self.last.get(&key).is_none_or(|(now, later)| *now != labels || later[0] < counts[0]) {
                let sums = self.gone.entry(labels).or_default();
                sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
        // A series without any SA ends.
        let live: HashSet<&SaLabels> = self.last.values().map(|(labels, _)| labels).collect();
        self.gone.retain(|labels, _| live.contains(labels));
    }
}

/// What is left of the life of an SA: name, what it is, and its value.
type OfLeft = (&'static str, &'static str, fn(&LimitsDoc) -> Option<f64>);

fn with_names(labels: &SaLabels) -> [(&'static str, &str); 3] {
    let [sa, direction, remote] = labels;
    [("sa", sa), ("direction", direction), ("remote", remote)]
}

/// The labels of an SA. The SPI is none of them, nor is a name that is made of it, as those of the kernel's SAs are: each rekey
/// would be a new series.
fn labels_of(sa: &SaDoc) -> SaLabels {
    let of_spi = sa.name.strip_prefix("xfrm-").is_some_and(|rest| sa.spi.ends_with(rest));
    let name = if of_spi { "xfrm".to_owned() } else { sa.name.clone() };
    [name, sa.direction.clone(), sa.remote.clone()]
}

/// The text so far, and the family of samples that is being written. In a family no set of labels stands twice, as
/// Prometheus would drop the whole answer: samples that have the same are made one.
struct Text {
    out: String,
    family: Option<Family>,
}

struct Family {
    name: &'static str,
    /// What two samples with the same labels are together.
    merge: fn(f64, f64) -> f64,
    samples: Vec<(String, f64)>,
    places: HashMap<String, usize>,
}

/// What a sample may be.
trait Number {
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty)*) => { $(impl Number for $type { fn number(self) -> f64 { self as f64 } })* };
}

numbers! { u8 i32 u64 usize f64 }

impl Number for &u64 {
    fn number(self) -> f64 {
        *self as f64
    }
}

impl Text {
    /// Begins a family of samples, of which those with the same labels are added.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family_of(name, kind, help, |one, two| one + two);
    }

    fn family_of(&mut self, name: &'static str, kind: &str, help: &str, merge: fn(f64, f64) -> f64) {
        self.end_family();
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self.family = Some(Family { name, merge, samples: Vec::new(), places: HashMap::new() });
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: impl Number) {
        let Some(family) = &mut self.family else { return };
        let (labels, value) = (written(labels), value.number());
        match family.places.get(&labels) {
            Some(&place) => family.samples[place].1 = (family.merge)(family.samples[place].1, value),
            None => {
                family.places.insert(labels.clone(), family.samples.len());
                family.samples.push((labels, value));
            }
        }
    }

    fn end_family(&mut self) {
        let Some(family) = self.family.take() else { return };
        for (labels, value) in family.samples {
            let _ = writeln!(self.out, "{}{labels} {value}", family.name);
        }
    }
}

/// Labels in braces, their values escaped.
fn written(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (at, (label, value)) in labels.iter().enumerate() {
        let _ = write!(text, "{}{label}=\"", if at == 0 { '{' } else { ',' });
        for char in value.chars() {
            match char {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                char => text.push(char),
            }
        }
        text.push('"');
    }
    if !labels.is_empty() {
        text.push('}');
    }
    text
}

/// A family of the links: name, what it is, and its values in and out.
type OfLink = (&'static str, &'static str, [fn(&super::LinkDoc) -> u64; 2]);
/// A family of the captures: name, what it is, and its value.
type OfSide = (&'static str, &'static str, fn(&super::TapSideDoc) -> u64);
/// A family of the engines: name, kind, what it is, and its value.
type OfEngine = (&'static str, &'static str, &'static str, fn(&super::EngineDoc) -> u64);
/// A family of the processors: name, kind, what it is, and its value.
type OfProcessor = (&'static str, &'static str, &'static str, fn(&super::ProcessorDoc) -> f64);

fn processors(status: &StatusDoc, text: &mut Text) {
    let families: [OfProcessor; 13] = [
        (
            "forebay_processor_jobs_total",
            "counter",
            "Completed jobs; each has one packet or a bundle.",
            |one| one.jobs as f64,
        ),
        ("forebay_processor_packets_total", "counter", "Packets processed by the processor.", |one| {
            one.packets as f64
        }),
        ("forebay_processor_bytes_total", "counter", "Bytes processed by the processor.", |one| {
            one.bytes as f64
        }),
        (
            "forebay_processor_busy_seconds_total",
            "counter",
            "Time that the processor was busy with crypto; a core does other work besides (forebay_engine_cpu_seconds_total).",
            |one| one.busy_s,
        ),
        (
            "forebay_processor_predicted_work_seconds_total",
            "counter",
            "Predicted processing time, summed over jobs.",
            |one| one.predicted_work_s,
        ),
        (
            "forebay_processor_predicted_response_seconds_total",
            "counter",
            "Predicted time from dispatch to completion, summed over jobs.",
            |one| one.predicted_response_s,
        ),
        (
            "forebay_processor_response_seconds_total",
            "counter",
            "Actual time from dispatch to completion, summed over jobs.",
            |one| one.response_s,
        ),
        (
            "forebay_processor_response_error_seconds_total",
            "counter",
            "Absolute error of the predicted time to completion, summed over jobs.",
            |one| one.response_error_s,
        ),
        ("forebay_processor_queue", "gauge", "Jobs waiting at the processor.", |one| one.queue as f64),
        ("forebay_processor_alpha", "gauge", "Factor on the processor's predicted finish time.", |one| {
            one.alpha
        }),
        (
            "forebay_processor_up",
            "gauge",
            "0 while the processor is ejected for errors or missed deadlines, otherwise 1.",
            |one| f64::from(u8::from(!one.out)),
        ),
        ("forebay_processor_removals_total", "counter", "Times that the processor was ejected.", |one| {
            one.removals as f64
        }),
        (
            "forebay_processor_late_total",
            "counter",
            "Completions that arrived after the job deadline.",
            |one| one.late as f64,
        ),
    ];
    for (name, kind, help, value) in families {
        text.family(name, kind, help);
        for one in &status.processors {
            let engine = one.engine.to_string();
            let labels = [("processor", &*one.name), ("kind", &*one.kind), ("engine", &*engine)];
            text.sample(&labels, value(one));
        }
    }
}

fn links(status: &StatusDoc, text: &mut Text) {
    let families: [OfLink; 2] = [
        (
            "forebay_link_packets_total",
            "Packets received from and sent to a link.",
            [|one| one.packets_in, |one| one.packets_out],
        ),
        (
            "forebay_link_bytes_total",
            "Bytes received from and sent to a link, IP headers included.",
            [|one| one.bytes_in, |one| one.bytes_out],
        ),
    ];
    for (name, help, values) in families {
        text.family(name, "counter", help);
        for link in &status.links {
            for (direction, value) in ["in", "out"].into_iter().zip(values) {
                let engine = link.engine.to_string();
                let labels = [
                    ("link", &*link.name),
                    ("side", &*link.side),
                    ("engine", &*engine),
                    ("direction", direction),
                ];
                text.sample(&labels, value(link));
            }
        }
    }
    text.family("forebay_link_queue", "gauge", "Packets waiting to be sent.");
    for link in &status.links {
        let engine = link.engine.to_string();
        let labels = [("link", &*link.name), ("side", &*link.side), ("engine", &*engine)];
        text.sample(&labels, link.queue);
    }
    text.family(
        "forebay_link_drops_total",
        "counter",
        "Packets that a link did not send, or that the kernel dropped before they were received.",
    );
    for link in &status.links {
        for (reason, count) in &link.drops {
            let engine = link.engine.to_string();
            let labels =
                [("link", &*link.name), ("side", &*link.side), ("engine", &*engine), ("reason", reason)];
            text.sample(&labels, count);
        }
    }
    let help = "Packets received by a link that are not for the gateway.";
    text.family("forebay_link_passed_over_total", "counter", help);
    for link in &status.links {
        for (kind, count) in &link.passed_over {
            let engine = link.engine.to_string();
            let labels = [("link", &*link.name), ("side", &*link.side), ("engine", &*engine), ("kind", kind)];
            text.sample(&labels, count);
        }
    }
}

/// Every reason has its sample from the beginning, so that a rate is there when the first packet is dropped.
fn drops(counts: &BTreeMap<String, u64>, text: &mut Text) {
    text.family("forebay_drops_total", "counter", "Packets dropped by the engine.");
    for reason in DropReason::ALL {
        let count = counts.get(reason.name()).copied().unwrap_or(0);
        text.sample(&[("reason", reason.name())], count);
    }
    for (reason, count) in
        counts.iter().filter(|(name, _)| DropReason::ALL.iter().all(|one| one.name() != *name))
    {
        text.sample(&[("reason", reason)], count);
    }
}

fn engines(status: &StatusDoc, text: &mut Text) {
    let families: [OfEngine; 15] = [
        ("forebay_engine_in_flight", "gauge", "Packets in flight.", |one| one.in_flight),
        ("forebay_engine_redone_total", "counter", "Jobs retried by the running core.", |one| one.redone),
        (
            "forebay_engine_strangers_total",
            "counter",
            "Packets received before their SA was installed.",
            |one| one.strangers,
        ),
        (
            "forebay_engine_audits_total",
            "counter",
            "Results of other processors checked by the running core (sampled).",
            |one| one.audits,
        ),
        ("forebay_engine_rounds_total", "counter", "Poll iterations of the worker thread.", |one| one.rounds),
        ("forebay_engine_naps_total", "counter", "Times that the worker thread slept while idle.", |one| {
            one.naps
        }),
        ("forebay_engine_moved_peers_total", "counter", "Peer address changes.", |one| one.moved_peers),
        (
            "forebay_engine_moves_limited_total",
            "counter",
            "Packets whose peer address change exceeded the rate limit.",
            |one| one.moves_limited,
        ),
        ("forebay_engine_keepalives_total", "counter", "NAT keepalives sent.", |one| one.keepalives),
        ("forebay_engine_paths_learnt_total", "counter", "Accepted ICMP path MTU errors.", |one| {
            one.paths_learnt
        }),
        (
            "forebay_engine_paths_unmatched_total",
            "counter",
            "ICMP path MTU errors that quote no recently sent packet.",
            |one| one.paths_unmatched,
        ),
        (
            "forebay_engine_paths_limited_total",
            "counter",
            "ICMP path MTU errors beyond the rate limit.",
            |one| one.paths_limited,
        ),
        (
            "forebay_engine_answers_total",
            "counter",
            "ICMP errors sent to the sources of packets larger than the path MTU.",
            |one| one.answers,
        ),
        (
            "forebay_engine_helped_total",
            "counter",
            "Packets taken from links of other workers that had too much to do.",
            |one| one.helped,
        ),
        (
            "forebay_engine_held_total",
            "counter",
            "Received packets held until their sequence numbers were recorded on disk.",
            |one| one.held,
        ),
    ];
    let help = "CPU time of the worker thread: receiving, sending and polling as well as crypto.";
    text.family("forebay_engine_cpu_seconds_total", "counter", help);
    for (number, engine) in status.engines.iter().enumerate() {
        text.sample(&[("engine", &number.to_string())], engine.cpu_s);
    }
    for (name, kind, help, value) in families {
        text.family(name, kind, help);
        for (number, engine) in status.engines.iter().enumerate() {
            text.sample(&[("engine", &number.to_string())], value(engine));
        }
    }
}

fn guard(guard: &GuardDoc, text: &mut Text) {
    text.family("forebay_guard_up", "gauge", "1 while the guard's rules are installed, otherwise 0.");
    text.sample(&[], u8::from(guard.state == "on"));
    let families = [
        (
            "forebay_guard_forged_total",
            "Dropped cleartext packets with a source in a protected network.",
            guard.forged,
        ),
        ("forebay_guard_leaked_total", "Dropped cleartext packets to a protected network.", guard.leaked),
        ("forebay_guard_restored_total", "Times that the guard's rules were restored.", guard.restored),
        (
            "forebay_guard_routes_restored_total",
            "Routes of protected networks that were restored.",
            guard.routes_restored,
        ),
    ];
    for (name, help, count) in families {
        text.family(name, "counter", help);
        text.sample(&[], count);
    }
}

fn offloads(offloads: &OffloadsDoc, text: &mut Text) {
    let name = "forebay_offloads_restored_total";
    text.family(name, "counter", "Times that an offload of an interface was switched on again.");
    text.sample(&[], offloads.restored);
    if !offloads.offloads.is_empty() {
        text.family("forebay_offload_on", "gauge", "1 while an offload of an interface is on, otherwise 0.");
    }
    for one in &offloads.offloads {
        let labels = [("interface", &*one.interface), ("offload", &*one.offload)];
        text.sample(&labels, u8::from(one.state == "on"));
    }
}

fn pair(pair: &PairDoc, text: &mut Text) {
    let families: [(&str, &str, &str, f64); 9] = [
        (
            "forebay_pair_active",
            "gauge",
            "1 while this gateway of a pair is active, otherwise 0.",
            f64::from(u8::from(pair.role == "active")),
        ),
        ("forebay_pair_term", "gauge", "Highest term of the pair that this gateway knows.", pair.term as f64),
        ("forebay_pair_links", "gauge", "Connections to the peer of the pair.", pair.links as f64),
        (
            "forebay_pair_in_sync",
            "gauge",
            "1 while the standby has every record of the active gateway, otherwise 0.",
            f64::from(u8::from(pair.in_sync)),
        ),
        (
            "forebay_pair_lacks_records",
            "gauge",
            "1 while this gateway would be active but may lack records, and waits for its peer or an operator, otherwise 0.",
            f64::from(u8::from(pair.waits.is_some())),
        ),
        (
            "forebay_pair_refused_total",
            "counter",
            "Records and terms of the peer that were refused as implausible.",
            pair.refused as f64,
        ),
        (
            "forebay_pair_waiting",
            "gauge",
            "Messages with records that the peer has not acknowledged yet.",
            pair.waiting as f64,
        ),
        (
            "forebay_pair_lag_seconds",
            "gauge",
            "Smoothed time from a message with records to its acknowledgement.",
            pair.lag_s,
        ),
        (
            "forebay_pair_take_overs_total",
            "counter",
            "Times that this gateway became active since its start.",
            pair.take_overs as f64,
        ),
    ];
    for (name, kind, help, value) in families {
        text.family(name, kind, help);
        text.sample(&[], value);
    }
}

fn cluster(cluster: &ClusterDoc, text: &mut Text) {
    let families: [(&str, &str, &str, f64); 9] = [
        (
            "forebay_cluster_connected",
            "gauge",
            "1 while etcd answers within the lease of this gateway, otherwise 0.",
            f64::from(u8::from(cluster.connected)),
        ),
        (
            "forebay_cluster_members",
            "gauge",
            "Gateways of the cluster whose lease is valid.",
            cluster.members.len() as f64,
        ),
        (
            "forebay_cluster_shares",
            "gauge",
            "Shares into which the SAs are divided.",
            f64::from(cluster.shares),
        ),
        ("forebay_cluster_serves", "gauge", "Shares that this gateway serves.", cluster.serves.len() as f64),
        (
            "forebay_cluster_unowned",
            "gauge",
            "Shares that no gateway owned when this gateway looked last.",
            cluster.unowned as f64,
        ),
        (
            "forebay_cluster_transactions_total",
            "counter",
            "Transactions with records that etcd has carried out.",
            cluster.transactions as f64,
        ),
        (
            "forebay_cluster_records_total",
            "counter",
            "Records in these transactions.",
            cluster.records as f64,
        ),
        (
            "forebay_cluster_lag_seconds",
            "gauge",
            "Smoothed time that a transaction with records takes.",
            cluster.lag_s,
        ),
        (
            "forebay_cluster_take_overs_total",
            "counter",
            "Shares that this gateway has taken over since its start.",
            cluster.take_overs as f64,
        ),
    ];
    for (name, kind, help, value) in families {
        text.family(name, kind, help);
        text.sample(&[], value);
    }
}

fn taps(taps: &TapsDoc, text: &mut Text) {
    text.family("forebay_taps_up", "gauge", "1 while packets are captured, otherwise 0.");
    text.sample(&[], u8::from(taps.state == "on"));
    text.family(
        "forebay_taps_failures_total",
        "counter",
        "Times that packet capture stopped because of an error.",
    );
    text.sample(&[], taps.failures);
    let families: [OfSide; 3] = [
        ("forebay_tap_packets_total", "Packets written to capture files.", |side| side.packets),
        ("forebay_tap_bytes_total", "Bytes written to capture files.", |side| side.bytes),
        (
            "forebay_tap_lost_total",
            "Packets missing from capture files because the capture buffer was full.",
            |side| side.lost,
        ),
    ];
    for (name, help, value) in families {
        text.family(name, "counter", help);
        for side in &taps.sides {
            text.sample(&[("side", &side.side)], value(side));
        }
    }
}
