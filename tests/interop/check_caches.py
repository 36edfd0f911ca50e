#!/usr/bin/env python3
"""Token stores across programs: tensorstore and Python's zarr read ours, ours trains on theirs in place.

1. A store of a component made by `ostro data build` is opened with exactly the options with which Levanter opens its
   caches (so that another codec, chunk or type would be refused) and with zarr; both see the same ids and row ends.
   An element appended by tensorstore does not disturb the others.
2. Caches of chat rows in Levanter's layout (nominal length 2^54, shards of 134,217,728 elements, chunks of 262,144)
   written by tensorstore (blosc) and by zarr (zstd, raw) are checked, shown and counted by `ostro data`; nothing is
   written into them.
Usage: check_caches.py --ostro build/.../ostro
"""
import argparse
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import tensorstore as ts
import zarr
from zarr.codecs import BytesCodec, ShardingCodec, ZstdCodec

CHUNK, SHARD, LENGTH = 262_144, 134_217_728, 2**54
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"check_caches: FAILED: {what}")


def run(ostro, *words):
    done = subprocess.run([ostro, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_caches: ostro {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def levanter_spec(path, dtype):
    """How Levanter opens an array of a cache, to read or append."""
    return ts.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}},
                   dtype=dtype, shape=[LENGTH],
                   chunk_layout=ts.ChunkLayout(chunk_shape=[CHUNK], write_chunk_shape=[SHARD]),
                   codec=ts.CodecSpec({"driver": "zarr3", "codecs": [{"name": "sharding_indexed", "configuration": {
                       "codecs": [{"name": "blosc", "configuration": {"clevel": 5}}]}}]}),
                   open=True, create=True).result()


def write_zarr(path, values, codecs):
    array = zarr.create_array(store=str(path), shape=(LENGTH,), dtype=values.dtype, chunks=(CHUNK,), shards=(SHARD,),
                              compressors=codecs, fill_value=0, overwrite=True)
    array[:len(values)] = values


def tree_hash(folder):
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


