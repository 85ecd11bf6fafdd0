//! The documents of answers. Times are in seconds, lengths in bytes; counts begin with the gateway, or with the SA.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything that is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusDoc {
    /// Version of the layout.
    pub schema: u32,
    /// Of the program.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// Time since it began to run; rates are the differences of two documents over the difference of this.
    pub uptime_s: f64,
    /// The file that it runs by.
    pub config: String,
    /// The same as a path from the root, which tells the gateways of one host apart.
    #[serde(default)]
    pub config_file: String,
    /// The SAs, outbound and inbound.
    pub sas: Vec<SaDoc>,
    /// The policies in the order in which they are looked at.
    pub policies: Vec<PolicyDoc>,
    /// The processors; the first of each engine is the running core.
    pub processors: Vec<ProcessorDoc>,
    /// The links, the inside first; of links with several queues each queue.
    pub links: Vec<LinkDoc>,
    /// Packets that were dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// The engines, one for each core that moves packets.
    pub engines: Vec<EngineDoc>,
    /// The captures.
    #[serde(default)]
    pub taps: TapsDoc,
    /// The rules of the host.
    #[serde(default)]
    pub guard: GuardDoc,
    /// The offloads of the host's interfaces.
    #[serde(default)]
    pub offloads: OffloadsDoc,
    /// Times that the file was read again.
    #[serde(default)]
    pub reloads: ReloadsDoc,
    /// The host names by which the file calls peers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameDoc>,
    /// Of a gateway of a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairDoc>,
    /// Of a gateway of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterDoc>,
}

/// A host name of a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NameDoc {
    /// The name.
    pub name: String,
    /// The address that it was resolved to; an SA in UDP whose peer moved since has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// SAs to the peer that are left out, because no address is known or another SA to it has their SPI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// One of the gateways that share SAs by etcd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterDoc {
    /// Its name.
    pub name: String,
    /// The gateways that live, this one included.
    pub members: Vec<String>,
    /// Shares into which the SAs are divided.
    pub shares: u16,
    /// Those that this gateway serves.
    pub serves: Vec<u16>,
    /// How many no gateway owned when it looked last.
    pub unowned: usize,
    /// Whether etcd has answered within the lease; if not, other gateways may take over.
    pub connected: bool,
    /// Time since etcd answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_s: Option<f64>,
    /// Transactions with records.
    pub transactions: u64,
    /// Records in them.
    pub records: u64,
    /// Time that such a transaction takes, smoothed.
    pub lag_s: f64,
    /// Shares that this gateway has taken over since its start.
    pub take_overs: u64,
    /// When it last did, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_take_over: Option<f64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What stands in the way now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// One of two gateways that share addresses and SAs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairDoc {
    /// Its number.
    pub number: u8,
    /// `active` or `standby`.
    pub role: String,
    /// The highest term that it knows.
    pub term: u64,
    /// Connections to the peer.
    pub links: usize,
    /// The peer's role, while it is heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Whether the standby has every record of the active gateway.
    pub in_sync: bool,
    /// Messages with records that the peer has not acknowledged yet.
    pub waiting: u64,
    /// Messages with records that the peer has acknowledged.
    pub noted: u64,
    /// Time from a message to its acknowledgement, smoothed.
    pub lag_s: f64,
    /// Times that this gateway became active since its start.
    pub take_overs: u64,
    /// When it last did, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_take_over: Option<f64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Because of what it would be active if its records were complete; it waits for its peer or for `forebay state accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Records and terms of the peer that were refused as implausible.
    #[serde(default)]
    pub refused: u64,
}

/// The SAs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SasDoc {
    /// Version of the layout.
    pub schema: u32,
    /// See [`StatusDoc::sas`].
    pub sas: Vec<SaDoc>,
}

/// The policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoliciesDoc {
    /// Version of the layout.
    pub schema: u32,
    /// See [`StatusDoc::policies`].
    pub policies: Vec<PolicyDoc>,
}

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorsDoc {
    /// Version of the layout.
    pub schema: u32,
    /// See [`StatusDoc::processors`].
    pub processors: Vec<ProcessorDoc>,
    /// See [`StatusDoc::engines`].
    #[serde(default)]
    pub engines: Vec<EngineDoc>,
}

/// Packets that were dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DropsDoc {
    /// Version of the layout.
    pub schema: u32,
    /// See [`StatusDoc::drops`].
    pub drops: BTreeMap<String, u64>,
    /// See [`StatusDoc::config_file`].
    #[serde(default)]
    pub config_file: String,
}

