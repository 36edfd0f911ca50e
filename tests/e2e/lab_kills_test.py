#!/usr/bin/env python3
"""Tests kills of `ostro lab run` on a plan with every kind of step (lab_graph.py): of the driver, of processes of single steps, at
drawn places, with two drivers started at a time. The lab comes to the same hash as without, and no step is done twice.

    lab_kills_test.py --ostro PROGRAM [--log FILE]

In full there are 20 kills, in a sample 5.
"""
import argparse
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading

from lab_graph import Graph, GraphLab, stand_in
from program import check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

# Places in the code of steps, and in that of the driver, and how often one passes them at most before a kill.
OF_STEPS = [("data_build", 4), ("step", 2), ("chain_append", 4), ("manifest", 2), ("array_write", 6), ("fork", 3), ("amend", 2), ("tokenizer", 2)]
OF_DRIVERS = [("journal_append", 12), ("lab_step", 8)]
KINDS = ["place in a step", "place in the driver", "driver", "step"]
PER_LAB = 5
OTHER = "another process works on this lab"


class Driver:
    """`ostro lab run -j 2`, of which each line is seen as it comes."""

    def __init__(self, lab, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"PYTHONPATH": lab.package} | lab.variables | variables
        self.process = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml", "-j", "2"], cwd=lab.top, env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.errors = [], ""
        self.on_line = lambda: None
        self.threads = [threading.Thread(target=target) for target in (self.read, self.read_errors)]
        for thread in self.threads:
            thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            self.on_line()

    def read_errors(self):
        self.errors = self.process.stderr.read()

    def end(self):
        self.process.wait()
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode

    def children(self):
        try:
            return [int(pid) for pid in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()]
        except FileNotFoundError:
            return []


def kill(driver, at_line, is_step):
    """Kills the driver, or a process of one of its steps, at a line of what it prints."""
    done = []

    def on_line():
        if len(driver.lines) < at_line or done:
            return
        children = driver.children() if is_step else [driver.process.pid]
        if children:
            done.append(children[0])
            os.kill(children[0], signal.SIGKILL)

    driver.on_line = on_line


class Killed:
    """A lab that is killed several times."""

    def __init__(self, args, folder, package):
        self.lab = GraphLab(args.ostro, folder, package)
        self.lab.write(Graph())
        self.kills = collections.Counter()
        self.done = set()  # steps that a driver began and said are done

    def session(self, kind, rng):
        variables = {}
        if kind.startswith("place"):
            name, most = rng.choice(OF_STEPS if kind == "place in a step" else OF_DRIVERS)
            variables["OSTRO_FAILPOINT"] = f"{name}:{rng.randint(1, most)}"
        variables["OSTRO_THREADS"] = rng.choice("12")
        drivers = [Driver(self.lab, **variables) for _ in range(2)]
        at_line = rng.randint(4, 12)
        if not variables.get("OSTRO_FAILPOINT"):
            for driver in drivers:
                kill(driver, at_line, kind == "step")
        codes = [driver.end() for driver in drivers]
        worked = [driver for driver in drivers if OTHER not in driver.errors]
        for driver in drivers:
            check(driver in worked or driver.process.returncode == 1 and not any(line.startswith("run ") for line in driver.lines),
                  f"a driver was refused, and did something:\n{''.join(driver.lines)}{driver.errors}")
            self.look(driver)
        killed = sum(code == -9 for code in codes) + sum(driver.errors.count("(signal 9)") for driver in worked)
        self.kills[kind] += killed
        return killed

    def look(self, driver):
        """No driver finished a step that another one had finished."""
        words = [(line.split()[0], line.split()[1][:-1]) for line in driver.lines]
        finished = {step for word, step in words if word == "done" and {("run", step), ("resume", step)} & set(words)}
        check(not finished & self.done, f"{finished & self.done} were done twice:\n{''.join(driver.lines)}")
        self.done |= finished

    def finish(self, wanted):
        for _ in range(3000):  # a process of a driver that was killed may not be gone yet
            driver = Driver(self.lab)
            code = driver.end()
            if OTHER not in driver.errors:
                break
        self.look(driver)
        check(code == 0 and driver.lines[-1] == f"lab hash: {wanted}\n", f"after {dict(self.kills)}: exit code {code}\n{''.join(driver.lines)}{driver.errors}")
        times = collections.Counter(entry["fingerprint"] for entry in self.lab.entries() if entry["kind"] == "done" and '"kind":"source"' not in entry["recipe"])
        steps = [step for step, (kind, _) in Graph().steps().items() if kind != "source"]
        check(len(times) == len(steps) and set(times.values()) == {1}, f"the journal has steps that were done twice, or not: {times}")
        check(self.lab.ran("--check", "full") == ([], wanted), "a lab that is done ran steps")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-kills-") as folder:
        top = pathlib.Path(folder)
        package = stand_in(top)
        plain = GraphLab(args.ostro, top / "plain", package)
        plain.write(Graph())
        _, wanted = plain.ran()
        all_kills, number = collections.Counter(), 0
        most = 20 if seed.full() else PER_LAB
        while sum(all_kills.values()) < most:
            rng = random.Random(f"{seed.seed()} kills {number}")
            killed = Killed(args, top / f"lab{number}", package)
            kinds, sessions = rng.sample(KINDS, len(KINDS)), 0
            while sum(killed.kills.values()) < PER_LAB and sessions < 4 * PER_LAB:
                killed.session(kinds[sessions % len(kinds)], rng)
                sessions += 1
            killed.finish(wanted)
            all_kills += killed.kills
            number += 1
            check(number < most, f"only {dict(all_kills)} in {number} labs")
        line = (f"seed {seed.seed()}: {sum(all_kills.values())} kills in {number} labs, two drivers at a time: " +
                ", ".join(f"{kind} {n}" for kind, n in sorted(all_kills.items())) + f"; lab hash {wanted[:12]} each time, no step done twice")
        print(line)
        if args.log:
            with args.log.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
