#!/usr/bin/env python3
"""Tests runs whose two workers and coordinator are on networks that let little through: each is in a network namespace of its own, and
all that the workers send each other passes that of the coordinator.

- Addresses of IPv6 only, and a firewall that lets one port through (trainer.worker_ports). Without the option no step is done.
- No route between the workers. One is reached at an address and port of the coordinator's machine, which a proxy leads to it, as a container
  whose ports are published (--advertise); and the coordinator's name gets its address only after the worker has begun.
- No route between the workers, which connect through the coordinator (trainer.relay: auto), with TLS, while strangers connect to it: a worker is
  killed, and then the coordinator. Without the option no step is done.

Each run has the chain of one process. Needs to make network namespaces (root); without that it is skipped, and says so.

    ports_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from program import kill_all  # noqa: E402
from workers_test import Gate, Place, check, steps_of, wait_for  # noqa: E402

PORT = 29500
SECRET = {"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "a secret of this test"}
NET = os.getpid() % 250
NAME = "late.coordinator.test"


class Skipped(Exception):
    pass


def run(*words, fail=True):
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode != 0 and fail:
        raise Skipped(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.returncode == 0


class Networks:
    """The namespaces: hub, where the coordinator is, and two with a link to it each. All go at the end."""

    def __init__(self):
        self.hub, *self.ends = (f"ostro{os.getpid()}{letter}" for letter in "hab")

    def inside(self, name, *words, fail=True):
        return run("ip", "netns", "exec", name, *words, fail=fail)

    def address(self, end, near=False, six=False):
        return f"fd77:{NET:x}:{end}::{1 if near else 2}" if six else f"10.{NET}.{end}.{1 if near else 2}"

    def __enter__(self):
        try:
            for name in (self.hub, *self.ends):
                run("ip", "netns", "add", name)
                run("ip", "-n", name, "link", "set", "lo", "up")
            for end, name in enumerate(self.ends):
                run("ip", "-n", self.hub, "link", "add", f"to{end}", "type", "veth", "peer", "name", "eth0", "netns", name)
                run("ip", "-n", self.hub, "link", "set", f"to{end}", "up")
                run("ip", "-n", name, "link", "set", "eth0", "up")
                for six in (False, True):
                    mask, kind = ("64", "-6") if six else ("24", "-4")
                    more = ["nodad"] if six else []
                    run("ip", "-n", self.hub, "addr", "add", f"{self.address(end, True, six)}/{mask}", "dev", f"to{end}", *more)
                    run("ip", "-n", name, "addr", "add", f"{self.address(end, False, six)}/{mask}", "dev", "eth0", *more)
                    run("ip", "-n", name, kind, "route", "add", "default", "via", self.address(end, True, six))
            self.forward(True)
            self.forward(False)
            self.inside(self.ends[0], "unshare", "--mount", "true")
        except Skipped as e:
            self.__exit__()
            print(f"SKIPPED: no network namespaces here: {e}")
            sys.exit(77)
        return self

    def __exit__(self, *_):
        for name in (self.hub, *self.ends):
            run("ip", "netns", "del", name, fail=False)

    def forward(self, on):
        for file in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            self.inside(self.hub, "sh", "-c", f"echo {int(on)} > /proc/sys/net/{file}")

    def let_through(self, port):
        """Only bytes to this port, and from it, pass between the two."""
        for number, words in enumerate((["dport"], ["sport"])):
            run("ip", "-n", self.hub, "-6", "rule", "add", "pref", str(100 + number), "ipproto", "tcp", *words, str(port), "lookup", "main")
        for end in (0, 1):
            run("ip", "-n", self.hub, "-6", "rule", "add", "pref", str(110 + end), "iif", f"to{end}", "to",
                f"fd77:{NET:x}:{1 - end}::/64", "prohibit")


class Job:
    """The processes of one run, each with a log of its own."""

    def __init__(self, place, net, name, options, settings=None):
        self.place, self.net, self.name, self.options = place, net, name, options
        self.env = place.environment(SECRET | (settings or {}))
        self.processes, self.logs = [], []

    def start(self, where, *command):
        self.logs.append(self.place.top / f"{self.name}-{len(self.logs)}.log")
        with self.logs[-1].open("w") as log:
            self.processes.append(subprocess.Popen(["ip", "netns", "exec", where, *command], stdout=log, stderr=log, env=self.env))
        return self.processes[-1]

    def coordinator(self, bind, port=0):
        process = self.start(self.net.hub, self.place.ostro, "coordinator", "--bind", bind, "--port", str(port), "--min_workers", "2",
                             "--max_workers", "2", *self.place.words(self.name, self.options))
        log = self.logs[-1]
        wait_for(lambda: '"listening"' in log.read_text() or process.poll() is not None)
        found = re.search(r'"port":\s*(\d+)', log.read_text())
        check(found, self.text())
        self.port = int(found[1])
        return process

    def worker(self, end, coordinator, *words, before=()):
        return self.start(self.net.ends[end], *before, self.place.ostro, "worker", "--coordinator", f"{coordinator}:{self.port}",
                          *words, *self.place.words(self.name, self.options))

    def joined(self, count):
        wait_for(lambda: self.logs[0].read_text().count('"joined"') >= count or self.processes[0].poll() is not None)

    def text(self):
        return "".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in self.logs)

    def ended(self, expected, killed=()):
        wait_for(lambda: all(p.poll() is not None for p in self.processes))
        codes = [p.poll() for p in self.processes if p not in killed]
        check(not any(codes), f"{self.name}: exit codes {codes}\n{self.text()}")
        check(self.place.chain(self.name) == expected, f"{self.name}: another chain\n{self.text()}")

    def stop(self):
        if sys.exc_info()[0] is SystemExit:
            print(self.text(), flush=True)
        kill_all(self.processes)

    def no_step(self, words):
        """The control: they do not connect, which a worker says with these words."""
        wait_for(lambda: re.search(words, self.text()) or any(p.poll() == 0 for p in self.processes))
        check(steps_of(self.place, self.name) == 0 and re.search(words, self.text()), f"{self.name} trains\n{self.text()}")


def check_six(place, net, expected):
    net.forward(True)
    net.let_through(PORT)
    for end, name in enumerate(net.ends):
        run("ip", "-n", name, "-4", "addr", "flush", "dev", "eth0")
        run("ip", "-n", net.hub, "-4", "addr", "flush", "dev", f"to{end}")
    for options in (["--trainer.worker_ports", str(PORT)], []):
        job = Job(place, net, "six" if options else "six-control", options)
        try:
            job.coordinator("::")
            for end in (0, 1):
                job.worker(end, f"[{net.address(end, True, True)}]", "--bind", "auto")
            if options:
                job.ended(expected)
            else:
                job.no_step(r"lost worker 0: connecting to it: ")
        finally:
            job.stop()
    print("addresses of IPv6 only, and one port that is let through: the same chain, and none without the option", flush=True)
    net.forward(False)
    for end, name in enumerate(net.ends):
        run("ip", "-n", net.hub, "addr", "add", f"{net.address(end, True)}/24", "dev", f"to{end}")
        run("ip", "-n", name, "addr", "add", f"{net.address(end)}/24", "dev", "eth0")
        run("ip", "-n", name, "route", "add", "default", "via", net.address(end, True))


def check_published(place, net, expected):
    job = Job(place, net, "published", ["--trainer.worker_ports", f"{PORT}-{PORT + 1}"])
    files = {name: place.top / f"{name}.file" for name in ("hosts", "nsswitch.conf")}
    files["hosts"].write_text("127.0.0.1 localhost\n")
    files["nsswitch.conf"].write_text("hosts: files\n")
    mounts = "".join(f"mount --bind {file} /etc/{name} && " for name, file in files.items() if pathlib.Path("/etc", name).exists())
    proxied = place.top / "proxied"
    try:
        job.coordinator("any")
        # The n-th port of those that are published leads to the n-th of the worker. The first to join is the one that is connected to.
        job.start(net.hub, sys.executable, __file__, "--ostro", "", "--proxy", net.address(1, True), "40000", net.address(0), str(PORT), str(proxied))
        proxy = job.processes.pop()
        first = job.worker(0, NAME, "--bind", "any", "--advertise", f"{net.address(1, True)}:40000-40001", "--wait", "300",
                           before=("unshare", "--mount", "sh", "-c", f'{mounts}exec "$@"', "sh"))
        log = job.logs[-1]
        wait_for(lambda: "the name has no address yet" in log.read_text() or first.poll() is not None)
        check(f"{NAME}" in log.read_text() and first.poll() is None, job.text())
        with files["hosts"].open("a") as hosts:  # in place: the file is mounted
            hosts.write(f"{net.address(0, True)} {NAME}\n")
        job.joined(1)
        job.worker(1, net.address(1, True), "--bind", "auto")
        job.ended(expected)
        check(proxied.exists() and proxied.read_text() == "connected\n", f"not through the published port\n{job.text()}")
    finally:
        job.stop()
        kill_all([proxy])
    print("a name that got its address late, and a published port: the same chain", flush=True)


def check_relay(place, net, expected):
    gate = Gate(place.top)
    options = ["--trainer.tls", "job", "--trainer.connect_timeout", "20s"]
    job = Job(place, net, "relay", [*options, "--trainer.relay", "auto"], {"OSTRO_FAULT": gate.fault()})
    strangers = None
    try:
        gate.at(8)
        coordinator = job.coordinator("any")
        job.worker(0, net.address(0, True), "--bind", "auto")
        job.joined(1)
        killed = job.worker(1, net.address(1, True), "--bind", "auto")
        job.start(net.hub, sys.executable, __file__, "--ostro", "", "--strangers", net.address(0, True), str(job.port))
        strangers = job.processes.pop()
        wait_for(lambda: steps_of(place, "relay") >= 4 or coordinator.poll() is not None)
        check("the coordinator relays between them" in job.text() and "1 of 1 connections go through the coordinator" in job.text(),
              f"no relay\n{job.text()}")
        killed.send_signal(signal.SIGKILL)
        gate.at(16)
        job.worker(1, net.address(1, True), "--bind", "auto")
        wait_for(lambda: steps_of(place, "relay") >= 11 or coordinator.poll() is not None)
        coordinator.kill()
        coordinator.wait()
        gate.open()
        job.coordinator("any", job.port)
        job.ended(expected, [killed, coordinator])
        check(strangers.poll() is None, "the strangers have ended")
    finally:
        job.stop()
        kill_all([strangers])
    print("through the coordinator, with TLS, strangers, a killed worker and a killed coordinator: the same chain", flush=True)
    control = Job(place, net, "relay-control", ["--trainer.connect_timeout", "1s"])
    try:
        control.coordinator("any")
        for end in (0, 1):
            control.worker(end, net.address(end, True), "--bind", "auto")
        control.no_step(r"no connection with worker \d within 1000 ms|lost worker 0: connecting")
    finally:
        control.stop()


def proxy_connections(host, port, to, to_port, file):
    """Passes on what comes to a port, as a container runtime does with published ports."""
    import threading
    listener = socket.create_server((host, int(port)))
    while True:
        near, _ = listener.accept()
        far = socket.create_connection((to, int(to_port)))
        pathlib.Path(file).write_text("connected\n")

        def carry(source, sink):
            try:
                while data := source.recv(1 << 16):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        for pair in ((near, far), (far, near)):
            threading.Thread(target=carry, args=pair, daemon=True).start()


def be_strangers(host, port):
    """Connects with garbage, silence, and requests for the relay whose proof is wrong, until it is killed."""
    rng = random.Random(3)
    relay = (137).to_bytes(4, "little") + bytes([25]) + b"".join(
        part for part in ((32).to_bytes(8, "little"), b"g" * 32, bytes(8), (1).to_bytes(8, "little"), (32).to_bytes(8, "little"), b"n" * 32,
                          (32).to_bytes(8, "little"), b"p" * 32))
    held = []
    while True:
        for text in (rng.randbytes(rng.randint(1, 3000)), relay, relay[:rng.randint(1, len(relay))], b"\x16\x03\x01", b""):
            try:
                connection = socket.create_connection((host, int(port)), timeout=1)
                connection.sendall(text)
                held = [*held[-20:], connection]
            except OSError:
                pass
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--proxy", nargs=5)
    parser.add_argument("--strangers", nargs=2)
    args = parser.parse_args()
    if args.proxy:
        proxy_connections(*args.proxy)
    if args.strangers:
        be_strangers(*args.strangers)
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        print("SKIPPED: no program ip or unshare (packages iproute2, util-linux)")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, Networks() as net:
        place = Place(str(pathlib.Path(args.ostro).resolve()), pathlib.Path(folder))
        expected = place.train("alone", [])
        check_six(place, net, expected)
        check_published(place, net, expected)
        check_relay(place, net, expected)


if __name__ == "__main__":
    main()
