#!/usr/bin/env python3
"""Tests the registration of `ostro lab` from the command line: steps that wait for it; seeds and verdict, computed again by
Python's hashlib, sqlite3 and math.fsum; changes, late ones too; and frauds, by somebody who computes all hashes of the
registry, and of the journal, again.

    lab_register_test.py --ostro PROGRAM
"""
import argparse
import copy
import hashlib
import json
import math
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

from lab_test import CONFIG, Lab, Texts
from program import check

PLAN = """
lab: small
question: Is the larger rate better?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 270}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01], seed: registration x 3}
    train: {data: $rows, config: tiny.yaml, set: {optimizer.learning_rate: $rate, trainer.seed: $seed}}
  score: {eval: {of: $base}}
hypotheses:
  faster:
    metric: "SELECT a.name, a.loss - b.loss FROM evaluations a JOIN evaluations b ON b.name = replace(a.name, '0.001', '0.01') WHERE a.name LIKE '%0.001%'"
    predict: {low: 0, high: 9, chance: 0.8}
    supported: "low95 > 0"
    refuted: "high95 < 0"
  nothing:
    metric: "SELECT name, nullif(loss, loss) FROM evaluations"
    supported: "mean > 0"
    refuted: "mean <= 0"
  empty: {metric: "SELECT name, loss FROM evaluations WHERE loss < 0", supported: "mean > 0", refuted: "mean <= 0"}
  twice: {metric: "SELECT substr(name, 1, 5), loss FROM evaluations", supported: "mean > 0", refuted: "mean <= 0"}
report: report.txt
"""
STORES = """
lab: small
question: How many tokens are there?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 270}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
hypotheses:
  more: {metric: "SELECT name, tokens FROM stores WHERE split = 'train'", predict: {low: 1, high: 1e9, chance: 0.5}, supported: "mean > 1", refuted: "mean <= 1"}
  fewer: {metric: "SELECT name, tokens FROM stores WHERE split = 'train'", predict: {low: 0, high: 1, chance: 0.5}, supported: "mean <= 1", refuted: "mean > 1"}
report: report.txt
"""
QUERY = 'queries: {worst: "SELECT max(loss) FROM evaluations"}\n'
HELD_BACK = [f"{kind}[rate={rate},seed={seed}]" for kind in ("base", "score") for rate in ("0.001", "0.01") for seed in (1, 2, 3)]


def seeds(frozen, beacon, number):
    """The seeds of a registration: `frozen` is the file in plans/."""
    registration = hashlib.sha256(frozen).hexdigest()
    texts = [f"ostro registration seed 1\n{registration}\n{beacon}\n{i}\n" for i in range(1, number + 1)]
    return [int.from_bytes(hashlib.sha256(t.encode()).digest()[:8], "big") >> 1 for t in texts]


def canonical(entry):
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_lines(path):
    """The entries of a chain of lines, without hashes."""
    return [{k: v for k, v in json.loads(line).items() if k != "h"} for line in path.read_text().splitlines()]


def make_key(top, name):
    key = top / f"{name}.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    pem = subprocess.run(["openssl", "pkey", "-in", key, "-pubout"], check=True, capture_output=True, text=True).stdout
    (top / f"{name}.pub").write_text(pem)
    return key, pem


def sign(key, text):
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", file.name],
                              check=True, capture_output=True).stdout.hex()


