#!/usr/bin/env python3
"""bench/tls.py --ostro PROGRAM [--workers 2] [--steps 30] [--rounds 7] [--hidden 128] [--layers 4]: what encrypting connections costs.

`ostro launch local` trains the same small model with `trainer.tls: job` and without, in turn, so that a machine that is
busier for a while slows both. Of each run it takes the median time of a step, from the times in metrics.jsonl, without
the first ten steps, and the CPU time of all its processes, which other work on the machine changes less. Prints for each
round both and their ratios, then the medians of the ratios, and whether all runs have one chain."""

import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from workers_test import Place  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    args = parser.parse_args()
    options = ["--trainer.num_train_steps", str(args.steps), "--model.hidden_dim", str(args.hidden), "--model.num_layers",
               str(args.layers), "--model.intermediate_dim", str(4 * args.hidden), "--trainer.checkpointer.keep", "[{every: 100000}]"]
    threads = str(max(1, (os.cpu_count() or 1) // args.workers))
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(pathlib.Path(args.ostro).resolve()), pathlib.Path(folder))
        chains, ratios = set(), []

        def cpu():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime

        def step(run, more):
            before = cpu()
            chains.add(place.launch(run, args.workers, [*options, *more], {"OSTRO_THREADS": threads}))
            rows = [json.loads(line) for line in (place.top / "runs" / run / "metrics.jsonl").read_text().splitlines()]
            times = [row["throughput/step_seconds"] for row in rows if "throughput/step_seconds" in row]
            return statistics.median(times[10:]), cpu() - before

        step("warm", [])
        for number in range(args.rounds):
            order = [("plain", []), ("tls", ["--trainer.tls", "job"])]
            if number % 2 == 1:
                order.reverse()
            took = {name: step(f"{name}-{number}", more) for name, more in order}
            ratios.append([took["tls"][i] / took["plain"][i] for i in range(2)])
            print(f"round {number + 1}: {1000 * took['plain'][0]:.1f} ms a step without TLS, {1000 * took['tls'][0]:.1f} ms with it: "
                  f"{ratios[-1][0]:.3f}; CPU time {took['plain'][1]:.2f} s and {took['tls'][1]:.2f} s: {ratios[-1][1]:.3f}", flush=True)
        time, cpu_time = (statistics.median(r[i] for r in ratios) for i in range(2))
        print(f"medians of {args.rounds}: {time:.3f} of the time of a step, {cpu_time:.3f} of CPU time; the chains are {'one' if len(chains) == 1 else 'NOT one'}")


if __name__ == "__main__":
    main()
