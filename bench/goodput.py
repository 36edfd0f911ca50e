#!/usr/bin/env python3
"""bench/goodput.py --ostro PROGRAM [--slices 3 3] [--seconds 600] [--every 60] [--back 20] [--seed 1]: what a run keeps of its time on
machines that are taken away.

`ostro coordinator` and a worker process for each place of two slices (`ostro worker --slice`), with one thread each, train a small
model. Once in every `--every` seconds, at a moment that the seed draws, a worker that it draws is killed (SIGKILL), the leader as
often as any other. `--back` seconds later another begins in its place and its slice. At the end the run is stopped by SIGTERM. Prints what
became of each kill, then the goodput by cause as `ostro status --json` gives it. At least 90 % is the goal. Then `ostro train` does as
many steps undisturbed, which takes about as long again, and its chain must be the same.
Exit 1 if the goal is missed, the chain is another one, or a worker did not come back."""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_matrix import kill_all  # noqa: E402
from workers_test import Place  # noqa: E402

GOAL = 0.9
RUN, ALONE = "spot", "undisturbed"
OPTIONS = ["--model.hidden_dim", "128", "--model.intermediate_dim", "512", "--model.num_layers", "4", "--trainer.mp", "f32",
           "--trainer.train_batch_size", "12", "--trainer.num_train_steps", "1000000",
           "--trainer.checkpointer.keep", "[{every: 1000000}]", "--trainer.stop_timeout", "2m"]
PATIENCE = 120  # seconds, for what must happen

Seen = collections.namedtuple("Seen", "goodput seconds steps kills joined same")
Kill = collections.namedtuple("Kill", "at draw")  # seconds after the first steps; which of the workers that are alive then, from 0 to 1


