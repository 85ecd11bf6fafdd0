//! The connection from which the peer's records are accepted: that of its newest session.
//!
//! A connection that was cut may deliver old records late, after newer ones that arrived over another connection. Such records
//! are ignored, because they would lower the limits of replay windows.

use std::collections::VecDeque;

use forebay_planted::{Fault, planted};

/// So many processes of the peer that have ended are remembered.
const ENDED_MAX: usize = 16;

/// The peer's newest session.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The process of the peer, the number of its session, and the connection.
    newest: Option<(u64, u64, u64)>,
    /// Processes of the peer before that one.
    ended: VecDeque<u64>,
}

impl Source {
    /// The peer begins a session: its process's random name, a number that rises within the process, and the connection.
    pub fn begin(&mut self, process: u64, number: u64, link: u64) {
        if self.ended.contains(&process) {
            return;
        }
        match self.newest {
            Some((known, newest, _)) if known == process && number <= newest => return,
            Some((known, ..)) if known != process => {
                self.ended.push_back(known);
                if self.ended.len() > ENDED_MAX {
                    self.ended.pop_front();
                }
            }
            _ => {}
        }
        self.newest = Some((process, number, link));
    }

    /// The process and the number of the newest session.
    pub fn session(&self) -> Option<(u64, u64)> {
        self.newest.map(|(process, number, _)| (process, number))
    }

    /// Whether a heartbeat that names this session was sent before the newest one began: another connection was faster.
    pub fn is_behind(&self, (process, number): (u64, u64)) -> bool {
        let is_older = |(known, newest, _): (u64, u64, u64)| known == process && number < newest;
        self.newest.is_some_and(is_older) || self.ended.contains(&process)
    }

    /// Whether records of this connection are to be taken.
    pub fn is(&self, link: u64) -> bool {
        self.newest.is_some_and(|(.., newest)| newest == link) || planted(Fault::LateRecordsTaken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_by_the_newest_session_however_late_older_ones_are_heard_of() {
        let mut source = Source::default();
        assert!(!source.is(0) && !source.is_behind((7, 0)));
        source.begin(7, 1, 10);
        assert!(source.is_behind((7, 0)) && !source.is_behind((7, 1)) && !source.is_behind((8, 0)));
        assert!(source.is(10));
        source.begin(7, 3, 12);
        source.begin(7, 2, 11);
        assert!(source.is(12) && !source.is(11) && !source.is(10));
        // The peer was restarted.
        source.begin(5, 1, 13);
        source.begin(7, 4, 12);
        assert!(source.is(13) && !source.is(12));
        // A session may move to a connection that is older.
        source.begin(5, 2, 9);
        assert!(source.is(9));
    }
}
