#!/usr/bin/env python3
"""Computes training steps of a small Llama again, bit for bit, with NumPy and no code of Ostro.

The numbers follow from docs/spec alone: batches.md says which tokens a step reads (here), decoder_step.md which expressions a Llama
consists of (llama_step.py), numerics.md how each of them rounds (clauses.py). The results are compared with the chain's
entry of the step: batch, loss, number of tokens, leaves and state. Read the four files in this order: clauses.py, llama_step.py,
this one; store_reader.py only unpacks tokens.

It begins with the initial state, which follows from the seed, or with the newest checkpoint before the step, and computes
all steps up to --step. It knows f32 (trainer.mp), one store and AdamW: what else a configuration says is *cannot check*.

Usage: verify_step.py RUN --step N --store STORE        (RUN may be a bundle: its folder `record` is the run)
"""
import argparse
import hashlib
import math
import pathlib
import struct
import sys

import verify_chain as record
from verify_chain import CANNOT_CHECK, DIFFERS, EXIT_CODES, INCOMPLETE, Finding, require

import numpy as np

from clauses import f32, key_of, permuted, power, same, sin_cos64, striped, tree, tree_of_groups
from llama_step import Sizes, initial_state, leaves
from store_reader import Tokens, root_of


# ---------------------------------------------------------------- the batch (batches.md)


def batch_of(tokens, config, step):
    """Tokens and targets of a step (0 is the first one), by batches.md."""
    size, length = config["trainer"]["train_batch_size"], config["model"]["seq_len"]
    n = (len(tokens.all) - 1) // length
    numbers = []
    for example in range(step * size, (step + 1) * size):
        epoch, position = divmod(example, n)
        key = key_of(config["trainer"]["seed"], "data", epoch, 0)
        numbers.append(permuted(key, position, n) if config["data"]["shuffle"] else position)
    return tokens.sequences(numbers, length)


def batch_fingerprint(inputs, targets):
    rows = b""
    for a, b in zip(inputs, targets):
        rows += record.sha(struct.pack("<q", len(a)) + a.astype("<i4").tobytes() + b.astype("<i4").tobytes() +
                           np.ones(len(a), "<f4").tobytes())
    return hashlib.sha256(rows).hexdigest()


# ---------------------------------------------------------------- the optimizer (N13)


def learning_rate(o, step, steps):
    """Of step `step`, counted from 0, of a run of so many steps (optimizers.md, Learning rate)."""
    peak, warmup = float.fromhex(o["learning_rate"]), float.fromhex(o["warmup"])
    if warmup <= 1:
        warmup = max(k for k in range(steps + 1) if k / steps <= warmup)
    if step < warmup:
        return peak * step / int(warmup)
    floor, fraction = peak * float.fromhex(o["min_lr_ratio"]), (step - warmup) / (steps - warmup)
    if o["lr_schedule"] == "constant":
        return peak
    if o["lr_schedule"] == "linear":
        return peak + (floor - peak) * fraction
    return floor + (peak - floor) * (0.5 * (1.0 + float(sin_cos64(np.float64(math.pi * fraction))[1])))


