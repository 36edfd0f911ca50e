"""Helpers of the fault tests: a small corpus, a tiny model's configuration, and running ostro on them."""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time


class Failure(Exception):
    """A promise of the program that did not hold."""


class Skip(Exception):
    """What a case needs is not there."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def write_corpus(folder, files=9, words=2500, seed=7):
    """Files of words that repeat with unequal shares, the same on every machine."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwyp"
    lexicon = ["".join(rng.choice(letters) for _ in range(rng.randint(1, 8))) for _ in range(300)]
    folder.mkdir(parents=True)
    for i in range(files):
        text = " ".join(lexicon[min(int(rng.expovariate(0.03)), 299)] for _ in range(words))
        (folder / f"{i:02}.txt").write_text(text + "\n")


class Workspace:
    """A temporary folder with corpus, tokenizer and configurations. Commands run inside it."""

    def __init__(self, ostro):
        self.ostro = str(pathlib.Path(ostro).resolve())
        # In memory where that is possible: a killed process loses nothing that the kernel has, and syncing a
        # disk that others use takes seconds.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and "TMPDIR" not in os.environ else None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="ostro-fault-", dir=memory))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        # One cache of kernels: only the first run waits for the C compiler.
        self.env |= {"OSTRO_CACHE_DIR": str(self.root / "kernels"), "OSTRO_THREADS": "1"}
        write_corpus(self.root / "corpus")
        self.good("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "300", "--out", "tokenizer.json")

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def config(self, name, steps=40, every=5, **changes):
        """Writes NAME.yaml: run runs/NAME on the store cache-NAME. `changes` are keys like trainer__seed."""
        values = {
            "data": {
                "tokenizer": "tokenizer.json", "cache_dir": f"cache-{name}", "train_urls": ["corpus/*.txt"],
                "validation_fraction": 0.2,
            },
            "model": {
                "type": "llama", "seq_len": 16, "hidden_dim": 16, "intermediate_dim": 24, "num_layers": 2,
                "num_heads": 2, "num_kv_heads": 1,
            },
            "optimizer": {"type": "adam", "learning_rate": 0.003},
            "trainer": {
                "id": name, "log_dir": "runs", "train_batch_size": 6, "num_train_steps": steps, "steps_per_eval": 0,
                "checkpointer": {"keep": [{"every": every}]},
            },
            "numerics": {"leaf_examples": 3, "cells": {"embed": 4}},
        }
        for path, value in changes.items():
            *above, key = path.split("__")
            section = values
            for part in above:
                section = section.setdefault(part, {})
            section[key] = value
        if "components" in values["data"]:
            del values["data"]["validation_fraction"]  # each component has its own
        path = self.root / f"{name}.yaml"
        path.write_text(json.dumps(values, indent=1))  # JSON is YAML
        return f"{name}.yaml"

    def start(self, *words, env=None, cwd=None):
        return subprocess.Popen([self.ostro, *words], cwd=cwd or self.root, env=self.env | (env or {}), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, env=None, cwd=None, timeout=300):
        """(exit status, stdout, stderr); the status is negative after a signal."""
        process = self.start(*words, env=env, cwd=cwd)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise Failure(f"{' '.join(words)}: still running after {timeout} s\n{out}{err}")
        return process.returncode, out, err

    def good(self, *words, env=None, cwd=None):
        """Runs what must succeed; gives stdout and stderr together."""
        status, out, err = self.run(*words, env=env, cwd=cwd)
        check(status == 0, f"{' '.join(words)}: exit status {status}\n{out}{err}")
        return out + err

    def bad(self, *words, says, env=None, cwd=None):
        """Runs what must be refused: one error line that has all the words of `says`, and a status that tells."""
        status, out, err = self.run(*words, env=env, cwd=cwd)
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        command = " ".join(words)
        check(status in (1, 2), f"{command}: exit status {status}\n{out}{err}")
        check(len(errors) == 1, f"{command}: {len(errors)} error lines\n{out}{err}")
        missing = [word for word in says if word not in errors[0]]
        check(not missing, f"{command}: no word of {missing} in: {errors[0]}")
        print(f"    {errors[0][:260]}")
        return errors[0]

    def verdict(self, word, *words, says=(), env=None, cwd=None):
        """verify, whose first line begins with the verdict `word` and has all the words of `says`."""
        codes = {"equal": 0, "differs": 1, "incomplete": 3, "cannot check": 4}
        status, out, err = self.run("verify", *words, env=env, cwd=cwd)
        first = out.split("\n", 1)[0]
        check(status == codes[word], f"verify {words}: exit status {status}, not {codes[word]}\n{out}{err}")
        check(first.startswith((f"{word}:", f"{word} at ")), f"verify {words}: the first line is not {word}:\n{out}{err}")
        missing = [part for part in says if part not in first]
        check(not missing, f"verify {words}: no word of {missing} in: {first}")
        print(f"    {first[:260]}")
        return out

    def train(self, config, *words, env=None):
        return self.good("train", "--config", config, *words, env=env)

    def chain(self, name):
        return (self.root / "runs" / name / "chain.jsonl").read_bytes()

    def chain_lines(self, name):
        path = self.root / "runs" / name / "chain.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def checkpoints(self, name):
        """{directory: (kind, name of the state)} of the run's checkpoints; other entries have no name."""
        found = {}
        folder = self.root / "runs" / name / "checkpoints"
        for entry in sorted(folder.iterdir()) if folder.exists() else []:
            value = {}
            if not entry.name.endswith(".tmp"):  # whose manifest may be in the middle of being written
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    value = json.loads((entry / "manifest.json").read_text())
            found[entry.name] = (value.get("kind"), value.get("name"))
        return found

    def newest_step(self, name):
        """Of the checkpoints that are whole; 0 without one."""
        steps = [int(d[5:]) for d, (_, state) in self.checkpoints(name).items() if state and d[5:].isdigit()]
        return max(steps, default=0)


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f"waited {seconds} s in vain for {what}")
        time.sleep(0.002)


def killed(status):
    return status == -signal.SIGKILL


@contextlib.contextmanager
def mounted(place, *words):
    """A file system at `place`, for root; else the case is skipped."""
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", *words, place], capture_output=True).returncode != 0:
        raise Skip("mounting needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def in_order(test, names):
    """The main of a test whose steps build on each other: the named methods one after the other until one fails, with
    their times; then test.close(). The exit status."""
    try:
        for name in names:
            begin = time.monotonic()
            getattr(test, name)()
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    finally:
        test.close()
    print("passed")
    return 0


def case_names(cases_of, helpers=()):
    """The methods that are cases: of the class, then of its bases in their order, without `helpers`."""
    return [n for c in cases_of.__mro__ for n in vars(c) if not n.startswith("_") and n not in helpers]


def run_cases(cases_of, helpers=()):
    """The main of a test: runs the methods of the class, or those named, on a workspace; 1 when any failed."""
    names = case_names(cases_of, helpers)
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("cases", nargs="*", default=names, metavar="CASE")
    args = parser.parse_args()
    begin, failed, skipped = time.monotonic(), [], []
    w = Workspace(args.ostro)
    try:
        cases = cases_of(w)
        for name in args.cases:
            print(f"  {name}", flush=True)
            try:
                getattr(cases, name)()
            except Skip as reason:
                skipped.append(name)
                print(f"    skipped: {reason}")
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                failed.append(name)
                print(f"    FAILED: {failure}")
    finally:
        w.close()
    print(f"result: {len(args.cases) - len(failed) - len(skipped)} passed, {len(failed)} failed {failed}, "
          f"{len(skipped)} skipped {skipped}; {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0
