//! The schema of an SAs file: the names of keys for its reader, and the text of the reference (`docs/reference/sas.md`) and of
//! the editors' schema.

use forebay_scenario::Unit;
use forebay_scenario::schema::Absent::{Is, Means, Required};
use forebay_scenario::schema::Takes::{Amount, Either, Flag, List, Path, Text, Time, Whole, Word};
use forebay_scenario::schema::{Absent, Key, Part, TEXTS, Takes, key};

/// Every section of the SAs file.
pub const PARTS: &[Part] =
    &[Part::several("sa", SA), Part::once("sa.iptfs", IPTFS), Part::several("policy", POLICY)];

/// Keys of a `[[sa]]` whose values are never shown.
pub(super) const SECRET: &[&str] = &["key", "auth_key"];

/// The last worker thread that there may be.
pub(super) const CPU_MAX: u64 = 255;

const DIRECTION: Takes = Word(&["out", "in"]);
const LIMIT: Takes = Time("1 ps", "213 d");
const DELAY: Takes = Time("0 s", "213 d");
const NO_LIMIT: Absent = Means("no limit");
const POINT: Takes = Either("a code point", &[Text, Whole(Unit::None, 0, 63)]);
const CLASSES: Takes =
    Either("a list of code points: 0 to 63, names, ranges of both in strings", &[List(&POINT)]);
const SELECTORS: Takes = Either("a list of selectors", &[List(&Text)]);

