#!/usr/bin/env python3
"""Tests that training on several processes, by `ostro launch local` or workers started by hand, has the chain of `ostro
train` byte for byte.

Over numbers of workers, meshes, schedules, precisions, threads and instruction sets, also such as differ among the
workers of one run; when a worker is killed, the leader among them; and a worker that does not belong is sent away.
Faults planted in the exchange and in the copies (--faulty, tests/controls) must give another chain.

The cases are a covering sample that OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all of them; --cases N that many
drawn ones and nothing else, --skip N without the first N of them, so that a long list can be run in parts.

    workers_test.py --ostro PROGRAM --faulty PROGRAM [--cases N] [--skip N] [--log FILE]
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from program import check, kill_all
from workers_matrix import MESHES, MIXTURE, MIXTURE_MESHES, all_cases, covering, is_mixture, run_case, usable_isas

STEPS = 20
PRECISIONS = ["f32", "p=f32,c=bfloat16"]


class Place:
    def __init__(self, ostro, top):
        self.ostro, self.top = ostro, top
        rng = random.Random(7)
        words = [f"w{i:x}" for i in range(60)]
        (top / "text.txt").write_text(" ".join(rng.choice(words) for _ in range(30000)))
        (top / "c.yaml").write_text(f"""
data: {{train_urls: ["{top}/text.txt"], cache_dir: "{top}/cache", tokenizer: "{top}/tokenizer.json"}}
model: {{type: llama, seq_len: 256, hidden_dim: 32, intermediate_dim: 64, num_layers: 2, num_heads: 4,
         num_kv_heads: 4}}
trainer: {{log_dir: "{top}/runs", train_batch_size: 8, num_train_steps: {STEPS}, steps_per_eval: 0,
           checkpointer: {{keep: [{{every: 10}}]}}}}
