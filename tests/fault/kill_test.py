#!/usr/bin/env python3
"""Kills runs with SIGKILL at named places and at random times; the finished chain must equal that of an undisturbed
run, byte for byte, and so must the names of the checkpoints.

    kill_test.py --ostro BINARY [--seed N]
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed
from harness import Failure, Workspace, check, killed, wait_for

STEPS, EVERY = 60, 5
TENSORS = 27  # parameters and two moments of the model in harness.py
BY_TIME = 8
# The highest count that surely fires while one checkpoint and its steps are still to come.
HIGHEST = {"step": EVERY, "snapshot": 1, "array_write": TENSORS, "manifest": 1, "chain_append": EVERY,
           "data_build": 2, "resume": TENSORS}


class KillTest:
    def __init__(self, workspace, rng):
        self.w, self.rng = workspace, rng
        self.events = []   # what was killed where
        self.fired = {}    # kills by phase
        self.rounds = 0    # runs begun
        self.name = None

    def reference(self):
        self.w.train(self.w.config("undisturbed", STEPS, EVERY))  # compiles the kernels
        begin = time.monotonic()
        self.w.train(self.w.config("undisturbed2", STEPS, EVERY))
        self.seconds = time.monotonic() - begin
        check(self.w.chain("undisturbed") == self.w.chain("undisturbed2"), "two undisturbed runs differ")

    def begin(self):
        self.rounds += 1
        self.name = f"killed{self.rounds}"
        self.config = self.w.config(self.name, STEPS, EVERY)

    def compare(self):
        """The current run, finished, against the reference."""
        check(self.w.chain(self.name) == self.w.chain("undisturbed"),
              f"{self.name}: its chain differs from the undisturbed run's after {self.events}")
        ours, theirs = self.w.checkpoints(self.name), self.w.checkpoints("undisturbed")
        check(ours == theirs, f"{self.name}: checkpoints {ours}, undisturbed {theirs}")

    def finish(self):
        self.w.train(self.config)
        self.compare()

    def record(self, phase, text):
        self.fired[phase] = self.fired.get(phase, 0) + 1
        self.events.append(text)
        print(f"  {len(self.events):3}  {self.name}  {text}", flush=True)

    def kill_at(self, phase, count=None):
        """A kill at a failpoint that must fire."""
        store_is_done = (self.w.root / f"cache-{self.name}" / "ledger.json").exists()
        # A new run where this one has nothing left to kill.
        if phase == "data_build":
            if store_is_done:
                self.finish()
                self.begin()
        elif phase == "resume":
            if self.w.newest_step(self.name) == 0:
                self.kill_at("snapshot", 2)  # which waits for the save before it
        elif self.w.newest_step(self.name) >= STEPS - 2 * EVERY:
            self.finish()
            self.begin()
        count = count or self.rng.randint(1, HIGHEST[phase])
        before = self.w.newest_step(self.name)
        status, out, err = self.w.run("train", "--config", self.config, env={"OSTRO_FAILPOINT": f"{phase}:{count}"})
        check(killed(status), f"{phase}:{count} did not fire: exit status {status}\n{out}{err}")
        after = self.w.newest_step(self.name)
        check(after >= before, f"{phase}:{count}: the newest checkpoint was of step {before}, now {after}")
        self.record(phase, f"{phase}:{count} (checkpoint of step {after})")

    def kill_by_time(self):
        delay = self.rng.uniform(0.0, 0.9) * self.seconds
        process = self.w.start("train", "--config", self.config)
        time.sleep(delay)
        process.kill()
        out, err = process.communicate()
        check(process.returncode in (0, -signal.SIGKILL), f"exit status {process.returncode}\n{out}{err}")
        if killed(process.returncode):
            self.record("time", f"after {delay:.3f} s (checkpoint of step {self.w.newest_step(self.name)})")
        else:  # it was faster than the reference
            self.compare()
            self.begin()

    def run(self):
        self.reference()
        self.begin()
        # In an unfinished store, and again in the one that resumes it.
        for count in (1, 2, 1):
            self.kill_at("data_build", count)
        plan = [(p,) for p in ("step", "snapshot", "array_write", "manifest", "chain_append") for _ in range(2)]
        plan += [("resume", "resume"), ("manifest", "resume"), ("chain_append", "resume", "step"), ("data_build",)]
        plan += [("time",)] * (BY_TIME - 1) + [("time", "resume")]
        self.rng.shuffle(plan)
        for group in plan:
            for phase in group:
                if phase != "time":
                    self.kill_at(phase)
                    continue
                wanted = self.fired.get("time", 0) + 1
                while self.fired.get("time", 0) < wanted:
                    self.kill_by_time()
        # The entry of a checkpoint, torn: the line after those of the steps.
        self.finish()
        self.begin()
        self.kill_at("chain_append", EVERY + 1)
        self.finish()
        print(self.w.good("verify", f"runs/{self.name}").strip())
        for phase in HIGHEST:
            check(self.fired.get(phase, 0) >= 2, f"{self.fired.get(phase, 0)} kills in phase {phase}")
        check(len(self.events) >= 20, f"{len(self.events)} kills")


def stopped_run(w, name, config, stops, every):
    """SIGTERM twice: the state is saved, the status is 75; the same command goes on."""
    for wanted in stops:
        process = w.start("train", "--config", config, env={"OSTRO_EXECUTOR": "interpreter"})
        wait_for(lambda: w.chain_lines(name) > wanted, 120, f"step {wanted}")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=120)
        check(process.returncode == 75, f"SIGTERM: exit status {process.returncode}\n{out}{err}")
        step = w.newest_step(name)
        kind, _ = w.checkpoints(name)[f"step-{step:08}"]
        check(step >= wanted and kind == ("temporary" if step % every else "permanent"),
              f"SIGTERM after step {wanted}: the newest checkpoint is of step {step}, {kind}")
        print(f"  SIGTERM: saved after step {step}, exit status 75")
    text = w.train(config)
    check(f"after step {step}" in text, f"did not go on after step {step}:\n{text}")


def clocked_run(w, name, config, every):
    """A kill when the newest checkpoint is one by the wall clock."""
    process = w.start("train", "--config", config, env={"OSTRO_EXECUTOR": "interpreter"})

    def by_clock():
        return any(kind == "temporary" and d[5:].isdigit() and int(d[5:]) % every for d, (kind, _) in w.checkpoints(name).items())

    wait_for(by_clock, 120, "a checkpoint by the clock")
    process.kill()
    process.communicate()
    check(killed(process.returncode), "the run ended before its kill")
    step = w.newest_step(name)
    print(f"  killed with a checkpoint by the clock, of step {step}")
    text = w.train(config)
    check(f"after step {step}" in text, f"did not go on after step {step}:\n{text}")


def slow_runs(w):
    """On the interpreter, slow enough to be stopped in the middle; their chains are those of a compiled run."""
    steps, every = 500, 300  # more than a save interval on a fast machine
    w.train(w.config("whole", steps, every))
    stopped_run(w, "stopped", w.config("stopped", steps, every), (15, 30), every)
    keep = {"keep": [{"every": every}], "save_interval": "1s"}
    clocked_run(w, "clocked", w.config("clocked", steps, every, trainer__checkpointer=keep), every)
    for name in ("stopped", "clocked"):
        check(w.chain(name) == w.chain("whole"), f"{name}: its chain differs from the undisturbed run's")


def amended_runs(w):
    """--amend after a kill, killed again around it: every chain is that of an amend that nobody disturbed."""
    def urls(numbers):
        return {"train_urls": [f"corpus/{i:02}.txt" for i in numbers], "validation_fraction": 0.2}

    def config(name, steps, weights, **changes):
        return w.config(name, steps, EVERY, data__cache_dir="cache-amended", data__train_urls=[],
                        data__components={"a": urls(range(5)), "b": urls(range(5, 9))}, data__mixture_block_size=16,
                        data__train_weights=weights, **changes)

    def begin(name):
        status, out, err = w.run("train", "--config", config(name, 30, {"a": 0.75, "b": 0.25}),
                                 env={"OSTRO_FAILPOINT": "snapshot:3"})  # waits for the save before it
        check(killed(status), f"snapshot:3 did not fire: exit status {status}\n{out}{err}")
        return config(name, 24, [[0, {"a": 0.25, "b": 0.75}], [18, {"a": 1, "b": 0}]],
                      trainer__train_batch_size=[[0, 12], [20, 6]], optimizer__learning_rate=0.001,
                      optimizer__beta2=0.99)

    w.bad("train", "--amend", "--config", config("none", 30, {"a": 1, "b": 0}), says=["holds no run to amend"])
    amended = begin("amended")
    w.bad("train", "--config", amended, says=["data.train_weights", "optimizer.learning_rate", "after step 10", "--amend"])
    w.bad("train", "--amend", "--config", amended, "--model.hidden_dim", "32",
          says=["model.hidden_dim is 16 there and 32 here", "shapes of the trained parameters"])
    w.train(amended, "--amend")
    places = [["amend:1"], ["amend:2"], ["amended_config:1"], ["chain_append:1"], ["chain_append:2"], ["resume:5"], ["manifest:1"],
              ["amend:2", "resume:5", "step:4"], []]  # the last one on three workers
    for i, points in enumerate(places):
        name = f"amended{i}"
        begin(name)
        for point in points:
            status, out, err = w.run("train", "--amend", "--config", f"{name}.yaml", env={"OSTRO_FAILPOINT": point})
            check(killed(status), f"{point} did not fire: exit status {status}\n{out}{err}")
            w.verdict("incomplete", f"runs/{name}", says=["chain.jsonl ends at step"])
        if points in (["amend:2"], ["amended_config:1"]):  # the chain is amended: its own configuration goes on, too
            shutil.copytree(w.root / "runs" / name, w.root / "runs" / f"{name}-copy")
            w.good("train", "--config", f"runs/{name}-copy/config.yaml", "--trainer.id", f"{name}-copy")
            check(w.chain(f"{name}-copy") == w.chain("amended"), f"{name}-copy: its chain differs")
            check(not (w.root / "runs" / f"{name}-copy" / "config.amended.yaml").exists(), f"{name}-copy: config.amended.yaml is left")
        w.train(f"{name}.yaml", "--amend", env={} if points else {"OSTRO_SIM_WORKERS": "3"})
        check(w.chain(name) == w.chain("amended"), f"{name}: its chain differs after kills at {points}")
    for words in ([], ["--from_step", "7"], ["--from_step", "15"]):
        print("  " + w.good("verify", *words, "runs/amended").strip())
    entries = [json.loads(line) for line in w.chain("amended").splitlines()]
    for entry in entries:
        if entry["kind"] == "step" and entry["step"] in (3, 10, 11, 20, 24):
            batch = json.loads(w.good("data", "batch", "--config", "runs/amended/config.yaml", "--json", "--step",
                                      str(entry["step"] - 1)))
            check(batch["fingerprint"] == entry["batch"], f"step {entry['step']}: another batch by config.yaml")
    w.bad("train", "--config", config("amended", 30, {"a": 0.75, "b": 0.25}), says=["since it was amended after step 10"])
    path = w.root / "runs" / "amended" / "chain.jsonl"
    good = path.read_bytes()
    path.write_bytes(good.replace(b'"to":24', b'"to":25'))
    check(path.read_bytes() != good, "no difference to forge")
    w.verdict("differs", "runs/amended", says=["chain.jsonl", "was altered"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--seed", type=int, default=seed.seed())
    args = parser.parse_args()
    print(f"seed {args.seed}")
    begin = time.monotonic()
    w = Workspace(args.ostro)
    try:
        test = KillTest(w, random.Random(args.seed))
        test.run()
        amended_runs(w)
        slow_runs(w)
    except Failure as failure:
        print(f"FAILED (seed {args.seed}): {failure}")
        return 1
    finally:
        w.close()
    fired = ", ".join(f"{n} {phase}" for phase, n in sorted(test.fired.items()))
    print(f"result: {len(test.events)} kills ({fired}) in {test.rounds} runs, every chain equal; "
          f"{time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
