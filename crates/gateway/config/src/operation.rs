//! `[guard]`, `[control]`, `[metrics]`, `[page]`, `[log]`, `[privileges]` and `[taps]`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use forebay_scenario::Table;
use forebay_time::Duration;

use ipnet::IpNet;

use super::links::check_distinct;
use super::reader::{Context, Reader, tables};
use super::schema::links::NAME_MAX;

/// The rules of the host that drop what passes beside the gateway: see [`guard`](forebay_guard).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Who makes them.
    pub mode: GuardMode,
    /// Interfaces by which protected networks may be reached, beside the gateway's own.
    pub interfaces: Vec<String>,
    /// Interfaces by which local networks are reached, whatever else is.
    pub local_interfaces: Vec<String>,
    /// Networks that are not guarded.
    pub except: Vec<IpNet>,
    /// Whether a clean stop deletes them.
    pub remove: bool,
}

/// How the rules of the guard are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardMode {
    /// The gateway makes them; it runs without rules where it cannot make them.
    Auto,
    /// The gateway makes them; it does not run without them.
    Nftables,
    /// The operator makes them from what the gateway prints.
    Print,
    /// No rules are made.
    Off,
}

impl GuardMode {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            GuardMode::Auto => "auto",
            GuardMode::Nftables => "nftables",
            GuardMode::Print => "print",
            GuardMode::Off => "off",
        }
    }

    /// Whether the gateway makes them.
    pub fn makes(self) -> bool {
        matches!(self, GuardMode::Auto | GuardMode::Nftables)
    }
}

/// The other gateway that shares addresses and SAs with this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// 0 or 1.
    pub number: u8,
    /// Whether it becomes active if both start.
    pub preferred: bool,
    /// Where gateway 0 is connected to.
    pub listen: Vec<SocketAddr>,
    /// Where gateway 1 connects to.
    pub peers: Vec<SocketAddr>,
    /// The file with the key that both have.
    pub key_file: PathBuf,
    /// The addresses that the active gateway has.
    pub addresses: Vec<SharedAddress>,
    /// Time between two heartbeats.
    pub heartbeat: Duration,
    /// Time without any after which the peer is dead.
    pub silence: Duration,
}

/// An address of an interface that the active gateway of a pair has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedAddress {
    /// The interface.
    pub interface: String,
    /// The address with its prefix length.
    pub address: IpNet,
}

/// The gateways that share SAs by a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The name of this one.
    pub name: String,
    /// URLs of the servers of etcd.
    pub endpoints: Vec<String>,
    /// Who signs their certificates.
    pub ca_file: Option<PathBuf>,
    /// The gateway's own certificate.
    pub certificate_file: Option<PathBuf>,
    /// The key of that.
    pub private_key_file: Option<PathBuf>,
    /// What all keys in the store begin with; ends with a slash.
    pub prefix: String,
    /// Into how many shares the SAs are divided.
    pub shares: u16,
    /// By what.
    pub share_by: ShareBy,
    /// Time without a sign of life after which others take over.
    pub lease: Duration,
    /// Time whose received packets are recorded ahead.
    pub ahead: Duration,
    /// Whether a gateway that etcd does not answer for the time of its lease serves nothing.
    pub stops_alone: bool,
    /// Addresses that move with shares.
    pub addresses: Vec<ClusterAddress>,
}

/// What decides to which share an SA belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareBy {
    /// The outer address of the gateway.
    Local,
    /// The outer address of the peer.
    Remote,
    /// The SPI.
    Spi,
}

impl ShareBy {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            ShareBy::Local => "local",
            ShareBy::Remote => "remote",
            ShareBy::Spi => "spi",
        }
    }
}

/// An address that moves with a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterAddress {
    /// The address and its interface.
    pub shared: SharedAddress,
    /// The outer address whose share it belongs to; often itself.
    pub of: IpAddr,
}

impl std::str::FromStr for ClusterAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<ClusterAddress, ()> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let shared: SharedAddress = words.get(..2).ok_or(())?.join(" ").parse()?;
        let of = match words[2..] {
            [] => shared.address.addr(),
            [of] => of.parse().map_err(|_| ())?,
            _ => return Err(()),
        };
        Ok(ClusterAddress { shared, of })
    }
}

