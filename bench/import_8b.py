#!/usr/bin/env python3
"""Imports a directory in the shape of an 8B Llama whose weights are a sparse file of zeros: memory and rate.

32 layers, width 4096, MLP 14336, 32 and 8 heads, 128256 rows, bf16: 16 GB that take no room on the disk, and a
checkpoint of 32 GB that does. Checks that 8,030,261,248 parameters are counted and that the peak of memory stays below
3 GiB. Usage: bench/import_8b.py --ostro build/release/ostro/cli/ostro --scratch DIR [--layers 32]
"""
import argparse
import json
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--layers", type=int, default=32)
    args = parser.parse_args()
    top = pathlib.Path(args.scratch) / "import_8b"
    shutil.rmtree(top, ignore_errors=True)
    try:
        count, size = write_directory(top / "in", args.layers, args.ostro)
        begin = time.time()
        done = subprocess.run([args.ostro, "import", "--from", "hf", str(top / "in"), "--out", str(top / "out")],
                              capture_output=True, text=True, check=False)
        seconds = time.time() - begin
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(done.stdout + done.stderr, end="")
        print(f"{seconds:.1f} s, {size / seconds / 1e9:.2f} GB/s of bf16, peak memory {peak:.2f} GiB")
        if done.returncode != 0 or f" {count} parameters" not in done.stdout or peak >= 3:
            sys.exit(f"FAILED: {count} parameters and less than 3 GiB are right")
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
