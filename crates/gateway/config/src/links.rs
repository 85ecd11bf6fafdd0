//! `[inside]` and `[[outside]]`: the interface that programs see, and the links to peers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use forebay_diagnostics::Problem;
use forebay_engine::Addresses;
use forebay_ipsec::Protocol;
use forebay_scenario::{Table, Unit, Value};
use forebay_time::Duration;
use ipnet::IpNet;

use super::ports::{self, NetworkDevice, udp_ports};
use super::reader::{Context, Reader, tables};
use super::schema::links::NAME_MAX;

/// The side that programs see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// What packets go through.
    pub link: InsideLink,
    /// Where ICMP messages to their sources come from.
    pub answer: Addresses,
    /// What becomes of the MSS of TCP connections that pass.
    pub mss_clamp: MssClamp,
}

/// A link to programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsideLink {
    /// An interface of its own.
    Tun(Tun),
    /// A network card.
    Xdp {
        /// The card.
        card: Xdp,
        /// Networks whose packets are taken from it.
        routes: Routes,
    },
    /// A network device by DPDK.
    Dpdk(NetworkDevice),
}

/// A TUN interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tun {
    /// Its name.
    pub name: String,
    /// Its addresses with their prefix lengths.
    pub addresses: Vec<IpNet>,
    /// Its MTU in bytes.
    pub mtu: u16,
    /// Its queues, each with a core of its own.
    pub queues: usize,
    /// Whether trains of packets pass as one (`virtio_net_hdr`).
    pub offload: bool,
    /// Packets that may wait in the kernel, each queue.
    pub queue_length: u32,
    /// What is routed to it.
    pub routes: Routes,
    /// What becomes of that without a gateway.
    pub blackhole: Blackhole,
}

/// Whether networks that are routed to the interface are discarded when it is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blackhole {
    /// Always, across clean stops and restarts too.
    #[default]
    Keep,
    /// Until a clean shutdown.
    Remove,
    /// No; those that an earlier run has left are removed.
    None,
}

/// Which routes are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routes {
    /// To what is protected.
    Auto,
    /// These.
    These(Vec<IpNet>),
}

/// What becomes of the MSS of TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MssClamp {
    /// At most what fits the path MTU of their SA.
    Auto,
    /// Nothing.
    Off,
    /// At most this many bytes.
    At(u16),
}

/// A network card by AF_XDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xdp {
    /// The name of its interface.
    pub interface: String,
    /// How packets get to user space.
    pub mode: XdpMode,
    /// Receive queues; `None` for all.
    pub queues: Option<Vec<u32>>,
    /// Packet buffers of each queue, a power of two.
    pub frames: u32,
}

/// How packets get from a card to user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// The first of the others that the driver has.
    Auto,
    /// The card writes into the buffers of the gateway.
    ZeroCopy,
    /// The driver's own XDP, which copies.
    Copy,
    /// Any driver: the kernel copies from its own buffers.
    Generic,
}

/// A link to peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// Name for people, figures and taps.
    pub name: String,
    /// What packets go through.
    pub link: OutsideLink,
}

/// What packets to peers go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideLink {
    /// ESP in UDP.
    Udp(Udp),
    /// ESP and AH straight in IP.
    Raw(Raw),
    /// All of these by AF_XDP.
    Xdp {
        /// The card.
        card: Xdp,
        /// UDP ports whose packets are taken.
        ports: Vec<u16>,
    },
    /// All of these by a network device of DPDK.
    Dpdk {
        /// The device.
        device: NetworkDevice,
        /// UDP ports whose packets are taken.
        ports: Vec<u16>,
    },
}

/// ESP in UDP (RFC 3948).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    /// This side's addresses and ports, at most one of each IP version; the unspecified address for all of one.
    pub listen: Vec<SocketAddr>,
    /// Whether `listen` is the default, which leaves other links the sockets that they name.
    pub by_default: bool,
    /// Whether trains are sent as one (`UDP_SEGMENT`).
    pub gso: bool,
    /// Whether trains are received as one (`UDP_GRO`).
    pub gro: bool,
    /// After how long of silence a peer is sent a keepalive; `None` for never.
    pub keepalive: Option<Duration>,
    /// Whether an IKE daemon has the port, and packets are taken beside it.
    pub beside_ike: bool,
    /// Where IKE messages go; `None`: they are dropped.
    pub ike_forward: Option<SocketAddr>,
    /// Sockets that share the port.
    pub queues: usize,
    /// Room in the kernel in bytes, each direction.
    pub buffer: usize,
    /// Firewall mark of what is sent.
    pub mark: Option<u32>,
}