impl std::str::FromStr for SharedAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<SharedAddress, ()> {
        let (interface, address) = text.trim().split_once(' ').ok_or(())?;
        let Name(interface) = interface.parse()?;
        Ok(SharedAddress { interface, address: address.trim().parse().map_err(|_| ())? })
    }
}

/// The socket by which the running gateway is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its path.
    pub socket: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// The group that it belongs to, by name; `None`: the process's.
    pub group: Option<String>,
}

/// Figures for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Where they are found.
    pub listen: SocketAddr,
    /// The file of the token that a client has to show, if there is one.
    pub token_file: Option<PathBuf>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// At an address.
    Tcp(SocketAddr),
    /// At a Unix socket, with permissions and group of the control socket.
    Unix(Control),
}

/// The live page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePage {
    /// Where it is found.
    pub listen: Listen,
    /// The file of the token that a client has to show, if there is one.
    pub token_file: Option<PathBuf>,
    /// Names by which browsers may ask for it, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Most that watch at a time.
    pub clients: usize,
    /// Whether it shows the networks of policies, which are addresses of inner packets.
    pub addresses: bool,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least.
    pub level: Level,
    /// Whether lines are JSON.
    pub json: bool,
    /// Whether there are audit records (RFC 4303, RFC 4302).
    pub audit: bool,
    /// Most audit records a second.
    pub audit_rate: u32,
    /// Most of them at once.
    pub audit_burst: u32,
}

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What happens.
    Info,
    /// How it happens.
    Debug,
    /// Every step of it.
    Trace,
}

impl Level {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        }
    }
}

/// What the process may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// The user that a process of root's becomes; `None`: it stays who it is.
    pub user: Option<String>,
    /// Whether the kernel may write its memory to a file when it crashes.
    pub core_dumps: bool,
    /// Whether its memory is kept out of swap.
    pub lock_memory: LockMemory,
}

/// Whether the memory of the process is kept out of swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockMemory {
    /// Where the process may.
    #[default]
    Auto,
    /// It does not run without.
    On,
    /// No.
    Off,
}

/// Captures of what passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taps {
    /// Where they are written.
    pub directory: PathBuf,
    /// Of packets on the inside.
    pub inside: bool,
    /// Of packets on the outside.
    pub outside: bool,
    /// Size in bytes from which on the next file is begun.
    pub file_size: u64,
    /// Files of each side.
    pub files: u32,
    /// Bytes kept of a packet.
    pub snap: u32,
}

/// The section called `name` if it is there.
fn there<'a>(name: &'static str, top: &'a Table, context: &'a Context<'a>) -> Option<Reader<'a>> {
    let (table, place) = tables(top, name, context).into_iter().next()?;
    Some(Reader::new(name, table, place, context).checked())
}

pub(super) fn guard(top: &Table, context: &Context<'_>) -> Option<Guard> {
    let none = Table::default();
    let section = there("guard", top, context)
        .unwrap_or_else(|| Reader::new("guard", &none, super::whole(), context).checked());
    let mode = section.word("mode").map(|word| match word {
        "nftables" => GuardMode::Nftables,
        "print" => GuardMode::Print,
        "off" => GuardMode::Off,
        _ => GuardMode::Auto,
    });
    let names = |key| match section.has(key) {
        true => {
            let names = section.each_parsed::<Name>(key, "expected names of interfaces")?;
            Some(names.into_iter().map(|Name(name)| name).collect())
        }
        false => Some(vec![]),
    };
    let (interfaces, local_interfaces) = (names("interfaces")?, names("local_interfaces")?);
    let except = section.each_parsed::<IpNet>("except", "expected prefixes: \"10.9.0.0/24\"");
    let except = except?.iter().map(IpNet::trunc).collect();
    Some(Guard { mode: mode?, interfaces, local_interfaces, except, remove: section.flag("remove")? })
}

/// Of an interface.
pub(super) struct Name(pub String);

impl std::str::FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Name, ()> {
        let is_name = |byte: u8| byte.is_ascii_graphic() && !b"\"/\\*".contains(&byte);
        let fits = (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_name);
        if fits { Ok(Name(text.to_owned())) } else { Err(()) }
    }
}

