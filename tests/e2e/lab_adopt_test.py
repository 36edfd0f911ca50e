#!/usr/bin/env python3
"""Tests `ostro lab adopt`: a store and a run of another lab become outputs of steps, with the lab hash of whoever did them; others,
damaged and unfinished ones, and steps that cannot be adopted, are errors that leave the lab as it was.

    lab_adopt_test.py --ostro PROGRAM
"""
import argparse
import json
import pathlib
import shutil
import tempfile

from lab_test import PLAN, Lab, check

BEGINNING = PLAN[:PLAN.index("  base:")]
STEP = "base[rate=0.01]"


def entries(lab):
    return [json.loads(line) for line in (lab.top / "small.lab/journal.jsonl").read_text().splitlines()]


PHASED = BEGINNING + """  more_texts: {source: {files: [more], licence: GPL-2.0-only}}
  more: {tokens: {from: $more_texts, held_out: $held, tokenizer: $words}}
  base:
    train:
      config: tiny.yaml
      data: {web: $rows}
      set: {data.train_weights: {web: 1}, optimizer.warmup: 0}
      phases:
        - {name: one, to: 6}
        - {name: two, to: 10, data: {more: $more}, set: {data.train_weights: {web: 1, more: 1}, optimizer.learning_rate: 0.002}}
"""


