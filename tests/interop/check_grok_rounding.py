#!/usr/bin/env python3
"""Compares Grok-1 with its released program's rounding (model.rounding: released) with a NumPy model that rounds in the
same places.

Logits are bf16 here. Where two sums of one value lie on both sides of a boundary, a value moves by one unit of its last place,
and what is computed of it may, too: so logits are counted that are the same number, of one layer alone and of twelve. Without any
single rule of grok_oracle.RULES, clearly fewer are. Token 0 is in the text. int8 matrices must give the bits of bf16 ones, pieces
of the text the bits of the whole, weights on disk the same tokens, threads, workers and tensor parallelism the losses and states of one thread; f32 is refused.
Usage: check_grok_rounding.py --helper build/.../grok_model_helper --ostro build/.../ostro
"""
import argparse
import json
import os
import pathlib
import random
import tempfile

import numpy as np

import grok_release
from check_grok_model import SEED, byte_tokenizer, logits, make_tree, run
from checks import check, summary
from grok_oracle import RULES, Released, values

LAYER, SAME, SAME_OF_12 = 1, 0.9, 0.1  # shares of the logits that are the same number
PLANTED = 3                             # a planted error makes at least so many times as many differ


def share(a, b):
    return float((a == b).mean())


def check_training(ostro, root):
    text = root / "corpus.txt"
    text.write_text("\n".join(f"{i} plus {i * i % 7} is {i + i * i % 7}." for i in range(400)))
    run(ostro, "tokenizer", "train", "--input", text, "--vocab_size", 300, "--out", root / "tokenizer_300.json")
    small = {"model.hidden_dim": 32, "model.intermediate_dim": 88, "model.num_layers": 2, "model.num_heads": 4, "model.seq_len": 160,
             "data.tokenizer": root / "tokenizer_300.json", "data.train_urls": f"[{text}]", "data.cache_dir": root / "cache",
             "trainer.log_dir": root / "runs", "trainer.num_train_steps": 4, "trainer.steps_per_eval": 4,
             "trainer.mp": "p=f32,c=bfloat16", "numerics.cells": "{embed: 4, experts: 8}", "model.rounding": "released",
             "numerics.leaf_examples": 1, "numerics.leaves": "{kv_heads: 2, mlp: 2, pos: 2, experts: 2}"}
    config = pathlib.Path(__file__).resolve().parents[2] / "configs" / "grok_mini.yaml"

    def train(name, threads=2, command=("train",), **more):
        keys = {**small, "trainer.id": name, **{f"{where}.{key}": value for where, given in more.items() for key, value in given.items()}}
        os.environ["OSTRO_THREADS"] = str(threads)
        run(ostro, *command, "--config", config, *(word for key, value in keys.items() for word in (f"--{key}", value)))
        rows = [json.loads(line) for line in (root / "runs" / name / "chain.jsonl").read_text().splitlines()]
        return [(row["loss"], row["state"]) for row in rows if row["kind"] == "step"]

    one = train("one", threads=1)
    check(train("three", threads=3) == one, "three threads give other losses and states")
    mesh = {"mesh.axes": "{data: -1, model: 2}", "tensor_parallel_axes": "[kv_heads, mlp, experts]"}
    workers = ("launch", "local", "--workers", 2)
    check(train("data", command=workers) == one, "two workers give other losses and states")
    check(train("tensor", command=workers, trainer=mesh) == one, "tensor parallelism gives other losses and states")
    other = train("ostro", model={"rounding": "ostro"})
    check(len(one) == 4 and all(a != b for a, b in zip(one, other)), "the rounding does not change losses and states")
    run(ostro, "verify", root / "runs" / "one")
    bad = run(ostro, "train", "--config", config, *(word for key, value in {**small, "trainer.mp": "f32", "trainer.id": "bad"}.items()
                                                    for word in (f"--{key}", value)), rc=2)
    check("model.rounding" in bad.stderr and "bf16" in bad.stderr, bad.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    helper, ostro = (pathlib.Path(path).resolve() for path in (args.helper, args.ostro))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        rng, config, tree = random.Random(SEED), grok_release.TINY, make_tree()
        grok_release.write(tree, root / "grok" / "ckpt-0", config)
        ids = [rng.randrange(1, config["vocab_size"]) for _ in range(48)]
        padded = [*ids[:20], 0, *ids[20:30], 0, 0, *ids[30:]]
        exact, out = values(tree), root / "logits"

        def imported(name, *more):
            run(ostro, "import", "--from", "grok", root / "grok", "--out", root / name, *more)
            return root / name

        released = ("--dtype", "bf16", "--rounding", "released")
        layer = imported("layer", "--layers", f"{LAYER}:{LAYER + 1}", *released)
        whole, other = imported("whole", *released), imported("other", "--dtype", "bf16")
        stored = imported("stored", "--dtype", "int8", "--rounding", "released")
        found = {}
        for name, checkpoint, layers, least in (("one layer", layer, [LAYER], SAME), ("12 layers", whole, None, SAME_OF_12)):
            ours = logits(helper, checkpoint, out, 0, padded)
            found[name] = share(ours, Released(exact, config, layers=layers).logits(padded))
            check(found[name] >= least, f"{name}: {found[name]:.4f} of the logits are the same, at least {least} should be")
            if layers:
                of_layer = ours
        differ, seen = 1 - found["one layer"], {}
        for rule in RULES:
            planted = Released(exact, config, rule, [LAYER]).logits(padded)
            seen[rule] = 1 - share(of_layer, planted)
            check(seen[rule] >= PLANTED * max(differ, 1e-3), f"not seen: {rule}: {seen[rule]:.4f} differ, {differ:.4f} with it")
        for rule, part in sorted(seen.items(), key=lambda item: item[1]):
            print(f"  without {rule!r}: {part:.3f} of the logits of a layer differ")
        ours = logits(helper, whole, out, 0, ids)
        for piece in (1, 3):
            check(np.array_equal(ours, logits(helper, whole, out, piece, ids)), f"{piece} tokens at a time")
        check(np.array_equal(logits(helper, stored, out, 0, padded), logits(helper, whole, out, 0, padded)), "int8: not the bits of bf16")
        check(not np.array_equal(ours, logits(helper, other, out, 0, ids)), "the rounding changes nothing")

        byte_tokenizer(root / "tokenizer.json")
        words = ("sample", "--tokenizer", root / "tokenizer.json", "--temperature", 1, "--prompt", "Oh! The answer", "--max_new_tokens", 12, "--json")
        resident = run(ostro, *words, "--checkpoint", whole).stdout
        for checkpoint, more in ((whole, ("--stream_weights",)), (stored, ()), (stored, ("--stream_weights",))):
            check(run(ostro, *words, "--checkpoint", checkpoint, *more).stdout == resident, f"{checkpoint.name} {more}: other tokens")
        check_training(ostro, root)
        for wrong, text in ((("--rounding", "released"), "computes in bf16"), (("--rounding", "xai", "--dtype", "bf16"), "--rounding xai")):
            bad = run(ostro, "import", "--from", "grok", root / "grok", "--out", root / "x", *wrong, rc=2)
            check(text in bad.stderr and not (root / "x").exists(), bad.stderr)
    summary(f" (the same logits: {found['one layer']:.4f} of one layer, {found['12 layers']:.4f} of twelve; {len(RULES)} planted errors, "
            f"of a layer's at least {min(seen.values()):.3f} differ)")


if __name__ == "__main__":
    main()
