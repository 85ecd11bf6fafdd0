//! A processor at the other end of a network: a crypto library whose answers come after the time for the way there and
//! back. With real hardware `submit` and `poll` would write to and read from its queues.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use forebay_crypto::{Job, Processor, forward_processor};
use forebay_processors::{Device, Kind, Surroundings, Values};
use forebay_scenario::schema::{Absent, Key, Takes, key};
use forebay_time::{Duration, Time};

pub static REMOTE: Kind = Kind {
    word: "remote",
    keys: &[ROUND_TRIP],
    read: |values: &dyn Values| Some(Arc::new(Remote { round_trip: values.time("round_trip")? })),
    sample: || Arc::new(Remote { round_trip: Duration::from_micros(20) }),
    detailed: |_| None,
};

const ROUND_TRIP: Key = key(
    "round_trip",
    Takes::Time("0 s", "1 s"),
    Absent::Is("\"20 us\""),
    "time to the processor and back",
    "\"5 us\"",
);

/// What a file says of one.
#[derive(Debug, PartialEq)]
struct Remote {
    round_trip: Duration,
}

impl Device for Remote {
    fn word(&self) -> &'static str {
        REMOTE.word
    }

    fn open(&self, surroundings: Surroundings<'_>) -> miette::Result<Box<dyn Processor>> {
        let (far, round_trip) = (surroundings.library, self.round_trip);
        Ok(Box::new(Open { far, round_trip, done: Vec::new(), on_the_way: VecDeque::new() }))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_like(&self, other: &dyn Device) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}

/// One that is open.
struct Open {
    far: Box<dyn Processor>,
    round_trip: Duration,
    done: Vec<Job>,
    /// Jobs that are done, and when that is known here.
    on_the_way: VecDeque<(Time, Job)>,
}

impl Processor for Open {
    forward_processor!(far: name, capabilities, open_session, close_session);

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        self.far.submit(now, jobs);
        self.far.poll(now, &mut self.done);
        let back = now + self.round_trip;
        self.on_the_way.extend(self.done.drain(..).map(|job| (back, job)));
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        let here = self.on_the_way.iter().take_while(|(at, _)| *at <= now).count();
        done.extend(self.on_the_way.drain(..here).map(|(_, job)| job));
    }

    fn next_due(&self) -> Option<Time> {
        self.on_the_way.front().map(|(at, _)| *at)
    }
}
