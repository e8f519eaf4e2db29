"""A headless Chromium driven over a pipe: the DevTools protocol with the standard library only.

It opens one file, notes every script error, refused resource and request, and answers questions
about the page. A pipe needs no port and no web socket: messages are JSON that end with a zero
byte, read by the browser from file descriptor 3 and written to 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # the protocol is JSON of many shapes

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 60.0


def executable() -> str | None:
    """Return the path of a browser, if there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


@dataclass
class Chromium:
    """One browser with one tab; ``complaints`` and ``requests`` grow while it works."""

    sends: int
    receives: int
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _session: str = ""
    _serial: int = 0
    _unread: bytes = b""
    _events: list[str] = field(default_factory=list)

    def attach(self) -> None:
        """Open a tab and listen to all it has to say."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def forget(self) -> None:
        """Forget what was noted so far."""
        self.complaints.clear()
        self.requests.clear()

    def open(self, path: Path, *, width: int, height: int = 800, dark: bool = False) -> None:
        """Show a file in a window of that size and wait until its plots are drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        until = time.monotonic() + PATIENCE_S
        while "Page.loadEventFired" not in self._events:
            self._take(self._next(until))
        while self.ask("document.documentElement.dataset.drawn") is None:
            assert time.monotonic() < until, f"The plots were never drawn: {self.complaints}"
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """Evaluate an expression on the page and return its value."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Save what the window shows as PNG."""
        image = self.call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(image))

    def full_screenshot(self, path: Path) -> None:
        """Save the page from top to bottom."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(image))

    def print(self, path: Path) -> None:
        """Save what a printer would get, on A4, as PDF."""
        options = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", **options)["data"]))

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its answer; events in between are noted."""
        self._serial += 1
        message: dict[str, object] = {
            "id": self._serial, "method": method, "params": parameters
        }  # fmt: skip
        if self._session:
            message["sessionId"] = self._session
        os.write(self.sends, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while (answer := self._next(until)).get("id") != self._serial:
            self._take(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            left = until - time.monotonic()
            ready, _, _ = select.select([self.receives], [], [], max(left, 0))
            assert ready, f"The browser was silent for {PATIENCE_S} s"
            data = os.read(self.receives, 1 << 20)
            assert data, "The browser went away"
            self._unread += data
        message, self._unread = self._unread.split(b"\0", 1)
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    def _take(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method", ""), event.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {parameters['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Chromium]:
    """Start a browser with an empty profile and end it, and only it, afterwards."""
    to_read, sends = os.pipe()
    receives, to_write = os.pipe()

    def plug_in() -> None:
        # First out of the way: one of the ends may itself be 3 or 4.
        high = (os.dup2(to_read, 100), os.dup2(to_write, 101))
        os.dup2(high[0], 3)
        os.dup2(high[1], 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}"],
        preexec_fn=plug_in,
        pass_fds=(3, 4),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        tab = Chromium(sends, receives)
        tab.attach()
        yield tab
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        os.close(sends)
        os.close(receives)
