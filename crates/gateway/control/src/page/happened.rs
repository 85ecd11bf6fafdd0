//! Events between two polls, as text: reloads, roles, processors, captures, the guard.

use serde_json::json;

use crate::rates::at_engine;
use crate::{ClusterDoc, PairDoc, StatusDoc};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// Whether an operator should look at it.
    is_bad: bool,
    /// What.
    text: String,
}

impl Happened {
    /// The message of the stream.
    pub fn message(&self, at: f64) -> String {
        let json = json!({ "at": (at * 10.0).round() / 10.0, "bad": self.is_bad, "text": self.text });
        format!("event: happened\ndata: {json}\n\n")
    }
}

fn good(text: impl Into<String>) -> Happened {
    Happened { is_bad: false, text: text.into() }
}

fn bad(text: impl Into<String>) -> Happened {
    Happened { is_bad: true, text: text.into() }
}

/// What is different in `now`.
pub fn between(before: &StatusDoc, now: &StatusDoc) -> Vec<Happened> {
    let mut all = vec![];
    reloads(before, now, &mut all);
    processors(before, now, &mut all);
    if let (Some(before), Some(now)) = (&before.pair, &now.pair) {
        pair(before, now, &mut all);
    }
    if let (Some(before), Some(now)) = (&before.cluster, &now.cluster) {
        cluster(before, now, &mut all);
    }
    if before.guard.state != now.guard.state {
        let text = format!("guard of the host: {}", now.guard.state);
        all.push(if now.guard.state == "missing" { bad(text) } else { good(text) });
    }
    if now.guard.restored > before.guard.restored {
        all.push(bad("another program changed the rules of the guard; they were restored"));
    }
    if now.guard.routes_restored > before.guard.routes_restored {
        all.push(bad("another program deleted routes of protected networks; they were restored"));
    }
    if now.taps.failures > before.taps.failures {
        all.push(bad("packet capture stopped because of an error"));
    }
    all
}

fn reloads(before: &StatusDoc, now: &StatusDoc, all: &mut Vec<Happened>) {
    let (old, new) = (&before.reloads, &now.reloads);
    if new.refused > old.refused {
        all.push(bad(format!("reload refused, nothing changed: errors in the file: {}", new.remarks)));
    }
    if new.taken > old.taken {
        let mut text = format!("reloaded: SAs added {}, removed {}", new.added, new.removed);
        if new.remarks > 0 {
            text += &format!("; settings that require a restart: {}", new.remarks);
        }
        all.push(good(text));
    }
}

fn processors(before: &StatusDoc, now: &StatusDoc, all: &mut Vec<Happened>) {
    for one in &now.processors {
        let old = before.processors.iter().find(|old| (&old.name, old.engine) == (&one.name, one.engine));
        let Some(old) = old else { continue };
        let name = at_engine(&one.name, one.engine, now.engines.len() > 1);
        match (old.out, one.out) {
            (false, true) => all.push(bad(format!("processor {name} is out: wrong or late results"))),
            (true, false) => all.push(good(format!("processor {name} is in use again"))),
            // It was out and back between two looks.
            _ if one.removals > old.removals => {
                all.push(bad(format!("processor {name} was out for a moment")))
            }
            _ => {}
        }
    }
}

fn pair(before: &PairDoc, now: &PairDoc, all: &mut Vec<Happened>) {
    if now.role != before.role {
        let why = now.reason.as_ref().filter(|_| now.role == "active");
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        all.push(good(format!("pair: this gateway is {} now{why}", now.role)));
    }
    match (&before.peer, &now.peer) {
        (Some(_), None) => all.push(bad("pair: the peer is not heard")),
        (None, Some(role)) => all.push(good(format!("pair: the peer is heard, {role}"))),
        _ => {}
    }
    match (before.in_sync, now.in_sync) {
        (true, false) if now.peer.is_some() => all.push(bad("pair: the standby lacks records")),
        (false, true) => all.push(good("pair: the standby has every record")),
        _ => {}
    }
    if now.waits.is_some() && before.waits.is_none() {
        all.push(bad(
            "pair: this gateway may lack records and waits for its peer or for `forebay state accept`",
        ));
    }
}

