"""Virtual machines and network namespaces that leave nothing behind.

`enter()` puts the whole test into namespaces of its own (mounts, network, processes; and users, where it is
not root). When the test ends, however it ends, the kernel takes away every process, interface and namespace
in them: there is nothing to clean up and nothing that could be forgotten.
"""

import base64
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INSIDE = "FOREBAY_VM_INSIDE"


class Skip(Exception):
    """Something that the test needs is not here."""


class VmError(Exception):
    """The virtual machine did not do what it was asked for."""


def enter(releases=None):
    """Goes on in namespaces of its own; call it first. `releases` of Debian whose images are made instead of that of
    this machine's packages: what cannot be had of them is said, and `has_release` knows."""
    if os.environ.get(INSIDE) != "1":
        # Here, where there is a network to fetch packages from.
        if releases is None:
            make_image()
        for release in releases or []:
            make_release(release)
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        if os.geteuid() != 0:
            words += ["--user", "--map-root-user"]
        if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
            skip("namespaces cannot be made here (needs root or unprivileged user namespaces)")
        # Killed with this process, however that ends; and with it all that is inside.
        words = ["setpriv", "--pdeathsig", "KILL", *words, sys.executable, *sys.argv]
        child = subprocess.Popen(words, env={**os.environ, INSIDE: "1"})
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: child.kill())  # takes the namespace with it
        sys.exit(child.wait())
    shell("mount -t tmpfs none /run && mkdir -p /run/netns && ip link set lo up")


def skip(why):
    """Ends the test as not done."""
    print(f"{Path(sys.argv[0]).stem}: SKIPPED, {why}")
    sys.exit(0)


