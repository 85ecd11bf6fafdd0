//! `[plain]` and `[[protected]]`.

use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Flag, Other, Text, Time, Whole, Word};
use super::{Key, Part, key, once, several};

const XDP_MODES: &[&str] = &["auto", "zero-copy", "copy", "generic"];

/// Longest name of an interface (Linux's `IFNAMSIZ`, less the end of the string).
pub const NAME_MAX: usize = 15;

pub const PLAIN: Part = once(
    "plain",
    &[
        key(
            "kind",
            Word(&["tun", "xdp"]),
            Is("\"tun\""),
            "a TUN interface of its own, or a network card by AF_XDP",
            "\"tun\"",
        ),
        key(
            "answer",
            Other("addresses"),
            Means("the first of each IP version in `addresses`"),
            "where ICMP messages of the gateway come from, one address of each IP version at most; \
             without one, sources of that version get no answer",
            "[\"10.9.0.1\"]",
        ),
        key(
            "mss_clamp",
            Other("`auto`, `false`, 88 to 65495 bytes"),
            Is("\"auto\""),
            "lowers the MSS of TCP connections that pass: to what fits the interface and the narrowest path of all SAs, or to this",
            "1360",
        ),
    ],
);

pub const PLAIN_TUN: &[Key] = &[
    key(
        "name",
        Text,
        Is("\"forebay0\""),
        "the interface, made at start; at most 15 characters",
        "\"ipsec0\"",
    ),
    key(
        "addresses",
        Other("addresses with prefix lengths"),
        Means("none"),
        "addresses of the interface",
        "[\"10.9.0.1/24\", \"2001:db8:9::1/64\"]",
    ),
    key(
        "mtu",
        Whole(Unit::Bytes, 576, 65_535),
        Is("1400"),
        "MTU of the interface: with the headers of a tunnel it should fit the path; at least 1280 with IPv6",
        "1420",
    ),
    key(
        "queues",
        Whole(Unit::None, 1, 256),
        Is("1"),
        "queues of the interface, each with a core and an engine of its own; more if another link has more",
        "2",
    ),
    key(
        "offload",
        Flag,
        Is("true"),
        "takes and gives trains of TCP and UDP packets as one (GSO, GRO), checksums left to be filled in",
        "false",
    ),
    key(
        "queue_length",
        Whole(Unit::None, 1, 65_536),
        Is("5000"),
        "packets that may wait in the kernel for the gateway, each queue",
        "1000",
    ),
    key(
        "routes",
        Other("`auto`, or prefixes"),
        Is("\"auto\""),
        "routes to the interface: to the remote selectors of SAs and policies that protect, or these; `[]` for none",
        "[\"10.2.0.0/16\"]",
    ),
    key(
        "blackhole",
        Word(&["auto", "keep", "remove", "none"]),
        Is("\"auto\""),
        "blackhole routes behind each of `routes`, so that nothing leaves in the clear while there is no gateway: `auto` and \
         `keep` leave them after a clean stop too, `remove` deletes them then, `none` makes none and deletes those of \
         earlier runs",
        "\"remove\"",
    ),
];

pub const PLAIN_XDP: &[Key] = &[
    key(
        "interface",
        Text,
        Required,
        "the network card, addresses and routes of which stay the system's",
        "\"eth1\"",
    ),
    key(
        "mode",
        Word(XDP_MODES),
        Is("\"auto\""),
        "how packets get to user space; `auto` takes the first that the driver has",
        "\"generic\"",
    ),
    key(
        "queues",
        Other("`all`, or queue numbers"),
        Is("\"all\""),
        "receive queues, each with a core and an engine of its own",
        "[0, 1]",
    ),
    key(
        "frames",
        Whole(Unit::None, 64, 1 << 16),
        Is("4096"),
        "packet buffers of each queue; a power of two",
        "8192",
    ),
    key(
        "routes",
        Other("`auto`, or prefixes"),
        Is("\"auto\""),
        "networks whose packets are taken from the card: the remote selectors of SAs and policies of the file that protect, \
         or these; 256 at most",
        "[\"10.2.0.0/16\"]",
    ),
];

pub const PROTECTED: Part = several(
    "protected",
    &[
        key(
            "kind",
            Word(&["udp", "raw", "xdp"]),
            Required,
            "ESP in UDP (RFC 3948), ESP and AH straight in IP by raw sockets, or both by AF_XDP",
            "\"udp\"",
        ),
        key("name", Text, Means("`udp-1`, `raw-2`, ... by place"), "for people, figures and taps", "\"wan\""),
    ],
);

const BUFFER: Key = key(
    "buffer",
    Whole(Unit::Bytes, 1 << 16, 1 << 30),
    Is("\"4 MiB\""),
    "room in the kernel for packets that wait, each socket and direction",
    "\"16 MiB\"",
);

const MARK: Key = key(
    "mark",
    Whole(Unit::None, 1, u32::MAX as u64),
    Means("none"),
    "firewall mark of what is sent, by which routing rules can keep it out of the tunnel's routes",
    "0x1000",
);

pub const PROTECTED_UDP: &[Key] = &[
    key(
        "listen",
        Other("an address with a port"),
        Is("\"0.0.0.0:4500\""),
        "where packets are taken and sent from; `[::]:4500` takes IPv6 only",
        "\"192.0.2.1:4500\"",
    ),
    key("gso", Flag, Is("true"), "gives the kernel trains of packets as one (UDP_SEGMENT)", "false"),
    key("gro", Flag, Is("true"), "takes trains of packets from the kernel as one (UDP_GRO)", "false"),
    key(
        "keepalive",
        Time("0 s", "1 h"),
        Is("\"20 s\""),
        "sends a NAT keepalive to a peer where nothing else was sent for so long (RFC 3948 2.3); 0: none",
        "\"15 s\"",
    ),
    key(
        "beside_ike",
        Flag,
        Is("false"),
        "takes the packets beside an IKE daemon on this host that has the port, and leaves IKE to it",
        "true",
    ),
    key(
        "ike_forward",
        Other("an address with a port"),
        Means("they are dropped"),
        "where IKE messages that come to this port go, and answers come from",
        "\"127.0.0.1:4501\"",
    ),
    key(
        "queues",
        Whole(Unit::None, 1, 256),
        Is("1"),
        "sockets that share the port, each with a core of its own (SO_REUSEPORT); more if another link has more",
        "2",
    ),
    BUFFER,
    MARK,
];

pub const PROTECTED_RAW: &[Key] = &[
    key(
        "addresses",
        Other("addresses"),
        Is("[\"0.0.0.0\", \"::\"]"),
        "this side's addresses that packets are taken at; 0.0.0.0 and :: are all",
        "[\"192.0.2.1\"]",
    ),
    key(
        "protocols",
        Other("`esp`, `ah`"),
        Is("[\"esp\", \"ah\"]"),
        "what is taken: IP protocol 50, 51, or both",
        "[\"esp\"]",
    ),
    BUFFER,
    MARK,
];

pub const PROTECTED_XDP: &[Key] = &[
    key(
        "interface",
        Text,
        Required,
        "the network card; all but ESP, AH and ESP in UDP stays the system's",
        "\"eth0\"",
    ),
    PLAIN_XDP[1],
    PLAIN_XDP[2],
    PLAIN_XDP[3],
    key(
        "ports",
        Other("port numbers, 1 to 65535"),
        Is("[4500]"),
        "UDP ports whose packets are taken, IKE's and keepalives left to the system",
        "[4500, 4501]",
    ),
];
