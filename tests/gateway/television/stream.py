"""One stream of a picture through the laboratory: sender, receiver, and all counters before and after."""

import json
import os
import pathlib
import select
import subprocess
import sys
import time

from television import counters

HERE = pathlib.Path(__file__).resolve().parent
HOST_B = "10.2.0.10"
PORT = 5004
# The links between carry packets of 9000 bytes, the interface of the gateway 100 less; IP and UDP take 28.
RTP_BYTES = 9000 - 100 - 28
# What may wait at the receiver, and at the sender as far as the system lets it.
ROOM = 64 << 20
# Time to wait for packets in flight after the last was sent, in seconds.
BEHIND = 1.5


class Format:
    """A format of uncompressed pictures, 4:2:2: `720p60`, `1080p30-10bit`."""

    SIZES = {"720": (1280, 720), "1080": (1920, 1080), "2160": (3840, 2160)}

    def __init__(self, name):
        lines, rest = name.split("p", 1)
        rate, _, bits = rest.partition("-")
        self.name = name
        self.width, self.height = self.SIZES[lines]
        self.rate = int(rate)
        self.depth = int(bits.removesuffix("bit") or 8)
        self.frame_bytes = self.width * self.height * 2 * self.depth // 8
        self.bits_per_second = self.frame_bytes * 8 * self.rate
        self.pixels = {8: "UYVY", 10: "UYVP"}[self.depth]
        # Many enough that none is taken for another, in 300 MB.
        self.frames = max(8, min(32, 300_000_000 // self.frame_bytes))

    def raw_caps(self):
        return f"video/x-raw,format={self.pixels},width={self.width},height={self.height},framerate={self.rate}/1"

    def rtp_caps(self):
        size = f"width=(string){self.width},height=(string){self.height}"
        kind = "application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96,colorimetry=BT709-2"
        return f"{kind},sampling=YCbCr-4:2:2,depth=(string){self.depth},{size}"

    def draw(self, folder):
        """The frames as files in a tmpfs: bars that move, so that no two are alike."""
        folder.mkdir(parents=True, exist_ok=True)
        speed = self.width // self.frames
        words = f"videotestsrc num-buffers={self.frames} pattern=smpte horizontal-speed={speed} ! {self.raw_caps()} ! multifilesink"
        subprocess.run(
            ["gst-launch-1.0", "-q", *words.split(), f"location={folder}/%02d.raw"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return sorted(folder.glob("*.raw"))

    def sender(self, folder, count):
        """gst-launch's line: frames by file from the tmpfs in a circle, in time, a frame's packets at once."""
        return (
            f"gst-launch-1.0 -q multifilesrc location={folder}/%02d.raw loop=true"
            f" start-index=0 stop-index={self.frames - 1} num-buffers={count}"
            f" ! rawvideoparse format={self.pixels.lower()} width={self.width} height={self.height} framerate={self.rate}/1"
            f" ! queue max-size-buffers=4 max-size-bytes=0 max-size-time=0 ! rtpvrawpay mtu={RTP_BYTES}"
            f" ! udpsink host={HOST_B} port={PORT} buffer-size={ROOM} sync=true"
        )


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *map(str, words)]


def stream(form, seconds, python, tell, pictures=None, change=False):
    """Sends `seconds` of a format and returns what became of it; `tell(seconds, state)` is called each second.

    With `change` one bit of the first frame is another than the receiver expects: it has to see that.
    """
    folder = pathlib.Path(os.environ["LAB"]) / form.name
    files = form.draw(folder)
    spec = {"port": PORT, "room": ROOM, "caps": form.rtp_caps(), "frames": list(map(str, files)), "pictures": pictures}
    receiver = subprocess.Popen(
        inside("host-b", python, HERE / "receiver.py", json.dumps(spec)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    lines = Lines(receiver.stdout)
    ready = lines.get(30)
    if change:
        frame = bytearray(files[0].read_bytes())
        frame[len(frame) // 2] ^= 1
        files[0].write_bytes(frame)
    before = counters.read()
    count = round(seconds * form.rate)
    started = time.monotonic()
    words = form.sender(folder, count)
    sender = subprocess.Popen(inside("host-a", *words.split()), stdout=subprocess.DEVNULL)
    processes = {"sender": sender.pid, "receiver": receiver.pid, **counters.gateways()}
    busy_from = counters.processor(processes)
    sampled = time.monotonic()
    # As in the paper: while the stream runs, its beginning and end left out.
    state, busy, upto = ready, busy_from, sampled
    deadline = started + 2 * seconds + 5
    while sender.poll() is None:
        if time.monotonic() > deadline:
            sender.kill()
            break
        line = lines.get(0.25)
        if line:
            state = line
            upto, busy = time.monotonic(), counters.processor(processes)
            tell(upto - started, state)
    took = time.monotonic() - started
    rest = time.monotonic() + BEHIND
    while time.monotonic() < rest:
        state = lines.get(0.1) or state
    receiver.stdin.write("\n")
    while not state.get("end"):
        state = lines.get(30)
    after = counters.read()
    receiver.stdin.close()
    receiver.wait(timeout=60)
    for file in files:
        file.unlink()
    return {
        "format": form.name,
        "seconds": seconds,
        "took_s": took,
        "window": [sampled, upto],
        "namespaces": {name: os.stat(f"/run/netns/{name}").st_ino for name in counters.NAMESPACES},
        "bits_per_second": form.bits_per_second,
        "sender": words,
        "receiver_room": {"bytes": ready["room"], "system_limit": ready["limit"]},
        "changed": -(-count // form.frames) if change else 0,
        "frames": {"sent": count, "right": state["right"], "wrong": state["wrong"]}
        | {"missing": count - state["right"] - state["wrong"]},
        "rtp": state["rtp"],
        "packets": counters.packets(before, after),
        "lost_at": counters.losses(before, after),
        "processor": counters.share(busy_from, busy, upto - sampled),
    }


class Lines:
    """Lines of JSON from a program, with a limit in time."""

    def __init__(self, file):
        self.file = file

    def get(self, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return None
        line = self.file.readline()
        if not line:
            sys.exit("hdtv: the receiver ended early")
        return json.loads(line)


def is_whole(done):
    """Whether no packet was lost, every frame was right, and all went in time."""
    packets, frames = done["packets"], done["frames"]
    return (
        packets["sent"] > 0
        and packets["lost"] == 0
        and done["rtp"]["lost"] == 0
        and frames["right"] == frames["sent"]
        and is_in_time(done)
    )


def is_in_time(done):
    """Whether the sender kept its rate: its start takes some tenths of a second."""
    return done["took_s"] < done["seconds"] * 1.01 + 0.7
