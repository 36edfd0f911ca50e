#!/usr/bin/env python3
"""Tests that workers in slices (`ostro launch local --slices`), which exchange inside slices first, have the chain of
`ostro train`: slices of equal and of unequal size, both schedules, exchanges beside the leaves and after them, a worker that
is killed while half of the gradients are on their way, of a run with measured shares and checked leaves, and a slice that is lost. What goes between slices is what `--dry_run`
says, and no more for two workers in each slice than for one. Workers that measure their slices (trainer.mesh.slices: auto) have that chain,
too, whatever they find. With numerics.slice_partials gradients take half of their bytes, and
the run has the chain of one process with this option, which is verified; without it the same run has other states.

    slices_test.py --ostro PROGRAM [--faulty PROGRAM] [--cases N] [--found]

OSTRO_TEST_SIZE=full also tries 40 drawn arrangements of 2 to 4 slices with 1 to 4 workers each: sizes, meshes with data and model
axes, schedules, precisions, even and measured shares, leaves that two compute, connections, rounded partials, and threads that differ among the
workers of one run, who come in any order; every other one in network namespaces with slow links between slices, where this user may make them (else it says NOT TRIED).
--cases N: N of them, and nothing else. --found: by hand, on a quiet machine, as root: of four workers two stand behind a slow link, and
the slices are found by measuring; a replacement does not measure again. What a busy machine measures is another matter.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile

from program import check, kill_all
from slow_link import Link
from workers_matrix import TENSOR, launch_mixed
from workers_test import Gate, PRECISIONS, Place, hold_until_all, steps_of, wait_for

HELD_AT = 6  # steps
COUNTED_FROM = 2  # steps
COMMAND = 256  # bytes at most of what the leader tells each other worker in a step (fleet/processes/command.h)
# Two leaves, each of which is a group whose gradients are rounded.
GROUPS = ["--numerics.leaf_examples", "4", "--chain.leaf_gradients", "true"]
ROUNDED = ["--numerics.slice_partials", "2", *GROUPS]


def between(place, run, steps):
    """The bytes that workers have sent between slices when all of them wait in front of the leaves of the step after so many."""
    path = place.top / "runs" / run / "cluster.json"

    def members():
        try:
            found = json.loads(path.read_text())["members"]
        except (OSError, ValueError):
            return None
        waiting = all(m["step"] == steps + 1 and m["phase"] == "leaf" for m in found)
        return found if found and waiting else None
    return sum(m.get("bytes_between_slices", 0) for m in wait_for(members))


def said_before(place, sizes, options):
    workers = sum(map(int, sizes.split(":")))
    told = place.run(["train", "--dry_run", *place.words("planned", options)],
                     {"OSTRO_SIM_WORKERS": str(workers), "OSTRO_SIM_SLICES": sizes}).stdout
    found = re.findall(r"between slices, all workers together: (\d+) bytes", told)
    check(len(found) == 2, f"the plan of {sizes} names the bytes between slices of both schedules: {told}")
    return int(found[0])


def check_bytes(place, expected, rounded):
    """Of a run that is held at two steps: what went between slices from one to the other, as it was said before, whatever a slice has inside.

    Workers count what they give to the network, without its frames and headers, and stand at the same place of a step both times. So it is
    what was said to the byte, but for the leader's commands, of which no plan knows."""
    sent, told, steps = {}, {}, HELD_AT - COUNTED_FROM
    for case, sizes, options, chain in [("1:1", "1:1", [], expected), ("2:2", "2:2", [], expected), ("rounded", "1:1", ROUNDED, rounded)]:
        run = f"held-{case.replace(':', '-')}"
        gate = Gate(tempfile.mkdtemp(dir=place.top))
        gate.at(0)
        workers = sum(map(int, sizes.split(":")))
        process = subprocess.Popen([place.ostro, "launch", "local", "--workers", str(workers), "--slices", sizes,
                                    *place.words(run, options)],
                                   env=place.environment({"OSTRO_THREADS": "1", "OSTRO_FAULT": gate.fault()}), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            hold_until_all(place.top / "runs" / run, workers, process, gate, COUNTED_FROM)
            begin = between(place, run, COUNTED_FROM)
            gate.at(HELD_AT)
            sent[case] = between(place, run, HELD_AT) - begin
            if case == "2:2":
                shown = place.run(["status", str(place.top / "runs" / run)]).stdout
                check(shown.count("between slices") == workers, f"the status names the bytes between slices: {shown}")
            gate.open()
            out, _ = process.communicate(timeout=300)
        finally:
            kill_all([process])
        check(process.returncode == 0, f"{run}: exit code {process.returncode}\n{out}")
        check(place.chain(run) == chain, f"{run}: another chain\n{out}")
        said = told[case] = said_before(place, sizes, options)
        check(steps * said < sent[case] <= steps * (said + COMMAND * (workers // 2)),
              f"{case}: {sent[case]} bytes between slices in {steps} steps, {said} a step were said")
        print(f"slices of {sizes} {' '.join(options[:2])}: {sent[case]} bytes between them, {said} a step said before", flush=True)
    ratio = sent["2:2"] / sent["1:1"]
    check(0.95 < ratio < 1.05, f"two workers in each slice send {ratio:.3f} times what one sends between slices")
    # Two bytes an element of the gradients are not sent. Nothing else changes.
    manifest = json.loads(next((place.top / "runs" / "alone-rounded" / "checkpoints").glob("step-*/manifest.json")).read_text())
    elements = sum(math.prod(t["shape"]) for t in manifest["tensors"] if t["path"].startswith("model/"))
    saved = said_before(place, "1:1", GROUPS) - told["rounded"]
    check(saved == 2 * elements, f"bf16 is said to save {saved} bytes a step, for gradients of {elements} elements")
    less = sent["1:1"] - sent["rounded"] - steps * (told["1:1"] - told["rounded"])
    check(less == 0, f"in {steps} steps {less} bytes more were saved than were said")


def check_rounded(place, rounded):
    """The chain of one process with rounded partials: verify computes it again. Without rounding leaves are the same, and states are others."""
    place.run(["verify", str(place.top / "runs" / "alone-rounded")])

    def first_step(chain):
        return next(e for e in map(json.loads, chain.splitlines()) if e.get("step") == 1)
    a, b = first_step(rounded), first_step(place.train("alone-unrounded", GROUPS))
    check(a["leaves"] == b["leaves"] and a["loss"] == b["loss"], f"rounding reaches the leaves: {a}, {b}")
    check(a["state"] != b["state"], f"partials are not rounded: {a}")


def check_lost_slice(place, rng, expected):
    """All workers of a slice are killed in one step. The other slice has copies of their cells. Without slices nobody may have: whether the
    second is killed before its cells are copied again depends on the machine, so only the chain is compared there."""
    step = rng.randint(3, 9)
    for run, options, kept in [("slice-lost", ["--slices", "2:2"], True), ("neighbours-lost", [], False)]:
        once = place.top / f"{run}.once"
        once.mkdir()
        out = place.launch_together(run, 4, ["--min_workers", "2", *options],
                                    {"OSTRO_THREADS": "1", "OSTRO_FAULT": f"exchange:{step}:2:kill,exchange:{step}:3:kill",
                                     "OSTRO_FAULT_ONCE": str(once)})
        check(len(list(once.iterdir())) == 2, f"{run}: {list(once.iterdir())} were killed")
        check(not kept or "owner and copy are both gone" not in out, f"{run}: {out}")
        check(place.chain(run) == expected, f"{run}: another chain\n{out}")
    print(f"a slice lost in step {step}: the same chain, from the copies of the other slice", flush=True)


def check_striped(place, rng):
    """Messages that are long enough to be cut are on their way over several connections while a worker is killed."""
    hidden, between = 64, 2048
    wide = ["--model.hidden_dim", str(hidden), "--model.intermediate_dim", str(between), "--trainer.num_train_steps", "8"]
    check(hidden * between * 2 // 3 > 64 << 10, "no part of an array has kStripedBytes (dist/striped_group.h), in bf16 and cut in three")
    expected = place.train("wide", wide)
    once = place.top / "striped.once"
    once.mkdir()
    fault = f"{rng.choice(['overlap', 'exchange'])}:{rng.randint(3, 6)}:{rng.randint(0, 2)}:kill"
    place.launch_together("striped", 3, ["--min_workers", "2", "--slices", "2:1", "--trainer.mesh.slice_connections", "2", *wide],
                          {"OSTRO_THREADS": "1", "OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)})
    check(place.chain("striped") == expected, f"striped, {fault}: another chain")
    check(len(list(once.iterdir())) == 1, f"striped, {fault}: no worker was lost")
    print(f"long messages over two connections, {fault}: the same chain", flush=True)


def missing_for_links():
    """Why no slow links between network namespaces can be made here; None where they can."""
    try:
        Link(1000, 3).remove()
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        return getattr(e, "stderr", "") or str(e)
    return None


def over_links(place, run, slices, settings, options, mbit):
    """The chain of workers each of which is in the network namespace of its slice, with `mbit` a second from there to the others."""
    link = Link(mbit, slices)
    env = place.environment({"OSTRO_JOB_SECRET": "of the slices behind links"})
    words, count = place.words(run, options), str(len(settings))
    log, processes = place.top / f"{run}.log", []

    def start(side, command, more):
        with log.open("a") as out:
            processes.append(link.start(side, [place.ostro, *command, *words], env=env | more, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
    try:
        start(0, ["coordinator", "--bind", link.address(0), "--port", "4711", "--min_workers", count, "--max_workers", count], {})
        for setting in settings:
            side = int(setting["OSTRO_SLICE"].rpartition("-")[2])
            start(side, ["worker", "--coordinator", f"{link.address(0)}:4711", "--bind", link.address(side)], setting)
        codes = [p.wait(timeout=600) for p in processes]
    finally:
        kill_all(processes)
        link.remove()
    check(not any(codes), f"{run}: exit codes {codes}\n{log.read_text()}")
    return place.chain(run)


def check_drawn(place, rng, cases):
    """Processes in drawn slices, with the chain of one process. Every other time slices are network namespaces behind slow links."""
    @functools.cache
    def alone(mp, groups):
        return place.train(f"alone-{PRECISIONS.index(mp)}-{groups}", ["--trainer.mp", mp, "--numerics.slice_partials", str(groups)])
    check(len({alone(mp, 0) for mp in PRECISIONS}) == 2, "precisions give different chains")
    without = missing_for_links()
    for number in range(cases):
        slices, mesh, mp = rng.randint(2, 4), rng.choice(["data", "data x model", "replica"]), rng.choice(PRECISIONS)
        unit = 2 if mesh == "data x model" else 1
        equal = rng.randint(1, 3)
        sizes = [equal if mesh == "replica" else unit * rng.randint(1, 4 // unit) for _ in range(slices)]
        axes, more = {"data": ("{data: -1}", []), "data x model": ("{data: -1, model: 2}", TENSOR),
                      "replica": (f"{{replica: {slices}, data: -1}}", [])}[mesh]
        exchange, copies = rng.choice(["step", "step", "layer"]), rng.randint(0, 1)
        overlap = exchange == "step" and rng.randint(0, 3) > 0
        measured = exchange == "step" and rng.randint(0, 2) == 0
        checked = exchange == "step" and mesh != "data x model" and rng.randint(0, 2) == 0
        connections = rng.choice([1, 1, 2, 4])
        groups = rng.choice([0, 0, slices, rng.randint(1, 5)])
        names = [f"slice-{s}" for s, size in enumerate(sizes) for _ in range(size)]
        rng.shuffle(names)
        settings = [{"OSTRO_THREADS": str(rng.randint(1, 2)), "OSTRO_SLICE": name} for name in names]
        # Shares move where workers differ: one, whichever becomes it, takes three times as long.
        slow = {"OSTRO_SIM_SLOW": f"{rng.randrange(len(names))}:x3"} if measured else {}
        options = ["--trainer.mp", mp, "--trainer.mesh.axes", axes, "--trainer.mesh.exchange", exchange,
                   "--trainer.mesh.state_replicas", str(copies), "--trainer.mesh.slice_overlap", str(overlap).lower(),
                   "--trainer.mesh.slice_connections", str(connections), "--trainer.shares", "measured" if measured else "even",
                   "--trainer.cross_check", "0.3" if checked else "0", "--numerics.slice_partials", str(groups), *more]
        mbit = rng.choice([1000, 200, 50]) if number % 2 else None
        text = (f"slices of {':'.join(map(str, sizes))}, {axes}, {exchange}{' beside the leaves' if overlap else ''}, copies {copies}, "
                f"{mp}, partials {groups}, shares {'measured' if measured else 'even'}{', leaves checked' if checked else ''}, {connections} connections, "
                f"{f'behind links of {mbit} Mbit/s' if mbit else 'on loopback'}")
        if mbit and without:
            print(f"{number + 1} of {cases}: NOT TRIED behind links, but on loopback: no network namespaces with limits here: {without}", flush=True)
        run, settings = f"drawn-{number}", [s | slow for s in settings]
        got = over_links(place, run, slices, settings, options, mbit) if mbit and not without else launch_mixed(place, run, settings, options)
        check(got == alone(mp, groups), f"{text}: another chain")
        shutil.rmtree(place.top / "runs" / run)
        print(f"{number + 1} of {cases}: {text}: the same chain", flush=True)


def check_by_arrival(place, faulty):
    """The control: three slices, of one leaf each, whose partials are added in drawn orders, as if each was added when it came."""
    options = ["--trainer.mp", "f32", "--trainer.train_batch_size", "3"]
    expected = place.train("three", options)

    def first_step(chain):
        return next(e for e in map(json.loads, chain.splitlines()) if e.get("step") == 1)
    for overlap in ("true", "false"):
        for fault in ("", "arrival_order"):
            run = f"{fault or 'in-order'}-{overlap}"
            place.launch_together(run, 3, ["--slices", "1:1:1", "--trainer.mesh.slice_overlap", overlap, *options],
                                  {"OSTRO_THREADS": "1", "OSTRO_TEST_FAULT": fault}, faulty)
            got = place.chain(run)
            check((got == expected) == (fault == ""), f"{run}: {'the same' if got == expected else 'another'} chain")
            a, b = first_step(got), first_step(expected)
            check(a["loss"] == b["loss"] and (a["state"] == b["state"]) == (fault == ""), f"{run}: {a}, {b}")
    print("partials that are added in the order in which they come: another chain", flush=True)


def check_found(place, expected):
    """Two workers on each side of a link of 100 Mbit/s, who do not come in the order of their sides. One is killed, and its successor does
    not measure again."""
    name = "found"
    try:
        link = Link(100)
    except (subprocess.CalledProcessError, FileNotFoundError) as e:
        print(f"slices are not measured: no slow link can be made here: {getattr(e, 'stderr', '') or e}", flush=True)
        return
    gate = Gate(tempfile.mkdtemp(dir=place.top))
    gate.at(HELD_AT)
    env = place.environment({"OSTRO_THREADS": "1", "OSTRO_JOB_SECRET": "of the slices that are found", "OSTRO_FAULT": gate.fault()})
    words = place.words(name, ["--trainer.mesh.slices", "auto"])
    processes, log = [], place.top / "found.log"

    def start(side, *command):
        with log.open("a") as out:
            processes.append(link.start(side, [place.ostro, *command, *words], env=env, stdout=out, stderr=out))
        return processes[-1]

    def worker(side):
        return start(side, "worker", "--coordinator", "10.78.0.1:4711", "--bind", f"10.78.0.{side + 1}")

    def kinds():
        path = place.top / "runs" / name / "events.jsonl"
        return [json.loads(line)["event"] for line in path.read_text().splitlines() if line.endswith("}")] if path.exists() else []

    try:
        start(0, "coordinator", "--bind", "10.78.0.1", "--port", "4711", "--min_workers", "2", "--max_workers", "4")
        for number, side in enumerate((0, 1, 0, 1)):
            worker(side)
            wait_for(lambda: kinds().count("joined") > number or processes[-1].poll() is not None)
        ended = lambda: any(p.poll() is not None for p in processes)  # noqa: E731
        wait_for(lambda: steps_of(place, name) >= HELD_AT - 1 or ended())
        status = lambda: place.run(["status", str(place.top / "runs" / name)]).stdout  # noqa: E731
        wait_for(lambda: status().count("between slices") == 4 or ended())  # workers tell it now and then
        check(not ended() and kinds().count("slices") >= 1, f"no slices were found\n{status()}\n{log.read_text()}")
        events = (place.top / "runs" / name / "events.jsonl").read_text()
        check(re.search(r"2 slices by measured rates: measured-\d+\.1 \(.*\), measured-\d+\.2 \(.*\); links inside have .*; links between have", events), events)
        measured = kinds().count("slices")  # more than once, if workers came slowly
        victim = processes.pop(3)
        victim.kill()
        victim.wait()
        gate.open()
        worker(0)
        wait_for(lambda: all(p.poll() is not None for p in processes))
        check(not any(p.returncode for p in processes), f"exit codes {[p.returncode for p in processes]}\n{log.read_text()}")
        check(kinds().count("slices") == measured, f"the successor of a worker was measured\n{log.read_text()}")
        check(place.chain(name) == expected, f"slices that were found: another chain\n{log.read_text()}")
    finally:
        kill_all(processes)
        link.remove()
    print("two slices behind a slow link were found by measuring: the same chain", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--faulty", help="the program faulty_ostro, for a control of the full form")
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--found", action="store_true")
    args = parser.parse_args()
    rng = random.Random(int(os.environ.get("OSTRO_TEST_SEED", "1")))
    with tempfile.TemporaryDirectory() as folder:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(folder))
        if args.cases:
            check_drawn(place, rng, args.cases)
            return
        if os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample":
            check_drawn(place, rng, 40)
            if args.faulty:
                check_by_arrival(place, os.path.abspath(args.faulty))
            else:
                print("NOT TRIED: partials joined in order of arrival: there is no --faulty PROGRAM", flush=True)
        config = place.top / "c.yaml"
        config.write_text(config.read_text().replace("trainer: {", f'trainer: {{mp: "{rng.choice(PRECISIONS)}", '))
        expected = place.train("alone", [])
        rounded = place.train("alone-rounded", ROUNDED)
        check_bytes(place, expected, rounded)
        check_rounded(place, rounded)
        if args.found:
            check_found(place, expected)
            return
        check(place.launch("auto", 3, ["--trainer.mesh.slices", "auto"], {"OSTRO_THREADS": "1"}) == expected, "trainer.mesh.slices: auto: another chain")
        check_lost_slice(place, rng, expected)
        once = place.top / "once"
        once.mkdir()
        fault = f"{rng.choice(['overlap', 'overlap', 'leaf', 'exchange', 'update', 'commit'])}:{rng.randint(3, 17)}:{rng.randint(0, 2)}:kill"
        for run, workers, options, settings in [
                ("unequal", 3, ["--slices", "2:1", "--trainer.shares", "measured", "--trainer.cross_check", "0.3"],
                 {"OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)}),
                ("after-the-leaves", 2, ["--slices", "1:1", "--trainer.mesh.slice_overlap", "false",
                                         "--trainer.mesh.slice_connections", "2"], {}),
                ("layer", 4, ["--slices", "2:2", "--trainer.mesh.exchange", "layer",
                              "--trainer.mesh.axes", "{replica: 2, data: -1}"], {})]:
            place.launch_together(run, workers, ["--min_workers", "2", *options], {"OSTRO_THREADS": "1"} | settings)
            check(place.chain(run) == expected, f"{run}: another chain")
            print(f"{run}, {' '.join(options)} {settings.get('OSTRO_FAULT', '')}: the same chain", flush=True)
        check(len(list(once.iterdir())) == 1, f"{fault}: no worker was lost")
        check_striped(place, rng)
        for words, settings, wanted in [
                (["launch", "local", "--workers", "4", "--slices", "2:1"], {}, "3 workers together, but there are 4"),
                (["launch", "local", "--workers", "4", "--slices", "2:x"], {}, '"x" is not the number of workers of a slice'),
                (["train"], {"OSTRO_SIM_WORKERS": "2", "OSTRO_SIM_SLICES": "3"}, "OSTRO_SIM_SLICES=3: ")]:
            done = subprocess.run([place.ostro, *words, *place.words("wrong", [])], env=place.environment(settings),
                                  text=True, timeout=300, capture_output=True, check=False)
            check(done.returncode != 0 and wanted in done.stderr, f"{words}: {done.stderr}")


if __name__ == "__main__":
    main()
