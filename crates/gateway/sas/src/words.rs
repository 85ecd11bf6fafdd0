//! The words for each problem of an SAs file.

use std::fmt;

use forebay_ipsec::NEST_MAX;

use super::problem::Problem;
use super::table::Section;

impl fmt::Display for Problem {
    // Long because there is one arm for each problem.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Unreadable(_) => f.write_str("cannot read the SAs file"),
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
            Problem::NotForAh { suite } => write!(f, "AH does not encrypt, but {suite} does"),
            Problem::AhInUdp => f.write_str("AH cannot be encapsulated in UDP"),
            Problem::BadSpi { found } => write!(f, "{found} is not an SPI"),
            Problem::BadAddress { key, found } => write!(f, "`{key}` is not an IP address: `{found}`"),
            Problem::BadPeer { key, found, why } => {
                write!(f, "`{key}` is neither an IP address nor a host name: `{found}`: {why}")
            }
            Problem::NameRefused { name, why } => write!(f, "`remote` is the host name `{name}`: {why}"),
            Problem::BadSelector { key, found, .. } => write!(f, "not a selector in `{key}`: `{found}`"),
            Problem::HostBits { key, found } => {
                write!(f, "prefix {found} in `{key}` has host bits set")
            }
            Problem::MixedFamilies { local, remote } => {
                write!(f, "local {local} and remote {remote} are of different IP versions")
            }
            Problem::BadWindow { found } => write!(f, "{found} is not a replay window"),
            Problem::NotHex { key, file, position } => {
                write!(f, "`{key}`{} is not hex: character {position} is not a hex digit", Of(file))
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
            Problem::KeyFileUnreadable { key, path, .. } => write!(f, "`{key}`: cannot read {path}"),
            Problem::KeyFileExposed { key, path, mode } => {
                write!(f, "`{key}`: {path} is accessible to other users than its owner (mode {mode:03o})")
            }
            Problem::OverlappingSpi { spi, first, peer: None } => {
                write!(f, "inbound SPI {spi} already belongs to SA `{first}`")
            }
            Problem::OverlappingSpi { spi, first, peer: Some(peer) } => {
                write!(f, "outbound SPI {spi} to {peer} already belongs to SA `{first}`")
            }
            Problem::SharedKey { key, sa, first, opposite } => {
                let where_ = if *opposite { " in the other direction" } else { "" };
                write!(
                    f,
                    "`{key}` of SA `{sa}` is the cipher key of SA `{first}`{where_}, expected a key of its own"
                )
            }
            Problem::OutOfRange { key, found, .. } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadDuration { key, found } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadAmount { key, found } => write!(f, "`{key}` cannot be {found}"),
            Problem::BadClass { key, found } => write!(f, "not a class of traffic in `{key}`: `{found}`"),
            Problem::Contradiction { key, other } => write!(f, "`{key}` contradicts `{other}`"),
            Problem::SoftBeyondHard { soft, hard } => write!(f, "`{soft}` exceeds `{hard}`"),
            Problem::TfcInTransport => f.write_str("TFC padding is possible in tunnel mode only"),
            Problem::TfcWithoutMtu => f.write_str("TFC padding requires an MTU"),
            Problem::IptfsNotInTunnel => {
                f.write_str("aggregation (iptfs) is possible for ESP in tunnel mode only")
            }
            Problem::IptfsBeyondMtu { packet_size, mtu } => {
                write!(f, "aggregated packets of {packet_size} bytes exceed the path MTU of {mtu}")
            }
            Problem::UnknownSa { found, .. } => write!(f, "unknown SA `{found}`"),
            Problem::WrongDirection { found, .. } => write!(f, "SA `{found}` is for the other direction"),
            Problem::AmbiguousName { found } => write!(f, "several SAs are called `{found}`"),
            Problem::NestCircle { name } => write!(f, "SA `{name}` is nested in itself"),
            Problem::NestTooDeep { name } => {
                write!(f, "SA `{name}` is nested in more than {} others", NEST_MAX - 1)
            }
            Problem::SharedCpu { cpu, first } => {
                write!(f, "CPU {cpu} already has SA `{first}` for the same traffic")
            }
            Problem::NoFallback { name } => {
                write!(f, "SA `{name}` is bound to a CPU, and there is no fallback SA for the same traffic")
            }
            Problem::CpuOfOuter { cpu, outer } => {
                write!(f, "SA is bound to CPU {cpu}, but SA `{outer}`, in which it is nested, is not")
            }
            Problem::SaOfNoUse => f.write_str("a policy that does not protect cannot name an SA"),
            Problem::Refused { error } => write!(f, "invalid SA: {error}"),
            Problem::Setting(problem) => problem.fmt(f),
            Problem::Misplaced { key, .. } => write!(f, "unknown key `{key}`"),
            Problem::Advice { message, .. } => f.write_str(message),
            Problem::NoEffect { key, why } => write!(f, "`{key}` has no effect: {why}"),
            Problem::Shadowed { kind, name, first } => {
                write!(f, "{kind} `{name}` is never used: `{first}` before it takes all of its packets")
            }
            Problem::CongestionAlone { name } => write!(
                f,
                "SA `{name}` has congestion information and no SA of the other direction with the same ends has"
            ),
            Problem::NoCommonFamily { kind, name } => write!(
                f,
                "{kind} `{name}` matches no packet: its `local_ts` and `remote_ts` have no IP version in common"
            ),
            Problem::NoPeer { found, is } => write!(f, "`remote` is {found}, {is}"),
            Problem::NotOwn { found, is } => write!(f, "`local` is {found}, {is}"),
            Problem::BadName => f.write_str("the name is empty or contains a control character"),
            Problem::ReservedSpi { spi } => write!(f, "SPI {spi} is one of those reserved by IANA, 1 to 255"),
            Problem::KeysExposed { mode } => write!(
                f,
                "the file holds keys, and others than its owner can read or write it (mode {mode:04o})"
            ),
            Problem::UnusedSa { name } => write!(f, "SA `{name}` is unused: no policy names it"),
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
