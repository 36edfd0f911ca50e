#!/usr/bin/env python3
"""Compares every optimizer with its formula in NumPy f64 (optimizer_formulas.py), and AdamW, SGD, Lion and Adafactor
with PyTorch and Optax, too.

50 steps of a small Llama's update program on given gradients, which follow a trajectory that the formula itself takes.
Parameters within 1e-4 of their norm, of what they moved within 1e-3. A planted error in each formula must be found.

Usage: check_optimizers.py --helper build/.../update_helper
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

import optimizer_formulas as formulas

STEPS, PEAK_WARMUP, CLIP = 50, 10, 60.0

# name: options of ostro, the formula, an error planted in it
CASES = {
    "adam": ({"type": "adam", "learning_rate": 0.01}, formulas.Adam(), formulas.Adam(beta2=0.94)),
    "adam cautious": ({"type": "adam", "learning_rate": 0.01, "cautious": True}, formulas.Adam(careful=True),
                      formulas.Adam()),
    "schedule free": ({"type": "schedule_free", "learning_rate": 0.01}, formulas.ScheduleFree(),
                      formulas.ScheduleFree(beta1=0.85)),
    "lion": ({"type": "lion", "learning_rate": 0.003}, formulas.Lion(), formulas.Lion(beta1=0.8)),
    "sgd": ({"type": "sgd", "learning_rate": 0.01}, formulas.Sgd(), formulas.Sgd(momentum=0.89)),
    "sgd nesterov": ({"type": "sgd", "learning_rate": 0.01, "nesterov": True}, formulas.Sgd(nesterov=True),
                     formulas.Sgd()),
    "adafactor": ({"type": "adafactor", "learning_rate": 0.05, "min_dim_size_to_factor": 16}, formulas.Adafactor(),
                  formulas.Adafactor(decay_rate=0.7)),
    "adafactor plain": ({"type": "adafactor", "learning_rate": 0.01, "weight_decay": 0.1,
                         "multiply_by_parameter_scale": False, "clipping_threshold": 0.5},
                        formulas.Adafactor(scaled=False, threshold=0.5, smallest=1000),
                        formulas.Adafactor(scaled=False, threshold=1.0, smallest=1000)),
    "muon": ({"type": "muon", "learning_rate": 0.02, "adam_lr": 0.005}, formulas.Muon(adam_ratio=0.25),
             formulas.Muon(adam_ratio=0.25, steps=4)),
    "muon kimi": ({"type": "muon", "learning_rate": 0.01, "adam_lr": 0.01, "use_kimi_scaling": True, "nesterov": False},
                  formulas.Muon(kimi=True, nesterov=False), formulas.Muon(kimi=True)),
    "soap": ({"type": "soap", "learning_rate": 0.01}, formulas.Soap(), formulas.Soap(frequency=11)),
    "soap one side": ({"type": "soap", "learning_rate": 0.01, "max_precond_dim": 24, "precondition_frequency": 3},
                      formulas.Soap(largest=24, frequency=3), formulas.Soap(largest=64, frequency=3)),
    "shampoo": ({"type": "shampoo", "learning_rate": 0.01}, formulas.Shampoo(), formulas.Shampoo(power=-0.5)),
}


def config_text(optimizer, name):
    sections = {
        "data": {"train_urls": ["nothing"], "tokenizer": "none"},
        "model": {"type": "llama", "seq_len": 8, "hidden_dim": formulas.EMBED, "intermediate_dim": formulas.MLP,
                  "num_layers": 2, "num_heads": formulas.KV_HEADS * formulas.GROUP, "num_kv_heads": formulas.KV_HEADS},
        "optimizer": {"lr_schedule": "constant", "warmup": PEAK_WARMUP, "max_grad_norm": CLIP, **optimizer},
        "trainer": {"num_train_steps": STEPS, "train_batch_size": 2, "mp": "f32", "id": name.replace(" ", "-")},
        "numerics": {"cells": {"embed": 4}},
    }
    return json.dumps(sections)


class Problem:
    """Least squares for every parameter: gradients are differences from a target, and noise."""

    def __init__(self, shapes):
        rng = np.random.default_rng(11)
        self.start = {p: (np.ones(s) if "norm" in p else rng.normal(0, 0.3, s)).astype(np.float32)
                      for p, s in shapes.items()}
        self.target = {p: x + rng.normal(0, 0.5, x.shape) for p, x in self.start.items()}
        self.noise = np.random.default_rng(12)

    def gradients(self, params):
        return {p: (x - self.target[p] + self.noise.normal(0, 0.3, x.shape)).astype(np.float32)
                for p, x in params.items()}


def rate(options, t):
    return options["learning_rate"] * min(1.0, (t - 1) / PEAK_WARMUP)


def default_decay(options):
    return options.get("weight_decay", 0.0 if options["type"] == "adafactor" else 0.1)


def clipped(gradients):
    norm = np.sqrt(sum(np.sum(g.astype(np.float64)**2) for g in gradients.values()))
    return {p: g.astype(np.float64) * min(1.0, CLIP / norm) for p, g in gradients.items()}


def follow(options, rule, start, gradients_of):
    """The formula's parameters after all steps. gradients_of(i, params) gives the gradients of step i."""
    params = {p: x.astype(np.float64) for p, x in start.items()}
    for i in range(STEPS):
        for path, g in clipped(gradients_of(i, params)).items():
            decay = default_decay(options) if formulas.decays(path) else 0.0
            params[path] = rule.step(params[path], g, i + 1, rate(options, i + 1), decay, path)
    return params


