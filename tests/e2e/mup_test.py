#!/usr/bin/env python3
"""Tests muP (docs/reference/optimizers.md): at a learning rate chosen for a width of 16, a model of width 256 with
mup_base_dim 16 learns more than the narrow one; without, it learns less than it. Texts of this machine, 60 steps.

  python3 tests/e2e/mup_test.py --ostro build/release/ostro/cli/ostro
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs/marin_small.yaml"
RATE, STEPS, NARROW, WIDE = "6e-2", 60, 16, 256
SIZES = {"model.num_kv_heads": 2, "model.head_dim": 8, "model.num_layers": 2, "model.seq_len": 64, "model.initializer_range": 0.1,
         "optimizer.learning_rate": RATE, "optimizer.ema_beta": "null", "optimizer.cycle_length": "null",
         "optimizer.decay": "null", "trainer.train_batch_size": 8, "trainer.num_train_steps": STEPS, "trainer.mp": "f32",
         "numerics.cells": "{}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", type=pathlib.Path, required=True)
    ostro = parser.parse_args().ostro.resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
    with tempfile.TemporaryDirectory() as folder:
        def held_out_loss(width, base):
            options = {**SIZES, "trainer.id": f"w{width}_{base}", "model.hidden_dim": width, "model.intermediate_dim": 3 * width,
                       "model.num_heads": width // 8, "model.mup_base_dim": base}
            words = [w for key, value in options.items() for w in ("--" + key, str(value))]
            done = subprocess.run([ostro, "train", "--config", CONFIG, *words], cwd=folder, env=env, capture_output=True,
                                  text=True)
            found = re.findall(rf"step {STEPS}: held-out loss ([\d.]+)", done.stdout + done.stderr)
            if done.returncode != 0 or not found:
                sys.exit(f"FAILED: ostro train {' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
            return float(found[-1])

        narrow, wide, plain = held_out_loss(NARROW, NARROW), held_out_loss(WIDE, NARROW), held_out_loss(WIDE, "null")
    print(f"rate {RATE}: width {NARROW} {narrow:.3f}; width {WIDE} with muP {wide:.3f}, without {plain:.3f}")
    # How far apart they are depends on the texts of the machine, their order does not.
    if not wide < narrow:
        sys.exit("FAILED: with muP the wide model does not learn more than the narrow one")
    if not plain > narrow:
        sys.exit("FAILED: without muP the rate of the narrow model is right for the wide one too, so this shows nothing")


if __name__ == "__main__":
    main()
