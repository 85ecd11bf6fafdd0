//! The namespaces, the veths between them, and the forwarder in the middle.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_links::features::{Features, RX_GRO, RX_UDP_GRO_FORWARDING, TX_UDP_SEGMENTATION};
use miette::{Context as _, IntoDiagnostic as _, miette};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

use super::{Forwarder, Plan, file, wait_for};
use crate::Error;
use crate::esp;

/// Ethernet addresses of the gateway's interfaces.
const LAN: &str = "02:00:00:00:02:01";
const WAN: &str = "02:00:00:00:02:02";
/// The one that packets are sent to behind the gateway. No interface has it, so the receiving kernel drops them at once.
pub(super) const SINK: &str = "02:00:00:00:02:ff";

/// The namespaces.
pub(super) const NEAR: &str = "near";
pub(super) const FAR: &str = "far";
const GATEWAY: &str = "gateway";
/// The interface of both hosts.
pub(super) const INTERFACE: &str = "eth0";

/// What a host is not to leave to its interface: to a veth it would send batches, and packets without checksums. A veth joins nothing that comes
/// from one that segments TCP.
const OF_HOSTS: [&str; 6] = [
    TX_UDP_SEGMENTATION,
    "tx-checksum-ip-generic",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
];

/// Files of this process's own view of /run.
const DIRECTORY: &str = "/run/bench";
/// How long a forwarder may take to start, and to end.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Makes places for files and names of namespaces.
///
/// # Errors
/// If a tool is missing, or /run is not this process's own.
pub(super) fn prepare() -> Result<(), Error> {
    for (tool, package) in [("ip", "iproute2"), ("setpriv", "util-linux")] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(miette!(
                help = format!("install {package}"),
                "cannot run {tool}: it is not installed"
            )
            .into());
        }
    }
    run(Command::new("mount").args(["-t", "tmpfs", "-o", "mode=0700", "none", "/run"]))?;
    fs::create_dir_all("/run/netns").into_diagnostic()?;
    Ok(())
}

/// A forwarder between two hosts. All of it goes when this does.
pub(super) struct Bed {
    child: Option<Child>,
    log: PathBuf,
    /// What seals for the gateway: its sequence numbers go on from one measurement to the next.
    pub sealer: Option<esp::Path>,
    /// Counts of the interfaces of `near` and `far`.
    counts: [File; 2],
}

impl Bed {
    /// Makes the namespaces and starts the forwarder.
    pub fn make(
        plan: &Plan,
        forwarder: &Forwarder,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Bed, Error> {
        // What one that was not ended by itself has left.
        remove();
        let directory = Path::new(DIRECTORY);
        let _ = fs::remove_dir_all(directory);
        fs::create_dir(directory).into_diagnostic()?;
        let by_dpdk = match forwarder {
            Forwarder::Gateway(_, kinds) | Forwarder::Relay(kinds) => {
                [kinds.inside, kinds.outside].map(|kind| kind == super::Kind::Dpdk)
            }
            Forwarder::Kernel => [false; 2],
        };
        cables(by_dpdk)?;
        offloads(matches!(forwarder, Forwarder::Kernel), plan.settings.cpus[0])?;
        let counts = || enter(NEAR, open_counts).and_then(|near| Ok([near, enter(FAR, open_counts)?]));
        let mut bed = Bed { child: None, log: directory.join("log"), sealer: None, counts: counts()? };
        let (command, kinds) = match forwarder {
            Forwarder::Kernel => return Ok(bed),
            Forwarder::Gateway(_, kinds) => (&["gateway"][..], *kinds),
            Forwarder::Relay(kinds) => (&["bench", "relay"][..], *kinds),
        };
        let suite = match forwarder {
            Forwarder::Gateway(suite, _) => *suite,
            // What a relay carries is not sealed.
            _ => "aes128gcm16".parse()?,
        };
        let config = directory.join("gateway.toml");
        write_private(&config, &file::text(kinds, suite, &plan.settings.keys))?;
        let socket = directory.join("ready");
        let ready = UnixDatagram::bind(&socket).into_diagnostic()?;
        ready.set_nonblocking(true).into_diagnostic()?;
        let log = File::create(&bed.log).into_diagnostic()?;
        let mut start = Command::new("ip");
        start.args(["netns", "exec", GATEWAY, "setpriv", "--pdeathsig", "KILL", "--"]);
        start.arg(&plan.settings.program).args(command).arg("--config").arg(&config);
        start.env("NOTIFY_SOCKET", &socket).env("FOREBAY_STATE", directory.join("saved"));
        start.stdin(Stdio::null()).stdout(log.try_clone().into_diagnostic()?).stderr(log);
        let child = bed.child.insert(start.spawn().into_diagnostic().wrap_err("cannot run ip")?);
        let mut cpus = CpuSet::new();
        plan.gateway_cpus().iter().for_each(|&cpu| cpus.set(cpu));
        sched_setaffinity(Some(pid(child)), &cpus)
            .into_diagnostic()
            .wrap_err("cannot set the gateway's CPUs")?;
        let came = wait_for(STARTS_WITHIN, watch, || {
            bed.look()?;
            let mut message = [0; 256];
            let text =
                ready.recv(&mut message).map(|len| String::from_utf8_lossy(&message[..len]).into_owned());
            Ok(text.is_ok_and(|text| text.lines().any(|line| line == "READY=1")))
        })?;
        if !came {
            return Err(miette!("it did not start within {} s", STARTS_WITHIN.as_secs()).into());
        }
        Ok(bed)
    }

    /// Whether the forwarder runs, if it is a process; if it has ended, the error is what it said last.
    pub fn look(&mut self) -> Result<(), Error> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let Some(status) = child.try_wait().into_diagnostic()? else { return Ok(()) };
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        Err(miette!("{}", last_words(&text).unwrap_or_else(|| format!("it ended: {status}"))).into())
    }

