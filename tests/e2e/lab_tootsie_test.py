#!/usr/bin/env python3
"""Tests trainings in phases on experiments/tootsie_mini.yaml in its small form (--sanity): the hashes of experiments/README.md, undisturbed
and in one drawn way (threads, instruction set, workers, a kill): lab, record, HTML and PDF; the table of phases, computed again
by Python from the chain; the run verified; an edit of a phase; controls that must change the hash, and workers that must not; plans
with mistakes; corpora from the command line. HTML and PDF are compared where the pinned Typst is.

    lab_tootsie_test.py --ostro PROGRAM [--whole [HOW ...]] [--log FILE]

In full the small form is made in each of these ways, and killed 12 times, in each phase and at amends. --whole does the
whole experiment, and nothing else; HOW is plain (undisturbed, then verified, and its report made again elsewhere and by
another user), thread (one thread), generic, workers1, workers3 or kills. Nothing: all of them.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

import guide_test
import lab_paper_test
import other_user
from lab_phases import phases_of
from program import check

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/suite"))
import seed  # noqa: E402
sys.path.insert(0, str(ROOT / "tests/fault"))
import forger  # noqa: E402

# In the place of resiliparse, which may not be here; of pages as simple as those that are drawn it gives the same text.
STAND_IN = """
import html, re

def extract_plain_text(page, main_content=False):
    article = re.search("<article>(.*)</article>", page, re.DOTALL)[1]
    blocks = re.findall("<(?:h1|p)>(.*?)</(?:h1|p)>", article, re.DOTALL)
    return "\\n\\n".join(" ".join(html.unescape(block).split()) for block in blocks)
"""
ENDS = [4, 8, 12, 16, 20, 24, 28]  # of the phases in the small form
WHOLE_ENDS = [200, 660, 740, 820, 1320, 1400, 1420]
BATCHES = [8, 8, 24, 24, 24, 32, 32]
TINY = """
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
optimizer: {learning_rate: 0.01, lr_schedule: linear, min_lr_ratio: 0, decay: 0}
trainer: {mp: f32, train_batch_size: 2, steps_per_eval: 1000, tracker: []}
numerics: {leaf_examples: 2}
"""
SMALL = """
lab: small
question: Are the phases those of the chain?
steps:
  web_rows: {corpus: {kind: web, documents: 60}}
  papers_rows: {corpus: {kind: papers, documents: 40}}
  web_held: {corpus: {kind: web, documents: 5, seed: 100}}
  papers_held: {corpus: {kind: papers, documents: 5, seed: 100}}
  words: {tokenizer: {from: $web_rows, vocab_size: 270}}
  others: {tokenizer: {from: $papers_rows, vocab_size: 280}}
  web: {tokens: {from: $web_rows, held_out: $web_held, tokenizer: $words}}
  papers: {tokens: {from: $papers_rows, held_out: $papers_held, tokenizer: $words}}
  base:
    train:
      config: tiny.yaml
      data: {web: $web}
      set: {data.train_weights: {web: 1}}
      phases:
        - {name: one, to: 4, workers: 2, set: {optimizer.warmup: 0.5}}
        - {name: two, to: 6, data: {papers: $papers}, set: {data.train_weights: {web: 1, papers: 1}, optimizer.warmup: 0, optimizer.decay: 1.0, trainer.train_batch_size: 4}}
  side: {fork: {of: $base, at: 4, set: {trainer.num_train_steps: 7, data.train_weights: {papers: 1}}}}
  score: {eval: {of: $base}}
  cooled: {eval: {of: $side}}
"""
# Phases with a stage of the mixture in the second one, as Phoenix has it: the bridge.
BRIDGED = SMALL[:SMALL.index("  base:")].replace("lab: small", "lab: NAME").replace("documents: 60", "documents: 40") + """
  base:
    train:
      config: tiny.yaml
      data: {web: $web}
      set: {data.train_weights: {web: 1}, trainer.train_batch_size: 6}
      phases:
        - {name: one, to: 4, workers: 2, set: {optimizer.warmup: 2, optimizer.lr_schedule: constant}}
        - {name: two, to: 7, data: {papers: $papers}, set: {data.train_weights: [[0, {web: 1, papers: 1}], [5, {papers: 1}]], optimizer.warmup: 0, trainer.train_batch_size: 4}}
