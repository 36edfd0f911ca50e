#!/usr/bin/env python3
"""Tests token stores across programs: tensorstore and Python's zarr read ours, ours trains on theirs in place.

1. A store made by `ostro data build` is opened by tensorstore with the very options with which Levanter opens its caches
   (another codec, chunk or type would be refused) and by zarr; both see the ids, row ends and hashes of the texts, and
   rows appended by tensorstore leave the others as they were.
2. Caches in Levanter's layout, written by tensorstore in Levanter's way (rows appended in batches, their number last) and
   by zarr (zstd, and not compressed), whole or as shards side by side, are checked, counted, shown, cut into batches,
   verified and trained on where they are; the same content has the same ledger hash and gives the same run, whichever
   program wrote it, and nothing is written into it.
3. A flipped byte, another layout and impossible contents are refused, with the file and the reason.
   So are caches whose ledger names another tokenizer; one whose ends of texts differ gives a warning.
Usage: check_caches.py --ostro build/.../ostro
"""
import argparse
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import tempfile

import numpy as np
import tensorstore as ts
import tokenizers
import zarr
from zarr.codecs import ZstdCodec

from checks import check, summary

CHUNK, SHARD, LENGTH, SEQ_LEN, BATCH = 262_144, 134_217_728, 2**54, 64, 4


def levanter_array(path, dtype):
    """An array of a cache as Levanter's JaggedArrayStore opens it: what is there must fit, else it is created."""
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}, "metadata": {
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SHARD]}},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [CHUNK], "codecs": [{"name": "blosc", "configuration": {"clevel": 5}}]}}]}}
    if (path / "zarr.json").exists():
        return ts.open(spec, open_mode=ts.OpenMode(open=True)).result()
    return ts.open(spec, dtype=np.dtype(dtype).name, shape=[LENGTH], open_mode=ts.OpenMode(create=True)).result()


def append_rows(folder, rows, dtype):
    """JaggedArrayStore.extend: data, then ends, then the number of rows."""
    data, offsets = levanter_array(folder / "data", dtype), levanter_array(folder / "offsets", np.int64)
    count = int(offsets[0].read().result())
    end = int(offsets[count].read().result()) if count else 0
    ends = end + np.cumsum([len(row) for row in rows])
    data[end:int(ends[-1])].write(np.concatenate(rows).astype(dtype)).result()
    offsets[count + 1:count + 1 + len(rows)].write(ends).result()
    offsets[0].write(count + len(rows)).result()


def write_zarr(folder, rows, dtype, codec):
    ends = np.cumsum([len(row) for row in rows])
    for name, values in (("data", np.concatenate(rows).astype(dtype)), ("offsets", np.array([len(rows), *ends], np.int64))):
        array = zarr.create_array(store=str(folder / name), shape=(LENGTH,), dtype=values.dtype, chunks=(CHUNK,),
                                  shards=(SHARD,), compressors=codec, fill_value=0)
        array[:len(values)] = values


def write_cache(place, fields, writer):
    """`fields`: name -> (rows, type). A cache of one split as SerialCacheWriter leaves it."""
    for name, (rows, dtype) in fields.items():
        if writer == "tensorstore":
            for i in range(0, len(rows), 256):
                append_rows(place / "train" / name, rows[i:i + 256], dtype)
        else:
            write_zarr(place / "train" / name, rows, dtype, {"zstd": ZstdCodec(level=3), "raw": None}[writer])
    write_ledger(place, len(rows))


def write_ledger(place, rows, **values):
    (place / "train/shard_ledger.json").write_text(json.dumps({
        "total_num_rows": rows, "shard_rows": {"": rows}, "is_finished": True, "finished_shards": [""], "field_counts": {},
        "field_counts_by_shard": {}, "layout": "consolidated", "metadata": {"preprocessor_metadata": {}}} | values))


