#!/usr/bin/env python3
"""Stores built from .parquet files that pyarrow wrote, in its encodings and compressions of strings, hold the
tokens of the same texts as .jsonl; bad files and rows are refused.
Usage: check_parquet.py --ostro build/.../ostro
"""
import argparse
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = str(pathlib.Path(parser.parse_args().ostro).resolve())
    with tempfile.TemporaryDirectory(prefix="ostro-parquet-") as folder:
        root = pathlib.Path(folder)

        def run(*words, says=()):
            done = subprocess.run([ostro, *words], capture_output=True, text=True, cwd=root)
            if (done.returncode != 0) != bool(says) or any(word not in done.stderr for word in says):
                sys.exit(f"check_parquet: {words}: exit {done.returncode}, wanted {says}: {done.stdout}{done.stderr}")
            return done.stdout

        def config(name, urls, **data):
            values = {"data": {"tokenizer": "tokenizer.json", "cache_dir": f"cache-{name}", "train_urls": urls,
                               "validation_fraction": 0.1} | data,
                      "model": {"type": "llama", "seq_len": 16, "hidden_dim": 16, "intermediate_dim": 24,
                                "num_layers": 1, "num_heads": 2, "num_kv_heads": 1}}
            (root / f"{name}.yaml").write_text(json.dumps(values))
            return f"{name}.yaml"

        def arrays(name):
            splits = json.loads((root / f"cache-{name}" / "ledger.json").read_text())["content"]["splits"]
            return {(split, array): splits[split]["arrays"][array]["sha256"]
                    for split in splits for array in ("input_ids/data", "input_ids/offsets")}

        rng = random.Random(5)
        words = ["".join(rng.choices("etaoinshrdlu\u00e9\u4e2d\U0001f600", k=rng.randrange(1, 9))) for _ in range(200)]
        texts = [" ".join(rng.choices(words, k=rng.randrange(0, 80))) for _ in range(3000)]
        texts[7] = texts[8] = texts[9]
        (root / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (root / "corpus.txt").write_text("\n".join(texts[:400]))
        run("tokenizer", "train", "--input", "corpus.txt", "--vocab_size", "400", "--out", "tokenizer.json")
        run("data", "build", "--config", config("jsonl", ["a.jsonl"]))
        wanted = arrays("jsonl")

        kinds = itertools.product([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
                                  ["NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"],
                                  [dict(use_dictionary=True), dict(use_dictionary=False),
                                   dict(use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}),
                                   dict(use_dictionary=False, column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"})])
        # Arrow does not read what it writes of a dictionary in another encoding.
        kinds = [(t, c, e) for i, (t, c, e) in enumerate(kinds)
                 if i % 5 == 0 and not (pa.types.is_dictionary(t) and "column_encoding" in e)]
        for i, (text_type, compression, encoding) in enumerate(kinds):
            table = pa.table({"id": pa.array(range(3000)), "text": pa.array(texts, text_type),
                              "nested": pa.array([{"a": [i]} for i in range(3000)])})
            pq.write_table(table, root / "a.parquet", compression=compression, row_group_size=rng.randrange(1, 3001),
                           data_page_version=rng.choice(["1.0", "2.0"]), data_page_size=rng.choice([500, 1 << 20]),
                           write_page_checksum=True, **encoding)
            run("data", "build", "--config", config(f"p{i}", ["a.parquet"]))
            if arrays(f"p{i}") != wanted:
                sys.exit(f"check_parquet: other tokens with {text_type}, {compression}, {encoding}")

        # A tokenizer is trained on the same texts.
        for name in ("a.jsonl", "a.parquet"):
            run("tokenizer", "train", "--input", name, "--vocab_size", "400", "--out", f"of-{name}.json")
        if (root / "of-a.jsonl.json").read_bytes() != (root / "of-a.parquet.json").read_bytes():
            sys.exit("check_parquet: another tokenizer from .parquet")

        # What cannot be read.
        pq.write_table(pa.table({"body": pa.array(texts), "text": pa.array(range(3000))}), root / "b.parquet")
        run("data", "build", "--config", config("type", ["b.parquet"]),
            says=["b.parquet", 'column "text" has type int64', "string"])
        run("data", "build", "--config", config("name", ["b.parquet"], text_key="txt"),
            says=["b.parquet", 'no column "txt"', "body, text"])
        (root / "c.parquet").write_bytes((root / "a.parquet").read_bytes()[:-100])
        run("data", "build", "--config", config("cut", ["c.parquet"]), says=["c.parquet"])
        holes = [None if i % 100 == 3 else text for i, text in enumerate(texts)]
        pq.write_table(pa.table({"text": pa.array(holes)}), root / "d.parquet", row_group_size=100)
        run("data", "build", "--config", config("null", ["d.parquet"]), says=["d.parquet: row 4", "null"])
        skipped = config("skip", ["d.parquet"], on_bad_row="skip")
        if "30 malformed rows (data.on_bad_row: skip)" not in run("data", "build", "--config", skipped):
            sys.exit("check_parquet: 30 nulls, and another number of rows was skipped")
        (root / "d.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in holes if text is not None))
        run("data", "build", "--config", config("kept", ["d.jsonl"]))
        if arrays("skip") != arrays("kept"):
            sys.exit("check_parquet: what is left beside skipped rows has other tokens")
        print(f"check_parquet: {len(kinds)} kinds of files, and what cannot be read")


if __name__ == "__main__":
    main()