    /// CPU time of all threads of the forwarder, in seconds; nothing if it is no process, or the kernel does not count it.
    pub fn cpu_s(&self) -> Option<f64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.as_ref()?.id())).ok()?;
        let ns = |task: fs::DirEntry| -> Option<u64> {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        };
        let all: Option<Vec<u64>> = tasks.flatten().map(ns).collect();
        Some(all?.iter().sum::<u64>() as f64 * 1e-9)
    }

    /// Frames and bytes that have come to a host. Packets of a batch that is one for the kernel are one frame with one header.
    pub fn arrived(&mut self, is_near: bool) -> Result<(u64, u64), Error> {
        let mut text = String::new();
        let file = &mut self.counts[usize::from(!is_near)];
        file.rewind().and_then(|()| file.read_to_string(&mut text)).into_diagnostic()?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("eth0:"));
        let mut fields = line.unwrap_or("").split_whitespace().map(str::parse);
        match (fields.next(), fields.next()) {
            (Some(Ok(bytes)), Some(Ok(frames))) => Ok((frames, bytes)),
            _ => Err(miette!("/proc/net/dev has no counts of {INTERFACE}").into()),
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = kill_process(pid(child), Signal::TERM);
            let mut go_on = || ControlFlow::Continue(());
            let ended =
                wait_for(ENDS_WITHIN, &mut go_on, || Ok(child.try_wait().is_ok_and(|end| end.is_some())));
            if !matches!(ended, Ok(true)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        remove();
    }
}

/// Runs `work` on a thread in a namespace.
pub(super) fn enter<T: Send>(
    namespace: &str,
    work: impl FnOnce() -> miette::Result<T> + Send,
) -> miette::Result<T> {
    let inside = || {
        move_into(namespace)?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(inside).join().unwrap_or_else(|_| Err(miette!("a thread failed"))))
}

/// Moves the calling thread into a namespace.
pub(super) fn move_into(namespace: &str) -> miette::Result<()> {
    let file = File::open(format!("/run/netns/{namespace}")).into_diagnostic()?;
    let moved = move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
    moved.into_diagnostic().wrap_err_with(|| format!("cannot enter the network namespace {namespace}"))
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn open_counts() -> miette::Result<File> {
    // Of the thread's namespace, whoever reads it later.
    File::open("/proc/thread-self/net/dev").into_diagnostic()
}

fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    Ok(forebay_links::output::Output::create_with_mode(path, 0o600)
        .and_then(|mut output| {
            std::io::Write::write_all(&mut output, text.as_bytes())?;
            output.finish()
        })
        .into_diagnostic()?)
}

