#!/usr/bin/env python3
"""Tests trainer.cross_check against silent faults: bits that flip in a worker, and that nobody reports.

OSTRO_FAULT flips a bit in the gradients of a leaf, in bytes that arrive, or in a cell of the optimizer. With
cross_check the run has the chain of one honest process: the fault is found within its step; who is named leaves, and
the others go on. Without it the same fault gives another chain, so the fault is one that matters.

The cases are a sample that OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all.

    corruption_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "suite")]
import seed  # noqa: E402
from workers_test import Place, check, run_together  # noqa: E402

STEPS = 24
OPTIONS = ["--trainer.num_train_steps", str(STEPS), "--trainer.checkpointer.keep", "[{every: 5}]", "--trainer.mp", "f32",
           "--model.seq_len", "64"]
# Bit 20 of a float is in its mantissa. That of the longest message is in a row of a token that occurs in step 3.
CASES = {
    # name: (workers, least, fault, kind of event, text)
    "gradient of worker 2": (3, 2, "gradient:*:2:flip=20", "corrupt", r"step \d+: worker 2 on \S+ computes what the others do not: leaf \d"),
    "gradient of the leader": (3, 2, "gradient:3:0:flip=20", "corrupt", r"step 3: worker 0 on \S+ computes what the others do not"),
    "gradient of one of two": (2, 1, "gradient:*:1:flip=20", "corrupt", r"step \d+: worker 1 on \S+ computes what the others do not"),
    "exchanged bytes": (3, 2, "received:3:1:flip=90004", "end", r"bytes from worker \d differ where they arrive, at worker 1"),
    "a cell of the optimizer": (3, 2, "cell:8:1:flip=20", None, r"step 8: copies differ, and no majority says which is right"),
}


def launch(place, run, workers, least, fault, more):
    once = place.top / f"{run}.once"
    once.mkdir()
    words = [place.ostro, "launch", "local", "--workers", str(workers), "--min_workers", str(least),
             *place.words(run, OPTIONS + more)]
    settings = {"OSTRO_THREADS": "1", "OSTRO_FAULT": ",".join(fault), "OSTRO_FAULT_ONCE": str(once)}
    code, said = run_together(words, place.environment(settings), place.top / "runs" / run, workers)
    check(code == 0, f"{run}: exit code {code}\n{said}")
    happened = [path.name for path in once.iterdir() if "flip" in path.name]
    check(len(happened) == len(fault), f"{run}: {fault}: {happened} happened\n{said}")
    return place.chain(run), said


def found(place, name, honest):
    """The fault with the check, and without it."""
    workers, least, fault, kind, text = CASES[name]
    run = re.sub(r"\W+", "-", name)
    chain, said = launch(place, run, workers, least, [fault], ["--trainer.cross_check", "1"])
    check(re.search(text, said), f"{name}: the fault is not told\n{said}")
    check(chain == honest, f"{name}: another chain\n{said}")
    folder = place.top / "runs" / run
    if kind:
        events = [e for e in json.loads((folder / "cluster.json").read_text())["events"] if e["kind"] == kind]
        check(any(re.search(text, e["text"]) for e in events), f"{name}: no such event in cluster.json: {events}")
    findings = json.loads((folder / "run.json").read_text()).get("findings", [])
    if kind != "end":  # bytes that differ name no worker: the step is done again, as after a broken connection
        check(any(re.search(text, f["text"]) for f in findings), f"{name}: run.json does not tell: {findings}")
        check(re.search(text, place.run(["inspect", str(folder)]).stdout), f"{name}: ostro inspect does not tell")
    place.run(["verify", str(folder)])
    wrong, said = launch(place, run + "-unchecked", workers, least, [fault], [])
    check(wrong != honest, f"{name}: without cross_check the fault changes nothing, so it shows nothing\n{said}")
    print(f"{name}: found, and the chain of an honest run; unchecked another chain", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--only", help="this case alone")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-corruption-") as top:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(top))
        honest = place.train("honest", OPTIONS)
        # The mesh is one that a single process cannot have: it verifies the run all the same.
        chain, said = launch(place, "checked", 4, 4, [], ["--trainer.cross_check", "0.5", "--trainer.mesh.axes", "{replica: 2, data: -1}"])
        check(chain == honest and "differ" not in said, f"honest workers: another chain, or a false alarm\n{said}")
        meters = json.loads((place.top / "runs" / "checked" / "meters.json").read_text())
        check(0 < meters["checked_leaves"] < 8 * STEPS and meters["check_seconds"] > 0, f"the checks are not metered: {meters}")
        place.run(["verify", str(place.top / "runs" / "checked")])
        print(f"honest workers: {meters['checked_leaves']} leaves checked in {meters['check_seconds']:.3f} s of the leader")
        for name in [args.only] if args.only else seed.draw("corruption", list(CASES), 2):
            found(place, name, honest)


main()
