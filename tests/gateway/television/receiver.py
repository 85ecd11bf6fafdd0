"""The receiver of a picture by RTP: Debian's GStreamer, and every frame compared byte by byte with what was sent.

    receiver.py SPEC        SPEC: JSON with port, room, caps, frames (files), pictures (a path's beginning)

Writes a line of JSON each second, and a last one with `"end": true` when a line comes on standard input. The pipeline
is GStreamer's own, unmodified; only its socket is made here, for room that net.core.rmem_max does not limit.
"""

import json
import pathlib
import socket
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
from gi.repository import Gio, GLib, Gst, GstApp  # noqa: E402, F401

# Linux's <asm-generic/socket.h>; Python does not name it.
SO_RCVBUFFORCE = 33

PIPELINE = (
    "udpsrc name=in mtu=9000 ! {caps} ! rtpjitterbuffer name=jitter latency=200 ! "
    "rtpvrawdepay ! appsink name=out sync=false emit-signals=true max-buffers=4"
)


def listen(port, room):
    """A socket with `room` bytes that wait; beyond the system's limit where the process may."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        peer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, room)
    except PermissionError:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    peer.bind(("0.0.0.0", port))
    return peer


class Frames:
    """The frames that are sent, in a circle, and which of them came."""

    def __init__(self, files):
        # bytearray: it compares itself with any buffer, in place.
        self.known = [bytearray(pathlib.Path(file).read_bytes()) for file in files]
        assert len({bytes(frame) for frame in self.known}) == len(self.known), "the frames do not differ"
        self.next = 0
        self.right = self.wrong = self.missing = 0

    def take(self, frame):
        """Counts a frame; returns whether it is right, and the one that it should be."""
        count, wanted = len(self.known), self.known[self.next]
        for ahead in range(count):
            at = (self.next + ahead) % count
            if self.known[at] == frame:
                self.right += 1
                self.missing += ahead
                self.next = (at + 1) % count
                return True, self.known[at]
            if len(frame) != len(self.known[at]):
                break
        self.wrong += 1
        self.next = (self.next + 1) % count
        return False, wanted


def main():
    spec = json.loads(sys.argv[1])
    frames = Frames(spec["frames"])
    Gst.init(None)
    pipeline = Gst.parse_launch(PIPELINE.format(caps=spec["caps"]))
    peer = listen(spec["port"], spec["room"])
    pipeline.get_by_name("in").set_property("socket", Gio.Socket.new_from_fd(peer.fileno()))
    jitter = pipeline.get_by_name("jitter")
    kept = {}

    def take(sink):
        sample = sink.emit("pull-sample")
        buffer = sample.get_buffer()
        found, bytes_of = buffer.map(Gst.MapFlags.READ)
        if found:
            with bytes_of:
                is_right, sent = frames.take(bytes_of.data)
            # The first frame that is wrong tells most; else the last.
            if kept.get("right", True):
                kept.update(sample=sample, sent=sent, right=is_right)
        return Gst.FlowReturn.OK

    pipeline.get_by_name("out").connect("new-sample", take)
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_state(5 * Gst.SECOND)

    def state(**more):
        stats = jitter.get_property("stats")
        counts = {name: stats.get_value(f"num-{name}") for name in ("pushed", "lost", "late", "duplicates")}
        seen = {"right": frames.right, "wrong": frames.wrong, "missing": frames.missing}
        print(json.dumps({**seen, "rtp": counts, **more}), flush=True)

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    room = peer.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    state(ready=True, room=room, limit=int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text(encoding="ascii")))
    while not ended.wait(1.0):
        error = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        if error:
            sys.exit(f"receiver: {error.parse_error()}")
        state()
    state(end=True)
    pipeline.set_state(Gst.State.NULL)
    if kept and spec.get("pictures"):
        caps = kept["sample"].get_caps()
        save(kept["sample"].get_buffer(), caps, f"{spec['pictures']}-received.png")
        save(Gst.Buffer.new_wrapped(bytes(kept["sent"])), caps, f"{spec['pictures']}-sent.png")


def save(buffer, caps, path):
    """A frame as PNG."""
    pipeline = Gst.parse_launch("appsrc name=in ! videoconvert ! pngenc snapshot=true ! filesink name=out")
    pipeline.get_by_name("out").set_property("location", path)
    source = pipeline.get_by_name("in")
    source.set_property("caps", caps)
    pipeline.set_state(Gst.State.PLAYING)
    source.emit("push-buffer", buffer)
    source.emit("end-of-stream")
    pipeline.get_bus().timed_pop_filtered(10 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    main()
