#!/usr/bin/env python3
"""Imports a Grok-1 of twelve layers from the release's layout and compares its logits with a NumPy model in f64.

Logits at every position, of whole rows and token by token, within 1e-5 of the largest logit of the position; the same rows
must have the same bits. Each planted error of grok_oracle.ERRORS must be at least ten times the limit away. A part of the layers is
imported alone; in bf16 the logits must be as near as bf16 allows, and the largest the same where it is clear.
Exported again, f32 and int8 must give the same files, bf16 files that are imported as the same state. Matrices that stay int8
must give the bits of bf16. A model whose weights stay on disk
must give the same tokens, and read only what these need.
Usage: check_grok_model.py --helper build/.../grok_model_helper --ostro build/.../ostro
"""
import argparse
import hashlib
import json
import pathlib
import random
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import tokenizers

import grok_release
from checks import check, summary
from grok_oracle import ERRORS, SCALES, Oracle, values

LIMIT, FACTOR, BF16_LIMIT = 1e-5, 10, 0.1
SEED = 2  # of the values and prompts; with others now and then experts of a token are so nearly tied that bf16 chooses others


def run(*words, rc=0):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    check(done.returncode == rc, f"{words[:4]} gave {done.returncode}: {done.stdout[-500:]}{done.stderr}")
    return done


def make_tree():
    """Values with which every planted error shows: a norm behind hides any factor before it unless what it normalises is
    as small as its epsilon. So in some layers the last matrix of attention or experts is small."""
    tree = grok_release.make(grok_release.TINY, SEED)
    for layer, module, factor in ((2, "moe/linear_1", 2**-9), (5, "moe/linear_1", 2**-10), (10, "moe/linear_1", 2**-9),
                                  (3, "multi_head_attention/linear", 2**-8), (8, "multi_head_attention/linear", 2**-9)):
        tensor = tree[f"transformer/decoder_layer_{layer}/{module}"]["w"]
        tensor.scales = (tensor.scales.astype(np.float32) * factor).astype(ml_dtypes.bfloat16)
    # With layers that add little to the stream and routers that are not too sharp (two are), rounding errors do not grow from
    # layer to layer.
    for layer in range(12):
        at = f"transformer/decoder_layer_{layer}"
        tree[f"{at}/rms_norm_1"]["scale"] *= np.float32(0.25)
        tree[f"{at}/rms_norm_3"]["scale"] *= np.float32(0.5)
        if layer not in (4, 9):
            tree[f"{at}/router"]["w"] *= np.float32(0.25)
    # In the last layer each key is minus the first query that meets it, so that the first positions' scores are near -cap:
    # only there can a mask below the cap be seen.
    query, key = (tree[f"transformer/decoder_layer_11/multi_head_attention/{name}"]["w"] for name in ("query", "key"))
    heads = (-1, grok_release.TINY["num_key_value_heads"], 2, grok_release.TINY["head_dim"])
    key.weight = -query.weight.reshape(heads)[:, :, 0].reshape(key.weight.shape)
    key.scales = (4 * query.scales.astype(np.float32).reshape(heads)[:, :, 0].reshape(key.scales.shape)).astype(ml_dtypes.bfloat16)
    return tree


def prompts(rng):
    vocab = grok_release.TINY["vocab_size"]
    return [[rng.randrange(1, vocab) for _ in range(n)] for n in (1, 7, 24)]


def logits(helper, checkpoint, out, piece, ids):
    run(helper, checkpoint, out, piece, *ids)
    return np.fromfile(out, np.float32).reshape(len(ids), -1)


def distance(a, b):
    """The largest difference at any position, of the largest logit there."""
    return float((np.abs(a - b).max(-1) / np.abs(b).max(-1)).max())