numerics: {{leaf_examples: 1, leaves: {{kv_heads: 4, mlp: 4, vocab: 4, pos: 2}}, cells: {{embed: 16}}}}
optimizer: {{type: adam, learning_rate: 0.003}}
""")
        self.run(["tokenizer", "train", "--input", str(top / "text.txt"), "--vocab_size", "320", "--out",
                  str(top / "tokenizer.json")])

    def environment(self, settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"OSTRO_CACHE_DIR": str(self.top / "kernels")}
        return env | settings

    def run(self, words, settings=None, seconds=200, program=None):
        done = subprocess.run([program or self.ostro, *words], env=self.environment(settings or {}), text=True, timeout=seconds,
                              capture_output=True, check=False)
        check(done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def chain(self, run):
        return (self.top / "runs" / run / "chain.jsonl").read_bytes()

    def words(self, run, options):
        return ["--config", str(self.top / "c.yaml"), "--trainer.id", run, *options]

    def train(self, run, options, settings=None, seconds=200):
        self.run(["train", *self.words(run, options)], settings, seconds)
        return self.chain(run)

    def launch(self, run, workers, options, settings=None, program=None):
        self.run(["launch", "local", "--workers", str(workers), *self.words(run, options)], settings, program=program)
        return self.chain(run)

    def launch_together(self, run, workers, options, settings=None, program=None):
        """A launch whose workers train only when all are there: for faults of one rank. What it said."""
        words = [program or self.ostro, "launch", "local", "--workers", str(workers), *self.words(run, options)]
        code, said = run_together(words, self.environment(settings or {}), self.top / "runs" / run, workers)
        check(code == 0, f"{run}: exit code {code}\n{said}")
        return said


# The limit is for what never comes: on a busy machine a process starts in half a minute.
def wait_for(what, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.01)
    sys.exit("FAILED: waited in vain")


class Gate:
    """Up to which step the workers of a run train (OSTRO_FAULT's gate): so no run ends before a test has seen what it waits for,
    however long that takes on a busy machine."""

    def __init__(self, folder):
        self.file = pathlib.Path(folder) / "gate"
        self.open()

    def fault(self):
        return f"leaf:*:*:gate={self.file}"

    def at(self, step):
        new = self.file.with_suffix(".new")
        new.write_text(str(step))
        new.replace(self.file)

    def open(self):
        self.at(10**9)


def size_of(folder):
    """Of the run in this folder: workers in its largest epoch so far, and those that are connected."""
    path = folder / "cluster.json"
    state = json.loads(path.read_text()) if path.exists() else {"events": [], "members": []}
    sizes = [int(found[1]) for e in state["events"] if (found := re.search(r"begins with (\d+) workers", e["text"]))]
    return max(sizes, default=0), len(state["members"])


def hold_until_all(folder, workers, process, gate, then=10**9, or_when=lambda: False):
    """Of a run that is held before its first step: lets it go, to the step `then`, when all workers are in an epoch.

    On a busy machine an epoch may begin without the last worker, and a fault of its rank would not happen. Another epoch
    begins after a step, once it is prepared; so one step after the other is let through, and each is given time for that."""
    allowed, since = 0, time.monotonic()
    while process.poll() is None and not or_when() and (size := size_of(folder))[0] < workers:
        if size[1] < workers:
            since = time.monotonic()
        elif time.monotonic() > since + 1:
            allowed, since = allowed + 1, time.monotonic()
            gate.at(allowed)
        time.sleep(0.02)
    gate.at(then)


def run_together(words, env, folder, workers, cwd=None, or_when=lambda said: False):
    """A launch of the run in this folder, whose workers train only when all of them have been in an epoch, or `or_when` of
    what it has said. Its exit code, and what it said."""
    with tempfile.TemporaryDirectory() as own:
        gate, log = Gate(own), pathlib.Path(own) / "said"
        gate.at(0)
        faults = ",".join(filter(None, [gate.fault(), env.get("OSTRO_FAULT")]))
        with log.open("w") as out:
            process = subprocess.Popen(words, env=env | {"OSTRO_FAULT": faults}, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            hold_until_all(folder, workers, process, gate, or_when=lambda: or_when(log.read_text()))
            code = process.wait(600)
        except subprocess.TimeoutExpired:
            check(False, f"{words}: no end\n{log.read_text()[-4000:]}")
        finally:
            kill_all([process])
        return code, log.read_text()


def workers_of(run):
    """pid -> words of the workers of this run."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
        except (OSError, UnicodeDecodeError):
            continue
        if len(words) > 1 and words[1] == "worker" and run in words:
            found[int(entry.name)] = words
    return dict(sorted(found.items()))


def steps_of(place, run):
    path = place.top / "runs" / run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def check_kills(place, rng, expected):
    """One of three workers is killed after a few steps: the run goes on from its last checkpoint."""
    options = ["--trainer.num_train_steps", "60", "--trainer.checkpointer.keep", "[{every: 5}]"]
    reference = place.train("kill-reference", options)
    check(reference != expected, "more steps give another chain")
    gate = Gate(place.top)
    for which in ("leader", "follower"):
        run, wanted = f"kill-{which}", rng.randint(3, 12)
        gate.at(0)
        process = subprocess.Popen([place.ostro, "launch", "local", "--workers", "3", *place.words(run, options)],
                                   env=place.environment({"OSTRO_THREADS": "1", "OSTRO_FAULT": gate.fault()}), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            hold_until_all(place.top / "runs" / run, 3, process, gate, wanted + 2)
            wait_for(lambda: steps_of(place, run) >= wanted or process.poll() is not None)
            workers = workers_of(run)
            check(process.poll() is None and len(workers) == 3, f"{run}: {len(workers)} workers")
            # The one that holds the run's directory locks it.
            lock = os.path.realpath(place.top / "runs" / run / "lock")
            leader = [p for p in workers if any(os.path.realpath(f"/proc/{p}/fd/{fd}") == lock
                                                for fd in os.listdir(f"/proc/{p}/fd"))]
            check(len(leader) == 1, f"{run}: leaders {leader}")
            victim = leader[0] if which == "leader" else next(p for p in workers if p not in leader)
            os.kill(victim, signal.SIGKILL)
            gate.open()
            out, _ = process.communicate(timeout=300)
        finally:
            kill_all([process])
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        check("takes its place" in out, f"{run}: nobody was killed\n{out}")
        check(place.chain(run) == reference, f"{run}: another chain\n{out}")
        print(f"killed the {which} after step {wanted}: the same chain")


def check_strangers(place):
    """Workers that do not belong get an error that names both sides; the run goes on without them."""
    options = ["--trainer.num_train_steps", "60"]
    gate = Gate(place.top)
    gate.at(5)
    process = subprocess.Popen([place.ostro, "launch", "local", "--workers", "2",
                                *place.words("strangers", options)],
                               env=place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "right",
                                                      "OSTRO_FAULT": gate.fault()}),
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        workers = wait_for(lambda: workers_of("strangers"))
        address = next(iter(workers.values()))[3]

        def stranger(secret, more, wanted):
            done = subprocess.run([place.ostro, "worker", "--coordinator", address,
                                   *place.words("strangers", options + more)],
                                  env=place.environment({"OSTRO_JOB_SECRET": secret}), text=True, timeout=300,
                                  capture_output=True, check=False)
            check(done.returncode not in (0, 75), f"a stranger joined: {done.stdout}{done.stderr}")
            check(re.search(wanted, done.stderr), f"'{wanted}' is not in {done.stderr}")

        stranger("wrong", [], "the secret is wrong: start all with the same OSTRO_JOB_SECRET")
        stranger("right", ["--trainer.seed", "1"], r"'trainer\.seed' is '1' on .*, but '0' on .* \(pid \d+\)")
        stranger("right", ["--trainer.mesh.exchange", "layer"],
                 r"'trainer\.mesh and what is split over it' is '.*layer.*' on .*, but '.*step.*' on ")
        stranger("right", ["--trainer.cross_check", "0.5"], r"'trainer\.cross_check' is '0\.5' on .*, but '0' on ")
        # A host that does not have the shared file system: the same path, another folder.
        place_file = place.top / "runs" / "strangers" / "coordinator.place"
        kept = place_file.read_text()
        place_file.write_text("of another folder")
        stranger("right", [], r"'the folder .*, seen by its coordinator\.place,' is 'of another folder' on")
        place_file.write_text(kept)
        gate.open()
        out, _ = process.communicate(timeout=300)
    finally:
        kill_all([process])
    check(process.returncode == 0 and "run hash: " in out, f"the run did not end well: {out}")
    for words, wanted in [
            (["launch", "local", "--workers", "3", *place.words("mesh", MESHES["model 2"][1])],
             r"trainer\.mesh\.axes: .*2 x n workers, and there are 3; use a multiple of 2"),
            (["launch", "local", "--workers", "4", *place.words("mesh", [
                *MESHES["model 2"][1], "--trainer.mesh.axes", "{data: 1, model: 4}", "--numerics.leaves",
                "{kv_heads: 4, mlp: 2, vocab: 4}"])],
             r"numerics\.leaves\.mlp: mlp is cut into 2 leaves, which the 4 workers of the mesh axis model cannot "
             r"share; set numerics\.leaves\.mlp to 4"),
            (["launch", "local", "--workers", "2", *place.words("strangers", ["--trainer.seed", "7"])],
             r"runs/strangers holds a run with other options, .*trainer\.seed is 0 there and 7 here"),
            (["launch", "local", "--workers", "0", *place.words("mesh", [])], "--workers: 0"),
            (["launch", "local", "--workers", "2", "--profile", f"steps=1:{STEPS + 1}", *place.words("mesh", [])],
             f"--profile steps=1:{STEPS + 1}: trainer.num_train_steps is {STEPS}, so the last step is {STEPS - 1}"),
            (["worker", "--coordinator", "nowhere", *place.words("mesh", [])], "HOST:PORT"),
            (["train", *place.words("mesh", ["--trainer.axis_resources", "{pos: contxt}"])], "contxt"),
            (["train", *place.words("mesh", ["--trainer.axis_resources", "{pos: data}"])], "microbatches")]:
        done = subprocess.run([place.ostro, *words], env=place.environment({}), text=True, timeout=300,
                              capture_output=True, check=False)
        check(done.returncode != 0 and re.search(wanted, done.stderr), f"{words}: {done.stderr}")
    print("strangers and senseless meshes: one clear error each")


def check_profiles(folder, profiled):
    """Each worker has written a trace of the last two steps, with phases that fill a step; none without --profile."""
    paths = [folder / f"profile-{STEPS - 2}-{STEPS}{rank}.json" for rank in ("", ".1")]
    if not profiled:
        check(not list(folder.glob("profile-*")), f"{folder.name}: a profile that nobody wanted")
        return
    for path in paths:
        check(path.exists(), f"{path.name} is not among {sorted(p.name for p in folder.iterdir())}")
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        steps = [e for e in events if e["cat"] == "step"]
        names = [e["name"] for e in steps]
        wanted = [f"ProfilerStep#{step}" for step in (STEPS - 2, STEPS - 1)]
        # The worker that takes the place of the lost one may come between both steps, and be of rank 1 then.
        check(names == wanted or (path == paths[1] and names == wanted[1:]), f"{path.name}: the steps {names}")
        phases = [e for e in events if e["cat"] == "phase" and e["tid"] == steps[0]["tid"]]
        check({"data wait", "leaf", "update"} <= {e["name"] for e in phases}, f"{path.name}: {phases}")
        nanoseconds = [sum(round(1000 * e["dur"]) for e in part) for part in (steps, phases)]
        check(nanoseconds[0] == nanoseconds[1] > 0, f"{path.name}: steps of {nanoseconds[0]} ns, phases of {nanoseconds[1]} ns")
    print("each worker of a run has its profile, and the chain is the same", flush=True)


def check_planted(place, faulty, expected):
    """What must be noticed: a sum in another order, leaves that change places, copies that miss an update."""
    def run(name, workers, options, settings):
        place.launch_together(name, workers, ["--trainer.mp", "f32", *options], {"OSTRO_THREADS": "1"} | settings,
                              faulty if "OSTRO_TEST_FAULT" in settings else None)
        return place.chain(name)
    for fault, exchange in [("ring_order", "step"), ("leaf_order", "step"), ("ring_order", "layer"),
                            ("round_order", "layer")]:
        got = run(f"{fault}-{exchange}", 3, ["--trainer.mesh.exchange", exchange], {"OSTRO_TEST_FAULT": fault})
        check(got != expected, f"the planted fault {fault} changed nothing under exchange {exchange}")
    # Nobody looks at the copies until the worker whose cells they are is lost.
    for name, lost in [("stale", {}), ("fresh-lost", {"OSTRO_FAULT": "update:9:1:kill"}),
                       ("stale-lost", {"OSTRO_FAULT": "update:9:1:kill"})]:
        once = place.top / f"{name}.once"
        once.mkdir()
        stale = {"OSTRO_TEST_FAULT": "stale_replica"} if name != "fresh-lost" else {}
        profile = ["--profile", f"steps={STEPS - 2}:{STEPS}"] if name == "fresh-lost" else []
        got = run(name, 3, ["--min_workers", "1", *profile], stale | lost | {"OSTRO_FAULT_ONCE": str(once)})
        check_profiles(place.top / "runs" / name, bool(profile))
        check(len(list(once.iterdir())) == len(lost), f"{name}: the worker was not lost")
        check((got == expected) == (name != "stale-lost"), f"{name}: {'another' if got != expected else 'the same'} chain")
        verified = subprocess.run([place.ostro, "verify", str(place.top / "runs" / name)], text=True, timeout=200,
                                  env=place.environment({}), capture_output=True, check=False)
        check((verified.returncode == 0) == (got == expected), f"{name}: {verified.stdout}{verified.stderr}")
    print("planted faults: other chains; copies that missed an update are noticed when they are used", flush=True)


def check_experts(place, faulty, rng, expected):
    """Rows that go to the wrong expert's worker give another chain. A worker with experts is killed: the same chain. What
    is reported of the experts' loads is what one process reports."""
    options = [*MESHES["data x expert 2"][1], "--trainer.mp", "f32"]
    place.launch_together("wrong-experts", 2, options, {"OSTRO_THREADS": "1", "OSTRO_TEST_FAULT": "wrong_experts"}, faulty)
    check(place.chain("wrong-experts") != expected, "rows that go to the wrong worker change nothing")
    once = place.top / "experts.once"
    once.mkdir()
    fault = f"{rng.choice(['leaf', 'exchange', 'update', 'commit', 'gather'])}:{rng.randint(3, STEPS - 2)}:{rng.randint(0, 3)}:kill"
    place.launch_together("experts", 4, ["--min_workers", "2", *options],
                          {"OSTRO_THREADS": "1", "OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)})
    check(len(list(once.iterdir())) == 1, f"{fault}: the worker was not lost")
    check(place.chain("experts") == expected, f"experts, {fault}: another chain")

    def loads(run):
        rows = [json.loads(line) for line in (place.top / "runs" / run / "metrics.jsonl").read_text().splitlines()]
        return {row["step"]: {k: v for k, v in row.items() if k.startswith("moe/")} for row in rows if "train/loss" in row}
    alone = loads("alone-True-0")
    check(len(alone) == STEPS and all(len(row) == 9 for row in alone.values()), f"loads: {alone}")
    reported = loads("experts")  # but for what a leader that was lost had not written yet
    check(len(reported) > STEPS // 2 and all(row == alone[step] for step, row in reported.items()),
          f"experts, {fault}: other loads are reported: {reported}, alone {alone}")
    print(f"experts: the wrong worker gives another chain; {fault}: the same chain, the same loads", flush=True)


def check_matrix(place, cases, isas, seed, alone, log):
    for i, case in enumerate(cases):
        # Drawn by the case, so that each can be tried again alone.
        run, begin = f"case-{i}", time.monotonic()
        got, text = run_case(place, run, case, isas, random.Random(f"{seed} {case}"))
        check(got == alone[is_mixture(case[0]), case[3]], f"seed {seed}: {text}: another chain")
        shutil.rmtree(place.top / "runs" / run)
        print(f"{i + 1} of {len(cases)}: {text}: the same chain, {time.monotonic() - begin:.1f} s", file=log, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faulty", required=True)
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--log")
    args = parser.parse_args()
    seed = int(os.environ.get("OSTRO_TEST_SEED", "1"))
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    rng = random.Random(seed)
    log = open(args.log, "w") if args.log else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        alone = {(mixture, mp): place.train(f"alone-{mixture}-{i}", [*(MIXTURE if mixture else []), "--trainer.mp", mp])
                 for mixture in (False, True) for i, mp in enumerate(PRECISIONS)}
        check(len(set(alone.values())) == len(alone), "models and precisions give different chains")
        isas = usable_isas(place)
        matrix = all_cases(isas)
        if args.cases:
            cases = rng.sample(matrix, min(args.cases, len(matrix)))[args.skip:]
        elif full:
            cases = rng.sample(matrix, len(matrix))
        else:
            # Of the meshes of mixtures one, drawn.
            drawn = rng.choice([mesh for mesh in MIXTURE_MESHES if mesh != "mixture, FSDP"])
            cases, missing = covering([c for c in matrix if not is_mixture(c[0]) or c[0] == drawn], rng, 32)
            check(not missing, f"seed {seed}: the sample lacks {missing}")
        print(f"seed {seed}: {len(cases)} of {len(matrix)} cases; instruction sets {', '.join(isas)}", file=log, flush=True)
        check_matrix(place, cases, isas, seed, alone, log)
        if not args.cases:
            check_planted(place, os.path.abspath(args.faulty), alone[False, "f32"])
            check_experts(place, os.path.abspath(args.faulty), rng, alone[True, "f32"])
            check_kills(place, rng, alone[False, "p=f32,c=bfloat16"])
            check_strangers(place)
    print(f"{len(cases)} of {len(matrix)} cases, all with the chain of one process", file=log, flush=True)


if __name__ == "__main__":
    main()
