#!/usr/bin/env python3
"""Samples from a model of at least three times the memory that the process may have, and from the same model in memory.

Writes a Grok of random weights in the release's layout, imports it in bf16, and runs `ostro sample --stream_weights` with an
address space (ulimit -v) of a third of the checkpoint. The tokens must be those of the model in memory, which must fail
within that limit. Prints bytes read, seconds, and the rate of a plain read of the same files beside it.
Usage: .venv/bin/python bench/stream_weights.py --ostro build/release/ostro/cli/ostro --dir DIR [--layers 16] [--tokens 4]
DIR needs 1.3 GB for 16 layers, and is kept.
"""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys
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


def run(words, limit=None):
    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    begin = time.monotonic()
    # An arena of malloc reserves 64 MiB of address space for each thread, which ulimit -v counts although nobody uses it.
    env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=env,
                          preexec_fn=limits if limit else None)
    return done, time.monotonic() - begin


def drop_from_cache(files):
    for file in files:
        with open(file, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", type=pathlib.Path, required=True)
    parser.add_argument("--dir", type=pathlib.Path, required=True)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=4)
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
    failed, _ = run([*words, "--batch", root / "prompts"], limit)
    print(f"in memory, within the limit: exit code {failed.returncode}, {failed.stderr.strip().splitlines()[-1:]}")
    resident, seconds = run([*words, "--batch", root / "prompts"])
    assert resident.returncode == 0, resident.stderr
    print(f"in memory, without a limit: {seconds:.1f} s, loading included")
    for name, more in (("four prompts", ["--batch", root / "prompts"]), ("one prompt", ["--prompt", PROMPTS[0], "--json"])):
        drop_from_cache(files)
        streamed, seconds = run([*words, *stream, *more], limit)
        assert streamed.returncode == 0, streamed.stderr
        wanted = resident.stdout.splitlines()
        assert streamed.stdout.splitlines() == (wanted if name == "four prompts" else wanted[:1]), streamed.stdout
        line = streamed.stderr.strip().splitlines()[-1]
        read = int(re.search(r"(\d+) bytes read", line)[1])
        print(f"{name}: {seconds:.1f} s with the check of all hashes; {line}; {read / size:.3f} of the checkpoint; tokens equal")
    drop_from_cache(files)
    begin = time.monotonic()
    for file in files:
        with open(file, "rb", buffering=0) as f:
            while f.read(1 << 22):
                pass
    print(f"plain read of all files: {size / (time.monotonic() - begin) / 1e9:.2f} GB/s")


if __name__ == "__main__":
    main()
