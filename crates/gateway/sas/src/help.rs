//! The hint for each error in an SAs file.

use std::borrow::Cow;
use std::io;

use forebay_crypto::{Cipher, Integrity, KeyError, PROPOSALS, Suite};
use forebay_diagnostics::nearest;
use forebay_ipsec::{MAX_WINDOW, MIN_PATH_MTU_V4, NEST_MAX};
use forebay_wire::ipv6;

use super::example;
use super::problem::Problem;
use super::table::Section;

impl Problem {
    /// What to do about it.
    // Long because there is one arm for each problem.
    pub fn help(&self) -> Cow<'static, str> {
        match self {
            Problem::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "check the path: the SAs file is a TOML file with one `[[sa]]` for each SA".into()
            }
            Problem::Unreadable(error) if error.kind() == io::ErrorKind::IsADirectory => {
                "give the path of a file in the directory, such as gateway.toml".into()
            }
            Problem::Unreadable(_) => "make the file readable for the user that runs Forebay".into(),
            Problem::TooLong { .. } => "check that this is the SAs file".into(),
            Problem::NotUtf8 { .. } => "check that this is the SAs file; TOML is UTF-8 text".into(),
            Problem::Syntax { .. } => {
                "start each SA with `[[sa]]`, followed by lines such as `name = \"east-out\"`, `spi = 0x1001`"
                    .into()
            }
            Problem::NoSa => {
                "start an SA with `[[sa]]`; it requires direction, spi, proposal, key, local and remote".into()
            }
            Problem::NotTables { key: "sa", .. } => {
                "write `[[sa]]` with double brackets, once for each SA".into()
            }
            Problem::NotTables { key, .. } => {
                format!("write `[[{key}]]` with double brackets, once for each").into()
            }
            Problem::UnknownKey { key, nearest, within, belongs } => match belongs {
                Some(belongs) => misplaced(key, *within, *belongs).into(),
                None => forebay_diagnostics::help_for_key(nearest).into(),
            },
            Problem::MissingKey { key, .. } => example::of(key).into(),
            Problem::WrongType { key: "key" | "auth_key", .. } => {
                "put the hex digits between quotes: key = \"00112233...\"".into()
            }
            Problem::WrongType { key, .. } => example::of(key).into(),
            Problem::UnknownWord { found, expected, .. } => {
                // Half a word, or a longer form of it, means that one however many letters differ.
                let begun =
                    expected.iter().find(|word| word.starts_with(&**found) || found.starts_with(**word));
                let nearest = begun.copied().or_else(|| nearest(found, expected.iter().copied()));
                let words = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
                match nearest {
                    Some(nearest) => format!("expected {words}; did you mean `{nearest}`?").into(),
                    None => format!("expected {words}").into(),
                }
            }
            Problem::UnknownProposal { nearest, .. } => {
                match nearest.as_str() {
                    "" => format!("there are {PROPOSALS}").into(),
                    nearest => format!("did you mean `{nearest}`? There are {PROPOSALS}").into(),
                }
            }
            Problem::WeakSuite { suite } => {
                let why = match suite.integrity() {
                    Integrity::None => "forged packets would not be detected (RFC 8221 4)",
                    _ => "MD5 is broken (RFC 8221 6)",
                };
                format!("{why}: choose another, or set `allow_weak = true` if the peer supports nothing else").into()
            }
            Problem::NotForAh { suite } => {
                let alone = suite.to_string().rsplit_once('-').map(|(_, integrity)| integrity.to_owned());
                let alone = alone.unwrap_or_else(|| "sha256".to_owned());
                format!(
                    "proposal = \"{alone}\" or another integrity algorithm alone, or aes{{128,192,256}}gmac"
                )
                .into()
            }
            Problem::AhInUdp => {
                "remove `encapsulation`, or use ESP: AH covers the addresses that a NAT changes (RFC 3948 1)".into()
            }
            Problem::BadSpi { .. } => {
                "give the 32-bit number, not 0, that the peer uses (RFC 4303 2.1)".into()
            }
            Problem::BadAddress { found, .. } | Problem::BadPeer { found, .. } if found.contains('/') => {
                "give one address without a prefix length; ranges belong in local_ts and remote_ts".into()
            }
            Problem::BadAddress { .. } => {
                "write 192.0.2.1 or 2001:db8::1; host names are not resolved".into()
            }
            Problem::BadPeer { .. } => {
                "write 192.0.2.1, 2001:db8::1 or a name such as vpn.example.org (RFC 1123 2.1); ports do not belong here".into()
            }
            Problem::NameRefused { .. } => "write the peer's address, such as 192.0.2.1 or 2001:db8::1".into(),
            Problem::BadSelector { found, error, .. } => {
                const LIKE: &str = "write a selector such as 10.1.0.0/16, 2001:db8:1::/48, 10.1.0.5-10.1.0.9 or 10.1.0.0/16[tcp/80]";
                match error {
                    whole if whole == found => LIKE.into(),
                    part => format!("`{part}` is wrong in it; {LIKE}").into(),
                }
            }
            Problem::HostBits { found, .. } => {
                format!("the network is {}; the address alone would be {}", found.trunc(), found.addr())
                    .into()
            }
            Problem::MixedFamilies { .. } => {
                "both are outer addresses, of one tunnel's ends; the packets inside may be of either version"
                    .into()
            }
            Problem::BadWindow { .. } => {
                format!("a number of packets, at most {MAX_WINDOW}; 0 switches the check off, 64 is usual")
                    .into()
            }
            Problem::NotHex { file: None, .. } => {
                "hex digits only: no spaces, no colons, no 0x in front".into()
            }
            Problem::NotHex { file: Some(_), .. } => {
                "the file holds hex digits as text, not the raw bytes; no spaces, no colons, no 0x".into()
            }
            Problem::OddHex { .. } => "check for a missing digit: two digits make a byte".into(),
            Problem::KeyLength { suite, error, .. } => key_length(*suite, error).into(),
            Problem::TwoKeys { inline, file } => format!("leave out `{inline}` or `{file}`").into(),
            Problem::AuthKeyMissing { suite, .. } => {
                let len = suite.integrity_key_len();
                format!("auth_key = \"...\" with {} hex digits ({len} bytes), or auth_key_file", 2 * len)
                    .into()
            }
            Problem::KeyUnused { key, suite } => {
                let why = match (*key, suite.integrity()) {
                    ("key" | "key_file", _) => "enciphers nothing",
                    (_, Integrity::None) => "authenticates nothing",
                    _ => "authenticates with the key of its cipher",
                };
                format!("leave out `{key}`: {suite} {why}").into()
            }
            Problem::KeyFileUnreadable { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "the user that Forebay runs as must be able to read it: chgrp forebay, chmod 640".into()
            }
            Problem::KeyFileUnreadable { .. } => {
                "a relative path starts at the directory of the configuration or SAs file that names it".into()
            }
            Problem::KeyFileExposed { path, .. } => format!("chmod 600 {path}").into(),
            Problem::OverlappingSpi { peer: None, .. } => {
                "give one of the two another SPI: inbound packets are matched to SAs by the SPI alone".into()
            }
            Problem::OverlappingSpi { peer: Some(_), .. } => {
                "give one of the two another SPI: the peer could not tell them apart".into()
            }
            Problem::SharedKey { .. } => {
                "under a shared key IVs repeat, which reveals packets and lets others forge them: give each SA and each \
                 direction its own key, made by `forebay keygen --proposal PROPOSAL FILE`, and give the peer the same"
                    .into()
            }
            Problem::OutOfRange { key: "mtu", .. } => format!(
                "every path carries {MIN_PATH_MTU_V4} bytes of IPv4 and {} of IPv6; remove the key for no limit",
                ipv6::MIN_MTU
            )
            .into(),
            Problem::OutOfRange { key: "packet_size", .. } => {
                "headers, IV, padding and ICV must leave room for inner packets (RFC 9347)".into()
            }
            Problem::OutOfRange { key: "queue", .. } => "it must hold one full payload".into(),
            Problem::OutOfRange { key, .. } => example::of(key).into(),
            Problem::BadDuration { key, .. } => {
                format!("{}; a bare number is seconds; units are d, h, m, s, ms, us, ns", example::of(key))
                    .into()
            }
            Problem::BadAmount { key, .. } => {
                format!("{}; remove the key for no limit", example::of(key)).into()
            }
            Problem::BadClass { key: "dscp", .. } => "dscp = 46 or dscp = \"ef\"".into(),
            Problem::BadClass { .. } => {
                "classes = [\"ef\", \"af41-af43\", 10]: numbers of 0 to 63, ranges, cs0 to cs7, af11 to af43, \
                 ef, le"
                    .into()
            }
            Problem::Contradiction { key: "dscp", .. } => {
                "a DSCP that is copied cannot be set: remove one of the two, or set copy_dscp = \"in\" or \
                 \"no\""
                    .into()
            }
            Problem::Contradiction { key, other } => format!("leave out `{key}` or `{other}`").into(),
            Problem::SoftBeyondHard { soft, hard } => format!(
                "`{soft}` asks for another SA in time, before `{hard}` ends this one: it must be less"
            )
            .into(),
            Problem::TfcInTransport => {
                "without an inner header the peer cannot tell padding from data (RFC 4303 2.7)".into()
            }
            Problem::TfcWithoutMtu => "set the path MTU: mtu = 1400".into(),
            Problem::IptfsNotInTunnel => {
                "there are no inner packets to aggregate elsewhere (RFC 9347 5.1): leave out `iptfs`".into()
            }
            Problem::IptfsBeyondMtu { .. } => {
                "leave out `packet_size`: it is the MTU then, 1500 at most".into()
            }
            Problem::UnknownSa { nearest: Some(nearest), .. } => {
                format!("did you mean `{nearest}`? {NAMELESS}").into()
            }
            Problem::UnknownSa { nearest: None, .. } => NAMELESS.into(),
            Problem::WrongDirection { expected, .. } => {
                let expected = expected.unwrap_or_default();
                format!("name an SA with direction = \"{expected}\"").into()
            }
            Problem::AmbiguousName { .. } => "give each SA a unique name".into(),
            Problem::NestCircle { .. } => {
                "`outer` names the SA around this one: AH around ESP, or a gateway's tunnel around a host's".into()
            }
            Problem::NestTooDeep { .. } => format!("nest at most {NEST_MAX} SAs").into(),
            Problem::SharedCpu { .. } => {
                "give each CPU one SA for the same addresses, selectors and classes: change `cpu` of one of the two".into()
            }
            Problem::NoFallback { .. } => {
                "add an outbound SA without `cpu` between the same addresses with the same selectors and classes, to the \
                 same policy if there are policies"
                    .into()
            }
            Problem::CpuOfOuter { cpu, .. } => {
                format!("set `cpu = {cpu}` of the outer SA too: one worker thread has all SAs of a nest").into()
            }
            Problem::SaOfNoUse => "remove `sa`, or set action = \"protect\"".into(),
            Problem::Refused { .. } => "change one of the two".into(),
            Problem::Setting(problem) => problem.help().into(),
            Problem::Misplaced { key, section } => format!("`{key}` belongs in {section}").into(),
            Problem::Advice { help, .. } => help.clone().into(),
            Problem::NoEffect { key, .. } => format!("leave out `{key}`").into(),
            Problem::Shadowed { kind: "policy", first, .. } => {
                format!("put it before `{first}`: the first policy that matches a packet decides").into()
            }
            Problem::Shadowed { first, .. } => {
                format!("put it before `{first}`, or narrow the selectors or classes of that one: the first SA that matches a packet takes it")
                    .into()
            }
            Problem::CongestionAlone { .. } => {
                "set `congestion = true` for both directions of the tunnel, whose SAs have the same `local`, `remote`, \
                 `local_ts` and `remote_ts`: the outbound SA reports to the peer what the inbound SA receives"
                    .into()
            }
            Problem::NoCommonFamily { .. } => {
                "give both selectors networks of IPv4, of IPv6 or of both".into()
            }
            Problem::NoPeer { .. } => {
                "give the peer's unicast address; for a peer whose address changes, its first one, see `follow_peer`".into()
            }
            Problem::NotOwn { .. } => {
                "give the outer address that this host has on its interface to the peer".into()
            }
            Problem::BadName => {
                "give a name of visible characters, such as name = \"east-out\", or remove the key".into()
            }
            Problem::ReservedSpi { .. } => {
                "give both sides an SPI of 0x100 or more (RFC 4303 2.1); the kernel refuses smaller ones".into()
            }
            Problem::KeysExposed { .. } => "chmod 600 the file, or name the keys' files: key_file, auth_key_file".into(),
            Problem::UnusedSa { name } => {
                format!("name it in a policy with sa = \"{name}\": if a direction has policies, only the SAs that they name are used")
                    .into()
            }
        }
    }
}