pub(super) fn pair(top: &Table, context: &Context<'_>) -> Option<Option<Pair>> {
    const ADDRESS: &str = "expected addresses with ports: \"10.9.0.1:7411\"";
    const SHARED: &str = "expected an interface and an address with its prefix length: \"wan 192.0.2.9/24\"";
    let Some(section) = there("pair", top, context) else { return Some(None) };
    let number = section.whole("number").map(|number| number as u8);
    let sockets = |name| match section.has(name) {
        true => section.each_parsed::<SocketAddr>(name, ADDRESS),
        false => Some(vec![]),
    };
    let (listen, peers) = (sockets("listen"), sockets("peers"));
    let key_file = section.path("key_file");
    let addresses = section.each_parsed::<SharedAddress>("addresses", SHARED);
    let (heartbeat, silence) = (section.time("heartbeat"), section.time("silence"));
    let preferred = section.flag("preferred");
    let (number, listen, peers) = (number?, listen?, peers?);
    let (needed, given) = if number == 0 { ("listen", &listen) } else { ("peers", &peers) };
    if given.is_empty() {
        let message = format!("gateway {number} of a pair without `{needed}`");
        section.conflict("number", message, "gateway 0 listens for gateway 1, which connects to its `peers`");
    }
    if given.iter().any(|address| address.ip().is_unspecified()) {
        section.advise(
            needed,
            "the peer link listens at all addresses",
            "listen at the addresses of the link between the two gateways only",
        );
    }
    let (heartbeat, silence) = (heartbeat?, silence?);
    if silence.0 < heartbeat.0.saturating_mul(3) {
        let help =
            "set `silence` to at least three times `heartbeat`: one that is late must not cause a take-over";
        section.conflict("silence", format!("{silence} of silence with heartbeats each {heartbeat}"), help);
    }
    Some(Some(Pair {
        number,
        preferred: preferred?,
        listen,
        peers,
        key_file: key_file?,
        addresses: addresses?,
        heartbeat,
        silence,
    }))
}

pub(super) fn cluster(top: &Table, context: &Context<'_>) -> Option<Option<Cluster>> {
    const URL: &str = "expected URLs with ports: \"https://10.9.0.11:2379\"";
    const ADDRESS: &str = "expected an interface and an address with its prefix length: \"wan 192.0.2.101/24\", and for an inside address the \
         outer one that it moves with: \"lan 10.1.0.101/16 192.0.2.101\"";
    let Some(section) = there("cluster", top, context) else { return Some(None) };
    let name = section.text("name");
    if name.as_ref().is_some_and(|name| name.contains(|letter: char| letter == '/' || letter.is_whitespace()))
    {
        section.conflict("name", "a name with `/` or spaces", "use letters, digits, `-`, `_` and `.`");
    }
    let endpoints = section.each_parsed::<Endpoint>("endpoints", URL);
    let path = |name| section.has(name).then(|| section.path(name));
    let (ca_file, certificate_file, private_key_file) =
        (path("ca_file"), path("certificate_file"), path("private_key_file"));
    let prefix = section.text("prefix");
    let shares = section.whole("shares").map(|shares| shares as u16);
    let share_by = section.word("share_by").map(|word| match word {
        "remote" => ShareBy::Remote,
        "spi" => ShareBy::Spi,
        _ => ShareBy::Local,
    });
    let lease = section.time("lease");
    let ahead = section.time("ahead");
    let stops_alone = section.word("alone").map(|word| word == "stop");
    let addresses = section.each_parsed::<ClusterAddress>("addresses", ADDRESS);
    let (endpoints, share_by, addresses) = (endpoints?, share_by?, addresses?);
    if endpoints.is_empty() {
        section.conflict("endpoints", "a cluster without a server", "name the client URLs of etcd");
    }
    if ca_file.is_none() && endpoints.iter().any(|one| one.secure) {
        let help = "set `ca_file` to the certificate of the authority that signs etcd's certificates";
        section.conflict("endpoints", "`https` without `ca_file`", help);
    }
    if let Some(open) = endpoints.iter().find(|one| !one.secure && !one.local) {
        section.advise(
            "endpoints",
            format!("records go to {} unprotected", open.url),
            "use `https` with `ca_file`, `certificate_file` and `private_key_file`: who can write to etcd can make SAs repeat numbers",
        );
    }
    if !endpoints.iter().any(|one| one.secure) {
        for key in
            ["ca_file", "certificate_file", "private_key_file"].into_iter().filter(|key| section.has(key))
        {
            let help = format!("remove `{key}`, or name `https` endpoints");
            section.conflict(key, format!("`{key}` has no effect without `https`"), help);
        }
    }
    if certificate_file.is_some() != private_key_file.is_some() {
        let help = "set both `certificate_file` and `private_key_file`, or neither";
        section.conflict(
            "certificate_file",
            "a certificate without its private key, or the other way round",
            help,
        );
    }
    let mut prefix = prefix?;
    if !prefix.ends_with('/') {
        prefix.push('/');
    }
    let given = |path: Option<Option<PathBuf>>| path.map_or(Some(None), |path| path.map(Some));
    Some(Some(Cluster {
        name: name?,
        endpoints: endpoints.into_iter().map(|one| one.url).collect(),
        ca_file: given(ca_file)?,
        certificate_file: given(certificate_file)?,
        private_key_file: given(private_key_file)?,
        prefix,
        shares: shares?,
        share_by,
        lease: lease?,
        ahead: ahead?,
        stops_alone: stops_alone?,
        addresses,
    }))
}