/// ESP and AH by raw sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// This side's addresses; unspecified ones for all of their IP version.
    pub addresses: Vec<IpAddr>,
    /// What is taken.
    pub protocols: Vec<Protocol>,
    /// Room in the kernel in bytes, each direction.
    pub buffer: usize,
    /// Firewall mark of what is sent.
    pub mark: Option<u32>,
}

/// Reads `[inside]`; absent, it is a TUN interface with every default.
pub(super) fn inside(top: &Table, context: &Context<'_>) -> Option<Inside> {
    let none = Table::default();
    let tables = tables(top, "inside", context);
    let (table, place) = tables.into_iter().next().unwrap_or((&none, super::whole()));
    let (section, kind) = Reader::of_kind("inside", "kind", table, place, context);
    let answer = section.each_parsed::<IpAddr>("answer", "expected an address: \"10.9.0.1\"");
    let answer = answer.map(|given| addresses(&given, &section));
    let mss_clamp = mss_clamp(&section);
    let link = match kind? {
        "xdp" => {
            let routes = routes(&section);
            InsideLink::Xdp { card: xdp(&section)?, routes: routes? }
        }
        "dpdk" => InsideLink::Dpdk(ports::device(&section)?),
        _ => InsideLink::Tun(tun(&section)?),
    };
    let own = match &link {
        InsideLink::Tun(tun) => tun.addresses.iter().map(IpNet::addr).collect(),
        InsideLink::Xdp { .. } => vec![],
        InsideLink::Dpdk(device) => device.addresses.iter().map(IpNet::addr).collect(),
    };
    let answer = if section.has("answer") { answer? } else { first_of(&own) };
    let link = match link {
        InsideLink::Tun(tun) => InsideLink::Tun(with_answer(tun, answer)),
        card => card,
    };
    Some(Inside { link, answer, mss_clamp: mss_clamp? })
}

/// An interface without IPv4 address has that of the ICMP errors: where `rp_filter` is on, Linux drops what comes in by one without
/// any, unless its source is routed there.
fn with_answer(mut tun: Tun, answer: Addresses) -> Tun {
    if let (Some(own), false) = (answer.v4, tun.addresses.iter().any(|one| one.addr().is_ipv4())) {
        tun.addresses.push(IpNet::from(IpAddr::V4(own)));
    }
    tun
}

/// The addresses that answers come from, one of each version.
fn addresses(given: &[IpAddr], section: &Reader<'_>) -> Addresses {
    let found = first_of(given);
    let count = usize::from(found.v4.is_some()) + usize::from(found.v6.is_some());
    if count < given.len() {
        let help = "give at most one IPv4 and one IPv6 address";
        section.conflict("answer", "several addresses of one IP version in `answer`", help);
    }
    for address in given {
        let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || is_broadcast {
            // RFC 1122 3.2.1.3, RFC 4291 2.7: none of these is a source.
            let message = format!("`answer` has `{address}`, from which no packet can come");
            section.conflict("answer", message, "give an address of this gateway");
        }
    }
    found
}

fn first_of(addresses: &[IpAddr]) -> Addresses {
    let v4 = |address: &IpAddr| if let IpAddr::V4(v4) = address { Some(*v4) } else { None };
    let v6 = |address: &IpAddr| if let IpAddr::V6(v6) = address { Some(*v6) } else { None };
    Addresses { v4: addresses.iter().find_map(v4), v6: addresses.iter().find_map(v6) }
}

fn mss_clamp(section: &Reader<'_>) -> Option<MssClamp> {
    const KEY: &str = "mss_clamp";
    if section.is_word(KEY, "auto") || !section.has(KEY) {
        return Some(MssClamp::Auto);
    }
    let values = section.values();
    match &values.node(KEY)?.value {
        Value::Flag(false) => Some(MssClamp::Off),
        Value::Flag(true) => Some(MssClamp::Auto),
        Value::Text(word) if !word.starts_with(|char: char| char.is_ascii_digit()) => {
            const EXPECTED: &str = "expected \"auto\", false, or bytes: 1360";
            section.bad(KEY, word, EXPECTED, section.place_of(KEY));
            None
        }
        // 88: the least that Linux takes (TCP_MIN_MSS); 65495: 65535 less the headers of IPv4 and TCP.
        _ => values.whole(KEY, Unit::Bytes, 88, 65_495).map(|bytes| MssClamp::At(bytes as u16)),
    }
}

