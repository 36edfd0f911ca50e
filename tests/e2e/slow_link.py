"""Network namespaces with slow links between them: slices of workers, for a test and for bench/slices.py. Needs root."""

import json
import os
import subprocess


def run(*words):
    subprocess.run(words, check=True, capture_output=True, text=True)


class Link:
    """Namespaces that reach each other, 10.78.0.1, 10.78.0.2 and so on: two by a cable, more by a switch in a namespace of its own."""

    def __init__(self, mbit, sides=2):
        """`mbit`: what each side may send, a second; None: no limit. Raises CalledProcessError where namespaces, or the limit, cannot be
        made, and FileNotFoundError where there is no `ip` or no `tc`."""
        self.names = [f"ostro-slices-{os.getpid()}-{i + 1}" for i in range(sides)]
        self.switch = f"ostro-slices-{os.getpid()}-switch" if sides > 2 else None
        try:
            self.make(mbit)
        except (subprocess.CalledProcessError, FileNotFoundError):
            self.remove()
            raise

    def make(self, mbit):
        for name in [*self.names, *([self.switch] if self.switch else [])]:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        if self.switch:
            run("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", self.switch, "link", "set", "bridge", "up")
            for i, name in enumerate(self.names):
                run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"port{i}", "netns", self.switch)
                run("ip", "-n", self.switch, "link", "set", f"port{i}", "master", "bridge", "up")
        else:
            run("ip", "link", "add", "eth0", "netns", self.names[0], "type", "veth", "peer", "name", "eth0", "netns", self.names[1])
        for i, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"{self.address(i)}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            if mbit is not None:
                run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit", "burst", "256kb",
                    "latency", "400ms")

    def address(self, side):
        return f"10.78.0.{side + 1}"

    def start(self, side, words, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.names[side], *words], text=True, **more)

    def sent(self):
        """The bytes, headers of packets included, and the packets that all sides have sent to others so far."""
        sent = packets = 0
        for name in self.names:
            told = subprocess.run(["ip", "-n", name, "-j", "-s", "link", "show", "eth0"], check=True, capture_output=True, text=True)
            counts = json.loads(told.stdout)[0]["stats64"]["tx"]
            sent, packets = sent + counts["bytes"], packets + counts["packets"]
        return sent, packets

    def remove(self):
        for name in [*self.names, *([self.switch] if self.switch else [])]:
            try:
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
            except FileNotFoundError:  # there is no `ip`, so nothing was made
                return
