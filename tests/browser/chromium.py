"""A headless Chromium over its debugging pipe: pages are opened, asked, pointed at and pictured.

Messages of the DevTools protocol are JSON with a zero byte behind, on file descriptors 3 (to the browser) and 4 (from
it), so no port is opened. The browser has a profile of its own in a temporary folder, and both are gone when the `with`
block ends.
"""

import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

from browser import Problem, Tab, end

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def high_pipe():
    """A pipe whose numbers are none of those that the browser uses."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for one in low:
        os.close(one)
    return high


class Browser:
    def __init__(self, program, seconds):
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
        end(self.process, self.profile)

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

    def downloads(self, folder):
        """Puts what pages save there from now on."""
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def page(self, width=1400, height=900, dark=False):
        return Page(self, width, height, dark)


class Page(Tab):
    def __init__(self, browser, width, height, dark):
        super().__init__(browser)
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.looks(width, height, dark)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def looks(self, width, height, dark):
        """The window's size, and whether its user likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open_without_scripts(self, path):
        """Opens a file as for a user who lets no scripts run; of such a page no frame is announced."""
        self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.load(path)

    def go(self, url):
        """Begins to open an address."""
        self.url = url
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise Problem(f"{url}: {answer['errorText']}")

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Problem(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def point(self, actions):
        """Moves the pointer, and presses and releases its button."""
        at, button = (0, 0), {}
        for what, *where in actions:
            at = where or at
            button = {"move": button, "down": {"button": "left", "clickCount": 1}, "up": button}[what]
            kind = {"move": "mouseMoved", "down": "mousePressed", "up": "mouseReleased"}[what]
            held = {"buttons": 1, **button} if what == "move" and button else button
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], **held)
            button = {} if what == "up" else button

    def key(self, name):
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=CODES.get(name, 0))  # fmt: skip
        self.settle()

    def screenshot(self, whole):
        return self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]

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

    def asked(self):
        return [event["params"]["request"]["url"] for event in self.of_this() if event["method"] == "Network.requestWillBeSent"]

    def of_this(self):
        self.ask("0")  # the answer comes after all earlier events
        return [event for event in self.browser.events if event.get("sessionId") == self.session]
