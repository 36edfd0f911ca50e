#!/usr/bin/env python3
"""Tests the data steps of a lab: their outputs, which must not move while a version stays; planted duplicates, evaluation texts, thin and noisy pages are left out with the right reason and
nothing else is; the store has the other rows and counts the reasons; the same rows by other rules are one training; verdicts that
were cut, changed or made from other texts are errors; a token leads to its row, page and bytes, which extracted again give the row;
quality has the same bits on one thread and on two and on every instruction set, and tells the texts apart.

    lab_rows_test.py --ostro PROGRAM [--python FOLDER]

FOLDER has a python3 with resiliparse, in whose place there is a module of our own; without it .venv/bin is looked at, and what
needs the package itself says NOT RUN.
"""
import argparse
import gzip
import hashlib
import json
import pathlib
import random
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

from lab_graph import write_journal
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
# Two filters, one on the other, of rows that come twice: as text and as JSON lines, and as two equal files.
TWICE = """
lab: twice
question: What are the same rows?
steps:
  pages: {source: {files: [one.jsonl, two.jsonl], licence: CC0-1.0}}
  texts: {source: {files: [one.jsonl.txt, two.jsonl.txt], licence: CC0-1.0}}
  held: {source: {files: [held.txt], licence: CC0-1.0}}
  first: {filter: {from: $pages, words: [5, null]}}
  more: {filter: {from: $first, exact_duplicates: drop}}
  plain: {filter: {from: $texts}}
  all: {filter: {from: $pages}}
  tok: {tokenizer: {from: $more, vocab_size: 300}}
  store: {tokens: {from: $more, held_out: $held, tokenizer: $tok}}
"""
# The SHA-256 of what the steps write for the pages, texts and rules of this test, by kind and version.
GOLDEN = {
    "filter 2": "c5bb6ec76c0dc4fcf023243b5f68429dec416546cbebce99236f1f973c46a362",
    "quality 2": "a589c58684bfdbc432406a4e4c42b487fcd848656452e392f334f7cbf5e39eb1",
    "extract 1": "9dbbaa10b40ccbfe2df6197d0794912cbc3cf702251ed30eabae0f889ce8903e",
}
WORDS = ["".join(a + b for a, b in zip(x, y)) for x in ("bcd", "fgh", "klm", "npr", "stv") for y in
         ("aei", "iou", "oae", "uio", "eau", "aoa", "iei", "uuo", "eoa", "oio")]


def text(rng, count, words=WORDS):
    return " ".join(rng.choice(words) for _ in range(count))


def check_golden(kind, lab, step, name):
    """Outputs that move while the version of their kind stays would be served from old journals for other bits."""
    output = lab.output(step)
    version = next(json.loads(e["recipe"])["version"] for e in lab.entries() if e["kind"] == "done" and e["step"] == step)
    found, key = hashlib.sha256((output / name).read_bytes()).hexdigest(), f"{kind} {version}"
    check(found == GOLDEN.get(key), f"{key}: {name} has the SHA-256 {found}, and had {GOLDEN.get(key)}. If outputs are meant to move, "
          "raise the version of the kind in ostro/experiment/plan/step_kinds.cc and write the new sum into GOLDEN here")


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

    def entries(self):
        return [json.loads(line) for line in next(self.top.glob("*.lab")).joinpath("journal.jsonl").read_text().splitlines()]

    def left_out(self):
        """By reason, as the record of the lab has it."""
        done = self.start("lab", "record", "plan.yaml", "--out", "r.sqlite")
        check(done.returncode == 0, done.stderr)
        return dict(sqlite3.connect(self.top / "r.sqlite").execute("SELECT reason, rows FROM left_out"))

    def output(self, step):
        for entry in reversed(self.entries()):
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
    check_golden("filter", lab, "rows", "verdicts.jsonl")
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


