"""Choosing the next token from a row of logits, and its log-probability, beside PyTorch: one thread of each, in turns.

A row is one answer's in one step of a server, so with 32 answers at a time a step has 32 of them. Ours has the same bits
on every machine (numerics.md N19, N11); PyTorch's draws depend on the version and the machine.
"""
import os, pathlib, sys

from kernel_compare import Side
from report import HERE, spread

KINDS = {"greedy": "temperature 0", "draw": "temperature 1", "top_k": "top_k 40", "top_p": "top_p 0.9", "log_prob": "log-probability"}
VOCABS = (32000, 128256)
TURN_S = 0.1


def report(b):
    turns = 2 if b.quick else 7
    sides = [Side([pathlib.Path(b.benches) / "choice_bench"], dict(os.environ)),
             Side([sys.executable, HERE / "peers/torch_choice.py"], dict(os.environ, OMP_NUM_THREADS="1"))]
    rows = []
    try:
        for vocab in VOCABS:
            for kind, name in KINDS.items():
                counts = []
                for side in sides:
                    side.ask(f"case {kind} {vocab}")
                    side.ask("run 8")
                    counts.append(max(8, int(TURN_S / (float(side.ask("run 8")[0]) / 8))))
                seen = [[float(side.ask(f"run {count}")[0]) / count * 1e3 for side, count in zip(sides, counts)] for _ in range(turns)]
                ratios = [theirs / ours for ours, theirs in seen]
                rows.append([name, vocab, spread([ours for ours, _ in seen], 3), spread([theirs for _, theirs in seen], 3),
                             spread(ratios, 2)])
    finally:
        for side in sides:
            side.close()
    b.table(["of one row", "tokens of the vocabulary", "ostro, ms", "PyTorch, ms", "PyTorch / ostro"], rows)
