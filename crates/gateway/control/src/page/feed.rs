//! Polls the gateway's status and sends it to the browsers that watch.
//!
//! One thread asks; each browser that watches has a thread of the server, which sleeps until there is more. What is sent is
//! written once and shared, so a browser that reads slowly costs a place and what the kernel keeps for it, and no more.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use forebay_privileges as privileges;

use super::happened;
use super::shown::{now_json, point_json};
use crate::rates::{Rates, SaRates};
use crate::{Answer, Request, Response, StatusDoc};

/// Between two looks while a browser watches.
pub const LOOK: Duration = Duration::from_secs(1);
/// Looks between two points of the last hour; without a browser they are the only ones.
pub const POINT: u32 = 5;
/// Points that are kept: an hour.
pub const POINTS: usize = 720;
/// Longest text of a point, in bytes: with [`POINTS`] the limit of what the last hour takes.
pub const POINT_MAX: usize = 8 << 10;
/// Events that are kept.
const EVENTS: usize = 200;
/// SAs that are looked at once a second; of more all are looked at as much more seldom.
const SAS_EACH: usize = 1_000;

/// See the module.
pub struct Feed {
    most: usize,
    sent: Mutex<Sent>,
    more: Condvar,
}

/// What is sent, each text a whole message of the stream (HTML Standard 9.2.5).
#[derive(Default)]
struct Sent {
    ended: bool,
    watching: usize,
    /// Looks so far.
    looks: u64,
    now: Option<Arc<str>>,
    points: Ring,
    events: Ring,
}

/// The last texts, and how many there were.
#[derive(Default)]
struct Ring {
    texts: VecDeque<Arc<str>>,
    all: u64,
}

impl Ring {
    fn push(&mut self, text: String, most: usize) {
        if self.texts.len() == most {
            self.texts.pop_front();
        }
        self.texts.push_back(text.into());
        self.all += 1;
    }

    /// Those behind the first `seen` of all.
    fn behind(&self, seen: u64) -> impl Iterator<Item = Arc<str>> {
        let new = usize::try_from(self.all - seen).unwrap_or(usize::MAX).min(self.texts.len());
        self.texts.range(self.texts.len() - new..).cloned()
    }
}

impl Feed {
    /// Begins to look, for at most so many who watch.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn start(answer: Arc<Answer>, most: usize, addresses: bool) -> std::io::Result<Arc<Feed>> {
        let feed = Arc::new(Feed { most, sent: Mutex::default(), more: Condvar::new() });
        let looking = Arc::clone(&feed);
        let look = move || {
            privileges::give_up();
            crate::give_way();
            Looker::new(answer, addresses).run(&looking);
        };
        thread::Builder::new().name("forebay-look".to_owned()).spawn(look)?;
        Ok(feed)
    }

    /// Most who watch.
    pub fn most(&self) -> usize {
        self.most
    }

    /// A place to watch from, if one is free.
    pub fn watch(self: &Arc<Feed>) -> Option<Watch> {
        let mut sent = self.sent();
        if sent.watching == self.most || sent.ended {
            return None;
        }
        sent.watching += 1;
        // The next look is for it.
        self.more.notify_all();
        Some(Watch { feed: Arc::clone(self), looks: 0, points: 0, events: 0 })
    }

    /// Nothing more is sent.
    pub fn end(&self) {
        self.sent().ended = true;
        self.more.notify_all();
    }

    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A browser that watches: what is new, each time that something is.
pub struct Watch {
    feed: Arc<Feed>,
    looks: u64,
    points: u64,
    events: u64,
}

impl Iterator for Watch {
    type Item = Vec<Arc<str>>;

    fn next(&mut self) -> Option<Vec<Arc<str>>> {
        let sent = self.feed.sent();
        let is_old = |sent: &mut Sent| !sent.ended && (sent.looks == self.looks || sent.now.is_none());
        let sent = self.feed.more.wait_while(sent, is_old).unwrap_or_else(PoisonError::into_inner);
        if sent.ended {
            return None;
        }
        let old = (sent.points.behind(self.points), sent.events.behind(self.events));
        let new = old.0.chain(old.1).chain(sent.now.clone()).collect();
        (self.looks, self.points, self.events) = (sent.looks, sent.points.all, sent.events.all);
        Some(new)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.feed.sent().watching -= 1;
    }
}

