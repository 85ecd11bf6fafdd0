//! The contract between submitters of crypto jobs and the processors that execute them.

use std::fmt;

use forebay_time::Time;

use crate::{Direction, Job, SaKeys, SessionId, Suite};

/// What a processor can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Suites it does, in both directions.
    pub suites: Vec<Suite>,
    /// How many jobs it takes at a time for its best speed.
    pub best_burst: usize,
    /// How many submissions, each of one job or more, it holds at most between submit and poll.
    pub queue: usize,
}

impl Capabilities {
    /// Whether `suite` is among the suites.
    pub fn has(&self, suite: Suite) -> bool {
        self.suites.contains(&suite)
    }
}

/// A session that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionError {
    /// The processor does not have the suite.
    Unsupported(Suite),
    /// The processor has no room for another session.
    TableFull,
    /// The backend refused the keys.
    Backend(String),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Unsupported(suite) => write!(f, "the processor does not do {suite}"),
            SessionError::TableFull => f.write_str("the processor has no room for another session"),
            SessionError::Backend(reason) => write!(f, "the backend refused the session: {reason}"),
        }
    }
}

impl std::error::Error for SessionError {}

/// Anything that does crypto jobs: a core through a library, a card, an emulated card.
///
/// Jobs are submitted and collected in bursts. A core finishes them inside [`Processor::submit`]; a card accepts them
/// and finishes them later. They may be delivered in any order, each exactly once, with a verdict. A processor never
/// panics on a bad job but returns it as [`Verdict::Failed`](crate::Verdict).
pub trait Processor: Send {
    /// Name for tables and logs, e.g. `ipsec-mb`.
    fn name(&self) -> &str;

    /// What it can do; does not change while it runs.
    fn capabilities(&self) -> &Capabilities;

    /// Expands the keys of one SA; jobs name them by `id` from then on. An `id` that is open is replaced.
    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError>;

    /// Forgets and wipes a session; unknown ones are ignored.
    fn close_session(&mut self, id: SessionId);

    /// Takes jobs from the front of `jobs` while it has room; those left in `jobs` were not taken.
    /// Those of one call are one submission: they pay one setup between them.
    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>);

    /// Appends the jobs that are finished at `now` to `done`.
    fn poll(&mut self, now: Time, done: &mut Vec<Job>);

    /// When the next job will be finished, if the processor can say; it lets a waiting caller sleep.
    fn next_due(&self) -> Option<Time> {
        None
    }
}

/// Writes the methods of [`Processor`] that a processor around another leaves to that one: inside of its `impl`, the field
/// that holds the inner processor and the names of the methods, as in `forward_processor!(inner: name, capabilities);`.
#[macro_export]
macro_rules! forward_processor {
    ($field:tt: $($method:ident),+) => { $($crate::forward_processor!(@ $method $field);)+ };
    (@ name $field:tt) => {
        fn name(&self) -> &str {
            $crate::Processor::name(&self.$field)
        }
    };
    (@ capabilities $field:tt) => {
        fn capabilities(&self) -> &$crate::Capabilities {
            $crate::Processor::capabilities(&self.$field)
        }
    };
    (@ open_session $field:tt) => {
        fn open_session(
            &mut self,
            id: $crate::SessionId,
            keys: &$crate::SaKeys,
            direction: $crate::Direction,
        ) -> ::std::result::Result<(), $crate::SessionError> {
            $crate::Processor::open_session(&mut self.$field, id, keys, direction)
        }
    };
    (@ close_session $field:tt) => {
        fn close_session(&mut self, id: $crate::SessionId) {
            $crate::Processor::close_session(&mut self.$field, id);
        }
    };
    (@ submit $field:tt) => {
        fn submit(&mut self, now: ::forebay_time::Time, jobs: &mut ::std::vec::Vec<$crate::Job>) {
            $crate::Processor::submit(&mut self.$field, now, jobs);
        }
    };
    (@ poll $field:tt) => {
        fn poll(&mut self, now: ::forebay_time::Time, done: &mut ::std::vec::Vec<$crate::Job>) {
            $crate::Processor::poll(&mut self.$field, now, done);
        }
    };
    (@ next_due $field:tt) => {
        fn next_due(&self) -> ::std::option::Option<::forebay_time::Time> {
            $crate::Processor::next_due(&self.$field)
        }
    };
}

/// A boxed processor is one, so that those that are chosen while running can be wrapped.
impl<P: Processor + ?Sized> Processor for Box<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn open_session(
        &mut self,
        id: SessionId,
        keys: &SaKeys,
        direction: Direction,
    ) -> Result<(), SessionError> {
        (**self).open_session(id, keys, direction)
    }

    fn close_session(&mut self, id: SessionId) {
        (**self).close_session(id);
    }

    fn submit(&mut self, now: Time, jobs: &mut Vec<Job>) {
        (**self).submit(now, jobs);
    }

    fn poll(&mut self, now: Time, done: &mut Vec<Job>) {
        (**self).poll(now, done);
    }

    fn next_due(&self) -> Option<Time> {
        (**self).next_due()
    }
}
