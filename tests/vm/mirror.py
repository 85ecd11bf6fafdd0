#!/usr/bin/env python3
"""The mirror of the kernel's SAs and policies against a kernel that has them.

`follow` (crates/dataplane/xfrm/examples) runs in a virtual machine beside `ip xfrm` and prints its events. What is
installed, changed, expired and flushed must come out as events, in order; what it says to the kernel must arrive
(`ip xfrm state`, `ip xfrm monitor`); what an overrun swallows must come out as the difference.

    mirror.py FOLLOW [--record FILE]     FOLLOW: the example as a program; FILE: the kernel's messages
"""

import argparse
import re
import time
from pathlib import Path

from vm import Vm, VmError, enter

MARK = "mark 0x4642 mask 0xffffffff"
GCM = "aead 'rfc4106(gcm(aes))' 0x{:040x} 128"
#          ip xfrm's words                                                            the suite
ALGORITHMS = [
    ("aead 'rfc4106(gcm(aes))' 0x" + "1a" * 20 + " 128", "aes128gcm16"),
    ("aead 'rfc4106(gcm(aes))' 0x" + "1a" * 28 + " 96", "aes192gcm12"),
    ("aead 'rfc4106(gcm(aes))' 0x" + "1a" * 36 + " 64", "aes256gcm8"),
    ("aead 'rfc4309(ccm(aes))' 0x" + "1a" * 19 + " 128", "aes128ccm16"),
    ("aead 'rfc4543(gcm(aes))' 0x" + "1a" * 20 + " 128", "aes128gmac"),
    ("aead 'rfc7539esp(chacha20,poly1305)' 0x" + "1a" * 36 + " 128", "chacha20poly1305"),
    ("enc 'cbc(aes)' 0x" + "1a" * 16 + " auth-trunc 'hmac(sha256)' 0x" + "2b" * 32 + " 128", "aes128-sha256"),
    ("enc 'cbc(aes)' 0x" + "1a" * 32 + " auth-trunc 'hmac(sha384)' 0x" + "2b" * 48 + " 192", "aes256-sha384"),
    ("enc 'cbc(aes)' 0x" + "1a" * 24 + " auth-trunc 'hmac(sha512)' 0x" + "2b" * 64 + " 256", "aes192-sha512"),
    ("enc 'cbc(aes)' 0x" + "1a" * 16 + " auth 'hmac(sha1)' 0x" + "2b" * 20, "aes128-sha1"),
    ("enc 'rfc3686(ctr(aes))' 0x" + "1a" * 20 + " auth-trunc 'xcbc(aes)' 0x" + "2b" * 16 + " 96", "aes128ctr-aesxcbc"),
    ("enc 'cbc(des3_ede)' 0x" + "1a" * 8 + "2c" * 8 + "3d" * 8 + " auth-trunc 'cmac(aes)' 0x" + "2b" * 16 + " 96", "3des-aescmac"),
    ("enc 'ecb(cipher_null)' '' auth-trunc 'hmac(sha256)' 0x" + "2b" * 32 + " 128", "null-sha256"),
]
REFUSED = [
    ("enc 'cbc(aes)' 0x" + "1a" * 16 + " auth 'hmac(sha256)' 0x" + "2b" * 32, "unsupported algorithm"),
    ("enc 'cbc(aes)' 0x" + "1a" * 16 + " auth 'hmac(md5)' 0x" + "2b" * 16, "weak"),
    ("enc 'cbc(camellia)' 0x" + "1a" * 16 + " auth 'hmac(sha1)' 0x" + "2b" * 20, "unsupported algorithm"),
    (GCM.format(0), "hides its keys"),
]


class Follow:
    """`follow` in the machine."""

    def __init__(self, vm, options="--mark 0x4642", name="follow"):
        self.vm, self.at, self.name = vm, 0, name
        vm.sh(f"mkfifo /tmp/{name}.in; setsid sh -c '/tmp/follow {options} </tmp/{name}.in >/tmp/{name}.out 2>&1 & "
              f"exec sleep 600 >/tmp/{name}.in 2>/dev/null' >/dev/null 2>&1 &")

    def lines(self):
        return self.vm.sh(f"cat /tmp/{self.name}.out").splitlines()

    def expect(self, *patterns, seconds=10):
        """Waits for these lines, in this order; other lines may stand between."""
        deadline = time.monotonic() + seconds
        for pattern in patterns:
            while True:
                lines = self.lines()
                found = next((i for i in range(self.at, len(lines)) if re.search(pattern, lines[i])), None)
                if found is not None:
                    self.at = found + 1
                    break
                if time.monotonic() > deadline:
                    raise VmError(f"no '{pattern}' in\n" + "\n".join(lines[self.at:]))
                time.sleep(0.1)
        return lines[self.at - 1]

    def say(self, line):
        self.vm.sh(f"echo '{line}' >/tmp/{self.name}.in")


