//! What stands at the top, `[keys]`, `[guard]`, `[control]`, `[metrics]`, `[log]`, `[privileges]` and `[taps]`.

use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Flag, Other, Path, Text, Time, Whole, Word};
use super::{Key, Part, key, once};

pub const TOP: Part = once(
    "",
    &[key(
        "esp_sa_export",
        Path,
        Means("keys are not written anywhere"),
        "writes the keys of all SAs for Wireshark (`esp_sa`, mode 0600), for laboratories only",
        "\"esp_sa\"",
    )],
);

pub const KEYS: Part = once(
    "keys",
    &[
        key(
            "source",
            Word(&["static", "xfrm"]),
            Is("\"static\""),
            "where SAs and policies come from: files, or the kernel, into which an IKE daemon puts them",
            "\"xfrm\"",
        ),
        key(
            "state",
            Path,
            Means("the user's state directory, of root and with `user` `/var/lib/forebay`"),
            "where it is noted which IVs and sequence numbers may have been used, and which packets received, for the time after a restart",
            "\"/var/lib/forebay\"",
        ),
        key(
            "iv_reserve",
            Whole(Unit::None, 1, 1 << 48),
            Is("4294967296"),
            "IVs reserved per outbound SA at a time; more are reserved when half of them are used",
            "1_000_000",
        ),
    ],
);

pub const KEYS_STATIC: &[Key] = &[key(
    "sas",
    Path,
    Means("`[[sa]]` and `[[policy]]` of this file"),
    "a file of SAs and policies (docs/sas.md) instead of those of this one",
    "\"sas.toml\"",
)];

pub const KEYS_XFRM: &[Key] = &[
    key(
        "mark",
        Other("a number, or `number/mask`"),
        Means("those without a mark"),
        "takes over only SAs and policies with this mark",
        "\"0x42/0xff\"",
    ),
    key(
        "if_id",
        Whole(Unit::None, 1, u32::MAX as u64),
        Means("those without an interface ID"),
        "takes over only SAs and policies with this interface ID",
        "42",
    ),
    key(
        "policies",
        Flag,
        Is("true"),
        "takes over policies too; without, SAs protect what their own selectors say",
        "false",
    ),
    key(
        "follow_peer",
        Flag,
        Is("true"),
        "follows peers behind NAT to where their packets come from; never those of SAs whose local address is private and \
         the peer's is not, since then this side is behind one",
        "false",
    ),
    key(
        "report",
        Time("0 s", "1 h"),
        Is("\"1 s\""),
        "how often counters go back to the kernel, so that the daemon rekeys by volume and sees idle peers; 0: never",
        "\"5 s\"",
    ),
    key(
        "netlink_buffer",
        Whole(Unit::Bytes, 1 << 16, 1 << 30),
        Is("\"8 MiB\""),
        "room in the kernel for events that wait; after an overrun all is read anew",
        "\"32 MiB\"",
    ),
];

pub const GUARD: Part = once(
    "guard",
    &[
        key(
            "mode",
            Word(&["auto", "nftables", "print", "off"]),
            Is("\"auto\""),
            "rules of the host that drop packets in the clear from and to protected networks: `nftables` makes them, or does \
             not start; `auto` makes them, or warns; `print` leaves them to whoever loads what `forebay check --print-rules` \
             prints; `off` is without",
            "\"print\"",
        ),
        key(
            "interfaces",
            Other("interface names"),
            Means("the gateway's own"),
            "further interfaces by which protected networks may be reached, those of another gateway or tunnel",
            "[\"forebay1\"]",
        ),
        key(
            "except",
            Other("prefixes"),
            Is("[]"),
            "networks in remote selectors that are not the peers', such as this host's own, and are not guarded",
            "[\"10.9.0.0/24\"]",
        ),
        key(
            "remove",
            Flag,
            Is("false"),
            "deletes the rules at a clean stop; without, they stay until the next start",
            "true",
        ),
    ],
);

pub const CONTROL: Part = once(
    "control",
    &[
        key(
            "socket",
            Path,
            Is("\"/run/forebay/control.sock\""),
            "the Unix socket that `forebay status`, `show`, `reload` and `top` ask",
            "\"/run/forebay/a.sock\"",
        ),
        key(
            "mode",
            Other("octal in a string"),
            Is("\"0600\""),
            "its permissions; who may write to it may reload",
            "\"0660\"",
        ),
        key("group", Text, Means("the process's"), "the group that it belongs to", "\"adm\""),
    ],
);

pub const METRICS: Part = once(
    "metrics",
    &[key(
        "listen",
        Other("an address with a port"),
        Required,
        "where Prometheus finds `/metrics`, by HTTP without access control",
        "\"127.0.0.1:9464\"",
    )],
);

pub const LOG: Part = once(
    "log",
    &[
        key(
            "level",
            Word(&["error", "warn", "info", "debug", "trace"]),
            Is("\"info\""),
            "the least that is logged, to standard error",
            "\"debug\"",
        ),
        key(
            "format",
            Word(&["text", "json"]),
            Is("\"text\""),
            "lines for people or for programs",
            "\"json\"",
        ),
        key(
            "audit",
            Flag,
            Is("true"),
            "a record for each kind of packet that RFC 4303 and RFC 4302 want audited, with its fields",
            "false",
        ),
        key(
            "audit_rate",
            Whole(Unit::PacketRate, 1, 1_000_000),
            Is("10"),
            "most audit records; others are counted, and their number said",
            "100",
        ),
        key("audit_burst", Whole(Unit::None, 1, 1_000_000), Is("100"), "most of them at once", "1000"),
    ],
);

pub const PRIVILEGES: Part = once(
    "privileges",
    &[
        key(
            "user",
            Text,
            Means("who starts it"),
            "the user that the gateway becomes before it opens anything, if root starts it; files must be readable to it",
            "\"forebay\"",
        ),
        key(
            "core_dumps",
            Flag,
            Is("false"),
            "lets the kernel write its memory, keys and all, to a file when it crashes, and debuggers look",
            "true",
        ),
    ],
);

pub const TAPS: Part = once(
    "taps",
    &[
        key("directory", Path, Required, "where captures (pcapng) are written", "\"/var/lib/forebay/taps\""),
        key(
            "sides",
            Other("`plain`, `protected`"),
            Is("[\"plain\", \"protected\"]"),
            "which packets are captured",
            "[\"protected\"]",
        ),
        key(
            "file_size",
            Whole(Unit::Bytes, 1 << 16, 1 << 40),
            Is("\"100 MB\""),
            "size from which on the next file is begun",
            "\"1 GB\"",
        ),
        key(
            "files",
            Whole(Unit::None, 1, 1_000),
            Is("10"),
            "files of each side; the oldest is replaced",
            "4",
        ),
        key("snap", Whole(Unit::Bytes, 64, 65_575), Is("65575"), "bytes kept of a packet", "128"),
    ],
);
