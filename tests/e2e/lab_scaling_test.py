#!/usr/bin/env python3
"""Tests scaling plans of `ostro lab` from the command line: the target waits for its registered forecast; the fit and the
verdict, computed again by Python from the record; a fit of other runs is another forecast; a forecast that is registered
after its target is late; frauds, by somebody who computes all hashes of registry and journal again; plans with mistakes.

    lab_scaling_test.py --ostro PROGRAM [--whole [--log FILE]]

--whole makes experiments/isoflop_mini.yaml, its 15 runs and the target, and compares with the hashes of experiments/README.md. Else
that plan is only read.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time

from lab_register_test import Forger, read_lines
from lab_test import Lab
from program import check

CONFIG = """
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {mp: f32, train_batch_size: 2, steps_per_eval: 1000}
optimizer: {learning_rate: 0.01}
numerics: {leaf_examples: 2}
"""
PLAN = """
lab: small
question: Does the fit hold?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 270}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
scaling:
  law:
    data: $rows
    config: tiny.yaml
    sizes:
      s: {model.hidden_dim: 4, model.intermediate_dim: 8}
      m: {model.hidden_dim: 8, model.intermediate_dim: 16}
      l: {model.hidden_dim: 16, model.intermediate_dim: 32}
    budgets: [8e7, 1.6e8]
    target: {size: l, flops: 4.8e8}
