//! The state of the model of a cluster: the store, gateways with their disks, and requests without an answer.

/// The SAs: one outbound and one inbound.
pub const OUTBOUND: usize = 0;
/// See [`OUTBOUND`].
pub const INBOUND: usize = 1;
/// Numbers of shares and gateways.
pub const SHARES: usize = 2;
/// See [`SHARES`].
pub const GATEWAYS: usize = 3;

/// A process of a gateway: its gateway and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(pub u8, pub u8);

/// A claim: its revision, its owner, and the term of ownership that it renews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claim {
    pub revision: u8,
    pub owner: Option<Name>,
    pub renews: Option<u8>,
}

/// etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Store {
    /// Gateways whose lease has not ended.
    pub members: [Option<Name>; GATEWAYS],
    /// Keys with the lease of their gateway.
    pub owners: [Option<Name>; SHARES],
    /// Keys without a lease.
    pub claims: [Claim; SHARES],
    /// The share that has the records of an SA.
    pub places: [Option<u8>; 2],
    /// The records by share and SA: the last number that is reserved, the limit of the replay window.
    pub records: [[u8; 2]; SHARES],
}

/// A share that a gateway considers its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    pub term: u8,
    pub fence: u8,
    pub is_doubtful: bool,
    /// The gateway that will get it.
    pub leaving: Option<Name>,
    /// Its records, until the data plane has read them.
    pub records: Option<[u8; 2]>,
}

/// The SAs of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// The last used number of an outbound SA, and the limit of both.
    pub sent: u8,
    pub limit: u8,
    /// Packets of an inbound SA that count as received.
    pub received: u8,
}

/// A running process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    pub number: u8,
    /// The version of the file of SAs.
    pub file: u8,
    /// For each SA, whether the store is known to have its share.
    pub is_placed: [bool; 2],
    pub held: [Option<Held>; SHARES],
    /// The term under which the data plane serves a share.
    pub serving: [Option<u8>; SHARES],
    pub terms: u8,
    pub planes: [Option<Plane>; 2],
}

/// A gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gateway {
    /// Records on its own disk, and the highest packet that was certainly received.
    pub disk: [u8; 2],
    pub certain: u8,
    /// Processes so far.
    pub processes: u8,
    pub process: Option<Process>,
}

/// A request that the store may still perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Late {
    /// A record, if the claim has this revision.
    Record { share: u8, fence: u8, sa: u8, value: u8 },
    /// A share goes to another gateway.
    HandOver { share: u8, fence: u8, to: Name },
}

/// Number of times that each fault may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub crashes: u8,
    /// Leases that end although their gateway runs.
    pub leases: u8,
    /// Requests without an answer.
    pub unanswered: u8,
    /// Reloads of a file that has the outbound SA in another share.
    pub reloads: u8,
    /// Shares that a gateway hands over to another one.
    pub moves: u8,
    /// State directories that are emptied.
    pub losses: u8,
}

/// An invariant that did not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    NumberTwice,
    PacketTwice,
    NotFound,
}

/// The state of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub store: Store,
    pub gateways: [Gateway; GATEWAYS],
    pub late: Vec<Late>,
    pub faults: Faults,
    /// The knowledge of an observer: used numbers, accepted packets.
    pub numbers: u16,
    pub accepted: u16,
    pub broken: Option<Broken>,
}

impl State {
    /// The name of the process of a gateway.
    pub fn name(&self, g: usize) -> Option<Name> {
        self.gateways[g].process.map(|process| Name(g as u8, process.number))
    }

    /// Whether a process has a lease.
    pub fn lives(&self, name: Name) -> bool {
        self.store.members[usize::from(name.0)] == Some(name)
    }

    /// Whether the store performs a request now.
    pub fn carry_out(&mut self, late: Late, compares: bool) -> bool {
        match late {
            Late::Record { share, fence, sa, value } => {
                let share = usize::from(share);
                if compares && self.store.claims[share].revision != fence {
                    return false;
                }
                self.store.records[share][usize::from(sa)] = value;
            }
            Late::HandOver { share, fence, to } => {
                let claim = &mut self.store.claims[usize::from(share)];
                if claim.revision != fence || self.store.members[usize::from(to.0)] != Some(to) {
                    return false;
                }
                *claim = Claim { revision: fence + 1, owner: Some(to), renews: None };
                self.store.owners[usize::from(share)] = Some(to);
            }
        }
        true
    }
}
