#!/usr/bin/env python3
"""A gateway that root starts drops its privileges and works without them: traffic, reloads with new routes, control
requests.

Runs in the laboratory, whose namespaces the kernel takes away:

    scripts/lab.sh FOREBAY run tests/gateway/privileges.py
"""

import ctypes
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from two_sites import ASK, FOREBAY, HOST_A, HOST_B, LAB, SERVE, gateway_of, inside, program, run

NET_ADMIN, DAC_OVERRIDE = 1 << 12, 1 << 1
USER = "nobody"
# Threads that open files.
FILES = ["forebay-numbers", "forebay-windows", "forebay-taps"]
SA = """
[[sa]]
name = "{name}"
direction = "{direction}"
spi = {spi}
key_file = "{name}.key"
proposal = "aes128gcm16"
encapsulation = "udp"
local = "192.0.2.1"
remote = "192.0.2.2"
local_ts = ["10.1.0.0/16"]
remote_ts = ["10.9.0.0/16"]
"""


def threads(pid):
    """The status of each thread: name to what it says."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as file:
            found.append(dict(re.findall(r"^(\w+):\t(.*)$", file.read(), re.M), tid=int(task)))
    return sorted(found, key=lambda status: status["tid"])


def may_lock():
    """Whether a process may lock memory without a limit."""
    with open("/proc/self/status", encoding="utf-8") as file:
        held = int(re.search(r"^CapEff:\t(\w+)$", file.read(), re.M)[1], 16)
    unlimited = resource.getrlimit(resource.RLIMIT_MEMLOCK) == (resource.RLIM_INFINITY,) * 2
    return unlimited or bool(held >> 24 & 1)  # CAP_SYS_RESOURCE


def check_threads(pid, first, uid):
    """The first thread has these capabilities, the caretaker of the host those of networks and files, those that open files root's
    right to any, all others none."""
    def sets(status):
        return [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")]

    # Giving up is the first thing that a thread does; one that was started just now may not have begun.
    for _ in range(50):
        seen = threads(pid)
        files = [first & DAC_OVERRIDE] * 2 + [0, 0, 0]
        host = [first & (NET_ADMIN | DAC_OVERRIDE)] * 2 + [0, 0, 0]
        of = lambda name: files if name in FILES else host if name == "forebay-host" else [0] * 5
        wanted = [[first, first, 0, 0, 0]] + [of(status["Name"]) for status in seen[1:]]
        if [sets(status) for status in seen] == wanted:
            break
        time.sleep(0.05)
    else:
        raise SystemExit(f"{[(status['Name'], sets(status)) for status in seen]}")
    for status in seen:
        assert status["NoNewPrivs"] == "1" and status["Uid"].split() == [str(uid)] * 4, status
        if uid:
            assert "0" not in status["Gid"].split() + status["Groups"].split(), status
    # Keys are in memory, which is locked where the process may have it so: not in every container.
    locked = int(seen[0]["VmLck"].split()[0])
    assert (locked > 10_000) == may_lock(), f"{locked} kB are kept out of swap"
    with open(f"/proc/{pid}/limits", encoding="utf-8") as file:
        assert re.search(r"Max core file size +0 +0", file.read()), "core files"
    # The process is not dumpable: root owns its files in /proc, whichever user it runs as.
    assert os.stat(f"/proc/{pid}/environ").st_uid != uid or uid == 0
    return [status["Name"] for status in seen]


def ask(socket_path, *words):
    return subprocess.run([FOREBAY, *words, "--socket", socket_path], capture_output=True, text=True)


def add(text):
    with open(f"{LAB}/a.toml", "a", encoding="utf-8") as file:
        file.write(text)


class Manager:
    """A gateway A under a service manager: this program, which is told what systemd would be."""

    def __init__(self, patience_s=1):
        self.path = f"{LAB}/notify"
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.heard.bind(self.path)
        os.chmod(self.path, 0o666)
        environment = {**os.environ, "NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(patience_s * 1_000_000)}
        command = f"WATCHDOG_PID=$$ exec {FOREBAY} gateway --config {LAB}/a.toml"
        words = inside("gw-a", "sh", "-c", command)
        self.log = open(f"{LAB}/a.log", "ab")
        self.process = subprocess.Popen(words, env=environment, stderr=self.log)

    def expect(self, word, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.heard], [], [], 0.2)[0]:
                text = self.heard.recv(4096).decode()
                if word in text.splitlines():
                    return text
            if self.process.poll() is not None:
                break
        raise SystemExit(f"no {word}:\n{open(f'{LAB}/a.log', encoding='utf-8').read()}")

    def drain(self):
        while select.select([self.heard], [], [], 0)[0]:
            self.heard.recv(4096)


def stop_thread(tid):
    """Stops one thread of a process as a debugger does, so that it hangs."""
    libc = ctypes.CDLL(None, use_errno=True)
    seize, interrupt = 0x4206, 0x4207
    for request in (seize, interrupt):
        if libc.ptrace(request, tid, None, None) != 0:
            return False
    return True


def main():
    servers = [subprocess.Popen(program(name, SERVE), stdout=subprocess.PIPE, text=True) for name in ("host-a", "host-b")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    run("host-a", ASK, HOST_B, 100, 1400)
    names = check_threads(gateway_of("b"), NET_ADMIN | DAC_OVERRIDE, 0)
    assert "forebay-host" in names, names
    print(f"privileges: root keeps CAP_NET_ADMIN in two of {len(names)} threads, CAP_DAC_OVERRIDE in those that open files")

    # As another user, where there is one: anybody's user namespaces have root only.
    os.kill(gateway_of("a"), signal.SIGTERM)
    time.sleep(0.5)
    with open("/proc/self/uid_map", encoding="utf-8") as file:
        users = int(file.read().split()[2])
    uid = 0
    if users > 65_534:
        uid = 65_534
        os.chmod(LAB, 0o711)
        os.mkdir(f"{LAB}/run")
        os.chown(f"{LAB}/run", uid, 65_534)
        shutil.rmtree(f"{LAB}/state-a")
        add(f'[privileges]\nuser = "{USER}"\n[metrics]\nlisten = "127.0.0.1:9464"\n[[processor]]\nkind = "core"\n'
            '[[processor]]\nkind = "core"\nname = "helper"\n')
        with open(f"{LAB}/a.toml", encoding="utf-8") as file:
            text = file.read()
        with open(f"{LAB}/a.toml", "w", encoding="utf-8") as file:
            file.write(text.replace(f"{LAB}/a.sock", f"{LAB}/run/a.sock"))
        # What it may not read as that user, it does not start with.
        refused = subprocess.run(inside("gw-a", FOREBAY, "gateway", "--config", f"{LAB}/a.toml"), capture_output=True, text=True, timeout=30)
        assert refused.returncode == 2 and USER in refused.stderr and "cannot read" in refused.stderr, refused.stderr
        for name in ("a.toml", "a-to-b.key", "b-to-a.key"):
            os.chown(f"{LAB}/{name}", 0, 65_534)
            os.chmod(f"{LAB}/{name}", 0o640)
    else:
        print("privileges: no other user in this user namespace: what becoming one does is SKIPPED")
    control = f"{LAB}/run/a.sock" if uid else f"{LAB}/a.sock"
    manager = Manager()
    manager.expect("READY=1")
    pid = gateway_of("a")
    names = check_threads(pid, NET_ADMIN if uid else NET_ADMIN | DAC_OVERRIDE, uid)
    run("host-a", ASK, HOST_B, 100, 1400)
    run("host-b", ASK, HOST_A, 100, 1400)
    assert ask(control, "status").returncode == 0
    if uid:
        assert os.stat(f"{LAB}/state-a").st_uid == uid, "state"
        fetch = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
        assert "forebay_" in subprocess.run(program("gw-a", fetch), check=True, capture_output=True, text=True).stdout
        check_threads(pid, NET_ADMIN, uid)
    print(f"privileges: as uid {uid} its {len(names)} threads have what they need: {', '.join(names)}")

    # A reload reads files, reserves IVs and adds routes.
    for name, octets in [("more-out", "5a"), ("more-in", "5b")]:
        with open(f"{LAB}/{name}.key", "w", encoding="utf-8") as file:
            file.write(octets * 20)
        os.chown(f"{LAB}/{name}.key", 0, 65_534 if uid else 0)
        os.chmod(f"{LAB}/{name}.key", 0o640)
    add(SA.format(name="more-out", direction="out", spi=0x1009) + SA.format(name="more-in", direction="in", spi=0x2009))
    manager.drain()
    os.kill(pid, signal.SIGHUP)
    assert re.search(r"^MONOTONIC_USEC=\d+$", manager.expect("RELOADING=1"), re.M)
    manager.expect("READY=1")
    routes = subprocess.run(["ip", "-n", "gw-a", "route", "show", "dev", "fb0"], check=True, capture_output=True, text=True).stdout
    assert "10.9.0.0/16" in routes, routes
    if uid:
        os.chmod(f"{LAB}/more-out.key", 0o600)
        refused = ask(control, "reload")
        assert refused.returncode == 2 and "more-out.key" in refused.stdout + refused.stderr, refused
        os.chmod(f"{LAB}/more-out.key", 0o640)
    run("host-a", ASK, HOST_B, 100)
    print("privileges: a reload read a new key and added a route; without the right to read the key it changed nothing")

    # The watchdog observes the worker thread, not the process.
    manager.drain()
    for _ in range(3):
        manager.expect("WATCHDOG=1", 2)
    loop = next(status["tid"] for status in threads(pid) if status["Name"] == "forebay-loop")
    if stop_thread(loop):
        time.sleep(1)
        manager.drain()
        time.sleep(2)
        assert not select.select([manager.heard], [], [], 0)[0], "a loop that hangs is said to be well"
        print("privileges: the watchdog is told of the loop, and of nothing when that hangs")
        # The end of a thread that is traced waits for its tracer: this program, whose end is that of all.
        os.kill(pid, signal.SIGKILL)
    else:
        print("privileges: the watchdog is told of the loop; that it hangs could not be tried: SKIPPED (ptrace)")
        os.kill(pid, signal.SIGTERM)
        manager.expect("STOPPING=1")
    for server in servers:
        server.kill()


if __name__ == "__main__":
    main()