class Forger:
    """Registry and journal of a lab, which are written again with all hashes and signatures."""

    def __init__(self, folder, key):
        self.folder, self.key = folder, key
        self.registry, self.journal = read_lines(folder / "registry.jsonl"), read_lines(folder / "journal.jsonl")

    def hashed(self, head, entry, key=None):
        entry.pop("h", None)
        if key:
            entry.pop("signature", None)
            entry["signature"] = sign(key, head + canonical(entry))
        entry["h"] = hashlib.sha256((head + canonical(entry)).encode()).hexdigest()
        return entry["h"]

    def write(self, name, entries):
        (self.folder / name).write_text("".join(canonical(e) + "\n" for e in entries))

    def write_registry(self, with_journal=False):
        head = self.hashed("", self.registry[0])
        if not with_journal:
            for entry in self.registry[1:]:
                head = self.hashed(head, entry, self.key)
            self.write("registry.jsonl", self.registry)
            return
        entries, journal_head = iter(self.registry[1:]), ""
        for line in self.journal:
            if line["kind"] == "registry":
                entry = next(entries)
                entry["journal"] = journal_head
                head = line["sha256"] = self.hashed(head, entry, self.key)
            if "registration" in line:
                line["registration"] = head
            journal_head = self.hashed(journal_head, line)
        self.write("registry.jsonl", self.registry)
        self.write("journal.jsonl", self.journal)

    def freeze(self, change):
        """Changes what the first entry registers."""
        before = self.registry[1]["registration"]
        frozen = json.loads((self.folder / f"plans/{before}.json").read_text())
        change(frozen)
        text = canonical(frozen)
        after = hashlib.sha256(text.encode()).hexdigest()
        check(after != before, "the forger changed nothing")
        (self.folder / f"plans/{after}.json").write_text(text)
        for entry in self.registry[1:]:
            if entry.get("registration") == before:
                entry["registration"] = after