const SA: &[Key] = &[
    key(
        "name",
        Text,
        Means("`sa-1`, `sa-2`, ... by position"),
        "name in output, and for `outer` and policies to refer to",
        "\"east-out\"",
    ),
    key(
        "direction",
        DIRECTION,
        Required,
        "`out`: protects packets that leave (outbound); `in`: opens those that arrive (inbound)",
        "\"out\"",
    ),
    key(
        "spi",
        Whole(Unit::None, 1, u32::MAX as u64),
        Required,
        "security parameter index; unique among inbound SAs, and among outbound SAs with the same peer",
        "0x1001",
    ),
    key("protocol", Word(&["esp", "ah"]), Is("\"esp\""), "ESP (RFC 4303) or AH (RFC 4302)", "\"ah\""),
    key(
        "mode",
        Word(&["tunnel", "transport"]),
        Is("\"tunnel\""),
        "tunnel or transport mode",
        "\"transport\"",
    ),
    key(
        "proposal",
        Either("a proposal in swanctl's words", &[Text]),
        Required,
        "cipher and integrity algorithm; for AH the integrity algorithm alone",
        "\"aes128gcm16\"",
    ),
    key(
        "key",
        Either("hex digits", &[Text]),
        Means("required with a cipher, unless `key_file` is given"),
        "key of the cipher, with the salt of GCM, CCM, GMAC, CTR and ChaCha20 behind it; every SA and direction has its own",
        "\"000102030405060708090a0b0c0d0e0f01020304\"",
    ),
    key(
        "key_file",
        Path,
        Means("`key` applies"),
        "file with the key in hex, in place of `key`; relative to the directory of the SAs file, mode 0600",
        "\"east-out.key\"",
    ),
    key(
        "auth_key",
        Either("hex digits", &[Text]),
        Means("required with separate integrity, unless `auth_key_file` is given"),
        "key of the integrity algorithm",
        "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"",
    ),
    key(
        "auth_key_file",
        Path,
        Means("`auth_key` applies"),
        "file with the key of the integrity algorithm in hex, in place of `auth_key`",
        "\"east-out.auth\"",
    ),
    key("allow_weak", Flag, Is("false"), "accepts algorithms that RFC 8221 says MUST NOT be used", "true"),
    key(
        "local",
        Either("an address", &[Text]),
        Required,
        "outer address of this side: source outbound, destination inbound",
        "\"192.0.2.1\"",
    ),
    key(
        "remote",
        Either("an address or a host name", &[Text]),
        Required,
        "outer address of the peer, of the same IP version; in the file of a gateway, and in tunnel mode, also its host name \
         (docs/gateway.md#peers-by-host-name)",
        "\"192.0.2.2\"",
    ),
    key(
        "encapsulation",
        Word(&["none", "udp"]),
        Is("\"none\""),
        "`udp`: ESP in UDP, port 4500 (RFC 3948)",
        "\"udp\"",
    ),
    key("esn", Flag, Is("false"), "extended sequence numbers of 64 bits (RFC 4303 2.2.1)", "true"),
    key(
        "replay_window",
        Whole(Unit::None, 0, 65_536),
        Is("64"),
        "inbound: size of the replay window in packets; 0 disables the check",
        "1024",
    ),
    key(
        "check_padding",
        Flag,
        Is("true"),
        "inbound ESP: padding must be 1, 2, 3, ... (RFC 4303 2.4)",
        "false",
    ),
    key(
        "follow_peer",
        Flag,
        Means("`true`, but `false` where `local` is a private address and `remote` is not"),
        "inbound ESP in UDP: an authentic packet from another address or port, newer than all others, changes the peer's \
         address (RFC 7296 2.23)",
        "false",
    ),
    key(
        "original_local",
        Either("an address", &[Text]),
        Means("checksums are computed anew"),
        "inbound ESP in UDP in transport mode, with `original_remote`: this side's address before any NAT, to which the peer \
         sends; checksums are updated by it (RFC 3948 3.1.2)",
        "\"203.0.113.1\"",
    ),
    key(
        "original_remote",
        Either("an address", &[Text]),
        Means("checksums are computed anew"),
        "the same of the peer: its own address, from which it sends",
        "\"10.9.0.7\"",
    ),
    key(
        "local_ts",
        SELECTORS,
        Means("any"),
        "selectors of this side: address, prefix or range, then optionally `[protocol/port]`",
        "[\"10.1.0.0/16\", \"10.1.0.5-10.1.0.9\"]",
    ),
    key("remote_ts", SELECTORS, Means("any"), "selectors of the peer's side", "[\"10.2.0.0/16[tcp/80]\"]"),
    key(
        "classes",
        CLASSES,
        Means("all"),
        "outbound: DSCP code points of the packets that the SA protects",
        "[\"ef\", \"af41-af43\", 10]",
    ),
    key(
        "cpu",
        Whole(Unit::None, 0, CPU_MAX),
        Means("none: the fallback SA of all CPUs"),
        "number of the worker thread, from 0, that owns the SA; outbound, only that thread sends by it, in the place of the \
         SA without `cpu` for the same traffic (RFC 9611)",
        "1",
    ),
    key(
        "outer",
        Text,
        Means("none"),
        "nested SAs: name of the SA, of the same direction, that packets of this one go through next; at most four in a row",
        "\"gateway-out\"",
    ),
    key(
        "copy_dscp",
        Word(&["out", "in", "yes", "no"]),
        Is("\"out\""),
        "tunnel mode: copies the DSCP; `out`: from the inner to the outer header; `in`: back at the end of the tunnel; `yes`: \
         both; `no`: neither",
        "\"no\"",
    ),
    key(
        "dscp",
        POINT,
        Means("0 where the DSCP is not copied"),
        "tunnel mode: DSCP of outer headers; not with `copy_dscp` `out` or `yes`",
        "\"ef\"",
    ),
    key(
        "copy_ecn",
        Flag,
        Is("true"),
        "tunnel mode: copies the ECN field (RFC 6040); `false` sends Not-ECT; received packets are always treated by RFC 6040",
        "false",
    ),
    key(
        "df",
        Word(&["copy", "set", "clear"]),
        Is("\"copy\""),
        "tunnel mode: \"don't fragment\" bit of outer IPv4 headers",
        "\"set\"",
    ),
    key(
        "copy_df",
        Flag,
        Means("`df` applies"),
        "tunnel mode: `true` is `df = \"copy\"`, `false` alone is `df = \"clear\"`",
        "false",
    ),
    key(
        "flow_label",
        Either(
            "`zero`, `copy`, `hash`, 0 to 1048575",
            &[Word(&["zero", "copy", "hash"]), Whole(Unit::None, 0, 0xf_ffff)],
        ),
        Is("\"zero\""),
        "tunnel mode: flow label of outer IPv6 headers; `hash`: of the inner flow (RFC 6438); over UDP sent without one where the kernel \
         refuses labels (before Linux 5.3, or while a program has an exclusive one)",
        "\"hash\"",
    ),
    key(
        "ttl",
        Either("`copy`, 1 to 255", &[Word(&["copy"]), Whole(Unit::None, 1, 255)]),
        Is("64"),
        "tunnel mode: TTL or hop limit of outer headers",
        "\"copy\"",
    ),
    key(
        "mtu",
        Whole(Unit::Bytes, 576, 65_535),
        NO_LIMIT,
        "outbound: path MTU between the outer addresses; at least 1280 with IPv6",
        "1400",
    ),
    key(
        "tfc_padding",
        Either("`mtu`, 0 to 65535 bytes", &[Word(&["mtu"]), Whole(Unit::None, 0, 65_535)]),
        Is("0"),
        "outbound ESP in tunnel mode: pads inner packets to this length, or to `mtu` (RFC 4303 2.7); 0 disables padding",
        "\"mtu\"",
    ),
    key("life_time", LIMIT, NO_LIMIT, "hard lifetime since the SA was added", "\"1h\""),
    key(
        "rekey_time",
        LIMIT,
        NO_LIMIT,
        "soft lifetime since the SA was added; at most `life_time`",
        "\"50m\"",
    ),
    key("life_use_time", LIMIT, NO_LIMIT, "hard lifetime since the first packet of the SA", "\"30m\""),
    key(
        "rekey_use_time",
        LIMIT,
        NO_LIMIT,
        "soft lifetime since the first packet of the SA; at most `life_use_time`",
        "\"25m\"",
    ),
    key(
        "life_bytes",
        Amount,
        NO_LIMIT,
        "hard limit of bytes that are enciphered, or that AH covers",
        "\"10G\"",
    ),
    key(
        "rekey_bytes",
        Amount,
        NO_LIMIT,
        "soft limit of bytes that are enciphered, or that AH covers; at most `life_bytes`",
        "\"9G\"",
    ),
    key("life_packets", Amount, NO_LIMIT, "hard limit of packets", "\"20M\""),
    key("rekey_packets", Amount, NO_LIMIT, "soft limit of packets; at most `life_packets`", "\"18M\""),
];

