#!/usr/bin/env python3
"""Tests that losing workers while they train leaves the chain as it is.

Exact faults (OSTRO_FAULT) at every phase of a step, two at once, a worker that is stopped; workers that are asked to
leave; the coordinator killed and started again; and faults drawn by the seed, some tens of milliseconds to seconds
apart. Every run must end with the chain of one process, and continue without a checkpoint where one worker at a time is
lost.

The cases are a sample that OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all, with 30 drawn faults in one run;
--faults 500 does only that many drawn faults.

    elastic_test.py --ostro PROGRAM [--faults N] [--seed N] [--log FILE]
"""

import argparse
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_matrix import MESHES as KINDS, MIXTURE  # noqa: E402
from workers_test import Gate, Place, check, hold_until_all, wait_for, workers_of  # noqa: E402

STEPS = 24
PHASES = ["leaf", "exchange", "update", "commit", "gather"]
TENSOR = ["--trainer.mesh.axes", "{data: -1, model: 2}", "--trainer.tensor_parallel_axes", "[kv_heads, mlp, vocab]"]
# name: (workers, least workers to go on with, options)
MESHES = {
    "data": (3, 1, []),
    "layer": (4, 1, ["--trainer.mesh.exchange", "layer"]),
    "data x model": (4, 2, TENSOR),
    "replica x data": (4, 2, ["--trainer.mesh.axes", "{replica: 2, data: -1}"]),
    "data x expert": (4, 2, KINDS["data x expert 2"][1]),
}


def options(steps, keep):
    return ["--trainer.num_train_steps", str(steps), "--trainer.checkpointer.keep", "[{every: %d}]" % keep,
            "--trainer.mp", "f32", "--trainer.watch_norms", "[gradients, parameters]"]


def children(pid):
    """Worker processes of a launcher, by age."""
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split()]


class Launch:
    """`ostro launch local` in the background. With `together` nobody trains before all workers are there: else an epoch
    may begin without the last one, and a fault of its rank does not happen."""

    def __init__(self, place, run, workers, words, settings=None, together=False):
        self.place, self.run = place, run
        self.log = place.top / f"{run}.log"
        settings = dict(settings or {})
        if together:
            gate = Gate(tempfile.mkdtemp(dir=place.top))
            gate.at(0)
            settings["OSTRO_FAULT"] = ",".join(filter(None, [gate.fault(), settings.get("OSTRO_FAULT")]))
        with self.log.open("w") as out:
            self.process = subprocess.Popen(
                [place.ostro, "launch", "local", "--workers", str(workers), *place.words(run, words)], stdout=out,
                stderr=out, env=place.environment({"OSTRO_THREADS": "1"} | settings))
        if together:
            hold_until_all(place.top / "runs" / run, workers, self.process, gate)

    def text(self):
        return self.log.read_text()

    def wait(self, seconds, what):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"FAILED: {what}: no end after {seconds} s\n{self.text()[-4000:]}")
        check(code == 0, f"{what}: exit code {code}\n{self.text()[-4000:]}")

    def wait_while_it_goes_on(self, quiet, what):
        """Waits for its end for as long as a step is done every `quiet` seconds: a machine with other work may take long for all."""
        at, since = self.steps(), time.monotonic()
        while self.process.poll() is None and time.monotonic() < since + quiet:
            if (now := self.steps()) != at:
                at, since = now, time.monotonic()
            time.sleep(0.05)
        self.wait(1, what)

    def step_after(self, count, seconds=120):
        """Waits until so many steps more are done."""
        wanted, until = self.steps() + count, time.monotonic() + seconds
        while self.steps() < wanted:
            check(self.process.poll() is None and time.monotonic() < until, f"no step {wanted}\n{self.text()[-4000:]}")
            time.sleep(0.01)

    def steps(self):
        """The last step of the chain, which may be long."""
        path = self.place.top / "runs" / self.run / "chain.jsonl"
        if not path.exists():
            return 0
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 5000))
            return int((re.findall(rb'"step":(\d+)[,}]', file.read()) or [b"0"])[-1])