def check_frauds(lab, key):
    """Each fraud is named by --check; `run` and `record` stop at some of them."""
    folder = lab.top / "small.lab"
    saved = {name: (folder / name).read_bytes() for name in ("registry.jsonl", "journal.jsonl")}
    saved |= {f"plans/{file.name}": file.read_bytes() for file in (folder / "plans").iterdir()}
    found = []

    def fraud(name, commit, error, *words, seen_by_run=False):
        commit(Forger(folder, key))
        done = lab.start("register", "plan.yaml", "--check", *words)
        check(done.returncode == 1 and error in done.stderr, f"{name}: {done.returncode}\n{done.stdout}{done.stderr}")
        check("Traceback" not in done.stderr, done.stderr)
        if seen_by_run:
            check(lab.start("run", "plan.yaml").returncode == 1, f"{name}: run goes on")
            check(lab.start("record", "plan.yaml", "--out", "x").returncode != 0, f"{name}: record goes on")
        found.append(name)
        shutil.rmtree(folder / "plans")
        (folder / "plans").mkdir()
        for file, data in saved.items():
            (folder / file).write_bytes(data)

    def plain(change):  # lines are moved as they are
        def commit(forger):
            path = forger.folder / "registry.jsonl"
            path.write_text("".join(change(path.read_text().splitlines(True))))
        return commit

    def hashed(change, with_journal=False):
        def commit(forger):
            change(forger)
            forger.write_registry(with_journal)
        return commit

    def remove(forger):
        del forger.registry[2]

    def swap(forger):
        forger.registry[2:4] = reversed(forger.registry[2:4])

    def earlier(forger):
        forger.registry[3]["time"] = "2020-01-01T00:00:00Z"

    def before_the_results(forger):
        """A registration that is put in later and claims its place before the results."""
        entry = copy.deepcopy(forger.registry[1])
        forger.freeze(rule)
        forger.registry.insert(2, entry)

    def metric(frozen):
        frozen["hypotheses"]["faster"]["metric"] += " LIMIT 2"

    def rule(frozen):
        frozen["hypotheses"]["faster"]["supported"] = "mean > 0"

    def step(frozen):
        frozen["configs"]["tiny.yaml"]["trainer"]["num_train_steps"] = 7

    def edit_kept(change):
        def commit(forger):
            path = forger.folder / f"plans/{forger.registry[1]['registration']}.json"
            frozen = json.loads(path.read_text())
            change(frozen)
            path.write_text(canonical(frozen))
        return commit

    def beacon(forger):
        forger.registry[2]["value"] = "another draw"

    def seed(forger):
        for line in forger.journal:
            if line["kind"] == "done" and line["step"].startswith("base"):
                recipe = json.loads(line["recipe"])
                recipe["parameters"]["config"]["trainer"]["seed"] = 7
                line["recipe"] = canonical(recipe)
                line["fingerprint"] = hashlib.sha256(line["recipe"].encode()).hexdigest()

    def forged_to_fit(forger):
        """A run with another seed, in the folder and under the recipe of a run with the right one."""
        line = next(e for e in forger.journal if e["kind"] == "done" and e["step"].startswith("base"))
        chain = folder / "out" / line["fingerprint"][:16] / "chain.jsonl"
        first, *rest = chain.read_text().splitlines(True)
        genesis = {k: v for k, v in json.loads(first).items() if k != "h"}
        genesis["config"]["trainer"]["seed"] = 7
        genesis["h"] = hashlib.sha256(canonical(genesis).encode()).hexdigest()
        saved[str(chain.relative_to(folder))] = chain.read_bytes()
        chain.write_text("".join([canonical(genesis) + "\n", *rest]))

    def not_said(forger):
        line = next(e for e in forger.journal if e["kind"] == "done" and e["step"].startswith("base"))
        del line["registration"]

    other, other_pem = make_key(lab.top, "other")

    def other_key(last_only):
        def commit(forger):
            lines = forger.registry[3:] if last_only else forger.registry[1:]
            for entry in lines:
                entry["public_key"] = other_pem
            if last_only:
                head = forger.hashed("", forger.registry[0])
                for entry in forger.registry[1:]:
                    head = forger.hashed(head, entry, other if entry in lines else key)
                forger.write("registry.jsonl", forger.registry)
            else:
                forger.key = other
                forger.write_registry(True)
        return commit

    fraud("removed", plain(lambda lines: lines[:2] + lines[3:]), "was removed", seen_by_run=True)
    fraud("removed, hashed again", hashed(remove), "was removed")
    fraud("reordered", plain(lambda lines: [*lines[:2], lines[3], lines[2]]), "was reordered")
    fraud("reordered, hashed again", hashed(swap), "was removed or altered")
    fraud("backdated", hashed(earlier, True), "was backdated: it claims the time 2020")
    fraud("put in before the results", hashed(before_the_results), "put in later")
    for name, change in (("metric", metric), ("rule", rule), ("plan", step)):
        fraud(f"{name}: the kept text", edit_kept(change), "was changed: its SHA-256 is")
        fraud(f"{name}: hashed again", hashed(lambda forger, c=change: forger.freeze(c)), "was altered or put in later")
        # All is hashed again: the seeds follow from another registration than those that were run.
        fraud(f"{name}: journal, too", hashed(lambda forger, c=change: forger.freeze(c), True), "follows from the registration")
    fraud("beacon", hashed(beacon, True), "follows from the registration", seen_by_run=True)
    fraud("seed", hashed(seed, True), "the seed trainer.seed is 7")
    fraud("recipe forged to fit", forged_to_fit, "made with another configuration than its recipe in the journal: trainer.seed is 7", seen_by_run=True)
    fraud("a result without its registration", hashed(not_said, True), "does not say under which entry", seen_by_run=True)
    fraud("one entry by another key", other_key(True), "is signed by another key")
    fraud("all by another key", other_key(False), "is signed by another key", "--key", "mine.pub")
    fraud("an altered signature", plain(lambda lines: [*lines[:3], lines[3].replace('"signature":"', '"signature":"00', 1)]), "signature is not one of")
    # A plan that is not what was registered.
    for old, new, error in (("low95 > 0", "mean > 0", "rule faster"), ("a.loss - b.loss", "b.loss - a.loss", "metric faster"),
                            ("x 3", "x 4", "seeds base"), ("trainer.seed: $seed", "trainer.seed: 5", "seeds base"),
                            ("high: 9", "high: 8", "prediction faster"), ("270", "280", "step words"), ("max(loss)", "min(loss)", "query worst")):
        lab.write((PLAN + QUERY).replace(old, new))
        fraud(f"the plan: {new}", lambda forger: None, f"is not what was registered: {error}")
    lab.write(PLAN + QUERY)
    done = lab.start("register", "plan.yaml", "--check", "--key", "mine.pub")
    check(done.returncode == 0 and "hypothesis faster: supported" in done.stdout, done.stdout + done.stderr)
    check("hypothesis nothing: neither, since the metric gives" in done.stdout, done.stdout)
    print(f"found: {len(found)} frauds: {'; '.join(found)}")


