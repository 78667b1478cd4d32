"""A real browser for the tests: Chromium, driven over its debugging protocol by the few verbs that are needed here."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """`with Browser() as page: page.open(url); page.eval("document.title")`."""

    def __enter__(self) -> Browser:
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars"]
        flags += ["--disable-background-networking", "--no-first-run", f"--user-data-dir={self.home.name}"]
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        # The protocol speaks over file descriptors 3 and 4, in messages that end with a zero byte.
        start = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", str(CHROMIUM), *flags]
        self.process = subprocess.Popen(
            start, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.waiting = 0, b""
        self.session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        self.process.wait(60)
        os.close(self.to)
        os.close(self.back)
        self.home.cleanup()

    def call(self, method: str, **how: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for the answer; what scripts complain of is kept in `errors`."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": how}
        asked |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while True:
            message = self._receive()
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if message.get("method") == "Page.javascriptDialogOpening":
                self.errors.append("a dialog opened")
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.back], [], [], 120)
            assert ready, "Chromium does not answer"
            data = os.read(self.back, 1 << 20)
            assert data, "Chromium is gone"
            self.waiting += data
        one, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(one)

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        how = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **how)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def eval(self, code: str) -> Any:
        made = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in made, made
        return made["result"].get("value")

    def wait(self, code: str, seconds: float = 120) -> Any:
        """Until an expression is true; returns its value."""
        until = time.monotonic() + seconds
        while not (value := self.eval(code)):
            assert time.monotonic() < until, f"never true: {code}"
            time.sleep(0.05)
        return value

    def screenshot(self, path: str | Path, whole: bool = False) -> None:
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(made["data"]))
