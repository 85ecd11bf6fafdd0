"""Where the time of a gateway's processes goes during a TCP flow, by `perf record` on the clock of the CPU.

A sample in the kernel counts for the system call that it is in, what the kernel does at once in its place (packets
handed on, interrupts) included; one in user space for the function it is in, into which others may be inlined.
"""

import collections
import os
import re
import shutil
import subprocess

from . import traffic
from .namespaces import LAB

FREQUENCY = 997
PREFIXES = re.compile(r"^(__x64_sys_|__se_sys_|__do_sys_|__sys_|ksys_|do_sys_|do_|sys_)+")
SWITCH = re.compile(r"exit_to_user|syscall_exit|irqentry|schedule")
CRYPTO = re.compile(r"chacha|poly1305|_blocks_ok|_next_\d+|aes|gcm|ghash|gfmul|sha\d|vaes|clmul|hmac|AES|GCM|EVP|CRYPTO_|imb_")
COPIES = re.compile(r"mem(move|cpy|set|cmp)", re.IGNORECASE)
# Rust's standard library, third-party crates, Go's runtime: their time is counted for the caller.
RUNTIME = re.compile(r"^(<?&?(core|alloc|std|rtrb|arrayvec|rustix|hashbrown|tracing)::|runtime\.|internal/|syscall\.|sync|net\.|os\.)")
CRATE = re.compile(r"forebay_(\w+?)::")
PACKAGE = re.compile(r"^(golang\.zx2c4\.com/wireguard/\w+|golang\.org/x/\w+)")


def kind(frames):
    """Kind and part of a sample, innermost frame first: each a symbol and what it is in."""
    symbol, place = frames[0]
    if "kernel" in place:
        names = [name for name, _ in frames]
        if "do_syscall_64" in names[1:] and not SWITCH.match(names[names.index("do_syscall_64") - 1]):
            inner = [name for name in names[: names.index("do_syscall_64")] if name != "x64_sys_call"]
            return "system calls", PREFIXES.sub("", inner[-1]) if inner else "entry"
        return "interrupts and switches", "outside of system calls"
    if "vdso" in place:
        return "clock", "vdso"
    crate = CRATE.search(symbol)
    if crate and not symbol.startswith(("core::ptr", "<alloc")):
        return "own code", crate.group(1).replace("_", "-")
    if CRYPTO.search(symbol) or re.search(r"aesni|openssl|libcrypto|-gcm|IPSec_MB", place):
        return "crypto", os.path.basename(place) if ".so" in place else "built in"
    if COPIES.search(symbol):
        return "copies", symbol.split("_")[2] if symbol.startswith("__mem") else symbol
    if symbol.startswith("golang.org/x/crypto"):
        return "crypto", "built in"
    if re.search(r"lib[cm]\.so", place) or "ld-linux" in place or RUNTIME.search(symbol):
        return "runtime and libc", "libc" if "libc" in place else "runtime"
    package = PACKAGE.search(symbol)
    part = package.group(1).rsplit("/", 1)[-1] if package else os.path.basename(place)
    return "own code", part


def samples(text):
    frames = []
    for line in text.splitlines():
        if not line.startswith(("\t", " ")):
            if frames:
                yield frames
            frames = []
            continue
        found = re.match(r"\s*[0-9a-f]+ (.*) \(([^()]*|\[[^\]]*\])\)$", line)
        if found:
            frames.append((found.group(1), found.group(2)))
    if frames:
        yield frames


def measure(peer, seconds):
    """Shares by kind, and by kind and part; None where perf(1) does not work here."""
    if not shutil.which("perf") or not peer.pids:
        return None
    flow = subprocess.Popen(peer.pair.words("a", "iperf3", "-c", peer.target, "-t", seconds + 2),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    data = f"{LAB}/{peer.key}.perf"
    # Threads of wireguard-go come later than the process: its inherited ones are counted with -p too.
    words = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-g", "-o", data,
             "-p", ",".join(map(str, peer.pids)), "--", "sleep", str(seconds)]
    try:
        subprocess.run(["sleep", "1"], check=True)
        meter = traffic.Meter(peer)
        recorded = subprocess.run(words, capture_output=True, text=True)
        cpu = meter.read()
        if recorded.returncode != 0:
            return None
        text = subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym,dso"],
                              capture_output=True, text=True).stdout
    finally:
        flow.wait()
        if os.path.exists(data):
            os.unlink(data)
    kinds, parts = collections.Counter(), collections.Counter()
    for frames in samples(text):
        name, part = kind(frames)
        kinds[name] += 1
        parts[name, part] += 1
    total = sum(kinds.values())
    if total == 0:
        return None
    return {
        "samples": total,
        "user_s": cpu["user_s"],
        "kernel_s": cpu["kernel_s"],
        "kinds": {name: count / total for name, count in kinds.most_common()},
        "parts": [[name, part, count / total] for (name, part), count in parts.most_common()],
    }