def check_outcome(lab, frozen, beacon):
    """Seeds and verdict of the record, computed again."""
    check(lab.start("record", "plan.yaml", "--out", "r.sqlite").returncode == 0, "record")
    db = sqlite3.connect(lab.top / "r.sqlite")
    wanted = seeds(frozen, beacon, 3)
    check(len(set(wanted)) == 3, wanted)
    for run, value in db.execute("SELECT run, value FROM config WHERE path = 'trainer.seed'"):
        check(int(value) == wanted[int(run[-2]) - 1], f"{run} has the seed {value}")
    metric, = db.execute("SELECT metric FROM hypotheses").fetchone()
    values = [value for _, value in db.execute(metric)]
    check(sorted(values) == sorted(v for v, in db.execute("SELECT value FROM metrics")) and len(values) == 3, values)
    mean = math.fsum(values) / 3
    half = round(0.95 * math.sqrt(2 / (1 - 0.95 ** 2)), 6) * math.sqrt(math.fsum((v - mean) * (v - mean) for v in values) / 2 / 3)
    row = db.execute("SELECT n, mean, low95, high95, verdict, held, beacon, late, class FROM hypotheses").fetchone()
    verdict = "supported" if mean - half > 0 else "refuted" if mean + half < 0 else "neither"
    check(row == (3, mean, mean - half, mean + half, verdict, int(0 <= mean <= 9), beacon or None, 0, "recorded"), f"{row}, {verdict}")
    reasons = {name: (verdict, reason) for name, verdict, reason in db.execute("SELECT name, verdict, reason FROM hypotheses")}
    check(reasons["empty"] == ("neither", "the metric gives no rows"), reasons)
    check(reasons["twice"] == ("neither", 'the metric gives two values of "score"'), reasons)
    check(verdict == "supported", f"the test's own hypothesis is {verdict}: its frauds would not matter")


