//! Keys at the top level, and `[keys]`, `[guard]`, `[control]`, `[metrics]`, `[page]`, `[log]`, `[privileges]` and `[taps]`.

use forebay_scenario::Unit;

use super::Absent::{Is, Means, Required};
use super::Takes::{Either, Flag, List, Path, Text, Time, Whole, Word};
use super::{Key, Part, TEXTS, Takes, key, once};

pub const TOP: Part = once(
    "",
    &[key(
        "esp_sa_export",
        Path,
        Means("no keys are written"),
        "file to which the keys of all SAs are written for Wireshark (`esp_sa`, mode 0600); for laboratories only",
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
            "source of SAs and policies: `static`: files; `xfrm`: the kernel, where an IKE daemon installs them",
            "\"xfrm\"",
        ),
        key(
            "state",
            Path,
            Means(
                "with `user`, `/var/lib/forebay`; otherwise `$FOREBAY_STATE`, `$XDG_STATE_HOME/forebay` or `$HOME/.local/state/forebay`; for root without any, `/var/lib/forebay`",
            ),
            "directory that records used IVs and sequence numbers and received packets, so that a restart repeats none",
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

pub const KEYS_STATIC: &[Key] = &[
    key(
        "sas",
        Path,
        Means("`[[sa]]` and `[[policy]]` of this file"),
        "a separate file of SAs and policies (docs/sas.md)",
        "\"sas.toml\"",
    ),
    key(
        "manual_keying",
        Word(&["warn", "accepted"]),
        Is("\"warn\""),
        "`warn`: `check` and the log name SAs whose suites RFC 8221 3 forbids for keys that no IKE daemon negotiates (AES-GCM, \
         AES-CCM, AES-GMAC, AES-CTR, ChaCha20-Poly1305), and SAs that could outlive their keys; `accepted`: they do not",
        "\"accepted\"",
    ),
];

pub const KEYS_XFRM: &[Key] = &[
    key(
        "mark",
        Either("a number, or `number/mask`", &[Text, Whole(Unit::None, 0, u32::MAX as u64)]),
        Means("only those without a mark"),
        "synchronizes only SAs and policies with this mark",
        "\"0x42/0xff\"",
    ),
    key(
        "if_id",
        Whole(Unit::None, 1, u32::MAX as u64),
        Means("only those without an interface ID"),
        "synchronizes only SAs and policies with this interface ID",
        "42",
    ),
    key(
        "policies",
        Flag,
        Is("true"),
        "synchronizes policies as well; if false, the selectors of the SAs decide which packets are protected",
        "false",
    ),
    key(
        "follow_peer",
        Flag,
        Is("true"),
        "follows address changes of peers behind NAT; never for SAs whose local address is private and whose peer's address \
         is not, since then this side is behind the NAT",
        "false",
    ),
    key(
        "report",
        Time("0 s", "1 h"),
        Is("\"1 s\""),
        "interval at which counters are reported to the kernel, so that the daemon can rekey by volume and detect idle peers; \
         0 disables reports",
        "\"5 s\"",
    ),
    key(
        "netlink_buffer",
        Whole(Unit::Bytes, 1 << 16, 1 << 30),
        Is("\"8 MiB\""),
        "kernel buffer for events; after an overrun all SAs and policies are read again",
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
            "host rules that drop cleartext packets from and to protected networks; `nftables` installs them and does not start \
             if that fails; `auto` installs them and warns if that fails; `print` leaves installation to the administrator \
             (`forebay check --print-rules`); `off` disables them",
            "\"print\"",
        ),
        key(
            "interfaces",
            Either("interface names", TEXTS),
            Means("the gateway's own"),
            "additional interfaces through which protected networks are reached, such as those of another gateway or tunnel",
            "[\"forebay1\"]",
        ),
        key(
            "local_interfaces",
            Either("interface names", TEXTS),
            Is("[]"),
            "interfaces by which networks in local selectors are reached although peers or the default route are too; to others of \
             that kind opened packets are forwarded only if the interface has an address in the network",
            "[\"eth0\"]",
        ),
        key(
            "except",
            Either("prefixes", TEXTS),
            Is("[]"),
            "networks in remote selectors that are excluded from the guard, such as this host's own",
            "[\"10.9.0.0/24\"]",
        ),
        key(
            "remove",
            Flag,
            Is("false"),
            "deletes the rules at a clean shutdown; if false, they remain until the next start",
            "true",
        ),
    ],
);

pub const PAIR: Part = once(
    "pair",
    &[
        key(
            "number",
            Whole(Unit::None, 0, 1),
            Required,
            "number of this gateway of the pair: 0 on one, 1 on the other; it decides which IVs and sequence numbers the gateway \
             may use and must never change",
            "0",
        ),
        key(
            "listen",
            Either("addresses with ports", TEXTS),
            Means("required with `number = 0`"),
            "addresses of this gateway at which its peer connects: one for each link between the two",
            "[\"10.9.0.1:7411\"]",
        ),
        key(
            "peers",
            Either("addresses with ports", TEXTS),
            Means("required with `number = 1`"),
            "addresses of the peer to connect to: one for each link between the two",
            "[\"10.9.0.2:7411\"]",
        ),
        key(
            "key_file",
            Path,
            Required,
            "file with the key of the pair, 64 hex digits that only its owner can read; the same on both gateways",
            "\"pair.key\"",
        ),
        key(
            "preferred",
            Flag,
            Is("false"),
            "whether this gateway becomes active if both start; a gateway that is active stays active",
            "true",
        ),
        key(
            "addresses",
            Either("an interface and an address with its prefix length each", TEXTS),
            Is("[]"),
            "shared addresses: the active gateway adds them to its interfaces and announces them; empty where VRRP or \
             a routing daemon moves them",
            "[\"wan 192.0.2.9/24\"]",
        ),
        key(
            "heartbeat",
            Time("1 ms", "10 s"),
            Is("\"100 ms\""),
            "interval of heartbeats on every link",
            "\"50 ms\"",
        ),
        key(
            "silence",
            Time("10 ms", "1 min"),
            Is("\"500 ms\""),
            "time without a heartbeat on any link after which the peer is considered dead; at least 3 heartbeats",
            "\"250 ms\"",
        ),
    ],
);

pub const CLUSTER: Part = once(
    "cluster",
    &[
        key(
            "name",
            Text,
            Required,
            "name of this gateway, which no other one of the cluster has",
            "\"gw-3\"",
        ),
        key(
            "endpoints",
            Either("URLs", TEXTS),
            Required,
            "client URLs of the etcd servers that the gateways share, tried in turn",
            "[\"https://10.9.0.11:2379\", \"https://10.9.0.12:2379\", \"https://10.9.0.13:2379\"]",
        ),
        key(
            "ca_file",
            Path,
            Means("required for `https`"),
            "certificates (PEM) of the authorities that sign the servers' certificates",
            "\"etcd-ca.pem\"",
        ),
        key(
            "certificate_file",
            Path,
            Means("no certificate is presented"),
            "certificate (PEM) of this gateway for the servers, with `private_key_file`",
            "\"gw-3.pem\"",
        ),
        key(
            "private_key_file",
            Path,
            Means("no certificate is presented"),
            "private key (PEM) of that certificate, which only its owner can read",
            "\"gw-3.key\"",
        ),
        key(
            "prefix",
            Text,
            Is("\"/forebay/\""),
            "prefix of the cluster's keys in etcd; every cluster needs one of its own",
            "\"/forebay/east/\"",
        ),
        key(
            "shares",
            Whole(Unit::None, 1, 4_096),
            Is("256"),
            "number of shares into which the SAs are divided; a share is served by one gateway; the same on all gateways, for good",
            "1024",
        ),
        key(
            "share_by",
            Word(&["local", "remote", "spi"]),
            Is("\"local\""),
            "what decides to which share an SA belongs: `local`: the gateway's outer address, which moves with the share; \
             `remote`: the peer's outer address; `spi`: the SPI; the same on all gateways, for good",
            "\"remote\"",
        ),
        key(
            "lease",
            Time("2 s", "1 min"),
            Is("\"2 s\""),
            "time without a sign of life after which the other gateways take over the shares of one",
            "\"5 s\"",
        ),
        key(
            "ahead",
            Time("200 ms", "1 min"),
            Is("\"2500 ms\""),
            "time whose received packets are recorded in etcd ahead: for half of it at least etcd may be silent before received packets \
             are held; after a gateway has died, what was recorded ahead beyond the lease is refused",
            "\"5 s\"",
        ),
        key(
            "alone",
            Word(&["continue", "stop"]),
            Is("\"continue\""),
            "what a gateway does that etcd has not answered for the time of its lease: `continue`: it serves until what is recorded ahead ends; \
             `stop`: it takes addresses and routes away, so that a routing daemon withdraws them and another gateway's are used",
            "\"stop\"",
        ),
        key(
            "addresses",
            Either(
                "an interface and an address with its prefix length each, and the outer address that it moves with",
                TEXTS,
            ),
            Is("[]"),
            "addresses that move with the shares, with `share_by = \"local\"`: a gateway adds those of its shares to its interfaces and \
             announces them; an inside address names the outer address whose share it belongs to",
            "[\"wan 192.0.2.101/24\", \"lan 10.1.0.101/16 192.0.2.101\"]",
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
            "Unix socket for `forebay status`, `show`, `reload` and `top`",
            "\"/run/forebay/a.sock\"",
        ),
        key(
            "mode",
            Either("octal in a string", &[Text]),
            Is("\"0600\""),
            "permissions of the socket; a user with write permission can reload the gateway",
            "\"0660\"",
        ),
        key("group", Text, Means("the group of the process"), "group of the socket", "\"adm\""),
    ],
);

pub const METRICS: Part = once(
    "metrics",
    &[
        key(
            "listen",
            Either("an address with a port", &[Text]),
            Required,
            "address at which `/metrics` is served to Prometheus, by HTTP without encryption",
            "\"127.0.0.1:9464\"",
        ),
        key(
            "token_file",
            Text,
            Means("whoever reaches the address may read"),
            "file with a token of 16 to 256 characters, not readable by others, that clients must send as `Authorization: Bearer`, or as password",
            "\"/etc/forebay/metrics.token\"",
        ),
    ],
);

pub const PAGE: Part = once(
    "page",
    &[
        key(
            "listen",
            Either("an address with a port, or the path of a Unix socket", &[Text]),
            Required,
            "where the live page is served, by HTTP without encryption; a Unix socket has mode and group of `[control]`; an address beyond \
             loopback requires `token_file`",
            "\"127.0.0.1:9465\"",
        ),
        key(
            "token_file",
            Text,
            Means("whoever reaches `listen` may read"),
            "file with a token of 16 to 256 characters, not readable by others, that a browser asks for as password of any user name",
            "\"/etc/forebay/page.token\"",
        ),
        key(
            "hosts",
            Either("names", TEXTS),
            Is("[]"),
            "names by which browsers may ask for the page, beside addresses and `localhost`; others are refused, so that no site of \
             the web can lead its visitors' browsers here",
            "[\"gw-a.example\"]",
        ),
        key(
            "clients",
            Whole(Unit::None, 1, 100),
            Is("20"),
            "maximum number of browsers that watch at a time; further ones are refused",
            "5",
        ),
        key(
            "addresses",
            Flag,
            Is("false"),
            "shows the networks of policies, which are addresses of inner packets",
            "true",
        ),
    ],
);

pub const LOG: Part = once(
    "log",
    &[
        key(
            "level",
            Word(&["error", "warn", "info", "debug", "trace"]),
            Is("\"info\""),
            "minimum level of messages logged to standard error",
            "\"debug\"",
        ),
        key("format", Word(&["text", "json"]), Is("\"text\""), "format of log lines", "\"json\""),
        key(
            "audit",
            Flag,
            Is("true"),
            "logs a record for each auditable event of RFC 4303 and RFC 4302",
            "false",
        ),
        key(
            "audit_rate",
            Whole(Unit::PacketRate, 1, 1_000_000),
            Is("10"),
            "maximum rate of audit records; further records are counted, and their number is logged",
            "100",
        ),
        key(
            "audit_burst",
            Whole(Unit::None, 1, 1_000_000),
            Is("100"),
            "maximum burst of audit records",
            "1000",
        ),
    ],
);

pub const PRIVILEGES: Part = once(
    "privileges",
    &[
        key(
            "user",
            Text,
            Means("the user who starts the gateway"),
            "user that the gateway changes to at start, if started by root; this user must be able to read the configuration and key files",
            "\"forebay\"",
        ),
        key("core_dumps", Flag, Is("false"), "allows core dumps, which contain keys, and debuggers", "true"),
        key(
            "lock_memory",
            Word(&["auto", "on", "off"]),
            Is("\"auto\""),
            "keeps the memory of the process, which contains keys, out of swap; requires an unlimited RLIMIT_MEMLOCK or the right to raise it; \
             `on` does not start without it",
            "\"on\"",
        ),
    ],
);

const SIDE: Takes = Word(&["inside", "outside"]);

pub const TAPS: Part = once(
    "taps",
    &[
        key("directory", Path, Required, "directory for capture files (pcapng)", "\"/var/lib/forebay/taps\""),
        key(
            "sides",
            Either("`inside`, `outside`", &[SIDE, List(&SIDE)]),
            Is("[\"inside\", \"outside\"]"),
            "sides whose packets are captured",
            "[\"outside\"]",
        ),
        key(
            "file_size",
            Whole(Unit::Bytes, 1 << 16, 1 << 40),
            Is("\"100 MB\""),
            "size at which the next file is started",
            "\"1 GB\"",
        ),
        key(
            "files",
            Whole(Unit::None, 1, 1_000),
            Is("10"),
            "maximum number of files per side; the oldest is replaced",
            "4",
        ),
        key(
            "snap",
            Whole(Unit::Bytes, 64, 65_575),
            Is("65575"),
            "snapshot length: bytes captured per packet",
            "128",
        ),
    ],
);