def schedule(seconds, every, seed):
    """The kills, one in each piece of `every` seconds, in the middle half of it."""
    rng = random.Random(seed)
    return [Kill(every * (number + rng.uniform(0.25, 0.75)), rng.random()) for number in range(int(seconds // every))]


class Spot:
    """A run with its coordinator and workers."""

    def __init__(self, place, sizes):
        self.place, self.log = place, place.top / "spot.log"
        self.events_file = place.top / "spot.events"
        self.env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "of the spot market"})
        self.words = place.words(RUN, OPTIONS)
        self.workers = []  # (process, slice), those that nobody has killed
        with self.events_file.open("wb") as out, self.log.open("ab") as err:
            self.coordinator = subprocess.Popen(
                [place.ostro, "coordinator", "--min_workers", "1", "--max_workers", str(sum(sizes)), *self.words],
                env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.port = self.wait(lambda: self.events("listening"), "the coordinator's port")[0]["port"]

    def events(self, name):
        lines = self.events_file.read_text().splitlines(keepends=True)
        return [event for event in map(json.loads, (line for line in lines if line.endswith("\n"))) if event["event"] == name]

    def wait(self, what, name, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not (found := what()):
            if self.coordinator.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"waited in vain for {name}\n{self.log.read_text()[-4000:]}")
            time.sleep(0.01)
        return found

    def start(self, slice_name):
        with self.log.open("ab") as out:
            process = subprocess.Popen([self.place.ostro, "worker", "--coordinator", f"127.0.0.1:{self.port}", "--slice", slice_name,
                                        *self.words], env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.workers.append((process, slice_name))

    def kill(self, draw):
        """Kills one; its slice."""
        process, slice_name = self.workers.pop(int(draw * len(self.workers)))
        if process.poll() is not None:
            raise RuntimeError(f"a worker ended by itself with {process.returncode}\n{self.log.read_text()[-4000:]}")
        process.kill()
        process.wait()
        return slice_name

    def chain(self):
        path = self.place.top / "runs" / RUN / "chain.jsonl"
        return path.read_bytes() if path.exists() else b""

    def stop(self):
        self.coordinator.send_signal(signal.SIGTERM)
        codes = [process.wait(PATIENCE) for process in (self.coordinator, *(worker for worker, _ in self.workers))]
        if any(code not in (0, 75) for code in codes):
            raise RuntimeError(f"exit codes {codes}\n{self.log.read_text()[-4000:]}")

    def end(self):
        kill_all([self.coordinator, *(worker for worker, _ in self.workers)])


def disturbed(spot, sizes, args, say):
    """Trains for `seconds`, and kills; how many were killed, and came back."""
    for number, size in enumerate(sizes):
        for _ in range(size):
            spot.start(f"slice-{number}")
    spot.wait(lambda: [e for e in spot.events("epoch") if len(e["members"]) == sum(sizes)], "an epoch with all workers")
    at = len(spot.chain())
    spot.wait(lambda: len(spot.chain()) > at, "a step")
    begin, kills, absent = time.monotonic(), schedule(args.seconds, args.every, args.seed), []
    count = len(kills)
    while (now := time.monotonic() - begin) < args.seconds:
        if kills and now >= kills[0].at:
            at, lost = len(spot.chain()), len(spot.events("lost"))
            killed, slice_name = time.monotonic(), spot.kill(kills.pop(0).draw)
            absent.append((now + args.back, slice_name))
            spot.wait(lambda: len(spot.events("lost")) > lost, "the coordinator's word that a worker is lost")
            noticed, at = time.monotonic() - killed, len(spot.chain())
            spot.wait(lambda: len(spot.chain()) > at, "a step after a kill")
            say(f"{now:5.0f} s: a worker of {slice_name} is killed: noticed after {1000 * noticed:.0f} ms, the next step after "
                f"{time.monotonic() - killed:.2f} s")
        elif absent and now >= absent[0][0]:
            spot.start(absent.pop(0)[1])
        else:
            time.sleep(0.02)
    joined = len(spot.events("joined")) - sum(sizes)
    wanted = count - len(absent)
    if joined < wanted:  # one that began just now
        spot.wait(lambda: len(spot.events("joined")) - sum(sizes) >= wanted, "workers that come back")
    spot.stop()
    return count, wanted


def undisturbed(place, chain):
    """Whether a run of one process begins with these lines."""
    lines = chain.count(b"\n")
    path = place.top / "runs" / ALONE / "chain.jsonl"
    with (place.top / "undisturbed.log").open("wb") as log:
        process = subprocess.Popen([place.ostro, "train", *place.words(ALONE, OPTIONS)], env=place.environment({}),
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") >= lines):
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    return path.exists() and path.read_bytes().startswith(chain)


def measure(ostro, sizes, args, say):
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(ostro), pathlib.Path(folder))
        spot = Spot(place, sizes)
        try:
            kills, joined = disturbed(spot, sizes, args, say)
        finally:
            spot.end()
        status = json.loads(place.run(["status", str(place.top / "runs" / RUN), "--json"]).stdout)["goodput"]
        same = undisturbed(place, spot.chain())
        return Seen(status["goodput"], status["seconds"], status["steps"], kills, joined, same)


def causes(seen):
    whole = sum(seen.seconds.values())
    return ", ".join(f"{cause} {seconds:.1f} s ({100 * seconds / whole:.2f} %)" for cause, seconds in seen.seconds.items() if seconds > 0.005)


def report(bench):
    """The part goodput of scripts/bench.sh."""
    args = argparse.Namespace(seconds=180 if bench.quick else 600, every=60, back=20, seed=1)
    with bench.section("Goodput on machines that are taken away"):
        try:
            seen = measure(bench.benches.parent / "ostro" / "cli" / "ostro", [3, 3], args, print)
        except RuntimeError as error:
            bench.failed.append(str(error))
            return
        if not seen.same:
            bench.failed.append("the chain is another one than that of an undisturbed run")
        bench.goal(f"6 workers in 2 slices, one killed every {args.every} s, back after {args.back} s", f">= {100 * GOAL:.0f} %",
                   f"{100 * seen.goodput:.1f} %", seen.goodput >= GOAL,
                   f"{seen.kills} kills in {args.seconds} s, {seen.steps} steps: {causes(seen)}; the chain of an undisturbed run")
        bench.table(["case", "goal", "seen", "held", "settings"], bench.goals)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--slices", type=int, nargs="+", default=[3, 3], help="workers of each slice")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=float, default=60, help="seconds in which there is one kill")
    parser.add_argument("--back", type=float, default=20, help="seconds from a kill to the worker that takes the place")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    try:
        seen = measure(args.ostro, args.slices, args, lambda line: print(line, flush=True))
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    print(f"{seen.kills} kills, {seen.joined} came back, {seen.steps} steps")
    print(f"goodput {100 * seen.goodput:.1f} % (goal: at least {100 * GOAL:.0f} %): {causes(seen)}")
    print("the chain of an undisturbed run" if seen.same else "FAILED: another chain than that of an undisturbed run")
    sys.exit(0 if seen.same and seen.goodput >= GOAL else 1)


if __name__ == "__main__":
    main()