def check_ours(ostro, folder, config, id_type, dtype):
    cache = folder / f"ours-{id_type}"
    overrides = ("--data.id_type", id_type, "--data.components.web.cache_dir", cache)
    run(ostro, "data", "build", "--config", config, *overrides, "--component", "web")
    ledger = json.loads((cache / "ledger.json").read_text())
    for name in ("train", "validation"):
        tokens = ledger["content"]["splits"][name]["tokens"]
        rows = ledger["content"]["splits"][name]["rows"]
        for field, count, kind in (("data", tokens, dtype), ("offsets", rows + 1, np.int64)):
            path = cache / name / "input_ids" / field
            theirs = levanter_spec(path, kind)
            by_tensorstore = theirs[:count].read().result()
            by_zarr = zarr.open_array(path, mode="r")[:count]
            check(by_zarr.dtype == kind and (by_tensorstore == by_zarr).all(), f"{path}: tensorstore equals zarr")
            check(zarr.open_array(path, mode="r")[count] == 0, f"{path}: zeros behind the end")
        check(by_zarr[0] == rows and by_zarr[-1] == tokens, f"{name}: offsets end at {tokens}")
        row = json.loads(run(ostro, "data", "show", "--config", config, *overrides, "--component", "web", "--row",
                             rows // 2, "--split", name, "--json"))
        begin, end = by_zarr[rows // 2], by_zarr[rows // 2 + 1]
        ids = zarr.open_array(cache / name / "input_ids/data", mode="r")[begin:end]
        check(row["ids"] == ids.tolist(), f"{name}: the row that ostro shows")
        source = pathlib.Path(row["file"]).read_bytes()[row["begin"]:row["end"]]
        check(json.loads(source)["text"] + "<|endoftext|>" == row["text"], f"{name}: its bytes in the file")
        digest = zarr.open_array(cache / name / "rows/sha256", mode="r")[32 * (rows // 2):32 * (rows // 2 + 1)]
        check(digest.tobytes().hex() == row["sha256"] == hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest(),
              f"{name}: the row's hash")
    data = levanter_spec(cache / "train/input_ids/data", dtype)
    tokens = ledger["content"]["splits"]["train"]["tokens"]
    before = data[:tokens].read().result()
    data[tokens:tokens + 3].write(np.array([1, 2, 3], dtype)).result()
    check((zarr.open_array(cache / "train/input_ids/data", mode="r")[:tokens] == before).all(), "appending to ours")
    return ledger["hash"]


def check_theirs(ostro, folder, config, writer, vocab):
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, vocab, rng.integers(1, 900), dtype=np.int32) for _ in range(700)]
    masks = [(rng.random(len(row)) < 0.5).astype(np.int32) for row in rows]
    ends = np.concatenate([[len(rows)], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    place = folder / f"theirs-{writer}"
    arrays = {"input_ids/data": np.concatenate(rows), "input_ids/offsets": ends,
              "assistant_masks/data": np.concatenate(masks), "assistant_masks/offsets": ends}
    check(len(arrays["input_ids/data"]) > CHUNK, "more than a chunk")
    for path, values in arrays.items():
        where = place / "train" / path
        if writer == "tensorstore":
            levanter_spec(where, values.dtype)[:len(values)].write(values).result()
        else:
            write_zarr(where, values, {"zarr-zstd": ZstdCodec(level=3), "zarr-raw": None}[writer])
    (place / "train/shard_ledger.json").write_text(json.dumps({
        "total_num_rows": len(rows), "shard_rows": {"all": len(rows)}, "is_finished": True, "finished_shards": ["all"],
        "field_counts": {"input_ids": int(ends[-1])}, "metadata": {"preprocessor_metadata": {}}}))
    before = tree_hash(place)
    overrides = ("--data.components.theirs.cache_dir", place, "--data.cache_dir", folder / f"checked-{writer}")
    printed = run(ostro, "data", "build", "--config", config, *overrides, "--component", "theirs")
    check("used in place" in printed and f"{len(rows)} documents, {ends[-1]} tokens" in printed, f"{writer}: build")
    stats = json.loads(run(ostro, "data", "stats", "--config", config, *overrides, "--component", "theirs", "--json"))
    check(stats["theirs"]["splits"]["train"]["tokens_per_row"]["longest"] == max(map(len, rows)), f"{writer}: stats")
    for row in (0, 1, 350, 699):
        shown = json.loads(run(ostro, "data", "show", "--config", config, *overrides, "--component", "theirs", "--row",
                               row, "--json"))
        check(shown["ids"] == rows[row].tolist(), f"{writer}: ids of row {row}")
        check(shown["loss_weights"] == masks[row].tolist(), f"{writer}: weights of row {row}")
    check(tree_hash(place) == before, f"{writer}: nothing was written into the cache")
    return stats["theirs"]["ledger_hash"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = parser.parse_args().ostro
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghij", k=rng.randrange(1, 8))) for _ in range(300)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with open(folder / "web.jsonl", "w") as out:
            for _ in range(3000):
                text = " ".join(rng.choices(words, k=rng.randrange(1, 300)))
                out.write(json.dumps({"text": text}) + "\n")
        run(ostro, "tokenizer", "train", "--input", folder / "web.jsonl", "--vocab_size", "600", "--out",
            folder / "tokenizer.json")
        tokenizer = json.loads((folder / "tokenizer.json").read_text())
        vocab = len(tokenizer["model"]["vocab"])
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "eos_token": "<|endoftext|>",
            "chat_template": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"}))
        config = folder / "config.yaml"
        config.write_text(json.dumps({
            "data": {"tokenizer": str(folder / "tokenizer.json"), "cache_dir": str(folder / "cache"),
                     "components": {
                         "web": {"train_urls": [str(folder / "web.jsonl")], "validation_fraction": 0.1},
                         "theirs": {"format": {"type": "chat"}}},
                     "train_weights": {"web": 0.75, "theirs": 0.25}},
            "model": {"type": "llama", "seq_len": 64}}))
        hashes = {check_ours(ostro, folder, config, id_type, dtype)
                  for id_type, dtype in (("levanter", np.int64), ("int32", np.int32), ("smallest", np.uint16))}
        check(len(hashes) == 1, "the type of ids is no part of the hash")
        hashes = {check_theirs(ostro, folder, config, writer, vocab)
                  for writer in ("tensorstore", "zarr-zstd", "zarr-raw")}
        check(len(hashes) == 1, "a cache's hash is its content's")
    print(f"check_caches: {checks} checks passed")


if __name__ == "__main__":
    main()
