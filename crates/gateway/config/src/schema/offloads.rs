//! `[offloads]`.

use super::Absent::{Is, Means};
use super::Takes::{Either, Word};
use super::{Part, TEXTS, key, once};

pub const OFFLOADS: Part = once(
    "offloads",
    &[
        key(
            "mode",
            Word(&["auto", "keep"]),
            Is("\"auto\""),
            "offloads of the host's interfaces that pass UDP packets in batches: `auto` switches `rx-udp-gro-forwarding` on at the \
             interfaces to the inside and `tx-udp-segmentation` at those and at the interfaces to peers, as far as their drivers have \
             them, and back at a clean shutdown; `keep` leaves them as they are",
            "\"keep\"",
        ),
        key(
            "inside",
            Either("interface names", TEXTS),
            Means("those by which this host reaches the local selectors of SAs and policies that protect"),
            "interfaces at which packets from the protected network arrive",
            "[\"lan0\"]",
        ),
    ],
);
