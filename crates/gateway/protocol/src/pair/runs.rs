//! The bounds within which the model is checked, and those in which each planted error is found.

use super::{Faults, Pair, Planted};

const NONE: Faults = Faults {
    crashes: 0,
    stops: 0,
    cuts: 0,
    breaks: 0,
    pauses: 0,
    stalls: 0,
    losses: 0,
    restores: 0,
    words: 0,
};

impl Pair {
    /// What is checked, each run with a name. The short form is a test, the long one takes some minutes.
    pub fn runs(is_long: bool) -> Vec<(String, Pair)> {
        let faults = [
            ("new pair", NONE),
            ("crash", Faults { crashes: 1, ..NONE }),
            ("clean stop", Faults { stops: 1, ..NONE }),
            ("links cut", Faults { cuts: 1, ..NONE }),
            ("connection breaks", Faults { breaks: 1, ..NONE }),
            ("suspended", Faults { pauses: 1, ..NONE }),
            ("no acknowledgement", Faults { stalls: 1, ..NONE }),
            ("directory emptied", Faults { crashes: 1, losses: 1, ..NONE }),
            ("older copy", Faults { crashes: 1, restores: 1, ..NONE }),
            ("operator accepts", Faults { crashes: 2, words: 1, ..NONE }),
        ];
        let more = [
            ("two crashes", Faults { crashes: 2, ..NONE }),
            ("cut and crash", Faults { crashes: 1, cuts: 1, ..NONE }),
            ("break and two crashes", Faults { breaks: 1, crashes: 2, ..NONE }),
            ("stop and cut", Faults { stops: 1, cuts: 1, ..NONE }),
            ("stop and crash", Faults { crashes: 1, stops: 1, ..NONE }),
            ("no acknowledgement and crash", Faults { crashes: 1, stalls: 1, ..NONE }),
            ("two crashes, directory emptied", Faults { crashes: 2, losses: 1, ..NONE }),
        ];
        let more = more.into_iter().filter(|_| is_long);
        let mut runs = Vec::new();
        for (name, faults) in faults.into_iter().chain(more) {
            for sends in [true, false] {
                let pair = Pair {
                    sends,
                    receives: !sends,
                    faults,
                    loses_any: true,
                    sends_again: true,
                    begins_empty: faults == NONE,
                    looks_ahead: faults == NONE || faults.crashes == 1 && faults.restores == 0,
                    number_max: if is_long { 7 } else { 5 },
                    ..Pair::small()
                };
                runs.push((format!("{name}, {}", if sends { "outbound" } else { "inbound" }), pair));
            }
        }
        runs
    }

    /// The model with a wrong rule, and the faults by which it shows.
    pub fn with(planted: Planted) -> Pair {
        let (sends, faults) = match planted {
            Planted::UsedBeforeRecorded | Planted::StartsBeforeMark | Planted::TermForgotten => {
                (true, Faults { crashes: 1, ..NONE })
            }
            Planted::SameTerritory => (true, Faults { cuts: 1, ..NONE }),
            Planted::MergeLowers => (true, Faults { crashes: 2, ..NONE }),
            Planted::BlankCompletes => (true, Faults { crashes: 2, losses: 1, ..NONE }),
            Planted::RecordsNotSent | Planted::AcknowledgementNotAwaited | Planted::WindowsNotMirrored => {
                (false, Faults { crashes: 1, ..NONE })
            }
            Planted::AcknowledgementOfOlderSession => (false, Faults { crashes: 1, stalls: 1, ..NONE }),
            Planted::AloneForgotten | Planted::UnmergedIgnored => {
                (false, Faults { crashes: 1, breaks: 1, ..NONE })
            }
            Planted::StaleServes => (false, Faults { crashes: 2, ..NONE }),
            Planted::PeerStillAlone => (false, Faults { crashes: 2, breaks: 1, ..NONE }),
            Planted::MergedBelowPlane | Planted::StandDownSendsNothing => (false, Faults { cuts: 1, ..NONE }),
            Planted::GapsKept => (false, Faults { crashes: 1, stops: 1, ..NONE }),
            Planted::HeardTermIsComplete => (false, Faults { crashes: 3, breaks: 1, ..NONE }),
        };
        // Counterexamples that are long are looked for without the sessions and terms that they do not need.
        let (session_max, term_max) = match planted {
            Planted::HeardTermIsComplete => (2, 3),
            Planted::PeerStillAlone => (3, 3),
            _ => (6, 4),
        };
        Pair {
            planted: Some(planted),
            session_max,
            term_max,
            sends,
            receives: !sends,
            faults,
            loses_any: true,
            number_max: 5,
            queue_max: if planted == Planted::AcknowledgementOfOlderSession { 3 } else { 2 },
            ..Pair::small()
        }
    }
}
