//! Messages of the event stream: the current state, and one point of the last hour.
//!
//! Both have a bounded size. Of the status are taken rates, limits and states; networks of policies only where they are
//! wanted. Numbers have four digits.

use serde_json::{Map, Value, json};

use crate::rates::{LinkRates, ProcessorRates, Rates, SaRates};
use crate::{LimitsDoc, PolicyDoc, StatusDoc};

/// SAs that are shown: the busiest, and those that are nearest to their end.
const BUSIEST: usize = 80;
const ENDING: usize = 20;
/// Policies that are shown.
const POLICIES: usize = 100;
/// Links and processors of a point, and how much of their names.
const LINKS: usize = 16;
const PROCESSORS: usize = 40;
const NAME: usize = 40;

/// The gateway as it is; `whole` has its SAs and policies.
pub fn now_json(
    at: f64,
    rates: &Rates,
    sas: &[SaRates],
    status: &StatusDoc,
    whole: &StatusDoc,
    addresses: bool,
) -> String {
    let processors = rates.processors.iter().map(|one| {
        let mut shown = value(one);
        shown["response"] =
            one.response.map_or(Value::Null, |(predicted, actual, off)| json!([predicted, actual, off]));
        shown
    });
    let (processors, links): (Vec<_>, Vec<_>) =
        (processors.collect(), rates.links.iter().map(value).collect());
    let engines: Vec<_> =
        status.engines.iter().map(|one| json!([one.in_flight, one.room, one.load])).collect();
    let shown: Vec<_> = shown_sas(sas).into_iter().map(value).collect();
    let policies: Vec<_> = whole.policies.iter().take(POLICIES).map(|one| policy(one, addresses)).collect();
    let (guard, taps) = (&status.guard, &status.taps);
    let mut now = json!({
        "at": at, "version": rates.version, "config": rates.config, "uptime_s": rates.uptime_s, "others": rates.others,
        "in_flight": rates.in_flight, "processors": processors, "links": links, "odd": rates.odd, "drops": rates.drops,
        "engines": engines, "sas": shown, "all_sas": sas.len(), "policies": policies, "all_policies": whole.policies.len(),
        "guard": { "state": guard.state, "forged": guard.forged, "leaked": guard.leaked, "restored": guard.restored },
        "taps": taps.state, "pair": status.pair, "cluster": status.cluster,
    });
    shorten(&mut now);
    format!("event: now\ndata: {now}\n\n")
}

fn value(one: &impl serde::Serialize) -> Value {
    // Numbers and texts are all that they have.
    serde_json::to_value(one).unwrap_or_default()
}

fn policy(one: &PolicyDoc, addresses: bool) -> Value {
    let mut shown = json!({ "name": one.name, "direction": one.direction, "action": one.action, "sas": one.sas.iter().take(8).collect::<Vec<_>>() });
    if addresses {
        let some = |all: &[String]| all.iter().take(8).cloned().collect::<Vec<_>>();
        shown["local"] = some(&one.local_ts).into();
        shown["remote"] = some(&one.remote_ts).into();
    }
    shown
}

/// The busiest SAs, and of the others those that end first.
fn shown_sas(all: &[SaRates]) -> Vec<&SaRates> {
    let mut all: Vec<&SaRates> = all.iter().collect();
    if all.len() > BUSIEST + ENDING {
        all.sort_by(|one, other| other.packets.total_cmp(&one.packets));
        all[BUSIEST..].sort_by(|one, other| left(one).total_cmp(&left(other)));
        all.truncate(BUSIEST + ENDING);
    }
    all
}

/// The share of its life that an SA has left, by the limit that comes first; 2 without limits.
fn left(sa: &SaRates) -> f64 {
    let LimitsDoc { time_s, use_time_s, bytes, packets } = &sa.left;
    let share = |left: Option<f64>, hard: Option<f64>| Some(left? / hard?.max(1e-9));
    let count = |value: &Option<u64>| value.map(|value| value as f64);
    let shares = [
        share(*time_s, sa.hard.time_s),
        share(*use_time_s, sa.hard.use_time_s),
        share(count(bytes), count(&sa.hard.bytes)),
        share(count(packets), count(&sa.hard.packets)),
    ];
    shares.into_iter().flatten().fold(2.0, f64::min)
}

/// A point of the last hour: rates since the one before it. Queues of a link on several engines are one.
pub fn point_json(at: f64, rates: &Rates) -> String {
    let mut links: Vec<(String, [f64; 5])> = vec![];
    for LinkRates { name, received, sent, queue, .. } in &rates.links {
        let new = [received.0, received.1, sent.0, sent.1, *queue as f64];
        let name = without_engine(name);
        match links.iter_mut().find(|(known, _)| known == name) {
            Some((_, sums)) => sums.iter_mut().zip(new).for_each(|(sum, more)| *sum += more),
            None => links.push((name.to_owned(), new)),
        }
    }
    let processor = |one: &ProcessorRates| {
        let (predicted, actual) =
            one.response.map_or((None, None), |(one, other, _)| (Some(one), Some(other)));
        json!([one.packets, one.bits, one.load, one.crypto, one.queue, predicted, actual])
    };
    let links: Map<String, Value> =
        links.into_iter().take(LINKS).map(|(name, values)| (cut(&name), json!(values))).collect();
    let processors: Map<String, Value> =
        rates.processors.iter().take(PROCESSORS).map(|one| (cut(&one.name), processor(one))).collect();
    let dropped: f64 = rates.drops.iter().map(|drop| drop.1).sum();
    let mut point = json!({ "at": at, "links": links, "processors": processors, "dropped": dropped, "in_flight": rates.in_flight.0 });
    shorten(&mut point);
    format!("event: point\ndata: {point}\n\n")
}

