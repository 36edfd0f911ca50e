#!/usr/bin/env python3
"""bench/simulate.py --ostro PROGRAM [--workers 2 4 8] [--steps 8] [--cores N] [--json FILE]: step times that `ostro simulate`
predicts, beside those of real runs of `ostro launch local`.

All workers are processes of this machine with one thread each, so they share its cores (--cores, all by default). Leaves, sums,
updates, fingerprints, loopback and messages are measured by one process (`ostro simulate --calibrate`) before each run. Prints
the median time of a step without the first two, the prediction, and by how much it is off. What else works on the machine falls
into both, but not equally: figures of a busy machine say little."""

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

LEAVES = 32
OPTIONS = ["--model.hidden_dim", "256", "--model.intermediate_dim", "1024", "--model.num_layers", "4", "--trainer.mp", "f32",
           "--trainer.checkpointer.keep", "[{every: 1000}]", "--trainer.train_batch_size", str(LEAVES),
           "--numerics.cells", "{embed: 32}"]
MEASURED = ["leaf_seconds", "add_seconds", "update_seconds", "print_seconds", "loopback_gbytes", "message_us"]


def step_seconds(place, workers, options):
    run = f"run-{workers}"
    place.run(["launch", "local", "--workers", str(workers), *place.words(run, options)], {"OSTRO_THREADS": "1"}, seconds=3600)
    rows = [json.loads(line) for line in (place.top / "runs" / run / "metrics.jsonl").read_text().splitlines()]
    seconds = [row["throughput/step_seconds"] for row in rows if "throughput/step_seconds" in row]
    return statistics.median(seconds[2:])


def simulated(place, workers, cores, options, more):
    words = ["simulate", "--json", "--hosts", str(workers), "--hosts_per_machine", str(workers), "--cores", str(cores), "--spread", "0",
             "--jitter", "0", "--hours", "0", *more, *place.words("simulated", options)]
    return json.loads(place.run(words, {"OSTRO_THREADS": "1"}, seconds=600).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        options = [*OPTIONS, "--trainer.num_train_steps", str(args.steps)]
        place.run(["data", "build", *place.words("stores", options)])
        for workers in args.workers:
            said = simulated(place, workers, args.cores, options, ["--calibrate"])
            told, assumed = said["step"], said["assumed"]
            print("measured by one process: " + ", ".join(f"{name} {assumed[name]:.4g}" for name in MEASURED), flush=True)
            seen = step_seconds(place, workers, options)
            off = told["seconds"] / seen - 1
            rows.append({"workers": workers, "seconds": seen, "predicted": told["seconds"], "off": off, "parts": told["parts"], "assumed": assumed})
            print(f"{workers:3} processes: {seen:8.3f} s a step, predicted {told['seconds']:8.3f} s ({100 * off:+.1f} %)", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"cores": args.cores, "rows": rows}, indent=1))
    worst = max(abs(row["off"]) for row in rows)
    print(f"result: off by {100 * worst:.1f} % at most")


if __name__ == "__main__":
    main()
