#!/usr/bin/env python3
"""Tests runs in which the network of one of three workers is slow, then cut for longer than its lease, then whole
again.

The worker is in a network namespace of its own. The others continue without it, it comes back, and the chain is that of
one process. Needs to make network namespaces (root); without that it is skipped, and says so.

    network_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from program import kill_all  # noqa: E402
from workers_test import Gate, Place, check  # noqa: E402

STEPS = 2000
# A network of its own, as a run that was killed leaves its link behind.
NETWORK = f"10.213.{os.getpid() % 250}"
HERE, THERE = f"{NETWORK}.1", f"{NETWORK}.2"


def ip(*words, fail=True):
    done = subprocess.run(["ip", *words], text=True, capture_output=True, check=False)
    if done.returncode != 0 and fail:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.returncode == 0


class Namespace:
    """A namespace with one link to here; both are removed at the end."""

    def __init__(self):
        self.name = f"ostro{os.getpid()}"
        self.near, self.far = f"on{os.getpid() % 100000}", f"of{os.getpid() % 100000}"

    def __enter__(self):
        try:
            ip("netns", "add", self.name)
            ip("link", "add", self.near, "type", "veth", "peer", "name", self.far)
            ip("link", "set", self.far, "netns", self.name)
            ip("addr", "add", f"{HERE}/24", "dev", self.near)
            ip("link", "set", self.near, "up")
            ip("-n", self.name, "addr", "add", f"{THERE}/24", "dev", self.far)
            ip("-n", self.name, "link", "set", self.far, "up")
            ip("-n", self.name, "link", "set", "lo", "up")
        except OSError as e:
            self.__exit__()
            print(f"SKIPPED: no network namespaces here: {e}")
            sys.exit(77)
        return self

    def __exit__(self, *_):
        ip("link", "del", self.near, fail=False)
        ip("netns", "del", self.name, fail=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    if shutil.which("ip") is None:
        print("SKIPPED: no program ip (package iproute2)")
        sys.exit(77)
    processes = []
    with tempfile.TemporaryDirectory() as folder, Namespace() as net:
        place = Place(args.ostro, pathlib.Path(folder))
        options = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", f"[{{every: {STEPS}}}]",
                   "--trainer.mp", "f32"]
        expected = place.train("alone", options, seconds=3600)
        words = place.words("net", options)
        # The run is held a few steps ahead of what was seen: on a fast machine it would end before the worker is back.
        gate, moved = Gate(folder), 0.0
        gate.at(0)
        env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "secret", "OSTRO_FAULT": gate.fault()})
        log = place.top / "net.log"
        chain = place.top / "runs" / "net" / "chain.jsonl"

        def start(*command):
            with log.open("a") as out:
                processes.append(subprocess.Popen(command, stdout=out, stderr=out, env=env))
            return processes[-1]

        def steps():
            return chain.read_bytes().count(b'"batch"') if chain.exists() else 0

        def epochs():
            return [m.count('"rank"') for m in re.findall(r'"event":\s*"epoch".*', log.read_text())]

        def wait(what, text, seconds=300, held=True):
            nonlocal moved
            end = time.monotonic() + seconds
            while not what():
                check(time.monotonic() < end, f"{text}\n{log.read_text()[-4000:]}")
                if held and time.monotonic() > moved + 0.2:
                    gate.at(min(steps() + 3, STEPS - 50))
                    moved = time.monotonic()
                time.sleep(0.01)
        try:
            coordinator = start(place.ostro, "coordinator", "--bind", HERE, "--min_workers", "2", "--max_workers", "3", *words)
            wait(lambda: log.exists() and "listening" in log.read_text(), "no coordinator")
            port = re.search(r'"port":\s*(\d+)', log.read_text()).group(1)
            for _ in range(2):
                start(place.ostro, "worker", "--coordinator", f"{HERE}:{port}", "--bind", HERE, *words)
            # The one behind the link comes last, so that it does not lead.
            wait(lambda: log.read_text().count('"joined"') == 2, "two workers did not join")
            start("ip", "netns", "exec", net.name, place.ostro, "worker", "--coordinator", f"{HERE}:{port}", "--bind",
                  THERE, *words)
            wait(lambda: steps() > 30 and epochs()[-1] == 3, "no steps of three workers")
            slow = shutil.which("tc") is not None and subprocess.run(
                ["tc", "qdisc", "add", "dev", net.near, "root", "netem", "delay", "5ms"], capture_output=True,
                check=False).returncode == 0
            at = steps()
            wait(lambda: steps() > at + 20, "no steps over a slow link")
            print("a slow link: the run goes on" if slow else "SKIPPED in part: tc cannot make a link slow here", flush=True)
            if slow:
                subprocess.run(["tc", "qdisc", "del", "dev", net.near, "root"], check=True)
            ip("link", "set", net.near, "down")
            cut = time.monotonic()
            wait(lambda: "is lost: nothing was heard" in log.read_text() or "cannot go on" in log.read_text(),
                 "the cut was not noticed")
            at = steps()
            wait(lambda: steps() > at + 20, "the others did not go on")
            print(f"a cut link: the others went on after {time.monotonic() - cut:.1f} s", flush=True)
            ip("link", "set", net.near, "up")
            wait(lambda: (e := epochs()) and len(e) > 2 and e[-1] == 3 or coordinator.poll() is not None,
                 "the worker did not come back")
            gate.open()
            # A machine with other work may take long for all steps, but not for the next one.
            ended = lambda: all(p.poll() is not None for p in processes)  # noqa: E731
            while not ended() and (at := steps()) < STEPS:
                wait(lambda: steps() > at or ended(), f"no step after {at}", held=False)
            wait(ended, "all steps are done, and not all processes end", held=False)
            codes = [p.poll() for p in processes]
            check(codes[:3] == [0, 0, 0], f"exit codes {codes}\n{log.read_text()[-4000:]}")
            check(chain.read_bytes() == expected, f"another chain\n{log.read_text()[-4000:]}")
            check(epochs()[-1] == 3, f"it never came back: {epochs()}\n{log.read_text()[-4000:]}")
            print("the link was mended: the worker is back, the same chain", flush=True)
        finally:
            kill_all(processes)


if __name__ == "__main__":
    main()
