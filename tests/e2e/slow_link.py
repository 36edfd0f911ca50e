"""Two network namespaces with a link between them that is slow: slices of workers, for a test and for bench/slices.py. Needs root."""

import json
import os
import subprocess


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


class Link:
    """Two namespaces, 10.78.0.1 and 10.78.0.2."""

    def __init__(self, mbit):
        """`mbit`: each way, a second; None: no limit. Raises CalledProcessError where namespaces, or the limit, cannot be made."""
        self.names = [f"ostro-slices-{os.getpid()}-{i}" for i in (1, 2)]
        try:
            self.make(mbit)
        except subprocess.CalledProcessError:
            self.remove()
            raise

    def make(self, mbit):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "eth0", "netns", self.names[0], "type", "veth", "peer", "name", "eth0", "netns", self.names[1])
        for i, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            if mbit is not None:
                run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit", "burst", "256kb",
                    "latency", "400ms")

    def start(self, slice_number, words, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.names[slice_number], *words], text=True, **more)

    def bytes(self):
        """That both ends have sent over the link so far."""
        sent = 0
        for name in self.names:
            told = subprocess.run(["ip", "-n", name, "-j", "-s", "link", "show", "eth0"], check=True, capture_output=True, text=True)
            sent += json.loads(told.stdout)[0]["stats64"]["tx"]["bytes"]
        return sent

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