def check_twice(ostro, top):
    """The record has the reasons of the plan's own filters, whoever made the store; other rows are told apart, and the same are not."""
    lab = Lab(ostro, top, TWICE)
    rows = [json.dumps({"text": t}) for t in ("one two three", "a b c d e f", "g h i j k l", "a b c d e f")]
    for name in ("one.jsonl", "two.jsonl"):
        for end in ("", ".txt"):
            (top / f"{name}{end}").write_text("\n".join(rows) + "\n")
    lab.run()
    check(lab.left_out() == {"words": 2, "exact_duplicate": 4}, lab.left_out())
    content = {e["step"]: e["content"] for e in lab.entries() if e["kind"] == "done"}
    check(content["plain"] != content["all"], "the same bytes as texts and as rows")
    # Other rules for the same rows, at either place; then all is done again, to compare.
    lab.write(TWICE.replace("words: [5, null]", "bytes: [null, 11]"))
    out = lab.run().stdout
    check([line.split()[1] for line in out.splitlines() if line.startswith("run")] == ["first:"], out)
    check(lab.left_out() == {"bytes": 2, "exact_duplicate": 4}, lab.left_out())
    out = lab.run("--audit", "1").stdout
    check(out.count("was done again, and has the content") == 6, out)
    # What a killed step left beside its output goes when it is begun again, and by gc.
    output = lab.output("all")
    left = [output.with_name(output.name + end) for end in (".sort", ".links")] + [output.with_name("0123456789abcdef.pages")]
    for path in left[:2]:
        path.mkdir()
        (path / "x").write_text("left")
    left[2].write_text("left")
    dry = lab.start("lab", "gc", "plan.yaml", "--dry_run").stdout
    check(all(str(path.relative_to(top)) in dry for path in left), dry)
    shutil.rmtree(output)
    lab.run()
    check(output.exists() and not left[0].exists() and not left[1].exists() and left[2].exists(), "beside the output")
    # A link in an output is not followed.
    (output.with_name("0123456789abcdef")).mkdir()
    (output.with_name("0123456789abcdef") / "loop").symlink_to("/usr")
    done = lab.start("lab", "gc", "plan.yaml")
    check(done.returncode == 0 and "out/0123456789abcdef: begun, and never done, 0.0 MiB" in done.stdout, done.stdout + done.stderr)
    check(not left[2].exists() and pathlib.Path("/usr/bin").exists(), "gc")
    lab.write(TWICE.replace("words: [5, null]", "words: [5, 2]"))
    check("no number is from 5 to 2" in lab.run(status=2).stderr, "a range of nothing")
    print("the same rows have one store, and the record has the reasons of the plan; what killed steps left goes")


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
    check_golden("quality", lab, "half", "verdicts.jsonl")
    # What a step before left out stays so, and its rows are not scored again.
    above = verdicts(lab.output("above") / "verdicts.jsonl")["mixed.jsonl"]
    check(all(above[i] == said[i] for i in said if "drop" in said[i]), "verdicts of the step before")
    sets = subprocess.run([lab.ostro, "devices"], capture_output=True, text=True, check=False).stdout
    for isa in re.search("instruction sets: (.*)", sets)[1].split(", "):
        for threads in ("1", "2"):
            shutil.rmtree(top / "quality.lab")
            lab.run(OSTRO_THREADS=threads, OSTRO_ISA=isa)
            check((lab.output("half") / "verdicts.jsonl").read_bytes() == one, f"other bits with {threads} threads and OSTRO_ISA={isa}")
    check_audit(lab)
    # Control: with the labels exchanged the others are taken.
    lab.write(QUALITY.replace("positive: $good, negative: $other, share", "positive: $other, negative: $good, share"))
    lab.run()
    said = verdicts(lab.output("half") / "verdicts.jsonl")["mixed.jsonl"]
    check([("drop" in said[i + 1]) for i in range(60)] == kinds, "exchanged labels")
    lab.write(QUALITY.replace(", share: 0.5", ""))
    check("set one of threshold and share" in lab.run(status=1).stderr, "a rule without a bound")
    lab.write(QUALITY.replace("share: 0.5", "share: 0.5, epochs: 1000001"))
    check("epochs is 1000001: use 1 to 1000000" in lab.run(status=1).stderr, "more epochs than there may be")
    print("quality tells the texts apart, with the same bits on one thread and two, and on each instruction set that is here")


