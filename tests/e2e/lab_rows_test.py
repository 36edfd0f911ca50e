#!/usr/bin/env python3
"""Tests the data steps of a lab: planted duplicates, evaluation texts, thin and noisy pages are left out with the right reason and
nothing else is; the store has the other rows and counts the reasons; the same rows by other rules are one training; verdicts that
were cut, changed or made from other texts are errors; a token leads to its row, page and bytes, which extracted again give the row;
quality has the same bits on one thread and on two, and tells the texts apart.

    lab_rows_test.py --ostro PROGRAM
"""
import argparse
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from lab_test import CONFIG, check

PLAN = """
lab: small
question: Which rows are taken?
steps:
  pages: {source: {files: ["pages/*.jsonl"], licence: CC0-1.0}}
  held: {source: {files: [held.txt], licence: CC0-1.0}}
  rows: {filter: {from: $pages, words: [50, null], symbols: [null, 0.2], near_duplicates: drop, evaluation: ["eval/*.jsonl"]}}
  tok: {tokenizer: {from: $rows, vocab_size: 300}}
  store: {tokens: {from: $rows, held_out: $held, tokenizer: $tok}}
  base: {train: {data: $store, config: tiny.yaml}}
"""
QUALITY = """
lab: quality
question: Which rows are good?
steps:
  good: {source: {files: [good.jsonl], licence: CC0-1.0}}
  other: {source: {files: [other.jsonl], licence: CC0-1.0}}
  mixed: {source: {files: [mixed.jsonl], licence: CC0-1.0}}
  half: {quality: {from: $mixed, positive: $good, negative: $other, share: 0.5, buckets: 4096}}
  above: {quality: {from: $half, positive: $good, negative: $other, threshold: 0.5, buckets: 4096}}
"""
EXTRACT = """
lab: pages
question: Where is a token from?
steps:
  html: {source: {files: ["html/*"], licence: CC0-1.0}}
  text: {extract: {from: $html}}
  rows: {filter: {from: $text, words: [3, null]}}
  tok: {tokenizer: {from: $rows, vocab_size: 300}}
  held: {source: {files: [held.txt], licence: CC0-1.0}}
  store: {tokens: {from: $rows, held_out: $held, tokenizer: $tok}}
"""
WORDS = ["".join(a + b for a, b in zip(x, y)) for x in ("bcd", "fgh", "klm", "npr", "stv") for y in
         ("aei", "iou", "oae", "uio", "eau", "aoa", "iei", "uuo", "eoa", "oio")]


def text(rng, count, words=WORDS):
    return " ".join(rng.choice(words) for _ in range(count))


