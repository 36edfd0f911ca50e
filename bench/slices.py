#!/usr/bin/env python3
"""bench/slices.py --ostro PROGRAM [--parts levels overlap] [--workers 2] [--rates 1000 inner/100 100 10] [--steps 12]: two slices with a
slow link between them.

Needs root: each slice is a network namespace with its own workers; the two are joined by a link that Linux's token bucket
filter (tc tbf) limits to so many Mbit/s each way. All chains must be that of `ostro train`.

levels: `--workers` workers in each slice. The same run is trained by workers that have the names of their slices, and by
workers that have none, so that all exchange with all. Prints for each the median time of a step, the bytes that crossed the
link a step (counted by the kernel, with headers), and what `--dry_run` said before.
overlap: one worker in each slice, with one leaf each, of a deeper model. Prints for each rate the median time of a step
with trainer.mesh.slice_overlap and without, beside the larger of computing (a step without a limit of the link) and of what
the bytes of one direction take, as `--dry_run` says them before. It begins with the rate of a connection inside this machine, which stands for a
link inside a slice, and takes one hundredth of it, where `--rates` says `inner/100`."""

import argparse
import json
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from slow_link import Link  # noqa: E402
from workers_matrix import kill_all  # noqa: E402
from workers_test import Place  # noqa: E402

OPTIONS = ["--model.hidden_dim", "128", "--model.intermediate_dim", "512", "--trainer.mp", "f32",
           "--trainer.checkpointer.keep", "[{every: 1000}]", "--trainer.stop_timeout", "10m"]


def train(place, name, mbit, workers, slices, options):
    """Seconds of a step (the median), bytes over the link a step."""
    link = Link(mbit)
    children = []
    env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "of the bench"})
    words = place.words(name, options)
    metrics = place.top / "runs" / name / "metrics.jsonl"

    def steps():
        if not metrics.exists():
            return []
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        return [row for row in rows if "throughput/step_seconds" in row]
    try:
        children.append(link.start(0, [place.ostro, "coordinator", "--bind", "10.78.0.1", "--port", "4711", "--min_workers",
                                       str(2 * workers), "--max_workers", str(2 * workers), *words], env=env, stdout=subprocess.DEVNULL))
        for s in (0, 1):
            for _ in range(workers):
                more = ["--slice", f"slice-{s}"] if slices else []
                children.append(link.start(s, [place.ostro, "worker", "--coordinator", "10.78.0.1:4711", "--bind", f"10.78.0.{s + 1}",
                                               *more, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while len(steps()) < 2 and children[0].poll() is None:
            time.sleep(0.02)
        at, before = len(steps()), link.bytes()
        for child in children[1:]:
            child.wait()
        after, rows = link.bytes(), steps()
        children[0].wait()
    finally:
        kill_all(children)
        link.remove()
    if any(child.returncode != 0 for child in children):
        sys.exit(f"{name}: exit codes {[child.returncode for child in children]}")
    return statistics.median(row["throughput/step_seconds"] for row in rows[at:]), (after - before) / (len(rows) - at)


def inner_mbit(seconds=2.0, piece=1 << 20):
    """Mbit/s that one connection carries inside this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        taken = []

        def take():
            memory, count = bytearray(piece), 0
            while got := receiver.recv_into(memory):
                count += got
            taken.append(count)
        reader = threading.Thread(target=take)
        reader.start()
        begin, memory = time.monotonic(), bytes(piece)
        while time.monotonic() - begin < seconds:
            sender.sendall(memory)
        sender.shutdown(socket.SHUT_WR)
        reader.join()
        receiver.close()
        return taken[0] * 8 / 1e6 / (time.monotonic() - begin)


def rate_of(text, inner):
    return round(inner / 100, 1) if text == "inner/100" else float(text)


def said_before(place, workers, options):
    told = place.run(["train", "--dry_run", *place.words("planned", options)],
                     {"OSTRO_SIM_WORKERS": str(2 * workers), "OSTRO_SIM_SLICES": f"{workers}:{workers}"}).stdout
    return int(re.search(r"between slices, all workers together: (\d+) bytes", told)[1])


def levels(place, args):
    for copies in (1, 0):
        options = [*OPTIONS, "--model.num_layers", "4", "--trainer.num_train_steps", str(args.steps),
                   "--trainer.mesh.state_replicas", str(copies)]
        expected = place.train(f"alone-{copies}", options, seconds=600)
        said = said_before(place, args.workers, options)
        print(f"state_replicas {copies}: {said / 1e6:.2f} MB a step between slices are said before", flush=True)
        for mbit in args.limits:
            for slices in random.sample([True, False], 2):
                name = f"run-{copies}-{mbit:g}-{slices}"
                seconds, sent = train(place, name, mbit, args.workers, slices, options)
                if place.chain(name) != expected:
                    sys.exit(f"{name}: another chain")
                print(f"  {mbit:7g} Mbit/s, {'in two levels' if slices else 'all with all '}: {seconds:8.3f} s a step, "
                      f"{sent / 1e6:6.2f} MB over the link", flush=True)


def overlap(place, args):
    options = [*OPTIONS, "--model.num_layers", str(args.layers), "--trainer.mesh.state_replicas", "0", "--trainer.num_train_steps",
               str(args.steps), "--trainer.train_batch_size", str(2 * args.rows), "--numerics.leaf_examples", str(args.rows)]
    expected = place.train("alone-deep", options, seconds=900)
    each_way = said_before(place, 1, options) / 2
    seconds = {}
    for mbit in [None, *args.limits]:
        for beside in random.sample([True, False], 2):
            name = f"deep-{mbit}-{beside}"
            seconds[mbit, beside], sent = train(place, name, mbit, 1, True,
                                                [*options, "--trainer.mesh.slice_overlap", str(beside).lower()])
            if place.chain(name) != expected:
                sys.exit(f"{name}: another chain")
        computing = min(seconds[None, True], seconds[None, False])
        if mbit is None:
            print(f"{args.layers} layers, leaves of {args.rows} rows: computing takes {computing:.3f} s a step; {each_way / 1e6:.2f} MB go each way "
                  "between slices", flush=True)
            continue
        bound = max(computing, each_way * 8 / (mbit * 1e6))
        print(f"  {mbit:7g} Mbit/s: bound {bound:.3f} s (bytes {each_way * 8 / (mbit * 1e6):.3f} s); beside the leaves "
              f"{seconds[mbit, True]:.3f} s, {seconds[mbit, True] / bound:.2f} times; after them {seconds[mbit, False]:.3f} s, "
              f"{seconds[mbit, False] / bound:.2f} times; {sent / 1e6:.2f} MB over the link", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--parts", nargs="+", choices=["levels", "overlap"], default=["levels", "overlap"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=8, help="of a leaf, in the part overlap")
    parser.add_argument("--layers", type=int, default=12, help="of the model, in the part overlap")
    parser.add_argument("--rates", nargs="+", default=["1000", "inner/100", "100", "10"], help="Mbit/s, or inner/100")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    inner = inner_mbit()
    args.limits = [rate_of(text, inner) for text in args.rates]
    print(f"a connection inside this machine carries {inner / 1000:.1f} Gbit/s; one hundredth of it is {inner / 100:.0f} Mbit/s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        for part in args.parts:
            {"levels": levels, "overlap": overlap}[part](place, args)


if __name__ == "__main__":
    main()
