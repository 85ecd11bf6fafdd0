//! Errors and warnings of an SAs file. Text of the file is masked before it gets here.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use forebay_crypto::{KeyError, Suite};
use forebay_diagnostics::Fault;
use forebay_ipsec::{SaConfigError, Spi};
use ipnet::IpNet;
use miette::Severity;

use super::host_name::{HostName, Peer};
use super::table::Section;

/// What is wrong. Strings are words of the file, long hex in them replaced by asterisks.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The SAs file cannot be read.
    Unreadable(io::Error),
    /// The SAs file is longer than [`MAX_FILE_LEN`](super::MAX_FILE_LEN) bytes.
    TooLong {
        /// The most, in bytes.
        limit: usize,
    },
    /// The SAs file is not UTF-8.
    NotUtf8 {
        /// The first line that is not, from 1.
        line: usize,
    },
    /// The text is not TOML.
    Syntax {
        /// What the TOML parser says.
        message: String,
    },
    /// There is no `[[sa]]`.
    NoSa,
    /// `sa` or `policy` is something else than a list of tables.
    NotTables {
        /// Which.
        key: &'static str,
        /// The TOML type.
        found: &'static str,
    },
    /// A key that means nothing.
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest known one; empty if none is near.
        nearest: String,
        /// Where it stands; `None` is outside of all tables.
        within: Option<Section>,
        /// Where it would mean something.
        belongs: Option<Section>,
    },
    /// An SA or policy lacks a key that has no default.
    MissingKey {
        /// Which of the two.
        of: Section,
        /// Its name.
        name: String,
        /// The key.
        key: &'static str,
    },
    /// A value of the wrong TOML type.
    WrongType {
        /// The key.
        key: &'static str,
        /// Its type.
        found: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// A word that means nothing for this key.
    UnknownWord {
        /// The key.
        key: &'static str,
        /// The word.
        found: String,
        /// All that mean something.
        expected: Vec<&'static str>,
    },
    /// An unknown proposal.
    UnknownProposal {
        /// The proposal.
        found: String,
        /// The nearest known one; empty if none is near.
        nearest: String,
    },
    /// A suite that RFC 8221 says MUST NOT to, without `allow_weak`.
    WeakSuite {
        /// The suite.
        suite: Suite,
    },
    /// AH with a suite that enciphers.
    NotForAh {
        /// The suite.
        suite: Suite,
    },
    /// AH in UDP.
    AhInUdp,
    /// An SPI that is zero, negative, too large or no number.
    BadSpi {
        /// As it was written.
        found: String,
    },
    /// Not an IP address.
    BadAddress {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
    },
    /// Neither an IP address nor a host name.
    BadPeer {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
        /// Why it is no host name.
        why: &'static str,
    },
    /// A peer has a host name where only an address can be.
    NameRefused {
        /// The name.
        name: HostName,
        /// Why.
        why: &'static str,
    },
    /// Not a traffic selector.
    BadSelector {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
        /// Which part is wrong.
        error: String,
    },
    /// A prefix whose address has bits behind its length.
    HostBits {
        /// The key.
        key: &'static str,
        /// The prefix.
        found: IpNet,
    },
    /// `local` and `remote` are of different IP versions.
    MixedFamilies {
        /// This side's address.
        local: IpAddr,
        /// The peer's address.
        remote: IpAddr,
    },
    /// A replay window that is negative, too wide or no number.
    BadWindow {
        /// As it was written.
        found: String,
    },
    /// A key holds something else than hex digits.
    NotHex {
        /// The key.
        key: &'static str,
        /// The key file, if it is in one.
        file: Option<String>,
        /// Position of the first other character, from 1.
        position: usize,
    },
    /// A key ends in the middle of a byte.
    OddHex {
        /// The key.
        key: &'static str,
        /// The key file, if it is in one.
        file: Option<String>,
        /// Number of hex digits.
        digits: usize,
    },
    /// A key of the wrong length.
    KeyLength {
        /// The key.
        key: &'static str,
        /// The suite that it is for.
        suite: Suite,
        /// Both lengths, in bytes.
        error: KeyError,
    },
    /// A key is given both in the SAs file and in a file of its own.
    TwoKeys {
        /// The key for the one.
        inline: &'static str,
        /// The key for the other.
        file: &'static str,
    },
    /// The suite has a separate integrity algorithm, the SA no key for it.
    AuthKeyMissing {
        /// Name of the SA.
        sa: String,
        /// The suite.
        suite: Suite,
    },
    /// The suite has no use for a key that the SA has.
    KeyUnused {
        /// The key.
        key: &'static str,
        /// The suite.
        suite: Suite,
    },
    /// A key file cannot be read.
    KeyFileUnreadable {
        /// The key.
        key: &'static str,
        /// The file.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A warning: a key file can be read or written by others than its owner.
    KeyFileExposed {
        /// The key.
        key: &'static str,
        /// The file.
        path: String,
        /// Its permissions.
        mode: u32,
    },
    /// Two SAs of one direction that packets could not distinguish.
    OverlappingSpi {
        /// The SPI of both.
        spi: Spi,
        /// Name of the earlier SA.
        first: String,
        /// The peer of both, if they are outbound.
        peer: Option<Peer>,
    },
    /// Two SAs with one cipher key.
    SharedKey {
        /// The key of the later SA: `key` or `key_file`.
        key: &'static str,
        /// Name of the later SA.
        sa: String,
        /// Name of the earlier SA.
        first: String,
        /// Whether they are of different directions.
        opposite: bool,
    },
    /// A number outside of what is possible.
    OutOfRange {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
        /// The least that is possible.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Not a duration, or one of nothing, or too long.
    BadDuration {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
    },
    /// Not a number of bytes or packets, or zero.
    BadAmount {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
    },
    /// Not a differentiated services code point, or several where one is wanted.
    BadClass {
        /// The key.
        key: &'static str,
        /// As it was written.
        found: String,
    },
    /// Two keys that ask for unlike things.
    Contradiction {
        /// The one.
        key: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A soft limit that is never reached, since the hard one comes first.
    SoftBeyondHard {
        /// Key of the soft limit.
        soft: &'static str,
        /// Key of the hard one.
        hard: &'static str,
    },
    /// Padding against traffic analysis in transport mode.
    TfcInTransport,
    /// Padding up to an MTU that is not given.
    TfcWithoutMtu,
    /// Aggregation for something else than ESP in tunnel mode.
    IptfsNotInTunnel,
    /// Aggregated packets that are longer than the path takes.
    IptfsBeyondMtu {
        /// Their length in bytes.
        packet_size: u64,
        /// The path MTU in bytes.
        mtu: u16,
    },
    /// No SA has this name.
    UnknownSa {
        /// The name.
        found: String,
        /// The nearest one, if it was looked for.
        nearest: Option<String>,
    },
    /// The SA of this name is for the other direction.
    WrongDirection {
        /// The name.
        found: String,
        /// The direction that is wanted.
        expected: Option<&'static str>,
    },
    /// Several SAs of one direction have this name.
    AmbiguousName {
        /// The name.
        found: String,
    },
    /// An SA is, by way of others or not, inside of itself.
    NestCircle {
        /// Name of the SA.
        name: String,
    },
    /// Too many SAs inside of each other.
    NestTooDeep {
        /// Name of the innermost.
        name: String,
    },
    /// Two SAs for the same traffic that are bound to one CPU.
    SharedCpu {
        /// The number of the CPU.
        cpu: u32,
        /// Name of the earlier SA.
        first: String,
    },
    /// An SA is bound to a CPU, and the packets of the others have none.
    NoFallback {
        /// Name of the SA.
        name: String,
    },
    /// An SA is bound to a CPU and nested in one that is not.
    CpuOfOuter {
        /// The number of the CPU.
        cpu: u32,
        /// Name of the outer SA.
        outer: String,
    },
    /// A policy that does not protect names SAs.
    SaOfNoUse,
    /// What the database would refuse for another reason than those above.
    Refused {
        /// The reason.
        error: SaConfigError,
    },
    /// Something else in the file of a gateway that holds the SAs.
    Setting(forebay_diagnostics::Problem),
    /// A key of a gateway's file that stands in the wrong section.
    Misplaced {
        /// The key.
        key: String,
        /// Where it belongs.
        section: String,
    },
    /// A warning about the file of a gateway.
    Advice {
        /// What should be looked at.
        message: String,
        /// What to do.
        help: String,
    },
    /// A warning: another one takes all packets of an SA or policy first.
    Shadowed {
        /// `SA` or `policy`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Name of the one before it.
        first: String,
    },
    /// A warning: an SA exchanges congestion information and none of the other direction between its ends does.
    CongestionAlone {
        /// Its name.
        name: String,
    },
    /// A warning: the selectors of an SA or policy are of different IP versions.
    NoCommonFamily {
        /// `SA` or `policy`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// No packet can come from this address of a peer, or go to it.
    NoPeer {
        /// The address.
        found: IpAddr,
        /// What kind of address it is.
        is: &'static str,
    },
    /// No packet can leave from this address of this side, or arrive at it.
    NotOwn {
        /// The address.
        found: IpAddr,
        /// What kind of address it is.
        is: &'static str,
    },
    /// A name that is empty or has control characters.
    BadName,
    /// A warning: an SPI that IANA has reserved.
    ReservedSpi {
        /// The SPI.
        spi: Spi,
    },
    /// A warning: the file holds keys, and others than its owner can read or write it.
    KeysExposed {
        /// Its permissions.
        mode: u32,
    },
    /// A warning: a setting that this SA has no use for.
    NoEffect {
        /// The key.
        key: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A warning: there are policies of its direction, and none names this SA.
    UnusedSa {
        /// Name of the SA.
        name: String,
    },
}

impl Problem {
    /// Whether what it is about can never do anything. That stops no gateway, since the rest of the file works; `check` calls
    /// it an error.
    pub fn never_works(&self) -> bool {
        matches!(self, Problem::Shadowed { .. } | Problem::NoCommonFamily { .. })
    }
}

impl Fault for Problem {
    fn help(&self) -> String {
        self.help().into_owned()
    }

    fn severity(&self) -> Severity {
        match self {
            Problem::KeyFileExposed { .. }
            | Problem::KeysExposed { .. }
            | Problem::Shadowed { .. }
            | Problem::NoCommonFamily { .. }
            | Problem::CongestionAlone { .. }
            | Problem::ReservedSpi { .. }
            | Problem::NoEffect { .. }
            | Problem::UnusedSa { .. }
            | Problem::Advice { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Problem::Unreadable(error) | Problem::KeyFileUnreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}
