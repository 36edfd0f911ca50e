#!/usr/bin/env python3
"""Tests `ostro lab` from the command line, on texts of this machine: the same hash after drawn kills; edits that must and must not
run steps again; outputs, journal and sources that were changed; plans with mistakes; record, report and site, asked again by
Python's sqlite3 and math.fsum, rebuilt elsewhere, and changed.

    lab_test.py --ostro PROGRAM
"""
import argparse
import hashlib
import html.parser
import json
import math
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from program import check, kill_all

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

CONFIG = """
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {mp: f32, train_batch_size: 4, num_train_steps: 12, steps_per_eval: 6, checkpointer: {keep: [{every: 4}]}}
numerics: {leaf_examples: 2}
"""
PLAN = """
lab: small
question: Which <rate> & seed is "best"?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01]}
    train: {data: $rows, config: tiny.yaml, set: {optimizer.learning_rate: $rate}}
  cool: {fork: {of: $base, at: 8, set: {optimizer.decay: 4}}}
  score: {eval: {of: $base}}
  cooled: {eval: {of: $cool}}
"""
QUERIES = {
    "best": "SELECT min(bits_per_byte) FROM evaluations",
    "mean": "SELECT avg(loss) FROM chain",
    "sum": "SELECT sum(loss * 1e15) - sum(loss * 1e15 - 1) FROM chain",
    "tokens": "SELECT sum(tokens) FROM chain",
    "rate": "SELECT value FROM config WHERE path = 'optimizer.learning_rate' ORDER BY run LIMIT 1",
    "bytes": "SELECT sum(bytes) FROM sources",
}
REPORT = PLAN + "queries:\n" + "".join(f'  {name}: "{sql}"\n' for name, sql in QUERIES.items()) + """
figures: {loss: "SELECT run, step, loss FROM chain ORDER BY run, step"}
tables: {scores: "SELECT e.name, e.loss, s.licence FROM evaluations e, sources s ORDER BY e.name, s.licence"}
report: report.txt
"""
TEXT = """The best of 2 <runs> has {value best 3} bits per byte, mean {value mean}.

# Figures
{figure loss}
{table scores}
"""
STEPS = ["texts", "held", "words", "rows", "base[rate=0.001]", "base[rate=0.01]", "cool[rate=0.001]", "cool[rate=0.01]",
         "score[rate=0.001]", "score[rate=0.01]", "cooled[rate=0.001]", "cooled[rate=0.01]"]


