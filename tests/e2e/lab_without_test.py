#!/usr/bin/env python3
"""Tests `ostro data find` and `ostro lab without` from the command line: places of documents beside those that `ostro data
batch --explain` names, step by step; a run without a planted text beside runs without its controls and beside a run from step 0 that
lacks it; a document that is never read, whose absence changes no state; what it says beforehand that it takes; a kill; and what is refused, among
it documents without which a batch has no target.

    lab_without_test.py --ostro PROGRAM [--log FILE]

In full a planted text that is seen once has place 1 beside 20 controls, and a drawn document whatever place it has; and the time that was said
beforehand is within 25 % of what a larger run takes. Both are written to the log. The last needs a quiet machine.
"""
import argparse
import json
import pathlib
import random
import re
import sys
import tempfile
import time

from program import Program, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

CONFIG = """
data: {train_urls: [a.jsonl, b.jsonl], validation_urls: [held.txt], tokenizer: tokenizer.json, cache_dir: cache}
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {seed: 4, id: base, log_dir: runs, mp: f32, train_batch_size: 4, num_train_steps: 60, steps_per_eval: 30,
          checkpointer: {keep: [{every: 10}]}}
numerics: {leaf_examples: 2}
optimizer: {learning_rate: 0.01}
"""
STEPS, PLANTED = 60, "a.jsonl:20"


def write_texts(folder):
    """Documents of 40 words each, of which one is unlike all others, and more texts than 60 steps read."""
    words = pathlib.Path("/usr/share/common-licenses/GPL-3").read_text().split()
    texts = [" ".join(words[i:i + 40]) for i in range(0, 5200, 40)]
    texts.insert(19, "zebra quince 7731 volcano; xylophone, jukebox! " * 5)
    for name, part in (("a.jsonl", texts[:40]), ("b.jsonl", texts[40:])):
        (folder / name).write_text("".join(json.dumps({"text": text}) + "\n" for text in part))
    (folder / "held.txt").write_text(" ".join(words[-400:]))
    (folder / "config.yaml").write_text(CONFIG)


def scanned(program):
    """Places of all documents: (step, row of the batch, position) of each token."""
    uses = {}
    for step in range(STEPS):
        batch = json.loads(program.run("data", "batch", "--config", "config.yaml", "--step", str(step), "--explain", "--json"))
        for row, sequence in enumerate(batch["sequences"]):
            for part in sequence["source"]["documents"]:
                places = uses.setdefault(f"{part['file']}:{part['document']}", set())
                places |= {(step, row, position) for position in range(part["begin"], part["end"])}
    return uses


def found(program, document, *words):
    rows = json.loads(program.run("data", "find", *words, "--document", document, "--json"))["rows"]
    return {(use["step"], use["row"], position) for row in rows for use in row["uses"] for position in range(*use["positions"])}


def check_places(program):
    uses = scanned(program)
    names = [f"{file}:{n + 1}" for file in ("a.jsonl", "b.jsonl")
             for n in range(len((program.folder / file).read_text().splitlines()))]
    never = [name for name in names if name not in uses]
    for name in [*random.Random(2).sample(names, 20), PLANTED, never[0]]:
        places = found(program, name, "runs/base")
        check(places == uses.get(name, set()), f"{name}: found {sorted(places)}, the batches have {sorted(uses.get(name, set()))}")
    for name in random.Random(1).sample(names, 3):
        check(found(program, name, "--config", "config.yaml") == uses.get(name, set()), f"{name}: another answer for --config")
        early = {place for place in uses.get(name, set()) if place[0] < 30}
        check(found(program, name, "runs/base", "--steps", "0:30") == early, f"{name}: other places in steps 0 to 29")
    other = next(name for name in names if uses.get(name) and uses[name] != uses.get(PLANTED))
    check(found(program, other, "runs/base") != uses.get(PLANTED), "control: two documents have the same places")
    check(f"{names[0]}" not in program.run("data", "find", "runs/base", "--document", PLANTED), "another document is named")
    return uses, never


def states(program, run):
    """The name of the state after each step, by the chain."""
    lines = map(json.loads, (program.folder / run / "chain.jsonl").read_text().splitlines())
    return {entry["step"]: entry["state"] for entry in lines if "step" in entry and "state" in entry}