def write_sharded(place, fields, sizes):
    """Caches side by side as Levanter leaves them when it merges only their ledgers: each with its own, the one above
    them with their order, rows and elements."""
    names, counts, begin = [], {}, 0
    for i, size in enumerate(sizes):
        names.append(f"part-{(i * 7 + 3) % len(sizes):05d}")  # the order is the ledger's, not the names'
        shard = place / "train" / names[-1]
        cut = {name: (rows[begin:begin + size], dtype) for name, (rows, dtype) in fields.items()}
        for name, (rows, dtype) in cut.items():
            levanter_array(shard / name / "data", dtype), levanter_array(shard / name / "offsets", np.int64)
            if rows:
                append_rows(shard / name, rows, dtype)
        counts[names[-1]] = {name: sum(map(len, rows)) for name, (rows, _) in cut.items()}
        (shard / "shard_ledger.json").write_text(json.dumps({
            "total_num_rows": size, "shard_rows": {names[-1]: size}, "is_finished": True,
            "finished_shards": [names[-1]], "field_counts": counts[names[-1]], "field_counts_by_shard": {},
            "layout": "consolidated", "metadata": {"preprocessor_metadata": {}}}))
        begin += size
    write_ledger(place, begin, layout="sharded", shard_rows=dict(zip(names, sizes)), finished_shards=names,
                 field_counts_by_shard=counts, field_counts={name: sum(c[name] for c in counts.values()) for name in fields})


def tree_hash(folder):
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()


class Place:
    def __init__(self, ostro, root):
        self.ostro, self.root = str(pathlib.Path(ostro).resolve()), root

    def run(self, *words, says=()):
        done = subprocess.run([self.ostro, *map(str, words)], capture_output=True, text=True, cwd=self.root)
        self.err = done.stderr
        check((done.returncode != 0) == bool(says) and all(word in done.stderr for word in says),
              f"ostro {' '.join(map(str, words))}: exit {done.returncode}, wanted {says}: {done.stderr}")
        return done.stdout

    def config(self, name, component, **data):
        values = {"data": {"tokenizer": "tokenizer.json", "cache_dir": f"cache-{name}", "components": {"x": component},
                           "train_weights": {"x": 1}, "shuffle": False} | data,
                  "model": {"type": "llama", "seq_len": SEQ_LEN, "hidden_dim": 16, "intermediate_dim": 24,
                            "num_layers": 1, "num_heads": 2, "num_kv_heads": 1},
                  "trainer": {"id": name, "log_dir": "runs", "mp": "p=f32,c=f32", "train_batch_size": BATCH,
                              "num_train_steps": 3}}
        (self.root / f"{name}.yaml").write_text(json.dumps(values))
        return f"{name}.yaml"


