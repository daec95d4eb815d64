"""Chromium without a window, driven over a pipe: open a page, run code in it, take its picture."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    """Return the path of Chromium; None without one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page in Chromium.  Notes requests, violations of the content policy and errors."""

    def __init__(self, width=1000, height=900, dark=False, scripts=True):
        self.profile = tempfile.mkdtemp(prefix="ratoon-chromium-")
        ours, theirs = os.pipe(), os.pipe()
        self.write, self.read = ours[1], theirs[0]
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        command = f'exec "$0" "$@" 8<&{ours[0]} 9>&{theirs[1]} 3<&8 4>&9 8<&- 9>&-'
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",  # no request is answered
            "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}",
        ]
        self.process = subprocess.Popen(
            ["bash", "-c", command, executable(), *flags],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A sanitizer that came along with ratoon is not to slow the browser down.
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        )
        os.close(ours[0])
        os.close(theirs[1])
        self.buffer, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.page(f"{domain}.enable")
        self.page("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.page("Emulation.setEmulatedMedia", features=[scheme])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.write)
        os.close(self.read)
        shutil.rmtree(self.profile, ignore_errors=True)

    def page(self, method, **arguments):
        return self.call(method, self.session, **arguments)

    def call(self, method, session=None, **arguments):
        """Send a command and return its result; events are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": arguments}
        if session:
            message["sessionId"] = session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.write, text) :]
        while True:
            found = self._next(60.0)
            if found.get("id") == self.number:
                assert "error" not in found, found["error"]
                return found["result"]
            self.events.append(found)

    def _next(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(end - time.monotonic(), 0.0))
            part = os.read(self.read, 2**20) if ready else b""
            assert part, "Chromium does not answer"
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def open(self, path):
        """Open a file, and wait until it has been loaded."""
        self.events.clear()
        self.page("Page.navigate", url=path.absolute().as_uri())
        end = time.monotonic() + 60.0
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < end, "the page does not load"
            self.events.append(self._next(60.0))
        return self

    def run(self, code):
        """Return the value of an expression in the page."""
        found = self.page("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def texts(self, selector):
        """Return the texts of all elements that match."""
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText.trim())"
        )

    def click(self, selector):
        """Click on the middle of an element, as a mouse does."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": x, "y": y, "button": "left", "clickCount": 1}
            self.page("Input.dispatchMouseEvent", type=kind, **where)

    def write_into(self, selector, text):
        """Write text into an input, as a keyboard does."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.page("Input.insertText", text=text)

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.page("Emulation.setDeviceMetricsOverride", **metrics)

    def picture(self, path, *, whole=True, clip=None):
        """Write a picture of the page as PNG."""
        how = {"captureBeyondViewport": whole}
        if whole and clip is None:
            size = self.page("Page.getLayoutMetrics")["cssContentSize"]
            clip = (0, 0, size["width"], size["height"])
        if clip is not None:
            how["clip"] = dict(zip(("x", "y", "width", "height"), clip, strict=True)) | {"scale": 1}
        data = self.page("Page.captureScreenshot", format="png", **how)["data"]
        path.write_bytes(base64.b64decode(data))

    @property
    def requests(self):
        """Everything the page asked for, but itself and what it contains."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "data:", "about:"))]

    @property
    def complaints(self):
        """Errors of scripts and violations of the content policy."""
        self.run("1")  # so that all events before have arrived
        found = [
            event["params"]["entry"]["text"]
            for event in self.events
            if event.get("method") == "Log.entryAdded"
        ]
        return found + [
            event["params"]["exceptionDetails"]["text"]
            for event in self.events
            if event.get("method") == "Runtime.exceptionThrown"
        ]
