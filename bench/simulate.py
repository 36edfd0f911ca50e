#!/usr/bin/env python3
"""bench/simulate.py --ostro PROGRAM [--workers 2 4 8] [--steps 8] [--rounds N] [--cores N] [--json FILE]
[--slices 2 --rate MBIT ...]: step times that `ostro simulate` predicts, beside those of real runs.

All workers are processes of this machine with one thread each, so they share its cores (--cores, all by default). Leaves, sums,
updates, fingerprints, loopback and messages are measured by one process (`ostro simulate --calibrate`) before each run. Prints
the median time of a step without the first two, the prediction, and by how much it is off; with --rounds each pair so often, in turns, and
the medians of how much they are off. What else works on the machine falls into both, but not equally: figures of a busy machine say little.

Without --slices: runs of `ostro launch local`. With --slices 2: half of the workers in each of two network namespaces, as in
bench/slices.py, with a link of each of the given rates between them, with trainer.mesh.slice_overlap and without; each worker
has one leaf. Needs root."""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import slices

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_test import Place  # noqa: E402

LEAVES = 32
OPTIONS = ["--model.hidden_dim", "256", "--model.intermediate_dim", "1024", "--model.num_layers", "4", "--trainer.mp", "f32",
           "--trainer.checkpointer.keep", "[{every: 1000}]", "--trainer.train_batch_size", str(LEAVES),
           "--numerics.cells", "{embed: 32}"]
MEASURED = ["leaf_seconds", "add_seconds", "update_seconds", "print_seconds", "loopback_gbytes", "message_us"]


def step_seconds(place, workers, options, turn):
    run = f"run-{workers}-{turn}"
    place.run(["launch", "local", "--workers", str(workers), *place.words(run, options)], {"OSTRO_THREADS": "1"}, seconds=3600)
    rows = [json.loads(line) for line in (place.top / "runs" / run / "metrics.jsonl").read_text().splitlines()]
    seconds = [row["throughput/step_seconds"] for row in rows if "throughput/step_seconds" in row]
    return statistics.median(seconds[2:])


def simulated(place, workers, on_a_machine, cores, options, more):
    words = ["simulate", "--json", "--hosts", str(workers), "--hosts_per_machine", str(on_a_machine), "--cores", str(cores), "--spread", "0",
             "--jitter", "0", "--hours", "0", *more, *place.words("simulated", options)]
    return json.loads(place.run(words, {"OSTRO_THREADS": "1"}, seconds=600).stdout)


def calibrated(place, workers, cores, options):
    said = simulated(place, workers, workers, cores, options, ["--calibrate"])
    print("measured by one process: " + ", ".join(f"{name} {said['assumed'][name]:.4g}" for name in MEASURED), flush=True)
    return said


def row(what, seen, told, **more):
    off = told["seconds"] / seen - 1
    print(f"{what}: {seen:8.3f} s a step, predicted {told['seconds']:8.3f} s ({100 * off:+.1f} %)", flush=True)
    return more | {"seconds": seen, "predicted": told["seconds"], "off": off, "parts": told["parts"]}


def kind(one):
    return one["workers"], one.get("mbit"), one.get("slice_overlap")


def in_one_place(place, args):
    options = [*OPTIONS, "--trainer.num_train_steps", str(args.steps)]
    place.run(["data", "build", *place.words("stores", options)])
    for turn in range(args.rounds):
        for workers in args.workers:
            said = calibrated(place, workers, args.cores, options)
            yield row(f"{workers:3} processes", step_seconds(place, workers, options, turn), said["step"], workers=workers, assumed=said["assumed"])


def in_slices(place, args):
    for workers in args.workers:
        options = [*slices.OPTIONS, "--model.num_layers", str(args.layers), "--trainer.mesh.state_replicas", "0", "--trainer.num_train_steps",
                   str(args.steps), "--trainer.train_batch_size", str(workers * args.rows), "--numerics.leaf_examples", str(args.rows)]
        place.run(["data", "build", *place.words(f"stores-{workers}", options)])
        chains = set()
        for mbit in args.rate:
            for beside in (True, False):
                own = [*options, "--trainer.mesh.slice_overlap", str(beside).lower()]
                assumed = calibrated(place, workers, args.cores, own)["assumed"]
                # Inside a namespace bytes cost cores alone. Each side of the link may send so many bits a second.
                more = [word for name in MEASURED for word in (f"--{name}", str(assumed[name]))]
                said = simulated(place, workers, workers // 2, args.cores / 2, own, [
                    *more, "--slices", "2", "--inner_gbit", "1000", "--inner_latency_us", "50", "--outer_gbit", str(mbit / 1000),
                    "--outer_latency_us", "100"])
                if said["slice_overlap"] != beside:
                    sys.exit(f"slice_overlap is {said['slice_overlap']} in the plan, {beside} in the options")
                name = f"run-{workers}-{mbit:g}-{beside}"
                seen, _ = slices.train(place, name, mbit, workers // 2, True, own)
                chains.add(place.chain(name))
                yield row(f"{workers:3} processes in 2 slices, {mbit:7g} Mbit/s, {'beside' if beside else 'after '} the leaves", seen, said["step"],
                          workers=workers, mbit=mbit, slice_overlap=beside, assumed=said["assumed"])
        if len(chains) != 1:
            sys.exit(f"{workers} processes: {len(chains)} chains of one run")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--workers", type=int, nargs="+", help="in all (default 2 4 8; with --slices 2)")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1, help="of each number of workers, without --slices")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--slices", type=int, choices=[1, 2], default=1)
    parser.add_argument("--rate", type=float, nargs="+", help="Mbit/s of the link between two slices, each way")
    parser.add_argument("--rows", type=int, default=8, help="of a leaf, with --slices 2")
    parser.add_argument("--layers", type=int, default=12, help="of the model, with --slices 2")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.workers = args.workers or ([2] if args.slices == 2 else [2, 4, 8])
    if (args.slices == 2) != bool(args.rate):
        parser.error("--slices 2 and --rate belong together")
    if args.slices == 2 and any(workers % 2 for workers in args.workers):
        parser.error(f"--workers {args.workers}: use even numbers, for two slices of one size")
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        rows = list(in_slices(place, args) if args.slices == 2 else in_one_place(place, args))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"cores": args.cores, "rows": rows}, indent=1))
    off = {what: statistics.median(one["off"] for one in rows if kind(one) == what) for what in map(kind, rows)}
    if args.rounds > 1:
        for what, value in off.items():
            print(f"median of {args.rounds}, {what[0]} processes: off by {100 * value:+.1f} %")
    print(f"result: off by {100 * max(map(abs, off.values())):.1f} % at most")


if __name__ == "__main__":
    main()
