#!/usr/bin/env python3
"""Tests `ostro coordinator` and `ostro worker` as processes of their own, started from the command line.

A run with them has the chain of `ostro train`, the coordinator reports each event as a line of JSON, and it keeps what workers
write to standard error. What cannot
work is one clear error: a port in use, two coordinators on one run, an address of other machines without a secret, no
coordinator, a host that cannot be reached, numbers of workers that make no sense.

    coordinator_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

from program import kill_all
from workers_test import Gate, Place, check, steps_of, wait_for

SECRET = {"OSTRO_JOB_SECRET": "s3cret", "OSTRO_THREADS": "1"}
OPTIONS = ["--trainer.num_train_steps", "150", "--trainer.checkpointer.keep", "[{every: 100}]"]


class Coordinator:
    def __init__(self, place, run, more):
        self.log = place.top / f"{run}.events"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [place.ostro, "coordinator", "--min_workers", "2", *more,
                 *place.words(run, OPTIONS)], env=place.environment(SECRET), stdout=log, stderr=subprocess.DEVNULL)
        self.port = wait_for(lambda: self.events("listening"))[0]["port"]

    def events(self, name):
        lines = self.log.read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] == name]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)


def worker_words(place, run, port):
    return [place.ostro, "worker", "--coordinator", f"127.0.0.1:{port}", *place.words(run, OPTIONS)]


def start_worker(place, run, port, gate):
    return subprocess.Popen(worker_words(place, run, port), env=place.environment(SECRET | {"OSTRO_FAULT": gate.fault()}),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check_run(place):
    """Two workers, a third that joins and leaves again, one that is killed, and one that takes its place, which is
    stopped for longer than its lease."""
    reference = place.train("alone", OPTIONS)
    coordinator = Coordinator(place, "run", ["--max_workers", "3"])
    workers, gate = [], Gate(place.top)
    allowed, since = 0, time.monotonic()
    gate.at(allowed)

    def start():
        workers.append(start_worker(place, "run", coordinator.port, gate))
        return workers[-1]

    def wait_in_training(what):
        """Waits while the run does a few steps in a second, so that it lasts: an epoch begins between two steps."""
        def look():
            nonlocal allowed, since
            if steps_of(place, "run") >= allowed - 1 and time.monotonic() > since + 0.3:
                allowed, since = allowed + 1, time.monotonic()
                gate.at(allowed)
            return what()
        return wait_for(look)

    def epoch_of(wanted):
        """Waits for an epoch of these workers, and for a step in it."""
        pids = {w.pid for w in wanted}
        wait_for(lambda: pids <= {e["pid"] for e in coordinator.events("joined")})
        found = wait_in_training(lambda: [e for e in coordinator.events("epoch") if {m["pid"] for m in e["members"]} == pids])
        check([m["rank"] for m in found[-1]["members"]] == list(range(len(wanted))), f"ranks: {found[-1]}")
        at = steps_of(place, "run")
        wait_in_training(lambda: steps_of(place, "run") > at)

    try:
        first, second = start(), start()
        epoch_of([first, second])
        third = start()
        epoch_of([first, second, third])
        third.send_signal(signal.SIGTERM)
        wait_in_training(lambda: third.poll() is not None)
        check(third.returncode == 77, f"the third worker ended with {third.returncode}")
        check([e["pid"] for e in wait_for(lambda: coordinator.events("left"))] == [third.pid], "another left")
        epoch_of([first, second])
        second.kill()
        lost = wait_for(lambda: coordinator.events("lost"))[0]
        check((lost["host"], lost["pid"]) == (socket.gethostname(), second.pid) and "conne" in lost["why"],
              f"lost is {lost}")
        fourth = start()
        epoch_of([first, fourth])
        fourth.send_signal(signal.SIGSTOP)
        check(wait_for(lambda: coordinator.events("silent"))[0]["pid"] == fourth.pid, "another is silent")
        epochs = len(coordinator.events("epoch"))
        fourth.send_signal(signal.SIGCONT)  # nobody killed it, so it comes back
        gate.open()
        wait_for(lambda: len(coordinator.events("epoch")) > epochs)
        for worker in (first, fourth):
            check(worker.wait(timeout=300) == 0, f"a worker ended with {worker.returncode}")
        check({e["pid"] for e in coordinator.events("joined")} == {w.pid for w in workers}, "others joined")
    finally:
        kill_all(workers)
    check(coordinator.process.wait(timeout=120) == 0 and coordinator.events("finished")[0]["status"] == 0,
          f"the coordinator ended with {coordinator.process.returncode}")
    check(place.chain("run") == reference, "another chain")
    # A worker has one file, and may go on in that of one that has ended; who writes nothing has none.
    logs = list((place.top / "runs" / "run" / "stderr").iterdir())
    check(logs and {log.name for log in logs} <= {f"{re.sub('[^A-Za-z0-9_.-]', '_', socket.gethostname())}-{n}.log" for n in range(len(workers))}, logs)
    kept = "".join(log.read_text() for log in logs)
    pids = "|".join(str(worker.pid) for worker in workers)
    check(all(re.match(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ ({pids}) .", line) for line in kept.splitlines()), kept)
    check(re.search(rf" {first.pid} .*M parameters", kept), kept)
    print("four workers, one left, one killed: the chain of one process, and every event was told")


def check_errors(place):
    coordinator = Coordinator(place, "errors", ["--max_workers", "2"])
    numbers = ["--min_workers", "1", "--max_workers", "1"]

    def error(words, wanted, code, settings=SECRET):
        done = subprocess.run([place.ostro, *words], env=place.environment(settings), text=True, timeout=300,
                              capture_output=True, check=False)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        check(done.returncode == code and len(errors) == 1 and re.search(wanted, errors[0]),
              f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")

    try:
        error(["coordinator", *numbers, "--port", str(coordinator.port), *place.words("other", [])],
              rf"cannot listen at 127\.0\.0\.1:{coordinator.port}: Address already in use; choose another port", 1)
        error(["coordinator", *numbers, *place.words("errors", [])],
              rf"coordinator\.journal\.lock: locked by a coordinator, pid {coordinator.process.pid}", 1)
        error(["coordinator", *numbers, "--bind", "0.0.0.0", *place.words("other", [])], "without a secret", 2, {})
        error(["coordinator", *numbers, "--bind", "somewhere", *place.words("other", [])], "host 'somewhere'", 2)
        error(["coordinator", "--min_workers", "3", "--max_workers", "2", *place.words("other", [])],
              "--min_workers 3 --max_workers 2", 2)
        (place.top / "no.journal").write_text("something else")
        error(["coordinator", *numbers, "--journal", str(place.top / "no.journal"), *place.words("other", [])],
              r"no\.journal is not a journal of a coordinator", 1)
        error(["worker", "--coordinator", "no-such-host.invalid:1", "--wait", "1", *place.words("errors", [])],
              "the coordinator at no-such-host.invalid:1: host 'no-such-host.invalid': ", 1)
        error(["worker", "--coordinator", "256.0.0.1:1", *place.words("errors", [])], "host '256.0.0.1'", 2)
        error(["worker", "--coordinator", f"127.0.0.1:{coordinator.port}", *place.words("errors", [])],
              "the secret is wrong", 2, {"OSTRO_JOB_SECRET": "another"})
    finally:
        coordinator.end()
    # Nobody listens there now, and the worker gives up.
    error(["worker", "--coordinator", f"127.0.0.1:{coordinator.port}", "--wait", "1", *place.words("errors", [])],
          rf"no coordinator at 127\.0\.0\.1:{coordinator.port}: Connection refused", 1)
    print("what cannot work: one clear error each")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        check_errors(place)
        check_run(place)


if __name__ == "__main__":
    main()