/// The name of a link without the number of an engine.
fn without_engine(name: &str) -> &str {
    match name.rsplit_once('@') {
        Some((name, engine)) if engine.parse::<usize>().is_ok() => name,
        _ => name,
    }
}

fn cut(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// Gives broken numbers four digits, but for times of day, which need tenths of a second.
fn shorten(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            let size = exact.abs();
            let digits =
                if size > 1e8 { 10.0 } else { 10_f64.powf((3.0 - size.max(1e-12).log10().floor()).max(0.0)) };
            let short = (exact * digits).round() / digits;
            *value = if short.fract() == 0.0 && size < 1e15 { json!(short as i64) } else { json!(short) };
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(all) => all.values_mut().for_each(shorten),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyDoc, ProcessorDoc, SaDoc};

    fn data(message: &str) -> Value {
        let line = message.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn of_many_sas_the_busiest_and_those_that_end_are_shown() {
        let sa = |number: u64| SaRates {
            name: number.to_string(),
            packets: number as f64,
            hard: LimitsDoc { packets: Some(1_000), ..LimitsDoc::default() },
            left: LimitsDoc { packets: Some(number), ..LimitsDoc::default() },
            ..SaRates::default()
        };
        let sas: Vec<SaRates> = (0..5_000).map(sa).collect();
        let status = StatusDoc::default();
        let now = now_json(0.0, &Rates::default(), &sas, &status, &status, false);
        assert!(now.len() < 64 << 10, "{}", now.len());
        let now = data(&now);
        let names: Vec<&str> =
            now["sas"].as_array().unwrap().iter().map(|sa| sa["name"].as_str().unwrap()).collect();
        assert_eq!((names.len(), names[0], names[80], &now["all_sas"]), (100, "4999", "0", &json!(5_000)));
    }

    #[test]
    fn networks_of_policies_are_shown_where_they_are_wanted() {
        let policy = PolicyDoc {
            name: "east".to_owned(),
            local_ts: vec!["10.1.0.0/16".to_owned()],
            ..PolicyDoc::default()
        };
        let status = StatusDoc { policies: vec![policy], ..StatusDoc::default() };
        let shown = |addresses| now_json(0.0, &Rates::default(), &[], &status, &status, addresses);
        assert!(shown(true).contains("10.1.0.0/16") && !shown(false).contains("10.1."));
        assert!(shown(false).contains("east"));
    }

    #[test]
    fn a_point_has_its_size_whatever_the_gateway() {
        let link = |number: usize| LinkRates {
            name: format!("{}{}@{}", number / 8, "\"".repeat(90), number % 8),
            received: (1_234.567, 1.0 / 3.0),
            queue: 1,
            ..LinkRates::default()
        };
        let processor = |number: usize| ProcessorRates {
            name: format!("{number}{}", "x".repeat(90)),
            response: Some((1.234_567e-6, 2e-6, 3e-6)),
            packets: 123_456.789,
            ..ProcessorRates::default()
        };
        let rates = Rates {
            links: (0..160).map(link).collect(),
            processors: (0..200).map(processor).collect(),
            ..Rates::default()
        };
        let point = point_json(1_780_000_000.123, &rates);
        assert!(point.len() < super::super::feed::POINT_MAX, "{}", point.len());
        assert!(
            point.contains("1780000000.1") && point.contains("1.235e-6") && point.contains("123457"),
            "{point}"
        );
        let one = Rates { links: vec![link(0), link(1)], ..Rates::default() };
        let one = data(&point_json(0.0, &one));
        assert_eq!(one["links"].as_object().unwrap().values().next().unwrap()[4], 2);
    }

    #[test]
    fn a_status_has_nothing_that_the_page_does_not_name() {
        let sa = SaDoc { local: "192.0.2.1".to_owned(), remote: "192.0.2.2".to_owned(), ..SaDoc::default() };
        let processor = ProcessorDoc { packets: 4, jobs: 2, response_s: 1e-5, ..ProcessorDoc::default() };
        let status = StatusDoc { sas: vec![sa], processors: vec![processor], ..StatusDoc::default() };
        let rates = Rates::between(&StatusDoc::default(), &status);
        let now = data(&now_json(0.0, &rates, &rates.sas, &status, &status, false));
        assert_eq!(now["processors"][0]["response"], json!([0, 0.000_005, 0]));
        assert_eq!(now["sas"][0]["remote"], "192.0.2.2");
    }
}
