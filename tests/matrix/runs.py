"""Small training runs of the ostro program, for tests that compare their chains.

Only the standard library. A Workspace holds one corpus, tokenizer and token store; run() trains a config under
some process-wide settings and returns what its chain says.
"""
import array
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import time

VOCAB = 259  # bytes, the end-of-text token, two merges: divisible neither by 2 nor by 3
FALLBACK = "built-in loops"  # of the warning in ostro/cpu/engine/engine.cc


class RunFailed(Exception):
    pass


class Result:
    """What a finished run left behind."""

    def __init__(self, name, directory, hash_, seconds):
        self.name, self.directory, self.hash, self.seconds = name, directory, hash_, seconds

    def entries(self):
        with open(self.directory / "chain.jsonl", encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def steps(self):
        return [e for e in self.entries() if e["kind"] == "step"]

    def losses(self):
        return [float.fromhex(e["loss"]) for e in self.steps()]

    def final_state(self):
        return self.steps()[-1]["state"]

    def arrays(self):
        """Path and bytes of every array of the last checkpoint; stored without compression."""
        last = sorted((self.directory / "checkpoints").iterdir())[-1]
        for meta in sorted(last.rglob("zarr.json")):
            info = json.loads(meta.read_text())
            if info["node_type"] != "array":
                continue
            if [c["name"] for c in info["codecs"]] != ["bytes"]:
                raise RunFailed(f"{meta}: cannot read these codecs")
            for chunk in sorted(p for p in meta.parent.rglob("*") if p.is_file() and p != meta):
                yield f"{chunk.relative_to(last)}", info["data_type"], chunk.read_bytes()

    def not_finite(self):
        """Paths of chunks with a weight or moment that is not finite."""
        bad, seen = [], 0
        for path, dtype, data in self.arrays():
            if dtype != "float32":
                continue
            seen += 1
            values = array.array("f", data)
            if not math.isfinite(math.fsum(abs(v) if math.isfinite(v) else math.inf for v in values)):
                bad.append(path)
        if seen == 0:
            raise RunFailed(f"{self.directory}: no float32 array in the last checkpoint")
        return bad


def first_difference(a, b):
    """The first place where two chains differ, and the arrays of their last checkpoints that do."""
    words = []
    for x, y in zip(a.entries(), b.entries()):
        keys = [k for k in sorted(set(x) | set(y)) if k != "h" and x.get(k) != y.get(k)]
        if keys:
            where = f"{x['kind']} {x.get('step', '')}".strip()
            words.append(where + ": " + "; ".join(f"{k} {x.get(k)} != {y.get(k)}" for k in keys))
            break
    try:
        left, right = dict((p, d) for p, _, d in a.arrays()), dict((p, d) for p, _, d in b.arrays())
        unequal = [p for p in left if left[p] != right.get(p)]
        if unequal:
            words.append(f"{len(unequal)} of {len(left)} chunks of the last checkpoint: {', '.join(unequal[:4])}")
    except (OSError, RunFailed, IndexError) as e:
        words.append(f"checkpoints not compared: {e}")
    return "\n    ".join(words) or "no entry differs"


def corpus(directory, documents=48, words=700):
    """Text with enough order to be learnt, from a fixed generator of numbers."""
    state = 20260101

    def below(n):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % n

    lexicon = ["".join("aeioubcdfglmnprst"[below(17)] for _ in range(2 + below(5))) for _ in range(60)]
    after = [[below(60) for _ in range(4)] for _ in range(60)]
    directory.mkdir(parents=True, exist_ok=True)
    for d in range(documents):
        at, text = below(60), []
        for i in range(words):
            text.append(lexicon[at])
            at = after[at][below(4)] if below(8) else below(60)
            if i % 12 == 11:
                text[-1] += ".\n"
        (directory / f"{d:03}.txt").write_text(" ".join(text), encoding="utf-8")


class Workspace:
    def __init__(self, ostro, directory, cache=None):
        self.ostro = pathlib.Path(ostro).resolve()
        self.directory = pathlib.Path(directory).resolve()
        self.cache = pathlib.Path(cache).resolve() if cache else self.directory / "kernel-cache"
        self.runs = 0
        corpus(self.directory / "text")
        texts = str(self.directory / "text" / "*.txt")
        self.command([self.ostro, "tokenizer", "train", "--input", texts, "--vocab_size", str(VOCAB), "--out",
                      str(self.directory / "tokenizer.json")])
        self.command([self.ostro, "data", "build", "--config", self.config_file("data", self.config({}))])

    def environment(self, settings):
        known = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        return {**known, "OSTRO_CACHE_DIR": str(self.cache), **settings}

    def command(self, words, settings=None, check=True, timeout=600):
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=self.directory,
                              env=self.environment(settings or {}), timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise RunFailed(f"{' '.join(map(str, words))}\n  exit {done.returncode}: {done.stderr.strip()[-1500:]}")
        return done

    def config(self, changes):
        """A config of two layers and six leaves a step; `changes` are dotted keys."""
        tree = {
            "data": {"tokenizer": "tokenizer.json", "cache_dir": "store", "train_urls": ["text/*.txt"],
                     "validation_fraction": 0.1},
            "model": {"type": "llama", "seq_len": 96, "hidden_dim": 32, "intermediate_dim": 40, "num_layers": 2,
                      "num_heads": 4, "num_kv_heads": 2},
            "optimizer": {"type": "adam", "learning_rate": 0.01, "warmup": 2, "max_grad_norm": 1.0},
            "trainer": {"log_dir": "runs", "mp": "p=f32,c=bfloat16", "train_batch_size": 6, "num_train_steps": 30,
                        "steps_per_eval": 0, "tracker": [], "checkpointer": {"save_interval": None, "keep": []}},
            "numerics": {"leaf_examples": 1, "cells": {"embed": 4}},
            "chain": {"leaf_gradients": True},
        }
        for key, value in changes.items():
            *path, last = key.split(".")
            node = tree
            for name in path:
                node = node.setdefault(name, {})
            node[last] = value
        return tree

    def config_file(self, name, tree):
        path = self.directory / "configs" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(tree, indent=1), encoding="utf-8")
        return path

    def run(self, name, changes, settings, ostro=None):
        """Trains; `settings` are OSTRO_ variables. A run in which built-in loops stood in for generated code
        fails: its chain is the same, but nothing of the compiler and its options was tried."""
        started = time.monotonic()
        path = self.config_file(name, self.config({**changes, "trainer.id": name}))
        done = self.command([ostro or self.ostro, "train", "--config", path], settings)
        if fallback := [line for line in done.stderr.splitlines() if FALLBACK in line]:
            raise RunFailed(f"{name}: {fallback[0][:1500]}")
        lines = [line for line in done.stdout.splitlines() if line.startswith("run hash: ")]
        if len(lines) != 1:
            raise RunFailed(f"{name}: no run hash in {done.stdout!r}")
        return Result(name, self.directory / "runs" / name, lines[0].split()[-1], time.monotonic() - started)


def at_once(jobs, work, items):
    """work(item) for each item by `jobs` threads; yields (item, result or exception) in order."""
    def guarded(item):
        try:
            return work(item)
        except (RunFailed, OSError, subprocess.SubprocessError) as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from zip(items, pool.map(guarded, items))


def usable_isas(workspace):
    """The instruction sets that this machine runs, and those it does not with the program's reason."""
    usable, lacking = [], {}
    config = workspace.config_file("probe", workspace.config({}))
    for isa in ("generic", "avx2", "avx512", "avx512bf16", "amx"):
        done = workspace.command([workspace.ostro, "train", "--dry_run", "--config", config],
                                 {"OSTRO_ISA": isa}, check=False)
        if done.returncode == 0:
            usable.append(isa)
        elif "this machine has only" in done.stderr:
            lacking[isa] = "the CPU lacks it"
        else:
            raise RunFailed(f"OSTRO_ISA={isa}: {done.stderr.strip()}")
    return usable, lacking


def fail(message):
    print(f"FAILED: {message}", flush=True)
    sys.exit(1)