def check_audit(lab):
    """A score that another machine would not give, of a row that is taken all the same. Output, manifest and journal agree."""
    check(lab.run("--audit", "1").stdout.count("was done again") == 2, "an audit of what is right")
    saved = shutil.copytree(lab.top / "quality.lab", lab.top / "saved")
    output = lab.output("half")
    file, manifest = output / "verdicts.jsonl", output.with_suffix(".json")
    lines = file.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"value"' in line and '"drop"' not in line)
    row = json.loads(lines[at])
    lines[at] = json.dumps(row | {"value": row["value"] - 1e-9}, sort_keys=True, separators=(",", ":"))
    body = "".join(line + "\n" for line in lines[:-1])
    end = json.dumps(json.loads(lines[-1]) | {"text": hashlib.sha256(body.encode()).hexdigest()}, sort_keys=True, separators=(",", ":"))
    before = hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text(body + end + "\n")
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(file.read_bytes()).hexdigest()))
    entries = lab.entries()
    for entry in entries:
        if entry["kind"] == "done" and entry["step"] == "half":
            entry["manifest"] = hashlib.sha256(manifest.read_bytes()).hexdigest()
    write_journal(lab.top / "quality.lab/journal.jsonl", entries)
    lab.run("--check", "full")
    done = lab.run("--audit", "1", status=1)
    check("step half: fingerprint" in done.stderr and "when it is done again" in done.stderr, f"another score was not found: {done.stdout}{done.stderr}")
    shutil.rmtree(lab.top / "quality.lab")
    saved.rename(lab.top / "quality.lab")
    lab.run()


def stand_in(top, version):
    """A module in the place of resiliparse: the text between tags. What is tested here is the step, not the package."""
    package = top / f"python{version}"
    (package / "resiliparse/extract").mkdir(parents=True)
    (package / "resiliparse/parse").mkdir()
    (package / "resiliparse/extract/html2text.py").write_text(
        """import re

def extract_plain_text(html, main_content=False):
    if "BAD" in html:
        raise RuntimeError("lexbor")
    if "SLOW" in html:
        open("begun", "w").close()  # a pipe: waits until the test reads
        while True:
            pass
    return re.sub("<[^>]*>", " ", html).strip()
""")
    (package / "resiliparse/parse/encoding.py").write_text(
        "def detect_encoding(data):\n    return 'utf-8'\n\ndef bytes_to_str(data, encoding):\n    return data.decode(encoding)\n")
    info = package / f"resiliparse-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: resiliparse\nVersion: {version}\n")
    return str(package)


def find_resiliparse(given):
    """The folder of a Python that has the pinned resiliparse, or None."""
    places = [given] if given else [pathlib.Path(__file__).resolve().parents[2] / ".venv/bin", pathlib.Path("/usr/bin")]
    asks = "import importlib.metadata as m, sys; sys.exit(m.version('resiliparse') != '2.0.1')"
    for place in map(pathlib.Path, places):
        if (place / "python3").exists() and subprocess.run([place / "python3", "-c", asks], check=False, capture_output=True).returncode == 0:
            return str(place)
    return None