def exact(place, case, fault, expected, restores):
    """One run in which OSTRO_FAULT happens."""
    name, what = case
    workers, least, words = MESHES[name]
    run = re.sub(r"\W+", "-", f"{name} {fault}")
    once = place.top / f"{run}.once"
    once.mkdir()
    launch = Launch(place, run, workers, ["--min_workers", str(least), *options(STEPS, STEPS), *words],
                    {"OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)}, together=True)
    launch.wait_while_it_goes_on(120, f"{name}: {what}")
    happened = len(list(once.iterdir()))
    check(happened == len(fault.split(",")), f"{name}: {fault}: {happened} of these happened\n{launch.text()}")
    check(place.chain(run) == expected, f"{name}: {fault}: another chain\n{launch.text()}")
    again = "from the beginning" in launch.text()
    check(restores or not again, f"{name}: {fault}: a step was lost\n{launch.text()}")
    print(f"{name}: {fault}: the same chain{', from the beginning' if again else ''}", flush=True)


def leave(place, rng, expected):
    """Workers that are asked to leave, the leader among them."""
    launch = Launch(place, "leave", 3, options(600, 600), together=True)
    for left in (2, 1):
        at = launch.steps()
        while launch.process.poll() is None and launch.steps() < at + 40:
            time.sleep(0.01)
        workers = children(launch.process.pid)
        os.kill(workers[0] if left == 2 else rng.choice(workers), signal.SIGTERM)
        until = time.monotonic() + 300
        while launch.process.poll() is None and len(children(launch.process.pid)) > left:
            check(time.monotonic() < until, f"a worker did not leave\n{launch.text()}")
            time.sleep(0.01)
    launch.wait_while_it_goes_on(120, "workers that leave")
    check(place.chain("leave") == expected, f"workers that leave: another chain\n{launch.text()}")
    check(launch.text().count("wants to leave") == 2 and "is lost" not in launch.text(),
          f"leaving was a loss\n{launch.text()}")
    print("two workers were asked to leave, the leader first: the same chain, no loss", flush=True)


def coordinator(place, expected):
    """It is killed, and started again: training goes on meanwhile, and nobody notices."""
    words = place.words("coordinator", options(600, 600))
    env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "secret"})
    log = (place.top / "coordinator.log").open("w")

    def start(port=0):
        return subprocess.Popen([place.ostro, "coordinator", "--port", str(port), "--min_workers", "2", "--max_workers",
                                 "3", *words], stdout=log, stderr=log, env=env)
    first = start()
    port = wait_for(lambda: re.search(r'"port":\s*(\d+)', (place.top / "coordinator.log").read_text()))[1]
    workers = [subprocess.Popen([place.ostro, "worker", "--coordinator", f"127.0.0.1:{port}", *words], stdout=log,
                                stderr=log, env=env) for _ in range(3)]
    chain = place.top / "runs" / "coordinator" / "chain.jsonl"
    def steps():
        return chain.read_bytes().count(b'"batch"') if chain.exists() else 0
    def wait_for_steps(count):
        until = time.monotonic() + 120
        while steps() < count:
            check(time.monotonic() < until, f"no step {count}\n{(place.top / 'coordinator.log').read_text()}")
            time.sleep(0.01)
    wait_for_steps(20)
    first.kill()
    first.wait()
    wait_for_steps(steps() + 20)
    second = start(port)
    def text():
        return (place.top / "coordinator.log").read_text()
    wait_for_steps(steps() + 60)
    wait_for(lambda: text().count("the coordinator is back") == 3 or second.poll() is not None)
    check(text().count("the coordinator is back") == 3 and "ended:" not in text(), f"an epoch ended\n{text()}")
    # Whoever came back first must not take the lead from the one that has it.
    workers[2].kill()
    codes = [w.wait(1200) for w in workers] + [second.wait(300)]
    check(codes == [0, 0, -9, 0], f"exit codes {codes}\n{text()}")
    check(chain.read_bytes() == expected, f"the coordinator was killed: another chain\n{text()}")
    check("with the state that the workers have" not in text() or text().count("resuming") == 0, text())
    print("the coordinator was killed and came back: the same epoch; then a worker was killed: the same chain",
          flush=True)


