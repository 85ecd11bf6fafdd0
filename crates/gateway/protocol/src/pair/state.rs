//! The state of the model of a pair: two gateways with their disks, a connection, and the knowledge of an observer of both.

/// The packets that an inbound SA has received, or may have: packet `n` is bit `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Window {
    /// The packets that count as received.
    pub mask: u8,
    /// The highest packet that was certainly received.
    pub certain: u8,
}

impl Window {
    /// The highest packet that counts as received.
    pub fn top(self) -> u8 {
        (7 - self.mask.leading_zeros().min(7)) as u8
    }

    /// Every packet up to this one counts as received.
    pub fn up_to(top: u8, certain: u8) -> Window {
        Window { mask: below(top), certain }
    }

    /// Whether packets below the top are missing.
    pub fn has_gaps(self) -> bool {
        self.mask != below(self.top())
    }
}

/// The packets from 1 to this one.
pub fn below(top: u8) -> u8 {
    ((1_u16 << (top + 1)) - 2) as u8
}

/// The records of the outbound and the inbound SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Records {
    /// The last sequence number that is reserved.
    pub last: u8,
    /// The last IV that is reserved in the half of each gateway.
    pub ivs: [u8; 2],
    /// The replay window, in a message that has one.
    pub window: Option<Window>,
}

/// The note of a gateway about the pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Note {
    pub term: u8,
    pub unmerged: bool,
    pub complete: Option<u8>,
}

/// A state directory. Every write is durable: the model has no step between a write and its synchronisation, because
/// nothing is used in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    pub last: u8,
    pub ivs: [u8; 2],
    pub window: Window,
    pub note: Note,
    /// Whether the gateway has ever had all records of the pair since the directory was empty.
    pub has_joined: bool,
    pub accepted: bool,
}

/// The last heartbeat of the other gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heard {
    pub is_active: bool,
    pub term: u8,
    pub has_resigned: bool,
}

/// Recorded numbers that are not used yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sequence numbers and IVs above the first ones, up to the last ones.
    Numbers { after: u8, last: u8, iv_after: u8, iv_last: u8 },
    /// Packets up to this one may be received.
    Limit(u8),
    /// The window without its gaps, before the data plane starts with it.
    Full(Window),
}

/// A record that the peer may have to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    pub kind: Kind,
    /// The session and the number of its message, if it was sent.
    pub at: Option<(u8, u8)>,
}

/// A running data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// The last used sequence number and IV, and the last ones that may be used.
    pub sent: u8,
    pub last: u8,
    pub iv_sent: u8,
    pub iv_last: u8,
    /// The received packets, and the limit up to which packets may be received.
    pub received: Window,
    pub limit: u8,
}

/// A running process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    pub is_active: bool,
    pub is_paused: bool,
    pub term: u8,
    pub peer: Option<Heard>,
    /// Whether it would be active if its records were complete.
    pub waits: bool,
    /// All records of the peer up to this term are here.
    pub complete: Option<u8>,
    pub lacks: bool,
    pub peer_wants: bool,
    pub is_peer_unmerged: bool,
    /// The newest session of the peer, and the one in which all records arrived.
    pub source: Option<u8>,
    pub received_session: Option<u8>,
    /// Its own session, the number of its messages with records, and how many of them count as acknowledged.
    pub session: Option<u8>,
    pub sent: u8,
    pub acknowledged: u8,
    pub merge_sent: bool,
    pub is_merged: bool,
    /// At a standby: the window of the active gateway, and one that is merged when the data plane has stopped.
    pub mirrored: Option<Window>,
    pub owed: Option<Window>,
    pub owes_answer: bool,
    /// The packets that it received itself, if it stopped its data plane with a merge outstanding.
    pub own: Option<Window>,
    /// The top of the window when it became active.
    pub base: Window,
    pub is_running: bool,
    pub restarts: bool,
    pub pending: Option<Pending>,
    pub plane: Option<Plane>,
}

/// A heartbeat. The packets that the sender has accepted are for the observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    pub heard: Heard,
    pub unmerged: bool,
    pub wants: bool,
    pub session: Option<u8>,
    pub accepted: u8,
}

/// A message with records, or about them, that is read after the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    Note { session: u8, at: u8, records: Records },
    Noted { session: u8, at: u8 },
    Merge { records: Records, is_active: bool, term: u8, is_blank: bool, is_whole: bool },
    Merged,
    Resign { term: u8, unmerged: bool, accepted: u8 },
}

