#!/usr/bin/env python3
"""tools/verify_step.py, which was written from docs/spec alone, computes what Ostro trained, bit for bit.

Steps of small runs are computed in NumPy from the seed and from a checkpoint, with several blocks of keys, an odd number of leaves,
query heads that share keys, and each schedule. Then one clause of the arithmetic is altered at a time: every alteration must be found, or
the comparison would not show that the clause is right. A run that the program does not compute is *cannot check*.
Usage: check_verify_step.py --ostro build/.../ostro
"""
import argparse
import contextlib
import pathlib
import sys
import tempfile

import numpy as np

from checks import check, summary
from tiny_run import TinyRun, seed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import clauses
import llama_step
import verify_step

MODULES = (clauses, llama_step, verify_step)
SMALL = {"model": {"seq_len": 24, "hidden_dim": 24, "intermediate_dim": 40, "num_layers": 2, "num_heads": 3, "num_kv_heads": 1},
         "optimizer": {"lr_schedule": "cosine", "warmup": 0, "max_grad_norm": 0.5},
         "chain": {"leaf_gradients": True},
         "trainer": {"mp": "f32", "train_batch_size": 5, "num_train_steps": 4, "checkpointer": {"keep": [{"every": 3}]}},
         "numerics": {"leaf_examples": 1, "cells": {"embed": 2}}}


def with_values(**sections):
    return {name: {**SMALL.get(name, {}), **sections.get(name, {})} for name in {*SMALL, *sections}}


RUNS = {
    "small": (with_values(), 4),
    "blocks": (with_values(model={"seq_len": 140, "num_heads": 2, "head_dim": 16}, optimizer={"lr_schedule": "linear", "warmup": 1}), 2),
    "unclipped": (with_values(chain={"leaf_gradients": False}, data={"shuffle": False},
                              optimizer={"max_grad_norm": None, "lr_schedule": "constant", "weight_decay": 0.0}), 1),
    "slices": (with_values(numerics={"slice_partials": 2}), 2),
}


def two_roundings(a, b, c):
    return clauses.f32(clauses.f32(a * b) + c)


def groups_of_one(parts, groups):
    return GROUPS(parts, len(parts))


def one_chain(x, round_to=clauses.f32):
    return clauses.serial(x, -1, round_to)


def left_to_right(parts, round_to=clauses.f32):
    total = parts[0]
    for part in parts[1:]:
        total = round_to(total + part)
    return total


def halved_first(self, q, k, v, o, m, r, do):
    """delta by another order: the sum of do * o over head_dim as one chain."""
    striped, llama_step.striped = llama_step.striped, one_chain
    try:
        return ATTENTION_GRADIENT(self, q, k, v, o, m, r, do)
    finally:
        llama_step.striped = striped


def norm_gradient(ct, x, weight, y, r, residual=None):
    """The residual stream's contribution added last."""
    own, to_weight = NORM_GRADIENT(ct, x, weight, y, r)
    return (own if residual is None else clauses.f32(own + residual)), to_weight


def near_exp(x):
    """The best f32 of exp, which is not the clause's."""
    return clauses.f32(np.exp(x))


def other_batch(tokens, config, step):
    inputs, targets = BATCH(tokens, config, step)
    return inputs[::-1], targets[::-1]


NORM_GRADIENT, ATTENTION_GRADIENT, BATCH = llama_step.norm_gradient, llama_step.Attention.gradient, verify_step.batch_of
GROUPS = clauses.tree_of_groups
ALTERED = {  # what: (name, its replacement)
    "an fma that rounds twice (N6)": ("fma", two_roundings),
    "sums of rows as one chain (N4)": ("striped", one_chain),
    "leaves added left to right (N8)": ("tree", left_to_right),
    "another exp (N3)": ("exp", near_exp),
    "delta of attention in another order (N9)": ("gradient", halved_first),
    "contributions in another order (N5)": ("norm_gradient", norm_gradient),
    "examples in another order (batches.md)": ("batch_of", other_batch),
}
ALTERED_SLICES = {  # with numerics.slice_partials
    "partials of slices that are not rounded (N8)": ("bf16", clauses.same),
    "every leaf rounded (N8)": ("tree_of_groups", groups_of_one),
}


@contextlib.contextmanager
def altered(name, replacement):
    places = [m for m in (*MODULES, llama_step.Attention) if name in vars(m)]
    kept = [(m, vars(m)[name]) for m in places]
    for m in places:
        setattr(m, name, replacement)
    try:
        yield
    finally:
        for m, value in kept:
            setattr(m, name, value)


def verdict(run, step, from_initial=False):
    try:
        count = verify_step.check_steps(run.run_directory, run.directory / "cache", step, from_initial)
        return "equal", f"{count} steps"
    except verify_step.Finding as finding:
        return finding.verdict, finding.text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, made = pathlib.Path(folder), {}
        names = ["small", "slices", *seed.draw("other runs", [n for n in RUNS if n not in ("small", "slices")], 1)]
        for name in names:
            sections, steps = RUNS[name]
            made[name] = run = TinyRun(options.ostro, root, name, sections, vocab_size=300, files=12)
            run.train()
            found, text = verdict(run, min(steps, 2), from_initial=True)
            check(found == "equal" and text.startswith(str(min(steps, 2))), f"{name}: {found}: {text}")
        small = made["small"]
        found = verdict(small, 4)
        check(found == ("equal", "1 steps"), f"from the checkpoint of step 3: {found}")
        drawn = [(small, ALTERED, what) for what in seed.draw("altered clauses", ALTERED, 3)]
        for run, table, what in [*drawn, *((made["slices"], ALTERED_SLICES, what) for what in ALTERED_SLICES)]:
            with altered(*table[what]):
                found, text = verdict(run, 1 if run is not small else 2, from_initial=True)
            check(found == verify_step.DIFFERS, f"{what} was not found: {found}: {text}")
            print(f"{what}: {text}")
        other = TinyRun(options.ostro, root, "bf16", with_values(trainer={"mp": "p=f32,c=bf16"}), vocab_size=300, files=12)
        other.train()
        found, text = verdict(other, 1)
        check(found == verify_step.CANNOT_CHECK and "trainer.mp" in text, f"a run in bf16: {found}: {text}")
    summary()


if __name__ == "__main__":
    sys.exit(main())