"""
KILLS = [("amend", 12), ("step", 20), ("chain_append", 30), ("manifest", 6), ("lab_step", 20)]


def stand_in(top):
    package = top / "python"
    (package / "resiliparse/extract").mkdir(parents=True)
    (package / "resiliparse/parse").mkdir()
    (package / "resiliparse/extract/html2text.py").write_text(STAND_IN)
    (package / "resiliparse/parse/encoding.py").write_text("detect_encoding = bytes_to_str = None\n")
    info = package / "resiliparse-2.0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: resiliparse\nVersion: 2.0.1\n")
    return str(package)


class Experiment:
    """A copy of the folder experiments, and the program."""

    def __init__(self, ostro, top):
        self.ostro, self.top = str(pathlib.Path(ostro).resolve()), top / "experiments"
        shutil.copytree(ROOT / "experiments", self.top, ignore=shutil.ignore_patterns("*.lab"))
        self.package = stand_in(top) + ":" + guide_test.typst_settings(top)["PYTHONPATH"]

    def start(self, *words, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"OSTRO_THREADS": "2", "PYTHONPATH": self.package} | variables
        return subprocess.run([self.ostro, *words], cwd=self.top, env=env, text=True, capture_output=True, check=False)

    def run(self, *words, **variables):
        done = self.start("lab", "run", "tootsie_mini.yaml", "--sanity", *words, **variables)
        check(done.returncode == 0, f"lab run {words}: exit code {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
        return done.stdout


def golden(name):
    found = re.search(rf"\| {re.escape(name)} \| `([0-9a-f]{{64}})` \|", (ROOT / "experiments/README.md").read_text())
    check(found is not None, f"experiments/README.md has no row {name}")
    return found[1]


def report_files():
    """Files of the report whose hashes are golden: without Typst the record alone."""
    return ["record.sqlite"] + (["report.html", "report.pdf"] if lab_paper_test.find_typst(None) else [])


def check_products(lab, whole, what, out):
    """The lab hash with which a run ended, and the files of the report that it made."""
    form, folder = ("", "tootsie_mini.lab") if whole else ("small form, ", "tootsie_mini.sanity.lab")
    found = {f"{form}lab hash": out.splitlines()[-1].removeprefix("lab hash: ")}
    for name in report_files():
        found[form + name] = hashlib.sha256((lab.top / folder / "report" / name).read_bytes()).hexdigest()
    wrong = [f"| {name} | `{value}` |" for name, value in found.items() if golden(name) != value]
    check(not wrong, f"{what}: experiments/README.md has other rows than\n" + "\n".join(wrong))
    check((lab.top / folder / "site/index.html").is_file(), f"{what}: there are no pages")
    return found


def forget(lab, step):
    """Removes the small form's output of a training, and its report: they are made again."""
    folder = lab.top / "tootsie_mini.sanity.lab"
    shutil.rmtree(lines_of(folder, step)[1])
    shutil.rmtree(folder / "report")


def check_hash(lab):
    """The small form, undisturbed; then its run in six phases again, in one drawn way. Generic instructions take long: in a sample they make a fork."""
    rng = random.Random(f"{seed.seed()} tootsie")
    check_products(lab, False, "undisturbed", lab.run())
    name, most = rng.choice(KILLS)
    ways = {"one thread": ([], {"OSTRO_THREADS": "1"}), "generic instructions": ([], {"OSTRO_ISA": "generic"}), "one worker": (["--workers", "1"], {}),
            "three workers": (["--workers", "3"], {}), f"a kill at {name}:{rng.randint(1, most)}": ([], {})}
    for what in sorted(ways) if seed.full() else [rng.choice(sorted(ways))]:
        words, variables = ways[what]
        step = "microanneal[mix=papers]" if what.startswith("generic") and not seed.full() else "tootsie"
        forget(lab, step)
        if what.startswith("a kill"):
            killed = lab.start("lab", "run", "tootsie_mini.yaml", "--sanity", OSTRO_FAILPOINT=what.split()[-1])
            check(killed.returncode in (0, -9), f"{what}: exit code {killed.returncode}\n{killed.stderr[-2000:]}")
        check_products(lab, False, what, lab.run(*words, **variables))
        print(f"undisturbed, then {step} with {what}: the hashes of experiments/README.md")
    if len(report_files()) == 1:
        print("NOT RUN: HTML and PDF of the small form: neither .venv nor python3 has Typst")