def furthest(ours, theirs, start):
    """The largest differences of a parameter: relative to its norm, and to how far it moved."""
    worst = [0.0, 0.0]
    for path, x in theirs.items():
        difference = np.linalg.norm(ours[path] - x)
        worst[0] = max(worst[0], difference / np.linalg.norm(x))
        worst[1] = max(worst[1], difference / np.linalg.norm(x - start[path]))
    return worst


def torch_side(options, start, gradients):
    import torch
    params = {p: torch.nn.Parameter(torch.tensor(x)) for p, x in start.items()}
    groups = [{"params": [params[p] for p in params if formulas.decays(p) == decayed],
               "weight_decay": 0.1 if decayed else 0.0} for decayed in (True, False)]
    if options["type"] == "adam":
        optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.95), eps=1e-8)
    else:  # PyTorch's decay of SGD is not decoupled: both without
        groups = [{"params": list(params.values())}]
        optimizer = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=options.get("nesterov", False))
    for i, raw in enumerate(gradients):
        for group in optimizer.param_groups:
            group["lr"] = rate(options, i + 1)
        for path, g in clipped(raw).items():
            params[path].grad = torch.tensor(g.astype(np.float32))
        optimizer.step()
    return {p: x.detach().numpy() for p, x in params.items()}


def optax_side(options, start, gradients):
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import optax

    def schedule(step):
        return options["learning_rate"] * jnp.minimum(1.0, step / PEAK_WARMUP)

    if options["type"] == "lion":
        optimizer = optax.lion(schedule, b1=0.9, b2=0.95, weight_decay=0.1,
                               mask=lambda tree: {p: formulas.decays(p.split("|")[0]) for p in tree})
    else:
        optimizer = optax.adafactor(schedule, min_dim_size_to_factor=16)

    def matrices(tree):  # optax's Adafactor takes one matrix of a layer at a time
        out = {}
        for path, x in tree.items():
            for i, w in enumerate(x if formulas.stacked(path) else x[None]):
                rows = formulas.KV_HEADS * formulas.GROUP * formulas.HEAD_DIM if "/o/" in path else w.shape[0]
                out[f"{path}|{i}"] = jnp.asarray(w.reshape(rows, -1) if w.ndim > 1 else w, jnp.float32)
        return out

    params = matrices(start)
    state = optimizer.init(params)
    update = jax.jit(optimizer.update)
    for raw in gradients:
        changes, state = update(matrices(clipped(raw)), state, params)
        params = optax.apply_updates(params, changes)
    return {path: np.stack([np.asarray(params[f"{path}|{i}"]).reshape(x.shape[1:]) for i in range(x.shape[0])])
            if formulas.stacked(path) else np.asarray(params[f"{path}|0"]).reshape(x.shape) for path, x in start.items()}


OTHERS = {"adam": torch_side, "sgd": torch_side, "sgd nesterov": torch_side, "lion": optax_side, "adafactor": optax_side}


def check(helper, name, folder):
    options, rule, wrong = CASES[name]
    config = folder / "config.yaml"

    def ours(more, start, gradients):
        config.write_text(config_text({**options, **more}, name))
        tensors = dict(start) | {f"{i}/{p}": g for i, one in enumerate(gradients) for p, g in one.items()}
        save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / "given.safetensors")
        subprocess.run([helper, config, folder / "given.safetensors", folder / "out.safetensors", str(STEPS)], check=True)
        return load_file(folder / "out.safetensors")

    config.write_text(config_text(options, name))
    subprocess.run([helper, config, folder / "shapes"], check=True)
    shapes = {}
    for line in (folder / "shapes").read_text().splitlines():
        words = line.split()
        shapes[words[0]] = [int(n) for n in words[2::2]]
    problem, gradients = Problem(shapes), []

    def made(_, params):
        gradients.append(problem.gradients(params))
        return gradients[-1]

    theirs = follow(options, rule, problem.start, made)
    there = ours({}, problem.start, gradients)
    far = furthest(there, theirs, problem.start)
    planted = furthest(there, follow(options, wrong, problem.start, lambda i, _: gradients[i]), problem.start)
    print(f"{name}: {far[0]:.1e} of the parameters, {far[1]:.1e} of their change; a planted error: {planted[0]:.1e}")
    assert far[0] < 1e-4 and far[1] < 1e-3, name
    assert planted[0] > 1e-3, f"{name}: a planted error is not found"
    if name in OTHERS:
        more = {"weight_decay": 0} if options["type"] == "sgd" else {}
        other = OTHERS[name](options, problem.start, gradients)
        far = furthest(ours(more, problem.start, gradients), other, problem.start)
        print(f"{name} beside {OTHERS[name].__name__.split('_')[0]}: {far[0]:.1e}, {far[1]:.1e}")
        assert far[0] < 1e-4 and far[1] < 1e-3, name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--helper", required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-optimizers-") as folder:
        for name in [args.only] if args.only else CASES:
            check(os.path.abspath(args.helper), name, pathlib.Path(folder))


if __name__ == "__main__":
    main()