fn tun(section: &Reader<'_>) -> Option<Tun> {
    const PREFIX: &str = "expected an address with its prefix length: \"10.9.0.1/24\"";
    let name = interface("name", section);
    let addresses = match section.has("addresses") {
        true => section.each_parsed::<IpNet>("addresses", PREFIX),
        false => Some(vec![]),
    };
    let mtu = section.whole("mtu").map(|mtu| mtu as u16);
    let queues = section.count("queues");
    let offload = section.flag("offload");
    let queue_length = section.whole("queue_length").map(|length| length as u32);
    let routes = routes(section);
    let blackhole = section.word("blackhole").map(|word| match word {
        "remove" => Blackhole::Remove,
        "none" => Blackhole::None,
        _ => Blackhole::Keep,
    });
    let (addresses, mtu) = (addresses?, mtu?);
    if mtu < 1280 && addresses.iter().any(|address| matches!(address, IpNet::V6(_))) {
        section.conflict(
            "mtu",
            format!("an MTU of {mtu} with an IPv6 address"),
            "IPv6 requires at least 1280 (RFC 8200 5)",
        );
    }
    Some(Tun {
        name: name?,
        addresses,
        mtu,
        queues: queues?,
        offload: offload?,
        queue_length: queue_length?,
        routes: routes?,
        blackhole: blackhole?,
    })
}

/// `auto`, or what the file says.
fn routes(section: &Reader<'_>) -> Option<Routes> {
    match section.is_word("routes", "auto") {
        true => Some(Routes::Auto),
        false => section
            .each_parsed::<IpNet>("routes", "expected \"auto\", or prefixes: [\"10.2.0.0/16\"]")
            .map(|routes| check_routes(routes, section)),
    }
}

/// Routes go to networks.
fn check_routes(routes: Vec<IpNet>, section: &Reader<'_>) -> Routes {
    for route in routes.iter().filter(|route| route.trunc() != **route) {
        let help = format!("the network is {}", route.trunc());
        section.conflict("routes", format!("{route} has host bits set"), help);
    }
    Routes::These(routes)
}

/// The name of an interface, as Linux lets it be.
fn interface(key: &'static str, section: &Reader<'_>) -> Option<String> {
    let name = section.text(key)?;
    let odd = |char: char| char.is_whitespace() || char.is_control() || "/:%".contains(char);
    // `all` and `default` are the kernel's own names in /proc/sys/net; `lo` is there on every host.
    let reserved =
        matches!(name.as_str(), "" | "." | ".." | "all" | "default") || key == "name" && name == "lo";
    if name.len() > NAME_MAX || name.contains(odd) || reserved {
        let found = forebay_sas::mask::shown(&name);
        let help = format!(
            "1 to {NAME_MAX} characters, no spaces, no `/`, `:` or `%`, and none of the reserved `lo`, `all` and `default`"
        );
        section.conflict(key, format!("`{found}` is not a valid interface name"), help);
        return None;
    }
    Some(name)
}

fn xdp(section: &Reader<'_>) -> Option<Xdp> {
    let interface = interface("interface", section);
    let mode = section.word("mode").map(|word| match word {
        "zero-copy" => XdpMode::ZeroCopy,
        "copy" => XdpMode::Copy,
        "generic" => XdpMode::Generic,
        _ => XdpMode::Auto,
    });
    let queues = match section.is_word("queues", "all") {
        true => Some(None),
        false => section
            .each("queues", |values, node| values.whole_of("queues", node, Unit::None, 0, 4_095))
            .map(|queues| Some(queues.into_iter().map(|queue| queue as u32).collect::<Vec<_>>())),
    };
    let frames = section.whole("frames").map(|frames| frames as u32);
    if frames.is_some_and(|frames| !frames.is_power_of_two()) {
        section.conflict("frames", format!("`frames` is {}", frames?), "expected a power of two: 4096, 8192");
    }
    if let Some(Some(queues)) = &queues {
        check_distinct("queues", queues, section);
    }
    Some(Xdp { interface: interface?, mode: mode?, queues: queues?, frames: frames? })
}

