#!/usr/bin/env python3
"""Tests that leaves are shared out by the speed of workers (trainer.shares: measured), with the chain of `ostro train`.

Three workers of `ostro launch local` whose leaves count 40, 80 and 160 ms (OSTRO_SIM_SLOW: they last at least as long, and
what follows from their times does not depend on the machine) come to shares of 4 : 2 : 1. One that slows down in mid-run
gets less. When a worker is killed, the next epoch begins with shares by the speeds that are known. Workers in slices, and
such as run leaves in pairs, have shares, too. With trainer.shares: even, shares stay even. `ostro status` and events.jsonl
say who has what.

    unequal_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

from program import check, kill_all
from workers_matrix import TENSOR
from workers_test import Gate, Place, hold_until_all, wait_for

STEPS = 24
SLOWS_AT, LOST_AT = 10, 18
SPEEDS = f"0:40ms,1:80ms,2:160ms,0:160ms@{SLOWS_AT}"
# 7 leaves.
OPTIONS = ["--trainer.num_train_steps", str(STEPS), "--trainer.train_batch_size", "7"]
MEASURED = ["--trainer.shares", "measured"]


def events(place, run, kind):
    path = place.top / "runs" / run / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [event["text"] for event in map(json.loads, lines) if event["event"] == kind]


def shares_in(text, leaves=7):
    """worker -> leaves that it has now."""
    found = re.findall(rf"worker (\d+) takes ([\d.]+) s a leaf and has (\d+) of {leaves} now, \d+ before", text)
    check(found, f"no shares in {text!r}")
    return {int(worker): int(now) for worker, _, now in found}


def launch(place, run, options, settings):
    return place.launch_together(run, 3, ["--min_workers", "2", *OPTIONS, *options], {"OSTRO_THREADS": "1"} | settings)


def check_measured(place, expected):
    """Held behind step 9, where the fast worker has not slowed down yet, `ostro status` shows the shares."""
    run = "measured"
    gate = Gate(tempfile.mkdtemp(dir=place.top))
    gate.at(0)
    process = subprocess.Popen([place.ostro, "launch", "local", "--workers", "3", "--min_workers", "2",
                                *place.words(run, [*OPTIONS, *MEASURED])],
                               env=place.environment({"OSTRO_THREADS": "1", "OSTRO_FAULT": gate.fault(), "OSTRO_SIM_SLOW": SPEEDS}),
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def leaves():
        try:
            members = json.loads((place.top / "runs" / run / "cluster.json").read_text())["members"]
        except (OSError, ValueError):
            return None
        waiting = members and all(m["step"] == SLOWS_AT and m["phase"] == "leaf" for m in members)
        return [m["leaves"] for m in members] if waiting else None
    try:
        hold_until_all(place.top / "runs" / run, 3, process, gate, SLOWS_AT - 1)
        check(wait_for(leaves) == [4, 2, 1], f"{run}: shares of {leaves()}")
        shown = place.run(["status", str(place.top / "runs" / run)]).stdout
        rows = re.findall(r"^(\d) .* leaf +(\d+) +[\d.]+ s", shown, re.M)
        check(rows == [("0", "4"), ("1", "2"), ("2", "1")], f"the status shows the leaves of each worker: {shown}")
        gate.open()
        out, _ = process.communicate(timeout=600)
    finally:
        kill_all([process])
    check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
    check(place.chain(run) == expected, f"{run}: another chain\n{out}")
    said = events(place, run, "shares")
    check(len(said) >= 2 and "worker 0 takes 0.040 s a leaf and has 4 of 7 now, 2 before" in said[0], f"{run}: {said}")
    check("worker 2 takes 0.160 s a leaf and has 1 of 7 now, 3 before" in said[0], f"{run}: {said}")
    slowed = shares_in(said[1])
    check(slowed[0] <= 2 and "worker 0 takes 0.160 s a leaf" in said[1], f"{run}: the slowed worker keeps too much: {said}")
    check(said[0] in out, f"{run}: the log does not say {said[0]!r}\n{out}")
    print(f"speeds of 4 : 2 : 1: leaves of 4, 2 and 1; the first slows down in step {SLOWS_AT}: {slowed}; the same chain", flush=True)


def check_next_epoch(place, expected):
    """The last worker is killed when shares are 4 : 2 : 1. Two speeds are known in the next epoch, so it begins with shares by them."""
    run, once = "lost", place.top / "once"
    once.mkdir()
    out = launch(place, run, MEASURED,
                 {"OSTRO_SIM_SLOW": "0:40ms,1:160ms,2:40ms", "OSTRO_FAULT": f"exchange:{LOST_AT}:2:kill", "OSTRO_FAULT_ONCE": str(once)})
    check(len(list(once.iterdir())) == 1, f"{run}: nobody was killed\n{out}")
    check(place.chain(run) == expected, f"{run}: another chain\n{out}")
    lines = [json.loads(line) for line in (place.top / "runs" / run / "events.jsonl").read_text().splitlines()]
    kinds = [(e["event"], e["text"]) for e in lines if e["event"] in ("epoch", "shares", "lost")]
    lost = next(i for i, (kind, _) in enumerate(kinds) if kind == "lost")
    again = next((i for i in range(lost, len(kinds)) if kinds[i][0] == "shares"), None)
    check(again is not None, f"{run}: even shares after the loss: {kinds}")
    check("worker 1 takes 0.160 s a leaf" in kinds[again][1], f"{run}: {kinds}")
    print(f"a worker lost in step {LOST_AT}: the next epoch shares by the speeds that are known; the same chain", flush=True)


def check_meshes(place):
    """Four workers: in two slices; in two pairs that run leaves together, of which the second is slow; and with leaves that two compute."""
    steps = ["--trainer.num_train_steps", "8"]
    expected = place.train("short", [*OPTIONS, *steps])
    for run, options, speeds, wanted in [
            ("in-slices", ["--slices", "2:2"], "0:40ms,1:120ms,2:20ms,3:60ms", {1: 1, 2: 3, 3: 1}),
            ("checked", ["--trainer.cross_check", "0.5"], "0:20ms,1:80ms,2:80ms,3:80ms", {0: 4}),
            ("in-pairs", ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR], "0:20ms,1:20ms,2:80ms,3:80ms", {0: 6, 2: 1})]:
        out = place.launch_together(run, 4, [*options, *OPTIONS, *steps, *MEASURED], {"OSTRO_THREADS": "1", "OSTRO_SIM_SLOW": speeds})
        said = events(place, run, "shares")
        check(place.chain(run) == expected, f"{run}: another chain\n{out}")
        check(said and all(shares_in(said[0]).get(worker) == leaves for worker, leaves in wanted.items()), f"{run}: {said}")
        print(f"{run}: {shares_in(said[0])}; the same chain", flush=True)


def check_even(place, expected):
    """The control: the same speeds with even shares."""
    out = launch(place, "even", [], {"OSTRO_SIM_SLOW": "0:10ms,1:20ms,2:40ms"})
    check(place.chain("even") == expected, f"even: another chain\n{out}")
    check(not events(place, "even", "shares") and "shared out" not in out, f"even shares changed\n{out}")
    print("trainer.shares: even: shares stay even; the same chain", flush=True)


def check_refused(place):
    for options, wanted in [(["--trainer.shares", "measured", "--trainer.mesh.exchange", "layer"], "use exchange: step, or shares: even"),
                            (["--trainer.shares", "fair"], "trainer.shares")]:
        done = subprocess.run([place.ostro, "train", *place.words("wrong", options)], env=place.environment({}), text=True,
                              timeout=300, capture_output=True, check=False)
        check(done.returncode != 0 and wanted in done.stderr, f"{options}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        expected = place.train("alone", OPTIONS)
        check(place.train("longer", [*OPTIONS, "--trainer.num_train_steps", str(STEPS + 1)]) != expected,
              "another number of steps gives the same chain")
        check_measured(place, expected)
        check_next_epoch(place, expected)
        check_meshes(place)
        check_even(place, expected)
        check_refused(place)


if __name__ == "__main__":
    main()