fn cluster(before: &ClusterDoc, now: &ClusterDoc, all: &mut Vec<Happened>) {
    match (before.connected, now.connected) {
        (true, false) => all.push(bad("cluster: etcd does not answer")),
        (false, true) => all.push(good("cluster: etcd answers")),
        _ => {}
    }
    if now.serves != before.serves {
        let (had, has) = (before.serves.len(), now.serves.len());
        all.push(good(format!("cluster: serves {has} of {} shares, before {had}", now.shares)));
    }
    for member in now.members.iter().filter(|one| !before.members.contains(one)) {
        all.push(good(format!("cluster: {member} has come")));
    }
    for member in before.members.iter().filter(|one| !now.members.contains(one)) {
        all.push(bad(format!("cluster: {member} has gone")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProcessorDoc, ReloadDoc};

    fn texts(before: &StatusDoc, now: &StatusDoc) -> Vec<(bool, String)> {
        between(before, now).into_iter().map(|one| (one.is_bad, one.text)).collect()
    }

    #[test]
    fn what_changes_is_said_once_and_what_stays_is_not() {
        let card = ProcessorDoc { name: "card".to_owned(), ..ProcessorDoc::default() };
        let before = StatusDoc {
            uptime_s: 5.0,
            processors: vec![card],
            pair: Some(PairDoc {
                role: "standby".to_owned(),
                peer: Some("active".to_owned()),
                in_sync: true,
                ..PairDoc::default()
            }),
            cluster: Some(ClusterDoc {
                connected: true,
                members: vec!["gw-1".to_owned()],
                shares: 256,
                ..ClusterDoc::default()
            }),
            ..StatusDoc::default()
        };
        assert_eq!(texts(&before, &before), []);
        let mut now = before.clone();
        now.uptime_s = 6.0;
        now.processors[0].out = true;
        now.processors[0].removals = 1;
        let taken = ReloadDoc {
            ok: true,
            added: 2,
            removed: 1,
            restart: vec!["x".to_owned()],
            ..ReloadDoc::default()
        };
        now.reloads.note(&taken);
        now.pair = Some(PairDoc {
            role: "active".to_owned(),
            reason: Some("peer is silent".to_owned()),
            ..PairDoc::default()
        });
        now.cluster = Some(ClusterDoc {
            members: vec!["gw-2".to_owned()],
            serves: vec![1],
            shares: 256,
            ..ClusterDoc::default()
        });
        now.guard.restored = 1;
        now.taps.failures = 1;
        let all: Vec<String> = texts(&before, &now).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            all,
            [
                "reloaded: SAs added 2, removed 1; settings that require a restart: 1",
                "processor card is out: wrong or late results",
                "pair: this gateway is active now (peer is silent)",
                "pair: the peer is not heard",
                "cluster: etcd does not answer",
                "cluster: serves 1 of 256 shares, before 0",
                "cluster: gw-2 has come",
                "cluster: gw-1 has gone",
                "another program changed the rules of the guard; they were restored",
                "packet capture stopped because of an error",
            ]
        );
        now.reloads.note(&ReloadDoc { errors: vec![crate::FindingDoc::default()], ..ReloadDoc::default() });
        assert!(
            texts(&before, &now)[0].1.starts_with("reload refused, nothing changed: errors in the file: 1")
        );
        let back = StatusDoc { uptime_s: 7.0, processors: before.processors.clone(), ..StatusDoc::default() };
        assert_eq!(
            texts(&StatusDoc { uptime_s: 6.0, ..now.clone() }, &back)[0],
            (false, "processor card is in use again".to_owned())
        );
    }
}
