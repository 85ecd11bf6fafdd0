"""A headless Chromium over its debugging pipe: pages are opened, asked, pointed at and pictured.

Only Python's own library: messages of the DevTools protocol are JSON with a zero byte behind, on file
descriptors 3 (to the browser) and 4 (from it), so no port is opened. The browser has a profile of its own in
a temporary folder, and both are gone when the `with` block ends.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The browser's program, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Problem(Exception):
    """The browser did not do what it was told, or not in time."""


def high_pipe():
    """A pipe whose numbers are none of those that the browser uses."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    return high


class Chromium:
    def __init__(self, program, seconds=30):
        self.program, self.seconds = program, seconds
        self.number, self.buffer, self.events = 0, b"", []

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="forebay-browser-")
        (into, self.send), (self.receive, out) = high_pipe(), high_pipe()
        options = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
            "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
            "--force-device-scale-factor=1", "--disable-component-update", "--disable-sync",
        ]  # fmt: skip
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium has no sandbox for root
        # A shell puts the pipe's ends where the browser wants them.
        line = f'exec "$0" "$@" 3<&{into} 4>&{out}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, self.program, *options, "about:blank"],
            pass_fds=(into, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(into)
        os.close(out)
        return self

    def __exit__(self, *_):
        os.close(self.send)
        os.close(self.receive)
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)
        for _ in range(20):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)

    def call(self, method, session=None, **params):
        """Tells the browser to do something and returns its answer; what happens meanwhile is put aside."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        try:
            os.write(self.send, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise Problem("the browser did not start") from error
        end = time.monotonic() + self.seconds
        while True:
            answer = self.read(end)
            if answer is None:
                raise Problem(f"{method}: no answer in {self.seconds} s")
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise Problem(f"{method}: {answer['error']['message']}")
            else:
                return answer.get("result", {})

    def read(self, end):
        """The next message, or None at `end`."""
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.receive], [], [], left)[0]:
                return None
            some = os.read(self.receive, 1 << 20)
            if not some:
                raise Problem("the browser has ended")
            self.buffer += some
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def page(self, width=1400, height=900, dark=False):
        return Page(self, width, height, dark)


class Page:
    """A tab. `trouble` and `requests` tell what a page complained of and asked the network for."""

    def __init__(self, browser, width, height, dark):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.looks(width, height, dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def looks(self, width, height, dark):
        """The window's size, and whether its user likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path, scripts=True):
        """Opens a file and waits until it is loaded and drawn, with or without its scripts."""
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.go("file://" + os.path.abspath(path))
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", "loaded")
        if scripts:  # without, no frame is announced
            self.settle()

    def go(self, url):
        """Begins to open an address."""
        self.url = url
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise Problem(f"{url}: {answer['errorText']}")

    def settle(self):
        """Waits for two frames: what was asked for is on the screen then."""
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Problem(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def until(self, expression, what):
        end = time.monotonic() + self.browser.seconds
        while not self.ask(expression):
            if time.monotonic() > end:
                raise Problem(f"{self.url}: not {what} in {self.browser.seconds} s")
            time.sleep(0.02)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def drag(self, start, end):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for part in (0.3, 0.7, 1.0):
            at = [a + (b - a) * part for a, b in zip(start, end)]
            self.mouse("mouseMoved", *at, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.settle()

    def key(self, name, text=""):
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=codes.get(name, 0))  # fmt: skip
        self.settle()

    def picture(self, path, whole=True):
        """A PNG of the page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def trouble(self):
        """Errors and warnings that the page has caused so far."""
        found = []
        for event in self.of_this():
            params = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                    found.append(" ".join(str(one.get("value")) for one in params["args"]))
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(params["entry"]["text"])
        return found

    def requests(self):
        """What the page asked for besides itself and what it holds."""
        asked = [event["params"]["request"]["url"] for event in self.of_this() if event["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if url.split("#")[0] != self.url and not url.startswith(("data:", "blob:"))]

    def of_this(self):
        self.ask("0")  # the answer comes after all earlier events
        return [event for event in self.browser.events if event.get("sessionId") == self.session]