def check_phased(ostro, top):
    """A run in phases, one of which adds a component: taken by a lab that has the same stores, whose places are then those of the lab."""
    def made(name):
        lab = Lab(ostro, top / name)
        (lab.top / "more").mkdir()
        (lab.top / "more/a.txt").write_text((lab.top / "texts/MPL-1.1.txt").read_text()[:9000])
        lab.write(PHASED)
        return lab

    first = made("phased")
    _, wanted = first.ran()
    run = top / "elsewhere"
    shutil.copytree(first.outputs("train")["base"], run)
    lab = made("takes phased")
    lab.write(PHASED[:PHASED.index("  base:")])
    lab.run()
    (first.top).rename(top / "moved away")  # its stores are not looked at
    for old, new, error in (("to: 6", "to: 5", "trainer.num_train_steps is 6 there and 5 here"), ("learning_rate: 0.002", "learning_rate: 0.003", "its amend after step 6 is another one: optimizer.learning_rate"),
                            ("  base:", "  other_texts: {source: {files: [texts/GPL-2.txt], licence: GPL-2.0-only}}\n  other: {tokens: {from: $other_texts, held_out: $held, tokenizer: $words}}\n  base:",
                             "the hash of its data")):
        plan = PHASED.replace(old, new)
        if old == "  base:":
            plan = plan.replace("data: {more: $more}", "data: {more: $other}")
            lab.write(plan[:plan.index("  base:")])
            lab.run()
        lab.write(plan)
        done = lab.start("adopt", "plan.yaml", "base", str(run))
        check(done.returncode == 2 and error in done.stderr, f"{new}: {done.returncode} {done.stdout}{done.stderr}")
    lab.write(PHASED)
    done = lab.start("adopt", "plan.yaml", "base", str(run), "--sample", "3")
    check(done.returncode == 0 and " of 10 replayed, drawn by " in done.stdout, f"{done.stdout}{done.stderr}")
    text = (lab.outputs("train")["base"] / "config.yaml").read_text()
    check("takes phased" in text or "phased/" not in text, f"places of the other lab: {text}")
    ran, lab_hash = lab.ran()
    check("base" not in ran and lab_hash == wanted, f"{ran} {lab_hash} {wanted}")
    check(lab.ran("--audit", "1", "--check", "full")[1] == wanted, "an audit of a run in phases that was adopted")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-adopt-") as folder:
        top = pathlib.Path(folder)
        lab = Lab(args.ostro, top / "first")
        _, wanted = lab.ran()
        runs, store = lab.outputs("train"), lab.outputs("tokens")["rows"]
        other = Lab(args.ostro, top / "second")
        other.write(BEGINNING[:BEGINNING.index("  rows:")])
        other.run()

        def adopt(step, place, *words, error=None):
            before = other.top / "small.lab"
            outputs, journal = sorted((before / "out").rglob("*")), (before / "journal.jsonl").read_bytes()
            done = other.start("adopt", "plan.yaml", step, str(place), *words)
            if error is None:
                check(done.returncode == 0, f"{step}: {done.stdout}{done.stderr}")
                return done.stdout
            check(done.returncode in (1, 2) and error in done.stderr, f"{step}: {done.returncode}, not: {error}\n{done.stderr}")
            check((before / "journal.jsonl").read_bytes() == journal, f"{error}: the journal")
            check(sorted((before / "out").rglob("*")) == outputs, f"{error}: the outputs")
            return done.stderr

        other.write(PLAN)
        adopt(STEP, runs[STEP], error="needs rows, which is not done")
        # A store with a byte that was changed.
        damaged = top / "damaged"
        shutil.copytree(store, damaged)
        chunk = max((p for p in damaged.rglob("*") if p.is_file() and "input_ids/data" in str(p)), key=lambda p: p.stat().st_size)
        data = bytearray(chunk.read_bytes())
        data[len(data) // 2] ^= 1
        chunk.write_bytes(data)
        adopt("rows", damaged, error=str(chunk.relative_to(damaged))[:20])
        adopt("words", store, error="is of kind tokenizer; runs (train) and token stores (tokens) can be adopted")
        adopt("row", store, error="the plan has no step \"row\"")
        adopt("rows", top, error="ledger.json")
        out = adopt("rows", store)
        check("all arrays read, and of 3 documents these encoded again: " in out, out)
        adopt("rows", store, error="done: ")
        # A run with another rate, and one that did not come to its end.
        adopt(STEP, runs["base[rate=0.001]"], error="has another configuration than the step: optimizer.learning_rate")
        short = top / "short"
        shutil.copytree(runs[STEP], short)
        lines = (short / "chain.jsonl").read_text().splitlines(True)
        last = max(i for i, line in enumerate(lines) if json.loads(line).get("kind") == "step")
        (short / "chain.jsonl").write_text("".join(lines[:last]))
        adopt(STEP, short, error="its last step is 11 there, and 12 is what the step is to have")
        # Words of commands that watched it elsewhere stay there: a lab that has them could not be published.
        watched = top / "watched"
        shutil.copytree(runs[STEP], watched)
        text = (watched / "config.yaml").read_text()
        check("alert_command: []" in text, text)
        (watched / "config.yaml").write_text(text.replace("alert_command: []", 'alert_command: [curl, "https://hooks/SECRET"]'))
        out = adopt(STEP, watched, "--sample", "2")
        check(" of 12 replayed, drawn by " in out, out)
        adopted = [e for e in entries(other) if e["kind"] == "adopted"]
        check([e["step"] for e in adopted] == ["rows", STEP] and adopted[1]["verified"] in out, adopted)
        check("it was adopted, and a part of it verified" in other.start("why", "plan.yaml", STEP).stdout, "why")
        ran, lab_hash = other.ran()
        check(STEP not in ran and "rows" not in ran and "base[rate=0.001]" in ran and lab_hash == wanted, f"{ran} {lab_hash} {wanted}")
        check(other.ran("--audit", "1", "--check", "full")[1] == wanted, "an audit of what was adopted")
        done = other.start("publish", "plan.yaml", "--out", "published")
        check(done.returncode == 0, f"publishing what was adopted: {done.stdout}{done.stderr}")
        for folder in ("small.lab", "published"):
            found = [str(p) for p in (other.top / folder).rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()]
            check(not found, f"words of a command: {found}")
        check_phased(args.ostro, top)
    print("equal: what was adopted has the lab hash of what was done")


if __name__ == "__main__":
    main()
