#!/usr/bin/env python3
"""Tests runs whose processes encrypt what they send each other (trainer.tls: job).

`ostro launch local` trains on three workers while strangers connect to every port on which one of its processes listens,
for the whole run: with garbage, with a request of HTTP, with TLS 1.2, with TLS 1.3 without a certificate and with one of
their own, and with the bytes of a real worker that were recorded before. The chain is that of a run without TLS, in one epoch: no
step is lost. A worker without TLS and one of another job are refused by name. What a worker sends can be read on the way
without TLS, and cannot with it. With OSTRO_TEST_SIZE=full workers in slices, of which one is lost, train with TLS, too.

    tls_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import re
import random
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from program import kill_all
from workers_test import Gate, Place, check, wait_for, workers_of

JOB_SECRET = "a s3cret that is long enough"
SECRET = {"OSTRO_JOB_SECRET": JOB_SECRET, "OSTRO_THREADS": "1"}
TLS = ["--trainer.tls", "job"]
MOST_OF_A_PORT = 60  # connections to a worker that is not taken in yet: the system keeps no more than some hundred waiting


def listening_ports(pids):
    """The ports of this machine at which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
                if found:
                    inodes.add(found[1])
        except OSError:  # it has ended
            pass
    ports = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in inodes:
            address, port = words[1].split(":")
            host = socket.inet_ntoa(int(address, 16).to_bytes(4, "little"))
            ports.add((host, int(port, 16)))
    return ports


def own_certificate(folder):
    """A certificate that a stranger has made, with the name of a job's authority."""
    key, certificate = folder / "stranger.key", folder / "stranger.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                    "-subj", "/CN=ostro job"], check=True, capture_output=True)
    return key, certificate


class Strangers(threading.Thread):
    """Connects to all ports of a run, again and again, until it is stopped."""

    def __init__(self, launcher, run, port, recorded, certificate):
        super().__init__(daemon=True)
        self.launcher, self.run_id, self.port, self.recorded, self.certificate = launcher, run, port, recorded, certificate
        self.rng = random.Random(5)
        self.met = {}  # (host, port) -> connections
        self.limited, self.stopped = True, False

    def kinds(self):
        def plain(text):
            return lambda connection: connection.sendall(text)

        def secure(newest, certificate):
            def talk(connection):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, newest
                if certificate:
                    context.load_cert_chain(certfile=certificate[1], keyfile=certificate[0])
                connection.settimeout(20)
                if connection.getpeername()[1] == self.port:  # the coordinator first says that it speaks TLS
                    connection.recv(4 + 1 + 8 + 32, socket.MSG_WAITALL)
                else:
                    connection.settimeout(0.1)  # a worker at the gate does not answer
                with context.wrap_socket(connection) as wrapped:
                    wrapped.sendall(b"let me in")
                    wrapped.recv(100)
            return talk
        return [plain(self.rng.randbytes(self.rng.randint(1, 3000))), plain(b"GET /metrics HTTP/1.1\r\n\r\n"),
                plain(b"ostropr1" + self.rng.randbytes(40)), plain(self.recorded),
                secure(ssl.TLSVersion.TLSv1_2, None), secure(ssl.TLSVersion.TLSv1_3, None),
                secure(ssl.TLSVersion.TLSv1_3, self.certificate)]

    def run(self):
        while not self.stopped:
            for place in listening_ports([self.launcher, *workers_of(self.run_id)]):
                for talk in self.kinds():
                    if self.limited and self.met.get(place, 0) >= MOST_OF_A_PORT:
                        break
                    self.met[place] = self.met.get(place, 0) + 1
                    try:
                        with socket.create_connection(place, timeout=0.2) as connection:
                            talk(connection)
                    except OSError:  # it is closed: as it should be
                        pass
            time.sleep(0.02)