fn run(command: &mut Command) -> miette::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().into_diagnostic();
    let output = output.wrap_err_with(|| format!("cannot run {name}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(miette!("{name} {}: {}", words.join(" "), said.trim()))
}

fn ip(line: &str) -> miette::Result<()> {
    run(Command::new("ip").args(line.split_whitespace()))
}

fn remove() {
    for namespace in [NEAR, GATEWAY, FAR] {
        let _ = ip(&format!("netns delete {namespace}"));
    }
}

/// Namespaces, interfaces, addresses, routes, and neighbours that need not be asked for. Links by DPDK have the gateway's addresses
/// themselves, `inside` and outside.
fn cables(by_dpdk: [bool; 2]) -> miette::Result<()> {
    for namespace in [NEAR, GATEWAY, FAR] {
        ip(&format!("netns add {namespace}"))?;
        enter(namespace, || {
            // A kernel without IPv6 has no such file.
            let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
            fs::write("/proc/sys/net/ipv4/ip_forward", if namespace == GATEWAY { "1" } else { "0" })
                .into_diagnostic()
        })?;
        ip(&format!("-n {namespace} link set lo up"))?;
    }
    for (host, address, interface, gateway, mac, is_by_dpdk) in [
        (NEAR, "10.2.0.10/16", "lan", "10.2.0.1", LAN, by_dpdk[0]),
        (FAR, "192.0.2.1/24", "wan", "192.0.2.2", WAN, by_dpdk[1]),
    ] {
        ip(&format!(
            "link add {interface} address {mac} netns {GATEWAY} type veth peer name {INTERFACE} netns {host}"
        ))?;
        let (sink, length) = address.split_once('/').unwrap_or((address, "24"));
        ip(&format!("-n {host} address add {address} dev {INTERFACE}"))?;
        ip(&format!("-n {host} link set {INTERFACE} up"))?;
        ip(&format!("-n {host} neighbour replace {gateway} lladdr {mac} dev {INTERFACE} nud permanent"))?;
        ip(&format!("-n {GATEWAY} link set {interface} up"))?;
        if is_by_dpdk {
            continue;
        }
        ip(&format!("-n {GATEWAY} address add {gateway}/{length} dev {interface}"))?;
        ip(&format!("-n {GATEWAY} neighbour replace {sink} lladdr {SINK} dev {interface} nud permanent"))?;
    }
    ip(&format!("-n {FAR} address add {} dev lo", super::packets::FAR))?;
    ip(&format!("-n {NEAR} route add 10.1.0.0/16 via 10.2.0.1"))?;
    ip(&format!("-n {FAR} route add 10.2.0.0/16 via 192.0.2.2"))
}

/// Gives the gateway's interfaces what a NIC has: what arrives shortly one after the other is handed on together, and packets of one TCP flow
/// among it are joined (GRO); UDP only where that is switched on, as a gateway does by itself. Hosts send packet by packet.
fn offloads(is_kernel: bool, generator: usize) -> miette::Result<()> {
    enter(GATEWAY, || {
        let mut features = Features::open().into_diagnostic()?;
        for interface in ["lan", "wan"] {
            for (name, is_on) in
                [(RX_GRO, true), (RX_UDP_GRO_FORWARDING, is_kernel), (TX_UDP_SEGMENTATION, is_kernel)]
            {
                // What this kernel does not have is not missed by the other forwarders either.
                let _ = features.switch(interface, name, is_on);
            }
        }
        if is_kernel { ip(&format!("-n {GATEWAY} route add 10.1.0.0/16 via 192.0.2.1")) } else { Ok(()) }
    })?;
    receive_in_threads(generator)?;
    for host in [NEAR, FAR] {
        enter(host, || {
            let mut features = Features::open().into_diagnostic()?;
            for name in OF_HOSTS {
                let _ = features.switch(INTERFACE, name, false);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Has the gateway's interfaces receive in threads of the kernel, on the generator's CPU, which they get whenever a burst has been sent. By itself
/// a veth receives each packet while it is sent, and never two together.
fn receive_in_threads(generator: usize) -> miette::Result<()> {
    let threads = || -> Vec<i32> {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_one = |pid: &i32| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.starts_with("napi/lan-") || name.starts_with("napi/wan-")
        };
        pids.filter(is_one).collect()
    };
    let before = threads();
    for interface in ["lan", "wan"] {
        // Of this namespace, as ip(8) mounts it. Before Linux 5.12 there are no such threads.
        let write = format!("echo 1 > /sys/class/net/{interface}/threaded");
        let _ = run(Command::new("ip").args(["netns", "exec", GATEWAY, "sh", "-c", &write]));
    }
    let mut cpu = CpuSet::new();
    cpu.set(generator);
    for thread in threads().into_iter().filter(|thread| !before.contains(thread)).filter_map(Pid::from_raw) {
        // Only root of the whole machine may.
        let _ = sched_setaffinity(Some(thread), &cpu);
    }
    Ok(())
}

/// The error that a program has printed last: its lines behind the mark of its first one, up to the next mark.
fn last_words(log: &str) -> Option<String> {
    let text = log.rsplit_once("× ").map_or(log, |(_, text)| text);
    let lines =
        text.lines().map(|line| line.trim_matches(|c: char| c.is_whitespace() || "│├╰─▶".contains(c)));
    // What is shown of a file is of one that has gone.
    let is_message = |line: &&str| !line.starts_with("help:") && !line.starts_with("╭");
    let said: Vec<&str> = lines.take_while(is_message).filter(|line| !line.is_empty()).collect();
    match log.contains("× ") {
        true => Some(said.join(" ")),
        false => said.last().map(|line| (*line).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_error_of_a_program_is_its_last_words() {
        let log = "INFO gateway started\n  × dpdk-1: this program has\n  │ no DPDK\n  ╰─▶ it was built without\n  help: build it\n";
        assert_eq!(last_words(log).unwrap(), "dpdk-1: this program has no DPDK it was built without");
        let log = "  × unknown key `a`\n    ╭─[/run/bench/gateway.toml:15:1]\n 15 │ a = *\n    ╰────\n  help: none\n";
        assert_eq!(last_words(log).unwrap(), "unknown key `a`");
        assert_eq!(last_words("one\nsetpriv: no such file\n").unwrap(), "setpriv: no such file");
        assert_eq!(last_words(""), None);
    }
}
