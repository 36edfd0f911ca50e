#!/usr/bin/env python3
"""Whether a thread that counts in Python keeps its rate while the package ostro trains, generates, scores and verifies in another
thread of the same process: at least 80 %, as the module gives up Python's lock (the GIL) while it computes.

A figure by the clock, so it is no test of the suite. In seven turns the counting alone alternates with the counting beside each call;
the program computes with one thread, so that two cores are enough. A rate is counts per second in which the thread had a core or
waited for Python: time that it waited for a core, which other processes had, is left out (/proc/thread-self/schedstat). Two controls:
beside a call that keeps the lock the rate must fall, and beside the same training in a process of its own, which shares no lock, one
sees what the machine itself takes.

    python_trials.py --ostro BINARY --package build/release/python [--log FILE]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from program import check
from serve_load import ROOT, Log

TURNS = 7
LEAST = 0.8  # of the rate alone
MOST_HELD = 0.5  # beside what keeps the lock
SECONDS = 1.0  # of counting alone
CONFIG = """\
data: {tokenizer: tokenizer.json, cache_dir: cache, train_urls: ["corpus/*.txt"]}
model: {type: llama, seq_len: 256, hidden_dim: 128, intermediate_dim: 352, num_layers: 4, num_heads: 4, num_kv_heads: 4}
optimizer: {type: adam, learning_rate: 0.003}
trainer: {id: base, log_dir: runs, train_batch_size: 4, num_train_steps: 20}
"""


class Counter:
    """Counts in a thread of its own from its making to `end`."""

    def __init__(self):
        self._over, self._begun = False, threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        self._begun.wait()

    def _count(self):
        begin, waited = time.perf_counter(), self._waited()
        self._begun.set()
        count = 0
        while not self._over:
            for _ in range(1000):
                count += 1
        self._seconds = time.perf_counter() - begin
        self._rate = count / (self._seconds - (self._waited() - waited))

    @staticmethod
    def _waited():
        """Seconds in which this thread could have run, and other threads had the cores."""
        return int(pathlib.Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9

    def end(self):
        """Counts per second, and for how many seconds it counted."""
        self._over = True
        self._thread.join()
        return self._rate, self._seconds


def rate(call):
    counter = Counter()
    try:
        call()
    finally:
        rate_and_seconds = counter.end()
    return rate_and_seconds


def prepare(ostro):
    lines = (ROOT / "LICENSE").read_text().splitlines(keepends=True)
    pathlib.Path("corpus").mkdir()
    for i in range(0, len(lines), 6):
        pathlib.Path(f"corpus/{i:03}.txt").write_text("".join(lines[i:i + 6]))
    pathlib.Path("base.yaml").write_text(CONFIG)
    for words in (("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "512", "--out", "tokenizer.json"),
                  ("train", "--config", "base.yaml")):
        done = subprocess.run([ostro, *words], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"ostro {words}: {done.stderr}")


def calls(ostro, program):
    """What the counting runs beside: each takes a second or more."""
    model = ostro.load("runs/base")
    text = pathlib.Path("corpus/000.txt").read_text()
    ids = (model.tokenizer.encode(text) * 20)[:256]

    def train():
        shutil.rmtree("runs/again", ignore_errors=True)
        ostro.train("base.yaml", {"trainer.id": "again", "trainer.num_train_steps": 5})

    def train_elsewhere():
        shutil.rmtree("runs/elsewhere", ignore_errors=True)
        subprocess.run([program, "train", "--config", "base.yaml", "--trainer.id", "elsewhere", "--trainer.num_train_steps", "5"], capture_output=True, check=True)

    def generate():
        for number in range(4):
            model.generate_text(ids[:100], max_tokens=150, temperature=1.0, seed=number)

    def hold():
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sum(range(3_000_000))  # one call in C, which gives the lock to nobody

    return {"train": train, "generate": generate, "score": lambda: model.score([text * 12] * 4), "verify": lambda: ostro.verify("runs/base", from_step=16),
            "logits": lambda: [model.logits(ids) for _ in range(20)], "load": lambda: [ostro.load("runs/base") for _ in range(10)],
            "a training elsewhere": train_elsewhere, "a call that keeps the lock": hold}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--package", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    given = parser.parse_args()
    log = Log(given.log and given.log.resolve(), "A thread that counts in Python beside calls of the package ostro")
    program = str(pathlib.Path(given.ostro).resolve())
    sys.path.insert(0, str(pathlib.Path(given.package).resolve()))
    os.environ["OSTRO_THREADS"] = "1"
    import ostro
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.chdir(folder)
        prepare(program)
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)  # what trainings tell
        beside = calls(ostro, program)
        for call in beside.values():  # whatever is made once is made
            call()
        shares, seconds, alone = {name: [] for name in beside}, {name: [] for name in beside}, []
        for _ in range(TURNS):
            for name, call in beside.items():
                before = rate(lambda: time.sleep(SECONDS))[0]
                while_it_runs, took = rate(call)
                shares[name].append(while_it_runs / before)
                seconds[name].append(took)
                alone.append(before)
        os.dup2(kept, 2)
        os.chdir("/")
    log.say(f"Python {sys.version.split()[0]}, OSTRO_THREADS=1, {TURNS} turns; alone {statistics.median(alone) / 1e6:.1f} million counts/s "
            f"(least {min(alone) / 1e6:.1f}, most {max(alone) / 1e6:.1f})")
    for name, values in shares.items():
        log.say(f"beside {name}: {statistics.median(values):.0%} of the rate just before it (least {min(values):.0%}, most {max(values):.0%}); it took "
                f"{statistics.median(seconds[name]):.1f} s")
    log.write()
    *held, _, control = shares
    check(statistics.median(shares[control]) < MOST_HELD, "the count keeps its rate beside a call that keeps the lock: this measures nothing")
    low = [name for name in held if statistics.median(shares[name]) < LEAST]
    check(not low, f"less than {LEAST:.0%} beside {', '.join(low)}")


if __name__ == "__main__":
    main()
