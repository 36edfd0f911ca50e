#!/usr/bin/env python3
"""tools/verify_chain.py, which has no code of Ostro, agrees with the records that Ostro writes, and finds changed ones.

A run with an amend, one in bf16 that splits its cells, one on two components with another optimizer, and one that tunes an adapter are
*equal*. Then bytes are changed at drawn places in every file that a hash covers, and parts are removed or made anew with
all hashes of the chain computed again: each gets its verdict. A bundle is put together from docs/reference/formats, by this program
and by hand, so that a mistake of the program that publishes is none here; it is equal, and what is planted in it is found. Published
bundles with what planted_bundles.py plants get the same verdict of `ostro verify`; no damage gives a traceback, or *equal*.
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

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from checks import check, summary
from published_bundles import Published
from tiny_run import TinyRun, seed

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/verify_chain.py"
sys.path.insert(0, str(TOOL.parent))
import store_reader
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
    return [run for run, _ in runs]


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
            found, text = verdict(run, [store])
            check(found in (tool.DIFFERS, tool.INCOMPLETE), f"a changed bit of byte {at} of {name} was not found: {found}: {text}")
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
        ("a state in place of the drawn one", lambda e: e[:1] + [{"kind": "checkpoint", "step": 0, "name": "0" * 64}] + e[1:], tool.DIFFERS,
         "an entry of kind checkpoint before any step"),
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


def digest(path):
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_json(path, value):
    path.write_text(tool.canonical(value) + "\n")


def write_ledger(store, folder):
    """rows, content and sources of a store; returns what bundle.json says of it."""
    folder.mkdir()
    ledger = json.loads((store / "ledger.json").read_text())
    splits, rows, claim = ledger["content"]["splits"], b"", {"root": ledger["root"]}
    for split in ("train", "validation"):
        count, tokens = splits[split]["rows"], splits[split]["tokens"]
        claim[split] = count
        ends = store_reader.read_elements(store / split / "input_ids/offsets", count + 1)[1:] if count else []
        ids = store_reader.read_elements(store / split / "input_ids/data", tokens) if tokens else []
        for begin, end in zip([0, *ends], ends):
            rows += hashlib.sha256(ids[begin:end].astype("<u4").tobytes()).digest() + int(end - begin).to_bytes(8, "little")
    (folder / "train.rows").write_bytes(rows)
    (folder / "train.content.json").write_text(tool.canonical(ledger["content"]))
    first, lines = [0, 0], ""
    for file in ledger["content"]["files"]:
        lines += tool.canonical({"file": f"{len(lines)}.txt", "first_row": first, "rows": file["rows"], "sha256": file["sha256"]}) + "\n"
        first = [a + b for a, b in zip(first, file["rows"])]
    (folder / "train.sources").write_text(lines)
    return {"train": claim}


def seal(bundle, key, **changes):
    """provenance.json and bundle.json list the files as they are; the signature is of what came out."""
    source = json.loads((bundle / "provenance.json").read_text())
    source["files"] = {name: digest(bundle / name) for name in source["files"]}
    write_json(bundle / "provenance.json", source)
    value = json.loads((bundle / "bundle.json").read_text()) | changes
    listed = sorted(p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file() and p.name not in tool.SEAL)
    value["files"] = {name: digest(bundle / name) for name in listed}
    write_json(bundle / "bundle.json", value)
    sums = {name: file["sha256"] for name, file in value["files"].items()} | {"bundle.json": digest(bundle / "bundle.json")["sha256"]}
    (bundle / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
    (bundle / "bundle.json.sig").write_bytes(key.sign((bundle / "bundle.json").read_bytes()))
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (bundle / "bundle.json.pub").write_bytes(pem)


def make_bundle(run, store, dtype, bundle, key):
    run.run("export", "--checkpoint", run.run_directory, "--to", "hf", "--dtype", dtype, "--out", bundle)
    shutil.copytree(run.run_directory, bundle / "record")
    chain = tool.Chain(run.run_directory / "chain.jsonl")
    step = max(chain.names)
    write_json(bundle / "bundle.json", {
        "format": "ostro bundle", "format_version": 1, "genesis": chain.first, "head": chain.head, "step": step, "state": chain.names[step],
        "numerics": "1", "amends": chain.amends, "lineage": {k: chain.genesis[k] for k in ("fork", "maker", "origin")}, "files": {},
        "ledger": write_ledger(store, bundle / "ledger"), "checkpoints": sorted(chain.names), "moments": True,
        "licenses": {"id": None, "files": []}, "made_by": {}})
    seal(bundle, key)
    return bundle


def without_moments(bundle):
    for folder in (bundle / "record/checkpoints").iterdir():
        shutil.rmtree(folder / "optimizer")


def other_element(bundle):
    path = bundle / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


def no_first_document(bundle):
    rows, content, sources = (bundle / f"ledger/train.{end}" for end in ("rows", "content.json", "sources"))
    value = json.loads(content.read_text())
    gone = value["files"].pop(0)["rows"][0]
    value["splits"]["train"]["rows"] -= gone
    content.write_text(tool.canonical(value))
    rows.write_bytes(rows.read_bytes()[40 * gone:])
    sources.write_text("".join(sources.read_text().splitlines(keepends=True)[1:]))


def other_merge(bundle):
    for path in (bundle / "tokenizer.json", bundle / "record/tokenizer.json"):
        value = json.loads(path.read_text())
        value["model"]["merges"].reverse()
        path.write_text(json.dumps(value))


def check_bundles(run, other, store, root, rng):
    key, forgers = (ed25519.Ed25519PrivateKey.generate() for _ in range(2))
    for dtype in [*seed.draw("types of an export", ["f32", "bf16"], 1), "f16"]:
        bundle = make_bundle(run, store, dtype, root / f"bundle-{dtype}", key)
        found = verdict(bundle, run_hash=tool.Chain(bundle / "record/chain.jsonl").head, key=bundle / "bundle.json.pub")
        check(found[0] == "equal", f"the bundle in {dtype}: {found}")
        check(verdict(run.run_directory, model=bundle)[0] == "equal", f"the model in {dtype} with its run")
    public = root / "public.pem"
    shutil.copy(bundle / "bundle.json.pub", public)

    def planted(change, **changes):
        copy = changed_copy(bundle, root, change)
        seal(copy, forgers, **changes)
        return verdict(copy)

    check(planted(without_moments, moments=False)[0] == "equal", "a bundle without moments")
    found, text = planted(lambda c: shutil.rmtree(c / "ledger"), ledger={})
    check(found == tool.INCOMPLETE and "no ledger" in text, f"a bundle without a ledger: {found}: {text}")
    cases = [("one weight", other_element, "lm_head.weight"), ("a document", no_first_document, "ledger/train.rows"),
             ("a tokenizer", other_merge, "tokenizer.json"),
             ("a record of another run", lambda c: (shutil.rmtree(c / "record"), shutil.copytree(other, c / "record")), "provenance.json")]
    for what, change, part in cases:
        found, text = planted(change)
        check(found == tool.DIFFERS and part in text, f"{what} in a bundle whose files were listed again: {found}: {text}")
    found, text = planted(lambda c: None, head="0" * 64)
    check(found == tool.DIFFERS and "its head is" in text, f"another head: {found}: {text}")
    copy = changed_copy(bundle, root, lambda c: None)
    seal(copy, forgers)
    check(f"the key in {public}" in verdict(copy, key=public)[1], "another key")
    stamp, sums = copy / "bundle.json.tsr", copy / "SHA256SUMS"
    about = hashlib.sha256((copy / "bundle.json").read_bytes()).digest()
    stamp.write_bytes(b"an answer " + about)
    check(verdict(copy)[0] == "equal", "a time stamp that SHA256SUMS does not have")
    sums.write_text(f"{sums.read_text()}{digest(stamp)['sha256']}  {stamp.name}\n")
    check(verdict(copy)[0] == "equal", "a time stamp that SHA256SUMS has")
    stamp.write_bytes(b"another answer " + about)
    check("SHA256SUMS" in verdict(copy)[1], "another time stamp than the one of SHA256SUMS")
    stamp.write_bytes(b"an answer")
    check("bundle.json.tsr: it is about another" in verdict(copy)[1], "a time stamp of another bundle")
    (copy / "more.txt").write_text("x")
    check("does not list it" in verdict(copy)[1], "a file that bundle.json does not list")
    files = [p for p in sorted(bundle.rglob("*")) if p.is_file() and p.suffix not in (".tsq", ".tsr")]
    for path in [*rng.sample(files, 8), *(bundle / name for name in ("bundle.json", "bundle.json.sig", "SHA256SUMS", "provenance.json"))]:
        place, at = path.relative_to(bundle), []
        found, text = verdict(changed_copy(bundle, root, lambda c: at.append(flip(c / place, rng))), key=public)
        check(found != "equal", f"a changed bit of byte {at[0]} of {place} was not found")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--bytes", type=int, default=20, help="drawn bytes that are changed; a fifth as many files are cut off")
    options = parser.parse_args()
    rng = random.Random(seed.seed())
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        runs = check_honest(options.ostro, root)
        run = runs[0].run_directory
        check_changed_bytes(run, root, rng)
        check_forged(run, root)
        check_bundles(runs[0], runs[1].run_directory, root / "cache", root, rng)
        published = Published(runs[0], root)
        published.check_planted()
        published.check_averages([TinyRun(options.ostro, root, name, merged(optimizer=options_of)) for name, options_of in
                                  (("ema", {"ema_beta": 0.9}), ("free", {"type": "schedule_free"}))])
        published.check_any_byte(rng, options.bytes, options.bytes // 5)
    summary()


if __name__ == "__main__":
    sys.exit(main())
