"""Drives a browser without a window by the DevTools protocol over two pipes: opens a page, runs script in it, presses
keys, takes pictures. The browser asks nobody but the loopback address."""
import base64
import fcntl
import json
import os
import subprocess
import tempfile
import time

import browser


class Browser:
    """One tab. `events` has what the page wrote to its console, what it threw, and what it asked the network for."""

    def __init__(self, *settings, width=900, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="ostro-browser-")
        asks, self.asked = os.pipe()
        self.answered, answers = os.pipe()
        flags = [flag for flag in browser.FLAGS if not flag.startswith("--host-resolver")]
        command = [browser.find(), *flags, f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe",
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--window-size={width},{height}", *settings, "about:blank"]
        def place_pipes():  # the protocol's are file descriptors 3 and 4; either may be one of them now, or a number that a shell does not take
            far = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (asks, answers)]
            os.dup2(far[0], 3)
            os.dup2(far[1], 4)

        self.process = subprocess.Popen(command, pass_fds=(3, 4), preexec_fn=place_pipes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(asks)
        os.close(answers)
        self.number, self.waiting, self.events, self.session = 0, b"", [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.asked, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self):
        while b"\0" not in self.waiting:
            piece = os.read(self.answered, 1 << 16)
            if not piece:
                raise RuntimeError("the browser ended")
            self.waiting += piece
        text, self.waiting = self.waiting.split(b"\0", 1)
        return json.loads(text)

    def run(self, script):
        """The value of an expression, a promise's when it is one."""
        out = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in out:
            raise RuntimeError(f"{script}: {out['exceptionDetails']}")
        return out["result"].get("value")

    def until(self, script, turns=3000):
        """Whether the expression becomes true. A page that is left while it is asked is asked again, as the next one."""
        for _ in range(turns):
            try:
                if self.run(script):
                    return True
            except RuntimeError as error:
                if "navigated" not in str(error):
                    raise
            time.sleep(0.02)
        return False

    def press(self, key, **more):
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}[key]
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code="Space" if key == " " else key, windowsVirtualKeyCode=code,
                      text=text if kind == "keyDown" else "", **more)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self):
        """Lines of the console, and what the page threw or was kept from."""
        wanted = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [event for event in self.events if event.get("method") in wanted]

    def asked_for(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(300)
        os.close(self.asked)
        os.close(self.answered)
        self.profile.cleanup()
