#!/usr/bin/env python3
"""Prints what a run learned, in bits per byte, beside what needs no model.

Usage: quickstart_summary.py metrics.jsonl baseline.json held_out.txt, where baseline.json is what `ostro data baseline
--json` printed, and held_out.txt the text that it wrote.
"""
import json
import lzma
import math
import pathlib
import sys

metrics, baseline = sys.argv[1], json.load(open(sys.argv[2]))
xz_bytes = len(lzma.compress(pathlib.Path(sys.argv[3]).read_bytes(), preset=9))
rows = [json.loads(line) for line in open(metrics)]
train = [row["train/loss"] for row in rows if "train/loss" in row][-20:]
held_out = [row for row in rows if "eval/loss" in row][-1]

train_loss = sum(train) / len(train)
print(f"training loss       {train_loss:.4f} nats a token   "
      f"{train_loss / math.log(2) * baseline['train_tokens_per_byte']:.4f} bits per byte (mean of the last {len(train)} steps)")
print(f"held-out loss       {held_out['eval/loss']:.4f} nats a token   {held_out['eval/bits_per_byte']:.4f} bits per byte")
print(f"unigram entropy     {baseline['unigram_bits_per_token'] * math.log(2):.4f} nats a token   "
      f"{baseline['unigram_bits_per_byte']:.4f} bits per byte (held-out tokens by their counts in training)")
print(f"xz -9               {'':21}{8 * xz_bytes / baseline['bytes']:.4f} bits per byte (of the same held-out text)")
