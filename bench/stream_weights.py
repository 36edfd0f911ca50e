#!/usr/bin/env python3
"""Samples from a model of at least three times the memory that the process may have, and from the same model in memory.

Writes a Grok of random weights in the release's layout, imports it in bf16, and runs `ostro sample --stream_weights` with an
address space (ulimit -v) of a third of the checkpoint. The tokens must be those of the model in memory, which must fail
within that limit. Then turn by turn: four prompts streamed, and the same files read with O_DIRECT by threads that do nothing
else, in blocks of the same size; prints the ratio of sweeps, and of the check of hashes, to that rate: medians and ranges.
Usage: .venv/bin/python bench/stream_weights.py --ostro build/release/ostro/cli/ostro --dir DIR [--layers 16] [--tokens 4]
       [--turns 7]
DIR needs 1.3 GB for 16 layers, on a disk (not tmpfs), and is kept.
"""
import argparse
import mmap
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "interop"))
import grok_release
from check_grok_model import byte_tokenizer

SHAPE = {**grok_release.TINY, "hidden_size": 1024, "intermediate_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4,
         "head_dim": 64, "embedding_multiplier_scale": 32.0, "attn_output_multiplier": 0.125, "max_position_embeddings": 512}
PROMPTS = ["The answer to life", "def ", "In the beginning", "x"]


def make(ostro, root, layers):
    config = {**SHAPE, "num_hidden_layers": layers}
    grok_release.write(grok_release.make(config, 1), root / "release" / "ckpt-0", config)
    subprocess.run([ostro, "import", "--from", "grok", root / "release", "--out", root / "model", "--dtype", "bf16"], check=True)
    byte_tokenizer(root / "tokenizer.json")


BLOCK, READERS = 4 << 20, 8  # as Ostro reads


def run(words, limit=None):
    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, preexec_fn=limits if limit else None)
    return done


def read_directly(files):
    """GB/s of reading all these files past the page cache."""
    sizes = {file: file.stat().st_size for file in files if file.stat().st_size >= BLOCK}
    blocks = iter([(file, at) for file, size in sizes.items() for at in range(0, size, BLOCK)])
    lock = threading.Lock()

    def work():
        memory = mmap.mmap(-1, BLOCK)
        while True:
            with lock:
                file, at = next(blocks, (None, 0))
            if file is None:
                return
            descriptor = os.open(file, os.O_RDONLY | os.O_DIRECT)
            os.preadv(descriptor, [memory], at)
            os.close(descriptor)

    threads = [threading.Thread(target=work) for _ in range(READERS)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(sizes.values()) / (time.monotonic() - begin) / 1e9


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=4)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    ostro, root = args.ostro.resolve(), args.dir
    if not (root / "tokenizer.json").exists():
        make(ostro, root, args.layers)
    (root / "prompts").write_text("\n".join(PROMPTS) + "\n")
    files = [f for f in (root / "model" / "checkpoints").rglob("c.*")]
    size = sum(f.stat().st_size for f in files)
    limit = size // 3
    print(f"checkpoint {size} bytes, ulimit -v {limit} bytes ({size / limit:.2f} times)")
    words = [ostro, "sample", "--checkpoint", root / "model", "--tokenizer", root / "tokenizer.json", "--max_new_tokens", args.tokens]
    stream = ["--stream_weights", "--keep_bytes", 0]
    failed = run([*words, "--batch", root / "prompts"], limit)
    assert failed.returncode != 0, "the model in memory fits into the limit: give more --layers"
    print(f"in memory, within the limit: exit code {failed.returncode}, {failed.stderr.strip().splitlines()[-1:]}")
    resident = run([*words, "--batch", root / "prompts"])
    assert resident.returncode == 0, resident.stderr
    wanted = resident.stdout.splitlines()
    one = run([*words, *stream, "--prompt", PROMPTS[0], "--json"], limit)
    assert one.returncode == 0 and one.stdout.splitlines() == wanted[:1], one.stdout + one.stderr
    print(f"one prompt, tokens equal: {one.stderr.strip().splitlines()[-1]}")
    sweeps, hashes, rates = [], [], []
    for turn in range(args.turns):
        streamed = run([*words, *stream, "--batch", root / "prompts"], limit)
        assert streamed.returncode == 0 and streamed.stdout.splitlines() == wanted, streamed.stdout + streamed.stderr
        line = streamed.stderr.strip().splitlines()[-1]
        rates.append(read_directly(files))
        sweeps.append(float(re.search(r"([\d.]+) GB/s in a sweep", line)[1]) / rates[-1])
        hashes.append(float(re.search(r"checked at ([\d.]+) GB/s", line)[1]) / rates[-1])
        print(f"four prompts, tokens equal: {line}; read directly {rates[-1]:.2f} GB/s", flush=True)
    if rates:
        print(f"direct reads {spread(rates)} GB/s; of that rate: sweeps {spread(sweeps)}, check of hashes {spread(hashes)}")


if __name__ == "__main__":
    main()
