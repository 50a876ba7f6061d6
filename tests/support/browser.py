"""A headless Chromium, driven over a pipe by the DevTools protocol: messages are JSON, each ended by a zero byte."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from backlight.web.svg_to_png import BROWSERS

MISSING = "pages are tested in a real browser, and none is installed: apt-get install chromium"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-prefers-reduced-motion",  # so that nothing is measured in flight
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
PATIENCE = 300  # seconds until an answer must be there
ENDING = 15  # seconds that the browser has to end by itself


def chromium_path() -> str | None:
    """Return the path of the browser, or None where none is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Browser:
    """One tab of a browser.

    Args:
        profile: an empty folder for what the browser writes.
    """

    def __init__(self, profile: Path):
        answers, self._out = os.pipe()
        self._in, questions = os.pipe()
        self._questions, self._answers = self._out, self._in
        command = [chromium_path(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        # the browser reads its file 3 and writes its file 4
        shell = ["bash", "-c", f'exec "$@" 3<&{answers} 4>&{questions}', "bash", *command]
        self._process = subprocess.Popen(
            shell,
            pass_fds=(answers, questions),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(answers)
        os.close(questions)
        self._number, self._rest, self.events = 0, b"", []
        self._session = None
        tabs = self.call("Target.getTargets")["targetInfos"]
        tab = next(one["targetId"] for one in tabs if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # else focus() may send no focus event

    def call(self, method: str, **parameters) -> dict:
        """Ask the browser for something and return its answer."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._questions, json.dumps(asked).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            assert ready, f"the browser gave no answer in {PATIENCE} seconds"
            some = os.read(self._answers, 1 << 16)
            assert some, "the browser ended"
            self._rest += some
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path, fragment: str = "") -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.as_uri() + (f"#{fragment}" if fragment else ""))
        self.until("location.protocol === 'file:' && document.readyState === 'complete'")

    def run(self, expression: str):
        """Return the value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]["exception"].get("description", found)
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(expression):
            assert time.monotonic() < end, f"not true in {PATIENCE} seconds: {expression}"

    def problems(self) -> list[str]:
        """Return the exceptions that nobody caught and the errors on the console, breaches of the page's policy too."""
        self.run("0")
        thrown = [
            one["params"]["exceptionDetails"] for one in self.events if one.get("method") == "Runtime.exceptionThrown"
        ]
        said = [one["params"] for one in self.events if one.get("method") == "Runtime.consoleAPICalled"]
        logged = [one["params"]["entry"] for one in self.events if one.get("method") == "Log.entryAdded"]
        errors = [one for one in said if one["type"] == "error"] + [one for one in logged if one["level"] == "error"]
        return [json.dumps(one) for one in (*thrown, *errors)]

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        self.run("0")
        sent = [
            one["params"]["request"]["url"] for one in self.events if one.get("method") == "Network.requestWillBeSent"
        ]
        return [address for address in sent if not address.startswith(("about:", "data:"))]

    def size(self, width: int, height: int = 900) -> None:
        """Make the window as large as this."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark, as a system does; "print" shows the page as it is printed."""
        media = "print" if scheme == "print" else ""
        features = [] if media else [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def middle(self, selector: str) -> tuple[float, float]:
        """Bring the first element that a selector finds into view and return its middle."""
        return self.run(
            f"""(() => {{
                const one = document.querySelector({json.dumps(selector)});
                one.scrollIntoView({{ block: "center", behavior: "instant" }});
                const box = one.getClientRects()[0];
                return [box.left + box.width / 2, box.top + box.height / 2];
            }})()"""
        )

    def hover(self, selector: str) -> None:
        """Put the mouse on the first element that a selector finds."""
        x, y = self.middle(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Press the mouse on the first element that a selector finds."""
        x, y = self.middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, text: str | None = None) -> None:
        """Press a key: a name (`ArrowRight`) or a character."""
        text = text or (key if len(key) == 1 else None)
        told = {"key": key, "code": key, "windowsVirtualKeyCode": CODES.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="keyDown", **told, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def picture(self, file: Path, whole: bool = False) -> None:
        """Write what is seen, or the whole page, as a PNG."""
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(told["data"]))

    def close(self) -> None:
        """End the browser, and what it started."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._questions, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        os.close(self._questions)
        os.close(self._answers)


CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

CONTRASTS = """(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const over = (...colours) => {
        for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll("article .word")].map((word) => {
        const card = getComputedStyle(word.closest("article")).backgroundColor, own = getComputedStyle(word);
        const [a, b] = [light(over(card, own.backgroundColor)), light(over(own.color))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    });
})()"""  # WCAG's contrast of each word of a page of documents, on its ground mixed over the card's