def lines_of(lab_folder, step):
    """The lines of a step's chain, its folder, and its recipe."""
    for line in reversed((lab_folder / "journal.jsonl").read_text().splitlines()):
        entry = json.loads(line)
        if entry["kind"] == "done" and entry["step"] == step:
            folder = lab_folder / "out" / entry["fingerprint"][:16]
            lines = [json.loads(text) for text in (folder / "chain.jsonl").read_text().splitlines()]
            return lines, folder, json.loads(entry["recipe"])
    return check(False, f"the journal has no {step}")


def amends_of(lines):
    return [{"step": line["step"], "difference": line["difference"]} for line in lines if line["kind"] == "amend"]


def options_of(amends):
    """Amends without the hashes of data, which the recipe has as inputs."""
    return [{"step": amend["step"], "difference": {k: v for k, v in amend["difference"].items() if k not in ("data", "data_roots")}}
            for amend in amends]


def check_chain(lab):
    """The amends stand where phases end, as the recipe foresaw them; batches grow; the run verifies."""
    lines, folder, recipe = lines_of(lab.top / "tootsie_mini.sanity.lab", "tootsie")
    check(options_of(amends_of(lines)) == recipe["parameters"]["amends"], f"the chain has {amends_of(lines)}")
    check([amend["step"] for amend in amends_of(lines)] == ENDS[:-1], "the steps of the amends")
    tokens = {line["step"]: line["tokens"] for line in lines if line["kind"] == "step"}
    check(sorted(tokens) == list(range(1, ENDS[-1] + 1)), "the steps of the chain")
    for begin, end, batch in zip([0] + ENDS, ENDS, BATCHES):
        for step in range(begin + 1, end + 1):
            check(tokens[step] == batch * 64, f"step {step} has {tokens[step]} tokens, and its batch is {batch}")
    verified = lab.start("verify", str(folder))
    check(verified.returncode == 0, verified.stdout + verified.stderr)
    ends = [row[:3] for row in phases_of(lines)]
    check(ends == [(first + 1, last, batch) for first, last, batch in zip([0] + ENDS, ENDS, BATCHES)], f"the script reads {ends}")
    print("the chain has the amends of the recipe, at the ends of phases, and verifies")