def shell(script, check=True, timeout=60, **options):
    """Runs a script on this side; its output."""
    done = subprocess.run(["bash", "-euc", script], text=True, capture_output=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise VmError(f"{script.strip()}\n-> {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


IMAGE = Path(os.environ.get("FOREBAY_VM_IMAGE", ROOT / "target" / "vm"))


def make_image():
    """Makes kernel and initramfs where they are not there yet."""
    if not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed (scripts/setup.sh vm)")
    if subprocess.run([HERE / "image.sh", IMAGE]).returncode != 0:
        skip("the image of the virtual machine could not be made")


def make_release(release):
    """Makes kernel and initramfs of a release of Debian, or says why not."""
    if not shutil.which("qemu-system-x86_64"):
        skip("qemu-system-x86_64 is not installed (scripts/setup.sh vm)")
    subprocess.run([HERE / "image.sh", IMAGE / release, release])


def has_release(release):
    """Whether there is an image of it."""
    return (IMAGE / release / "stamp").exists()


class Namespace:
    """A network namespace of this machine."""

    def __init__(self, name=None):
        """Without a name: the one that the test is in."""
        self.name = name
        if name:
            shell(f"ip netns add {name} && ip -n {name} link set lo up")

    def command(self, words):
        """The words that run a program in it."""
        return [*(["ip", "netns", "exec", self.name] if self.name else []), *map(str, words)]

    def sh(self, script, check=True, timeout=60):
        """Runs a script in it; its output."""
        done = subprocess.run(self.command(["bash", "-euc", script]), text=True, capture_output=True, timeout=timeout)
        if check and done.returncode != 0:
            raise VmError(f"{self.name}: {script.strip()}\n-> {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, words, **options):
        """Starts a program in it."""
        return subprocess.Popen(self.command(words), **options)

    def tap(self, tap, bridge=None):
        """Makes an interface for a virtual machine, on a bridge if one is named."""
        # Frames between machines and programs are whole: what offloads would leave undone is done.
        self.sh(f"ip tuntap add dev {tap} mode tap && ip link set dev {tap} up")
        if bridge:
            self.sh(f"ip link show dev {bridge} >/dev/null 2>&1 || ip link add dev {bridge} type bridge mcast_snooping 0; "
                    f"ip link set dev {bridge} up; ip link set dev {tap} master {bridge}")


class Vm:
    """Linux in a virtual machine, whose interfaces eth0, eth1, ... are taps in namespaces."""

    def __init__(self, name, taps, ike=False, memory=256, initramfs=None, more=(), image=IMAGE, cores=1):
        """`taps`: pairs of a namespace, one for all, and the name of a tap in it; `ike`: with strongSwan; `initramfs`:
        another than those of image.sh; `more`: words for qemu; `image`: the folder of kernel and initramfs."""
        self.name = name
        self.number = 0
        self.work = Path(tempfile.mkdtemp(prefix=f"vm-{name}-", dir="/run"))
        self.control, control = socket.socketpair()
        self.data, data = socket.socketpair()
        words = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-cpu", "max", "-smp", str(cores), "-m", str(memory),
                 "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
                 "-kernel", image / "vmlinuz", "-initrd", initramfs or image / ("initramfs-ike" if ike else "initramfs"),
                 "-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off random.trust_cpu=on ipv6.dad_transmits=0",
                 "-serial", f"file:{self.work}/console", "-device", "virtio-serial-pci",
                 "-chardev", f"socket,id=control,fd={control.fileno()}", "-device", "virtserialport,chardev=control,name=control",
                 "-chardev", f"socket,id=data,fd={data.fileno()}", "-device", "virtserialport,chardev=data,name=data"]
        namespace = None
        for index, (namespace, tap) in enumerate(taps):
            octets = [0x52, 0x54, 0, sum(name.encode()) & 0xFF, len(name), index]
            words += ["-netdev", f"tap,id=n{index},ifname={tap},script=no,downscript=no",
                      "-device", f"virtio-net-pci,netdev=n{index},romfile=,mac={':'.join(f'{o:02x}' for o in octets)}"]
        words = [str(word) for word in [*words, *more]]
        words = namespace.command(words) if namespace else words
        self.process = subprocess.Popen(words, pass_fds=[control.fileno(), data.fileno()], stdin=subprocess.DEVNULL,
                                        stdout=open(self.work / "qemu", "wb"), stderr=subprocess.STDOUT)
        control.close(), data.close()
        self.pending = b""

    def wait(self, seconds=60):
        """Until it has started; how long that took of its own time."""
        line = self.line(time.monotonic() + seconds)
        return float(line.split()[1])

    def line(self, deadline):
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.control], [], [], left)[0]:
                raise VmError(f"{self.name}: no answer in time\n{self.console()}")
            more = self.control.recv(65536)
            if not more:
                raise VmError(f"{self.name}: it has ended\n{self.console()}")
            self.pending += more
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode()

    def console(self):
        """The end of what the machine and qemu said."""
        texts = [(self.work / part).read_text(errors="replace") for part in ("console", "qemu") if (self.work / part).exists()]
        return "\n".join("\n".join(text.splitlines()[-15:]) for text in texts)

    def begin(self, script, seconds=30):
        """Has it run a script, for `seconds` at most; `end` gives the output."""
        self.number += 1
        text = base64.b64encode(("set -e\n" + script).encode()).decode()
        self.control.sendall(f"run {self.number} {seconds} {text}\n".encode())
        self.deadline, self.script = time.monotonic() + seconds + 15, script

    def end(self, check=True):
        """The output of the script that was begun, and its status if that is not checked."""
        word, number, status, *output = self.line(self.deadline).split(" ")
        assert (word, int(number)) == ("done", self.number), "an answer to another question"
        output = base64.b64decode(output[0]).decode(errors="replace") if output else ""
        if check and status != "0":
            raise VmError(f"{self.name}: {self.script.strip()}\n-> {status}\n{output}\n{self.console()}")
        return output if check else (int(status), output)

    def sh(self, script, check=True, seconds=30):
        """Runs a script in the machine."""
        self.begin(script, seconds)
        return self.end(check)

    def put(self, content, path, mode=0o644, seconds=60):
        """Writes a file of the machine; `content` is bytes or the path of a file here."""
        content = content if isinstance(content, bytes) else Path(content).read_bytes()
        self.number += 1
        deadline = time.monotonic() + seconds
        self.control.sendall(f"put {self.number} {path} {len(content)}\n".encode())
        self.data.sendall(content)
        status = self.line(deadline).split()
        if status[2] != "0":
            raise VmError(f"{self.name}: put {path}: {status}")
        self.sh(f"chmod {mode:o} {path}")

    def get(self, path, seconds=60):
        """The bytes of a file of the machine."""
        self.number += 1
        deadline = time.monotonic() + seconds
        self.control.sendall(f"get {self.number} {path}\n".encode())
        size = self.line(deadline).split()[2]
        if size == "missing":
            raise VmError(f"{self.name}: there is no {path}")
        content = b""
        while len(content) < int(size):
            if not select.select([self.data], [], [], max(0, deadline - time.monotonic()))[0]:
                raise VmError(f"{self.name}: {path} did not come in time")
            content += self.data.recv(1 << 20)
        return content

    def stop(self):
        """Ends it at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.control.close(), self.data.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