def byte_tokenizer(path, tokens=256):
    """A tokenizer.json of so many tokens: bytes; beyond 256 their pairs with the first one."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pairs = [(letters[0], second) for second in letters[:max(0, tokens - 256)]]
    words = letters[:tokens] + ["".join(pair) for pair in pairs]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=pairs))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.save(str(path))


def check_origin(release, whole, part):
    """An import says which files it was made of, and how to go on."""
    for checkpoint, count in ((whole, 2 + 12 * 12), (part, 2 + 3 * 12)):
        origin = json.loads((checkpoint / "origin.json").read_text())
        tensors = {name: digest for name, digest in origin["files"].items() if name != "config.json"}
        check(origin["format"] == "grok" and len(tensors) == count, f"{checkpoint.name}: {len(tensors)} files, not {count}")
        for name, digest in tensors.items():
            check(hashlib.sha256((release / name).read_bytes()).hexdigest() == digest, f"{checkpoint.name}: another hash of {name}")
        check("type: grok" in (checkpoint / "train.yaml").read_text(), f"{checkpoint.name}: train.yaml is of another family")


def check_export(ostro, root, release, whole, half, tokenizer):
    def exported(checkpoint, name, *more):
        run(ostro, "export", "--checkpoint", checkpoint, "--to", "grok", "--tokenizer", tokenizer, "--out", root / name, *more)
        run(ostro, "check", "grok", root / name, "--contents")
        return root / name

    def state(directory, name, *more):
        made = run(ostro, "import", "--from", "grok", directory, "--out", root / name, *more).stdout
        return made[made.rindex("(state"):]

    again = exported(whole, "again")
    for i in range(2 + 12 * 12):
        file = f"tensor{i:05d}_000"
        check((again / "ckpt-0" / file).read_bytes() == (release / "ckpt-0" / file).read_bytes(), f"{file} comes out as it went in")
    bf16 = ("--dtype", "bf16")
    check(state(exported(half, "half_again"), "half_2", *bf16) == state(release, "half_3", *bf16), "bf16 is the same state again")
    check(state(exported(whole, "as_f32", "--dtype", "f32"), "f32_2") == state(release, "f32_3"), "f32 is the same state again")
    bad = run(ostro, "export", "--checkpoint", whole, "--to", "grok", "--tokenizer", tokenizer, "--out", again, rc=2)
    check("ckpt-0 exists" in bad.stderr, bad.stderr)


def check_streamed(ostro, root, checkpoint, tokenizer):
    config = grok_release.TINY
    (root / "prompts").write_text("The answer\nx\nto life, the universe and everything\n")
    words = (ostro, "sample", "--checkpoint", checkpoint, "--tokenizer", tokenizer, "--max_new_tokens", 5, "--temperature", 1)
    batch = ("--batch", root / "prompts")
    resident = run(*words, *batch).stdout
    check(len(resident.splitlines()) == 3, resident)
    for keep in (0, 2_000_000, 10**9):
        streamed = run(*words, *batch, "--stream_weights", "--keep_bytes", keep)
        check(streamed.stdout == resident, f"--keep_bytes {keep}: {streamed.stdout}, resident {resident}")
    # One token: attention, norms, routers, two of eight experts, the embedding once and a row of it.
    alone = run(*words[:-3], 1, "--prompt", "x", "--stream_weights", "--keep_bytes", 0)
    d, mlp, q, kv = config["hidden_size"], config["intermediate_size"], 128, 64
    layer = 2 * 3 * d * mlp + d * (q + 2 * kv) + q * d + 4 * d + d * config["num_experts"]
    wanted = 4 * (config["num_hidden_layers"] * layer + config["vocab_size"] * d + d + d)
    found = int(alone.stderr.split("; ")[-1].split(" bytes read")[0])
    check(found == wanted, f"{found} bytes read for a token, {wanted} wanted")
    file = max((checkpoint / "checkpoints" / "step-00000000" / "model" / "layers" / "moe" / "down").glob("c*"))
    content = file.read_bytes()
    for damage, error in ((content[:-1], "a chunk of this array has"), (None, "is missing"),
                          (bytes([content[0] ^ 1]) + content[1:], "do not have the SHA-256")):
        file.unlink(missing_ok=True)
        if damage is not None:
            file.write_bytes(damage)
        bad = run(*words, *batch, "--stream_weights", rc=1)
        check(error in bad.stderr and "moe/down" in bad.stderr and bad.stdout == "", bad.stderr)
    file.write_bytes(content)
    return found


def check_int8(helper, ostro, root, release, half, rows, tokenizer):
    """Matrices that stay int8: the bits of the bf16 import, the files of the release again, half the bytes of an expert."""
    config, stored = grok_release.TINY, root / "int8"
    run(ostro, "import", "--from", "grok", release, "--out", stored, "--dtype", "int8")
    for ids in rows:
        for piece in (0, 1, 3):
            of_both = [logits(helper, k, root / "logits", piece, ids) for k in (stored, half)]
            check(np.array_equal(*of_both), f"int8, {len(ids)} tokens, {piece} at a time: not the bits of bf16")
    run(ostro, "export", "--checkpoint", stored, "--to", "grok", "--tokenizer", tokenizer, "--out", root / "int8_again")
    for i in range(2 + 12 * 12):
        file = f"tensor{i:05d}_000"
        check((root / "int8_again" / "ckpt-0" / file).read_bytes() == (release / "ckpt-0" / file).read_bytes(),
              f"{file} comes out of int8 as it went in")
    words = ("--tokenizer", tokenizer, "--temperature", 1)
    batch = (*words, "--max_new_tokens", 5, "--batch", root / "prompts")
    wanted = run(ostro, "sample", "--checkpoint", half, *batch).stdout
    for more in ((), ("--stream_weights", "--keep_bytes", 0), ("--stream_weights", "--keep_bytes", 10**9)):
        check(run(ostro, "sample", "--checkpoint", stored, *batch, *more).stdout == wanted, f"sample int8 {more}")
    alone = run(ostro, "sample", "--checkpoint", stored, *words, "--max_new_tokens", 1, "--prompt", "x", "--stream_weights",
                "--keep_bytes", 0)
    d, mlp, q, kv = config["hidden_size"], config["intermediate_size"], 128, 64
    matrices = 2 * 3 * d * mlp + d * (q + 2 * kv) + q * d
    scales = 2 * (2 * (2 * mlp + 8 * d)) + 2 * (q + 2 * kv + 8 * d)
    rest = 4 * (4 * d + d * config["num_experts"])
    wanted = config["num_hidden_layers"] * (matrices + scales + rest) + 4 * (config["vocab_size"] * d + d + d)
    found = int(alone.stderr.split("; ")[-1].split(" bytes read")[0])
    check(found == wanted, f"int8: {found} bytes read for a token, {wanted} wanted")
    # One scale that is another one must be seen.
    scale = max((stored / "checkpoints" / "step-00000000" / "model" / "layers" / "moe" / "down_scales").glob("c*"))
    content = bytearray(scale.read_bytes())
    content[0] ^= 1
    scale.write_bytes(content)
    bad = run(ostro, "sample", "--checkpoint", stored, *batch, rc=1)
    check("moe/down_scales" in bad.stderr, bad.stderr)
    run(ostro, "export", "--checkpoint", half, "--to", "grok", "--tokenizer", tokenizer, "--out", root / "no_int8", "--dtype", "f32")
    bad = run(ostro, "import", "--from", "grok", root / "no_int8", "--out", root / "x", "--dtype", "int8", rc=2)
    check("has its matrices in" in bad.stderr, bad.stderr)


def check_trained(ostro, root):
    """configs/grok_mini.yaml, smaller: trains, verifies, is exported and imported, and both models are one."""
    text = root / "corpus.txt"
    text.write_text("\n".join(f"{i} plus {i * i % 7} is {i + i * i % 7}, and {i} times 3 is {3 * i}." for i in range(400)))
    run(ostro, "tokenizer", "train", "--input", text, "--vocab_size", 300, "--out", root / "tokenizer_300.json")
    small = {"model.hidden_dim": 32, "model.intermediate_dim": 88, "model.num_layers": 2, "model.num_heads": 4, "model.seq_len": 32,
             "data.tokenizer": root / "tokenizer_300.json", "data.train_urls": f"[{text}]", "data.cache_dir": root / "cache",
             "trainer.log_dir": root / "runs", "trainer.num_train_steps": 3, "trainer.steps_per_eval": 3,
             "trainer.checkpointer.keep": "[{every: 3}]", "trainer.mp": "f32", "numerics.cells": "{embed: 4, experts: 8}"}
    config = pathlib.Path(__file__).resolve().parents[2] / "configs" / "grok_mini.yaml"
    run(ostro, "train", "--config", config, *(word for key, value in small.items() for word in (f"--{key}", value)))
    trained = root / "runs" / "grok_mini"
    run(ostro, "verify", trained)
    words = ("--prompt", "7 plus", "--max_new_tokens", 8, "--temperature", 1, "--json")
    ids = json.loads(run(ostro, "sample", "--checkpoint", trained, *words).stdout)["ids"]
    check(json.loads(run(ostro, "sample", "--checkpoint", trained, *words, "--stream_weights").stdout)["ids"] == ids,
          "a run's checkpoint, streamed")
    for dtype in ("f32", "int8"):
        out = root / f"mini_{dtype}"
        run(ostro, "export", "--checkpoint", trained, "--to", "grok", "--out", out, "--dtype", dtype)
        run(ostro, "check", "grok", out)
        run(ostro, "import", "--from", "grok", out, "--out", root / f"back_{dtype}", "--tokenizer", out / "tokenizer.json")
        back = json.loads(run(ostro, "sample", "--checkpoint", root / f"back_{dtype}", *words).stdout)["ids"]
        check(len(back) == len(ids) if dtype == "int8" else back == ids, f"{dtype}: {back}, trained {ids}")
    bad = run(ostro, "export", "--checkpoint", trained, "--to", "grok", "--out", root / "x", "--dtype", "f16", rc=2)
    check("--dtype f16" in bad.stderr, bad.stderr)
    check_padded(ostro, root)


def check_padded(ostro, root):
    """Rows of the vocabulary that no token has go out, come back, and are never sampled."""
    config = {**grok_release.TINY, "num_hidden_layers": 2}
    grok_release.write(grok_release.make(config, 5), root / "padded" / "ckpt-0", config)
    small = root / "tokenizer_100.json"
    byte_tokenizer(small, 100)
    run(ostro, "import", "--from", "grok", root / "padded", "--out", root / "padded_in", "--tokenizer", small)
    run(ostro, "export", "--checkpoint", root / "padded_in", "--to", "grok", "--out", root / "padded_out")
    for file in (root / "padded" / "ckpt-0").glob("tensor*"):
        check((root / "padded_out" / "ckpt-0" / file.name).read_bytes() == file.read_bytes(), f"padded: {file.name}")
    words = ("sample", "--checkpoint", root / "padded_in", "--prompt", "A", "--max_new_tokens", 40, "--temperature", 3, "--json")
    ids = json.loads(run(ostro, *words).stdout)["ids"]
    check(max(ids) < 100, f"padded: {ids}")
    check(json.loads(run(ostro, *words, "--stream_weights").stdout)["ids"] == ids, "padded, streamed")
    byte_tokenizer(root / "tokenizer_large.json", config["vocab_size"] + 1)
    bad = run(ostro, "import", "--from", "grok", root / "padded", "--out", root / "x", "--tokenizer", root / "tokenizer_large.json",
              rc=2)
    check(f"{config['vocab_size'] + 1} tokens" in bad.stderr and not (root / "x").exists(), bad.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    helper, ostro = (pathlib.Path(path).resolve() for path in (args.helper, args.ostro))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        tree, config, rows = make_tree(), grok_release.TINY, prompts(random.Random(SEED))
        exact = values(tree)
        grok_release.write(tree, root / "grok" / "ckpt-0", config)

        def imported(name, *more):
            run(ostro, "import", "--from", "grok", root / "grok", "--out", root / name, *more)
            return root / name

        out, whole, part = root / "logits", imported("f32"), imported("part", "--layers", "9:12")
        half = imported("bf16", "--dtype", "bf16")
        check_origin(root / "grok" / "ckpt-0", whole, part)
        right = Oracle(exact, config)
        worst = 0.0
        for ids in rows:
            ours = logits(helper, whole, out, 0, ids)
            worst = max(worst, distance(ours, right.logits(ids)))
            for piece in (1, 3):
                check(np.array_equal(ours, logits(helper, whole, out, piece, ids)), f"{piece} tokens at a time")
        check(worst <= LIMIT, f"logits are {worst:.2e} from the f64 model, limit {LIMIT}")
        some = distance(logits(helper, part, out, 0, rows[-1]), Oracle(exact, config, layers=[9, 10, 11]).logits(rows[-1]))
        check(some <= LIMIT, f"layers 9 to 11 alone: {some:.2e}")
        wanted, bf16 = right.logits(rows[-1]), logits(helper, half, out, 0, rows[-1])
        near = distance(bf16, wanted)
        check(near <= BF16_LIMIT, f"bf16: {near:.2e}, limit {BF16_LIMIT}")
        top = np.sort(wanted, -1)
        clear = top[:, -1] - top[:, -2] > 2 * near * np.abs(wanted).max(-1)
        check((wanted.argmax(-1) == bf16.argmax(-1))[clear].all(), "bf16: another token is the most likely")
        byte_tokenizer(root / "tokenizer.json")
        check_export(ostro, root, root / "grok", whole, half, root / "tokenizer.json")
        check_trained(ostro, root)
        read = check_streamed(ostro, root, whole, root / "tokenizer.json")
        check_int8(helper, ostro, root, root / "grok", half, rows, root / "tokenizer.json")
        ours, seen = logits(helper, whole, out, 0, rows[-1]), {}
        for error in ERRORS:
            planted = Oracle(values(tree, error) if error == SCALES else exact, config, error)
            seen[error] = distance(ours, planted.logits(rows[-1])) / LIMIT
            check(seen[error] >= FACTOR, f"planted error not seen: {error}: {seen[error]:.1f} times the limit")
        for error, times in sorted(seen.items(), key=lambda item: item[1]):
            print(f"  {error}: {times:.0f} times the limit")
        bad = run(ostro, "import", "--from", "grok", root / "grok", "--out", root / "x", "--layers", "9:13", rc=2)
        check("layers 9:13" in bad.stderr and not (root / "x").exists(), bad.stderr)
        (root / "grok" / "ckpt-0" / "tensor00030_000").unlink()
        bad = run(ostro, "import", "--from", "grok", root / "grok", "--out", root / "x", rc=1)
        check("tensor00030_000" in bad.stderr and not (root / "x").exists(), bad.stderr)
    summary(f" (f32 within {worst:.1e}, bf16 {near:.1e}, {int(clear.sum())} clear tokens; {len(ERRORS)} planted errors, the least "
            f"{min(seen.values()):.0f} times the limit; {read} bytes read for a token)")


if __name__ == "__main__":
    main()