/// The URL of an etcd server.
struct Endpoint {
    url: String,
    secure: bool,
    local: bool,
}

impl std::str::FromStr for Endpoint {
    type Err = ();

    fn from_str(text: &str) -> Result<Endpoint, ()> {
        let text = text.trim().trim_end_matches('/');
        let (secure, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://").ok_or(())?),
        };
        let (host, port) = rest.rsplit_once(':').ok_or(())?;
        let is_host = !host.is_empty() && !host.contains(|letter: char| "/@?# ".contains(letter));
        if !is_host || port.parse::<u16>().is_err() {
            return Err(());
        }
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        Ok(Endpoint { url: text.to_owned(), secure, local })
    }
}

pub(super) fn control(top: &Table, context: &Context<'_>) -> Option<Control> {
    let none = Table::default();
    let section = there("control", top, context)
        .unwrap_or_else(|| Reader::new("control", &none, super::whole(), context).checked());
    let socket = section.path("socket");
    let mode = section.text("mode").and_then(|text| {
        let digits = text.strip_prefix("0o").unwrap_or(&text);
        let mode = u32::from_str_radix(digits, 8).ok().filter(|&mode| mode <= 0o777);
        if mode.is_none() {
            section.bad("mode", &text, "expected permissions in octal: \"0660\"", section.place_of("mode"));
        }
        mode
    });
    let group = section.text("group");
    if mode.is_some_and(|mode| mode & 0o002 != 0) {
        let help = "every user can reload and read statistics: set a `group`, and `mode = \"0660\"`";
        section.advise("mode", "the control socket is open to all users", help);
    }
    if group.is_some() && mode.is_some_and(|mode| mode & 0o070 == 0) {
        let help = "set mode = \"0660\" for a group that may reload the gateway, or remove `group`";
        section.advise("group", "`group` has no effect: `mode` gives a group no permission", help);
    }
    socket.iter().for_each(|path| check_socket("socket", path, &section));
    Some(Control { socket: socket?, mode: mode?, group })
}

/// sockaddr_un takes 108 bytes with the end of the string.
fn check_socket(key: &str, path: &Path, section: &Reader<'_>) {
    if path.as_os_str().len() > 107 {
        section.conflict(key, "the path of the socket is longer than 107 bytes", "choose a shorter path");
    }
}

pub(super) fn metrics(top: &Table, context: &Context<'_>) -> Option<Option<Metrics>> {
    let Some(section) = there("metrics", top, context) else { return Some(None) };
    let listen = section.socket("listen")?;
    let token_file = section.has("token_file").then(|| section.path("token_file"));
    if !listen.ip().is_loopback() && token_file.is_none() {
        section.advise(
            "listen",
            format!("every host that can reach {listen} can read the metrics"),
            "listen on 127.0.0.1, set `token_file`, or restrict access by a firewall: metrics show names of SAs, peers' addresses and rates",
        );
    }
    let token_file = match token_file {
        Some(path) => Some(path?),
        None => None,
    };
    Some(Some(Metrics { listen, token_file }))
}