def stop(place, rng, expected):
    """Ctrl-C once or twice, a closed terminal, SIGTERM; also while a worker is lost: each saves all steps."""
    kinds = [[signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGHUP], [signal.SIGTERM, signal.SIGHUP]]
    rng.shuffle(kinds)
    for number, kind in enumerate(kinds):
        launch = Launch(place, "stop", 3, ["--min_workers", "3", *options(600, 600)])
        launch.step_after(rng.randint(5, 25))
        lost = number % 2 == 1
        if lost:
            os.kill(rng.choice(children(launch.process.pid)), signal.SIGKILL)
        for one in kind:
            launch.process.send_signal(one)
        code = launch.process.wait(300)
        saved = re.search(r"stopped after step (\d+) and saved", launch.text())
        check(code == 75 and saved and int(saved[1]) == launch.steps(), f"{kind}: exit code {code}\n{launch.text()}")
        print(f"{[k.name for k in kind]}{' beside a kill' if lost else ''}: saved at step {saved[1]}", flush=True)
    launch = Launch(place, "stop", 3, options(600, 600))
    launch.wait_while_it_goes_on(120, "a run that was stopped")
    check(place.chain("stop") == expected, f"runs that were stopped: another chain\n{launch.text()}")


def bad_workers(place, rng, expected):
    """A worker that ends by itself with an error leaves alone; the configuration's file is edited meanwhile."""
    path = place.top / "c.yaml"
    text = path.read_text()
    once = place.top / "bad.once"
    once.mkdir()
    rank = rng.randint(0, 2)
    launch = Launch(place, "bad", 3, options(600, 600),
                    {"OSTRO_FAULT": f"leaf:30:{rank}:exit=3", "OSTRO_FAULT_ONCE": str(once)}, together=True)
    try:
        launch.step_after(10)
        path.write_text(text.replace("learning_rate: 0.003", "learning_rate: 0.004"))
        launch.step_after(25)
        pid = rng.choice(children(launch.process.pid))
        os.kill(pid, signal.SIGKILL)  # the one in its place reads the configuration
        launch.wait_while_it_goes_on(120, "a worker that fails by itself")
    finally:
        path.write_text(text)
    check(place.chain("bad") == expected, f"a worker that fails by itself: another chain\n{launch.text()}")
    check("ended with status 3; the others go on" in launch.text() and "must be equal" not in launch.text(), launch.text())
    print("a worker that ends with an error leaves alone, and an edited configuration is no other run's: the same chain",
          flush=True)