/// An SA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SaDoc {
    /// Its name.
    pub name: String,
    /// `0x` and eight hex digits.
    pub spi: String,
    /// `out` or `in`.
    pub direction: String,
    /// `esp` or `ah`.
    pub protocol: String,
    /// `tunnel` or `transport`.
    pub mode: String,
    /// As in the file.
    pub proposal: String,
    /// This side's outer address.
    pub local: String,
    /// The peer's.
    pub remote: String,
    /// The peer's host name, if the file has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_name: Option<String>,
    /// Packets sealed or opened.
    pub packets: u64,
    /// Their bytes outside of the tunnel.
    pub bytes: u64,
    /// Packets whose ICV did not match.
    pub auth_failures: u64,
    /// Packets that the replay window refused.
    pub replays: u64,
    /// Those of `replays` that are refused because they may have been received before a crash.
    #[serde(default)]
    pub unsure: u64,
    /// The path MTU if one is known.
    pub mtu: Option<u16>,
    /// When it ends, as configured.
    pub lifetime: LifetimeDoc,
    /// What is left until each of its hard limits; behind the first that is used up nothing passes.
    #[serde(default)]
    pub left: LimitsDoc,
    /// Of a per-CPU SA (RFC 9611): the worker whose packets it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Of an inbound SA that aggregates (IP-TFS, RFC 9347): counters of its payloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iptfs: Option<IptfsDoc>,
    /// Of an outbound one at a fixed rate: payloads that it sends in a second now, fewer than its rate where the path is congested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iptfs_rate: Option<u64>,
}

/// IP-TFS counters of an inbound SA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IptfsDoc {
    /// Payloads read.
    pub payloads: u64,
    /// Those of them that held padding only.
    pub all_pad: u64,
    /// Payloads considered lost (`lost_after`, `reorder_window`).
    pub lost: u64,
    /// Inner packets taken out.
    pub packets: u64,
    /// Those of them that were put together from several payloads.
    pub reassembled: u64,
    /// Payloads read whose outer packet had experienced congestion.
    pub marked: u64,
}

/// When an SA ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifetimeDoc {
    /// Where another SA is asked for.
    pub soft: LimitsDoc,
    /// Behind which nothing passes.
    pub hard: LimitsDoc,
}

/// Limits of an SA; absent ones are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitsDoc {
    /// Since it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// Since its first packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_time_s: Option<f64>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyDoc {
    /// Its name.
    pub name: String,
    /// `out` or `in`.
    pub direction: String,
    /// `protect`, `bypass` or `discard`.
    pub action: String,
    /// The SAs that protect, by name.
    pub sas: Vec<String>,
    /// This side; empty for any.
    pub local_ts: Vec<String>,
    /// The peer's side.
    pub remote_ts: Vec<String>,
}

/// A processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorDoc {
    /// Its name.
    pub name: String,
    /// `core` or `card`.
    pub kind: String,
    /// The engine that it works for, from 0.
    pub engine: usize,
    /// Whether it is ejected for errors or missed deadlines.
    pub out: bool,
    /// Jobs done; each holds a packet or a bundle.
    pub jobs: u64,
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of the time since the start that it worked, 0 to 1.
    pub load: f64,
    /// Time that it worked.
    pub busy_s: f64,
    /// Jobs that wait there now.
    pub queue: u64,
    /// Factor on its finish time as it is now.
    pub alpha: f64,
    /// What is added to its finish time for being late.
    pub lateness_s: f64,
    /// Sum over its jobs: work as it was predicted.
    pub predicted_work_s: f64,
    /// Sum over its jobs: from dispatch to answer, waiting included, as it was predicted.
    pub predicted_response_s: f64,
    /// Likewise, as it was.
    pub response_s: f64,
    /// Sum of the distances between the two.
    pub response_error_s: f64,
    /// Answers that came after the job had been given to another.
    pub late: u64,
    /// Times that it was ejected.
    pub removals: u64,
    /// What jobs cost there, as the scheduler believes now.
    pub costs: Vec<CostDoc>,
}

/// What jobs of a suite cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostDoc {
    /// The suite.
    pub proposal: String,
    /// Before the first block.
    pub init_s: f64,
    /// For every 16 bytes.
    pub block_s: f64,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkDoc {
    /// Its name.
    pub name: String,
    /// The engine that the queue is for, from 0.
    #[serde(default)]
    pub engine: usize,
    /// `inside` or `outside`.
    pub side: String,
    /// Packets received.
    pub packets_in: u64,
    /// Their bytes, IP headers included.
    pub bytes_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Packets that wait to be sent.
    pub queue: u64,
    /// Packets that were not sent, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Received packets that are not for the gateway, by kind; not counted in `packets_in`.
    #[serde(default)]
    pub passed_over: BTreeMap<String, u64>,
    /// Its own device, where it has one: a network device by DPDK.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceDoc>,
}

/// The network device of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDoc {
    /// Whether its link is up.
    pub up: bool,
    /// Neighbours whose Ethernet address is known.
    pub neighbours: usize,
    /// Frames that came in several buffers and were put together, which takes a copy.
    pub linearised: u64,
    /// How many times the device was made again because its other end was gone.
    pub made_again: u64,
    /// Packets that it had taken and that were lost when it was made again.
    #[serde(default)]
    pub unsent: u64,
}