def sa(verb, spi, words, source="192.0.2.2", destination="192.0.2.1", extra="mode tunnel replay-window 64 flag esn", proto="esp", mark=MARK):
    # Each SA has a cipher key of its own: one that is shared is refused.
    words = words.replace("0x1a1a1a1a", f"0x{spi:08x}", 1)
    return f"ip xfrm state {verb} src {source} dst {destination} proto {proto} spi {spi:#x} {extra} {mark} {words}"


def checks(vm):
    vm.sh("modprobe -a esp4 esp6 ah4 ah6 xfrm_user; ip addr add 192.0.2.1/24 dev lo; ip -6 addr add 2001:db8::1/64 dev lo nodad")
    good = ALGORITHMS[0][0]
    # What is there before it starts.
    vm.sh(sa("add", 0x1000, good, extra="mode tunnel reqid 7 replay-window 32"))
    vm.sh(sa("add", 0x1001, good, mark=""))  # of another application
    follow = Follow(vm)
    follow.expect(r"sa added esp 0x00001000 .* Open aes128gcm16 Tunnel 192.0.2.1 -> 192.0.2.2 reqid 7 window 32", "synchronised")

    for number, (words, suite) in enumerate(ALGORITHMS):
        vm.sh(sa("add", 0x2000 + number, words))
        follow.expect(rf"sa added esp {0x2000 + number:#010x} .* Open {suite} .* window 64 esn")
    for number, (words, reason) in enumerate(REFUSED):
        vm.sh(sa("add", 0x3000 + number, words))
        follow.expect(rf"sa refused esp {0x3000 + number:#010x} .*{reason}")
    print("mirror: algorithms ok")

    vm.sh(sa("add", 0x4000, "auth-trunc 'hmac(sha256)' 0x" + "2b" * 32 + " 128", proto="ah", extra="mode transport replay-window 32 flag align4"))
    follow.expect(r"sa added ah 0x00004000 .* Open null-sha256 Transport")
    vm.sh(sa("add", 0x400f, "auth-trunc 'hmac(sha256)' 0x" + "2b" * 32 + " 128", proto="ah", extra="mode transport replay-window 32"))
    follow.expect(r"sa refused ah 0x0000400f .*align4")
    vm.sh(sa("add", 0x4001, good, "2001:db8::2", "2001:db8::1"))
    follow.expect(r"sa added esp 0x00004001 to 2001:db8::1 Open")
    vm.sh(sa("add", 0x4002, good + " encap espinudp 4500 31234 0.0.0.0", "192.0.2.1", "192.0.2.2"))
    follow.expect(r"sa added esp 0x00004002 to 192.0.2.2 Seal .* udp 4500/31234")
    # Neither end is ours until a policy says so.
    vm.sh(sa("add", 0x4003, good, "203.0.113.1", "203.0.113.2", extra="mode tunnel reqid 9"))
    policy = f"src 10.1.0.0/16 dst 10.2.0.0/16 proto tcp dport 443 dir out priority 100 {MARK} "
    template = "tmpl src 203.0.113.1 dst 203.0.113.2 proto esp reqid 9 mode tunnel"
    vm.sh(f"ip xfrm policy add {policy} {template}")
    line = follow.expect(r"policy added \d+ Out 10.1.0.0/16\[tcp\] -> 10.2.0.0/16\[tcp/443\] priority 100 Protect")
    follow.expect(r"sa added esp 0x00004003 .* Seal")
    index = int(line.split()[2])
    vm.sh(f"ip xfrm policy update {policy.replace('priority 100', 'priority 90')} {template}")
    vm.sh(f"ip xfrm policy update src 10.1.0.0/16 dst 10.2.0.0/16 proto tcp dport 443 dir out priority 100 {MARK} action block")
    follow.expect(r"policy (added|updated) \d+ .* priority 90 Protect", r"policy updated \d+ .* priority 100 Discard")
    # An address of ours later on.
    vm.sh(sa("add", 0x4004, good, "203.0.113.9", "203.0.113.7"))
    vm.sh("ip addr add 203.0.113.7/32 dev lo")
    follow.expect(r"sa added esp 0x00004004 .* Open")
    print("mirror: directions ok")

    vm.sh(sa("update", 0x4002, good + " encap espinudp 4500 40000 0.0.0.0", "192.0.2.1", "192.0.2.2"))
    follow.expect(r"sa updated esp 0x00004002 .* udp 4500/40000")
    vm.sh("ip xfrm state delete src 192.0.2.2 dst 192.0.2.1 proto esp spi 0x2000 " + MARK)
    follow.expect(r"sa deleted esp 0x00002000")
    vm.sh("ip xfrm state deleteall src 192.0.2.2 dst 192.0.2.1 proto ah")
    follow.expect(r"sa deleted ah 0x00004000")
    vm.sh(f"ip xfrm policy delete dir out index {index} {MARK} || ip xfrm policy delete src 10.1.0.0/16 dst 10.2.0.0/16 proto tcp dport 443 dir out {MARK}")
    follow.expect(r"policy deleted")
    # The kernel's own clock.
    vm.sh(sa("add", 0x5000, good + " limit time-soft 1 limit time-hard 2"))
    follow.expect(r"sa added esp 0x00005000", r"sa expired soft esp 0x00005000", r"sa expired hard esp 0x00005000")
    print("mirror: changes and expiries ok")

    # What is said back.
    vm.sh("ip -s xfrm monitor >/tmp/monitor 2>&1 & sleep 0.3")
    limits = " limit byte-soft 1000000 limit byte-hard 2000000 limit packet-soft 5000"
    vm.sh(sa("add", 0x6000, good + limits, "192.0.2.1", "192.0.2.2"))
    follow.expect(r"sa added esp 0x00006000 .* soft Limits \{ packets: Some\(5000\), bytes: Some\(1000000\)")
    added = re.search(r"add (\S+ \S+)", vm.sh("ip -s xfrm state get src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x6000 " + MARK)).group(1)
    follow.say("report 0x6000 1234 567890 4294967299")
    follow.expect("said report true")
    shown = vm.sh("ip -s xfrm state get src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x6000 " + MARK)
    for part in ("567890(bytes), 1234(packets)", f"add {added} use 2023-11-14", "oseq-hi 0x1, oseq 0x3"):
        if part not in re.sub(r"\s+", " ", shown):
            raise VmError(f"no '{part}' in\n{shown}")
    follow.say("expire 0x6000 soft")
    follow.expect("said expire true", r"sa expired soft esp 0x00006000")
    follow.say("expire 0x6000 hard")
    follow.expect("said expire true", r"sa expired hard esp 0x00006000")
    if vm.sh("ip xfrm state get src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x6000 " + MARK, check=False)[0] == 0:
        raise VmError("hard expiry left the SA")
    vm.sh(f"ip xfrm policy add src 10.3.0.0/16 dst 10.4.0.0/16 dir out {MARK} tmpl src 192.0.2.1 dst 192.0.2.9 proto esp reqid 42 mode tunnel")
    index = follow.expect(r"policy added \d+ Out 10.3.0.0/16").split()[2]
    follow.say(f"acquire {index} 10.3.0.1 10.4.0.1")
    follow.expect("said acquire true")
    time.sleep(0.5)
    monitor = vm.sh("cat /tmp/monitor")
    for part in ("acquire proto esp", "src 10.3.0.1/32 dst 10.4.0.1/32", "reqid 42", "Expired", "hard 1"):
        if part not in monitor.replace("\n", " ").replace("\t", " ") and part not in monitor:
            raise VmError(f"no '{part}' in\n{monitor}")
    print("mirror: what it says to the kernel arrives")

    # Restarted, it goes on where it was.
    vm.sh(sa("add", 0x7000, good, "192.0.2.1", "192.0.2.2"))
    follow.expect(r"sa added esp 0x00007000")
    follow.say("report 0x7000 10 1000 77")
    follow.expect("said report true")
    again = Follow(vm, name="again")
    again.expect(r"sa added esp 0x00007000 .* sent 77 ", "synchronised")
    again.say("quit")

    vm.sh("ip xfrm policy flush; ip xfrm state flush")
    follow.expect("policy deleted", "policies flushed", "sa deleted", "sas flushed")
    print("mirror: restart and flush ok")
    follow.say("quit")
    counts = follow.expect("Counts")
    print("mirror:", counts)
    if "overruns: 0, malformed: 0, foreign: 0, refused: 0" not in counts:
        raise VmError(counts)
    overrun(vm, good)


