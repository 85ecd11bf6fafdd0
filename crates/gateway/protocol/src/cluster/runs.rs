//! The bounds within which the model is checked, and those in which each planted error is found.

use super::{Cluster, Faults, Planted};

const NONE: Faults = Faults { crashes: 0, leases: 0, unanswered: 0, reloads: 0, moves: 0, losses: 0 };

impl Cluster {
    /// What is checked, each run with a name. The short form is a test, the long one takes some minutes.
    pub fn runs(is_long: bool) -> Vec<(String, Cluster)> {
        let faults = [
            ("leases end", Faults { leases: 2, ..NONE }),
            ("requests are late", Faults { leases: 1, unanswered: 2, ..NONE }),
            ("crashes", Faults { crashes: 1, losses: 1, ..NONE }),
            ("shares move", Faults { moves: 2, leases: 1, ..NONE }),
            ("files change", Faults { reloads: 3, leases: 1, ..NONE }),
        ];
        let more = [
            ("leases end three times", Faults { leases: 3, ..NONE }),
            ("shares move and requests are late", Faults { moves: 2, leases: 1, unanswered: 2, ..NONE }),
            ("crashes and late requests", Faults { crashes: 2, unanswered: 2, losses: 1, ..NONE }),
            ("files change and shares move", Faults { reloads: 3, leases: 1, moves: 1, ..NONE }),
        ];
        let more = more.into_iter().filter(|_| is_long);
        let mut runs = Vec::new();
        for (name, faults) in faults.into_iter().chain(more) {
            for sends in [true, false] {
                if !sends && faults.reloads > 0 {
                    continue;
                }
                let cluster = Cluster {
                    sends,
                    receives: !sends,
                    faults,
                    number_max: if is_long { 4 } else { 3 },
                    revision_max: if is_long { 6 } else { 4 },
                    ..Cluster::small()
                };
                runs.push((format!("{name}, {}", if sends { "outbound" } else { "inbound" }), cluster));
            }
        }
        if is_long {
            let faults = Faults { leases: 1, unanswered: 1, moves: 1, ..NONE };
            let both = Cluster { receives: true, faults, number_max: 2, ..Cluster::small() };
            runs.push(("both SAs".to_owned(), both));
        }
        runs
    }

    /// The model with a wrong rule, and the faults by which it shows.
    pub fn with(planted: Planted) -> Cluster {
        let faults = match planted {
            Planted::PlaceNotLookedAt => Faults { reloads: 2, ..NONE },
            Planted::HandedBackUnseen => Faults { moves: 1, leases: 1, ..NONE },
            Planted::UsedUnrecorded | Planted::DoubtForgotten => Faults { leases: 1, unanswered: 1, ..NONE },
            Planted::ResumedWithoutClaim => Faults { moves: 1, leases: 1, unanswered: 1, ..NONE },
            _ => Faults { moves: 1, leases: 1, ..NONE },
        };
        Cluster { planted: Some(planted), faults, gateways: 2, ..Cluster::small() }
    }
}
