//! What can be wrong in an SAs file, in words. Text of the file comes here masked already.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;

use forebay_crypto::{KeyError, Suite};
use forebay_ipsec::{NEST_MAX, SaConfigError, Spi};
use ipnet::IpNet;
use miette::Severity;

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
        /// The nearest known one.
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
    /// A proposal nobody knows.
    UnknownProposal {
        /// The proposal.
        found: String,
        /// The nearest known one.
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
    /// Two SAs of one direction that packets could not tell apart.
    OverlappingSpi {
        /// The SPI of both.
        spi: Spi,
        /// Name of the earlier SA.
        first: String,
        /// The peer of both, if they are outbound.
        peer: Option<IpAddr>,
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
    /// A policy that does not protect names SAs.
    SaOfNoUse,
    /// What the database would refuse for another reason than those above.
    Refused {
        /// The reason.
        error: SaConfigError,
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

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable(_) => f.write_str("the SAs file cannot be read"),
            Problem::TooLong { limit } => write!(f, "longer than {limit} bytes"),
            Problem::NotUtf8 { line } => write!(f, "line {line} is not UTF-8"),
            Problem::Syntax { message } => write!(f, "not TOML: {message}"),
            Problem::NoSa => f.write_str("no security associations, expected at least one `[[sa]]`"),
            Problem::NotTables { key, found } => {
                write!(f, "`{key}` is of type {found}, expected `[[{key}]]` tables")
            }
            Problem::UnknownKey { key, .. } => write!(f, "unknown key `{key}`"),
            Problem::MissingKey { of: Section::Policy, name, key } => {
                write!(f, "policy `{name}` has no `{key}`")
            }
            Problem::MissingKey { name, key, .. } => write!(f, "SA `{name}` has no `{key}`"),
            Problem::WrongType { key, found, .. } => write!(f, "`{key}` is of the wrong type, {found}"),
            Problem::UnknownWord { key, found, .. } => write!(f, "unknown {key} `{found}`"),
            Problem::UnknownProposal { found, .. } => write!(f, "unknown proposal `{found}`"),
            Problem::WeakSuite { suite } => write!(f, "{suite} is weak: RFC 8221 says MUST NOT"),
            Problem::NotForAh { suite } => write!(f, "AH enciphers nothing, {suite} does"),
            Problem::AhInUdp => f.write_str("AH cannot be in UDP"),
            Problem::BadSpi { found } => write!(f, "{found} is not an SPI"),
            Problem::BadAddress { key, found } => write!(f, "`{key}` is not an IP address: `{found}`"),
            Problem::BadSelector { key, found, .. } => write!(f, "not a selector in `{key}`: `{found}`"),
            Problem::HostBits { key, found } => {
                write!(f, "prefix {found} in `{key}` has address bits behind its length")
            }
            Problem::MixedFamilies { local, remote } => {
                write!(f, "local {local} and remote {remote} are of different IP versions")
            }
            Problem::BadWindow { found } => write!(f, "{found} is not a replay window"),
            Problem::NotHex { key, file, position } => {
                write!(f, "`{key}`{} is not hex: character {position} is no hex digit", Of(file))
            }
            Problem::OddHex { key, file, digits } => {
                write!(f, "`{key}`{} has {digits} hex digits, an odd number", Of(file))
            }
            Problem::KeyLength { key, suite, error } => {
                write!(f, "`{key}` has {} bytes, {suite} takes {}", error.found, error.expected)?;
                if error.salt > 0 {
                    write!(f, " = {} of key + {} of salt", error.expected - error.salt, error.salt)?;
                }
                Ok(())
            }
            Problem::TwoKeys { inline, file } => write!(f, "both `{inline}` and `{file}` are given"),
            Problem::AuthKeyMissing { sa, suite } => {
                write!(f, "SA `{sa}` has no `auth_key`, {suite} needs one")
            }
            Problem::KeyUnused { key, suite } => write!(f, "{suite} has no use for `{key}`"),
            Problem::KeyFileUnreadable { key, path, .. } => write!(f, "`{key}` {path} cannot be read"),
            Problem::KeyFileExposed { key, path, mode } => {
                write!(f, "`{key}` {path} is open to others than its owner (mode {mode:03o})")
            }
            Problem::OverlappingSpi { spi, first, peer: None } => {
                write!(f, "inbound SPI {spi} belongs to SA `{first}` already")
            }
            Problem::OverlappingSpi { spi, first, peer: Some(peer) } => {
                write!(f, "outbound SPI {spi} to {peer} belongs to SA `{first}` already")
            }
            Problem::OutOfRange { key, found, .. } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadDuration { key, found } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadAmount { key, found } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadClass { key, found } => write!(f, "not a class of traffic in `{key}`: `{found}`"),
            Problem::Contradiction { key, other } => write!(f, "`{key}` contradicts `{other}`"),
            Problem::SoftBeyondHard { soft, hard } => write!(f, "`{soft}` is beyond `{hard}`"),
            Problem::TfcInTransport => f.write_str("TFC padding is possible in tunnel mode only"),
            Problem::TfcWithoutMtu => f.write_str("TFC padding up to an MTU that is not given"),
            Problem::IptfsNotInTunnel => {
                f.write_str("aggregation (iptfs) is possible for ESP in tunnel mode only")
            }
            Problem::IptfsBeyondMtu { packet_size, mtu } => {
                write!(f, "aggregated packets of {packet_size} bytes, the path takes {mtu}")
            }
            Problem::UnknownSa { found, .. } => write!(f, "there is no SA `{found}`"),
            Problem::WrongDirection { found, .. } => write!(f, "SA `{found}` is for the other direction"),
            Problem::AmbiguousName { found } => write!(f, "several SAs are called `{found}`"),
            Problem::NestCircle { name } => write!(f, "SA `{name}` is inside of itself"),
            Problem::NestTooDeep { name } => {
                write!(f, "SA `{name}` is inside of more than {} others", NEST_MAX - 1)
            }
            Problem::SaOfNoUse => f.write_str("a policy that does not protect has no SA"),
            Problem::Refused { error } => write!(f, "this SA cannot be: {error}"),
            Problem::NoEffect { key, why } => write!(f, "`{key}` has no effect: {why}"),
            Problem::UnusedSa { name } => write!(f, "SA `{name}` is of no use: no policy names it"),
        }
    }
}

/// A key file's name behind the key's, if there is one.
struct Of<'a>(&'a Option<String>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|file| write!(f, " {file}"))
    }
}

impl Problem {
    /// Whether the file can be used all the same.
    pub fn severity(&self) -> Severity {
        match self {
            Problem::KeyFileExposed { .. } | Problem::NoEffect { .. } | Problem::UnusedSa { .. } => {
                Severity::Warning
            }
            _ => Severity::Error,
        }
    }

    pub(super) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Problem::Unreadable(error) | Problem::KeyFileUnreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}
