#!/usr/bin/env python3
"""Tests that `ostro data batch --explain` says where a batch comes from, and that `ostro data diff` finds the first
step that differs.

The named bytes of the named files, tokenized again, must give every token and target of the batch: components with
weights and batch sizes that change, and the form without components; plain text, jsonl, jsonl.gz and jsonl.zst;
training and held-out batches; conversations, pairs and ready-made ids, packed; files that changed or are gone, caches
without texts. With --parquet (it needs pyarrow) the same is tested with .parquet files alone, whose row groups, rows
and columns are read by pyarrow.

    explain_test.py --ostro PROGRAM [--parquet]
"""

import argparse
import ctypes
import gzip
import json
import pathlib
import random
import shutil
import subprocess
import tempfile

from program import check

SEQ_LEN = 24


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

    def run(self, *words, text=None, status=0):
        done = subprocess.run([self.ostro, *words], cwd=self.root, input=text, capture_output=True)
        check(done.returncode == status, f"{' '.join(words)}: {done.stderr.decode()}")
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

    def row(self, document):
        """The row that is named: the fields of an object, or a text."""
        name = document["file"]
        if name.endswith(".parquet"):
            import pyarrow.parquet
            if name not in self.files:
                self.files[name] = pyarrow.parquet.ParquetFile(self.root / name)
            group = self.files[name].read_row_group(document["row_group"], columns=document["columns"])
            row = {name: group[name][document["row_in_group"]].as_py() for name in group.column_names}
            if "cell_bytes" in document:
                (begin, end), (text,) = document["cell_bytes"], row.values()
                check(len(text.encode()) == end, f"{document}: the cell has {len(text.encode())} bytes")
                return text.encode()[begin:end].decode()
            return row
        begin, end = document["bytes"]
        row = self.unpacked(name)[begin:end]
        return row.decode(errors="replace") if name.endswith(".txt") else json.loads(row)

    def encoded(self, text):
        if text not in self.ids:
            self.ids[text] = json.loads(self.run("tokenizer", "encode", "--tokenizer", "tokenizer", "--json",
                                                 text=text.encode()))
        return self.ids[text]

    def tokens(self, document, kind):
        """Ids of a document that the batch names. `kind`: the field of its text, or a format."""
        row = self.row(document)
        if kind == "prebuilt":
            return row["input_ids"]
        if kind == "chat":
            return self.encoded("".join(f"<{m['role']}> {m['content']}\n" for m in row["messages"]))
        if kind == "supervised":
            return self.encoded(row["prompt"] + row["response"]) + [self.eos]
        return self.encoded(row if isinstance(row, str) else row[kind]) + [self.eos]

    def explained(self, config, step, *words):
        return json.loads(self.run("data", "batch", "--config", config, "--step", str(step), "--explain", "--json", *words))

    def check_batch(self, batch, kinds, where):
        """Compares a batch with its sources; returns the components seen and how many documents began before."""
        components, cut = [], 0
        for number, sequence in enumerate(batch["sequences"]):
            source, place = sequence["source"], f"{where}, sequence {number}"
            if source is None:  # padding
                check(set(sequence["loss_mask"]) == {0}, f"{place}: padding that counts")
                continue
            kind = kinds[source.get("component", "")]
            packed = kind in ("chat", "supervised")
            at, last = 0, None
            for document in source["documents"]:
                check(document["begin"] == at, f"{place}: positions have a gap")
                ids, first = self.tokens(document, kind), document["first_token"]
                end = document["end"]
                count = end - at
                check(ids[first:first + count] == sequence["tokens"][at:end], f"{place}: {document}: {ids}")
                if packed:  # every row is whole, but for what is longer than a sequence
                    check(ids[first + 1:first + count + 1] == sequence["targets"][at:end], f"{place}: targets of {document}")
                    check(count in (len(ids) - 1, SEQ_LEN), f"{place}: {count} of {len(ids)} tokens")
                    check(set(sequence["segment_ids"][at:end]) == {source["documents"].index(document)}, f"{place}: segments")
                cut += first > 0
                at = end
            check(set(sequence["loss_mask"][at:]) <= {0}, f"{place}: tokens without a source count")
            if not packed:
                check(sequence["targets"][:at - 1] == sequence["tokens"][1:at], f"{place}: targets")
            components.append(source.get("component", ""))
        return components, cut


