#!/usr/bin/env python3
"""Negative controls: faults in kernels, threads and collectives that the equality tests must notice.

  negative_controls.py --ostro PATH --faulty PATH [--work DIR] [--jobs N]

Every control compares, as the equality matrix does, the chains of two runs with the same config and settings,
one of them with a fault: of the program faulty_ostro, or of the C compiler (faulty_cc.py). Controls that differ
in the fault alone share the other run. A fault must not reach the genesis entry and must change a step's state.
Exits 1 if one stays unnoticed. The runs without a fault must agree with each other across all settings used
here, and with the run of faulty_ostro without a fault, so that what is noticed is the fault. The program `ostro` itself knows no faults.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "matrix"))
import runs  # noqa: E402

COMPILER = pathlib.Path(__file__).resolve().parent / "faulty_cc.py"

# Squares of gradients and products of weights fall below 2^-126.
TINY = {"model.initializer_range": 1e-19, "optimizer.epsilon": 1e-20}

FAULTS_OF_COMPILER = {"contraction", "libm_exp", "denormals"}

# Fault, what it is, config, settings. The fault "": faulty_ostro itself, whose chain must not differ.
CONTROLS = [
    ("", "faulty_ostro without a fault", {}, {"OSTRO_ISA": "generic"}),
    ("leaf_order", "two leaves change places in the tree", {}, {}),
    ("leaf_order", "the same among three workers", {}, {"OSTRO_SIM_WORKERS": "3"}),
    ("ring_order", "partials of workers added along a ring", {}, {"OSTRO_SIM_WORKERS": "3"}),
    ("ring_order", "the same between rounds", {"trainer.mesh.exchange": "layer"}, {"OSTRO_SIM_WORKERS": "3"}),
    ("round_order", "a round's exchange pairs wrong leaves", {"trainer.mesh.exchange": "layer"},
     {"OSTRO_SIM_WORKERS": "3"}),
    ("denormals", "one thread without flush-to-zero", TINY, {"OSTRO_THREADS": "2"}),
    ("contraction", "generated kernels with -ffp-contract=fast", {}, {}),
    ("group_of_16", "bf16 products in groups of 16", {}, {"OSTRO_ISA": "generic"}),
    ("mean_of_means", "mean of the leaves' means", {}, {}),
    ("gradient_bit", "one flipped bit of one gradient", {}, {}),
    ("libm_exp", "exp of libm in generated kernels", {"trainer.mp": "f32"}, {}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True, type=pathlib.Path, help="the program")
    parser.add_argument("--faulty", required=True, type=pathlib.Path, help="the program faulty_ostro")
    parser.add_argument("--work", type=pathlib.Path, help="kept; default: a temporary directory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-controls-") as temporary:
        work = runs.Workspace(options.ostro, options.work or temporary)
        return run_all(work, options.faulty.resolve(), options.jobs)


def run_all(work, faulty, jobs):
    # What a control does not set; the generic instruction set would have no generated kernels.
    plain = {"OSTRO_THREADS": "1", "OSTRO_ISA": "avx2", "OSTRO_CC": "gcc", "OSTRO_CC_OPT": "-O3"}
    config = {"trainer.num_train_steps": 12, "model.seq_len": 100, "chain.leaf_gradients": False}

    def key(*training):
        return json.dumps(training, sort_keys=True)

    def train(item):
        index, (fault, changes, settings) = item
        settings, program = {**plain, **settings}, None
        if fault in FAULTS_OF_COMPILER:
            settings["OSTRO_CC"] = f"python3 {COMPILER} {fault} {settings['OSTRO_CC']}"
        elif fault is not None:
            settings, program = {**settings, "OSTRO_TEST_FAULT": fault}, faulty
        return work.run(f"{fault or 'good'}-{index}", {**config, **changes}, settings, program)

    trainings = {}  # by key, so that each is run once
    for fault, _, changes, settings in CONTROLS:
        for training in ((None, changes, settings), (fault, changes, settings)):
            trainings[key(*training)] = training
    outcomes = {key(*training): outcome for (_, training), outcome in
                runs.at_once(jobs, train, list(enumerate(trainings.values())))}

    failures, chains = [], {}
    for program, knows in ((work.ostro, False), (faulty, True)):
        if (b"OSTRO_TEST_FAULT" in program.read_bytes()) != knows:
            failures.append(f"{program} {'does not know' if knows else 'knows'} the variable OSTRO_TEST_FAULT")
    for fault, what, changes, settings in CONTROLS:
        name = f"{fault} ({what})"
        good, bad = outcomes[key(None, changes, settings)], outcomes[key(fault, changes, settings)]
        if errors := [outcome for outcome in (good, bad) if isinstance(outcome, Exception)]:
            failures.append(f"{name}: {errors[0]}")
            continue
        chains.setdefault(str(changes), {})[good.hash] = settings
        if fault == "":
            if good.hash != bad.hash:
                failures.append(f"{name}: {bad.hash}, and {good.hash} of ostro")
            continue
        if good.hash == bad.hash:
            failures.append(f"{name}: not noticed, both runs end with {good.hash}")
            continue
        if not good.losses()[-1] < good.losses()[0] or good.not_finite():
            failures.append(f"{name}: the run without the fault does not learn")
        first = [(x, y) for x, y in zip(good.entries(), bad.entries()) if x != y][0]
        differs = [k for k in first[0] if k != "h" and first[0][k] != first[1].get(k)]
        print(f"noticed {name}: step {first[0].get('step')}, {', '.join(differs)}", flush=True)
        if first[0]["kind"] != "step" or "state" not in differs:
            failures.append(f"{name}: the first difference is {first[0]['kind']} {', '.join(differs)}")
    for changes, hashes in chains.items():
        if len(hashes) != 1:
            failures.append(f"runs without a fault differ (config {changes}): {hashes}")
    for f in failures:
        print(f"FAILED {f}")
    print(f"result: {len(CONTROLS)} controls, {len(trainings)} runs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