figures: {curves: "SELECT series, parameters, loss FROM fit_curves"}
"""
MISTAKES = {  # what is changed in the plan: what the error says
    ("[8e7, 1.6e8]\n    target: {size: l, flops: 4.8e8}", "[8e37, 1e38]"): "steps of this model; give it fewer, or take a larger size",
    ("8e7, 1.6e8", "8e7, 1e40"): "expected a number of operations above 0",
    ("8e7, 1.6e8", "8e6, 1.6e8"): "give it at least that, or leave the size out of this budget",
    ("4.8e8", "1.6e8"): "is not larger than the budget 1_6e8",
    ("budgets: [8e7, 1.6e8]", "budgets: [8e7]"): "has 3 pairs of a size and a budget",
    ("m: {model.hidden_dim: 8, model.intermediate_dim: 16}", "m: {model.hidden_dim: 4, model.intermediate_dim: 8}"):
        "have 2 different numbers of parameters",
    ("config: tiny.yaml", "config: tiny.yaml\n    set: {trainer.num_train_steps: 9}"): "follows from flops",
    ("config: tiny.yaml", "config: tiny.yaml\n    parameters: some"): "use all or without_embeddings",
    ("model.hidden_dim: 4", "model.hidden_dimm: 4"): "hidden_dimm",
}


def fitted(row, n, d):
    return row["floor"] + row["size_factor"] / n ** row["size_exponent"] + row["data_factor"] / d ** row["data_exponent"]


def record(lab):
    done = lab.start("record", "plan.yaml", "--out", "r.sqlite")
    check(done.returncode == 0, done.stderr)
    db = sqlite3.connect(lab.top / "r.sqlite")
    db.row_factory = sqlite3.Row
    return db


def check_record(lab):
    db = record(lab)
    fit, = db.execute("SELECT * FROM fits")
    runs = db.execute("SELECT * FROM fit_runs").fetchall()
    check(len(runs) == 6 and fit["runs"] == 6, len(runs))
    for run in runs:
        # D and FLOPs of the run's chain, and its held-out loss.
        steps, = db.execute("SELECT steps FROM runs WHERE run = ?", (run["run"],)).fetchone()
        loss, = db.execute("SELECT loss FROM evaluations WHERE run = ?", (run["run"],)).fetchone()
        check(run["tokens"] == steps * 2 * 32 and run["loss"] == loss, dict(run))
        budget = 1.6e8 if "1_6e8" in run["run"] else 8e7
        check(budget * (1 - 1 / steps) < run["flops"] <= budget, dict(run))
        check(math.isclose(run["fitted"], fitted(fit, run["parameters"], run["tokens"]), rel_tol=1e-12), dict(run))
    squares = math.fsum((run["loss"] - run["fitted"]) ** 2 for run in runs)
    check(math.isclose(squares, fit["objective"], rel_tol=1e-6, abs_tol=1e-15), f"{squares} {fit['objective']}")
    for name, value in (("size_exponent", 1.01), ("data_exponent", 0.99), ("floor", 1.001), ("size_factor", 1.001)):
        other = dict(fit) | {name: fit[name] * value}
        if other[name] != fit[name] and fit["size_factor"] > 0 and fit["data_factor"] > 0:
            check(math.fsum((r["loss"] - fitted(other, r["parameters"], r["tokens"])) ** 2 for r in runs) > squares, name)
    forecast, = db.execute("SELECT * FROM forecasts")
    check(math.isclose(forecast["loss"], fitted(fit, forecast["parameters"], forecast["tokens"]), rel_tol=1e-12), dict(forecast))
    loss, = db.execute("SELECT loss FROM evaluations WHERE run LIKE 'law-target%'").fetchone()
    inside = forecast["low90"] <= loss <= forecast["high90"]
    check(forecast["observed"] == loss and forecast["verdict"] == ("inside" if inside else "outside"), dict(forecast))
    check(forecast["late"] == 0 and forecast["entry"], dict(forecast))
    return forecast


def check_frauds(lab):
    folder = lab.top / "small.lab"
    saved = {name: (folder / name).read_bytes() for name in ("registry.jsonl", "journal.jsonl")}

    def fraud(commit, error):
        forger = Forger(folder, None)
        commit(forger)
        forger.write_registry(True)
        done = lab.start("register", "plan.yaml", "--check")
        check(done.returncode == 1 and error in done.stderr, f"{error}: {done.returncode}\n{done.stdout}{done.stderr}")
        check(lab.start("run", "plan.yaml").returncode == 1, f"{error}: run goes on")
        for name, data in saved.items():
            (folder / name).write_bytes(data)

    def other_forecast(forger):
        forger.registry[2]["content"] = "0" * 64

    def without_forecast(forger):
        del forger.registry[2]
        forger.journal = [e for i, e in enumerate(forger.journal) if i != places(forger)[1]]

    def places(forger):
        return [i for i, e in enumerate(forger.journal) if e["kind"] == "registry"]

    def after_the_target(forger):
        line = forger.journal.pop(places(forger)[1])
        forger.journal.append(line)

    for commit in (other_forecast, without_forecast, after_the_target):
        fraud(commit, "was done before the forecast that it checks, law-forecast, was registered")
    check(lab.start("register", "plan.yaml", "--check").returncode == 0, "the saved files are back")


ROOT = pathlib.Path(__file__).resolve().parents[2]
ISOFLOP = "isoflop_mini.yaml"
ISOFLOP_RUNS = 15


def start_isoflop(ostro, folder, *words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"OSTRO_THREADS": "2"}
    return subprocess.run([str(pathlib.Path(ostro).resolve()), "lab", *words], cwd=folder, env=env, text=True, capture_output=True, check=False)


def check_isoflop_plan(ostro):
    """The plan of the experiment expands into its runs; nothing is made."""
    done = start_isoflop(ostro, ROOT / "experiments", "run", ISOFLOP, "--dry_run")
    runs = [line for line in done.stdout.splitlines() if re.match(r"wait +law-\d+e\d+\[", line)]
    check(done.returncode == 0 and len(runs) == ISOFLOP_RUNS, f"{done.returncode}: {len(runs)} runs in\n{done.stdout}{done.stderr}")
    check(not (ROOT / "experiments/isoflop_mini.lab").exists(), "a dry run made a lab")


def check_isoflop(ostro, log):
    """The whole experiment: fifteen runs, a forecast that is registered, its target; the hashes of experiments/README.md."""
    def say(line):
        print(line, flush=True)
        if log:
            with log.open("a") as file:
                file.write(line + "\n")

    with tempfile.TemporaryDirectory(prefix="ostro-isoflop-") as folder:
        top = pathlib.Path(folder) / "experiments"
        shutil.copytree(ROOT / "experiments", top, ignore=shutil.ignore_patterns("*.lab"))
        begun, spent = time.monotonic(), os.times()
        for words, status in (("run", 1), ("register", 0), ("run", 0)):
            done = start_isoflop(ostro, top, words, ISOFLOP, *(("-j", "2") if words == "run" else ()))
            check(done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        used = os.times()
        say(f"{time.monotonic() - begun:.0f} s, {used.children_user + used.children_system - spent.children_user - spent.children_system:.0f} s of CPU time")
        lines = done.stdout.splitlines()
        db = sqlite3.connect(top / "isoflop_mini.lab/report/record.sqlite")
        db.row_factory = sqlite3.Row
        for row in db.execute("SELECT run, parameters, tokens, flops, loss, fitted FROM fit_runs ORDER BY length(series), series, parameters"):
            say(f"{row['run']:<28} N {row['parameters']:>6.0f}  D {row['tokens']:>7.0f}  FLOPs {row['flops']:.4g}  loss {row['loss']:.4f}  fit {row['fitted']:.4f}")
        fit, = db.execute("SELECT * FROM fits")
        say(f"fit: E {fit['floor']:.4f} ({fit['floor_low90']:.4f} to {fit['floor_high90']:.4f}), a {fit['size_exponent']:.4f} ({fit['size_exponent_low90']:.4f} to "
            f"{fit['size_exponent_high90']:.4f}), b {fit['data_exponent']:.4f} ({fit['data_exponent_low90']:.4f} to {fit['data_exponent_high90']:.4f}), noise {fit['noise']:.4f}")
        for line in lines:
            if line.startswith("forecast "):
                say(line)
        forecast, = db.execute("SELECT * FROM forecasts")
        largest, = db.execute("SELECT max(flops) FROM fit_runs").fetchone()
        check(2.9 < forecast["flops"] / largest < 3.1 and forecast["late"] == 0 and forecast["entry"], dict(forecast))
        check(fit["runs"] == ISOFLOP_RUNS and all(0.02 < fit[name] < 3 for name in ("size_exponent", "data_exponent")), f"an exponent is at the end of the search: {dict(fit)}")
        found = {"lab hash": lines[-1].removeprefix("lab hash: "), "fit": db.execute("SELECT content FROM steps WHERE kind = 'fit'").fetchone()[0],
                 "run hash of the target": db.execute("SELECT hash FROM runs WHERE run LIKE 'law-target%'").fetchone()[0]}
        rows = [f"| isoflop_mini, {name} | `{value}` |" for name, value in found.items()]
        wrong = [row for row in rows if row not in (ROOT / "experiments/README.md").read_text().splitlines()]
        check(not wrong, "experiments/README.md has other rows than\n" + "\n".join(wrong))
        say("\n".join(rows))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if args.whole:
        check_isoflop(args.ostro, args.log)
        return
    check_isoflop_plan(args.ostro)
    with tempfile.TemporaryDirectory(prefix="ostro-lab-scaling-") as folder:
        lab = Lab(args.ostro, pathlib.Path(folder) / "lab")
        (lab.top / "texts/GPL-2.txt").unlink()
        (lab.top / "tiny.yaml").write_text(CONFIG)
        for (old, new), error in MISTAKES.items():
            check(old in PLAN, old)
            lab.write(PLAN.replace(old, new))
            done = lab.start("run", "plan.yaml", "--sanity")
            check(done.returncode != 0 and error in done.stderr, f"{new}: {done.returncode}\n{done.stdout}{done.stderr}")
        # A sanity run is of valid plans, too, whose small runs are of one length, and whose target then takes no more than they.
        lab.write(PLAN.replace("[8e7, 1.6e8]", "[8e7, 8.2e7]").replace("4.8e8", "8.4e7"))
        lab.run("--sanity")
        lab.write(PLAN)
        lab.run("--sanity")
        done = lab.run(status=1)
        check("checks law-forecast, and the plan is not registered: `ostro lab register plan.yaml` comes first" in done.stderr, done.stderr)
        check("done    law-forecast" in done.stdout and "law-target-eval[seed=1]: needs" in done.stdout, done.stdout)
        dry = next(line for line in lab.run("--dry_run").stdout.splitlines() if " law-target[" in line)
        counted = float(re.search(r"; ([0-9.e+-]+) GFLOP", dry).group(1)) * 1e9
        done = lab.start("register", "plan.yaml")
        check(done.returncode == 0 and "forecast law-forecast: loss " in done.stdout, done.stdout + done.stderr)
        again = lab.start("register", "plan.yaml")
        check("forecast law" not in again.stdout and len(read_lines(lab.top / "small.lab/registry.jsonl")) == 3, again.stdout)
        done = lab.run()
        lines = done.stdout.splitlines()
        forecast = check_record(lab)
        check(abs(counted / forecast["flops"] - 1) < 0.02, f"--dry_run counts {counted}, the forecast {forecast['flops']}")
        check(lines[-2].startswith("forecast law-forecast: loss") and lines[-2].endswith(forecast["verdict"]), lines[-2])
        check(lab.start("report", "plan.yaml").returncode == 0 and lab.start("site", "plan.yaml", "--out", "site").returncode == 0, "report")
        for page in ("small.lab/report/report.html", "site/scaling.html"):
            text = (lab.top / page).read_text()
            check(f"<b>{forecast['verdict']}</b>" in text and text.count("<circle") == 6, page)
        done = lab.start("register", "plan.yaml", "--check")
        check(f", {forecast['verdict']}\n" in done.stdout and "registers the forecast law-forecast" in done.stdout, done.stdout + done.stderr)
        check_frauds(lab)
        # The same plan elsewhere, with two steps at a time: the same hash.
        other = Lab(args.ostro, pathlib.Path(folder) / "other")
        (other.top / "texts/GPL-2.txt").unlink()
        (other.top / "tiny.yaml").write_text(CONFIG)
        other.write(PLAN)
        other.run("-j", "2", status=1)
        other.start("register", "plan.yaml")
        check(other.run("-j", "2").stdout.splitlines()[-1] == lines[-1], "another lab hash elsewhere")
        # Without registry and journal's lines of it, the forecast comes after the target.
        shutil.rmtree(other.top / "small.lab")
        other.write(PLAN.replace("target: {size: l, flops: 4.8e8}", "target: {size: l, flops: 4.9e8}"))
        other.run(status=1)
        other.start("register", "plan.yaml")
        other.run()
        # Another fit is another forecast; its target is done already.
        other.write(PLAN.replace("4.8e8", "4.9e8").replace("    sizes:", "    parameters: without_embeddings\n    sizes:"))
        done = other.run(status=1)
        check("and the plan is not what was registered" in done.stderr, done.stderr)
        done = other.start("register", "plan.yaml")
        check("late: the journal has results of steps that law-forecast uses" in done.stdout, done.stdout + done.stderr)
        check("; late: it was registered after a result" in other.run().stdout, "a late forecast")
        late = record(other).execute("SELECT late FROM forecasts").fetchone()[0]
        entries = [e for e in read_lines(other.top / "small.lab/registry.jsonl") if e["kind"] == "forecast"]
        check(late == 1 and len(entries) == 2 and entries[1]["late"] == ["law-target[seed=1]"], json.dumps(entries))
        # Of two forecasts that are registered before the target the last one counts; whoever takes the other one is late.
        shutil.rmtree(other.top / "small.lab")
        variant = PLAN.replace("    sizes:", "    parameters: without_embeddings\n    sizes:")
        for plan in (variant, PLAN):
            other.write(plan)
            other.run(status=1)
            other.start("register", "plan.yaml")
        other.run()
        row = record(other).execute("SELECT late, registered FROM forecasts").fetchone()
        check(tuple(row) == (0, 2), tuple(row))
        other.write(variant)
        other.start("register", "plan.yaml")
        check("; late: it was registered after a result, or is not the last one before it; 2 forecasts were" in other.run().stdout,
              "another forecast than the last one")
        row = record(other).execute("SELECT late, registered FROM forecasts").fetchone()
        check(tuple(row) == (1, 2), tuple(row))
    print("scaling plans: fit, forecast, registration and check hold")


if __name__ == "__main__":
    main()