/// The thread that looks, and what it compares with.
struct Looker {
    answer: Arc<Answer>,
    addresses: bool,
    /// The last look, and that of the last point.
    last: Option<StatusDoc>,
    point: Option<StatusDoc>,
    /// The last look with SAs and what it gave, and looks until the next.
    whole: StatusDoc,
    sas: Vec<SaRates>,
    refused: f64,
    sas_in: usize,
    looks: u32,
}

impl Looker {
    fn new(answer: Arc<Answer>, addresses: bool) -> Looker {
        Looker {
            answer,
            addresses,
            last: None,
            point: None,
            whole: StatusDoc::default(),
            sas: vec![],
            refused: 0.0,
            sas_in: 0,
            looks: 0,
        }
    }

    #[allow(clippy::disallowed_methods)] // it looks at intervals
    fn run(&mut self, feed: &Feed) {
        let mut next = Instant::now();
        loop {
            let sent = feed.sent();
            // Who comes has not to wait for the next point.
            let before = sent.watching;
            let sleeps = |sent: &mut Sent| !sent.ended && (before > 0 || sent.watching == 0);
            let wait = next.saturating_duration_since(Instant::now());
            let waited = feed.more.wait_timeout_while(sent, wait, sleeps);
            let (sent, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if sent.ended {
                return;
            }
            let watched = sent.watching > 0;
            drop(sent);
            let (looks, wait) = if watched { (1, LOOK) } else { (POINT, LOOK * POINT) };
            self.look(feed, watched, looks);
            next = Instant::now() + wait;
        }
    }

    /// Looks once, which stands for so many looks.
    fn look(&mut self, feed: &Feed, watched: bool, looks: u32) {
        self.sas_in = self.sas_in.saturating_sub(1);
        let with_sas = watched && self.sas_in == 0;
        let request = if with_sas { Request::Status } else { Request::Counts };
        // While the gateway is between two data planes there is nothing to see.
        let Response::Status(mut status) = (self.answer)(request) else { return };
        if with_sas {
            self.take_sas(&mut status);
        }
        let (at, last) = (unix_time(), self.last.take());
        let new = last.iter().flat_map(|last| happened::between(last, &status));
        let new: Vec<String> = new.map(|one| one.message(at)).collect();
        let now = watched.then(|| {
            let mut rates = Rates::between(last.as_ref().unwrap_or(&status), &status);
            rates.odd[2] = self.refused;
            now_json(at, &rates, &self.sas, &status, &self.whole, self.addresses)
        });
        let point = self.point(at, &status, looks);
        self.last = Some(*status);
        let mut sent = feed.sent();
        new.into_iter().for_each(|event| sent.events.push(event, EVENTS));
        point.into_iter().for_each(|point| sent.points.push(point, POINTS));
        sent.now = now.map(Arc::from);
        sent.looks += 1;
        drop(sent);
        feed.more.notify_all();
    }

    /// The next point of the last hour, if it is time for one.
    fn point(&mut self, at: f64, status: &StatusDoc, looks: u32) -> Option<String> {
        self.looks += looks;
        if self.looks < POINT && self.point.is_some() {
            return None;
        }
        self.looks = 0;
        let old = self.point.replace(status.clone())?;
        Some(point_json(at, &Rates::between(&old, status))).filter(|point| point.len() <= POINT_MAX)
    }

    /// Takes the SAs and policies of a look, of which there may be many, and what happened to them since the last one.
    fn take_sas(&mut self, status: &mut StatusDoc) {
        let whole = StatusDoc {
            pid: status.pid,
            uptime_s: status.uptime_s,
            sas: std::mem::take(&mut status.sas),
            policies: std::mem::take(&mut status.policies),
            ..StatusDoc::default()
        };
        // What was seen before the last browser went is too old for a rate.
        let is_recent = whole.uptime_s - self.whole.uptime_s < 3.0 * self.pace() as f64 + 2.0;
        let before = if is_recent { &self.whole } else { &whole };
        let Rates { sas, odd: [.., refused], .. } = Rates::between(before, &whole);
        (self.sas, self.refused, self.whole) = (sas, refused, whole);
        self.sas_in = self.pace();
    }

    /// Looks from one with SAs to the next.
    fn pace(&self) -> usize {
        1 + self.whole.sas.len() / SAS_EACH
    }
}

#[allow(clippy::disallowed_methods)] // events have the time of day
fn unix_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
