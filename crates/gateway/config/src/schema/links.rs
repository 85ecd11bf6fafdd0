//! `[inside]` and `[[outside]]`.

use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Either, Flag, List, Text, Time, Whole, Word};
use super::{Key, Part, TEXTS, Takes, key, once, several};

const XDP_MODES: &[&str] = &["auto", "zero-copy", "copy", "generic"];

const QUEUE: Takes = Whole(Unit::None, 0, u32::MAX as u64);
const PROTOCOL: Takes = Word(&["esp", "ah"]);
const PORT: Takes = Whole(Unit::None, 1, 65_535);

/// Longest name of an interface (Linux's `IFNAMSIZ`, less the end of the string).
pub const NAME_MAX: usize = 15;

pub const INSIDE: Part = once(
    "inside",
    &[
        key(
            "kind",
            Word(&["tun", "xdp", "dpdk"]),
            Is("\"tun\""),
            "`tun`: a TUN interface; `xdp`: a NIC by AF_XDP; `dpdk`: a network device by DPDK",
            "\"tun\"",
        ),
        key(
            "answer",
            Either("addresses", TEXTS),
            Means("the first of each IP version in `addresses`"),
            "source addresses of the gateway's ICMP errors, at most one for each IP version; without one, an ICMP error of that version \
             comes from the destination of the packet that it is about; a TUN interface without IPv4 address \
             gets the IPv4 one as a /32, which makes it an address of this host (it answers pings and ARP requests for it)",
            "[\"10.9.0.1\"]",
        ),
        key(
            "mss_clamp",
            Either(
                "`auto`, `false`, 88 to 65495 bytes",
                &[Word(&["auto"]), Flag, Whole(Unit::Bytes, 88, 65_495)],
            ),
            Is("\"auto\""),
            "lowers the MSS of forwarded TCP connections to this packet size; `auto`: to what fits the interface and the smallest path MTU of all SAs",
            "1360",
        ),
    ],
);

pub const INSIDE_TUN: &[Key] = &[
    key(
        "name",
        Text,
        Is("\"forebay0\""),
        "name of the interface, which is created at start; at most 15 characters",
        "\"ipsec0\"",
    ),
    key(
        "addresses",
        Either("addresses with prefix lengths", TEXTS),
        Means("none"),
        "addresses of the interface, such as the gateway's own in the protected network as a /32 or /128; they add no route to the \
         network of the prefix",
        "[\"10.1.0.1/32\", \"2001:db8:1::1/128\"]",
    ),
    key(
        "mtu",
        Whole(Unit::Bytes, 576, 65_535),
        Is("1400"),
        "MTU of the interface; with the tunnel's headers it should fit the path MTU, and with IPv6 it is at least 1280",
        "1420",
    ),
    key(
        "queues",
        Whole(Unit::None, 1, 256),
        Is("1"),
        "queues of the interface, each with its own worker thread and engine; the largest number of all links applies",
        "2",
    ),
    key(
        "offload",
        Flag,
        Is("true"),
        "segmentation and checksum offload: TCP and UDP packets are received and sent in GSO/GRO batches",
        "false",
    ),
    key(
        "queue_length",
        Whole(Unit::None, 1, 65_536),
        Is("5000"),
        "maximum number of packets that wait in the kernel for the gateway, per queue",
        "1000",
    ),
    key(
        "routes",
        Either("`auto`, or prefixes", TEXTS),
        Is("\"auto\""),
        "networks routed to the interface; `auto`: the remote selectors of SAs and policies that protect; `[]`: none",
        "[\"10.2.0.0/16\"]",
    ),
    key(
        "blackhole",
        Word(&["auto", "keep", "remove", "none"]),
        Is("\"auto\""),
        "blackhole routes behind each of `routes`, so that nothing leaves in the clear while the gateway is down; `auto` and \
         `keep` leave them in place after a clean shutdown, `remove` deletes them then, `none` creates none and deletes those \
         of earlier runs",
        "\"remove\"",
    ),
];

pub const INSIDE_XDP: &[Key] = &[
    key(
        "interface",
        Text,
        Required,
        "the NIC, whose addresses and routes remain with the system",
        "\"eth1\"",
    ),
    key(
        "mode",
        Word(XDP_MODES),
        Is("\"auto\""),
        "AF_XDP mode; `auto` uses the first that the driver supports",
        "\"generic\"",
    ),
    key(
        "queues",
        Either("`all`, or queue numbers", &[Word(&["all"]), QUEUE, List(&QUEUE)]),
        Is("\"all\""),
        "receive queues, each with its own worker thread and engine",
        "[0, 1]",
    ),
    key(
        "frames",
        Whole(Unit::None, 64, 1 << 16),
        Is("4096"),
        "packet buffers per queue, a power of two",
        "8192",
    ),
    key(
        "routes",
        Either("`auto`, or prefixes", TEXTS),
        Is("\"auto\""),
        "networks whose packets are received from the NIC, at most 256; `auto`: the remote selectors of the file's SAs and \
         policies that protect",
        "[\"10.2.0.0/16\"]",
    ),
];

pub const OUTSIDE: Part = several(
    "outside",
    &[
        key(
            "kind",
            Word(&["udp", "raw", "xdp", "dpdk"]),
            Required,
            "`udp`: ESP in UDP (RFC 3948); `raw`: ESP and AH without UDP, by raw sockets; `xdp`: both, by AF_XDP; `dpdk`: both, by a \
             network device of DPDK",
            "\"udp\"",
        ),
        key(
            "name",
            Text,
            Means("`udp-1`, `raw-2`, ... by position"),
            "name of the link in status, metrics and captures",
            "\"wan\"",
        ),
    ],
);

