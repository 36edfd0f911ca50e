#!/usr/bin/env python3
"""tools/verify_chain.py, which has no code of Ostro, agrees with the records that Ostro writes, and finds changed ones.

A run with an amend, one in bf16 that splits its cells, one on two components with another optimizer, and one that tunes an adapter are
*equal*. Then bytes are changed at drawn places in every file that a hash covers, and parts are removed or made anew with
all hashes of the chain computed again: each gets its verdict.
Usage: check_verify_chain.py --ostro build/.../ostro
"""
import argparse
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import types

from checks import check, summary
from tiny_run import TinyRun, seed

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/verify_chain.py"
sys.path.insert(0, str(TOOL.parent))
import verify_chain as tool

SMALL = {"model": {"seq_len": 32, "hidden_dim": 32, "intermediate_dim": 48},
         "trainer": {"train_batch_size": 4, "num_train_steps": 6, "checkpointer": {"keep": [{"every": 2}]}}}


def verdict(run, stores=(), run_hash=None, model=None, key=None):
    """The worst word and all texts, as the program finds them."""
    options = types.SimpleNamespace(run_hash=run_hash, store=list(stores), key=key, model=model)
    findings, _ = tool.check_run(run, options)
    words = [kind for kind, _ in findings]
    worst = next((w for w in (tool.DIFFERS, tool.CANNOT_CHECK, tool.INCOMPLETE) if w in words), "equal")
    return worst, "; ".join(text for _, text in findings)


def merged(**sections):
    config = json.loads(json.dumps(SMALL))
    for section, values in sections.items():
        config.setdefault(section, {}).update(values)
    return config


def rehash(path, change):
    """Applies `change` to the list of entries and computes every hash again."""
    entries, head, lines = [json.loads(line) for line in path.read_text().splitlines()], "", []
    entries = change(entries) or entries
    for entry in entries:
        entry.pop("h", None)
        head = hashlib.sha256((head + tool.canonical(entry)).encode()).hexdigest()
        lines.append(tool.canonical({**entry, "h": head}) + "\n")
    path.write_text("".join(lines))


def changed_copy(run, root, change):
    copy = root / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy, symlinks=True)
    change(copy)
    return copy


def flip(path, rng):
    data = bytearray(path.read_bytes())
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(bytes(data))
    return at


def check_honest(ostro, root):
    plain = TinyRun(ostro, root, "plain", merged())
    plain.train()
    plain.run("train", "--config", plain.config_path, "--trainer.num_train_steps", 8, "--optimizer.learning_rate", 0.005, "--amend")
    text = str(root / "corpus/train/*.txt")
    runs = [(plain, [root / "cache"])]
    cells = TinyRun(ostro, root, "cells", merged(trainer={"mp": "p=f32,c=bf16"}, numerics={"leaf_examples": 2, "cells": {"embed": 16}}))
    mixed = TinyRun(ostro, root, "mixed", merged(
        data={"train_urls": [], "validation_urls": [], "cache_dir": str(root / "parts"),
              "train_weights": {"a": 1, "b": 2},
              "components": {"a": {"train_urls": [text]}, "b": {"train_urls": [text.replace("*", "*[135]")]}}},
        optimizer={"type": "muon"}))
    tuned = TinyRun(ostro, root, "tuned", merged(adapter={"type": "lora", "rank": 2}))
    tuned.config["trainer"]["initialize_from"] = str(plain.run_directory)
    tuned.config_path.write_text(json.dumps(tuned.config))
    for run, stores in [(cells, [root / "cache"]), (mixed, [root / "parts/a", root / "parts/b"]), (tuned, [root / "cache"])]:
        run.train()
        runs.append((run, stores))
    for run, stores in runs:
        found, text = verdict(run.run_directory, stores, run.run("hash", run.run_directory).decode().split()[0])
        check(found == "equal", f"{run.name}: {found}: {text}")
    return plain.run_directory


