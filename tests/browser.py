"""A real browser for tests: chromium without a window, spoken to in its DevTools protocol over a pair of pipes."""

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

HOW = "no chromium found: apt-get install chromium, or put chromium, chrome or google-chrome on the PATH"
LONGEST = 60.0  # seconds to wait for an answer

# Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One page; what it asked for and what it complained about is kept in `requests` and `complaints`."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._commands = os.pipe()
        self._answers, theirs_out = os.pipe()
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
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result; what happens meanwhile is noted."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + LONGEST
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, end - time.monotonic()))
            part = os.read(self._answers, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(json.dumps(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(json.dumps(params["entry"]))

    def open(
        self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, touch: bool = False
    ) -> float:
        """Show a report in a window of this size; returns the seconds until it was ready."""
        self.requests.clear()
        self.complaints.clear()
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        begin = time.monotonic()
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready !== undefined")
        return time.monotonic() - begin

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = LONGEST) -> None:
        end = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"waited in vain for {condition}; complaints: {self.complaints}")
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
        os.close(self._answers)
        self._profile.cleanup()
