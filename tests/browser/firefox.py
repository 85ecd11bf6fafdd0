"""A headless Firefox by Marionette, the protocol that geckodriver speaks to it too.

A message is JSON with its length in front: a number, a colon, the bytes. The port is Firefox's choice and bound to
loopback. The browser has a profile of its own in a temporary folder, and both are gone when the `with` block ends.

What a page may not say of itself (the theme, errors, requests) is asked of the browser's own context, "chrome" by the
protocol's word.
"""

import json
import pathlib
import socket
import subprocess
import tempfile
import time

from browser import Problem, Tab, end

# Not `firefox`, which may be a snap that sees no profile in the temporary folder.
NAMES = ("firefox-esr",)
PREFERENCES = {
    "marionette.port": 0,  # one that is free; its number is written into the profile
    "browser.download.folderList": 2,
    "dom.serviceWorkers.enabled": False,
    "ui.useOverlayScrollbars": 1,
    "layout.css.prefers-color-scheme.content-override": 1,
}
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
        "ArrowRight": "\ue014", "ArrowDown": "\ue015"}  # fmt: skip
# Requests that pages make, from now on; those of the browser itself are not theirs.
WATCH = """Services.obs.addObserver({ observe(subject) { const channel = subject.QueryInterface(Ci.nsIHttpChannel);
    if (!channel.loadInfo.triggeringPrincipal.isSystemPrincipal) window.forebayAsked.push(channel.URI.spec); } }, "http-on-opening-request");"""
LOOKS = """const [width, height, dark] = arguments, { style } = gBrowser.selectedBrowser;
    Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", dark ? 0 : 1);
    for (const [key, value] of [["width", width], ["height", height]])
        for (const limit of ["min", "max"]) style.setProperty(`${limit}-${key}`, `${value}px`);"""
TROUBLE = """return Services.console.getMessageArray().filter((one) => one instanceof Ci.nsIScriptError
    && one.sourceName.startsWith(arguments[0]) && !(one.flags & one.infoFlag)).map((one) => one.errorMessage);"""
EVALUATE = """const done = arguments[arguments.length - 1];
    Promise.resolve().then(() => (%s\n)).then((value) => done(JSON.stringify({ value }) ?? "{}"), (error) => done(JSON.stringify({ error: String(error) })));"""


class Browser:
    def __init__(self, program, seconds):
        self.program, self.seconds = program, seconds
        self.number, self.buffer = 0, b""

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="forebay-browser-")
        lines = (f"user_pref({json.dumps(key)}, {json.dumps(value)});\n" for key, value in PREFERENCES.items())
        pathlib.Path(self.profile, "user.js").write_text("".join(lines))
        self.process = subprocess.Popen(
            [self.program, "--headless", "--no-remote", "--profile", self.profile, "--marionette", "--remote-allow-system-access", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port()), self.seconds)
            self.read()  # who is there
            self.call("WebDriver:NewSession", capabilities={})
            self.call("WebDriver:SetTimeouts", script=1000 * self.seconds, pageLoad=1000 * self.seconds)
            # Larger than any tab that is asked for.
            self.call("WebDriver:SetWindowRect", width=1800, height=7300)
            self.chrome(f"window.forebayAsked = []; {WATCH}")
        except BaseException:
            end(self.process, self.profile)
            raise
        return self

    def __exit__(self, *_):
        self.socket.close()
        end(self.process, self.profile)

    def port(self):
        file, until = pathlib.Path(self.profile, "MarionetteActivePort"), time.monotonic() + self.seconds
        while not (file.exists() and file.read_text()):
            if time.monotonic() > until or self.process.poll() is not None:
                raise Problem("the browser did not start")
            time.sleep(0.02)
        return int(file.read_text())

    def call(self, command, **params):
        """Tells the browser to do something and returns its answer."""
        self.number += 1
        data = json.dumps([0, self.number, command, params]).encode()
        try:
            self.socket.sendall(b"%d:%b" % (len(data), data))
            _, _, error, result = self.read()
        except TimeoutError as late:
            raise Problem(f"{command}: no answer in {self.seconds} s") from late
        if error:
            raise Problem(f"{command}: {error['message']}")
        return result

    def read(self):
        self.socket.settimeout(self.seconds + 5)  # the browser's own limit comes first
        while True:
            length, colon, rest = self.buffer.partition(b":")
            if colon and len(rest) >= int(length):
                self.buffer = rest[int(length) :]
                return json.loads(rest[: int(length)])
            some = self.socket.recv(1 << 20)
            if not some:
                raise Problem("the browser has ended")
            self.buffer += some

    def chrome(self, script, *arguments):
        """Runs a function's body in the browser's own context."""
        self.call("Marionette:SetContext", value="chrome")
        try:
            return self.call("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]
        finally:
            self.call("Marionette:SetContext", value="content")

    def downloads(self, folder):
        """Puts what pages save there from now on."""
        self.chrome("Services.prefs.setStringPref('browser.download.dir', arguments[0])", str(folder))

    def page(self, width=1400, height=900, dark=False):
        return Page(self, width, height, dark)


class Page(Tab):
    def __init__(self, browser, width, height, dark):
        super().__init__(browser)
        self.before = browser.call("WebDriver:GetWindowHandle")["value"]
        self.handle = browser.call("WebDriver:NewWindow", type="tab", focus=True)["handle"]
        browser.call("WebDriver:SwitchToWindow", handle=self.handle, focus=True)
        browser.chrome("window.forebayAsked.length = 0; Services.console.reset()")
        self.looks(width, height, dark)

    def close(self):
        self.browser.call("WebDriver:CloseWindow")
        self.browser.call("WebDriver:SwitchToWindow", handle=self.before, focus=True)

    def looks(self, width, height, dark):
        """The window's size, and whether its user likes it dark."""
        self.browser.chrome(LOOKS, width, height, dark)
        self.until(f"innerWidth === {width} && innerHeight === {height} && matchMedia('(prefers-color-scheme: dark)').matches === {json.dumps(dark)}", "as it should look")

    def go(self, url):
        """Opens an address."""
        self.url = url
        self.browser.call("WebDriver:Navigate", url=url)

    def ask(self, expression):
        """The value of an expression in the page."""
        answer = json.loads(self.browser.call("WebDriver:ExecuteAsyncScript", script=EVALUATE % expression, args=[])["value"])
        if "error" in answer:
            raise Problem(f"{expression}: {answer['error']}")
        return answer.get("value")

    def act(self, kind, actions, **more):
        self.browser.call("WebDriver:PerformActions", actions=[{"type": kind, "id": kind, "actions": actions, **more}])

    def point(self, actions):
        """Moves the pointer, and presses and releases its button."""
        types = {"move": "pointerMove", "down": "pointerDown", "up": "pointerUp"}
        places = [{"x": round(where[0]), "y": round(where[1]), "duration": 0} if where else {"button": 0} for _, *where in actions]
        self.act("pointer", [{"type": types[what], **place} for (what, *_), place in zip(actions, places)])

    def key(self, name):
        value = KEYS.get(name, name)
        self.act("key", [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}])
        self.settle()

    def screenshot(self, whole):
        return self.browser.call("WebDriver:TakeScreenshot", full=whole, hash=False)["value"]

    def trouble(self):
        """Errors and warnings that the page has caused so far."""
        return self.browser.chrome(TROUBLE, self.url.split("#")[0])

    def asked(self):
        return self.browser.chrome("return window.forebayAsked")