def overrun(vm, good):
    """The kernel sends more messages than the socket holds while it is not read."""
    follow = Follow(vm, "--mark 0x4642 --buffer 32768", "small")
    follow.expect("synchronised")
    batch = "\n".join(sa("add", 0x10000 + n, good, extra="mode tunnel replay-window 32").removeprefix("ip ") for n in range(400))
    vm.put((batch + "\n").encode(), "/tmp/batch")
    vm.sh("kill -STOP $(pidof follow); ip -batch /tmp/batch; for n in 1 2 3; do ip xfrm state delete src 192.0.2.2 dst 192.0.2.1 proto esp "
          f"spi $((0x10000 + n)) {MARK}; done; kill -CONT $(pidof follow)", seconds=120)
    follow.expect("synchronised", seconds=60)
    lines = follow.lines()
    state = {}
    for line in lines:
        if found := re.match(r"sa (added|deleted|updated) (esp \S+)", line):
            verb, name = found.groups()
            if (verb == "added") == (name in state):
                raise VmError(f"told twice, or never told: {line}")
            state[name] = 1
            if verb == "deleted":
                del state[name]
    if len(state) != 400 - 3:
        raise VmError(f"{len(state)} SAs after an overrun")
    follow.say("quit")
    counts = follow.expect("Counts")
    if "overruns: 0" in counts or "malformed: 0" not in counts:
        raise VmError(counts)
    print(f"mirror: overrun ok, {len(state)} SAs, {counts}")