def check_table(lab):
    """The tables phases and evaluation_parts of a smaller lab, against its chain; an edit of the last phase."""
    (lab.top / "tiny.yaml").write_text(TINY)
    (lab.top / "small.yaml").write_text(SMALL)

    def run(*words):
        done = lab.start("lab", "run", "small.yaml", *words)
        check(done.returncode == 0, done.stdout + done.stderr[-2000:])
        return done.stdout

    said = run("--dry_run")
    check("phase one: steps 1 to 4, 2 workers; optimizer.warmup 0.5\n" in said, said)
    check("phase two: steps 5 to 6, with papers; data.train_weights" in said, said)
    first = run()
    made = lab.start("lab", "record", "small.yaml", "--out", "r.sqlite")
    check(made.returncode == 0, made.stderr)
    record = sqlite3.connect(lab.top / "r.sqlite")
    lines, _, recipe = lines_of(lab.top / "small.lab", "base")
    sums = [sum(line["tokens"] for line in lines if line["kind"] == "step" and first <= line["step"] <= last)
            for first, last in ((1, 4), (5, 6))]
    rows = record.execute("SELECT name, from_step, to_step, batch, tokens, data, first_rate, last_rate FROM phases "
                          "WHERE run = 'base' ORDER BY from_step").fetchall()
    check([row[:6] for row in rows] == [("one", 1, 4, 2, sums[0], lines[0]["data"]), ("two", 5, 6, 4, sums[1], rows[1][5])], f"phases are {rows}")
    # Warm-up over 2 of 4 steps; then the schedule of the second phase counts from its own first step.
    check([row[6:] for row in rows] == [(0.0, 0.01), (0.01, 0.005)], f"rates are {rows}")
    check_phases(lab, "small", record)
    check(record.execute("SELECT changes FROM phases WHERE run = 'base' ORDER BY from_step").fetchall()[1][0]
          .startswith("data from "), "what the second phase changed")
    check(record.execute("SELECT name, from_step, to_step FROM phases WHERE run = 'side'").fetchall() == [(None, 5, 7)], "the fork's row")
    parts = record.execute("SELECT name, component FROM evaluation_parts ORDER BY 1, 2").fetchall()
    check(parts == [("cooled", "papers"), ("cooled", "web"), ("score", "papers"), ("score", "web")], f"parts are {parts}")
    amends = amends_of(lines)
    check(options_of(amends) == recipe["parameters"]["amends"] and len(amends) == 1, "the amends of the small run")
    added = amends[0]["difference"]["data"]
    check(added["from"] == lines[0]["data"] and added["to"] == rows[1][5] != rows[0][5], f"the data are {added}, and the table has {rows}")

    ends = record.execute("SELECT data, data_at_end FROM runs WHERE run = 'base'").fetchall()
    check(ends == [(lines[0]["data"], rows[1][5])], f"the run's data are {ends}")

    def flops(first, second):
        """GFLOP of the training with these batches in its phases, as a dry run says; nothing is trained."""
        plan = SMALL.replace("batch_size: 4", f"batch_size: {second}").replace("{optimizer.warmup: 0.5}", f"{{optimizer.warmup: 0.5, trainer.train_batch_size: {first}}}")
        (lab.top / "small.yaml").write_text(plan)
        line, = (line for line in run("--dry_run").splitlines() if line.split()[1] == "base:")
        return float(re.search(r"; (\S+) GFLOP", line)[1])

    # Steps 1 to 4 are priced by the programs of the first phase, and 5 and 6 by those of the second.
    costs = {batches: flops(*batches) for batches in ((2, 8), (8, 2), (8, 8))}
    check(costs[2, 8] < costs[8, 2] < costs[8, 8], f"GFLOP by batches of the phases: {costs}")

    (lab.top / "small.yaml").write_text(SMALL.replace("batch_size: 4", "batch_size: 6"))
    why = lab.start("lab", "why", "small.yaml", "base").stdout
    check("amends" in why, f"why says {why}")
    ran = [line.split()[1][:-1] for line in run().splitlines() if line.split()[0] == "run"]
    # The fork leaves the run before that phase: it is made again, has the same content, and its evaluation stands.
    check(ran == ["base", "side", "score"], f"after an edit of a phase ran {ran}")
    (lab.top / "small.yaml").write_text(SMALL)
    check(run().splitlines()[-1] == first.splitlines()[-1], "the plan as it was has another hash")
    print("the record's phases are those of the chain; an edited phase is another training")


def check_phases(lab, name, record):
    """The table phases, beside what a script reads out of the chains."""
    table = record.execute("SELECT run, from_step, to_step, batch, tokens, data, first_rate, last_rate FROM phases ORDER BY run, from_step").fetchall()
    runs = sorted({row[0] for row in table})
    script = [(run, *row) for run in runs for row in phases_of(lines_of(lab.top / f"{name}.lab", run)[0])]
    check(table == script, f"the table phases is\n{table}\nand the chains say\n{script}")
    return table


def check_controls(lab):
    """What must change the states of a run, from which step on; and numbers of workers, which must not."""
    (lab.top / "tiny.yaml").write_text(TINY)

    def write(name, old="", new=""):
        check(old in BRIDGED, f"the plan has no {old!r}")
        (lab.top / "control.yaml").write_text(BRIDGED.replace("NAME", name).replace(old, new) if old else BRIDGED.replace("NAME", name))

    def chain(name, *change):
        write(name, *change)
        done = lab.start("lab", "run", "control.yaml")
        check(done.returncode == 0, done.stdout + done.stderr[-2000:])
        return lines_of(lab.top / f"{name}.lab", "base")[0]

    def first_difference(one, other):
        states = [{line["step"]: line["state"] for line in lines if line["kind"] == "step"} for lines in (one, other)]
        return next((step for step in sorted(states[0] | states[1]) if states[0].get(step) != states[1].get(step)), None)

    plain = chain("plain")
    drawn = random.Random(f"{seed.seed()} tootsie workers").choice("13")
    for workers in "13" if seed.full() else drawn:
        other = chain(f"workers{workers}", "workers: 2", f"workers: {workers}")
        check(other[-1]["h"] == plain[-1]["h"], f"{workers} workers gave another hash")
    for name, begins, *change in (("late", 5, "to: 4", "to: 5"), ("late_stage", 6, "[5, {papers", "[6, {papers"),
                                  ("no_bridge", 5, "[[0, {web: 1, papers: 1}], [5, {papers: 1}]]", "{papers: 1}")):
        found = first_difference(plain, chain(name, *change))
        check(found == begins, f"{name}: states differ from step {found} on, and should from step {begins} on")
    # The moments are zero where the second phase begins. Every hash of checkpoint and chain fits, so nothing else notices.
    write("moments")
    killed = lab.start("lab", "run", "control.yaml", OSTRO_FAILPOINT="amend:1")
    check(killed.returncode == -9, killed.stderr)
    run = next((lab.top / "moments.lab/out").glob("*/chain.jsonl")).parent
    checkpoint = run / "checkpoints/step-00000004"
    forger.zero_moments(checkpoint)
    name = forger.seal(checkpoint)
    forger.rewrite_chain(run / "chain.jsonl", lambda entry: entry | {"name": name} if entry["kind"] == "checkpoint" and entry["step"] == 4 else entry)
    found = first_difference(plain, chain("moments"))
    check(found == 5, f"moments reset at a phase: states differ from step {found} on")
    print(f"{drawn} and 2 workers have one hash; a phase or a stage that begins late, a bridge left out and moments that are reset change the states from their step on")


