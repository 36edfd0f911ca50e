#!/usr/bin/env python3
"""Gives `ostro data build` texts that are malformed, changed or gone, and places that are full or taken: each ends
with one clear error line or a counted skip, and nothing is lost. (Servers: tests/s3. Parquet: tests/interop.)

    bad_data_test.py --ostro BINARY [CASE...]
"""

import gzip
import hashlib
import json
import os
import shutil
import signal
import sys

from harness import check, mounted, run_cases, wait_for

GOOD = ['{"text": "one and one"}', '{"text": "two and two", "id": 2}']
MALFORMED = {  # what the error says of each
    '{"text": ': "not valid JSON", '{"text": "cut': "not valid JSON", '["text"]': "not a JSON object",
    '{"txt": "other"}': 'no field "text"', '{"text": 7}': 'field "text" is not a string',
    '{"text": null}': 'field "text" is not a string', '{"text": "a"} tail': "not valid JSON",
    "[" * 200_000: "not valid JSON", "[" * 200_000 + "]" * 200_000: "not a JSON object"}


class Cases:
    def __init__(self, workspace):
        self.w = workspace

    def build(self, name, urls, component=None, **changes):
        """Writes a configuration with one component, of texts or as given; gives the words of its build."""
        changes = {"data__" + key: value for key, value in changes.items()}
        config = self.w.config(name, data__train_urls=[], data__train_weights={"x": 1},
                               data__components={"x": {"train_urls": urls} | (component or {})}, **changes)
        return "data", "build", "--config", config

    def ledger(self, name):
        return json.loads((self.w.root / f"cache-{name}" / "x" / "ledger.json").read_text())

    def write(self, name, lines):
        (self.w.root / name).write_text("\n".join(lines) + "\n")
        return name

    def malformed_lines(self):
        self.write("good.jsonl", GOOD)
        self.w.good(*self.build("good", ["good.jsonl"]))
        for i, (line, says) in enumerate(MALFORMED.items()):
            self.write("bad.jsonl", [GOOD[0], line, GOOD[1]])
            self.w.bad(*self.build(f"bad{i}", ["bad.jsonl"]), says=["bad.jsonl:2", says])
        # The row is mended: the same command builds the store.
        self.write("bad.jsonl", GOOD)
        text = self.w.good(*self.build("bad0", ["bad.jsonl"]))
        check("was not finished and is built from the beginning: bad.jsonl changed" in text, f"not told:\n{text}")
        check(self.ledger("bad0")["hash"] == self.ledger("good")["hash"], "another store than of good rows alone")
        self.write("bad.jsonl", [*MALFORMED, GOOD[0], "", *MALFORMED, GOOD[1], *MALFORMED])
        text = self.w.good(*self.build("skip", ["bad.jsonl"], on_bad_row="skip"))
        count = 3 * len(MALFORMED)
        check(f"{count} malformed rows (data.on_bad_row: skip)" in text and "bad.jsonl:1: not valid JSON" in text,
              f"not told:\n{text}")
        says = ["cache-skip/x", f"lacks {count} malformed rows of 1 files (the first: bad.jsonl)", "Set it to skip"]
        config = self.build("skip", ["bad.jsonl"])[3]
        self.w.bad("data", "build", "--config", config, says=says)
        self.w.bad("train", "--config", config, says=says)
        mine, good = self.ledger("skip")["content"], self.ledger("good")["content"]
        check(mine["files"][0]["skipped"] == count, f"the ledger's count: {mine['files'][0]}")
        check(mine["splits"]["train"]["arrays"]["input_ids/data"] == good["splits"]["train"]["arrays"]["input_ids/data"],
              "what is left has other tokens")

    def malformed_text(self):
        (self.w.root / "utf8.jsonl").write_bytes(b'{"text": "good \xff\xfe\xc3( bad \xed\xa0\x80 end"}\n{"text": "fine"}\n'
                                                 b'{"text": ""}\n\n{"text": ""}\n')
        text = self.w.good(*self.build("utf8", ["utf8.jsonl"]))
        check("2 empty documents" in text and "1 documents with malformed UTF-8" in text, f"not told:\n{text}")
        content = self.ledger("utf8")["content"]
        check(content["files"][0]["empty"] == 2 and content["splits"]["train"]["rows"] == 2, f"counts: {content}")

    def huge_document(self):
        """Beyond the limit, known before it is in memory; holes in the file cost no disk."""
        with open(self.w.root / "huge.txt", "wb") as file:
            file.truncate((1 << 30) + 1)
        says = ["huge.txt", f"is {(1 << 30) + 1} bytes long, and at most {1 << 30}", "split it"]
        self.w.bad(*self.build("huge", ["huge.txt"]), says=says)
        text = self.w.good(*self.build("pass", ["huge.txt", "corpus/00.txt"], on_bad_row="skip"))
        check("1 malformed rows" in text, f"not told:\n{text}")
        (self.w.root / "huge.txt").unlink()

    def other_kinds_of_files(self):
        """Data that are neither rows nor text are refused by name, or by their bytes; rows count by any name of theirs."""
        folder = self.w.root / "kinds"
        folder.mkdir()
        for name, says in {"a.jsonl.lz4": "compressed files are read as",
                           "a.arrow": "a .arrow is not a text", "a.SAFETENSORS": "a .safetensors is not a text"}.items():
            (folder / name).write_text(GOOD[0])
            self.w.bad(*self.build("kinds", ["kinds"]), says=[f"kinds/{name}: ", says, "narrower glob"])
            (folder / name).unlink()
        for name in ("a.ndjson", "b.JSONL", "c.json"):
            self.write(f"kinds/{name}", GOOD)
        (folder / "_SUCCESS").touch()
        (folder / "image.dat").write_bytes(b"ab\0c")
        self.w.bad(*self.build("kinds", ["kinds"]), says=["kinds/image.dat: holds a NUL byte (at byte 2)"])
        for name, text, says in (("list.json", "[" + ",\n".join(GOOD) + "]", "begins a list"),
                                 ("rows.json", json.dumps({"rows": GOOD}, indent=1), "is not a whole object")):
            (folder / name).write_text(text)
            self.w.bad(*self.build(name, [f"kinds/{name}"]), says=[f"kinds/{name}:1: the file is one JSON document", says])
        text = self.w.good(*self.build("kinds2", ["kinds"], on_bad_row="skip"))
        check("3 malformed rows" in text and "1 empty documents" in text, f"not told:\n{text}")
        rows = sum(split["rows"] for split in self.ledger("kinds2")["content"]["splits"].values())
        check(rows == 6, f"{rows} rows of the lines in .ndjson, .JSONL and .json")

    def tokenizer_of_rows(self):
        """A tokenizer of rows is that of their texts, packed or not, and what is not text is refused."""
        def train(name, *words):
            return "tokenizer", "train", "--input", name, *words, "--vocab_size", "300", "--out", "of-rows.json"

        texts = [path.read_text() for path in sorted((self.w.root / "corpus").iterdir())]
        self.write("rows.jsonl", [json.dumps({"text": text}) for text in texts])
        self.write("body.ndjson", [json.dumps({"body": text}) for text in texts])
        (self.w.root / "rows.jsonl.gz").write_bytes(gzip.compress((self.w.root / "rows.jsonl").read_bytes()))
        for words in (("rows.jsonl",), ("rows.jsonl.gz",), ("body.ndjson", "--text_key", "body")):
            self.w.good(*train(*words))
            check((self.w.root / "of-rows.json").read_bytes() == (self.w.root / "tokenizer.json").read_bytes(),
                  f"another tokenizer from {words}")
        self.w.bad(*train("body.ndjson"), says=['body.ndjson:1: has no field "text"; set --text_key'])
        (self.w.root / "rows.jsonl.gz").rename(self.w.root / "rows.txt.gz")
        self.w.bad(*train("rows.txt.gz"), says=["rows.txt.gz: compressed files are read as", "--input"])
        (self.w.root / "binary").write_bytes(b"ab\0c")
        self.w.bad(*train("binary"), says=["binary: holds a NUL byte (at byte 2)"])
        self.w.bad(*train("nowhere/*"), says=["--input: nowhere/*: names no file"])

    def changed_texts(self):
        """Texts that change, go or come after the ledger was written; moving and touching them is fine."""
        folder = self.w.root / "texts"
        shutil.copytree(self.w.root / "corpus", folder)
        command = self.build("texts", ["texts/*.txt"])
        done = self.w.good(*command)
        (folder / "03.txt").touch()
        check(self.ledger("texts")["hash"] in self.w.good(*command), "touching a file made it another")
        whole = (folder / "03.txt").read_text()
        (folder / "03.txt").write_text(whole.replace("e", "a", 1))
        self.w.bad(*command, says=["cache-texts/x", "03.txt"])
        self.w.bad("train", "--config", command[3], says=["cache-texts/x", "03.txt"])
        (folder / "03.txt").unlink()
        self.w.bad(*command, says=["cache-texts/x", "1 are gone (the first: texts/03.txt)"])
        (folder / "03.txt").write_text(whole)
        (folder / "10.txt").write_text("a file that came")
        self.w.bad(*command, says=["cache-texts/x", "10.txt"])
        shutil.rmtree(folder)
        text = self.w.good(*command)
        check(self.ledger("texts")["hash"] in text and "warning: " in text, f"a store without its texts:\n{text}")
        check(self.ledger("texts")["hash"] in done, "the hash that was printed first")

    def store_that_grows(self):
        """A store extended, and one joined of parts, are the one that a build of all texts gives; --files names them."""
        urls = ["corpus/0[0-4].txt", "corpus/0[5-8].txt"]
        parts = [self.w.good(*self.build(f"part{i}", [url])) for i, url in enumerate(urls)]
        whole = self.w.good(*self.build("whole", urls), "--files")
        listed = [line.split() for line in whole.splitlines() if line.startswith("  ")]
        check([words[1] for words in listed] == [f"corpus/0{i}.txt" for i in range(9)], f"files in:\n{whole}")
        for sha256, path, *_, size, _ in listed:
            content = (self.w.root / path).read_bytes()
            check((sha256, int(size)) == (hashlib.sha256(content).hexdigest(), len(content)), f"{path} in:\n{whole}")
        check("corpus/" not in parts[0], f"files that nobody asked for:\n{parts[0]}")
        hashes = [self.ledger(name)["hash"] for name in ("part0", "part1", "whole")]
        check(len(set(hashes)) == 3, f"hashes of a whole and its parts: {hashes}")

        self.w.good(*self.build("grown", urls[:1]))
        grows = self.build("grown", urls)
        self.w.bad(*grows, says=["cache-grown/x", "corpus/05.txt", "--append"])
        check(f"ledger hash {hashes[2]}" in self.w.good(*grows, "--append"), "another hash after --append")
        check(f"ledger hash {hashes[2]}" in self.w.good(*grows), "another hash of the extended store")

        joins = ("data", "consolidate", *self.build("joined", urls)[2:], "--from")
        folders = [f"cache-part{i}/x" for i in range(2)]
        self.w.bad(*joins, *folders[::-1], says=["parts in another order"])
        self.w.bad(*joins, folders[0], says=["the parts lack 4 files", "corpus/05.txt"])
        check(f"ledger hash {hashes[2]}" in self.w.good(*joins, *folders), "another hash of the joined store")
        for folder in folders:
            shutil.rmtree(self.w.root / folder)
        self.w.good("data", "verify", *joins[2:4])
        check(self.ledger("joined")["content"]["splits"] == self.ledger("whole")["content"]["splits"], "other arrays")

    def half_of_the_texts(self):
        """A pattern that names nothing does not hide that files of another have changed; without any, the store is used."""
        for name in ("pa", "pb"):
            shutil.copytree(self.w.root / "corpus", self.w.root / name)
        command = self.build("half", ["pa/*.txt", "pb/*.txt"])
        self.w.good(*command)
        (self.w.root / "pa/03.txt").write_text("other text")
        shutil.rmtree(self.w.root / "pb")
        says = ["cache-half/x", "data.components.x.train_urls: pb/*.txt: names no file", "other patterns name 9", "bring its texts back"]
        self.w.bad(*command, says=says)
        self.w.bad("train", "--config", command[3], says=says)
        shutil.rmtree(self.w.root / "pa")
        check("without comparing it" in self.w.good(*command), "no warning of a store without its texts")

    def other_tokenizer(self):
        self.w.good("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", "290", "--out", "small.json")
        self.w.good(*self.build("tokens", ["corpus/*.txt"]))
        self.w.bad(*self.build("tokens", ["corpus/*.txt"], tokenizer="small.json"), says=["cache-tokens/x", "tokenizer"])

    def full_disk(self):
        self.w.good(*self.build("room", ["corpus/*.txt"]))
        with mounted(self.w.root / "small", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as place:
            command = self.build("full", ["corpus/*.txt"], cache_dir=str(place / "cache"))
            for kib in (1016, 960, 900):
                (place / "ballast").write_bytes(bytes(kib * 1024))
                self.w.bad(*command, says=["No space left on device", str(place)])
            (place / "ballast").unlink()
            check(self.ledger("room")["hash"] in self.w.good(*command), "another hash after a full disk")

    def no_place_for_packs(self):
        """A store stands, and is told of, when the index of its sequences cannot be written."""
        self.write("pairs.jsonl", ['{"prompt": "one and", "response": "two"}'] * 9)
        command = self.build("packs", ["pairs.jsonl"], {"format": {
            "type": "supervised", "input_field": "prompt", "output_field": "response"}})
        place = self.w.root / "cache-packs/x/packs"
        place.parent.mkdir(parents=True)
        place.write_text("in the way")
        self.w.bad(*command, says=[str(place.relative_to(self.w.root))])
        _, out, _ = self.w.run(*command)
        check(f"ledger hash {self.ledger('packs')['hash']}" in out, f"the store is not told of: {out}")
        place.unlink()
        check(self.ledger("packs")["hash"] in self.w.good(*command), "another hash")
        check(place.is_dir(), "no index was made")

    def two_builders(self):
        lines = [json.dumps({"text": (self.w.root / f"corpus/0{i}.txt").read_text()}) for i in range(9)]
        self.write("large.jsonl", lines * 60)
        command = self.build("twice", ["large.jsonl"])
        first = self.w.start(*command)
        lock = self.w.root / "cache-twice/x/journal.jsonl"
        wait_for(lambda: lock.exists() or first.poll() is not None, 60, "the first build")
        os.kill(first.pid, signal.SIGSTOP)
        try:
            self.w.bad(*command, says=["cache-twice/x", "locked by", str(first.pid)])
        finally:
            os.kill(first.pid, signal.SIGCONT)
        out, err = first.communicate()
        check(first.returncode == 0, f"the first of two: {out}{err}")
        check(self.ledger("twice")["hash"] in self.w.good(*command), "the store that the first one made")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, helpers=("build", "ledger", "write")))