def check_tokens(lab, config, extract):
    """Tokens of batches lead to a row, its page and bytes; what `extract` makes of these bytes is the row, and its tokens are those of the batch."""
    rows, tokenizer, seen = (lab.output("text") / "rows.jsonl").read_bytes(), str(lab.output("tok") / "tokenizer.json"), set()
    for step in range(4):
        batch = json.loads(lab.start("data", "batch", "--step", str(step), "--explain", "--json", *config).stdout)
        for sequence in batch["sequences"]:
            for part in sequence["source"]["documents"]:
                begin, end = part["bytes"]
                row, page = json.loads(rows[begin:end]), part["page"]
                begin, end = page["bytes"]
                data = (lab.top / page["file"]).read_bytes()[begin:end]
                check(hashlib.sha256(data).hexdigest() == page["sha256"], f"the bytes of {page}")
                check(extract(page["file"], data) == row["text"], f"{page} extracted again is not the row {row}")
                ids = json.loads(subprocess.run([lab.ostro, "tokenizer", "encode", "--tokenizer", tokenizer, "--json"], input=row["text"].encode(),
                                                capture_output=True, check=True).stdout)
                first, tokens = part["first_token"], sequence["tokens"][part["begin"]:part["end"]]
                wanted = ids[first:first + len(tokens)]
                check(tokens[:len(wanted)] == wanted and len(tokens) - len(wanted) <= 1, f"{page}: tokens {tokens}, of the row {wanted}")
                seen.add(page["file"])
    return seen


def config_of(lab):
    return ["--config", "tiny.yaml", "--data.train_urls", f"[{lab.output('text')}]", "--data.validation_urls", "[held.txt]", "--data.rows",
            str(lab.output("rows") / "verdicts.jsonl"), "--data.cache_dir", str(lab.output("store")), "--data.tokenizer",
            str(lab.output("tok") / "tokenizer.json")]


REAL = """
import json, sys
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
data = sys.stdin.buffer.read()
html = json.loads(data)["html"] if sys.argv[1].endswith(".jsonl") else bytes_to_str(data, detect_encoding(data))
sys.stdout.buffer.write(extract_plain_text(html, main_content=True).encode())
"""


