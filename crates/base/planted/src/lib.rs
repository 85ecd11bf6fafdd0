//! Faults that can be planted in the gateway, to see that its tests find them.
//!
//! The code asks [`planted`] where a fault would be made. Without the feature `on` that is the constant `false`, so
//! that nothing of it is compiled into a program. With it, the fault that the thread has chosen by `plant` is made.

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
    ReplayIgnored "packets received before are taken again"
    ReplayCheckedOnce "the replay window is checked before the crypto and not after it"
    IcvIgnored "packets whose ICV does not match are delivered"
    MoveByReplay "a packet received before moves the peer"
    FlowOfOthers "the SA of the last packet is used whatever the addresses"
    DropsUncounted "dropped packets are not counted"
    GenerationReused "a slot's generation stays when it is given back"
    StaleAnswers "answers to jobs of an older generation are taken"
    OrderLost "packets leave without regard to their tickets"
    ParkedForgotten "what is done before its turn is not completed by the core that completes what is before it"
    OvertakenSent "a core that was overtaken sends what it brings"
    NumbersGivenBack "sequence numbers of packets that were not sent are used again"
    RescueForgotten "the jobs of a processor that failed are not done again"
    SequencesRestart "an SA begins at 1 again after a restart or a reload"
    GrantedTooMuch "more sequence numbers are used than were reserved"
    SequencesNotWritten "reserved sequence numbers are not written"
    SettledTooLow "after a stop the last sequence number counts as not used"
    NumbersNotRetried "a reservation that failed is not tried again"
    IvMarkIgnored "IVs start at the clock, whatever was reserved before"
    IvMarkTooLow "the mark is one below the last IV that was reserved"
    IvsNotRefilled "no more IVs are reserved when half of them are used"
    SkippedSync "a state file is renamed before its bytes are durable"
    SkippedDirectorySync "a state file's new name is not made durable"
    TornLineKept "notes are appended behind a line that a crash has torn"
    WindowsForgotten "replay windows are empty after a restart or a reload"
    WindowsNotNoted "limits of replay windows are raised without a note"
    DeliveredBeforeNoted "packets are delivered before their numbers are noted"
    HeldNotReleased "packets that wait for a note wait for ever"
    GuardNotInstalled "the guard's rules are not installed"
    GuardRemoved "a stop removes the guard's rules"
    BlackholesRemoved "a stop removes the routes that discard"
    LossesUncounted "packets that a link has lost are not counted"
    NotUnblocked "a link that was full is taken for full for ever"
    PeersNotFollowed "outbound SAs do not follow a peer that has moved"
    PeersNotFound "a new outbound SA sends to where its peer was at first"
    SameTerritory "both machines of a pair use the same IVs and sequence numbers"
    RecordsNotSent "records are used before the other machine of the pair has them"
    WindowsNotMirrored "the machine that stands by does not note replay windows"
    MergedUnderWay "what the other machine did meanwhile does not reach the data plane that runs"
    LateRecordsTaken "records that an ended connection delivers late are taken"
    EmptyServes "a machine with an empty state directory takes over without records"
    AloneForgotten "a machine that went on without the other one does not remember it"
    OthersForgotten "a machine starts alone with the records of a pair, whatever an operator says"
    PairRemembered "a machine that has left its pair remembers what was known there"
    AlonesUntold "a machine that becomes one of a pair does not tell what it recorded alone"
    SharesBeginAnew "a machine that takes a share over does not read its records"
    DiscardsServedOnly "a machine has no routes that discard what another one serves"
    UsedUnrecorded "what etcd has not recorded is used"
    StopsAloneIgnored "a machine that is to serve nothing without etcd goes on"
    MovesUnseen "an SA may have records in two shares"
    PlacesKept "where an earlier file had an SA hinders the share that it would be in"
    AddressesKept "a machine keeps the addresses of a share that it serves no more"
    ClaimsIgnored "records are written whoever has claimed the share"
    DoubtForgotten "a record that was not answered may be written after a later one"
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
