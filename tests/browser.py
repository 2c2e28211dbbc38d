"""A real browser without a screen, driven over a pipe: its page, its requests, its complaints."""

import base64
import fcntl
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import matplotlib.image

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

OPTIONS = (
    "--headless",
    # The opened pages are our own, and a container may offer no sandbox.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

LAUNCH = """
import os, sys
for end, number in zip(sys.argv[1:3], (3, 4)):
    os.dup2(int(end), number)
    os.close(int(end))
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives the pipes the numbers under which the browser expects them, and becomes the browser."""

PATIENCE = 60
"""Seconds without a message after which a browser is given up."""


class Browser:
    """One tab of a browser, and every event that it has reported."""

    def __init__(self, send, receive):
        self._send, self._receive = send, receive
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = {}
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            piece = os.read(self._receive, 1 << 20)
            if not piece or time.monotonic() > end:
                raise RuntimeError("the browser went away")
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width=1000):
        """Show a file, all of it, and forget earlier events."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def ask(self, expression):
        """The value of an expression of the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def complaints(self):
        """Lines that a console would show."""
        entries = [event["params"] for event in self.events if event.get("method") == "Log.entryAdded"]
        thrown = [event["params"] for event in self.events if event.get("method") == "Runtime.exceptionThrown"]
        return [entry["entry"]["text"] for entry in entries] + [str(event) for event in thrown]

    def fetched(self):
        """The requested addresses, except those within the page itself."""
        asked = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in asked if not event["request"]["url"].startswith("data:")]

    def read_aloud(self, role):
        """Name and description of everything with a role, as a screen reader gets them."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        mine = [node for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") == role]
        return [(node["name"]["value"], node.get("description", {}).get("value", "")) for node in mine]

    def picture(self, selector):
        """The pixels of one element, shape ``(height, width, 3)``, from 0 to 1."""
        box = self.ask(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}; })()"
        )
        shot = self.call("Page.captureScreenshot", clip=box, captureBeyondViewport=True)
        return matplotlib.image.imread(io.BytesIO(base64.b64decode(shot["data"])))[..., :3]


@contextmanager
def browser():
    """A browser that ends with the block, and leaves nothing behind."""
    assert CHROMIUM is not None
    pipes = [os.pipe(), os.pipe()]
    # Away from the numbers 3 and 4, under which the browser expects its ends.
    (theirs_in, send), (receive, theirs_out) = ([fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in pipe] for pipe in pipes)
    for end in itertools.chain(*pipes):
        os.close(end)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCH,
                str(theirs_in),
                str(theirs_out),
                CHROMIUM,
                *OPTIONS,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(send, receive)
        finally:
            # At the end of its pipe the browser closes, with all its processes.
            os.close(send)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(receive)