/// A list that is not empty and names nothing twice.
pub(super) fn check_distinct<T: PartialEq + std::fmt::Display>(key: &str, list: &[T], section: &Reader<'_>) {
    if list.is_empty() {
        section.conflict(key, format!("`{key}` is empty"), "give at least one value, or remove the key");
    }
    if let Some(twice) = (1..list.len()).find(|&at| list[..at].contains(&list[at])) {
        section.conflict(key, format!("`{key}` contains {} twice", list[twice]), "remove one");
    }
}

/// Reads `[[outside]]`, of which there is one at least.
pub(super) fn outside(top: &Table, context: &Context<'_>) -> Option<Vec<Outside>> {
    let tables = tables(top, "outside", context);
    // With its older name the section is there, and its name has been reported.
    if tables.is_empty() && ["outside", "protected"].iter().all(|name| top.get(name).is_none()) {
        let problem = Problem::Conflict {
            message: "no link to peers is configured".to_owned(),
            help: "add `[[outside]]` and, below it, `kind = \"udp\"` or `kind = \"raw\"`".to_owned(),
        };
        context.findings.borrow_mut().add(problem, super::whole());
    }
    let mut names: Vec<String> = Vec::new();
    let links: Vec<Option<Outside>> = tables
        .into_iter()
        .enumerate()
        .map(|(at, (table, place))| {
            let (section, kind) = Reader::of_kind("outside", "kind", table, place, context);
            let name = match section.has("name") {
                true => section.text("name"),
                false => kind.map(|kind| format!("{kind}-{}", at + 1)),
            };
            if let Some(name) = &name {
                super::unique("link", name, &mut names, &section);
            }
            let link = match kind? {
                "udp" => udp(&section).map(OutsideLink::Udp),
                "raw" => raw(&section).map(OutsideLink::Raw),
                "dpdk" => {
                    let (device, ports) = (ports::device(&section), udp_ports(&section));
                    device.zip(ports).map(|(device, ports)| OutsideLink::Dpdk { device, ports })
                }
                _ => xdp_ports(&section),
            };
            Some(Outside { name: name?, link: link? })
        })
        .collect();
    let mut links: Vec<Outside> = links.into_iter().collect::<Option<_>>()?;
    check_keepalive(&links, context);
    listen_elsewhere(&mut links, context);
    Some(links)
}

/// Gives a link in UDP without `listen` the IP versions of which no other link has the port, and reports sockets that two links
/// would have, and links that are left with none.
fn listen_elsewhere(links: &mut [Outside], context: &Context<'_>) {
    let conflict = |message: String| {
        let help = "give each link of kind `udp` another `listen`, or remove one of the links".to_owned();
        context.findings.borrow_mut().add(Problem::Conflict { message, help }, super::whole());
    };
    let mut taken: Vec<(String, SocketAddr)> = Vec::new();
    for one in links.iter() {
        let OutsideLink::Udp(udp) = &one.link else { continue };
        for listen in udp.listen.iter().filter(|_| !udp.by_default) {
            match taken.iter().find(|(_, known)| known == listen) {
                Some((other, _)) => {
                    conflict(format!("the links {other} and {} both have {listen}", one.name))
                }
                None => taken.push((one.name.clone(), *listen)),
            }
        }
    }
    for one in links {
        let OutsideLink::Udp(udp) = &mut one.link else { continue };
        if !udp.by_default {
            continue;
        }
        let clash = |at: &SocketAddr, (_, known): &(String, SocketAddr)| {
            at.port() == known.port() && at.is_ipv4() == known.is_ipv4()
        };
        udp.listen.retain(|at| !taken.iter().any(|known| clash(at, known)));
        taken.extend(udp.listen.iter().map(|at| (one.name.clone(), *at)));
        if udp.listen.is_empty() {
            conflict(format!(
                "other links have port {UDP_PORT} of both IP versions, so that none is left for {}",
                one.name
            ));
        }
    }
}

