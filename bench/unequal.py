#!/usr/bin/env python3
"""bench/unequal.py --ostro PROGRAM [--leaf_ms 100 200 400] [--leaves 28] [--steps 16]: workers of unequal speed, with even shares of
leaves and with shares by measured speed (trainer.shares).

`--leaf_ms` are the workers: each computes a leaf on one thread and sleeps until so many milliseconds have gone by
(OSTRO_SIM_SLOW=RANK:100ms). Their speeds are those of machines of their own: what a leaf computes takes a third of the
fastest one's time, so the workers, which share this machine's cores, do not slow each other down. (A leaf that is stretched
by a factor, RANK:x8, stretches by it whatever a neighbour costs it here.) First each worker trains alone, then all together.
Prints leaves a second, for all together also as a share of the sum of the rates alone; then a run in whose middle the
fastest worker becomes as slow as the slowest, and what its events say. Figures are medians over the steps after shares have
settled (half of them), with all that a step does beside its leaves. All chains must be that of `ostro train`."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_test import Place  # noqa: E402

MODEL = ["--model.hidden_dim", "128", "--model.intermediate_dim", "512", "--model.num_layers", "4", "--trainer.mp", "f32",
         "--trainer.checkpointer.keep", "[{every: 1000}]", "--trainer.stop_timeout", "10m"]


def steps_of(place, name):
    """Seconds of each step."""
    rows = (place.top / "runs" / name / "metrics.jsonl").read_text().splitlines()
    return [row["throughput/step_seconds"] for row in map(json.loads, rows) if "throughput/step_seconds" in row]


def events_of(place, name):
    rows = (place.top / "runs" / name / "events.jsonl").read_text().splitlines()
    return [(row["step"], row["text"]) for row in map(json.loads, rows) if row["event"] == "shares"]


def train(place, name, slow, options, expected):
    """Seconds of a step, the median of the last half of the steps. `slow`: entries of OSTRO_SIM_SLOW; as many workers as ranks."""
    workers = len({entry.split(":")[0] for entry in slow})
    words = ["launch", "local", "--workers", str(workers), "--min_workers", str(workers), *place.words(name, options)]
    done = subprocess.run([place.ostro, *words], text=True, capture_output=True, check=False,
                          env=place.environment({"OSTRO_THREADS": "1", "OSTRO_SIM_SLOW": ",".join(slow)}))
    if done.returncode != 0:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stderr}")
    if place.chain(name) != expected:
        sys.exit(f"{name}: another chain")
    seconds = steps_of(place, name)
    return statistics.median(seconds[len(seconds) // 2:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--leaf_ms", type=int, nargs="+", default=[100, 200, 400])
    parser.add_argument("--leaves", type=int, default=28)
    parser.add_argument("--steps", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        options = [*MODEL, "--trainer.train_batch_size", str(args.leaves), "--trainer.num_train_steps", str(args.steps)]
        expected = place.train("chain", options, {"OSTRO_THREADS": "1"}, seconds=3600)
        print(f"{args.leaves} leaves a step; leaves a second, medians of {args.steps - args.steps // 2} steps", flush=True)
        alone = []
        for lasts in args.leaf_ms:
            alone.append(args.leaves / train(place, f"alone-{lasts}", [f"0:{lasts}ms"], options, expected))
            print(f"  alone, {lasts:5} ms a leaf:      {alone[-1]:7.2f}", flush=True)
        print(f"  the sum of them:          {sum(alone):7.2f}", flush=True)
        together = [f"{rank}:{lasts}ms" for rank, lasts in enumerate(args.leaf_ms)]
        for shares in ("even", "measured"):
            rate = args.leaves / train(place, shares, together, [*options, "--trainer.shares", shares], expected)
            print(f"  together, shares {shares:>8}: {rate:7.2f}, {rate / sum(alone):.3f} of the sum", flush=True)
        middle = args.steps // 2
        fastest = args.leaf_ms.index(min(args.leaf_ms))
        train(place, "slowed", [*together, f"{fastest}:{max(args.leaf_ms)}ms@{middle}"], [*options, "--trainer.shares", "measured"], expected)
        print(f"worker {fastest} becomes as slow as the slowest in step {middle}:", flush=True)
        for step, text in events_of(place, "slowed"):
            print(f"  after step {step}: {text}", flush=True)


if __name__ == "__main__":
    main()