class Lab:
    def __init__(self, ostro, top, plan):
        self.ostro, self.top = str(pathlib.Path(ostro).resolve()), top
        top.mkdir(parents=True, exist_ok=True)
        (top / "tiny.yaml").write_text(CONFIG)
        (top / "held.txt").write_text(text(random.Random("held"), 400))
        self.write(plan)

    def write(self, plan):
        (self.top / "plan.yaml").write_text(plan)

    def start(self, *words, **variables):
        env = {"PATH": "/usr/bin:/bin", "OSTRO_THREADS": "1"} | variables
        return subprocess.run([self.ostro, *words], cwd=self.top, env=env, text=True, capture_output=True, check=False)

    def run(self, *words, status=0, **variables):
        done = self.start("lab", "run", "plan.yaml", *words, **variables)
        check(done.returncode == status, f"exit code {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
        return done

    def output(self, step):
        for line in reversed(next(self.top.glob("*.lab")).joinpath("journal.jsonl").read_text().splitlines()):
            entry = json.loads(line)
            if entry["kind"] == "done" and entry["step"] == step:
                return next(self.top.glob("*.lab")) / "out" / entry["fingerprint"][:16]
        raise AssertionError(step)


def verdicts(path):
    """By file the verdicts by row; and that the file's own sum holds."""
    lines = path.read_bytes().splitlines(keepends=True)
    check(json.loads(lines[-1])["text"] == hashlib.sha256(b"".join(lines[:-1])).hexdigest(), "the sum of the verdicts")
    out = {}
    for line in map(json.loads, lines[1:-1]):
        if "file" in line:
            rows = out[line["file"]] = {}
        else:
            rows[line["row"]] = line
    return out


def plant(top):
    """Writes two files of pages. Returns what must be left out: {(file, row): (reason, of)}."""
    rng = random.Random("pages")
    usual = [text(rng, 120) for _ in range(60)]
    tasks = [text(rng, 30) for _ in range(3)]
    (top / "eval").mkdir()
    (top / "eval/tasks.jsonl").write_text("".join(json.dumps({"question": t}) + "\n" for t in tasks))
    near = usual[5].split()
    near[-3] = "other"
    planted = {10: (usual[2], "exact_duplicate", "pages/a.jsonl:3"), 20: (text(rng, 49), "words", None),
               25: (text(rng, 100) + " @#$%&" * 40, "symbols", None), 31: (" ".join(near), "near_duplicate", "pages/a.jsonl:6"),
               40: (text(rng, 60) + " " + tasks[1] + " " + text(rng, 60), "evaluation", "eval/tasks.jsonl:2"),
               # Twelve words of a task are no hit, fifty words are enough, and four changed places are another text.
               45: (text(rng, 60) + " " + " ".join(tasks[0].split()[:12]) + " " + text(rng, 60), None, None),
               50: (text(rng, 50), None, None), 55: (" ".join(w if i % 9 else "new" for i, w in enumerate(usual[1].split())), None, None)}
    texts = usual[:]
    for at, (planted_text, _, _) in sorted(planted.items()):
        texts.insert(at, planted_text)
    (top / "pages").mkdir()
    half = 35
    rows = [json.dumps({"text": t}) for t in texts]
    (top / "pages/a.jsonl").write_text("\n".join(rows[:half]) + "\n\n")
    (top / "pages/b.jsonl").write_text("\n".join(rows[half:]) + "\n")
    place = lambda at: ("pages/a.jsonl", at + 1) if at < half else ("pages/b.jsonl", at + 1 - half)
    return {place(at): (reason, of) for at, (_, reason, of) in planted.items() if reason}, len(texts)


def check_filter(ostro, top):
    lab = Lab(ostro, top, PLAN)
    wanted, count = plant(top)
    lab.run()
    path = lab.output("rows") / "verdicts.jsonl"
    found = {(file, row): (said["drop"], said.get("of")) for file, rows in verdicts(path).items() for row, said in rows.items()}
    check(found == wanted, f"left out: {found}\nwanted: {wanted}")
    ledger = json.loads((lab.output("store") / "ledger.json").read_text())
    reasons = {}
    for source in ledger["sources"]:
        for reason, rows in source.get("left_out", {}).items():
            reasons[reason] = reasons.get(reason, 0) + rows
    check(reasons == {r: [x for x, _ in wanted.values()].count(r) for r, _ in wanted.values()}, f"the ledger counts {reasons}")
    check(ledger["content"]["splits"]["train"]["rows"] == count - len(wanted), "rows of the store")
    print(f"{len(wanted)} of {count} rows are left out, each with its reason; the ledger counts them")

    # Other rules that leave out the same rows: their verdicts are others, and nothing behind them runs again.
    lab.write(PLAN.replace("words: [50, null]", "bytes: [345, null]"))
    out = lab.run().stdout
    check([line.split()[1] for line in out.splitlines() if line.startswith("run")] == ["rows:"], out)
    check(lab.output("rows") / "verdicts.jsonl" != path, "the other rules")
    # And a rule that leaves out one row more is another training.
    lab.write(PLAN.replace("words: [50, null]", "words: [51, null]"))
    out = lab.run("--dry_run").stdout
    check("run     rows" in out and "wait    base" in out, out)
    print("the same rows by other rules are one training; another row is another one")
    return lab, path


def check_bad_verdicts(lab, path):
    """Verdicts that are not those of the texts, and a store that has others."""
    good = path.read_text()
    lines = good.splitlines(keepends=True)
    tokenizer = lab.output("tok") / "tokenizer.json"

    def build(rows, cache, *more):
        words = ["--data.train_urls", "[pages]", "--data.validation_urls", "[held.txt]", "--data.cache_dir", cache,
                 "--data.tokenizer", str(tokenizer), *(["--data.rows", rows] if rows else []), *more]
        return lab.start("data", "build", "--config", "tiny.yaml", *words)

    def again(lines):
        end = json.loads(lines[-1]) | {"text": hashlib.sha256("".join(lines[:-1]).encode()).hexdigest()}
        return "".join(lines[:-1]) + json.dumps(end) + "\n"

    def edited(change):
        return again([change(line) for line in lines])
    other = hashlib.sha256(b"").hexdigest()
    first = json.loads(lines[1])
    wrong = {
        "cut": ("".join(lines[:-1]), "without its last line"),
        "changed": (good.replace('"row":21', '"row":22'), "the file was changed"),
        "other texts": (edited(lambda line: line.replace(first["sha256"], other)), f"file 1 of bad.jsonl is pages/a.jsonl with the SHA-256 {other}"),
        "rows": (edited(lambda line: line.replace('"rows":36', '"rows":37')).replace('"rows": 69', '"rows": 70'), "its verdicts (data.rows) are on 37"),
        "no format": ("{}\n", '"format" is missing'),
        "behind the end": (edited(lambda line: line.replace('"row":21', '"row":99')), '"row" is 99, and pages/a.jsonl has 36 rows'),
    }
    bad = lab.top / "bad.jsonl"
    for name, (content, said) in wrong.items():
        if name == "rows":
            content = again(content.splitlines(keepends=True))
        bad.write_text(content)
        done = build("bad.jsonl", f"cache-{name}")
        check(done.returncode in (1, 2) and said in done.stderr, f"{name}: {done.returncode} {done.stderr}")
    bad.write_text(good)
    done = build("bad.jsonl", "whole")
    check(done.returncode == 0, done.stderr)
    hashes = [json.loads((folder / "ledger.json").read_text())["hash"] for folder in (lab.output("store"), lab.top / "whole")]
    check(hashes[0] == hashes[1], "the same store by hand")
    stats = lab.start("data", "stats", "--config", "tiny.yaml", "--data.train_urls", "[pages]", "--data.validation_urls", "[held.txt]",
                      "--data.cache_dir", "whole", "--data.tokenizer", str(tokenizer), "--data.rows", "bad.jsonl")
    check("left out    1 rows: near_duplicate (rows)" in stats.stdout, stats.stdout + stats.stderr)
    # The store is refused without the verdicts, and verdicts that leave out nothing are none.
    done = build("", "whole")
    check(done.returncode in (1, 2) and "data.rows, SHA-256 of the rows that are left out" in done.stderr, done.stderr)
    check(build("", "plain").returncode == 0, "a store of all rows")
    empty = [line for line in lines if '"row":' not in line]
    bad.write_text(again([*empty[:-1], json.dumps(json.loads(empty[-1]) | {"dropped": 0})]))
    done = build("bad.jsonl", "plain")
    check(done.returncode == 0, done.stderr)
    print(f"{len(wrong)} bad files of verdicts are errors that say why; a store of other rows is refused")


def check_quality(ostro, top):
    rng = random.Random("quality")
    good, other = WORDS[:30], WORDS[20:]
    lab = Lab(ostro, top, QUALITY)
    for name, words in (("good", good), ("other", other)):
        (top / f"{name}.jsonl").write_text("".join(json.dumps({"text": text(rng, 40, words)}) + "\n" for _ in range(60)))
    kinds = [i % 2 == 0 for i in range(60)]
    (top / "mixed.jsonl").write_text("".join(json.dumps({"text": text(rng, 40, good if k else other)}) + "\n" for k in kinds))
    lab.run()
    one = (lab.output("half") / "verdicts.jsonl").read_bytes()
    said = verdicts(lab.output("half") / "verdicts.jsonl")["mixed.jsonl"]
    check([("drop" not in said[i + 1]) for i in range(60)] == kinds, "the good texts are not those that are taken")
    check(all(said[i + 1]["drop"] == "quality" for i in range(60) if not kinds[i]), "the reason")
    check(min(said[i + 1]["value"] for i in range(60) if kinds[i]) > max(said[i + 1]["value"] for i in range(60) if not kinds[i]), "scores")
    # What a step before left out stays so, and its rows are not scored again.
    above = verdicts(lab.output("above") / "verdicts.jsonl")["mixed.jsonl"]
    check(all(above[i] == said[i] for i in said if "drop" in said[i]), "verdicts of the step before")
    shutil.rmtree(top / "quality.lab")
    lab.run(OSTRO_THREADS="2")
    check((lab.output("half") / "verdicts.jsonl").read_bytes() == one, "other bits on two threads")
    # Control: with the labels exchanged the others are taken.
    lab.write(QUALITY.replace("positive: $good, negative: $other, share", "positive: $other, negative: $good, share"))
    lab.run()
    said = verdicts(lab.output("half") / "verdicts.jsonl")["mixed.jsonl"]
    check([("drop" in said[i + 1]) for i in range(60)] == kinds, "exchanged labels")
    lab.write(QUALITY.replace(", share: 0.5", ""))
    check("set one of threshold and share" in lab.run(status=1).stderr, "a rule without a bound")
    print("quality tells the texts apart, with the same bits on one thread and two")


def stand_in(top, version):
    """A module in the place of resiliparse: the text between tags. What is tested here is the step, not the package."""
    package = top / f"python{version}"
    (package / "resiliparse/extract").mkdir(parents=True)
    (package / "resiliparse/parse").mkdir()
    (package / "resiliparse/extract/html2text.py").write_text(
        "import re\n\ndef extract_plain_text(html, main_content=False):\n    return re.sub('<[^>]*>', ' ', html).strip()\n")
    (package / "resiliparse/parse/encoding.py").write_text(
        "def detect_encoding(data):\n    return 'utf-8'\n\ndef bytes_to_str(data, encoding):\n    return data.decode(encoding)\n")
    info = package / f"resiliparse-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: resiliparse\nVersion: {version}\n")
    return str(package)


