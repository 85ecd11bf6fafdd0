//! The `iptfs` table of an SA: aggregation and fragmentation (RFC 9347).

use std::collections::HashSet;
use std::ops::RangeInclusive;

use forebay_crypto::Direction;
use forebay_ipsec::iptfs::MAX_REORDER_WINDOW;
use forebay_ipsec::{Ends, Iptfs, Mode, Protocol, SaConfig};
use forebay_time::Duration;

use super::SaEntry;
use super::errors::Findings;
use super::mask::shown;
use super::names::Names;
use super::problem::Problem;
use super::table::{Section, Table};

const PACKET_SIZES: RangeInclusive<u64> = 1..=65_535;
const QUEUES: RangeInclusive<u64> = 1..=1 << 30;
const RATES: RangeInclusive<u64> = 1..=1_000_000_000;

/// Reports SAs with congestion information without an SA of the other direction that has the same ends.
pub(super) fn report_alone(entries: &[SaEntry], names: &Names, findings: &mut Findings) {
    let exchanging = || entries.iter().enumerate().filter(|(_, entry)| exchanges(entry));
    let all: HashSet<(Direction, Ends)> =
        exchanging().map(|(_, entry)| (entry.direction, entry.config.ends())).collect();
    for (place, entry) in exchanging() {
        let other = if entry.direction == Direction::Seal { Direction::Open } else { Direction::Seal };
        if !all.contains(&(other, entry.config.ends())) {
            let problem = Problem::CongestionAlone { name: shown(&entry.config.name) };
            findings.add(problem, names.span(place), "without an SA of the other direction");
        }
    }
}

fn exchanges(entry: &SaEntry) -> bool {
    entry.config.iptfs.as_ref().is_some_and(|iptfs| iptfs.congestion)
}

/// Reads the table inside of an SA. `config` is that SA as far as lengths depend on it, if nothing is wrong
/// with it.
pub(super) fn read(
    sa: &Table<'_, '_>,
    config: Option<&SaConfig>,
    direction: Option<Direction>,
    findings: &mut Findings,
) -> Option<Option<Iptfs>> {
    if !sa.has("iptfs") {
        return Some(None);
    }
    let table = &sa.inside("iptfs", Section::Iptfs, findings)?;
    table.report_unknown_keys(findings);
    let unused: (&[&'static str], _) = match direction {
        Some(Direction::Seal) => (&["reorder_window", "lost_after"], "it is about packets that arrive"),
        Some(Direction::Open) => (
            &["packet_size", "rate", "max_delay", "fragment", "queue", "ecn"],
            "it is about packets that leave",
        ),
        None => (&[], ""),
    };
    for key in unused.0.iter().copied().filter(|key| table.has(key)) {
        findings.add(Problem::NoEffect { key, why: unused.1 }, table.span(key), "");
    }
    if direction == Some(Direction::Seal) && table.has("rate") && table.has("max_delay") {
        let why = "with `rate` packets leave at fixed times";
        findings.add(Problem::NoEffect { key: "max_delay", why }, table.span("max_delay"), "");
    }
    let defaults = Iptfs::default();
    let mtu = config.and_then(|config| config.mtu).map(usize::from);
    let full = mtu.map_or(defaults.packet_size, |mtu| mtu.min(defaults.packet_size));
    let mut bytes = |key, default: usize, range| {
        table.or(key, default, |key| table.ranged(key, range, "bytes", findings).map(|len| len as usize))
    };
    let packet_size = bytes("packet_size", full, PACKET_SIZES);
    let queue = bytes("queue", defaults.queue, QUEUES);
    let rate = table.or("rate", None, |key| table.ranged(key, RATES, "packets a second", findings).map(Some));
    let max_delay =
        table.or("max_delay", defaults.max_delay, |key| table.duration(key, Duration::ZERO, findings));
    let lost_after =
        table.or("lost_after", defaults.lost_after, |key| table.duration(key, Duration::ZERO, findings));
    let reorder_window = table.or("reorder_window", defaults.reorder_window, |key| {
        let window = table.ranged(key, 0..=MAX_REORDER_WINDOW.into(), "packets", findings);
        window.map(|window| window as u32)
    });
    let fragment = table.flag("fragment", defaults.fragment, findings);
    let congestion = table.flag("congestion", defaults.congestion, findings);
    let ecn = table.flag("ecn", defaults.ecn, findings);
    let iptfs = Iptfs {
        packet_size: packet_size?,
        rate: rate?,
        max_delay: max_delay?,
        fragment: fragment?,
        reorder_window: reorder_window?,
        lost_after: lost_after?,
        queue: queue?,
        congestion: congestion?,
        ecn: ecn?,
    };
    let Some(config) = config else { return Some(Some(iptfs)) };
    suits(sa, table, &iptfs, config, findings).then_some(Some(iptfs))
}

/// Whether an SA like `config` can aggregate so.
fn suits(
    sa: &Table<'_, '_>,
    table: &Table<'_, '_>,
    iptfs: &Iptfs,
    config: &SaConfig,
    findings: &mut Findings,
) -> bool {
    for (key, suits) in
        [("mode", config.mode == Mode::Tunnel), ("protocol", config.protocol == Protocol::Esp)]
    {
        if !suits {
            let label = "aggregation is for ESP in tunnel mode";
            findings.add_pair(Problem::IptfsNotInTunnel, sa.span("iptfs"), label, sa.span(key), "given here");
            return false;
        }
    }
    let is_right = |packet_size: u64, queue: u64| {
        let iptfs = Iptfs { packet_size: packet_size as usize, queue: queue as usize, ..iptfs.clone() };
        SaConfig { iptfs: Some(iptfs), ..config.clone() }.check().is_ok()
    };
    let (packet_size, queue) = (iptfs.packet_size as u64, iptfs.queue as u64);
    if !is_right(packet_size, *QUEUES.end()) {
        let least = least(PACKET_SIZES, |size| is_right(size, *QUEUES.end()));
        return out_of_range(table, "packet_size", packet_size, least, *PACKET_SIZES.end(), findings);
    }
    if let Some(mtu) = config.mtu.filter(|&mtu| packet_size > mtu.into()) {
        let problem = Problem::IptfsBeyondMtu { packet_size, mtu };
        findings.add_pair(problem, table.span("packet_size"), "longer", sa.span("mtu"), "than this");
        return false;
    }
    if !is_right(packet_size, queue) {
        let least = least(QUEUES, |queue| is_right(packet_size, queue));
        return out_of_range(table, "queue", queue, least, *QUEUES.end(), findings);
    }
    true
}

fn out_of_range(
    table: &Table<'_, '_>,
    key: &'static str,
    found: u64,
    least: u64,
    most: u64,
    findings: &mut Findings,
) -> bool {
    let problem = Problem::OutOfRange { key, found: found.to_string(), least, most };
    findings.add(problem, table.span(key), &format!("expected {least} to {most} bytes"));
    false
}

/// The least number in `range` from which on `is_right` holds, its end if there is none.
fn least(range: RangeInclusive<u64>, is_right: impl Fn(u64) -> bool) -> u64 {
    let (mut first, mut last) = range.into_inner();
    while first < last {
        let middle = first + (last - first) / 2;
        if is_right(middle) { last = middle } else { first = middle + 1 }
    }
    last
}