def sum_of_squares(g, axes, cells):
    """In f64: N4 in each box, and a tree over a parameter's boxes."""
    boxes = [((), g)]
    for axis, name in enumerate(axes):
        count = g.shape[axis] if name == "layers" else min(cells.get(name, 1), g.shape[axis])
        length = -(-g.shape[axis] // count)
        boxes = [(place + (i,), np.take(box, range(i * length, min((i + 1) * length, g.shape[axis])), axis))
                 for place, box in boxes for i in range(count)]
    return tree([striped((box * box).reshape(-1), same) for _, box in boxes], same)


def update(state, gradients, weight, sizes, config, step):
    """AdamW of all parameters, in place. Returns the norm of the gradient."""
    o, cells = config["optimizer"], dict(config["numerics"]["cells"])
    inv = f32(1.0 / weight)
    total = tree([sum_of_squares(gradients[path], axes.split(), cells) for path, axes, _ in sizes.shapes()], same)
    length = np.sqrt(total) * inv
    clip, limit = np.float64(1), o["max_grad_norm"] and float.fromhex(o["max_grad_norm"])
    if limit is not None and length > limit:
        clip = f32(limit / length)
    b1, b2 = float.fromhex(o["beta1"]), float.fromhex(o["beta2"])
    k1, k2 = (f32(1.0 / (1.0 - power(b, step + 1))) for b in (b1, b2))
    rate = f32(learning_rate(o, step, config["trainer"]["num_train_steps"]))
    epsilon, decay = f32(float.fromhex(o["epsilon"])), f32(float.fromhex(o["weight_decay"]))
    for path, _, _ in sizes.shapes():
        m, v = (f"optimizer/{name}_moment/{path.removeprefix('model/')}" for name in ("first", "second"))
        g = f32(f32(gradients[path] * inv) * clip)
        state[m] = f32(f32(state[m] * f32(b1)) + f32(g * f32(1 - b1)))
        state[v] = f32(f32(state[v] * f32(b2)) + f32(f32(g * g) * f32(1 - b2)))
        u = f32(f32(state[m] * k1) / f32(f32(np.sqrt(f32(state[v] * k2))) + epsilon))
        if decay and "norm" not in path and "embedding" not in path:
            u = f32(u + f32(state[path] * decay))
        state[path] = f32(state[path] - f32(u * rate))
    return length


# ---------------------------------------------------------------- a step and its entry in the chain


def hex_float(x):
    """As C's %a, with the shortest fraction."""
    mantissa, exponent = float(x).hex().split("p")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + "p" + exponent


def lanes_text(array):
    """Both lanes of N14 of an array of f32."""
    return "{:016x} {:016x}".format(*record.lanes(array.astype("<f4").view("<u4"), "f32"))


def leaf_data(number, loss, gradients, sizes, has_gradient):
    """What a leaf of the Merkle tree is the hash of (chain.md)."""
    data = {"leaf": number, "loss": hex_float(loss)}
    if has_gradient:
        data["gradient"] = record.text_hash("".join(f"{path} {lanes_text(gradients[path][number])}\n" for path, _, _ in sizes.shapes()))
    return record.canonical(data).encode()


def step_entry(state, sizes, config, tokens, step):
    """Does a step (0 is the first one) and returns what the chain's entry must say."""
    inputs, targets = batch_of(tokens, config, step)
    shape = (-1, config["numerics"]["leaf_examples"], sizes.pos)
    sums, gradients = leaves({p: v for p, v in state.items() if p.startswith("model/")}, sizes, inputs.reshape(shape), targets.reshape(shape))
    weight = float(inputs.size)
    loss = f32(tree(list(sums), same) / weight)
    groups = config["numerics"].get("slice_partials", 0)
    total = {path: tree_of_groups(list(g), groups) if groups else tree(list(g)) for path, g in gradients.items()}
    length = update(state, total, weight, sizes, config, step)
    lines = ""
    for path, axes, shape in sizes.shapes():
        lines += f"{path} f32[{', '.join(f'{a}:{n}' for a, n in zip(axes.split(), shape))}] {lanes_text(state[path])}\n"
    lines += " ".join(map(hex_float, (loss, length, weight))) + "\n"
    data = [leaf_data(i, s, gradients, sizes, config["chain"]["leaf_gradients"]) for i, s in enumerate(sums)]
    return {"step": step + 1, "loss": hex_float(loss), "tokens": int(weight), "batch": batch_fingerprint(inputs, targets),
            "state": record.text_hash(lines), "leaves": root_of([record.sha(b"\x00" + d) for d in data]).hex()}


SUPPORTED = {  # option: the values that this program knows
    "chain.leaf_gradients": [False, True], "data.block_cross_document_attention": [False], "data.shuffle": [True, False],
    "model.activation_function": ["silu"], "model.tie_word_embeddings": [False], "model.type": ["llama"],
    "model.z_loss_weight": ["0x0p+0"], "model.rope.type": ["default"], "numerics.leaves": [[]], "optimizer.decay": [None],
    "optimizer.lr_schedule": ["cosine", "linear", "constant"], "optimizer.type": ["adam"],
    "optimizer.weight_decay_modules": [None], "trainer.mp": ["f32"],
}
FREE = """data.enforce_eos data.text_key data.validation_fraction model.head_dim model.hidden_dim model.initializer_range
    model.intermediate_dim model.layer_norm_epsilon model.num_heads model.num_kv_heads model.num_layers model.rope.theta model.seq_len
    model.vocab_size numerics.cells numerics.leaf_examples numerics.slice_partials optimizer.beta1 optimizer.beta2 optimizer.epsilon optimizer.learning_rate
    optimizer.max_grad_norm optimizer.min_lr_ratio optimizer.warmup optimizer.weight_decay trainer.checkpointer.keep
    trainer.num_train_steps trainer.seed trainer.train_batch_size""".split()


def check_supported(config, path=""):
    for name, value in config.items():
        at = path + name
        if isinstance(value, dict):
            check_supported(value, at + ".")
        else:
            known = at in FREE or value in SUPPORTED.get(at, [])
            require(known, f"{at} is {record.canonical(value)}, which this program does not compute", CANNOT_CHECK)


def state_before(run, chain, sizes, config, step):
    """The newest whole state that is at hand before step `step`: (steps done, arrays)."""
    for done in sorted((n for n in chain.names if n < step), reverse=True):
        folder = run / f"checkpoints/step-{done:08}"
        if folder.is_dir():
            tensors = record.parse(record.read(folder / "manifest.json"), folder.name)["tensors"]
            if all((folder / t["path"] / "zarr.json").exists() for t in tensors):  # a bundle may have left moments out
                record.check_checkpoint(folder, chain)
                return done, {t["path"]: record.load(folder / t["path"], t, folder.name).view("<f4").astype(np.float64) for t in tensors}
    require(chain.genesis.get("initial") is None, "the run begins with the parameters of a checkpoint, which this program does not read", CANNOT_CHECK)
    state = initial_state(config, sizes)
    zeros = {f"optimizer/{name}_moment/{path.removeprefix('model/')}": np.zeros(shape)
             for name in ("first", "second") for path, _, shape in sizes.shapes()}
    return 0, {**state, **zeros}


def check_steps(run, store, step, from_initial=False):
    """Computes steps up to `step` and compares each with its entry; returns how many were computed."""
    chain = record.Chain(run / "chain.jsonl")
    require(step in chain.steps, f"the chain has no step {step}", INCOMPLETE)
    require(not chain.amends and chain.genesis.get("fork") is None, "amended runs and forks are not computed by this program", CANNOT_CHECK)
    config = chain.genesis["config"]
    check_supported(config)
    vocabulary = record.parse(record.read(run / "tokenizer.json"), "tokenizer.json")
    ids = {*vocabulary["model"]["vocab"].values(), *(token["id"] for token in vocabulary["added_tokens"])}
    sizes, tokens = Sizes(config, max(ids) + 1), Tokens(store, chain.genesis)
    if from_initial:
        chain.names = {}
    done, state = state_before(run, chain, sizes, config, step)
    for s in range(done, step):
        computed, claimed = step_entry(state, sizes, config, tokens, s), chain.steps[s + 1]
        for key in ("batch", "loss", "tokens", "leaves", "state"):
            require(computed[key] == claimed[key], f"step {s + 1}: {key} is {claimed[key]} in the chain, {computed[key]} computed")
    return step - done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="the run's directory, or a bundle")
    parser.add_argument("--step", type=int, required=True, help="the last step to compute")
    parser.add_argument("--store", type=pathlib.Path, required=True, help="the run's token store")
    parser.add_argument("--from_initial", action="store_true", help="begin with the seed, although there is a checkpoint")
    options = parser.parse_args()
    run = options.run / "record" if (options.run / "record").is_dir() else options.run
    try:
        count = check_steps(run, options.store, options.step, options.from_initial)
        which = f"step {options.step}" if count == 1 else f"steps {options.step - count + 1} to {options.step}"
        print(f"equal: {which} computed again in NumPy, bit for bit")
        return 0
    except Finding as finding:
        print(f"{finding.verdict}: {finding.text}")
        return EXIT_CODES[finding.verdict]
    except Exception as error:  # of any type, by what is wrong with a file
        print(f"{DIFFERS}: the record lacks what the format asks for: {error!r}")
        return EXIT_CODES[DIFFERS]


if __name__ == "__main__":
    sys.exit(main())
