//! Network namespaces for tests: they live as long as the value.
#![allow(dead_code)] // each test file uses its part

use std::fs::{File, read_link};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A namespace, held by a process that does nothing and ends by itself after some minutes.
pub struct Namespace(Child);

impl Namespace {
    /// `None`, with a message, where that is not allowed or there is no TUN.
    pub fn new() -> Option<Namespace> {
        let skip = |why: &str| {
            eprintln!("skipped: {why}");
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("network namespaces need root");
        }
        if File::open("/dev/net/tun").is_err() {
            return skip("there is no /dev/net/tun");
        }
        let holder = Command::new("unshare").args(["--net", "sleep", "300"]).stdin(Stdio::null()).spawn();
        let Ok(holder) = holder else { return skip("there is no unshare(1)") };
        let namespace = Namespace(holder);
        let ours = read_link("/proc/self/ns/net").ok();
        for _ in 0..500 {
            if read_link(namespace.path()).is_ok_and(|its| Some(its) != ours) {
                namespace.ip("link set lo up");
                return Some(namespace);
            }
            thread::sleep(Duration::from_millis(2));
        }
        skip("unshare(1) makes no namespace here")
    }

    /// The file that stands for it.
    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    /// Runs `work` on a thread inside.
    pub fn spawn<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = File::open(self.path()).unwrap();
        thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Runs `work` inside and waits for it.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.spawn(work).join().unwrap()
    }

    /// Runs a program inside; what it writes, and whether it succeeded.
    pub fn command(&self, line: &str) -> (bool, String) {
        let line = line.to_owned();
        self.run(move || {
            let mut words = line.split_whitespace();
            let output = Command::new(words.next().unwrap()).args(words).output();
            let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&text).into_owned())
        })
    }

    /// Waits until the kernel has seen that a link is up, and uses its IPv6 addresses.
    pub fn settle(&self, device: &str) {
        for _ in 0..400 {
            let (_, link) = self.command(&format!("ip link show {device}"));
            let (_, tentative) = self.command("ip -6 address show tentative");
            // A TUN device has no state to show.
            if link.contains("LOWER_UP") && !link.contains("state DOWN") && tentative.is_empty() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("{device} does not come up");
    }

    /// Runs `ip` inside, which must succeed.
    pub fn ip(&self, line: &str) {
        let (well, text) = self.command(&format!("ip {line}"));
        assert!(well, "ip {line}: {text}");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two namespaces with a cable between them: `10.8.0.1` and `10.8.0.2`, `fd08::1` and `fd08::2`.
pub fn cable(mtu: u32) -> Option<[Namespace; 2]> {
    let ends = [Namespace::new()?, Namespace::new()?];
    let pid = ends[1].path().split('/').nth(2).unwrap().to_owned();
    ends[0].ip(&format!("link add cable mtu {mtu} type veth peer name cable mtu {mtu} netns {pid}"));
    for (end, (host, other)) in ends.iter().zip([(1, 2), (2, 1)]) {
        end.ip(&format!("link set cable address 02:00:00:00:00:0{host}"));
        end.ip(&format!("address add 10.8.0.{host}/24 dev cable"));
        end.ip(&format!("address add fd08::{host}/64 dev cable nodad"));
        end.ip("link set cable up");
        // Known, so that the first packets need not wait for an answer, of which there is little room.
        for address in ["10.8.0.", "fd08::"] {
            let link = format!("lladdr 02:00:00:00:00:0{other} dev cable nud permanent");
            end.ip(&format!("neighbour replace {address}{other} {link}"));
        }
    }
    for end in &ends {
        end.settle("cable");
    }
    Some(ends)
}