def newest_checkpoint(run):
    """The step of a run's newest checkpoint, 0 without one."""
    return max([int(folder.name[5:]) for folder in (run / "checkpoints").glob("step-*") if folder.name[5:].isdigit()], default=0)


def check_many_kills(lab, whole, say):
    """A kill in each phase, and at five amends, before their line in the chain and behind it. The hash of experiments/README.md."""
    words = ["lab", "run", "tootsie_mini.yaml"] + ([] if whole else ["--sanity"])
    folder, ends = lab.top / ("tootsie_mini.lab" if whole else "tootsie_mini.sanity.lab"), WHOLE_ENDS if whole else ENDS
    rng = random.Random(f"{seed.seed()} tootsie kills")

    def run_folder():
        begun = [path.parent for path in (folder / "out").glob("*/chain.jsonl")]
        check(len(begun) <= 1, f"several trainings were begun: {begun}")
        return begun[0] if begun else None

    def killed(point):
        settings = {"OSTRO_FAILPOINT": point, "OSTRO_THREADS": rng.choice("12")} | rng.choice(({}, {"OSTRO_ISA": "avx2"}, {} if whole else {"OSTRO_ISA": "generic"}))
        done = lab.start(*words, **settings)
        check(done.returncode == -9, f"{point}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return [json.loads(line) for line in (run_folder() / "chain.jsonl").read_text().splitlines() if line.endswith("}")]

    spared, kills = rng.randrange(len(ends) - 1), []
    for phase, (begin, end) in enumerate(zip([0] + ends, ends)):
        at = newest_checkpoint(run_folder()) if run_folder() else 0
        step = rng.randint(max(at, begin) + 2, end)  # a kill in the first step comes before its line
        lines = killed(f"step:{step - at}")
        last = max(line["step"] for line in lines if line["kind"] == "step")
        check(begin < last <= end and len(amends_of(lines)) == phase, f"a kill in step {step} left a chain of {last} steps and {len(amends_of(lines))} amends")
        kills.append(f"step {step}")
        if phase not in (spared, len(ends) - 1):
            behind = rng.randrange(2)
            lines = killed(f"amend:{behind + 1}")
            check(len(amends_of(lines)) == phase + behind, f"a kill at amend {phase + 1} left {len(amends_of(lines))} amends")
            kills.append(f"amend {phase + 1}, {'behind' if behind else 'before'} its line")
    done = lab.start(*words)
    check(done.returncode == 0, done.stderr[-2000:])
    found = check_products(lab, whole, f"after {kills}", done.stdout)
    say(f"seed {seed.seed()}: {len(kills)} kills: {'; '.join(kills)}; then {found}")


WAYS = {"plain": ([], {}), "thread": ([], {"OSTRO_THREADS": "1"}), "generic": ([], {"OSTRO_ISA": "generic"}), "workers1": (["--workers", "1"], {}),
        "workers3": (["--workers", "3"], {}), "kills": None}