class Recorder(threading.Thread):
    """Stands between a worker and the coordinator, passes all on, and keeps what the worker says."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.to, self.said = self.listener.getsockname()[1], port, b""
        self.start()

    def run(self):
        near, _ = self.listener.accept()
        far = socket.create_connection(("127.0.0.1", self.to))

        def back():
            try:
                while data := far.recv(65536):
                    near.sendall(data)
                near.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        threading.Thread(target=back, daemon=True).start()
        try:
            while data := near.recv(65536):
                self.said += data
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def ask_to_join(place, run, port, more, wanted, secret=JOB_SECRET):
    """A worker that is refused with these words. Returns what it has said."""
    recorder = Recorder(port)
    done = subprocess.run([place.ostro, "worker", "--coordinator", f"127.0.0.1:{recorder.port}", *place.words(run, more)],
                          env=place.environment(SECRET | {"OSTRO_JOB_SECRET": secret}), text=True, capture_output=True, check=False)
    check(done.returncode not in (0, 75) and re.search(wanted, done.stderr),
          f"{more}: exit code {done.returncode}, not '{wanted}'\n{done.stderr}")
    return recorder.said


def launch(place, run, options, gates):
    faults = ",".join([f"connect:*:*:gate={gates[0].file}", gates[1].fault()])
    return subprocess.Popen([place.ostro, "launch", "local", "--workers", "3", *place.words(run, options)],
                            env=place.environment(SECRET | {"OSTRO_FAULT": faults}), text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def check_run(place, expected):
    gates = []
    for name in ("connect", "steps"):
        (place.top / name).mkdir()
        gates.append(Gate(place.top / name))
        gates[-1].at(0)
    process = launch(place, "secure", TLS, gates)
    strangers = None
    try:
        workers = wait_for(lambda: len(workers_of("secure")) == 3 and workers_of("secure"))
        port = int(next(iter(workers.values()))[3].rpartition(":")[2])
        recorded = ask_to_join(place, "secure", port, [*TLS, "--trainer.seed", "1"], r"'trainer\.seed' is '1' on")
        check(len(recorded) > 1000 and b"trainer.seed" not in recorded, "what a worker says with TLS can be read")
        ask_to_join(place, "secure", port, [], r"takes only connections with TLS, .*trainer\.tls: job")
        ask_to_join(place, "secure", port, TLS, "certificate is not of this job .*OSTRO_JOB_SECRET", secret="another that is long enough")
        ask_to_join(place, "secure", port, TLS, "a secret that is hard to guess, and OSTRO_JOB_SECRET has 6 bytes", secret="s3cret")
        # All workers listen, and wait at the gate before they connect with each other.
        strangers = Strangers(process.pid, "secure", port, recorded, own_certificate(place.top))
        strangers.start()
        wait_for(lambda: sum(count >= 7 for count in strangers.met.values()) >= 4 or process.poll() is not None
                 or not strangers.is_alive())
        check(process.poll() is None and strangers.is_alive(), "the run, or the strangers, have ended")
        strangers.limited = False
        gates[0].at(1)
        for step in (5, 15):
            before = sum(strangers.met.values())
            gates[1].at(step)
            wait_for(lambda: sum(strangers.met.values()) > before + 20)
        gates[1].open()
        out, _ = process.communicate(timeout=300)
    finally:
        if strangers:
            strangers.stopped = True
            strangers.join()
        kill_all([process])
    check(process.returncode == 0, f"exit code {process.returncode}\n{out}")
    check(place.chain("secure") == expected, f"another chain\n{out}")
    state = json.loads((place.top / "runs" / "secure" / "cluster.json").read_text())
    check(state["epoch"] == 1 and "is lost" not in out and "takes its place" not in out, f"{state}\n{out}")
    print(f"{sum(strangers.met.values())} connections of strangers to {len(strangers.met)} ports: one epoch, the same chain")


def check_slices(place, expected):
    """Two slices with several connections a pair. A worker is lost while what crosses is on its way beside the leaves (only slices have
    this place), so that its successor shakes hands, too."""
    once = place.top / "slices.once"
    once.mkdir()
    out = place.launch_together("slices", 3, ["--min_workers", "2", "--slices", "2:1", *TLS, "--trainer.mesh.slice_connections", "2"],
                                SECRET | {"OSTRO_FAULT": "overlap:9:2:kill", "OSTRO_FAULT_ONCE": str(once)})
    check(len(list(once.iterdir())) == 1, f"no worker was lost\n{out}")
    check(place.chain("slices") == expected, f"slices: another chain\n{out}")
    print("two slices with TLS, one worker lost in mid-step: the same chain", flush=True)


def check_without(place, expected):
    """The control: the same words without TLS can be read on their way."""
    gates = []
    for name in ("connect-open", "steps-open"):
        (place.top / name).mkdir()
        gates.append(Gate(place.top / name))
    gates[1].at(3)
    process = launch(place, "open", [], gates)
    try:
        workers = wait_for(lambda: len(workers_of("open")) == 3 and workers_of("open"))
        port = int(next(iter(workers.values()))[3].rpartition(":")[2])
        said = ask_to_join(place, "open", port, ["--trainer.seed", "1"], r"'trainer\.seed' is '1' on")
        check(b"trainer.seed" in said, "what a worker says without TLS cannot be read")
        ask_to_join(place, "open", port, TLS, r"it has no TLS, .*trainer\.tls: job")
        gates[1].open()
        out, _ = process.communicate(timeout=300)
    finally:
        kill_all([process])
    check(process.returncode == 0 and place.chain("open") == expected, f"exit code {process.returncode}, or another chain\n{out}")
    done = subprocess.run([place.ostro, "train", *place.words("wrong", ["--trainer.tls", "yes please"])], env=place.environment({}),
                          text=True, capture_output=True, check=False)
    check(done.returncode != 0 and 'trainer.tls: "yes please" is neither job nor null' in done.stderr, done.stderr)
    done = subprocess.run([place.ostro, "coordinator", "--min_workers", "1", "--max_workers", "1", *place.words("open", TLS)],
                          env=place.environment({}), text=True, capture_output=True, check=False)
    check(done.returncode != 0 and "needs the job's secret" in done.stderr, done.stderr)
    print("without TLS: the same chain, words that can be read, and errors that name the option")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(pathlib.Path(args.ostro).resolve()), pathlib.Path(folder))
        expected = place.train("alone", [])
        check_run(place, expected)
        check_without(place, expected)
        if os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample":
            check_slices(place, expected)


if __name__ == "__main__":
    main()