def check_real(ostro, top, place):
    """The same by resiliparse itself; and files that are no HTML."""
    lab = Lab(ostro, top, EXTRACT)
    rng = random.Random("real")
    (top / "html").mkdir()
    navigation = "<nav><ul><li><a href='/'>Home</a></li><li><a href='/b'>More</a></li></ul></nav>"
    for name, begin, encoding in (("a", "<meta charset='utf-8'>", "utf-8"), ("b", "<meta charset='iso-8859-1'>", "latin-1")):
        body = f"<html><head>{begin}<title>T</title></head><body>{navigation}<main><h1>é à ü</h1><p>{text(rng, 90)}</p></main></body></html>"
        (top / f"html/{name}.html").write_bytes(body.encode(encoding))
    (top / "html/c.jsonl").write_text("".join(json.dumps({"html": f"<html><body>{navigation}<article><p>{text(rng, 60)}</p></article></body></html>"}) + "\n"
                                              for _ in range(4)))
    (top / "html/d.html").write_text(text(rng, 50))  # no tag at all: a text is a page, too
    found = {"PATH": f"{place}:/usr/bin:/bin"}
    lab.run(**found)

    def extract(file, data):
        return subprocess.run([f"{place}/python3", "-c", REAL, file], input=data, capture_output=True, check=True).stdout.decode()

    seen = check_tokens(lab, config_of(lab), extract)
    check(len(seen) >= 2, f"only {seen} were read")
    rows = [json.loads(line) for line in (lab.output("text") / "rows.jsonl").read_text().splitlines()]
    check("é à ü" in rows[0]["text"] and "é à ü" in rows[1]["text"] and "Home" not in rows[0]["text"], f"another text: {rows[:2]}")
    for what, data in (("an image", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4), ("zeros", bytes(500))):
        (top / "html/e.html").write_bytes(data)
        done = lab.run("--pin", "html", status=1, **found)
        check("html/e.html: resiliparse cannot read this page: ValueError: it has a NUL character, so it is no HTML. Mend it or leave it out" in done.stderr,
              f"{what}: {done.stderr}")
        check(done.stderr.count("error: ") == 1, done.stderr)
    (top / "html/e.html").unlink()
    lab.run("--pin", "html", **found)
    print(f"by resiliparse itself tokens of {len(seen)} files lead to bytes that give them again; what is no HTML is named")


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
    config = config_of(lab)
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
    check_golden("extract", lab, "text", "rows.jsonl")

    def by_stand_in(file, data):
        return re.sub("<[^>]*>", " ", json.loads(data)["html"] if file.endswith(".jsonl") else data.decode()).strip()

    check(check_tokens(lab, config, by_stand_in) == {"html/b.html", "html/c.jsonl"}, "batches of other files")
    check([file for file, _ in pages] == ["html/b.html"] + ["html/c.jsonl"] * 3 and len(set(pages)) == 4, f"{pages}")
    # A page that cannot be read is named, and so is what is no page.
    (top / "html/noise.html").write_bytes(b"\x89PNG\0\0" + bytes(range(128)))
    done = lab.run("--pin", "html", status=1, PYTHONPATH=package)
    check("html/noise.html: resiliparse cannot read this page: " in done.stderr, done.stderr)
    (top / "html/noise.html").write_bytes(b"zeros\0")
    done = lab.run("--pin", "html", status=1, PYTHONPATH=package)
    check("html/noise.html: resiliparse cannot read this page: ValueError: it has a NUL character, so it is no HTML" in done.stderr, done.stderr)
    (top / "html/noise.html").unlink()
    lines = (top / "html/c.jsonl").read_text()
    (top / "html/c.jsonl").write_text(lines + json.dumps({"html": "BAD"}) + "\n")
    done = lab.run("--pin", "html", status=1, PYTHONPATH=package)
    check("html/c.jsonl:4: resiliparse cannot read this page: RuntimeError: lexbor" in done.stderr, done.stderr)
    (top / "html/c.jsonl").write_text(lines)
    # Packed pages are refused by a sanity run, too, which unpacks other sources.
    with gzip.open(top / "html/d.jsonl.gz", "wt") as file:
        file.write(lines)
    for words in ([], ["--sanity"]):
        done = lab.run("--pin", "html", *words, status=1, PYTHONPATH=package)
        check("html/d.jsonl.gz: extract reads HTML files and .jsonl, not packed ones" in done.stderr, f"{words}: {done.stderr}")
    (top / "html/d.jsonl.gz").unlink()
    # Ctrl-C stops it, as other steps.
    (top / "html/e.html").write_text("SLOW")
    os.mkfifo(top / "begun")
    process = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml", "--pin", "html"], cwd=top, text=True, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, start_new_session=True,
                               env={"PATH": "/usr/bin:/bin", "OSTRO_THREADS": "1", "PYTHONPATH": package})
    (top / "begun").read_bytes()
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate()[1]
    check("stopped; the same command goes on" in error and "KeyboardInterrupt" not in error, f"{process.returncode}: {error}")
    # Side by side with others a signal to the lab alone stops it, too.
    process = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml", "-j", "2"], cwd=top, text=True, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "OSTRO_THREADS": "2", "PYTHONPATH": package})
    (top / "begun").read_bytes()
    process.terminate()
    error = process.communicate()[1]
    check(process.returncode == 75 and "stopped; the same command goes on" in error, f"-j 2: {process.returncode}: {error}")
    print("a row leads to its page and bytes, which extracted again give it; a bad page is named, and Ctrl-C stops")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--python")
    args = parser.parse_args()
    ostro = args.ostro
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        check_bad_verdicts(*check_filter(ostro, top / "filter"))
        check_twice(ostro, top / "twice")
        check_quality(ostro, top / "quality")
        check_extract(ostro, top / "extract")
        place = find_resiliparse(args.python)
        if place:
            check_real(ostro, top / "real", place)
        else:
            print("NOT RUN: resiliparse 2.0.1 itself (python3 -m pip install resiliparse==2.0.1); a module in its place")
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
