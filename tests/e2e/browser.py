"""Opens pages that are files in a browser without a window: returns the page after its script ran, a picture of it,
what it wrote to the console, and what it asked for.

Chromium looks for its maker's servers at every start; here no name has an address, so nothing leaves the machine.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import zlib

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr")


def find():
    """The program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class View:
    """A page as the browser showed it."""

    def __init__(self, page, *settings, width=700, height=700):
        with tempfile.TemporaryDirectory(prefix="ostro-browser-") as profile:
            log, picture = pathlib.Path(profile, "net.json"), pathlib.Path(profile, "page.png")
            command = [find(), *FLAGS, f"--user-data-dir={profile}", f"--log-net-log={log}", "--dump-dom",
                       f"--window-size={width},{height}", f"--screenshot={picture}", *settings]
            seen = subprocess.run([*command, page.resolve().as_uri()], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=120, check=True)
            self.dom = seen.stdout
            self.console = [line for line in seen.stderr.splitlines() if ":CONSOLE" in line]
            self.requests = self._requests(log)
            self.png = picture.read_bytes()

    @staticmethod
    def _requests(log):
        """What pages asked the network for; the browser's own wishes have no origin."""
        text = json.loads(log.read_text())
        kinds = text["constants"]["logEventTypes"]
        wishes = (event.get("params", {}) for event in text["events"] if event["type"] == kinds["URL_REQUEST_START_JOB"])
        return [wish["url"] for wish in wishes if wish.get("initiator", "not an origin") != "not an origin"]

    def count(self, colour):
        """Pixels of exactly this colour, "#2f6db5"."""
        wanted = bytes.fromhex(colour[1:])
        return sum(row.count(wanted) for row in self._rows())

    def _rows(self):
        """The picture's rows; it has 8 bits a colour."""
        header, packed, at = None, b"", 8
        while at < len(self.png):
            length, kind = struct.unpack_from(">I4s", self.png, at)
            data = self.png[at + 8:at + 8 + length]
            if kind == b"IHDR":
                header = struct.unpack(">IIBBBBB", data)
            packed += data if kind == b"IDAT" else b""
            at += 12 + length
        width, height, bits, kind, *_ = header
        size = {2: 3, 6: 4}[kind]
        assert bits == 8
        plain, before = zlib.decompress(packed), bytearray(width * size)
        for y in range(height):
            begin = y * (width * size + 1)
            row = bytearray(plain[begin + 1:begin + 1 + width * size])
            self._unfilter(plain[begin], row, before, size)
            yield row
            before = row

    @staticmethod
    def _unfilter(kind, row, above, size):
        """The filters of the PNG specification, 9.2."""
        for i in range(len(row) if kind else 0):
            a, b, c = (row[i - size], above[i], above[i - size]) if i >= size else (0, above[i], 0)
            if kind == 4:
                p = a + b - c
                guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            else:
                guess = (0, a, b, (a + b) // 2)[kind]
            row[i] = (row[i] + guess) & 255
