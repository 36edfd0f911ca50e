#!/usr/bin/env python3
"""bench/slices.py --ostro PROGRAM [--parts levels overlap] [--workers 2] [--hidden_dim 256] [--rates 1000 inner/100 100 10]
[--steps 12]: two slices with a slow link between them.

Needs root: each slice is a network namespace with its own workers; the two are joined by a link that Linux's token bucket
filter (tc tbf) limits to so many Mbit/s each way. All chains must be that of `ostro train`.

Bytes over the link are counted by the kernel, between two steps at which all workers are held until the link is quiet. Its packets times
HEADERS are headers; all else is payload, with the frames of Ostro and what goes to the coordinator. Payload is compared with what
`--dry_run` says before, and may be off by 2 %. Frames are about 300 bytes a message whatever the model's size: with `--hidden_dim 128` they
are 2 to 3 % of the payload. With every rate stands which part of the inner rate it is.

levels: `--workers` workers in each slice. The same run is trained by workers that have the names of their slices, and by
workers that have none, so that all exchange with all. Prints for each the median time of a step, and the bytes.
overlap: one worker in each slice, with one leaf each, of a deeper model. Prints for each rate the median time of a step
with trainer.mesh.slice_overlap and without, beside the larger of computing (a step without a limit of the link) and of what
the bytes of one direction take, as `--dry_run` says them before.
The inner rate is that of a connection inside this machine, which stands for a link inside a slice. It is measured first; `inner/100` of
`--rates` is one hundredth of it."""

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
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from slow_link import Link  # noqa: E402
from workers_matrix import kill_all  # noqa: E402
from workers_test import Gate, Place  # noqa: E402

OPTIONS = ["--trainer.mp", "f32", "--trainer.checkpointer.keep", "[{every: 1000}]", "--trainer.stop_timeout", "10m"]
FIRST = 2  # steps before bytes are counted
MOST_SAID = 16 << 10  # bytes in a heartbeat (ostro/cluster/link.cc)
HEADERS = 14 + 20 + 32  # bytes of a packet: Ethernet, IPv4, TCP with timestamps


class Sent(NamedTuple):
    """Bytes over the link a step."""
    payload: float
    headers: float

    def text(self, said=None):
        off = None if said is None else 100 * (self.payload / said - 1)
        against = "" if said is None else f", said {said / 1e6:.3f} MB, off {off:+.2f} %: {'within' if abs(off) <= 2 else 'NOT within'} 2 %"
        return f"sent {self.payload / 1e6:.3f} MB{against}; headers {self.headers / 1e6:.3f} MB"


def sent_until(place, name, step, link, children):
    """What has been sent when all workers are held after this step, and the parameters of the next one have crossed, too."""
    path = place.top / "runs" / name / "cluster.json"

    def held():
        members = json.loads(path.read_text())["members"] if path.exists() else []
        return len(members) == len(children) - 1 and all(m["step"] == step + 1 and m["phase"] == "leaf" for m in members)
    while not held():
        if any(child.poll() is not None for child in children):
            sys.exit(f"{name}: exit codes {[child.poll() for child in children]}")
        time.sleep(0.05)
    last, now = (0, 0), link.sent()
    # Heartbeats are less, each with what a worker of the other slice has written to standard error.
    quiet = 20_000 + (len(children) - 1) // 2 * MOST_SAID
    while now[0] - last[0] > quiet:
        time.sleep(0.25)
        last, now = now, link.sent()
    return now