/// Number of times that each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A process is killed, or its host loses power.
    pub crashes: u8,
    /// A gateway stops cleanly.
    pub stops: u8,
    /// All links between the two are cut.
    pub cuts: u8,
    /// The connection breaks, and the link stays.
    pub breaks: u8,
    /// A process is suspended for longer than `silence`.
    pub pauses: u8,
    /// The peer does not acknowledge a record within `silence`, although its heartbeats arrive.
    pub stalls: u8,
    /// A state directory is replaced by an empty one.
    pub losses: u8,
    /// An older copy of a state directory is restored.
    pub restores: u8,
    /// An operator accepts the records of a gateway.
    pub words: u8,
}

/// An invariant that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    NumberTwice,
    IvTwice,
    PacketTwice,
    Incomplete,
    TermFell,
}

/// The knowledge of an observer who sees everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Observer {
    pub numbers: u32,
    pub ivs: [u16; 2],
    /// The packets that each gateway has accepted.
    pub accepted: [u8; 2],
    /// The packets that the other gateway has accepted while the two were apart, so that this one may accept them once.
    pub excused: [u8; 2],
    /// The packets that the other one had accepted when this one received its heartbeat.
    pub told: [u8; 2],
    /// The highest term that each of them has known.
    pub terms: [u8; 2],
    /// Whether either of the two may continue alone, because one did while the other one ran, and they have not merged since. Not for a gateway
    /// that has received a higher term.
    pub is_split: [bool; 2],
    /// Whether its state directory is an older copy or was emptied, and it has not merged all records since.
    pub is_lost: [bool; 2],
    /// An operator has decided: packets are not compared any more, and no number either if a directory was lost.
    pub packets_waived: bool,
    pub all_waived: bool,
    pub broken: Option<Broken>,
}

/// A gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gateway {
    pub disk: Disk,
    /// An older copy of the directory.
    pub copy: Option<Disk>,
    pub process: Option<Process>,
    /// Whether it considers the connection open, and the unread messages.
    pub is_connected: bool,
    /// Whether it has received a heartbeat over this connection, the first message of each side.
    pub is_greeted: bool,
    pub queue: Vec<Message>,
}

/// Both gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub gateways: [Gateway; 2],
    /// Whether the link is cut.
    pub is_cut: bool,
    /// Sessions so far.
    pub sessions: u8,
    pub faults: Faults,
    pub observer: Observer,
}

impl Gateway {
    /// Raises lower numbers and IVs; returns whether there were lower numbers.
    pub fn raise(&mut self, records: Records, lowers: bool) -> bool {
        let disk = &mut self.disk;
        let raised = disk.last < records.last;
        if records.last > 0 && (raised || lowers) {
            disk.last = records.last;
        }
        for (known, said) in disk.ivs.iter_mut().zip(records.ivs) {
            if said > 0 && (*known < said || lowers) {
                *known = said;
            }
        }
        raised
    }
}

impl State {
    /// A gateway sends a message, which is lost if the link is cut or the other side has closed the connection.
    pub fn say(&mut self, g: usize, message: Message) {
        let [from, to] = [g, 1 - g].map(|one| self.gateways[one].is_connected);
        if from && to && !self.is_cut {
            self.gateways[1 - g].queue.push(message);
        }
    }

    /// Whether the two cannot reach each other.
    pub fn is_apart(&self) -> bool {
        self.is_cut || self.gateways.iter().any(|gateway| !gateway.is_connected)
    }

    /// Compares the records of a starting data plane with the used numbers and accepted packets.
    pub fn look_at_start(&mut self, g: usize, half: usize, window: Window) {
        let Some(plane) = self.gateways[g].process.as_ref().and_then(|process| process.plane) else { return };
        let observer = &mut self.observer;
        let own = observer.numbers & [0x3333_3333_u32, 0xcccc_cccc][g];
        let is_behind = own >> (plane.sent + 1) != 0 || observer.ivs[half] >> (plane.iv_sent + 1) != 0;
        let needed = observer.accepted[g] | observer.accepted[1 - g] & !observer.excused[g];
        let lacks_packets = needed & !window.mask != 0 && !observer.packets_waived;
        if (is_behind || lacks_packets) && !observer.all_waived {
            observer.broken.get_or_insert(Broken::Incomplete);
        }
    }

    /// Whether the other gateway has records of all that this one has used and accepted.
    pub fn other_has_all(&self, g: usize) -> bool {
        let other = &self.gateways[1 - g];
        let own = self.observer.numbers & [0x3333_3333_u32, 0xcccc_cccc][g];
        let window = match &other.process {
            Some(Process { plane: Some(plane), .. }) => plane.received,
            Some(process) => process.mirrored.unwrap_or(other.disk.window),
            None => other.disk.window,
        };
        own >> (other.disk.last + 1) == 0
            && self.observer.ivs[g] >> (other.disk.ivs[g] + 1) == 0
            && self.observer.accepted[g] & !window.mask == 0
    }
}
