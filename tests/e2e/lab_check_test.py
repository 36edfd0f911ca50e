#!/usr/bin/env python3
"""Tests `ostro lab check` and `ostro lab diff`: a lab that holds; journal, kept plans, registry, sources, outputs, report and pages that were
changed, each named; what only --full sees. Two runs compared: the first step that differs as Python reads it out of the chains,
and why.

    lab_check_test.py --ostro PROGRAM
"""
import argparse
import json
import os
import pathlib
import tempfile

from lab_test import REPORT, TEXT, Lab
from program import check

HYPOTHESIS = """
hypotheses:
  better: {metric: "SELECT name, loss FROM evaluations", supported: "mean > 0", refuted: "mean < 0"}
"""
FIELDS = ("batch", "tokens", "loss", "leaves", "state")


def flipped(data):
    """The same number of bytes, one of them another."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


class Checked:
    def __init__(self, lab):
        self.lab = lab
        self.words = ("check", "plan.yaml", "--site", "site")

    def holds(self, *words):
        done = self.lab.start(*self.words, *words)
        check(done.returncode == 0 and not done.stderr, f"check {words}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout

    def finds(self, path, change, *says, full=False):
        """A file is changed, and put back as it was, with its times."""
        kept, times = path.read_bytes(), os.stat(path)
        changed = change(kept)
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if full:  # the same size and time: it is not read again, but where a page needs it
            done = self.lab.start("check", "plan.yaml")
            check(done.returncode == 0, f"{path}: {done.stderr}")
        done = self.lab.start(*self.words, *(("--full",) if full else ()))
        path.write_bytes(kept)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        check(done.returncode == 1, f"{path}: exit {done.returncode}: {done.stdout}{done.stderr}")
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        check(errors and any(all(word in line for word in (path.name, *says)) for line in errors), f"{path}: expected {says}: {done.stderr}")


def check_tampering(lab):
    checked = Checked(lab)
    said = checked.holds()
    for part in ("journal: ", "plans: 1 expanded plan", "registry: 1 line", "sources: 3 files", "outputs: 10 outputs", "report: ", "site: "):
        check(f"holds: {part}" in said, f"no {part!r} in {said}")
    check("not compared" not in said and "every byte" in checked.holds("--full"), said)
    folder = lab.top / "small.lab"
    run, store = lab.outputs("train")["base[rate=0.01]"], lab.outputs("tokens")["rows"]
    array = next(path for path in sorted(store.rglob("*")) if path.is_file() and path.stat().st_size > 1000 and path.suffix != ".json")
    checked.finds(folder / "journal.jsonl", flipped, "line ")
    checked.finds(next((folder / "plans").glob("*.json")), lambda data: data + b" ", "SHA-256")
    checked.finds(folder / "registry.jsonl", flipped, "line ")
    checked.finds(lab.top / "lab.lock", lambda data: data.replace(b'": "', b'": "0', 1) if b'": "' in data else flipped(data))
    checked.finds(lab.top / "texts/MPL-1.1.txt", flipped, full=True)
    checked.finds(run / "chain.jsonl", lambda data: data + b"\n", "was changed")
    checked.finds(run.with_suffix(".json"), lambda data: data + b" ", "the journal has")
    checked.finds(run.with_suffix(".json"), lambda data: None, "is gone, and ", f"{run.name} is there")
    checked.finds(array, flipped, "was changed", full=True)
    checked.finds(array, lambda data: None, "is gone")
    checked.finds(folder / "report/values.json", lambda data: data.replace(b"0", b"1", 1))
    checked.finds(folder / "report/report.html", lambda data: None)
    checked.finds(lab.top / "site/run-1.html", flipped, "another file than the lab gives")
    checked.finds(lab.top / "site/index.html", lambda data: None, "is missing")
    # A list alone says that its folder was removed; without both, an output is only not there any more.
    store.rename(lab.top / "away")
    done = lab.start("check", "plan.yaml")
    check(done.returncode == 1 and f"{store.name}: is gone, and " in done.stderr, f"a list without its folder: {done.stdout}{done.stderr}")
    store.with_suffix(".json").rename(lab.top / "away.json")
    done = lab.start("check", "plan.yaml")
    check(done.returncode == 0 and "1 output: not there any more" in done.stdout, f"without folder and list: {done.stdout}{done.stderr}")
    (lab.top / "away").rename(store)
    (lab.top / "away.json").rename(store.with_suffix(".json"))
    checked.holds("--full")
    done = lab.start("check", "plan.yaml", "--measured")
    check(done.returncode == 2 and "add --site DIR" in done.stderr, done.stderr)


def steps_of(run):
    return {e["step"]: e for e in map(json.loads, (run / "chain.jsonl").read_text().splitlines()) if e["kind"] == "step"}


def check_diff(lab):
    runs = lab.outputs("train") | lab.outputs("fork")

    def diff(one, two, *words, code=1):
        done = lab.start("diff", one, two, *words)
        check(done.returncode == code, f"diff {one} {two}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    for one, two, option in (("base[rate=0.001]", "base[rate=0.01]", "optimizer.learning_rate (0.001, 0.01)"), ("base[rate=0.001]", "cool[rate=0.001]", "optimizer.decay")):
        a, b = steps_of(runs[one]), steps_of(runs[two])
        first = next(s for s in sorted(a.keys() & b.keys()) if any(a[s][k] != b[s][k] for k in FIELDS))
        found = json.loads(diff(one, two, "--lab", "plan.yaml", "--json"))
        check(found["first_different_step"] == first and found["common_steps"] == sum(s <= first for s in a.keys() & b.keys()), found)
        check(found["fields"] == [k for k in FIELDS if a[first][k] != b[first][k]], found["fields"])
        check(any(option in reason for reason in found["why"]), found["why"])
        # The folders of the runs, outside of the lab, say the same.
        paths = [str(runs[name].relative_to(lab.top)) for name in (one, two)]
        text = diff(*paths)
        check(f"is step {first}: " in text and option in text, text)
    check("Equal: all 12 steps" in diff("base[rate=0.01]", "base[rate=0.01]", "--lab", "plan.yaml", code=0), "a run and itself")
    check('the nearest is "base[rate=0.01]"' in diff("base[rate=0.01", "base[rate=0.01]", "--lab", "plan.yaml"), "an unknown step")
    check("makes no run" in diff("rows", "base[rate=0.01]", "--lab", "plan.yaml", code=2), "a step without a chain")
    broken = lab.top / "broken"
    broken.mkdir()
    (broken / "chain.jsonl").write_bytes(flipped((runs["base[rate=0.01]"] / "chain.jsonl").read_bytes()))
    check("chain.jsonl: line" in diff("broken", str(runs["base[rate=0.01]"])), "a damaged chain")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-check-") as folder:
        lab = Lab(args.ostro, pathlib.Path(folder) / "lab")
        lab.write(REPORT + HYPOTHESIS)
        (lab.top / "report.txt").write_text(TEXT)
        done = lab.start("check", "plan.yaml")
        check(done.returncode == 1 and "nothing was done yet" in done.stderr, done.stderr)
        for words in (("register", "plan.yaml"), ("run", "plan.yaml"), ("report", "plan.yaml"), ("site", "plan.yaml", "--out", "site")):
            done = lab.start(*words)
            check(done.returncode == 0, f"{words}: {done.stderr}")
        check_tampering(lab)
        check_diff(lab)
    print("found: every change of a lab's files; and where two runs part")


if __name__ == "__main__":
    main()