class Lab:
    """A folder with a plan, and the program."""

    def __init__(self, ostro, top):
        self.ostro, self.top = str(pathlib.Path(ostro).resolve()), top
        (top / "texts").mkdir(parents=True)
        (top / "held").mkdir()
        licences = pathlib.Path("/usr/share/common-licenses")
        for name in ("GPL-2", "MPL-1.1"):
            shutil.copy(licences / name, top / "texts" / f"{name}.txt")
        shutil.copy(licences / "Apache-2.0", top / "held" / "a.txt")
        (top / "tiny.yaml").write_text(CONFIG)
        self.write(PLAN)

    def write(self, plan):
        (self.top / "plan.yaml").write_text(plan)

    def start(self, *words, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"OSTRO_THREADS": "1"} | variables
        return subprocess.run([self.ostro, "lab", *words], cwd=self.top, env=env, text=True, capture_output=True, check=False)

    def run(self, *words, status=0, **variables):
        done = self.start("run", "plan.yaml", *words, **variables)
        check(done.returncode == status, f"lab run {words}: exit code {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
        return done

    def ran(self, *words):
        """The steps that a run does, and the lab hash."""
        out = self.run(*words).stdout
        return ([line.split()[1][:-1] for line in out.splitlines() if line.split()[0] in ("run", "resume")],
                out.splitlines()[-1].removeprefix("lab hash: "))

    def outputs(self, kind):
        """Folders of the outputs of a kind, by step; of the last time that each was done."""
        found = {}
        for line in (self.top / "small.lab/journal.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "done" and json.loads(entry["recipe"])["kind"] == kind:
                found[entry["step"]] = self.top / "small.lab/out" / entry["fingerprint"][:16]
        return found


def check_kills(ostro, top, wanted):
    """Kills at drawn places, each followed by the same command, until it comes through."""
    points = [("journal_append", 3), ("data_build", 4), ("lab_step", 2), ("manifest", 2), ("array_write", 8),
              ("step", 10), ("chain_append", 10)]  # in the order in which a lab passes them
    for number in range(2 if not seed.full() else 8):
        rng = random.Random(f"{seed.seed()} kills {number}")
        lab = Lab(ostro, top / f"kills{number}")
        drawn = [points[i] for i in sorted(rng.sample(range(len(points)), 4))]
        kills = 0
        for name, most in drawn:
            done = lab.start("run", "plan.yaml", OSTRO_FAILPOINT=f"{name}:{rng.randint(1, most)}",
                             OSTRO_THREADS=rng.choice("12"))
            kills += done.returncode == -9
            check(done.returncode in (0, -9), f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        ran, lab_hash = lab.ran()
        check(kills >= 3, f"only {kills} kills of {drawn}")
        check(lab_hash == wanted, f"after {kills} kills of {drawn} the lab hash is {lab_hash}, not {wanted}")
        print(f"{kills} kills of {drawn}, then {len(ran)} steps: the same lab hash")


def check_edits(lab, wanted):
    """Edits that cannot matter run nothing; others run what depends on them and nothing else."""
    def expect(what, plan, steps, same_hash=False):
        lab.write(plan)
        dry = [line.split()[1][:-1] for line in lab.start("run", "plan.yaml", "--dry_run").stdout.splitlines()
               if line.split()[0] in ("run", "resume", "wait")]
        ran, now = lab.ran()
        check(ran == steps, f"{what}: ran {ran}, not {steps}")
        check(set(ran) <= set(dry), f"{what}: a dry run named {dry}, and {ran} ran")
        check((now == wanted) == same_hash, f"{what}: lab hash {now}, before {wanted}")

    expect("comments, order of keys, another question", PLAN.replace("lab: small", "# words\nlab: small").replace(
        "{from: $texts, vocab_size: 300}", "{vocab_size: 300, from: $texts}").replace("best", "worst"), [], True)
    config = lab.top / "tiny.yaml"
    config.write_text("# a comment\n" + CONFIG.replace("steps_per_eval: 6", "steps_per_eval: 0"))
    expect("what no bit depends on", PLAN, [], True)
    # Nor does the evaluation: it reads all held-out texts, also in a lab that is new.
    some = CONFIG.replace("trainer: {", "trainer: {max_eval_batches: 1, ")
    config.write_text(some)
    expect("a limit of the evaluations within a training", PLAN, [], True)
    fresh = Lab(lab.ostro, lab.top.with_name("fresh"))
    (fresh.top / "tiny.yaml").write_text(some)
    check(fresh.ran()[1] == wanted, "a limit of the evaluations within a training changed the hash of a new lab")
    config.write_text(CONFIG)
    expect("a licence", PLAN.replace("GPL-3.0-only", "GPL-2.0-only"), [])
    expect("back again", PLAN, [], True)
    expect("one choice of a sweep", PLAN.replace("0.01]", "0.02]"), ["base[rate=0.02]", "cool[rate=0.02]",
                                                                            "score[rate=0.02]", "cooled[rate=0.02]"])
    expect("back again, from the journal", PLAN, [], True)
    expect("a fork at another step", PLAN.replace("at: 8", "at: 4"), [*STEPS[6:8], *STEPS[10:]])
    expect("another option of a fork", PLAN.replace("decay: 4", "decay: 2"), [*STEPS[6:8], *STEPS[10:]])
    expect("back again, from the journal, too", PLAN, [], True)
    # The default pattern said by its name is the same recipe; a special token makes another tokenizer.
    expect("a default that is said", PLAN.replace("300}", "300, pattern: llama3}"), [], True)
    expect("another tokenizer", PLAN.replace("300}", "300, special_tokens: ['<|x|>']}"), STEPS[2:])
    expect("back again", PLAN, [], True)
    why = lab.start("why", "plan.yaml", "base[rate=0.01]").stdout
    check("is in the journal" in why, why)
    lab.write(PLAN.replace("0.01]", "0.02]").replace("$rate}", "$rate, trainer.seed: 5}"))
    why = lab.start("why", "plan.yaml", "base[rate=0.02]").stdout
    check("seed is 0 there and 5 here" in why and "when it was done last" in why, why)
    lab.write(PLAN)
    # The plan's path in other words.
    for path in ("./plan.yaml", ".//plan.yaml", f"../{lab.top.name}//./plan.yaml", f"{lab.top}/plan.yaml"):
        done = lab.start("run", path)
        check(done.stdout.splitlines()[-1] == f"lab hash: {wanted}", f"{path}: {done.stdout}\n{done.stderr}")
    # The same bytes at another time, and the folder at another place, are the same.
    for file in (lab.top / "texts").iterdir():
        os.utime(file)
    check(lab.ran() == ([], wanted), "touched sources ran steps")
    moved = lab.top.with_name("moved")
    shutil.copytree(lab.top, moved)
    here, lab.top = lab.top, moved
    check(lab.ran() == ([], wanted), "a copied lab ran steps")
    lab.top = here
    # Equal outputs stop the wave: the tokenizer is done again, and what it gives is the same.
    words = lab.outputs("tokenizer")["words"]
    shutil.rmtree(words)
    words.with_suffix(".json").unlink()
    check(lab.ran() == (["words"], wanted), "an output that was gone")
    shutil.rmtree(words)
    check(lab.ran() == (["words"], wanted), "an output whose folder was gone")
    # A kill while an output is made again.
    rows = lab.outputs("tokens")["rows"]
    shutil.rmtree(rows)
    check(lab.start("run", "plan.yaml", OSTRO_FAILPOINT="data_build:1").returncode == -9, "the kill of a step that is done again")
    check(lab.ran() == (["rows"], wanted), "after the kill of a step that is done again")


def check_tampering(lab, wanted):
    """Each change is found and named; the lab goes on when it is undone."""
    def damaged(path, change, where, *words):
        before, times = path.read_bytes(), path.stat()
        after = change(before)
        check(after != before, f"{path}: nothing was changed")
        path.write_bytes(after)
        if words:
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        done = lab.run(*words, status=1)
        check(where in done.stderr, f"{path} was changed, and the error is\n{done.stderr}")
        path.write_bytes(before)
        check(lab.ran("--check", "full") == ([], wanted), f"{path}: put back, and steps ran")

    def flip(data):
        return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]

    run = lab.outputs("train")["base[rate=0.01]"]
    chunk = next(p for p in sorted((run / "checkpoints").rglob("*")) if p.name.startswith("c."))
    damaged(run / "chain.jsonl", flip, f"{run.name}/chain.jsonl: was changed")
    damaged(chunk, flip, f"{chunk.name}: was changed")
    damaged(chunk, flip, f"{chunk.name}: was changed", "--check", "full")
    damaged(lab.outputs("tokenizer")["words"] / "tokenizer.json", flip, "tokenizer.json: was changed")
    damaged(lab.outputs("eval")["score[rate=0.01]"] / "evaluation.json", flip, "evaluation.json: was changed")
    damaged(run.with_suffix(".json"), flip, f"{run.name}.json: was changed")
    added = lab.outputs("tokenizer")["words"] / "tokenizer_config.json"
    added.write_text("{}")
    check("tokenizer_config.json: is no part of the output" in lab.run(status=1).stderr, "a file that was added")
    added.unlink()
    check(lab.ran() == ([], wanted), "the file that was added is gone")
    journal = lab.top / "small.lab/journal.jsonl"
    damaged(journal, lambda d: d.replace(b'"step":"rows"', b'"step":"rowz"', 1), "journal.jsonl: line")
    damaged(journal, lambda d: b"".join(d.splitlines(True)[:2] + d.splitlines(True)[3:]), "journal.jsonl: line 3")
    damaged(journal, lambda d: d + b"{}\n", "is no line of a journal")
    damaged(lab.top / "texts/GPL-2.txt", flip, "texts/GPL-2.txt has changed")
    damaged(lab.top / "held/a.txt", flip, "held/a.txt has changed")
    damaged(lab.top / "held/a.txt", flip, "or take them as they are now: --pin held")
    # Only what needs the changed source waits.
    held = lab.top / "held/a.txt"
    before = held.read_bytes()
    held.write_bytes(before + b" more")
    lines = lab.run(status=1).stdout.splitlines()
    check([line.split()[0] for line in lines] == ["done", "failed", "done"] + ["wait"] * 9, "\n".join(lines))
    # A new file is not taken unseen; --pin takes it, and what depends on it is done.
    held.write_bytes(before)
    (lab.top / "texts/new.txt").write_text("something new")
    check("texts/new.txt is new" in lab.run(status=1).stderr, "a new file was taken")
    ran, now = lab.ran("--pin", "texts")
    check(ran == STEPS[2:] and now != wanted, f"a new file: {ran}")
    (lab.top / "texts/new.txt").unlink()
    check(lab.ran("--pin", "texts") == ([], wanted), "the files as they were")
    # Two outputs of one fingerprint. The journal is written anew, as a machine that computes wrongly would have done.
    saved, head, lines = journal.read_bytes(), "", []
    for line in journal.read_text().splitlines():
        entry = json.loads(line)
        del entry["h"]
        if entry.get("step") == "words":
            entry["content"] = "0" * 64
        head = hashlib.sha256((head + json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)).encode()).hexdigest()
        lines.append(json.dumps(entry | {"h": head}, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    journal.write_text("\n".join(lines) + "\n")
    words = lab.outputs("tokenizer")["words"]
    shutil.rmtree(words)
    words.with_suffix(".json").unlink()
    check("gave the content 000000000000 before" in lab.run(status=1).stderr, "two contents, and no alarm")
    check("gave two different outputs" in lab.run(status=1).stderr, "the alarm was forgotten")
    journal.write_bytes(saved)
    shutil.rmtree(words)  # the later of the two outputs
    check(lab.ran() == (["words"], wanted), "the journal as it was")


def check_mistakes(lab):
    """Plans with mistakes: one clear error each."""
    for what, old, new, error in (
            ("a cycle", "held: {source: {files: [\"held/*.txt\"], licence: Apache-2.0}}",
             "held: {eval: {of: $base}}", "held_out: held is not of kind source"),
            ("an unknown kind", "words: {tokenizer:", "words: {tokeniser:", "nearest is \"tokenizer\""),
            ("an unknown key", "vocab_size", "vocab_sise", "nearest is \"vocab_size\""),
            ("an unknown step", "tokenizer: $words", "tokenizer: $word", "nearest is \"words\""),
            ("a step of another kind", "of: $base", "of: $rows", "is not of kind train"),
            ("a missing parameter", ", licence: Apache-2.0", "", "source.licence is missing"),
            ("an unknown top key", "question:", "questions:", "nearest is \"question\""),
            ("an unknown variable", "$rate}", "$rat}", "no variable \"rat\"; the nearest is \"rate\""),
            ("an option that is set twice", "$rate}", "$rate, trainer.seed: 1, trainer.seed: 2}", "trainer.seed is there twice; the first is at plan.yaml:11"),
            ("a choice that is there twice", "[0.001, 0.01]", "[0.01, 0.01]", "0.01 is there twice"),
            ("an empty list", "files: [texts]", "files: []", "at least one text"),
            ("a wrong type", "vocab_size: 300", "vocab_size: many", "expected an integer")):
        check(old in PLAN, old)
        lab.write(PLAN.replace(old, new, 1))
        done = lab.run("--dry_run", status=2)
        check(error in done.stderr and "plan.yaml:" in done.stderr, f"{what}: {done.stderr}")
    for what, old, new, error in (
            ("files that are missing", "files: [texts]", "files: [text]", "texts.files"),
            ("a vocabulary that is too small", "vocab_size: 300", "vocab_size: 30", "use 257"),
            ("an option that the plan decides", "optimizer.learning_rate: $rate", "trainer.id: x", "follows from the plan"),
            ("an unknown option", "optimizer.learning_rate: $rate", "optimizer.learning_rat: $rate", "optimizer.learning_rate"),
            ("a fork where nothing was kept", "at: 8", "at: 7", "names no state of this step; the nearest are those of steps 4 and 8"),
            ("a fork of another model", "optimizer.decay: 4", "model.hidden_dim: 32", "cannot be forked so"),
            ("a fork's place", "optimizer.decay: 4", "trainer.log_dir: x", "trainer.log_dir follows from the plan"),
            ("a section of a fork", "optimizer.decay: 4", "data: {enforce_bos: false}", "follows from the plan"),
            ("metrics of a training", "optimizer.learning_rate: $rate", 'trainer.metrics_listen: "127.0.0.1:0"', "trainer.metrics_listen: nothing watches the trainings of a lab"),
            ("a fork's notices", "optimizer.decay: 4", "trainer.notice_file: x", "trainer.notice_file: nothing watches the trainings of a lab"),
            ("a config that is missing", "tiny.yaml", "tinny.yaml", "tinny.yaml")):
        lab.write(PLAN.replace(old, new, 1))
        done = lab.run(status=1)
        check(error in done.stderr and "error: plan.yaml:" in done.stderr, f"{what}: {done.stderr}")
    lab.write(PLAN)
    name = os.fsencode(lab.top / "texts") + b"/\xff.txt"
    with open(name, "wb") as file:
        file.write(b"text")
    check(r"texts/\xff.txt: texts.files: the name of this file is no UTF-8" in lab.run("--dry_run").stdout, "a name that is no UTF-8")
    check("is no UTF-8" in lab.run(status=1).stderr, "a name that is no UTF-8")
    os.unlink(name)


class Texts(html.parser.HTMLParser):
    """The elements of a page, and what it would load or run."""

    def __init__(self, text):
        super().__init__()
        self.found, self.data, self.links = set(), "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found |= {tag} | {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.data += data


def check_record(lab, wanted):
    """The record, asked by another program; and the same bytes in another folder and time zone."""
    lab.write(REPORT)
    (lab.top / "report.txt").write_text(TEXT)
    check(lab.ran() == ([], wanted), "queries ran steps")
    check(lab.start("record", "plan.yaml", "--out", "r.sqlite").returncode == 0, "record")
    db = sqlite3.connect(lab.top / "r.sqlite")
    # Python's sums are exact: SQLite's own are not asked.
    for name, python in (("sum", lambda v: math.fsum(v) if any(isinstance(x, float) for x in v) else sum(v)),
                         ("avg", lambda v: math.fsum(v) / len(v))):
        aggregate = type("A", (), {"__init__": lambda self: setattr(self, "all", []),
                                   "step": lambda self, x: self.all.append(x), "finalize": lambda self, f=python: f(self.all)})
        db.create_aggregate(name, 1, aggregate)
    done = lab.start("report", "plan.yaml", "--out", "report")
    check(done.returncode == 0, done.stderr)
    values = json.loads((lab.top / "report/values.json").read_text())
    for name, sql in QUERIES.items():
        theirs, = db.execute(sql).fetchone()
        ours = values["values"][name]["value"]
        check(ours == str(theirs) or float(ours) == theirs, f"{name}: {ours}, and Python has {theirs}")
        # "sum" subtracts 1, which its author typed.
        check(values["values"][name]["class"] == ("declared" if name == "sum" else "recorded"), f"{name}: {values['values'][name]}")
    check(values["tables"]["scores"]["class"] == "declared", "a licence is recorded")
    forks = db.execute("SELECT run, parent, step FROM forks").fetchall()
    losses = {f"{run} {step}": loss for run, step, loss in db.execute("SELECT run, step, loss FROM chain")}
    for run, folder in (lab.outputs("train") | lab.outputs("fork")).items():
        for line in (folder / "chain.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] == "step" and run in STEPS:
                check(losses.pop(f"{run} {entry['step']}") == float.fromhex(entry["loss"]), f"{run}: step {entry['step']}")
            if entry["kind"] == "genesis" and run.startswith("cool") and run in STEPS:
                check((run, f"base{run[4:]}", 8) in forks and entry["fork"]["step"] == 8, f"{run}: {forks}")
    check(not losses, f"the record has losses that no chain has: {losses}")
    check((lab.top / "report/record.sqlite").read_bytes() == (lab.top / "r.sqlite").read_bytes(), "two records")
    page = Texts((lab.top / "report/report.html").read_text())
    check("best of 2 <runs> has" in page.data and "The best" in page.data and "runs" not in page.found, "report.html")
    check("are checked by nothing: 2" in page.data, "a number typed by hand is not listed")
    # Another lab of the same plan, at another place and time: the same bytes.
    other = Lab(lab.ostro, lab.top.with_name("other folder"))
    other.write(REPORT)
    (other.top / "report.txt").write_text(TEXT)
    other.run(OSTRO_THREADS="2", TZ="Asia/Tokyo", LC_ALL="C")
    check(other.start("report", "plan.yaml", "--out", "report", TZ="Asia/Tokyo", LC_ALL="C").returncode == 0, "the other report")
    files = sorted(f.name for f in (lab.top / "report").iterdir())
    check(files == ["loss.svg", "record.sqlite", "report.html", "report.lock", "values.json"], files)
    for name in files:
        check((lab.top / "report" / name).read_bytes() == (other.top / "report" / name).read_bytes(), f"{name} differs")


def check_second_lab(lab):
    """A second lab in the folder: each keeps its pins; the sizes of files whose names end alike."""
    (lab.top / "texts/below").mkdir()
    for name, size in (("n.txt", 5), ("texts/below/n.txt", 7)):
        (lab.top / name).write_text("x" * size)
    (lab.top / "second.yaml").write_text(
        "lab: second\nquestion: Which?\nsteps: {some: {source: {files: [n.txt, texts/below], licence: MIT}}}\n")
    check(lab.start("run", "second.yaml").returncode == 0, "the second lab")
    check(lab.start("record", "second.yaml", "--out", "second.sqlite").returncode == 0, "the second record")
    with sqlite3.connect(lab.top / "second.sqlite") as db:
        sizes = dict(db.execute("SELECT file, bytes FROM sources"))
    check(sizes == {"n.txt": 5, "texts/below/n.txt": 7}, sizes)
    shutil.rmtree(lab.top / "texts/below")
    lab.run()
    pins = json.loads((lab.top / "lab.lock").read_text())
    check({"second/some", "small/texts"} <= set(pins), f"lab.lock has {set(pins)}")


def check_reports(lab):
    """--check names every file that is another one; queries that cannot be asked are errors with their line."""
    def checked(status, error=""):
        done = lab.start("report", "plan.yaml", "--out", "report", "--check")
        check(done.returncode == status and error in done.stderr, f"{error}: {done.returncode} {done.stderr}")

    checked(0)
    (lab.top / "report/more").mkdir()
    (lab.top / "report/more/fig.svg").write_text("<svg/>")
    checked(1, "more/fig.svg: is no part of the report")
    shutil.rmtree(lab.top / "report/more")
    with sqlite3.connect(lab.top / "altered.sqlite") as db:
        sqlite3.connect(lab.top / "report/record.sqlite").backup(db)
        db.execute("UPDATE chain SET loss = loss - 0.001 WHERE step = 3")
    for name, other in (("record.sqlite", (lab.top / "altered.sqlite").read_bytes()), ("values.json", b"{}"),
                        ("loss.svg", (lab.top / "report/loss.svg").read_bytes().replace(b"L", b"M", 1)),
                        ("report.html", b"<p>"), ("report.lock", b"")):
        file = lab.top / "report" / name
        before = file.read_bytes()
        file.write_bytes(other)
        checked(1, f"{name}: is not what the lab gives")
        file.write_bytes(before)
    checked(0)
    for old, new, error in (("min(bits_per_byte)", "random()", "plan.yaml:16: queries.best: the function random"),
                            ("min(bits_per_byte)", "bits_per_byte", "queries.best: gives 4 rows"),
                            ("SELECT min(bits_per_byte) FROM evaluations", "DELETE FROM chain", "only one SELECT"),
                            ("SELECT run, step, loss FROM chain", "SELECT run, hash, loss FROM chain", "figures.loss: has a point")):
        check(old in REPORT, old)
        lab.write(REPORT.replace(old, new, 1))
        done = lab.start("report", "plan.yaml", "--out", "report2")
        check(done.returncode == 2 and error in done.stderr, f"{new}: {done.stderr}")
    lab.write(REPORT.replace("min(bits_per_byte) FROM evaluations", "sum(seconds) FROM sessions"))
    check(lab.start("report", "plan.yaml", "--out", "report2").returncode == 0, "a measured value")
    check(json.loads((lab.top / "report2/values.json").read_text())["values"]["best"]["class"] == "measured", "a clock is recorded")
    lab.write(REPORT)
    # Nothing is made of a lab whose outputs were changed.
    chain = lab.outputs("train")["base[rate=0.01]"] / "chain.jsonl"
    before = chain.read_bytes()
    chain.write_bytes(before.replace(b'"step":3', b'"step":4', 1))
    for words in (["report", "plan.yaml"], ["record", "plan.yaml", "--out", "x"]):
        done = lab.start(*words)
        check(done.returncode == 2 and "chain.jsonl: was changed" in done.stderr, done.stderr)
    chain.write_bytes(before)


def check_site(lab):
    """Pages with links that lead somewhere, and with no script but their own; of a lab that is not finished, too."""
    hostile = REPORT.replace('"best"', "<script>alert(1)</script>\u202e'\"").replace("GPL-3.0-only", '"</td><b>"')
    lab.write(hostile)
    lab.run()
    for plan, pages in ((hostile, {"index", "runs", "diff", "data", "batches-1", "batches-2", "run-1", "run-2", "run-3", "run-4"}),
                        (hostile.replace("0.01]", "0.03]"), {"index", "runs", "diff", "data", "batches-1", "batches-2", "run-1", "run-2"})):
        lab.write(plan)
        shutil.rmtree(lab.top / "site", ignore_errors=True)
        done = lab.start("site", "plan.yaml", "--out", "site")
        check(done.returncode == 0, done.stderr)
        found = {p.stem for p in (lab.top / "site").glob("*.html")}
        check(found == pages, f"pages {found}")
        for page in (lab.top / "site").rglob("*.html"):
            texts = Texts(page.read_text())
            check(not texts.found & {"img", "b" if page.name == "data.html" else "img", "onclick", "iframe"}, f"{page}: {texts.found}")
            check(page.read_text().count("<script") == (page.parent.name != "report"), f"{page} has other scripts than its own")
            check("default-src 'none'" in page.read_text(), f"{page} has no policy")
            for link in texts.links:
                check(":" not in link and (page.parent / (link.split("#")[0] or page.name)).exists(), f"{page}: {link} leads nowhere")
    # However the plan's path is typed, the bytes are the same.
    lab.write(hostile.replace("files: [texts]", "files: [textz]"))
    sites = []
    for number, (cwd, path) in enumerate(((lab.top, "plan.yaml"), (lab.top, "./plan.yaml"), (lab.top.parent, f"{lab.top.name}//plan.yaml"),
                                          (lab.top, f"{lab.top}/plan.yaml"))):
        out = lab.top / f"site{number}"
        done = subprocess.run([lab.ostro, "lab", "site", path, "--out", out], cwd=cwd, text=True, capture_output=True, check=False)
        check(done.returncode == 0, done.stderr)
        sites.append({str(f.relative_to(out)): f.read_bytes() for f in sorted(out.rglob("*")) if f.is_file()})
    check(all(site == sites[0] for site in sites) and b"textz" in sites[0]["index.html"], "the plan's path is in the site")
    lab.write(hostile.replace("0.01]", "0.03]"))
    index = Texts((lab.top / "site/index.html").read_text()).data
    check("<script>alert(1)</script>" in index and "base[rate=0.03]" in index and "is not done" in index, index)
    lab.write(REPORT)


def check_two_drivers(lab):
    """While one process works on a lab, another one is refused. The first trains for long, and is stopped while it does."""
    lab.write(PLAN.replace("$rate}", "$rate, trainer.num_train_steps: 10000000}"))
    first = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml"], cwd=lab.top, stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.DEVNULL)
    try:
        for line in first.stdout:
            if line.startswith("run     base"):
                break
        done = lab.start("run", "plan.yaml")
        check(done.returncode == 1 and "another process works on this lab" in done.stderr, done.stderr)
    finally:
        kill_all([first])
    lab.write(PLAN)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-") as folder:
        top = pathlib.Path(folder)
        lab = Lab(args.ostro, top / "lab")
        ran, wanted = lab.ran()
        check(ran == STEPS[2:], f"the first run did {ran}")
        check(lab.ran() == ([], wanted), "a second run did steps")
        check_edits(lab, wanted)
        check_tampering(lab, wanted)
        check_mistakes(lab)
        check_record(lab, wanted)
        check_second_lab(lab)
        check_reports(lab)
        check_site(lab)
        check_two_drivers(lab)
        check_kills(args.ostro, top, wanted)
    print("equal: every way to the end of the plan has one lab hash, and what was changed was found")


if __name__ == "__main__":
    main()