WORDS = ["sun", "moon", "naïve", "東京", "x = y;", "\\n", "\"quoted\"", "tab\t", "end."]


def write_texts(root):
    rng = random.Random(3)

    def text(count):
        return " ".join(rng.choice(WORDS) for _ in range(count))

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


    # The same texts by one field: the form without components has one for all files.
    (root / "all").mkdir()
    (root / "all" / "0.txt").write_bytes(b"\xef\xbb\xbf" + text(90).encode() + b" \xff\xfe broken")
    (root / "all" / "1.jsonl").write_bytes(b"\xef\xbb\xbf" + lines("text", 12).replace("\n\n", "\r\n  \n").encode())
    (root / "all" / "2.ndjson").write_text(lines("text", 6))
    (root / "all" / "3.jsonl.gz").write_bytes(gzip.compress(lines("text", 9).encode()) + gzip.compress(lines("text", 3).encode()))
    (root / "all" / "4.jsonl.zst").write_bytes(zstd(lines("text", 12).encode(), compress=True))

    def rows(make, count):
        return "".join(json.dumps(make(i)) + "\n" for i in range(count)).encode()

    for name, data in (("pairs.jsonl.gz", gzip.compress(rows(lambda i: {"prompt": text(1 + i % 4), "response": text(1 + i % 7)}, 30))),
                       ("chat.jsonl", rows(lambda i: {"messages": [{"role": role, "content": text(2)} for role in
                                                                   ("user", "assistant")[:1 + i % 2]]}, 30)),
                       ("ids.jsonl.zst", zstd(rows(lambda i: {"input_ids": [rng.randrange(250) for _ in range(5 + i)]}, 30), True))):
        (root / name).write_bytes(data)
    (root / "tokenizer").mkdir()
    (root / "tokenizer" / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ '<' + m.role + '> ' + m.content + '\\n' }}{% endfor %}")


MODEL = f"""
model: {{seq_len: {SEQ_LEN}, hidden_dim: 16, intermediate_dim: 16, num_layers: 1, num_heads: 2, num_kv_heads: 1}}
trainer: {{train_batch_size: [[0, 4], [5, 6]]}}
"""


def write_config(root, name, weights):
    (root / name).write_text(f"""
data:
  tokenizer: tokenizer
  cache_dir: cache
  components:
    web: {{train_urls: [web], validation_fraction: 0.1}}
    code: {{train_urls: [code], validation_fraction: 0, format: {{type: text, text_key: body}}}}
  train_weights: {weights}
  mixture_block_size: 8
  shuffle: {{type: block, io_block_size: 3, window_blocks: 4}}
""" + MODEL)


def check_mixture(place):
    root = place.root
    write_config(root, "a.yaml", "[[0, {web: 0.75, code: 0.25}], [8, {web: 0.5, code: 0.5}]]")
    write_config(root, "b.yaml", "[[0, {web: 0.75, code: 0.25}], [8, {web: 0.25, code: 0.75}]]")
    place.run("data", "build", "--config", "a.yaml")
    kinds = {"web": "text", "code": "body"}
    seen = []
    for step in (0, 1, 4, 5, 6, 7, 8, 9, 1000):
        batch = place.explained("a.yaml", step)
        check(len(batch["sequences"]) == (4 if step < 5 else 6), f"step {step}: {len(batch['sequences'])} sequences")
        seen += place.check_batch(batch, kinds, f"step {step}")[0]
    check(seen.count("web") > 0 and seen.count("code") > 0, f"components {seen}")
    # Steps 0 and 1 are the first block of 8: six and two.
    check(sorted(seen[:8]) == ["code"] * 2 + ["web"] * 6, f"first block {seen[:8]}")
    place.check_batch(place.explained("a.yaml", 0, "--split", "validation", "--component", "web"), kinds, "held out")

    explained = place.run("data", "batch", "--config", "a.yaml", "--step", "4", "--explain").decode()
    check("component web, sequence" in explained and ", bytes " in explained, explained)
    # The comparison sees a wrong place, and a wrong token.
    document = {"file": "web/0.txt", "bytes": [1, (root / "web/0.txt").stat().st_size]}
    right = dict(document, bytes=[0, document["bytes"][1]])
    check(place.tokens(document, "text") != place.tokens(right, "text"), "another place, the same tokens")

    diff = place.run("data", "diff", "a.yaml", "b.yaml", "--steps", "12", status=1).decode()
    check("first difference: step 8" in diff and "data.train_weights" in diff, diff)
    same = place.run("data", "diff", "a.yaml", "a.yaml", "--steps", "12").decode()
    check("the first 12 steps are equal: 62 sequences" in same, same)