def check_run(lab, say):
    """The run hash, the table of phases beside that of the script, and `ostro verify`."""
    record = sqlite3.connect(lab.top / "tootsie_mini.lab/report/record.sqlite")
    run_hash, = record.execute("SELECT hash FROM runs WHERE run = 'tootsie'").fetchone()
    check(run_hash == golden("run hash of the run in six phases"), f"the run hash is {run_hash}")
    for row in check_phases(lab, "tootsie_mini", record):
        say("  ".join(map(str, row)))
    _, folder, _ = lines_of(lab.top / "tootsie_mini.lab", "tootsie")
    begun = time.monotonic()
    verified = lab.start("verify", str(folder))
    check(verified.returncode == 0, verified.stdout + verified.stderr)
    say(f"run hash {run_hash}; ostro verify, in {time.monotonic() - begun:.0f} s: {verified.stdout.splitlines()[-1]}")


def check_elsewhere(lab, top, say):
    """The report of a copy in another folder, made by another user in another language and time zone."""
    other = top / "another folder"
    shutil.copytree(lab.top, other, ignore=shutil.ignore_patterns("report", "site"))
    words, reason = other_user.other_user(lab.ostro, __file__)
    settings = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "HOME": str(other), "TMPDIR": str(other), "OSTRO_THREADS": "1", "PYTHONPATH": lab.package}
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings
    if words:
        other_user.give(other, top)
        if not other_user.imports(words, env, "typst"):
            words, reason = None, "its python3 has no Typst"
    if words is None:
        say(f"NOT RUN: the report as another user: {reason}")
    done = subprocess.run([*(words or []), lab.ostro, "lab", "report", "tootsie_mini.yaml"], cwd=other, env=env, text=True, capture_output=True, check=False)
    check(done.returncode == 0, done.stdout + done.stderr)
    for name in report_files():
        found = hashlib.sha256((other / "tootsie_mini.lab/report" / name).read_bytes()).hexdigest()
        check(found == golden(name), f"in another folder {name} has the hash {found}")
    say(f"in another folder, language and time zone{', as another user' if words else ''}: {', '.join(report_files())} have the same bytes")


def check_whole(args):
    """The whole experiment in each way that was asked for: all hashes of experiments/README.md."""
    def say(line):
        print(line, flush=True)
        if args.log:
            with args.log.open("a") as file:
                file.write(line + "\n")

    for how in args.whole or WAYS:
        with tempfile.TemporaryDirectory() as folder:
            lab = Experiment(args.ostro, pathlib.Path(folder))
            begun, spent = time.monotonic(), os.times()
            if how == "kills":
                check_many_kills(lab, True, say)
            else:
                words, variables = WAYS[how]
                done = lab.start("lab", "run", "tootsie_mini.yaml", *words, **variables)
                check(done.returncode == 0, done.stdout + done.stderr[-2000:])
                found = check_products(lab, True, how, done.stdout)
                used = os.times()
                say(f"{how}: one command, from drawn HTML to report and pages, in {time.monotonic() - begun:.0f} s, "
                    f"{used.children_user + used.children_system - spent.children_user - spent.children_system:.0f} s of CPU time: {found}")
            if how in ("plain", "kills"):
                check_run(lab, say)
            if how == "plain":
                check_elsewhere(lab, pathlib.Path(folder), say)
            if len(report_files()) == 1:
                say("NOT RUN: HTML and PDF: neither .venv nor python3 has Typst")


def check_states(lab):
    """A state of an earlier phase is evaluated with the model of that phase: what later phases change of it does not count."""
    losses = {}
    rope = ", model.rope: {type: llama3, theta: 500000, factor: 8, original_max_position_embeddings: 8192}"
    for name, more in (("one_rope", ""), ("two_ropes", rope)):
        plan = SMALL[:SMALL.index("  side:")].replace("lab: small", f"lab: {name}").replace("optimizer.decay: 1.0", f"optimizer.decay: 1.0{more}")
        (lab.top / "states.yaml").write_text(plan + "  kept: {eval: {of: $base, at: kept}}\n")
        done = lab.start("lab", "run", "states.yaml")
        check(done.returncode == 0, done.stdout + done.stderr[-2000:])
        found, = (lab.top / f"{name}.lab/out").glob("*/evaluation.json")
        evaluation = json.loads(found.read_text())
        losses[name] = {one["step"]: one["loss"] for one in (*evaluation["earlier"], evaluation)}
    one, two = losses["one_rope"], losses["two_ropes"]
    check(sorted(one) == sorted(two) and 4 in one and 6 in one, f"states of steps {sorted(one)} and {sorted(two)}")
    check(one[4] == two[4], f"the state of the first phase, evaluated before the second rope: {one[4]}, and behind it: {two[4]}")
    check(one[6] != two[6], "control: the second rope changes no loss")
    print("states of a training in phases are evaluated with the models of their phases")