def train(place, name, mbit, workers, slices, options):
    """Seconds of a step (the median), Sent."""
    link = Link(mbit)
    children = []
    gate = Gate(tempfile.mkdtemp(dir=place.top))
    gate.at(FIRST)
    last = int(options[options.index("--trainer.num_train_steps") + 1]) - 1
    env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "of the bench", "OSTRO_FAULT": gate.fault()})
    words = place.words(name, options)
    try:
        children.append(link.start(0, [place.ostro, "coordinator", "--bind", "10.78.0.1", "--port", "4711", "--min_workers",
                                       str(2 * workers), "--max_workers", str(2 * workers), *words], env=env, stdout=subprocess.DEVNULL))
        for s in (0, 1):
            for _ in range(workers):
                more = ["--slice", f"slice-{s}"] if slices else []
                children.append(link.start(s, [place.ostro, "worker", "--coordinator", "10.78.0.1:4711", "--bind", f"10.78.0.{s + 1}",
                                               *more, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        before = sent_until(place, name, FIRST, link, children)
        gate.at(last)
        after = sent_until(place, name, last, link, children)
        gate.open()
        for child in children:
            child.wait()
    finally:
        kill_all(children)
        link.remove()
    if any(child.returncode != 0 for child in children):
        sys.exit(f"{name}: exit codes {[child.returncode for child in children]}")
    rows = [json.loads(line) for line in (place.top / "runs" / name / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "throughput/step_seconds" in row]
    # The steps in which workers were held are left out.
    seconds = statistics.median(row["throughput/step_seconds"] for row in rows[FIRST + 1:last])
    total, packets = (b - a for a, b in zip(before, after))
    return seconds, Sent((total - packets * HEADERS) / (last - FIRST), packets * HEADERS / (last - FIRST))


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


def rate_text(mbit, inner):
    return f"{mbit:7g} Mbit/s (1/{inner / mbit:.0f} of the inner rate)"


def said_before(place, workers, options):
    told = place.run(["train", "--dry_run", *place.words("planned", options)],
                     {"OSTRO_SIM_WORKERS": str(2 * workers), "OSTRO_SIM_SLICES": f"{workers}:{workers}"}).stdout
    return int(re.search(r"between slices, all workers together: (\d+) bytes", told)[1])


def sizes(hidden, layers):
    return ["--model.hidden_dim", str(hidden), "--model.intermediate_dim", str(4 * hidden), "--model.num_layers", str(layers)]


def levels(place, args):
    for copies in (1, 0):
        options = [*OPTIONS, *sizes(args.hidden_dim, 4), "--trainer.num_train_steps", str(args.steps),
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
                print(f"  {rate_text(mbit, args.inner)}, {'in two levels' if slices else 'all with all '}: {seconds:8.3f} s a step, "
                      f"{sent.text(said if slices else None)}", flush=True)


def overlap(place, args):
    options = [*OPTIONS, *sizes(128, args.layers), "--trainer.mesh.state_replicas", "0", "--trainer.num_train_steps",
               str(args.steps), "--trainer.train_batch_size", str(2 * args.rows), "--numerics.leaf_examples", str(args.rows)]
    expected = place.train("alone-deep", options, seconds=900)
    said = said_before(place, 1, options)
    each_way = said / 2
    seconds, sent = {}, {}
    for mbit in [None, *args.limits]:
        for beside in random.sample([True, False], 2):
            name = f"deep-{mbit}-{beside}"
            seconds[mbit, beside], sent[beside] = train(place, name, mbit, 1, True,
                                                        [*options, "--trainer.mesh.slice_overlap", str(beside).lower()])
            if place.chain(name) != expected:
                sys.exit(f"{name}: another chain")
        computing = min(seconds[None, True], seconds[None, False])
        if mbit is None:
            print(f"{args.layers} layers, leaves of {args.rows} rows: computing takes {computing:.3f} s a step; {each_way / 1e6:.2f} MB go each way "
                  "between slices", flush=True)
            continue
        bound = max(computing, each_way * 8 / (mbit * 1e6))
        print(f"  {rate_text(mbit, args.inner)}: bound {bound:.3f} s (bytes {each_way * 8 / (mbit * 1e6):.3f} s); beside the leaves "
              f"{seconds[mbit, True]:.3f} s, {seconds[mbit, True] / bound:.2f} times; after them {seconds[mbit, False]:.3f} s, "
              f"{seconds[mbit, False] / bound:.2f} times", flush=True)
        for beside in (True, False):
            print(f"    {'beside' if beside else 'after '} the leaves: {sent[beside].text(said)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--parts", nargs="+", choices=["levels", "overlap"], default=["levels", "overlap"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hidden_dim", type=int, default=256, help="of the model, in the part levels")
    parser.add_argument("--rows", type=int, default=8, help="of a leaf, in the part overlap")
    parser.add_argument("--layers", type=int, default=12, help="of the model, in the part overlap")
    parser.add_argument("--rates", nargs="+", default=["1000", "inner/100", "100", "10"], help="Mbit/s, or inner/100")
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    if args.steps < FIRST + 4:
        parser.error(f"--steps {args.steps}: {FIRST + 4} at least, of which those between two holds count")
    args.inner = inner_mbit()
    args.limits = [rate_of(text, args.inner) for text in args.rates]
    print(f"the inner rate, of a connection inside this machine: {args.inner / 1000:.1f} Gbit/s; 1/100 of it is {args.inner / 100:.1f} Mbit/s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        for part in args.parts:
            {"levels": levels, "overlap": overlap}[part](place, args)


if __name__ == "__main__":
    main()