def check_one_source(place, urls, documents=None):
    """The form without components: every training batch of an epoch, every held-out one, and every row."""
    config = "one.yaml"
    (place.root / config).write_text(f"data: {{tokenizer: tokenizer, cache_dir: one, train_urls: {urls}, "
                                     f"validation_fraction: 0.2}}{MODEL}")
    place.run("data", "build", "--config", config)
    splits = json.loads(place.run("data", "stats", "--config", config, "--json"))["splits"]
    cut, files = 0, set()
    sequences = {"train": (splits["train"]["tokens"] - 1) // SEQ_LEN, "validation": -(-(splits["validation"]["tokens"] - 1) // SEQ_LEN)}
    for split, steps in (("train", 4), ("validation", 1000)):
        step = 0
        while step < steps:
            batch = place.explained(config, step, "--split", split)
            cut += place.check_batch(batch, {"": "text"}, f"{split} {step}")[1]
            files |= {d["file"] for s in batch["sequences"] if s["source"] for d in s["source"]["documents"]}
            step += 1
            if split == "validation":
                steps = -(-sequences[split] // len(batch["sequences"]))
    check(cut > 3, f"{cut} documents began in a sequence before")
    check(documents is None or len(files) == documents, f"documents of {files} only")
    for row in range(0, splits["train"]["rows"], 7):
        shown = json.loads(place.run("data", "show", "--config", config, "--row", str(row), "--json"))
        check(place.tokens(shown, "text") == shown["ids"], f"row {row}")
    return config


def check_changed(place):
    """A file that was touched is the same; one that changed, or is gone, has no bytes to name, and it is said."""
    config = check_one_source(place, ["all/1.jsonl"])
    path = place.root / "all/1.jsonl"
    before = place.explained(config, 0)
    content = path.read_bytes()
    path.write_bytes(content)
    check(place.explained(config, 0) == before, "a file that was written again with the same content")
    for new, reason in ((content.replace(b"sun", b"moon", 1), "changed since"), (content.replace(b"sun", b"son", 1), "changed since"),
                        (None, "is not there any more")):
        path.unlink() if new is None else path.write_bytes(new)
        for sequence in place.explained(config, 0)["sequences"]:
            for document in sequence["source"]["documents"]:
                check("bytes" not in document and reason in document["unknown"], f"{document}: not {reason}")
        check(reason in place.run("data", "batch", "--config", config, "--step", "0", "--explain").decode(), reason)
    # Not readable, whoever asks: a link to itself.
    path.symlink_to(path.name)
    for document in place.explained(config, 0)["sequences"][0]["source"]["documents"]:
        check("bytes" not in document and "symbolic links" in document["unknown"], f"{document}")
    shown = json.loads(place.run("data", "show", "--config", config, "--row", "0", "--json"))
    check("symbolic links" in shown["unknown"] and shown["ids"], f"{shown}")
    path.unlink()
    path.write_bytes(content)
    shutil.rmtree(place.root / "one")


def check_packed(place, pairs, chat, ids):
    """Whole rows side by side, and ready-made ids; and the same store as a cache without texts."""
    (place.root / "packed.yaml").write_text(f"""
data:
  tokenizer: tokenizer
  cache_dir: packed
  components:
    pairs: {{train_urls: [{pairs}], validation_fraction: 0.2, format: {{type: supervised}}}}
    chat: {{train_urls: [{chat}], validation_fraction: 0, format: {{type: chat, mask_user_turns: false}}}}
    ids: {{train_urls: [{ids}], validation_fraction: 0, format: {{type: prebuilt}}}}
  train_weights: {{pairs: 1, chat: 1, ids: 1}}
""" + MODEL)
    place.run("data", "build", "--config", "packed.yaml")
    kinds = {"pairs": "supervised", "chat": "chat", "ids": "prebuilt"}
    seen, most = [], 0
    for step in range(6):
        batch = place.explained("packed.yaml", step)
        seen += place.check_batch(batch, kinds, f"packed, step {step}")[0]
        most = max([most] + [len(s["source"]["documents"]) for s in batch["sequences"] if s["source"]["component"] != "ids"])
    check(set(seen) == set(kinds), f"components {seen}")
    check(most > 1, "no sequence of several rows")
    place.check_batch(place.explained("packed.yaml", 0, "--split", "validation", "--component", "pairs"), kinds, "held-out pairs")


def check_cache(place):
    for split in ("train", "validation"):
        shutil.copytree(place.root / "cache/web" / split, place.root / "theirs" / split)
    (place.root / "cache.yaml").write_text("data: {tokenizer: tokenizer, cache_dir: checked, shuffle: false, components: "
                                           "{theirs: {cache_dir: theirs}}}" + MODEL)
    place.run("data", "build", "--config", "cache.yaml")
    for document in place.explained("cache.yaml", 0)["sequences"][0]["source"]["documents"]:
        check("bytes" not in document and "Levanter cache" in document["unknown"], f"{document}")


def write_parquet(root):
    """The rows of the other files, in groups of unequal sizes and between other columns."""
    import pyarrow
    import pyarrow.parquet
    rng = random.Random(4)

    def write(name, columns, sizes):
        with pyarrow.parquet.ParquetWriter(root / name, pyarrow.table(columns).schema, compression="zstd") as writer:
            at = 0
            for size in sizes:
                writer.write_table(pyarrow.table({k: v[at:at + size] for k, v in columns.items()}), row_group_size=size)
                at += size
            check(at == len(next(iter(columns.values()))), f"{name}: {at} rows")

    def text(count):
        return " ".join(rng.choice(WORDS) for _ in range(count))

    (root / "all").mkdir()
    texts = [text(rng.randint(1, 60)) if i % 6 else "" for i in range(40)]
    write("all/0.parquet", {"id": list(range(40)), "text": texts, "more": texts}, [7, 1, 20, 12])
    write("all/1.parquet", {"text": [text(60)]}, [1])
    write("pairs.parquet", {"prompt": [text(2) for _ in range(30)], "id": list(range(30)), "response": [text(1 + i % 7) for i in range(30)]}, [13, 17])
    write("chat.parquet", {"messages": [[{"role": "user", "content": text(3)}] for _ in range(30)]}, [30])
    write("ids.parquet", {"input_ids": [[rng.randrange(250) for _ in range(5 + i)] for i in range(30)]}, [9, 21])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--parquet", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-explain-") as folder:
        root = pathlib.Path(folder)
        write_texts(root)
        place = Place(args.ostro, root)
        place.run("tokenizer", "train", "--input", "web/*.txt", "--vocab_size", "300", "--out", "tokenizer/tokenizer.json")
        place.eos = place.encoded("<|endoftext|>")[0]
        if args.parquet:
            shutil.rmtree(root / "all")
            write_parquet(root)
            check_one_source(place, ["all"], documents=2)
            check_packed(place, "pairs.parquet", "chat.parquet", "ids.parquet")
        else:
            check_mixture(place)
            check_changed(place)
            check_one_source(place, ["all"], documents=5)
            check_packed(place, "pairs.jsonl.gz", "chat.jsonl", "ids.jsonl.zst")
            check_cache(place)
    print("equal: every token of the batches comes from the rows that ostro names")


if __name__ == "__main__":
    main()