/// Keepalives go by the SA, whatever link its packets leave by, so there is one interval.
fn check_keepalive(links: &[Outside], context: &Context<'_>) {
    let intervals = links.iter().filter_map(|one| match &one.link {
        OutsideLink::Udp(udp) => Some((&one.name, udp.keepalive)),
        _ => None,
    });
    let intervals: Vec<_> = intervals.collect();
    let Some((first, interval)) = intervals.first() else { return };
    if let Some((other, _)) = intervals.iter().find(|(_, other)| other != interval) {
        let problem = Problem::Conflict {
            message: format!("the links {first} and {other} have different `keepalive`"),
            help: "give all links of kind `udp` the same interval: keepalives are sent for an SA, not for a link".to_owned(),
        };
        context.findings.borrow_mut().add(problem, super::whole());
    }
}

/// The port of ESP in UDP (RFC 3948).
const UDP_PORT: u16 = 4500;
/// Shortest interval of keepalives.
const KEEPALIVE_MIN: Duration = Duration::from_millis(1_000);

fn udp(section: &Reader<'_>) -> Option<Udp> {
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let listen = match section.has("listen") {
        true => section.socket("listen").map(|one| vec![one]),
        false => Some(all.map(|any| SocketAddr::new(any, UDP_PORT)).to_vec()),
    };
    let (gso, gro) = (section.flag("gso"), section.flag("gro"));
    let keepalive = section.time("keepalive");
    let beside_ike = section.flag("beside_ike");
    let ike_forward = section.socket("ike_forward");
    let queues = section.count("queues");
    let buffer = section.count("buffer");
    let mark = section.whole("mark").map(|mark| mark as u32);
    let at = |matches: &dyn Fn(&SocketAddr) -> bool| listen.iter().flatten().any(matches);
    if at(&|listen| listen.port() == 0) {
        section.conflict("listen", "port 0 cannot be used", "4500 is the port of ESP in UDP (RFC 3948)");
    }
    if keepalive.is_some_and(|time| time > Duration::ZERO && time < KEEPALIVE_MIN) {
        section.conflict(
            "keepalive",
            format!("keepalives every {} would be a load on links and NATs", keepalive.unwrap_or_default()),
            "set 1 s or more (NATs keep a UDP mapping for 30 s and longer), or 0 for none",
        );
    }
    if beside_ike == Some(true) && ike_forward.is_some() {
        let help = "remove `ike_forward`: the IKE daemon that owns the port receives them";
        section.conflict("ike_forward", "the gateway receives no IKE messages with `beside_ike`", help);
    }
    Some(Udp {
        listen: listen?,
        by_default: !section.has("listen"),
        gso: gso?,
        gro: gro?,
        keepalive: keepalive.map(|time| (time > Duration::ZERO).then_some(time))?,
        beside_ike: beside_ike?,
        ike_forward,
        queues: queues?,
        buffer: buffer?,
        mark,
    })
}

fn raw(section: &Reader<'_>) -> Option<Raw> {
    let addresses = section.each_parsed::<IpAddr>("addresses", "expected an address: \"192.0.2.1\"");
    let protocols = section.each_parsed::<Word>("protocols", "expected \"esp\", \"ah\"");
    let buffer = section.count("buffer");
    let mark = section.whole("mark").map(|mark| mark as u32);
    let (addresses, protocols) = (addresses?, protocols?);
    check_distinct("addresses", &addresses, section);
    check_distinct("protocols", &protocols, section);
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    for any in all.into_iter().filter(|any| addresses.contains(any)) {
        let beside = |address: &&IpAddr| **address != any && address.is_ipv4() == any.is_ipv4();
        if let Some(beside) = addresses.iter().find(beside) {
            let help = "remove one: packets would be received twice";
            section.conflict("addresses", format!("{any} (all addresses) and {beside} overlap"), help);
        }
    }
    let protocols = protocols.into_iter().map(|Word(protocol)| protocol).collect();
    Some(Raw { addresses, protocols, buffer: buffer?, mark })
}

/// `esp` or `ah`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(Protocol);

impl std::str::FromStr for Word {
    type Err = ();

    fn from_str(text: &str) -> Result<Word, ()> {
        match text {
            "esp" => Ok(Word(Protocol::Esp)),
            "ah" => Ok(Word(Protocol::Ah)),
            _ => Err(()),
        }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0 == Protocol::Esp { "esp" } else { "ah" })
    }
}

fn xdp_ports(section: &Reader<'_>) -> Option<OutsideLink> {
    let (card, ports) = (xdp(section), udp_ports(section));
    Some(OutsideLink::Xdp { card: card?, ports: ports? })
}