def main():
    enter()
    parser = argparse.ArgumentParser()
    parser.add_argument("follow")
    parser.add_argument("--record")
    arguments = parser.parse_args()
    with Vm("m", []) as vm:
        vm.wait()
        vm.put(Path(arguments.follow), "/tmp/follow", 0o755)
        if arguments.record:
            record(vm, arguments.record)
        else:
            checks(vm)
            print("mirror: ok")


def record(vm, path):
    """One message of each kind, for the tests of the parser."""
    vm.sh("modprobe -a esp4 esp6 ah4 ah6 xfrm_user; ip addr add 192.0.2.1/24 dev lo")
    vm.sh(sa("add", 0x1000, ALGORITHMS[0][0], extra="mode tunnel reqid 7 replay-window 32"))
    vm.sh(f"ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir in {MARK} tmpl src 192.0.2.2 dst 192.0.2.1 proto esp reqid 7 mode tunnel")
    follow = Follow(vm, "--raw /tmp/raw")
    follow.expect("synchronised")
    for number, (words, _) in enumerate(ALGORITHMS):
        vm.sh(sa("add", 0x2000 + number, words))
    vm.sh(sa("add", 0x2fff, "auth-trunc 'hmac(sha256)' 0x" + "2b" * 32 + " 128", proto="ah", extra="mode transport replay-window 32 flag align4 if_id 9"))
    vm.sh(sa("add", 0x3000, ALGORITHMS[0][0] + " limit time-soft 1 limit time-hard 2 encap espinudp 4500 31234 0.0.0.0", "2001:db8::2", "2001:db8::1"))
    vm.sh("sleep 3")
    vm.sh(f"ip xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 proto icmp type 8 dir out {MARK} tmpl proto ah mode transport tmpl proto esp mode transport")
    vm.sh(f"ip xfrm policy update src 10.1.0.0/16 dst 10.2.0.0/16 proto icmp type 8 dir out {MARK} priority 5 if_id 3 action block")
    vm.sh(f"ip xfrm policy delete src 10.1.0.0/16 dst 10.2.0.0/16 dir in {MARK}")
    vm.sh("ip xfrm state delete src 192.0.2.2 dst 192.0.2.1 proto esp spi 0x2000 " + MARK)
    vm.sh("ip xfrm policy flush; ip xfrm state flush")
    follow.expect("sas flushed")
    Path(path).write_bytes(vm.get("/tmp/raw"))


if __name__ == "__main__":
    main()