def check_ours(place, texts, encode, id_type, dtype):
    config = place.config(f"ours-{id_type}", {"train_urls": ["web.jsonl"], "validation_fraction": 0}, id_type=id_type)
    place.run("data", "build", "--config", config)
    cache = place.root / f"cache-ours-{id_type}/x"
    rows = [encode(text) for text in texts]
    ends = np.cumsum([len(row) for row in rows])
    wanted = {"data": np.concatenate(rows).astype(dtype), "offsets": np.array([len(rows), *ends], np.int64)}
    for field, values in wanted.items():
        path = cache / "train/input_ids" / field
        for reader, array in (("tensorstore", levanter_array(path, values.dtype)), ("zarr", zarr.open_array(path, mode="r"))):
            seen = array[:len(values)]
            seen = seen.read().result() if reader == "tensorstore" else seen
            check(seen.dtype == values.dtype and (seen == values).all(), f"{path}: {reader} reads it")
    check(len(wanted["data"]) > CHUNK, "more than a chunk of tokens")
    hashes = zarr.open_array(cache / "train/rows/sha256", mode="r")[:32 * len(rows)].tobytes()
    for row in (0, len(rows) // 2, len(rows) - 1):
        shown = json.loads(place.run("data", "show", "--config", config, "--row", row, "--json"))
        digest = hashlib.sha256(np.array(rows[row], "<u4").tobytes()).hexdigest()
        check(shown["ids"] == rows[row] and shown["sha256"] == digest == hashes[32 * row:32 * row + 32].hex(), f"row {row}")
    append_rows(cache / "train/input_ids", [np.array([1, 2, 3])], dtype)
    seen = zarr.open_array(cache / "train/input_ids/data", mode="r")[:len(wanted["data"]) + 3]
    check((seen == [*wanted["data"], 1, 2, 3]).all(), "rows appended by tensorstore stand behind ours")
    return json.loads((cache / "ledger.json").read_text())["hash"]


def check_theirs(place, kind, writer, rows, masks, dtype):
    """(ledger hash, last entry of the run's chain) of a cache of that kind by that writer."""
    name = f"{kind}-{writer}-{np.dtype(dtype).name}"
    folder = place.root / f"theirs-{name}"
    fields = {"input_ids": (rows, dtype)} | ({"assistant_masks": (masks, np.int32)} if kind == "chat" else {})
    if writer == "sharded":
        write_sharded(folder, fields, [300, 0, 1, len(rows) - 310, 9])
    else:
        write_cache(folder, fields, writer)
    before = tree_hash(folder)
    config = place.config(name, {"cache_dir": folder.name, "format": {"type": kind}})
    tokens = sum(map(len, rows))
    check(f"{len(rows)} documents, {tokens} tokens" in place.run("data", "build", "--config", config), f"{name}: build")
    stats = json.loads(place.run("data", "stats", "--config", config, "--json"))["x"]
    check(stats["splits"]["train"]["tokens_per_row"]["longest"] == max(map(len, rows)), f"{name}: stats")
    for row in (0, 1, 300, len(rows) - 1):
        shown = json.loads(place.run("data", "show", "--config", config, "--row", row, "--json"))
        check(shown["ids"] == rows[row].tolist(), f"{name}: ids of row {row}")
        check(kind != "chat" or shown["loss_weights"] == masks[row].tolist(), f"{name}: weights of row {row}")
    if kind == "text":
        stream = np.concatenate(rows)
        for step in (0, (tokens - 1) // SEQ_LEN // BATCH - 1):
            batch = json.loads(place.run("data", "batch", "--config", config, "--step", step, "--json"))
            for i, entry in enumerate(batch["sequences"]):
                first = (step * BATCH + i) * SEQ_LEN
                check(entry["tokens"] == stream[first:first + SEQ_LEN].tolist(), f"{name}: step {step}, sequence {i}")
    check("damaged  " not in place.run("data", "verify", "--config", config), f"{name}: verify")
    place.run("train", "--config", config)
    check(tree_hash(folder) == before, f"{name}: nothing was written into the cache")
    chain = (place.root / "runs" / name / "chain.jsonl").read_text().splitlines()
    steps = [{key: entry[key] for key in ("loss", "state") if key in entry} for entry in map(json.loads, chain)
             if entry["kind"] == "step"]
    check(len(steps) == 3, f"{name}: three steps")
    return stats["ledger_hash"], json.dumps(steps)


def check_names(place, rows, vocab):
    """What writers call this tokenizer's size is taken: all tokens, and those of the model alone."""
    for number, (size, appends) in enumerate(((vocab, True), (vocab - 1, True), (vocab, False))):
        folder = place.root / f"theirs-named-{number}"
        write_cache(folder, {"input_ids": (rows[:40], np.int32)}, "tensorstore")
        write_ledger(folder, 40, metadata={"preprocessor_metadata": {
            "tokenizer": "org/name", "vocab_size": size, "return_attention_mask": False, "padding": False,
            "max_length": None, "append_bos": False, "append_eos": appends}})
        config = place.config(f"named-{number}", {"cache_dir": folder.name})
        check("a Levanter cache with the ids of org/name, used in place" in place.run("data", "build", "--config", config),
              f"vocab_size {size}: built")
        check(('"append_eos" is false' in place.err) != appends, f"append_eos {appends}: {place.err}")
        check("with the ids of org/name" in place.run("data", "stats", "--config", config), "stats name the tokenizer")


def check_refusals(place, rows, vocab):
    """Each begins with a good cache, so that the reason for the refusal is the one change."""
    good = place.root / "theirs-good"
    write_cache(good, {"input_ids": (rows, np.int32)}, "tensorstore")
    config = place.config("bad", {"cache_dir": "theirs-bad"})

    def fresh():
        for folder in ("theirs-bad", "cache-bad"):
            shutil.rmtree(place.root / folder, ignore_errors=True)
        shutil.copytree(good, place.root / "theirs-bad")
        return place.root / "theirs-bad"

    def metadata(bad, change):
        path = bad / "train/input_ids/data/zarr.json"
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    fresh()
    place.run("data", "build", "--config", config)
    shard = place.root / "theirs-bad/train/input_ids/data/c/0"
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 3] ^= 1
    shard.write_bytes(damaged)
    place.run("data", "batch", "--step", 0, "--config", config, says=["theirs-bad/train/input_ids/data", "chunk"])
    place.run("train", "--config", config, says=["theirs-bad/train/input_ids/data", "chunk"])

    write_ledger(fresh(), len(rows), layout="sharded", finished_shards=["a", "b"], shard_rows={"a": 1, "b": 1})
    place.run("data", "build", "--config", config, says=["shard_ledger.json", f"add up to 2, \"total_num_rows\" is {len(rows)}"])
    write_ledger(fresh(), len(rows), layout="columns")
    place.run("data", "build", "--config", config, says=["shard_ledger.json", '"columns"'])
    write_ledger(fresh(), len(rows), is_finished=False)
    place.run("data", "build", "--config", config, says=["shard_ledger.json", '"is_finished" is false'])
    write_ledger(fresh(), len(rows) + 1)
    place.run("data", "build", "--config", config, says=[f"is {len(rows)}; shard_ledger.json says {len(rows) + 1}"])
    metadata(fresh(), lambda m: m.update(fill_value=7))
    place.run("data", "build", "--config", config, says=["zarr.json", "fill_value 7"])
    metadata(fresh(), lambda m: m.update(data_type="float32"))
    place.run("data", "build", "--config", config, says=["elements of float32", "ids are integers"])
    metadata(fresh(), lambda m: m["codecs"].insert(0, {"name": "transpose", "configuration": {"order": [0]}}))
    place.run("data", "build", "--config", config, says=["zarr.json", '"transpose"'])
    levanter_array(fresh() / "train/input_ids/data", np.int32)[5].write(70_000).result()
    place.run("data", "build", "--config", config, says=["token 5 is 70000", "name the tokenizer"])
    levanter_array(fresh() / "train/input_ids/offsets", np.int64)[9].write(1).result()
    place.run("data", "build", "--config", config, says=["ends fall from"])
    def from_tokenizer(**metadata):
        write_ledger(fresh(), len(rows), metadata={"preprocessor_metadata": metadata})

    for size in (vocab + 1, vocab - 50, 50257):
        from_tokenizer(tokenizer="org/name", vocab_size=size)
        place.run("data", "build", "--config", config,
                  says=["shard_ledger.json", f'"vocab_size" is {size}, of org/name', f"tokenizer.json) has {vocab} tokens",
                        "name the tokenizer that the cache was made with"])
    from_tokenizer(tokenizer="f" * 64, vocab_size=vocab)
    place.run("data", "build", "--config", config, says=["SHA-256 " + "f" * 64, "data.tokenizer (tokenizer.json) has "])
    shutil.rmtree(fresh() / "train/input_ids")
    place.run("data", "build", "--config", config, says=["train/input_ids", "no such field"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = parser.parse_args().ostro
    rng, numbers = random.Random(3), np.random.default_rng(5)
    words = ["".join(rng.choices("abcdefghij", k=rng.randrange(1, 8))) for _ in range(300)]
    with tempfile.TemporaryDirectory(prefix="ostro-caches-") as folder:
        place = Place(ostro, pathlib.Path(folder))
        texts = [" ".join(rng.choices(words, k=rng.randrange(1, 300))) for _ in range(2000)]
        (place.root / "web.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (place.root / "web.txt").write_text("\n".join(texts))
        place.run("tokenizer", "train", "--input", "web.txt", "--vocab_size", 600, "--out", "tokenizer.json",
                  "--special_tokens", "<|user|>", "[INST]")
        (place.root / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
        tokenizer = tokenizers.Tokenizer.from_file(str(place.root / "tokenizer.json"))
        eos = tokenizer.token_to_id("<|endoftext|>")
        special = {i: str(token) for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        check(special == {0: "<|endoftext|>", 1: "<|user|>", 2: "[INST]"}, f"Hugging Face's special tokens: {special}")
        marked = tokenizer.encode("[INST]ab<|user|>c", add_special_tokens=False).ids
        check(marked[0] == 2 and 1 in marked and tokenizer.decode(marked) == "abc", f"special tokens in a text: {marked}")
        ids = dict(zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False)))
        hashes = {check_ours(place, texts, lambda text: ids[text].ids + [eos], *types)
                  for types in (("levanter", np.int64), ("int32", np.int32), ("smallest", np.uint16))}
        check(len(hashes) == 1, "the type of ids is no part of the hash")

        vocab = tokenizer.get_vocab_size()
        rows = [numbers.integers(0, vocab, numbers.integers(1, 900), dtype=np.int32) for _ in range(700)]
        masks = [(numbers.random(len(row)) < 0.5).astype(np.int32) for row in rows]
        check(sum(map(len, rows)) > CHUNK, "more than a chunk of tokens")
        for kind, cases in (("text", [("tensorstore", np.int64), ("tensorstore", np.int32), ("raw", np.int64), ("sharded", np.int32)]),
                            ("chat", [("tensorstore", np.int32), ("zstd", np.int32), ("sharded", np.int32)])):
            seen = {check_theirs(place, kind, writer, rows, masks, dtype) for writer, dtype in cases}
            check(len(seen) == 1, f"{kind}: the same content is the same data and the same run")
        check_names(place, rows, vocab)
        check_refusals(place, rows, vocab)
    summary()


if __name__ == "__main__":
    main()