/// `control` has the permissions of a Unix socket.
pub(super) fn page(
    top: &Table,
    control: Option<&Control>,
    context: &Context<'_>,
) -> Option<Option<LivePage>> {
    let Some(section) = there("page", top, context) else { return Some(None) };
    let listen = if section.text("listen")?.contains('/') {
        let socket = section.path("listen")?;
        check_socket("listen", &socket, &section);
        let control = control?;
        if socket == control.socket {
            let help = "give the page a path of its own, such as \"/run/forebay/page.sock\"";
            section.conflict("listen", "`listen` is the control socket", help);
        }
        Listen::Unix(Control { socket, ..control.clone() })
    } else {
        Listen::Tcp(section.parsed("listen", WHERE)?)
    };
    let token_file = match section.has("token_file").then(|| section.path("token_file")) {
        Some(path) => Some(path?),
        None => None,
    };
    if let (Listen::Tcp(address), None) = (&listen, &token_file)
        && !address.ip().is_loopback()
    {
        section.conflict(
            "listen",
            format!("every host that can reach {address} could read the live page"),
            "listen on 127.0.0.1 or at a Unix socket, which `ssh -L` reaches, or set `token_file`",
        );
    }
    let hosts = section.each_parsed::<HostName>("hosts", "expected a name without port: \"gw-a.example\"");
    let hosts = hosts.map(|hosts| hosts.into_iter().map(|HostName(host)| host).collect());
    let (clients, addresses) = (section.count("clients"), section.flag("addresses"));
    Some(Some(LivePage { listen, token_file, hosts: hosts?, clients: clients?, addresses: addresses? }))
}

/// A name of a host.
struct HostName(String);

impl std::str::FromStr for HostName {
    type Err = ();

    fn from_str(text: &str) -> Result<HostName, ()> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        let is_name = !text.is_empty() && text.chars().all(is_part);
        is_name.then(|| HostName(text.to_owned())).ok_or(())
    }
}

const WHERE: &str = "expected an address with a port, or the path of a Unix socket: \"127.0.0.1:9465\", \"/run/forebay/page.sock\"";

pub(super) fn log(top: &Table, context: &Context<'_>) -> Option<Log> {
    let none = Table::default();
    let section = there("log", top, context)
        .unwrap_or_else(|| Reader::new("log", &none, super::whole(), context).checked());
    let level = section.word("level").map(|word| match word {
        "error" => Level::Error,
        "warn" => Level::Warn,
        "debug" => Level::Debug,
        "trace" => Level::Trace,
        _ => Level::Info,
    });
    let format = section.word("format");
    let audit = section.flag("audit");
    let (rate, burst) = (section.whole("audit_rate"), section.whole("audit_burst"));
    Some(Log {
        level: level?,
        json: format? == "json",
        audit: audit?,
        audit_rate: rate? as u32,
        audit_burst: burst? as u32,
    })
}

pub(super) fn privileges(top: &Table, context: &Context<'_>) -> Option<Privileges> {
    let none = Table::default();
    let section = there("privileges", top, context)
        .unwrap_or_else(|| Reader::new("privileges", &none, super::whole(), context).checked());
    let (user, core_dumps) = (section.text("user"), section.flag("core_dumps"));
    let lock_memory = section.word("lock_memory").map(|word| match word {
        "on" => LockMemory::On,
        "off" => LockMemory::Off,
        _ => LockMemory::Auto,
    });
    Some(Privileges { user, core_dumps: core_dumps?, lock_memory: lock_memory? })
}

pub(super) fn taps(top: &Table, context: &Context<'_>) -> Option<Option<Taps>> {
    let Some(section) = there("taps", top, context) else { return Some(None) };
    let directory = section.path("directory");
    let sides = section.each_parsed::<Side>("sides", "expected \"inside\", \"outside\"");
    let file_size = section.whole("file_size");
    let (files, snap) = (section.whole("files"), section.whole("snap"));
    let sides = sides?;
    check_distinct("sides", &sides, &section);
    Some(Some(Taps {
        directory: directory?,
        inside: sides.contains(&Side::Inside),
        outside: sides.contains(&Side::Outside),
        file_size: file_size?,
        files: files? as u32,
        snap: snap? as u32,
    }))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Inside,
    Outside,
}

impl std::str::FromStr for Side {
    type Err = ();

    fn from_str(text: &str) -> Result<Side, ()> {
        match text {
            "inside" => Ok(Side::Inside),
            "outside" => Ok(Side::Outside),
            _ => Err(()),
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Side::Inside { "inside" } else { "outside" })
    }
}