def check_effect(program, uses):
    """The planted text weighs more than its controls, and the states without it are those of a run from step 0."""
    first = min(step for step, _, _ in uses[PLANTED])
    words = ("lab", "without", "runs/base", "--document", PLANTED, "--control", "2", "--text", "held.txt")
    said = program.run(*words, "--dry_run")
    steps_said = steps_of(said)
    check(f"first in step {first}" in said and not (program.folder / "runs/base.without").exists(), said)
    # Stopped in the middle of the first run, by what a full disk or a kill may do at any time.
    program.run(*words, code=-9, OSTRO_FAILPOINT="chain_append:9")
    said = program.run(*words)
    report = json.loads((program.folder / "runs/base.without/effect.json").read_text())
    check(report == json.loads(program.run(*words, "--json").split("\n")[0]), "the same command gives another answer")
    mine, controls = report["without"], report["controls"]
    check(mine["first_use"] == first and mine["begins"] == first // 10 * 10, mine)
    steps_done = sum(STEPS - run["begins"] for run in (mine, *controls))
    check(steps_said == steps_done, f"{steps_said} steps were said beforehand, and {steps_done} done")
    check(len(controls) == 2 and PLANTED not in [c["documents"][0] for c in controls], controls)
    on_itself = [float.fromhex(run["on_itself"]) for run in (mine, *controls)]
    check(on_itself[0] == max(on_itself) and len(set(on_itself)) == 3, f"the planted text has not place 1: {on_itself}")
    check(re.search(r"place 1 of 3", said), said)
    without = states(program, "runs/base.without/without")
    program.run("train", "--config", "config.yaml", "--trainer.id", "lacks", "--data.without", json.dumps([PLANTED]))
    lacks, base = states(program, "runs/lacks"), states(program, "runs/base")
    check(without == {step: lacks[step] for step in without} and max(without) == STEPS, "the fork's states are others")
    check(lacks[first] == base[first] and lacks[first + 1] != base[first + 1], "control: the document changed nothing")
    check("equal: steps" in program.run("verify", "runs/base.without/without"), "verify")


def steps_of(said):
    return int(re.search(r"^(\d+) steps in ", said, re.M)[1])


def gflop_of(said):
    return float(re.search(r", ([\d.e+-]+) GFLOP", said)[1])


def check_price(program):
    """What is said beforehand has the measuring in it: more text in each of four states is more to compute."""
    words = ("lab", "without", "runs/base", "--document", PLANTED, "--control", "2", "--dry_run")
    said, more = program.run(*words), program.run(*words, "--text", "held.txt")
    check("in 3 runs, 4 states measured" in said and steps_of(said) == steps_of(more), said)
    check(gflop_of(more) > gflop_of(said), f"a text that is measured, too, costs nothing: {said}{more}")


def check_never(program, never):
    """Documents that no batch has are left out from step 0 on: the states are those of the run, and its hash is another one."""
    program.run("train", "--config", "config.yaml", "--trainer.id", "never", "--data.without", json.dumps(never[:3]))
    check(states(program, "runs/never") == states(program, "runs/base"), f"without {never[:3]}, which are never read, states are others")
    hashes = [json.loads((program.folder / f"runs/{name}/chain.jsonl").read_text().splitlines()[-1])["h"] for name in ("never", "base")]
    check(hashes[0] != hashes[1], "the chain does not say what was left out")
    check("equal: steps" in program.run("verify", "runs/never"), "verify")


def check_cost(program, log):
    """The time that is said beforehand, beside what it takes: a line of the log, since other programs use the machine, too."""
    larger = ("--config", "config.yaml", "--trainer.id", "larger", "--model.hidden_dim", "128", "--model.intermediate_dim", "384", "--model.num_layers", "4",
              "--trainer.train_batch_size", "16", "--trainer.num_train_steps", "240")
    program.run("train", *larger)
    words = ("lab", "without", "runs/larger", "--document", PLANTED, "--control", "2")
    said = program.run(*words, "--dry_run")
    amount, unit = re.search(r"about ([\d.]+) (s|min)", said).groups()
    foreseen = float(amount) * (60 if unit == "min" else 1)
    begin = time.monotonic()
    program.run(*words)
    took = time.monotonic() - begin
    write_log(log, f"lab without: {steps_of(said)} steps, said beforehand {foreseen:.0f} s, took {took:.0f} s: {100 * (foreseen / took - 1):+.0f} %")
    check(abs(foreseen / took - 1) <= 0.25, f"said beforehand {foreseen} s, took {took} s")


def write_log(log, line):
    print(line, flush=True)
    if log:
        with log.open("a") as file:
            file.write(line + "\n")


def check_targets(program, uses):
    """Documents without which a batch has no target are refused before the first step, with the step; all but one of them are not."""
    of_step = sorted(name for name, places in uses.items() if any(step == 7 for step, _, _ in places))
    check(len(of_step) > 1, of_step)
    words = ("lab", "without", "runs/base", "--out", "none", "--document")
    said = program.run(*words, *of_step, code=2)
    check("error: " in said and "the batch of step 7 (trainer.seed 4) has no token that counts" in said and "steps in" not in said, said)
    check("has no token that counts" in program.run(*words, *of_step, "--dry_run", code=2), "a dry run")
    check("has no token that counts" in program.run(*words, *of_step, "--as", "blank", code=2), "blank")
    check(not (program.folder / "none").exists(), "a run was begun")
    check("steps in 1 run" in program.run(*words, *of_step[1:], "--dry_run"), "control: a target is left")


def check_twenty(ostro, log):
    """A longer run, with 20 documents of like length and time for each: the planted text outranks them all; a drawn one has some place."""
    with tempfile.TemporaryDirectory(prefix="ostro-lab-twenty-") as folder:
        program = Program(ostro, folder)
        write_texts(program.folder)
        words = " ".join(pathlib.Path("/usr/share/common-licenses", name).read_text() for name in ("GPL-3", "GPL-2", "LGPL-2.1", "GFDL-1.3", "MPL-2.0")).split()
        texts = [" ".join(words[i:i + 40]) for i in range(0, len(words) - 40, 40)]
        planted = "zebra quince 7731 volcano; xylophone, jukebox! " * 3
        texts.insert(100, planted)
        (program.folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (program.folder / "config.yaml").write_text(CONFIG.replace("a.jsonl, b.jsonl", "a.jsonl").replace("num_train_steps: 60", "num_train_steps: 300"))
        program.run("tokenizer", "train", "--input", "a.jsonl", "--vocab_size", "400", "--out", "tokenizer.json")
        program.run("train", "--config", "config.yaml")
        rng, name = random.Random(f"{seed.seed()} drawn"), "a.jsonl:101"
        drawn = [f"a.jsonl:{n}" for n in rng.sample([n for n in range(1, len(texts) + 1) if n != 101], 20)]
        for what, names in (("a planted text", [name]), ("a drawn document", drawn)):
            for one in names:
                rows = json.loads(program.run("data", "find", "runs/base", "--document", one, "--json"))["rows"]
                # Seen once: its sequences are read in one epoch alone, each in a step of its own.
                if {use["epoch"] for row in rows for use in row["uses"]} != {0}:
                    continue
                if "in 21 runs" in program.run("lab", "without", "runs/base", "--document", one, "--control", "20", "--out", "tried", "--dry_run"):
                    break
            else:
                check(False, f"no document of {names} has 20 controls")
            said = program.run("lab", "without", "runs/base", "--document", one, "--control", "20", "--out", f"without-{one[8:]}")
            places = [line.strip() for line in said.splitlines() if re.search(r"place \d+ of 21$", line)]
            check(len(places) >= 2, said)
            for line in places:
                write_log(log, f"lab without: {what}, {one}, seed {seed.seed()}: {line}")
            report = json.loads((program.folder / f"without-{one[8:]}/effect.json").read_text())
            on_itself = [float.fromhex(run["on_itself"]) for run in (report["without"], *report["controls"])]
            check(len(on_itself) == 21, f"{len(on_itself)} runs")
            if what == "a planted text":
                check(on_itself[0] == max(on_itself) and on_itself.count(on_itself[0]) == 1, f"it has not place 1: {on_itself}")


def check_refused(program, never):
    def refused(error, *words, code=2):
        said = program.run(*words, code=code)
        check(error in said, f"{' '.join(words)}: {said}")
    refused("FILE:N", "data", "find", "runs/base", "--document", "a.jsonl")
    refused("a.jsonl", "data", "find", "runs/base", "--document", "a.jsonl:999")
    refused("c.jsonl", "data", "find", "runs/base", "--document", "c.jsonl:1")
    refused("--steps 9:3: use A:B", "data", "find", "runs/base", "--document", PLANTED, "--steps", "9:3")
    refused("use one of --document FILE:N and --row N", "data", "find", "runs/base")
    refused("use one of --document FILE:N and --sample N", "lab", "without", "runs/base")
    refused("use one of --document FILE:N and --sample N", "lab", "without", "runs/base", "--document", PLANTED, "--sample", "2")
    refused("leave out --control and --seeds", "lab", "without", "runs/base", "--sample", "2", "--seeds", "1")
    said = program.run("lab", "without", "runs/base", "--sample", "3", "--dry_run")
    check("without (mask), each alone" in said and said.count("places") + said.count(" place,") >= 3, said)
    refused("use mask, blank or rebuild", "lab", "without", "runs/base", "--document", PLANTED, "--as", "drop")
    refused("which is only read", "lab", "without", "runs/base", "--document", PLANTED, "--out", "runs/base/x")
    refused(never[0], "lab", "without", "runs/base", "--document", never[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-without-") as folder:
        program = Program(args.ostro, folder)
        write_texts(program.folder)
        program.run("tokenizer", "train", "--input", "a.jsonl", "--vocab_size", "300", "--out", "tokenizer.json")
        program.run("train", "--config", "config.yaml")
        uses, never = check_places(program)
        check(PLANTED in uses, "the planted text is never read")
        check_price(program)
        check_effect(program, uses)
        check_never(program, never)
        check_refused(program, never)
        check_targets(program, uses)
        if seed.full():
            check_twenty(args.ostro, args.log)
            check_cost(program, args.log)
    print(f"equal: {len(uses)} documents' places; the states without a document, from a fork and from step 0")


if __name__ == "__main__":
    main()