/// What an engine did beyond passing packets on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineDoc {
    /// CPU time of its worker thread, in seconds: receiving, sending and polling as well as crypto.
    #[serde(default)]
    pub cpu_s: f64,
    /// Share of the uptime that this is: the load of the core.
    #[serde(default)]
    pub load: f64,
    /// Packets in flight.
    pub in_flight: u64,
    /// Packets that may still come in.
    pub room: u64,
    /// Jobs retried by the running core.
    pub redone: u64,
    /// Packets received before their SA was installed, and held for it.
    #[serde(default)]
    pub strangers: u64,
    /// Results of others that the running core checked.
    pub audits: u64,
    /// Poll iterations of the worker thread.
    pub rounds: u64,
    /// Times that the worker thread slept while idle.
    pub naps: u64,
    /// Peer address changes.
    pub moved_peers: u64,
    /// Genuine packets from elsewhere than a peer that has moved too often to be followed just now.
    #[serde(default)]
    pub moves_limited: u64,
    /// NAT keepalives sent.
    pub keepalives: u64,
    /// Accepted ICMP path MTU errors.
    pub paths_learnt: u64,
    /// ICMP messages of smaller paths that quote no packet that was sent lately, as forged ones do.
    #[serde(default)]
    pub paths_unmatched: u64,
    /// ICMP messages of smaller paths beyond the rate at which they are believed.
    #[serde(default)]
    pub paths_limited: u64,
    /// ICMP answers to sources of packets that are too big.
    pub answers: u64,
    /// Packets taken from links of other workers that had too much to do.
    #[serde(default)]
    pub helped: u64,
    /// Received packets that waited until their sequence numbers were noted on disk.
    #[serde(default)]
    pub held: u64,
}

/// The rules of the host that drop what passes beside the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GuardDoc {
    /// `on`; `missing` where they could not be made; `print` and `off` as in the file.
    pub state: String,
    /// Why they could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The table of nftables that they are in, of the family `inet`.
    pub table: String,
    /// Ranges of addresses that are guarded.
    pub ranges: usize,
    /// Policies or SAs for any address on both sides, which nothing is guarded of.
    pub any_to_any: usize,
    /// Packets dropped that arrived in the clear with a protected source.
    pub forged: u64,
    /// Packets dropped that would have left in the clear to a protected destination.
    pub leaked: u64,
    /// Times that the rules were restored after another program deleted or changed them.
    pub restored: u64,
    /// Networks with a blackhole route behind the others.
    #[serde(default)]
    pub blackholes: usize,
    /// Routes of protected networks that were restored after another program deleted them.
    #[serde(default)]
    pub routes_restored: u64,
}

/// Offloads of the host's interfaces that the gateway looks after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OffloadsDoc {
    /// Times that an offload was switched on again after another program switched it off.
    pub restored: u64,
    /// Each offload of each interface.
    pub offloads: Vec<OffloadDoc>,
}

/// An offload of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OffloadDoc {
    /// The interface.
    pub interface: String,
    /// The offload as ethtool(8) calls it.
    pub offload: String,
    /// `on`; `off` before it is switched on; `fixed` where it is off and the driver fixes it; `lacking` where the kernel does not have it;
    /// `refused` where the driver does not switch it on; `without rx-gro` where that is off, without which it has no effect;
    /// `without tx-generic-segmentation` where both are off; `no such interface`.
    pub state: String,
    /// Whether the gateway has switched it on, and switches it off at a clean shutdown.
    pub switched: bool,
}

/// Captures of what passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapsDoc {
    /// `on`, `off`, or `failed`.
    pub state: String,
    /// Why they have ended, where that is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often they have.
    pub failures: u64,
    /// The inside, then the outside.
    pub sides: Vec<TapSideDoc>,
}

/// Captures of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TapSideDoc {
    /// `inside` or `outside`.
    pub side: String,
    /// Packets written.
    pub packets: u64,
    /// Bytes that they take in the files.
    pub bytes: u64,
    /// Packets that passed and found no room to wait for being written.
    pub lost: u64,
    /// Files begun.
    pub files: u64,
    /// The one that is written now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Times that the file was read again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadsDoc {
    /// Times that it was taken.
    pub taken: u64,
    /// Times that it had errors, and nothing changed.
    pub refused: u64,
    /// SAs that the last one added.
    pub added: usize,
    /// SAs that the last one removed.
    pub removed: usize,
    /// Settings of the last one that take effect only after a restart; of one with errors their number.
    pub remarks: usize,
}

/// What reading the file again did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadDoc {
    /// Version of the layout.
    pub schema: u32,
    /// Whether all of the file was taken. With errors nothing changed, but for `in_part`.
    pub ok: bool,
    /// Whether the gateway uses the file in spite of errors: what they name is not done, and all else is.
    #[serde(default)]
    pub in_part: bool,
    /// SAs that are new, or changed.
    pub added: usize,
    /// SAs that are gone, or changed.
    pub removed: usize,
    /// SAs that go on.
    pub kept: usize,
    /// Settings that take effect only after a restart, in words.
    pub restart: Vec<String>,
    /// What is wrong with the file.
    pub errors: Vec<FindingDoc>,
    /// What should be looked at.
    pub warnings: Vec<FindingDoc>,
}

/// Something that was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindingDoc {
    /// The file.
    pub file: String,
    /// The line, from 1, if it is about one.
    pub line: Option<usize>,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Nothing can be said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorDoc {
    /// Version of the layout.
    pub schema: u32,
    /// Why.
    pub message: String,
}
