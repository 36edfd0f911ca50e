#!/usr/bin/env python3
"""tests/e2e/workers_test.py --ostro PROGRAM: `ostro launch local` trains on several processes, and its chain is that of
`ostro train` byte for byte: over numbers of workers, meshes, threads, precisions; when a worker is killed, the leader
among them; and a worker that does not belong is sent away. A planted fault in the exchange must give another chain.

The cases are a sample that OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all of them."""

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

STEPS = 6
TENSOR = ["--trainer.tensor_parallel_axes", "[kv_heads, mlp, vocab]"]
# name: (workers, options)
MESHES = {
    "data": ([2, 3, 4, 5, 6, 7, 8], []),
    "data, nothing owned in cells": ([2, 3, 5], ["--trainer.fsdp_axis", "null"]),
    "model 2": ([2], ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR]),
    "model 4": ([4], ["--trainer.mesh.axes", "{data: -1, model: 4}", *TENSOR]),
    "data x model": ([4, 6], ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR]),
    "context 2": ([2, 4], ["--trainer.mesh.axes", "{data: -1, context: 2}", "--trainer.axis_resources",
                           "{pos: context}"]),
    "replica x data": ([4], ["--trainer.mesh.axes", "{replica: 2, data: -1}"]),
}


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


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
           checkpointer: {{keep: [{{every: 2}}]}}}}
numerics: {{leaf_examples: 1, leaves: {{kv_heads: 4, mlp: 4, vocab: 4, pos: 2}}, cells: {{embed: 16}}}}
optimizer: {{type: adam, learning_rate: 0.003}}
""")
        self.run(["tokenizer", "train", "--input", str(top / "text.txt"), "--vocab_size", "320", "--out",
                  str(top / "tokenizer.json")])

    def environment(self, settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"OSTRO_CACHE_DIR": str(self.top / "kernels")}
        return env | settings

    def run(self, words, settings=None):
        done = subprocess.run([self.ostro, *words], env=self.environment(settings or {}), text=True, timeout=200,
                              capture_output=True, check=False)
        check(done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def chain(self, run):
        return (self.top / "runs" / run / "chain.jsonl").read_bytes()

    def words(self, run, options):
        return ["--config", str(self.top / "c.yaml"), "--trainer.id", run, *options]

    def train(self, run, options, settings=None):
        self.run(["train", *self.words(run, options)], settings)
        return self.chain(run)

    def launch(self, run, workers, options, settings=None):
        self.run(["launch", "local", "--workers", str(workers), *self.words(run, options)], settings)
        return self.chain(run)


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.01)
    sys.exit("FAILED: waited in vain")


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
    for which in ("leader", "follower"):
        run = f"kill-{which}"
        process = subprocess.Popen([place.ostro, "launch", "local", "--workers", "3", *place.words(run, options)],
                                   env=place.environment({"OSTRO_THREADS": "1"}), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            wanted = rng.randint(3, 12)
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
            out, _ = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        check("takes its place" in out, f"{run}: nobody was killed\n{out}")
        check(place.chain(run) == reference, f"{run}: another chain\n{out}")
        print(f"killed the {which} after step {wanted}: the same chain")


def check_strangers(place):
    """Workers that do not belong get an error that names both sides; the run goes on without them."""
    options = ["--trainer.num_train_steps", "60"]
    process = subprocess.Popen([place.ostro, "launch", "local", "--workers", "2",
                                *place.words("strangers", options)],
                               env=place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "right"}), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        workers = wait_for(lambda: workers_of("strangers"))
        address = next(iter(workers.values()))[3]

        def stranger(secret, more):
            done = subprocess.run([place.ostro, "worker", "--coordinator", address,
                                   *place.words("strangers", options + more)],
                                  env=place.environment({"OSTRO_JOB_SECRET": secret}), text=True, timeout=60,
                                  capture_output=True, check=False)
            check(done.returncode not in (0, 75), f"a stranger joined: {done.stdout}{done.stderr}")
            return done.stderr

        check("secret" in stranger("wrong", []), "a wrong secret is not named")
        text = stranger("right", ["--trainer.seed", "1"])
        check("configuration" in text, f"another configuration is not named: {text}")
        out, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    check(process.returncode == 0 and "run hash: " in out, f"the run did not end well: {out}")
    for words, wanted in [
            (["launch", "local", "--workers", "3", *place.words("mesh", MESHES["model 2"][1])],
             r"trainer\.mesh\.axes: .*2 x n workers, and there are 3; use a multiple of 2"),
            (["launch", "local", "--workers", "0", *place.words("mesh", [])], "--workers: 0"),
            (["worker", "--coordinator", "nowhere", *place.words("mesh", [])], "ADDRESS:PORT"),
            (["train", *place.words("mesh", ["--trainer.axis_resources", "{pos: contxt}"])], "contxt"),
            (["train", *place.words("mesh", ["--trainer.axis_resources", "{pos: data}"])], "microbatches")]:
        done = subprocess.run([place.ostro, *words], env=place.environment({}), text=True, timeout=60,
                              capture_output=True, check=False)
        check(done.returncode != 0 and re.search(wanted, done.stderr), f"{words}: {done.stderr}")
    print("strangers and senseless meshes: one clear error each")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    seed = int(os.environ.get("OSTRO_TEST_SEED", "1"))
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    rng = random.Random(seed)
    cases = [(name, workers, threads, mp, exchange) for name, (counts, _) in MESHES.items() for workers in counts
             for threads in ("1", "2") for mp in ("f32", "p=f32,c=bfloat16") for exchange in ("step", "layer")]
    if not full:  # every mesh once, every other one with each schedule, and two more
        cases = [rng.choice([c for c in cases if c[0] == name and c[4] == ("layer", "step")[(i + seed) % 2]])
                 for i, name in enumerate(MESHES)] + rng.sample(cases, 2)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(args.ostro, pathlib.Path(folder))
        alone = {mp: place.train(f"alone-{i}", ["--trainer.mp", mp])
                 for i, mp in enumerate(["f32", "p=f32,c=bfloat16"])}
        check(alone["f32"] != alone["p=f32,c=bfloat16"], "precisions give different chains")
        for i, (name, workers, threads, mp, exchange) in enumerate(cases):
            got = place.launch(f"case-{i}", workers, ["--trainer.mp", mp, "--trainer.mesh.exchange", exchange,
                                                      *MESHES[name][1]], {"OSTRO_THREADS": threads})
            text = f"{workers} workers, {name}, exchange {exchange}, {threads} threads, {mp}"
            check(got == alone[mp], f"seed {seed}: {text}: another chain")
            print(f"{text}: the same chain", flush=True)
        for fault, exchange in [("ring_order", "step"), ("leaf_order", "step"), ("ring_order", "layer"),
                                ("round_order", "layer")]:
            got = place.launch(f"{fault}-{exchange}", 3, ["--trainer.mp", "f32", "--trainer.mesh.exchange", exchange],
                               {"OSTRO_TEST_FAULT": fault, "OSTRO_THREADS": "1"})
            check(got != alone["f32"], f"the planted fault {fault} changed nothing under exchange {exchange}")
        print("planted faults: other chains")
        check_kills(place, rng, alone["p=f32,c=bfloat16"])
        check_strangers(place)
    print(f"{len(cases)} of the meshes, all with the chain of one process")


if __name__ == "__main__":
    main()