def check_changed_bytes(run, root, rng):
    covered = [p for p in sorted(run.rglob("*")) if p.name.startswith("c.") or p.name in ("chain.jsonl", "manifest.json")]
    for path in rng.sample(covered, 12) + [run / "chain.jsonl"] * 6:
        place = path.relative_to(run)
        at = []
        copy = changed_copy(run, root, lambda c: at.append(flip(c / place, rng)))
        found, text = verdict(copy)
        check(found in (tool.DIFFERS, tool.INCOMPLETE), f"a changed bit of byte {at[0]} of {place} was not found: {found}")
    store = changed_copy(root / "cache", root, lambda c: None)
    for name in ("rows.tree", "ledger.json"):
        whole = (store / name).read_bytes()
        for _ in range(5):
            at = flip(store / name, rng)
            check(verdict(run, [store])[0] == tool.DIFFERS, f"a changed bit of byte {at} of {name} was not found")
            (store / name).write_bytes(whole)
    check(verdict(run, [store])[0] == "equal", "the copied store")


def check_forged(run, root):
    """Changes after which every hash of the chain was computed again, and removed parts."""
    def claim(entries):
        entries[0]["config"]["optimizer"]["learning_rate"] = "0x1p-3"

    def other_loss(entries):
        entries[4]["loss"] = "0x1p+1"

    def skip(entries):
        return [e for e in entries if e.get("step") != 3]

    cases = [
        ("an amend that does not fit the claimed configuration", claim, tool.DIFFERS, "optimizer.learning_rate was"),
        ("a loss", other_loss, tool.DIFFERS, "chain_head is not the chain's"),
        ("a step that is skipped", skip, tool.DIFFERS, "where step 3 should stand"),
        ("two steps swapped", lambda e: e[:1] + [e[2], e[1]] + e[3:], tool.DIFFERS, "where step 1 should stand"),
        ("an unknown format", lambda e: e[0].update(format=3), tool.CANNOT_CHECK, "format 3 is not known"),
    ]
    for what, change, word, part in cases:
        found, text = verdict(changed_copy(run, root, lambda c: rehash(c / "chain.jsonl", change)))
        check(found == word and part in text, f"{what}: {found}: {text}")

    def cut(copy):
        rehash(copy / "chain.jsonl", lambda e: [x for x in e if x.get("step", 0) <= 4])
        for step in (6, 8):
            shutil.rmtree(copy / f"checkpoints/step-{step:08}")

    def swapped(copy):
        shutil.rmtree(copy / "checkpoints/step-00000004")
        shutil.copytree(copy / "checkpoints/step-00000002", copy / "checkpoints/step-00000004")

    def other_tokenizer(copy):
        value = json.loads((copy / "tokenizer.json").read_text())
        value["model"]["merges"].pop()
        (copy / "tokenizer.json").write_text(json.dumps(value))

    removals = [
        ("a chain that was cut", cut, tool.INCOMPLETE, "ends at step 4 of"),
        ("a checkpoint that is missing", lambda c: shutil.rmtree(c / "checkpoints/step-00000004"), tool.INCOMPLETE, "steps 4"),
        ("a checkpoint in another's place", swapped, tool.DIFFERS, "its manifest says step 2"),
        ("another tokenizer", other_tokenizer, tool.DIFFERS, "tokenizer.json"),
        ("no chain", lambda c: (c / "chain.jsonl").unlink(), tool.INCOMPLETE, "chain.jsonl"),
    ]
    for what, change, word, part in removals:
        found, text = verdict(changed_copy(run, root, change))
        check(found == word and part in text, f"{what}: {found}: {text}")
    # What raises no Finding by itself still ends in a verdict.
    strange = [("a tokenizer that is a lone surrogate", "tokenizer.json", '"\\ud800"'), ("a genesis of other types", "chain.jsonl", None)]
    for what, name, text in strange:
        def harm(copy, name=name, text=text):
            if text is None:
                rehash(copy / name, lambda e: e[0].update(config={}))
            else:
                (copy / name).write_text(text)
        copy = changed_copy(run, root, harm)
        done = subprocess.run([sys.executable, str(TOOL), str(copy)], capture_output=True, text=True, check=False)
        check(done.returncode == 1 and done.stdout.startswith("differs: "), f"{what}: {done.returncode} {done.stdout}{done.stderr}")
    check(verdict(run, run_hash="0" * 64)[0] == tool.DIFFERS, "another run hash")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    options = parser.parse_args()
    rng = random.Random(seed.seed())
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        run = check_honest(options.ostro, root)
        check_changed_bytes(run, root, rng)
        check_forged(run, root)
    summary()


if __name__ == "__main__":
    sys.exit(main())
