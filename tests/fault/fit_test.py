#!/usr/bin/env python3
"""Trains configurations around a limit of memory: what fits trains, what does not is refused with sizes that fit, and
nothing aborts.

The peak that `--dry_run` foretells is compared with the measured one, within ten percent. Then each configuration is
started under `ulimit -v` at drawn limits from far below to above what it needs: it ends with status 0, 1 or 2, a
refusal leaves no run directory, and no signal ends it.

    fit_test.py --ostro PROGRAM [--configurations N]
"""

import argparse
import pathlib
import random
import re
import resource
import subprocess
import sys

from harness import Workspace, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

# Sizes that a machine trains in seconds, from 30 MB to some hundreds: width, layers, length, leaf, batch, recompute.
SHAPES = [(w, layers, length, leaf, 2 * leaf, again) for w in (128, 256, 512) for layers in (2, 6) for length in (128, 512)
          for leaf in (2, 6) for again in ("false", "true")]


def words_of(shape, name):
    width, layers, length, leaf, batch, again = shape
    return ["--model.hidden_dim", str(width), "--model.intermediate_dim", str(3 * width), "--model.num_layers", str(layers),
            "--model.num_heads", "4", "--model.num_kv_heads", "2", "--model.seq_len", str(length),
            "--model.gradient_checkpointing", again, "--numerics.leaf_examples", str(leaf), "--numerics.cells", "{}",
            "--trainer.train_batch_size", str(batch), "--trainer.num_train_steps", "3", "--trainer.id", name]


def measured_peak(workspace, words):
    """(exit status, highest resident memory in bytes, standard error) of a training."""
    script = ("import resource, subprocess, sys\n"
              "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
              "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
              "sys.stderr.write(done.stderr)\n")
    done = subprocess.run([sys.executable, "-c", script, workspace.ostro, "train", *words], cwd=workspace.root,
                          env=workspace.env, capture_output=True, text=True, check=True)
    status, kib = done.stdout.split()
    return int(status), int(kib) * 1024, done.stderr


def foretold_peak(workspace, words):
    text = workspace.good("train", *words, "--dry_run")
    found = re.search(r"^memory: ([\d.]+) MiB at the peak", text, re.M)
    check(found, f"no foretold peak in:\n{text}")
    return float(found[1]) * 2**20


def check_peak(workspace, shape, number):
    name = f"peak{number}"
    words = ["--config", workspace.config(name, data__cache_dir="cache-fit"), *words_of(shape, name)]
    foretold = foretold_peak(workspace, words)
    measured_peak(workspace, words)  # kernels are compiled: the compiler's memory is not the run's
    status, measured, err = measured_peak(workspace, [w if w != name else f"{name}b" for w in words])
    check(status == 0, f"{shape}: exit {status}: {err}")
    check(abs(foretold / measured - 1) < 0.1,
          f"{shape}: {foretold / 2**20:.1f} MiB foretold, {measured / 2**20:.1f} MiB measured")
    return measured


def limited(limit):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def least_addresses(ostro):
    """The least limit of addresses, to 4 MiB, under which the program starts: its libraries lie in them."""
    low, high = 0, 2**30
    while high - low > 4 << 20:
        middle = (low + high) // 2
        starts = subprocess.run([ostro, "--version"], capture_output=True, check=False, preexec_fn=limited(middle)).returncode == 0
        low, high = (low, middle) if starts else (middle, high)
    return high


def check_limits(workspace, shape, number, peak, rng):
    seen = []
    for factor in [0.2, *(rng.uniform(0.1, 2.0) for _ in range(2))]:
        name = f"limit{number}-{len(seen)}"
        limit = int(workspace.mapped + factor * peak)
        words = ["--config", workspace.config(name, data__cache_dir="cache-fit"), *words_of(shape, name)]
        done = subprocess.run([workspace.ostro, "train", *words], cwd=workspace.root, env=workspace.env,
                              capture_output=True, text=True, check=False,
                              preexec_fn=limited(limit))
        said = f"{shape} under {limit >> 20} MiB: exit {done.returncode}\n{done.stdout}{done.stderr}"
        check(done.returncode in (0, 1, 2), said)
        check(done.returncode == 0 or done.stderr.count("error: ") == 1, said)
        if done.returncode == 2:
            check("does not fit into memory: it needs" in done.stderr and "ulimit -v" in done.stderr, said)
            check(not (workspace.root / "runs" / name).exists(), f"a run directory is left: {said}")
        seen.append(done.returncode)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--configurations", type=int, default=1, help="in the sampled form; all are 20")
    args = parser.parse_args()
    rng = random.Random(seed.seed())
    shapes = rng.sample(SHAPES, 20 if seed.full() else args.configurations)
    workspace = Workspace(args.ostro)
    try:
        config = workspace.config("first", steps=1, data__cache_dir="cache-fit")
        workspace.good("train", "--config", config)
        workspace.mapped = least_addresses(workspace.ostro)
        print(f"the program starts with {workspace.mapped >> 20} MiB of addresses")
        statuses = []
        for number, shape in enumerate(shapes):
            peak = check_peak(workspace, shape, number)
            statuses += check_limits(workspace, shape, number, peak, rng)
            print(f"{shape}: peak {peak / 2**20:.0f} MiB, exits {statuses[-3:]}")
        # Far too large for any machine: refused at once, with what fits.
        line = workspace.bad("train", "--config", config, "--trainer.id", "huge", "--model.hidden_dim", "65536",
                             "--model.num_heads", "64", "--model.head_dim", "1024", "--model.intermediate_dim", "262144",
                             "--model.num_layers", "80", says=["does not fit into memory: it needs", "What fits: "])
        check(not (workspace.root / "runs" / "huge").exists(), f"a run directory is left: {line}")
    finally:
        workspace.close()
    print(f"{len(statuses)} trainings around the limit: {statuses.count(0)} trained, {statuses.count(1)} ended with an "
          f"error, {statuses.count(2)} refused, none aborted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