const IPTFS: &[Key] = &[
    key(
        "packet_size",
        Whole(Unit::Bytes, 1, 65_535),
        Means("`mtu`, at most 1500"),
        "maximum length of an outer packet; at most `mtu`",
        "1400",
    ),
    key(
        "rate",
        Whole(Unit::PacketRate, 1, 1_000_000_000),
        Means("follows the load"),
        "constant rate of outer packets, which are sent whether there is traffic or not",
        "10000",
    ),
    key(
        "max_delay",
        DELAY,
        Is("\"500us\""),
        "without `rate`: maximum time that an inner packet waits for others",
        "\"1ms\"",
    ),
    key("fragment", Flag, Is("true"), "inner packets may span two outer packets", "false"),
    key(
        "reorder_window",
        Whole(Unit::None, 0, 1_024),
        Is("3"),
        "inbound: number of packets by which one may be late",
        "8",
    ),
    key(
        "lost_after",
        DELAY,
        Is("\"20ms\""),
        "inbound: time after which a missing packet counts as lost",
        "\"5ms\"",
    ),
    key(
        "queue",
        Whole(Unit::Bytes, 1, 1 << 30),
        Is("262144"),
        "maximum size of the inner packets that wait; at least one payload",
        "1048576",
    ),
    key(
        "congestion",
        Flag,
        Is("false"),
        "exchanges congestion information (RFC 9347 6.1.2), to which a fixed `rate` yields",
        "true",
    ),
    key(
        "ecn",
        Flag,
        Is("false"),
        "copies ECN marks to the outer header where all inner packets have some (RFC 9347 3.1); received marks always reach the \
         inner packets",
        "true",
    ),
];

const POLICY: &[Key] = &[
    key("name", Text, Means("`policy-1`, `policy-2`, ... by position"), "name in output", "\"voice\""),
    key("direction", DIRECTION, Required, "direction of the packets that the policy decides on", "\"out\""),
    key(
        "action",
        Word(&["protect", "bypass", "discard"]),
        Required,
        "protect by an SA, BYPASS or DISCARD (RFC 4301 4.4.1)",
        "\"protect\"",
    ),
    key(
        "sa",
        Either("names of SAs", TEXTS),
        Means("required with `protect`, not allowed otherwise"),
        "SAs of the same direction; outbound, the first whose selectors and classes match is used; inbound, the packet must \
         have come through one of them",
        "[\"east-out\", \"east-ef\"]",
    ),
    key("local_ts", SELECTORS, Means("any"), "selectors of this side, as in an SA", "[\"10.1.0.0/16\"]"),
    key(
        "remote_ts",
        SELECTORS,
        Means("any"),
        "selectors of the peer's side, as in an SA",
        "[\"10.2.0.0/16\"]",
    ),
    key("classes", CLASSES, Means("all"), "DSCP code points, as in an SA", "[\"ef\"]"),
];
