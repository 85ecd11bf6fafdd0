"""Pairs of network namespaces, a gateway in each, and what runs in them.

Everything is inside one `unshare`: the kernel takes it away when the benchmark ends, however it ends.
"""

import os
import shutil
import subprocess
import sys
import time

WORDS = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
OUTSIDE = {"a": "192.0.2.1", "b": "192.0.2.2"}
INSIDE = {"a": "10.9.1.1", "b": "10.9.2.1"}
SITES = {"a": "10.9.1.0/24", "b": "10.9.2.0/24"}
OTHER = {"a": "b", "b": "a"}
MTU_OUTSIDE, MTU_INSIDE = 1500, 1400
# Of this private view of /run only.
LAB = "/run/lab"


class Missing(Exception):
    """Something that this machine has not, with what to do about it."""


def enter():
    """Begins again inside namespaces of its own, unless that has been done."""
    if os.environ.get("FOREBAY_BENCH_INSIDE") == "1":
        prepare()
        return
    words = WORDS + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0 or not os.path.exists("/dev/net/tun"):
        raise Missing("namespaces or TUN: run it as root, or allow unprivileged user namespaces")
    os.environ["FOREBAY_BENCH_INSIDE"] = "1"
    os.execvp(words[0], [*words, sys.executable, *sys.argv])


def prepare():
    run("mount", "-t", "tmpfs", "none", "/run")
    os.makedirs("/run/netns")
    os.makedirs(LAB)
    os.umask(0o077)


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} (scripts/setup.sh bench)")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def wait_for(what, condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not after {seconds:.0f} s")
        time.sleep(0.05)


class Pair:
    """Two namespaces, NAME-a and NAME-b, with a veth between them."""

    def __init__(self, name):
        self.name = name
        self.processes = []
        for side in "ab":
            run("ip", "netns", "add", self.namespace(side))
            self.ip(side, "link", "set", "lo", "up")
            self.run(side, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        run("ip", "link", "add", "wan", "netns", self.namespace("a"), "type", "veth", "peer", "name", "wan",
            "netns", self.namespace("b"))
        for side in "ab":
            self.ip(side, "addr", "add", f"{OUTSIDE[side]}/24", "dev", "wan")
            self.ip(side, "link", "set", "wan", "up", "mtu", MTU_OUTSIDE)

    def namespace(self, side):
        return f"{self.name}-{side}"

    def ip(self, side, *words):
        return run("ip", "-n", self.namespace(side), *words)

    def words(self, side, *words):
        return ["ip", "netns", "exec", self.namespace(side), *map(str, words)]

    def run(self, side, *words, **more):
        return run(*self.words(side, *words), **more)

    def start(self, side, *words, log=None, **more):
        output = open(log, "w", encoding="utf-8") if log else subprocess.DEVNULL
        process = subprocess.Popen(self.words(side, *words), stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, **more)
        self.processes.append(process)
        return process

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