def check_late_report(lab):
    """A report after the late change says so. The changed plan has no results yet, so it is one without its runs' seeds."""
    late = Lab(lab.ostro, lab.top.parent / "late")
    late.write(STORES)
    (late.top / "report.txt").write_text("It is {verdict more}.\n")

    def register(*words, status=0):
        done = late.start("register", "plan.yaml", *words)
        check(done.returncode == status, f"register {words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    register()
    late.run()
    said = late.start("beacon", "plan.yaml", "a draw of tomorrow")
    check(said.returncode == 2 and "without a beacon; one that comes later would be other seeds" in said.stderr, said.stderr)
    check(late.start("report", "plan.yaml").returncode == 0, "report")
    check("late: it was registered" not in Texts((late.top / "small.lab/report/report.html").read_text()).data, "control: nothing is late")
    late.write(STORES.replace("mean > 1", "mean > 2"))
    check("late: " in register(), "a late rule")
    late.run()
    check(late.start("report", "plan.yaml").returncode == 0, "report")
    page = Texts((late.top / "small.lab/report/report.html").read_text())
    check("late: it was registered or changed after a result" in page.data and "It is supported" in page.data.replace("\n", " "), page.data)
    check("Of 2 predictions with the chance 0.5, 1 held." in page.data, page.data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-register-") as folder:
        lab = Lab(args.ostro, pathlib.Path(folder) / "lab")
        (lab.top / "texts/GPL-2.txt").unlink()
        (lab.top / "tiny.yaml").write_text(CONFIG.replace("num_train_steps: 12, steps_per_eval: 6", "num_train_steps: 6, steps_per_eval: 6"))
        (lab.top / "report.txt").write_text("It is {verdict faster}.\n")
        lab.write(PLAN)
        key, _ = make_key(lab.top, "mine")
        registry = lab.top / "small.lab/registry.jsonl"
        # Nothing that the hypothesis uses is done before the plan is registered; the rest is.
        done = lab.run(status=1)
        check("`ostro lab register plan.yaml` comes first" in done.stderr, done.stderr)
        states = {line.split()[1][:-1]: line.split()[0] for line in done.stdout.splitlines()}
        check(states["rows"] == "done" and all(states[step] in ("failed", "wait") for step in HELD_BACK), states)
        lab.run("--sanity")
        dry = lab.run("--dry_run").stdout
        check("trainings to be done: 6" in dry and dry.count("`ostro lab register plan.yaml` comes first") >= 6, dry)
        check(lab.start("report", "plan.yaml").returncode == 2, "a report without results")
        check("is not registered" in lab.start("beacon", "plan.yaml", "x").stderr, "a beacon before the registration")

        def register(*words, status=0, sign_with=key):
            done = lab.start("register", "plan.yaml", *(["--sign", str(sign_with)] if sign_with else []), *words)
            check(done.returncode == status, f"register {words}: {done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        # A kill while the entry is written, and while the journal's line of it is.
        for _ in range(2):
            done = lab.start("register", "plan.yaml", "--sign", str(key), OSTRO_FAILPOINT="journal_append:2")
            check(done.returncode == -9, f"no kill: {done.returncode} {done.stderr}")
        check("registered already" in register() and len(read_lines(registry)) == 2, registry.read_text())
        # An entry that a kill kept out of the journal is checked before it is written there.
        journal = lab.top / "small.lab/journal.jsonl"
        whole = registry.read_text(), journal.read_text()
        journal.write_text("".join(whole[1].splitlines(True)[:-1]))
        forger = Forger(lab.top / "small.lab", make_key(lab.top, "another")[0])
        forger.write_registry()
        for command in (["run"], ["register"]):
            kept = journal.read_text()
            done = lab.start(*command, "plan.yaml")
            check(done.returncode == 1 and "signature is not one of" in done.stderr and journal.read_text() == kept, done.stderr)
        registry.write_text(whole[0])
        check("registered already" in register() and journal.read_text() == whole[1], "the entry is not completed")
        before = registry.read_bytes()
        check("registered already" in register() and registry.read_bytes() == before, "registered twice")
        check("are signed by another key" in register("--withdraw", "faster", "--reason", "x", sign_with=None, status=2), "unsigned")
        frozen = (lab.top / f"small.lab/plans/{json.loads(before.splitlines()[1])['registration']}.json").read_bytes()
        check(lab.start("beacon", "plan.yaml", "draw of today", "--sign", str(key)).returncode == 0, "beacon")
        check(lab.start("beacon", "plan.yaml", "draw of today", "--sign", str(key)).returncode == 0, "the same beacon")
        check("has the beacon" in lab.start("beacon", "plan.yaml", "another", "--sign", str(key)).stderr, "another beacon")
        ran, lab_hash = lab.ran()
        check(ran == HELD_BACK, f"ran {ran}")
        check_outcome(lab, frozen, "draw of today")
        # A query is no hypothesis: it is registered, no seed changes, and nothing runs again.
        lab.write(PLAN + QUERY)
        check("queries are not those" in lab.run(status=1).stderr, "another query")
        out = register()
        check("changed: query worst" in out and "late" not in out, out)
        check(lab.ran() == ([], lab_hash), "a query changed the runs")
        check_outcome(lab, frozen, "draw of today")
        check_frauds(lab, key)
        check(lab.start("report", "plan.yaml").returncode == 0, "report")
        check(lab.start("report", "plan.yaml", "--check").returncode == 0, "report --check")
        page = Texts((lab.top / "small.lab/report/report.html").read_text())
        check("It is supported" in page.data.replace("\n", " ") and "draw of today" in page.data and "held" in page.data, page.data)
        check("Of 1 prediction with the chance 0.8, 1 held." in page.data, page.data)
        check("late: it was registered" not in page.data, "control: nothing is late yet")
        # A metric that is changed after the results is an entry that says so, and asks for new seeds.
        lab.write((PLAN + QUERY).replace("a.loss - b.loss", "2 * (a.loss - b.loss)"))
        check("metric faster" in lab.run(status=1).stderr, "a late change goes on")
        out = register()
        check("changed: metric faster" in out and "late: " in out, out)
        check_late_report(lab)
        dry = lab.run("--dry_run").stdout
        check(dry.count("run     base") == 6, f"new seeds are no new runs: {dry}")
        # Withdrawn, and gone from the plan.
        check("nearest is \"faster\"" in register("--withdraw", "fastr", "--reason", "a typo", status=1), "another name")
        register("--withdraw", "faster", "--reason", "the metric has a mistake")
        check("is withdrawn already" in register("--withdraw", "faster", "--reason", "x", status=2), "withdrawn twice")
        out = register("--check", sign_with=None)
        check("late: the journal had results for faster" in out and "hypothesis faster: withdrawn" in out, out)
        check(lab.start("site", "plan.yaml", "--out", "site").returncode == 0, "site")
        page = Texts((lab.top / "site/hypotheses.html").read_text())
        check("withdrawn" in page.data and "late" in page.data and "metric faster" in page.data, page.data)
        # Known runs under new names: no step of the new names was done before, and the results were known.
        base = PLAN[PLAN.index("  base:"):PLAN.index("hypotheses:")]
        renamed = f"""  again: {{train: {{data: $rows, config: tiny.yaml, set: {{optimizer.learning_rate: 0.001, trainer.seed: {seeds(frozen, "draw of today", 1)[0]}}}}}}}
  marks: {{eval: {{of: $again}}}}
"""
        lab.write(PLAN[:PLAN.index("hypotheses:")].replace(base, renamed) + """hypotheses:
  known: {metric: "SELECT name, loss FROM evaluations", supported: "mean > 0", refuted: "mean <= 0"}
""")
        register()
        check(lab.ran()[0] == [], "known runs ran again")
        check(lab.start("record", "plan.yaml", "--out", "known.sqlite").returncode == 0, "record of known runs")
        row, = sqlite3.connect(lab.top / "known.sqlite").execute("SELECT name, verdict, late FROM hypotheses")
        check(row == ("known", "supported", 1), row)
        # A plan without hypotheses waits for an entry that says so, and its pages still have the registry.
        lab.write(PLAN[:PLAN.index("hypotheses:")].replace(base, renamed))
        check("hypothesis known: is gone" in register(), "a hypothesis that is gone")
        check(lab.ran()[0] == [], "known runs ran again")
        check(lab.start("site", "plan.yaml", "--out", "site").returncode == 0, "site")
        page = Texts((lab.top / "site/hypotheses.html").read_text())
        check("hypothesis known: is gone" in page.data, page.data)
        # What the plan has no step for goes, but for the runs whose chains `register --check` compares.
        runs = [entry["fingerprint"][:16] for entry in read_lines(journal) if entry["kind"] == "done" and entry["step"].startswith("base[")]
        done = lab.start("gc", "plan.yaml")
        check(done.returncode == 0 and "score[" in done.stdout and "base[" not in done.stdout, done.stdout + done.stderr)
        check(len(set(runs)) == 6 and all((lab.top / "small.lab/out" / run / "chain.jsonl").exists() for run in runs), "registered runs")
        # Metrics that cannot be asked.
        for metric, error in (("SELECT loss FROM evaluations", "gives 1 columns"), ("SELECT run, seconds FROM sessions", "a clock or a machine"),
                              ("SELECT name, 1 FROM steps", "reads no result"), ("SELECT name, mean FROM hypotheses", "made of what was registered")):
            lab.write(PLAN.replace(PLAN.split('metric: "')[1].split('"')[0], metric))
            done = lab.start("register", "plan.yaml")
            check(done.returncode == 2 and error in done.stderr and "plan.yaml:" in done.stderr, f"{metric}: {done.stderr}")
    print("equal: seeds and verdict are what Python computes; every fraud was named")


if __name__ == "__main__":
    main()