const NAMELESS: &str = "An SA without a name is called sa-1, sa-2, ... by its position";

/// Where a key that means something elsewhere should stand.
fn misplaced(key: &str, within: Option<Section>, belongs: Section) -> String {
    match (within, belongs) {
        (Some(Section::Iptfs), Section::Sa) => {
            format!("`{key}` belongs to the SA itself: put it above `[sa.iptfs]`")
        }
        (_, Section::Sa) => format!("`{key}` belongs in an SA: put `[[sa]]` on a line above it"),
        (_, Section::Policy) => format!("`{key}` belongs in a policy: put `[[policy]]` on a line above it"),
        (_, Section::Iptfs) => format!("`{key}` belongs to aggregation: put `[sa.iptfs]` on a line above it"),
    }
}

fn key_length(suite: Suite, error: &KeyError) -> String {
    let mut help = format!("{} hex digits", 2 * error.expected);
    let section = match suite.cipher() {
        Cipher::AesGcm(_) => "RFC 4106 8.1",
        Cipher::AesCcm(_) => "RFC 4309 7.1",
        Cipher::AesGmac(_) => "RFC 4543 3.2",
        Cipher::AesCtr(_) => "RFC 3686 5.1",
        _ => "RFC 7634 2",
    };
    if error.salt > 0 {
        let cipher = error.expected - error.salt;
        help += &format!(
            ": {} for the cipher, then {} for the salt, which belongs to the key ({section})",
            2 * cipher,
            2 * error.salt
        );
        if error.found == cipher {
            help += "; it is the salt that seems to be missing";
        }
    }
    let fitting = Suite::all().find(|other| match error.which {
        "key" => {
            std::mem::discriminant(&other.cipher()) == std::mem::discriminant(&suite.cipher())
                && other.integrity() == suite.integrity()
                && other.icv_len() == suite.icv_len()
                && other.cipher_key_len() + other.salt_len() == error.found
        }
        _ => other.cipher() == suite.cipher() && other.integrity_key_len() == error.found,
    });
    match fitting {
        Some(other) if error.found > 0 => help + &format!(". {} bytes would fit {other}", error.found),
        _ => help,
    }
}
