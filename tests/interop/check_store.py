#!/usr/bin/env python3
"""Re-derives a token store and its batches from the texts, with Python's zarr and Hugging Face's tokenizers.

`ostro data build` makes a store of a corpus of text, .jsonl, .jsonl.gz and .jsonl.zst files; here the same tokens,
offsets, line numbers, held-out split, checksums and ledger hash must follow from the texts and docs/reference/formats/token_store.md
alone. `ostro data batch` must show slices of that stream that name the right files, every sequence once an epoch.
Usage: check_store.py --ostro build/.../ostro
"""
import argparse
import glob
import gzip
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import tokenizers
import zarr
from numcodecs import Zstd

from checks import check, summary

SEQ_LEN, BATCH, FRACTION = 64, 16, 0.2


def run(ostro, *words):
    done = subprocess.run([ostro, *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_store: ostro {' '.join(words)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def write_corpus(root):
    """Real text and a few hard cases, with some files' lines as JSON."""
    rng = random.Random(7)
    sources = sorted(glob.glob(str(pathlib.Path(json.__file__).parent.parent / "*.py")))[:40]
    (root / "text" / "deep").mkdir(parents=True)
    for i, path in enumerate(sources):
        folder = root / "text" / ("deep" if i % 4 == 0 else "")
        (folder / f"{i:02}.txt").write_bytes(pathlib.Path(path).read_bytes()[: 400 + 300 * i])
    (root / "text" / "bad.txt").write_bytes(b"caf\xc3\xa9 \xff\xfe \xe2\x82 end")
    (root / "text" / "empty.txt").write_bytes(b"")
    lines = []
    for i in range(300):
        text = "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0x400, 0x460), 0x1F600 + i % 60]))
                       for _ in range(rng.randrange(0, 120)))
        lines.append(json.dumps({"id": i, "text": text}, ensure_ascii=i % 2 == 0))
        if i % 50 == 0:
            lines.append("")
    data = ("\n".join(lines) + "\n").encode()
    (root / "a.jsonl").write_bytes(data[: data.index(b"\n", 9000) + 1])
    (root / "b.jsonl.gz").write_bytes(gzip.compress(data))
    (root / "c.jsonl.zst").write_bytes(bytes(Zstd().encode(data)))


def documents_of(path):
    """(number in the file, text) of the documents with text."""
    raw = pathlib.Path(path).read_bytes()
    if path.endswith(".gz"):
        raw = gzip.decompress(raw)
    if path.endswith(".zst"):
        raw = bytes(Zstd().decode(raw))
    if ".jsonl" not in path:
        documents = [(1, raw.decode("utf-8", errors="replace"))]
    else:
        lines = raw.decode().split("\n")
        documents = [(n, json.loads(line)["text"]) for n, line in enumerate(lines, 1) if line.strip()]
    return [(n, text) for n, text in documents if text]


def held_out(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") < int(FRACTION * 2**64)


def expected_rows(root, tokenizer, eos):
    """By split: a list of (file, document, bytes of text, ids)."""
    rows = {"train": [], "validation": []}
    for path in sorted(p for p in map(str, root.rglob("*")) if pathlib.Path(p).is_file()):
        for number, text in documents_of(path):
            ids = tokenizer.encode(text, add_special_tokens=False).ids + [eos]
            rows["validation" if held_out(text) else "train"].append((path, number, len(text.encode()), ids))
    return rows


def check_split(cache, name, rows, ledger):
    def array(folder, count):
        return np.asarray(zarr.open_array(cache / name / folder, mode="r")[:count])

    stream = np.array([i for row in rows for i in row[3]], dtype=np.int64)
    offsets = array("input_ids/offsets", len(rows) + 1)
    check(offsets[0] == len(rows), f"{name}: offsets[0] is the number of rows")
    check((offsets[1:] == np.cumsum([len(row[3]) for row in rows])).all(), f"{name}: row ends")
    check((array("input_ids/data", len(stream)) == stream).all(), f"{name}: {len(stream)} tokens")
    check(not array("input_ids/data", len(stream) + 1000)[len(stream):].any(), f"{name}: zeros behind the end")
    check(list(array("rows/document", len(rows))) == [row[1] for row in rows], f"{name}: document numbers")
    check(list(array("rows/bytes", len(rows))) == [row[2] for row in rows], f"{name}: bytes")
    split = ledger["content"]["splits"][name]
    check(split["rows"] == len(rows) and split["tokens"] == len(stream), f"{name}: ledger counts")
    for folder, entry in split["arrays"].items():
        elements, chunk = array(folder, entry["elements"]), entry["chunk"]
        digests = [hashlib.sha256(elements[i:i + chunk].astype("<i8").tobytes()).digest()
                   for i in range(0, len(elements), chunk)]
        check(hashlib.sha256(b"".join(digests)).hexdigest() == entry["sha256"], f"{name}/{folder}: SHA-256")
    levanter = json.loads((cache / name / "shard_ledger.json").read_text())
    check(levanter["is_finished"] and levanter["total_num_rows"] == len(rows), f"{name}: shard_ledger.json")
    return stream


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def check_ledger(ledger, root):
    check(hashlib.sha256(canonical(ledger["content"])).hexdigest() == ledger["hash"], "ledger hash")
    rest = {key: value for key, value in ledger.items() if key != "sha256"}
    check(hashlib.sha256(canonical(rest)).hexdigest() == ledger["sha256"], "ledger checksum")
    check(str(root) not in canonical(ledger["content"]).decode(), "no path in what is hashed")
    for source, content in zip(ledger["sources"], ledger["content"]["files"], strict=True):
        data = pathlib.Path(source["path"]).read_bytes()
        check(hashlib.sha256(data).hexdigest() == content["sha256"], f"SHA-256 of {source['path']}")


def check_batches(ostro, config, rows, stream):
    ends = np.cumsum([len(row[3]) for row in rows])
    sequences = (len(stream) - 1) // SEQ_LEN
    seen = []
    for step in list(range((sequences + BATCH - 1) // BATCH)) + [1_000_000]:
        batch = json.loads(run(ostro, "data", "batch", "--config", config, "--step", str(step), "--json"))
        check(batch["step"] == step and len(batch["sequences"]) == BATCH, f"step {step}: shape")
        for entry in batch["sequences"]:
            source = entry["source"]
            first = source["sequence"] * SEQ_LEN
            if step < 1_000_000:
                seen.append(source["sequence"])
            check(entry["tokens"] == stream[first:first + SEQ_LEN].tolist(), f"step {step}: tokens")
            check(entry["targets"] == stream[first + 1:first + SEQ_LEN + 1].tolist(), f"step {step}: targets")
            check(entry["loss_mask"] == [1] * SEQ_LEN, f"step {step}: loss mask")
            for span in source["documents"]:
                row = int(np.searchsorted(ends, first + span["begin"], side="right"))
                check((span["file"], span["document"]) == rows[row][:2], f"step {step}: source of a token")
                begin = span["first_token"]
                check(entry["tokens"][span["begin"]:span["end"]] ==
                      rows[row][3][begin:begin + span["end"] - span["begin"]], f"step {step}: the document's tokens")
    check(sorted(seen[:sequences]) == list(range(sequences)), "every sequence once an epoch")
    check(seen[:sequences] != list(range(sequences)), "shuffled")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = parser.parse_args().ostro
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        root = folder / "corpus"
        write_corpus(root)
        run(ostro, "tokenizer", "train", "--input", str(root / "text"), "--vocab_size", "500", "--out",
            str(folder / "tokenizer.json"))
        config = str(folder / "config.yaml")
        pathlib.Path(config).write_text(
            f"data:\n  tokenizer: {folder}/tokenizer.json\n  cache_dir: {folder}/cache\n  train_urls: [{root}]\n"
            f"  validation_fraction: {FRACTION}\nmodel: {{type: llama, seq_len: {SEQ_LEN}}}\n"
            f"trainer: {{train_batch_size: {BATCH}}}\n")
        printed = run(ostro, "data", "build", "--config", config)
        ledger = json.loads((folder / "cache" / "ledger.json").read_text())
        check(ledger["hash"] in printed, "the command prints the ledger hash")
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        rows = expected_rows(root, tokenizer, tokenizer.token_to_id("<|endoftext|>"))
        check(len(rows["train"]) > 300 and len(rows["validation"]) > 50, "rows in both splits")
        streams = {name: check_split(folder / "cache", name, rows[name], ledger) for name in rows}
        check_ledger(ledger, root)
        check_batches(ostro, config, rows["train"], streams["train"])
    summary()


if __name__ == "__main__":
    main()
