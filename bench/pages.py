"""Attention over a cache in pages (docs/spec/numerics.md, N9, "Pages"), beside the rate at which this machine reads memory.

paged_bench.cc says how each round takes both in turn. One thread, 8 heads of keys with 4 of queries each. Of one token the goal
is that memory limits it; of chunks of a prompt the ratio to attention over contiguous keys is shown.
"""
import subprocess

GOAL = 0.9  # of the rate of memory


def report(b):
    words = [b.benches / "paged_bench", "--rounds", 3 if b.quick else 7]
    text = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    isa = text.splitlines()[0]
    tokens = [line for line in lines if len(line) == 7 and line[0] in ("f32", "bf16") and line[6].endswith("%")]
    chunks = [line for line in lines if len(line) == 7 and line[0] in ("f32", "bf16") and not line[6].endswith("%")]
    b.say(f"{isa}.")
    b.say()
    b.table(["type", "head_dim", "keys", "us a token and layer", "keys and values read, GB/s", "memory read, GB/s", "share"], tokens)
    b.table(["type", "head_dim", "keys", "rows", "in pages, us", "contiguous, us", "ratio"], chunks)
    for dtype, dim, keys, _, rate, read, share in tokens:
        b.goal(f"paged attention of one token, {dtype}, 8 heads of {dim}, {keys} keys / memory read", f">= {GOAL:.0%}", share,
               int(share[:-1]) >= 100 * GOAL, f"{rate} and {read} GB/s, one thread, median of the rounds")