def check_extract(ostro, top):
    lab = Lab(ostro, top, EXTRACT)
    (top / "html").mkdir()
    rng = random.Random("html")
    (top / "html/a.html").write_text("<p>two words</p>")
    (top / "html/b.html").write_text(f"<h1>é</h1><p>{text(rng, 90)}</p>")
    (top / "html/c.jsonl").write_text("".join(json.dumps({"id": i, "html": f"<p>{text(rng, 60)}</p>"}) + "\n" for i in range(3)))
    done = lab.run(status=1, PYTHONPATH=stand_in(top, "0.1"))
    check("extract needs resiliparse 2.0.1, and python3 has resiliparse 0.1: python3 -m pip install resiliparse==2.0.1" in done.stderr, done.stderr)
    package = stand_in(top, "2.0.1")
    lab.run(PYTHONPATH=package)
    config = ["--config", "tiny.yaml", "--data.train_urls", f"[{lab.output('text')}]", "--data.validation_urls", "[held.txt]", "--data.rows",
              str(lab.output("rows") / "verdicts.jsonl"), "--data.cache_dir", str(lab.output("store")), "--data.tokenizer",
              str(lab.output("tok") / "tokenizer.json")]
    pages = []
    for row in range(4):
        shown = lab.start("data", "show", "--json", "--row", str(row), *config)
        check(shown.returncode == 0, shown.stderr)
        shown = json.loads(shown.stdout)
        page = shown["page"]
        begin, end = page["bytes"]
        data = (top / page["file"]).read_bytes()[begin:end]
        check(hashlib.sha256(data).hexdigest() == page["sha256"], f"the bytes of {page}")
        html = json.loads(data)["html"] if page["file"].endswith(".jsonl") else data.decode()
        again = re.sub("<[^>]*>", " ", html).strip()
        check(shown["text"].removesuffix("<|endoftext|>") == again, f"{page}: {shown['text']!r}, extracted again {again!r}")
        pages.append((page["file"], begin))
    check([file for file, _ in pages] == ["html/b.html"] + ["html/c.jsonl"] * 3 and len(set(pages)) == 4, f"{pages}")
    print("a row leads to its page and bytes, which extracted again give it")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    ostro = parser.parse_args().ostro
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        check_bad_verdicts(*check_filter(ostro, top / "filter"))
        check_quality(ostro, top / "quality")
        check_extract(ostro, top / "extract")
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