def check_errors(lab):
    def error(old, new, wanted):
        check(SMALL.count(old) == 1, f"the plan has {SMALL.count(old)} times {old!r}")
        (lab.top / "small.yaml").write_text(SMALL.replace(old, new))
        done = lab.start("lab", "run", "small.yaml")
        check(done.returncode != 0 and wanted in done.stdout + done.stderr, f"{new!r}: said\n{done.stdout}{done.stderr}\nwithout {wanted!r}")

    error("to: 6,", "to: 4,", "step base: phase two: to: expected the step after which it ends, above 4")
    error("workers: 2", "worker: 2", 'phase one: unknown key "worker"; the nearest is "workers"')
    error("name: two", "name: one", "phases: one is there twice")
    error("{optimizer.warmup: 0.5}", "{trainer.num_train_steps: 9}", "set: trainer.num_train_steps follows from the phases")
    error("data: {papers: $papers}", "data: {web: $papers}", "phases: data: web is there already")
    error("data: {web: $web}", "data: $web", "is added to the map that the training has")
    error("set: {data.train_weights: {web: 1}}", "set: {data.train_weights: {web: 1, papers: 1}}",
          'data.train_weights: there is no component "papers"; the nearest is "web"')
    error("held_out: $papers_held, tokenizer: $words", "held_out: $papers_held, tokenizer: $others",
          "are different tokenizers; a training has one")
    error("kind: papers, documents: 40", "kind: poems, documents: 40", "kind is poems: use one of web, code, maths, papers, tasks")
    # The folder holds a run, and neither step is that one.
    _, run, _ = lines_of(lab.top / "small.lab", "base")
    later = SMALL.replace("batch_size: 4", "batch_size: 10")
    alone = later[:later.index("      phases:")].replace("data.train_weights: {web: 1}", "trainer.num_train_steps: 3") + later[later.index("  score:"):later.index("  cooled:")]
    for plan, wanted in ((later, "its amend after step 4 is another one"), (alone, "has another configuration than the step")):
        (lab.top / "small.yaml").write_text(plan)
        done = lab.start("lab", "adopt", "small.yaml", "base", str(run))
        check(done.returncode == 2 and wanted in done.stderr, f"adopting: {done.returncode}, said\n{done.stdout}{done.stderr}\nwithout {wanted!r}")
    print("mistakes in phases, components and corpora are named")


def check_corpus(lab):
    """The command draws what the step draws; the evaluation texts of the experiment are drawn ones."""
    done = lab.start("lab", "corpus", "tasks", "--documents", "20", "--seed", "99", "--out", "drawn.jsonl")
    check(done.returncode == 0, done.stderr)
    check((lab.top / "drawn.jsonl").read_bytes() == (lab.top / "tootsie_mini/eval.jsonl").read_bytes(), "eval.jsonl is not what is drawn")
    check(hashlib.sha256((lab.top / "drawn.jsonl").read_bytes()).hexdigest() in done.stdout, done.stdout)
    bad = lab.start("lab", "corpus", "web", "--planted", "0.5", "--out", "no.jsonl")
    check(bad.returncode != 0 and "evaluation has no text to plant" in bad.stderr and not (lab.top / "no.jsonl").exists(), bad.stderr)
    print("corpora from the command line")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--whole", nargs="*", choices=sorted(WAYS))
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if args.whole is not None:
        check_whole(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        lab = Experiment(args.ostro, pathlib.Path(folder))
        check_hash(lab)
        check_chain(lab)
        check_table(lab)
        check_controls(lab)
        check_errors(lab)
        check_states(lab)
        check_corpus(lab)
        if seed.full():
            (pathlib.Path(folder) / "kills").mkdir()
            check_many_kills(Experiment(args.ostro, pathlib.Path(folder) / "kills"), False, print)


if __name__ == "__main__":
    main()
