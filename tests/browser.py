"""Headless Chromium for tests, controlled through its DevTools protocol over a pair of pipes."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NOT_FOUND = "Chromium not found: apt-get install chromium, or put chromium, chrome or google-chrome on the PATH"
TIMEOUT = 60.0  # seconds

# Chromium reads commands from file descriptor 3 and writes responses to file descriptor 4.
LAUNCH = """
import fcntl, os, sys
commands, responses = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(responses, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One page. Its network requests, and its errors and warnings, are recorded in `requests` and `errors`."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._commands = os.pipe()
        self._responses, theirs_out = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-dev-shm-usage"]
        flags += ["--disable-gpu", "--no-first-run", f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), program, *flags],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._last, self._session = b"", 0, {}
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result; events in between are recorded."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            response = self._receive()
            if response.get("id") == self._last:
                if "error" in response:
                    raise RuntimeError(f"{method}: {response['error']}")
                return response["result"]
            self._record(response)

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._responses], [], [], max(0, end - time.monotonic()))
            part = os.read(self._responses, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not respond")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _record(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(json.dumps(params["entry"]))

    def open(
        self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False
    ) -> float:
        """Open a report in a window of this size and return the seconds until it is ready."""
        self.requests.clear()
        self.errors.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        begin = time.monotonic()
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready !== undefined")
        return time.monotonic() - begin

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = TIMEOUT) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"timed out waiting for {condition}; errors: {self.errors}")
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **params: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        os.close(self._commands)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._responses)
        self._profile.cleanup()
