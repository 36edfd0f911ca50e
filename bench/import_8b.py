#!/usr/bin/env python3
"""Imports a directory in the shape of an 8B Llama whose weights are a sparse file of zeros: memory and rate.

32 layers, width 4096, MLP 14336, 32 and 8 heads, 128256 rows, bf16: 16 GB that take no room on the disk, and a
checkpoint of 32 GB that does. Checks that 8,030,261,248 parameters are counted and that the peak of memory stays below
3 GiB. Prints the rate at which the checkpoint is written, and beside it, before and after, the rate at which files of the
same size are written by a program that does nothing else. With --export the checkpoint is exported again in bf16, within the
same memory.
Usage: bench/import_8b.py --ostro build/release/ostro/cli/ostro --scratch DIR [--layers 32] [--export]
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import time

WIDTH, MLP, HEADS, KEY_HEADS, ROWS = 4096, 14336, 32, 8, 128256


def tensors(layers):
    yield "model.embed_tokens.weight", [ROWS, WIDTH]
    for i in range(layers):
        p, kv = f"model.layers.{i}.", WIDTH * KEY_HEADS // HEADS
        yield p + "input_layernorm.weight", [WIDTH]
        yield p + "post_attention_layernorm.weight", [WIDTH]
        for name, rows in (("q", WIDTH), ("k", kv), ("v", kv), ("o", WIDTH)):
            yield p + f"self_attn.{name}_proj.weight", [rows, WIDTH]
        yield p + "mlp.gate_proj.weight", [MLP, WIDTH]
        yield p + "mlp.up_proj.weight", [MLP, WIDTH]
        yield p + "mlp.down_proj.weight", [WIDTH, MLP]
    yield "model.norm.weight", [WIDTH]
    yield "lm_head.weight", [ROWS, WIDTH]


def write_directory(directory, layers, ostro):
    directory.mkdir(parents=True)
    header, at, count = {}, 0, 0
    for name, shape in tensors(layers):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * n]}
        at, count = at + 2 * n, count + n
    text = json.dumps(header).encode()
    with open(directory / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    (directory / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": ROWS, "hidden_size": WIDTH, "intermediate_size": MLP,
        "num_hidden_layers": layers, "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 8192, "tie_word_embeddings": False}))
    (directory / "text.txt").write_text("a few words to make a tokenizer of " * 50)
    subprocess.run([ostro, "tokenizer", "train", "--input", str(directory / "text.txt"), "--vocab_size", "300", "--out",
                    str(directory / "tokenizer.json")], check=True, stdout=subprocess.DEVNULL)
    return count, at


def write_rate(directory, size=4 << 30, piece=64 << 20):
    """GB/s of writing files of 64 MiB, until they are on the disk."""
    directory.mkdir()
    data = os.urandom(1 << 20) * (piece >> 20)
    begin = time.time()
    for i in range(size // piece):
        with open(directory / str(i), "wb", buffering=0) as file:
            file.write(data)
    os.sync()
    seconds = time.time() - begin
    shutil.rmtree(directory)
    return size / seconds / 1e9


def run(words):
    """Standard output, seconds, and the peak of memory of this command or an earlier one in GiB."""
    begin = time.time()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: {done.stdout}{done.stderr}")
    return done.stdout, time.time() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--export", action="store_true")
    args = parser.parse_args()
    top = pathlib.Path(args.scratch) / "import_8b"
    shutil.rmtree(top, ignore_errors=True)
    try:
        count, size = write_directory(top / "in", args.layers, args.ostro)
        before = write_rate(top / "written")
        text, seconds, peak = run([args.ostro, "import", "--from", "hf", top / "in", "--out", top / "out"])
        after, written = write_rate(top / "written"), 2 * size / seconds / 1e9
        print(text, end="")
        print(f"import: {seconds:.1f} s, {written:.2f} GB/s written; files alone {before:.2f} and {after:.2f} GB/s; "
              f"ratio {2 * written / (before + after):.2f}; peak memory {peak:.2f} GiB", flush=True)
        if f" {count} parameters" not in text or peak >= 3:
            sys.exit(f"FAILED: {count} parameters and less than 3 GiB are right")
        if args.export:
            _, seconds, peak = run([args.ostro, "export", "--checkpoint", top / "out", "--to", "hf", "--dtype", "bf16",
                                    "--shard_size", 2 * size, "--out", top / "again"])
            print(f"export: {seconds:.1f} s with the check of all hashes, {size / seconds / 1e9:.2f} GB/s written; "
                  f"peak memory {peak:.2f} GiB (of import and export)")
            made = (top / "again" / "model.safetensors").stat().st_size
            if peak >= 3 or not size < made < size + (1 << 20):
                sys.exit(f"FAILED: less than 3 GiB and {size} bytes of weights are right; the file has {made} bytes")
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
