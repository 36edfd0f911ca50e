#!/usr/bin/env python3
"""Tests `ostro simulate`: what it says that workers send in a step is what workers of `ostro launch local` send, to the byte,
beside the leader's commands; the same seed gives the same text; what cannot be simulated is one error that says what to do.

    simulate_test.py --ostro PROGRAM
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

from program import check, kill_all
from workers_test import Gate, Place, wait_for

COMMAND_BYTES = 160  # of the leader to each other worker, a step (fleet/processes/command.h)
FIRST, LAST = 3, 6   # steps between which bytes are counted
CASES = [("2", None, "step"), ("3", None, "layer"), ("4", "2:2", "step")]


def held_bytes(place, run, step):
    """The bytes that workers have sent, and those between slices, when all of them wait in front of the step's leaves."""
    path = place.top / "runs" / run / "cluster.json"

    def members():
        try:
            found = json.loads(path.read_text())["members"]
        except (OSError, ValueError):
            return None
        waiting = all(m["step"] == step + 1 and m["phase"] == "leaf" for m in found)
        return found if found and waiting else None
    found = wait_for(members)
    return sum(m["bytes_sent"] for m in found), sum(m.get("bytes_between_slices", 0) for m in found)


def simulated(place, words, settings=None):
    return json.loads(place.run(["simulate", "--json", *words], settings).stdout)


def check_bytes(place, workers, slices, exchange):
    run = f"measured-{workers}-{exchange}"
    words = place.words(run, ["--trainer.mesh.exchange", exchange, "--trainer.num_train_steps", "8"])
    gate = Gate(tempfile.mkdtemp(dir=place.top))
    gate.at(FIRST)
    process = subprocess.Popen([place.ostro, "launch", "local", "--workers", workers, *(["--slices", slices] if slices else []), *words],
                               env=place.environment({"OSTRO_THREADS": "1", "OSTRO_FAULT": gate.fault()}), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        before = held_bytes(place, run, FIRST)
        gate.at(LAST)
        after = held_bytes(place, run, LAST)
        gate.open()
        out, _ = process.communicate(timeout=300)
    finally:
        kill_all([process])
    check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
    sent, between = ((b - a) / (LAST - FIRST) for a, b in zip(before, after))
    number = slices.count(":") + 1 if slices else 1
    said = simulated(place, ["--hosts", workers, "--slices", str(number), "--hours", "0", *words])["step"]["sent"]
    commands = COMMAND_BYTES * (int(workers) - 1)
    far = commands // (int(workers) - 1) * (int(workers) // 2) if slices else 0
    check(said["inside"] + said["between"] + commands == sent, f"{run}: {sent} bytes a step were sent, {said} and {commands} said")
    check(said["between"] + far == between, f"{run}: {between} bytes a step between slices, {said} said")
    check((between > 0) == (number > 1), f"{run}: {between} bytes between {number} slices")


def check_errors(place):
    words = place.words("simulated", [])
    cases = [(["simulate", "--hosts", "8", "--slices", "3", *words], "--hosts 8 cannot be divided into --slices 3"),
             (["simulate", "--hosts", "8"], "--config"),
             (["simulate", *words], "--hosts"),
             (["simulate", "--hosts", "8", "--calibrate", "--leaf_seconds", "5", *words], "--leaf_seconds 5 and --calibrate"),
             (["simulate", "--hosts", "8", "--mtbf_hours", "-1", *words], "--mtbf_hours: -1; use 0 or more"),
             (["simulate", "--hosts", "7", *words, "--trainer.mesh.axes", "{data: -1, model: 2}"], "trainer.mesh.axes"),
             (["simulate", "--hosts", "2", *words, "--data.tokenizer", "none.json"], "say it with --vocab")]
    for typed, expected in cases:
        done = subprocess.run([place.ostro, *typed], env=place.environment({}), text=True, capture_output=True, check=False)
        check(done.returncode != 0 and expected in done.stderr, f"{typed}: exit code {done.returncode}, {done.stderr}")
        check(done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, f"{typed}: more than an error: {done.stderr}{done.stdout}")


def check_report(place):
    plain = ["--hosts", "32", "--slices", "4", *place.words("simulated", [])]
    words = [*plain, "--mtbf_hours", "25", "--hours", "6"]
    text = place.run(["simulate", *words]).stdout
    check(text == place.run(["simulate", *words]).stdout, "the same seed gives the same text")
    check(text != place.run(["simulate", *words, "--seed", "2"]).stdout, "another seed gives another text")
    # The batch has 8 leaves.
    check("24 of 32 hosts have no leaf" in text, f"idle hosts are named: {text}")
    check("to other slices" in text, f"what is sent is named: {text}")
    for part in ("what limits a step: ", "goodput", "sending between slices", "from a loss to the next step"):
        check(part in text, f"{part!r} is missing: {text}")
    told = simulated(place, words)
    check(abs(sum(told["step"]["parts"].values()) / told["step"]["seconds"] - 1) < 1e-6, "the parts of a step are the whole of it")
    check(abs(sum(told["run"]["seconds"].values()) - 6 * 3600) < 1e-3, "the causes are the whole time")
    faster = simulated(place, [*plain, "--hours", "0", "--outer_gbit", "4000", "--outer_latency_us", "1"])["step"]["seconds"]
    check(faster < told["step"]["seconds"], "faster links make a step shorter")
    # Leaves of a second, and links on which sums take a part of it.
    slow = [*plain, "--hours", "0", "--leaf_seconds", "1", "--outer_gbit", "0.01"]
    beside, after = simulated(place, slow), simulated(place, [*slow, "--trainer.mesh.slice_overlap", "false"])
    check(beside["slice_overlap"] and not after["slice_overlap"], "sums overlap, or do not")
    check(beside["step"]["seconds"] < after["step"]["seconds"], f"overlap makes a step shorter: {beside['step']}, {after['step']}")
    check(any("trainer.mesh.slice_overlap is false" in note for note in after["notes"]), f"a note: {after['notes']}")
    check("in two levels, beside the leaves" in text and "sent beside the leaves" in text, f"overlap is said: {text}")
    measured = simulated(place, [*plain, "--calibrate", "--hours", "0"], {"OSTRO_THREADS": "1"})["assumed"]
    check(all(measured[name] > 0 for name in ("leaf_seconds", "add_seconds", "update_seconds", "print_seconds", "loopback_gbytes",
                                              "message_us")), f"measured: {measured}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(str(pathlib.Path(args.ostro).resolve()), pathlib.Path(folder))
        check_errors(place)
        check_report(place)
        place.run(["data", "build", *place.words("stores", [])])
        for case in CASES:
            check_bytes(place, *case)
    print("result: what is simulated is what workers send")


if __name__ == "__main__":
    main()
