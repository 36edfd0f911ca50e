#!/usr/bin/env python3
"""tests/e2e/explain_test.py --ostro PROGRAM: what `ostro data batch` says about a batch is where it comes from: the
named bytes of the named files, tokenized again, give every token and target of the batch. Two components, weights
that change, batch sizes that change; plain text, jsonl, jsonl.gz and jsonl.zst. And `ostro data diff` finds the first
step that differs."""

import argparse
import ctypes
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

SEQ_LEN = 24


def check(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def zstd(data, compress):
    """One frame, by the library that ostro itself needs."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = library.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(1 << 20)
    size = ctypes.c_size_t
    done = (library.ZSTD_compress(out, size(len(out)), data, size(len(data)), 3) if compress else
            library.ZSTD_decompress(out, size(len(out)), data, size(len(data))))
    check(done <= len(out), "zstd failed")
    return out.raw[:done]


class Place:
    def __init__(self, ostro, root):
        self.ostro, self.root = str(pathlib.Path(ostro).resolve()), root
        self.files, self.ids = {}, {}

    def run(self, *words, text=None):
        done = subprocess.run([self.ostro, *words], cwd=self.root, input=text, capture_output=True)
        check(done.returncode == 0, f"{' '.join(words)}: {done.stderr.decode()}")
        return done.stdout

    def unpacked(self, name):
        """The bytes of a file, unpacked."""
        if name not in self.files:
            raw = (self.root / name).read_bytes()
            if name.endswith(".gz"):
                raw = gzip.decompress(raw)
            if name.endswith(".zst"):
                raw = zstd(raw, compress=False)
            self.files[name] = raw
        return self.files[name]

    def tokens(self, document, key):
        """Ids of a document that the batch names, with the end-of-text."""
        begin, end = document["bytes"]
        row = self.unpacked(document["file"])[begin:end]
        text = json.loads(row)[key] if ".jsonl" in document["file"] else row.decode(errors="replace")
        if text not in self.ids:
            ids = json.loads(self.run("tokenizer", "encode", "--tokenizer", "tokenizer.json", "--json", text=text.encode()))
            self.ids[text] = ids + [self.eos]
        return self.ids[text]


def write_texts(root):
    rng = random.Random(3)
    words = ["sun", "moon", "naïve", "東京", "x = y;", "\\n", "\"quoted\"", "tab\t", "end."]

    def text(count):
        return " ".join(rng.choice(words) for _ in range(count))

    def lines(key, count):
        # Blank lines and other fields are between and beside the texts.
        return "".join(json.dumps({"id": i, key: text(rng.randint(1, 60))}, ensure_ascii=i % 2 == 0) + "\n" * (1 + i % 3)
                       for i in range(count))

    (root / "web").mkdir()
    (root / "code").mkdir()
    for i in range(5):
        (root / "web" / f"{i}.txt").write_text(text(80))
    (root / "web" / "a.jsonl").write_text(lines("text", 30))
    (root / "code" / "b.jsonl.gz").write_bytes(gzip.compress(lines("body", 30).encode()))
    (root / "code" / "c.jsonl.zst").write_bytes(zstd(lines("body", 40).encode(), compress=True))


def write_config(root, name, weights):
    (root / name).write_text(f"""
data:
  cache_dir: cache
  components:
    web: {{train_urls: [web], validation_fraction: 0.1}}
    code: {{train_urls: [code], validation_fraction: 0, format: {{type: text, text_key: body}}}}
  train_weights: {weights}
  mixture_block_size: 8
  shuffle: {{type: block, io_block_size: 3, window_blocks: 4}}
model: {{seq_len: {SEQ_LEN}, hidden_dim: 16, intermediate_dim: 16, num_layers: 1, num_heads: 2, num_kv_heads: 1}}
trainer: {{train_batch_size: [[0, 4], [5, 6]]}}
""")


def check_batch(place, step, keys):
    """Compares one batch with its sources; returns the components seen."""
    batch = json.loads(place.run("data", "batch", "--config", "a.yaml", "--step", str(step), "--json"))
    check(len(batch["sequences"]) == (4 if step < 5 else 6), f"step {step}: {len(batch['sequences'])} sequences")
    for number, sequence in enumerate(batch["sequences"]):
        source = sequence["source"]
        expected = []
        for document in source["documents"]:
            check(document["begin"] == len(expected), f"step {step}, sequence {number}: positions have a gap")
            ids = place.tokens(document, keys[source["component"]])
            count = document["end"] - document["begin"]
            expected += ids[document["first_token"]:document["first_token"] + count]
        check(expected == sequence["tokens"], f"step {step}, sequence {number}: {expected} != {sequence['tokens']}")
        check(sequence["targets"][:-1] == sequence["tokens"][1:], f"step {step}, sequence {number}: targets")
    return [s["source"]["component"] for s in batch["sequences"]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-explain-") as folder:
        root = pathlib.Path(folder)
        write_texts(root)
        write_config(root, "a.yaml", "[[0, {web: 0.75, code: 0.25}], [8, {web: 0.5, code: 0.5}]]")
        write_config(root, "b.yaml", "[[0, {web: 0.75, code: 0.25}], [8, {web: 0.25, code: 0.75}]]")
        place = Place(args.ostro, root)
        place.run("tokenizer", "train", "--input", "web/*.txt", "--vocab_size", "300", "--out", "tokenizer.json")
        place.eos = json.loads(place.run("tokenizer", "encode", "--tokenizer", "tokenizer.json", "--json",
                                         text=b"<|endoftext|>"))[0]
        place.run("data", "build", "--config", "a.yaml")

        keys = {"web": "text", "code": "body"}
        seen = []
        for step in (0, 1, 4, 5, 6, 7, 8, 9, 1000):
            seen += check_batch(place, step, keys)
        check(seen.count("web") > 0 and seen.count("code") > 0, f"components {seen}")
        # Steps 0 and 1 are the first block of 8: six and two.
        check(sorted(seen[:8]) == ["code"] * 2 + ["web"] * 6, f"first block {seen[:8]}")

        explained = place.run("data", "batch", "--config", "a.yaml", "--step", "4", "--explain").decode()
        check("component web, sequence" in explained and ", bytes " in explained, explained)
        # The comparison sees a wrong place.
        broken = Place(args.ostro, root)
        broken.eos = place.eos
        document = {"file": "web/0.txt", "bytes": [1, (root / "web/0.txt").stat().st_size]}
        right = dict(document, bytes=[0, document["bytes"][1]])
        check(broken.tokens(document, "text") != broken.tokens(right, "text"), "another place, the same tokens")

        diff = place.run("data", "diff", "a.yaml", "b.yaml", "--steps", "12").decode()
        check("first difference: step 8" in diff and "data.train_weights" in diff, diff)
        same = place.run("data", "diff", "a.yaml", "a.yaml", "--steps", "12").decode()
        check("the first 12 steps are equal: 62 sequences" in same, same)
    print("equal: every token of 9 batches comes from the bytes that ostro names")


if __name__ == "__main__":
    main()