def chaos(place, rng, faults, log):
    """Faults drawn by the seed in one run: kills of one worker or two, stops, leaders and followers; beside them leaves of
    0.05 to 40 seconds, and workers that end with an error."""
    many = faults >= 50  # a trial by hand, for which a machine with other work has hours, and little CPU time
    pace = 5 if many else 25  # steps to a fault, at most: the run must not end before they have happened
    steps = 400 + pace * faults
    keep = 100 if many else 20  # a checkpoint takes 9 MB of disk
    expected = place.train("chaos-alone", options(steps, keep), seconds=3600 if many else 200 + steps / 10)
    longest, count = (40, steps // 5) if many else (2, 1 + faults // 10)
    slow = [(rng.randint(2, steps - 50), int(1000 * 0.05 * (longest / 0.05) ** rng.random())) for _ in range(count)]
    bad = [(rng.randint(2, steps - 50), rng.randint(0, 3)) for _ in range(1 + faults // 10)]
    planned = [f"leaf:{step}:*:delay={ms}" for step, ms in slow] + [f"update:{step}:{rank}:exit=3" for step, rank in bad]
    print(f"beside them: {', '.join(planned)}", file=log, flush=True)
    once = place.top / "chaos.once"
    once.mkdir()
    launch = Launch(place, "chaos", 4, options(steps, keep), {"OSTRO_FAULT": ",".join(planned), "OSTRO_FAULT_ONCE": str(once)})
    done = 0
    begin = time.monotonic()
    while done < faults and launch.process.poll() is None:
        # Two faults of three wait until the run has got on, so that it does on a slow machine.
        at, patience = launch.steps(), 20 if rng.random() < 0.67 else 0
        begun, until, most = time.monotonic(), rng.uniform(0.05, 3), 100 + pace * done
        while launch.process.poll() is None and launch.steps() < most and (
                (past := time.monotonic() - begun) < until or (launch.steps() <= at and past < patience)):
            time.sleep(0.02)
        if launch.process.poll() is not None:
            break
        workers = children(launch.process.pid)
        if not workers:
            continue
        kind = rng.choices(["kill", "two", "stop", "leave"], [6, 1, 1, 0])[0]
        victims = rng.sample(workers, min(len(workers), 2 if kind == "two" else 1))
        for pid in victims:
            try:
                os.kill(pid, signal.SIGSTOP if kind == "stop" else signal.SIGKILL)
            except ProcessLookupError:
                pass
        done += 1
        print(f"{time.monotonic() - begin:8.2f} s  step {launch.steps():5}  {kind} {victims}", file=log, flush=True)
    launch.wait_while_it_goes_on((1200 if many else 120) + longest, f"{done} drawn faults")
    check(place.chain("chaos") == expected, f"{done} drawn faults: another chain\n{launch.text()}")
    verified = place.run(["verify", str(place.top / "runs" / "chaos"), "--from_step", str(steps - 2)],
                         seconds=3600 if many else 200 + steps / 10)
    check(f"{-(-steps // keep)} fine" in verified.stdout, f"checkpoints\n{verified.stdout}{verified.stderr}\n{launch.text()}")
    left = [str(path) for path in (place.top / "runs" / "chaos").rglob("*.tmp")]
    left += [words for words in workers_of("chaos").values() if any(str(place.top) in word for word in words)]
    check(not left, f"left behind: {left}")
    check("forged" not in launch.text(), f"an honest checkpoint was refused\n{launch.text()}")
    text = launch.text()
    happened = len(list(once.iterdir()))
    check(happened > 0, f"none of {planned} happened")
    print(f"{done} drawn faults and {happened} planned ones in {time.monotonic() - begin:.0f} s, {steps} steps: the same chain; "
          f"{text.count('with the state that the workers have')} new leaders, {text.count('resuming')} times from a "
          f"checkpoint", file=log, flush=True)
    check(done == faults, f"the run ended after {done} of {faults} faults")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--log")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else int(os.environ.get("OSTRO_TEST_SEED", "1"))
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    rng = random.Random(seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(args.ostro, pathlib.Path(folder))
        if args.faults > 0:
            chaos(place, rng, args.faults, open(args.log, "w") if args.log else sys.stdout)
            return
        alone = place.train("alone", options(STEPS, STEPS))
        long = place.train("long", options(600, 600))
        check(alone != place.train("other", options(STEPS + 1, STEPS + 1)), "one step more changes the chain")
        kills = [(name, phase, rank) for name, (workers, _, _) in MESHES.items() for phase in PHASES
                 for rank in range(workers)]
        mixture = place.train("mixture", [*MIXTURE, *options(STEPS, STEPS)])
        for name, phase, rank in kills if full else rng.sample(kills, 5):
            expected = mixture if name == "data x expert" else alone
            exact(place, (name, "a kill"), f"{phase}:{rng.randint(3, STEPS - 2)}:{rank}:kill", expected, False)
        # While workers come together again, and while cells move.
        exact(place, ("data", "a kill while forming"), "update:7:1:kill,connect:2:0:kill", alone, True)
        exact(place, ("data", "a kill while cells move"), "update:7:1:kill,transfer:6:1:kill", alone, True)
        # The result of a step outlives two leaders.
        exact(place, ("data", "two leaders"), "commit:9:0:kill,leaf:10:0:kill", alone, False)
        # Of two neighbours one keeps the copy of the other's cells.
        first = rng.randint(0, 2)
        exact(place, ("layer", "owner and copy"), f"update:9:{first}:kill,update:9:{first + 1}:kill", alone, True)
        exact(place, ("data", "a stop"), f"leaf:8:{rng.randint(0, 2)}:stop", alone, False)
        leave(place, rng, long)
        stop(place, rng, long)
        bad_workers(place, rng, long)
        coordinator(place, long)
        chaos(place, rng, 30 if full else 5, sys.stdout)


if __name__ == "__main__":
    main()
