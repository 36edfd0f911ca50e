#!/usr/bin/env python3
"""Tests configs/marin_small.yaml: it trains for its 20 steps on texts of this machine, mixes the components in the
shares of each phase, and verifies; in the published sizes it is a model of 8,030,261,248 parameters.

  python3 tests/e2e/marin_test.py --ostro build/release/ostro/cli/ostro
"""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

from program import check

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs/marin_small.yaml"
PARAMETERS, VOCAB, WIDTH = 8_030_261_248, 128_256, 4096
PUBLISHED = {"hidden_dim": WIDTH, "intermediate_dim": 14336, "num_layers": 32, "num_heads": 32, "num_kv_heads": 8, "seq_len": 4096}
# Sequences of each component: 12 steps of 8, then 8 steps of 24. Shares are exact in blocks of 128.
PHASES = [(96, {"web": 92.6, "code": 6.1, "proofs": 1.3}), (192, {"web": 70, "code": 20, "proofs": 10})]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", type=pathlib.Path, required=True)
    ostro = parser.parse_args().ostro.resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}

    with tempfile.TemporaryDirectory() as folder:
        def run(*words, codes=(0,)):
            done = subprocess.run([ostro, *map(str, words)], cwd=folder, env=env, capture_output=True, text=True)
            check(done.returncode in codes, f"ostro {' '.join(map(str, words))}: {done.returncode}\n{done.stderr[-2000:]}")
            return done.stdout + done.stderr

        said = run("train", "--config", CONFIG)
        losses = [float(x) for x in re.findall(r"  loss ([\d.]+)", said)]
        check(len(losses) >= 2 and losses[-1] < losses[0] - 0.2, f"the loss does not fall: {losses}")
        for name in PHASES[0][1]:
            taken = int(re.search(rf"component {name}: (\d+) examples", said)[1])
            wanted = sum(count * shares[name] / 100 for count, shares in PHASES)
            # A phase that ends within a block has of each component what the block's order gave it until then.
            check(abs(taken - wanted) <= 12, f"{taken} sequences of {name}, {wanted:.1f} are its shares")
        check(re.search(r"run hash: [0-9a-f]{64}", said), said)
        check("equal: steps 1 to 20 replayed" in run("verify", "runs/marin_small"), "verify")

        sizes = [w for key, value in PUBLISHED.items() for w in (f"--model.{key}", value)]
        whole = ["--dry_run", "--trainer.id", "whole", *sizes]
        said = run("train", "--config", CONFIG, *whole, codes=(0, 2))  # 2: it does not fit into this machine
        counted = int(re.search(r"^parameters: (\d+)", said, re.M)[1])
        # Of embedding and head, this one has as many rows as the small tokenizer has tokens.
        rows = int(re.search(r"embedding/weight +f32\[vocab:(\d+)", said)[1])
        check(counted + 2 * (VOCAB - rows) * WIDTH == PARAMETERS, f"{counted} parameters with {rows} tokens")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; {PARAMETERS} parameters in the published sizes")


if __name__ == "__main__":
    main()