const BUFFER: Key = key(
    "buffer",
    Whole(Unit::Bytes, 1 << 16, 1 << 30),
    Is("\"4 MiB\""),
    "kernel buffer for waiting packets, per socket and direction",
    "\"16 MiB\"",
);

const MARK: Key = key(
    "mark",
    Whole(Unit::None, 1, u32::MAX as u64),
    Means("none"),
    "firewall mark of sent packets, with which routing rules can exclude them from the tunnel's routes",
    "0x1000",
);

pub const OUTSIDE_UDP: &[Key] = &[
    key(
        "listen",
        Either("an address with a port", &[Text]),
        Means("port 4500 of both IP versions, as far as no other link has it"),
        "local address and port of the socket, for peers of its IP version: `0.0.0.0:4500` is all of IPv4, `[::]:4500` all of IPv6",
        "\"192.0.2.1:4500\"",
    ),
    key("gso", Flag, Is("true"), "sends batches with UDP GSO (UDP_SEGMENT)", "false"),
    key("gro", Flag, Is("true"), "receives batches with UDP GRO (UDP_GRO)", "false"),
    key(
        "keepalive",
        Time("0 s", "1 h"),
        Is("\"20 s\""),
        "interval after which an idle peer is sent a NAT keepalive (RFC 3948 2.3), at least 1 s; 0 disables keepalives",
        "\"15 s\"",
    ),
    key(
        "beside_ike",
        Flag,
        Is("false"),
        "shares the UDP port with an IKE daemon of this host, which owns it and receives the IKE messages",
        "true",
    ),
    key(
        "ike_forward",
        Either("an address with a port", &[Text]),
        Means("IKE messages are dropped"),
        "address of an IKE daemon to which IKE messages of this port are forwarded, and whose replies are sent",
        "\"127.0.0.1:4501\"",
    ),
    key(
        "queues",
        Whole(Unit::None, 1, 256),
        Is("1"),
        "sockets that share the port (SO_REUSEPORT), each with its own worker thread; the largest number of all links applies",
        "2",
    ),
    BUFFER,
    MARK,
];

pub const OUTSIDE_RAW: &[Key] = &[
    key(
        "addresses",
        Either("addresses", TEXTS),
        Is("[\"0.0.0.0\", \"::\"]"),
        "local addresses at which packets are received; 0.0.0.0 and :: are all addresses",
        "[\"192.0.2.1\"]",
    ),
    key(
        "protocols",
        Either("`esp`, `ah`", &[PROTOCOL, List(&PROTOCOL)]),
        Is("[\"esp\", \"ah\"]"),
        "received protocols: ESP (50), AH (51), or both",
        "[\"esp\"]",
    ),
    BUFFER,
    MARK,
];

pub const OUTSIDE_XDP: &[Key] = &[
    key(
        "interface",
        Text,
        Required,
        "the NIC; all packets except ESP, AH and ESP in UDP remain with the system",
        "\"eth0\"",
    ),
    INSIDE_XDP[1],
    INSIDE_XDP[2],
    INSIDE_XDP[3],
    key(
        "ports",
        Either("port numbers, 1 to 65535", &[PORT, List(&PORT)]),
        Is("[4500]"),
        "UDP ports at which ESP in UDP is received; IKE messages and keepalives remain with the system",
        "[4500, 4501]",
    ),
];

pub const INSIDE_DPDK: &[Key] = &[
    key(
        "device",
        Text,
        Required,
        "DPDK's name of the network device: a PCI address, or a virtual device with its number, which is made if there is none",
        "\"0000:3d:00.0\"",
    ),
    key("arguments", Text, Means("none"), "what the device is made with", "\"iface=eth1\""),
    key(
        "addresses",
        Either("addresses with prefix lengths", TEXTS),
        Required,
        "IP addresses of the link itself, for which it answers ARP, Neighbour Discovery and pings; the network of each is on its \
         Ethernet",
        "[\"10.1.0.1/24\", \"2001:db8:1::1/64\"]",
    ),
    key(
        "gateway",
        Either("addresses", TEXTS),
        Means("none: only the networks of `addresses` are reached"),
        "next hop of packets to other networks, at most one for each IP version",
        "[\"10.1.0.254\"]",
    ),
    key(
        "neighbours",
        Either("an IP address, `=` and an Ethernet address", TEXTS),
        Means("none: they are found by ARP and Neighbour Discovery"),
        "hosts whose Ethernet address is not asked for",
        "[\"10.1.0.9=02:00:00:00:00:09\"]",
    ),
    key(
        "mtu",
        Whole(Unit::Bytes, 576, 16_000),
        Is("1500"),
        "largest packet that is sent; with IPv6 it is at least 1280",
        "9000",
    ),
    key(
        "queues",
        Whole(Unit::None, 1, 64),
        Is("1"),
        "queues of the device, each with its own worker thread and engine; the largest number of all links applies",
        "2",
    ),
    key(
        "descriptors",
        Whole(Unit::None, 64, 1 << 14),
        Is("1024"),
        "packets that have room in a queue of the device, each direction; a power of two",
        "4096",
    ),
];

pub const OUTSIDE_DPDK: &[Key] = &[
    INSIDE_DPDK[0],
    INSIDE_DPDK[1],
    INSIDE_DPDK[2],
    INSIDE_DPDK[3],
    INSIDE_DPDK[4],
    INSIDE_DPDK[5],
    INSIDE_DPDK[6],
    INSIDE_DPDK[7],
    key(
        "ports",
        Either("port numbers, 1 to 65535", &[PORT, List(&PORT)]),
        Is("[4500]"),
        "UDP ports at which ESP in UDP is received; IKE messages and keepalives are counted and dropped",
        "[4500, 4501]",
    ),
];
