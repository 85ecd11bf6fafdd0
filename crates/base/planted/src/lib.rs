//! Faults that can be planted in the gateway, to show that its tests find them.
//!
//! The code calls [`planted`] where a fault would be made. Without the feature `on`, that is the constant `false`, so
//! that a program contains nothing of it. With the feature, the fault that the thread has chosen by `plant` is made.

macro_rules! faults {
    ($($variant:ident $text:literal)*) => {
        /// A fault that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $(#[doc = $text] $variant,)*
        }

        impl Fault {
            /// Every fault, in the order of the list.
            pub const ALL: &[Fault] = &[$(Fault::$variant),*];

            /// What is wrong with it planted, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(Fault::$variant => $text),* }
            }
        }
    };
}

faults! {
    WindowBeforeIcv "the replay window moves before the ICV is verified"
    ReplayIgnored "packets that were received before are accepted again"
    ReplayCheckedOnce "the replay window is checked before the crypto only, not after it"
    IcvIgnored "packets with a wrong ICV are delivered"
    MoveByReplay "a replayed packet changes the peer's address"
    FlowOfOthers "the SA of the last packet is used regardless of the addresses"
    DropsUncounted "dropped packets are not counted"
    GenerationReused "the generation of a slot does not change when the slot is freed"
    StaleAnswers "results of jobs of an older generation are accepted"
    OrderLost "packets leave regardless of their tickets"
    ParkedForgotten "a core does not complete the packets that other cores finished before their turn"
    OvertakenSent "a core that was overtaken sends its packets"
    NumbersGivenBack "sequence numbers of packets that were not sent are used again"
    RescueForgotten "the jobs of a failed processor are not repeated"
    SequencesRestart "an SA begins at 1 again after a restart or a reload"
    GrantedTooMuch "more sequence numbers are used than were reserved"
    SequencesNotWritten "reserved sequence numbers are not written"
    SettledTooLow "after a stop the last sequence number counts as unused"
    NumbersNotRetried "a failed reservation is not retried"
    IvMarkIgnored "IVs start at the clock, regardless of earlier reservations"
    IvMarkTooLow "the record is one below the last reserved IV"
    IvsNotRefilled "no more IVs are reserved when half of them are used"
    SkippedSync "a state file is renamed before its bytes are durable"
    SkippedDirectorySync "the new name of a state file is not made durable"
    TornLineKept "records are appended after a line that a crash has torn"
    WindowsForgotten "replay windows are empty after a restart or a reload"
    WindowsNotNoted "limits of replay windows are raised without a record"
    DeliveredBeforeNoted "packets are delivered before their numbers are recorded"
    HeldNotReleased "packets that wait for a record wait forever"
    GuardNotInstalled "the guard's rules are not installed"
    GuardRemoved "a stop removes the guard's rules"
    BlackholesRemoved "a stop removes the blackhole routes"
    LossesUncounted "packets that a link has lost are not counted"
    NotUnblocked "a link that was full counts as full forever"
    PeersNotFollowed "outbound SAs do not follow a peer whose address changed"
    PeersNotFound "a new outbound SA sends to its peer's first address"
    SameTerritory "both machines of a pair use the same IVs and sequence numbers"
    RecordsNotSent "records are used before the other machine of the pair has them"
    WindowsNotMirrored "the standby does not record replay windows"
    MergedUnderWay "records of the other machine do not reach the running data plane"
    LateRecordsTaken "records that a closed connection delivers late are accepted"
    EmptyServes "a machine with an empty state directory takes over without records"
    AloneForgotten "a machine that continued alone does not remember it"
    OthersForgotten "a machine starts alone with the records of a pair, without `forebay state accept`"
    PairRemembered "a machine that has left its pair keeps the pair's terms"
    AlonesUntold "a machine that joins a pair does not send the records that it made alone"
    SharesBeginAnew "a machine that takes over a share does not read its records"
    DiscardsServedOnly "a machine has no blackhole routes for networks that another one serves"
    UsedUnrecorded "numbers that etcd has not recorded are used"
    StopsAloneIgnored "a machine with `alone = \"stop\"` serves without etcd"
    MovesUnseen "an SA may have records in two shares"
    PlacesKept "the share that an earlier file gave an SA prevents its new share from being served"
    AddressesKept "a machine keeps the addresses of a share that it does not serve any more"
    ClaimsIgnored "records are written regardless of the claim of their share"
    DoubtForgotten "a record without an answer may be written after a later one"
}

/// The gateways of which a fault is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Every gateway.
    Single,
    /// Two that work as one.
    Pair,
    /// The same, and roles that change.
    Roles,
    /// Those that share SAs by etcd.
    Cluster,
    /// The same, with several shares.
    Shares,
    /// The same, by requests that etcd carries out late: whole gateways make too few of them.
    Store,
}

impl Fault {
    /// The gateways of which it is one.
    pub fn kind(self) -> Kind {
        match self {
            fault if fault >= Fault::ClaimsIgnored => Kind::Store,
            fault if fault >= Fault::MovesUnseen => Kind::Shares,
            fault if fault >= Fault::SharesBeginAnew => Kind::Cluster,
            fault if fault >= Fault::OthersForgotten => Kind::Roles,
            fault if fault >= Fault::SameTerritory => Kind::Pair,
            _ => Kind::Single,
        }
    }
}

#[cfg(feature = "on")]
mod chosen {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        static CHOSEN: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Plants a fault on this thread, or none.
    pub fn plant(fault: Option<Fault>) {
        CHOSEN.set(fault);
    }

    /// Whether this fault is planted on this thread.
    pub fn planted(fault: Fault) -> bool {
        CHOSEN.get() == Some(fault)
    }
}

#[cfg(feature = "on")]
pub use chosen::{plant, planted};

/// Whether this fault is planted: never.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub const fn planted(_fault: Fault) -> bool {
    false
}
