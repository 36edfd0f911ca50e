#!/usr/bin/env python3
"""Compares the step quality of a lab with fastText (Debian's package fasttext) on the same texts, by hand: it trains both on paragraphs
of this machine's Python documentation strings (good) and of its C headers' comments (other), scores texts that neither has seen, and
prints both areas under the ROC curve. They must agree within 0.01. A third score, by length, is the control: it must not.

    check_quality.py --ostro PROGRAM [--fasttext PROGRAM]
"""
import argparse
import ast
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

PLAN = """
lab: auc
question: Does quality rank texts as fastText does?
steps:
  good: {source: {files: [good.jsonl], licence: MIT}}
  other: {source: {files: [other.jsonl], licence: MIT}}
  test: {source: {files: [test.jsonl], licence: MIT}}
  scored: {quality: {from: $test, positive: $good, negative: $other, share: 1, epochs: 25}}
"""


def docstrings():
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text(errors="replace"))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                yield from (ast.get_docstring(node) or "").split("\n\n")


def comments():
    for path in sorted(pathlib.Path("/usr/include").rglob("*.h")):
        for comment in re.findall(r"/\*(.*?)\*/", path.read_text(errors="replace"), re.S):
            yield from re.sub(r"(?m)^[ \t]*\*", "", comment).split("\n\n")


def texts(source):
    """Different texts of 8 to 60 words, as one line, in the order of their hashes."""
    found = {" ".join(t.split()) for t in source}
    return sorted((t for t in found if 8 <= len(t.split()) <= 60), key=lambda t: hashlib.sha256(t.encode()).digest())[:4000]


def plain(text):
    """The words as the step takes them: fastText cuts at white space, and is given texts like these."""
    return " ".join(re.findall(r"\w+", text.lower()))


def area(scores, labels):
    """The share of pairs in which the good text has the higher score; ties count half."""
    ranked = sorted(zip(scores, labels))
    rank, total, at = 0, 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        total += (rank + (end - at + 1) / 2) * sum(label for _, label in ranked[at:end])
        rank, at = rank + end - at, end
    good = sum(labels)
    return (total - good * (good + 1) / 2) / (good * (len(labels) - good))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--fasttext", default="fasttext")
    args = parser.parse_args()
    ostro = str(pathlib.Path(args.ostro).resolve())
    good, other = texts(docstrings()), texts(comments())
    cut_good, cut_other = len(good) // 2, len(other) // 2
    test = [(t, 1) for t in good[cut_good:]] + [(t, 0) for t in other[cut_other:]]
    labels = [label for _, label in test]
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name, rows in (("good", good[:cut_good]), ("other", other[:cut_other]), ("test", [t for t, _ in test])):
            (top / f"{name}.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in rows))
        (top / "plan.yaml").write_text(PLAN)
        subprocess.run([ostro, "lab", "run", "plan.yaml"], cwd=top, check=True, stdout=subprocess.DEVNULL)
        path = next((top / "auc.lab/out").glob("*/verdicts.jsonl"))
        ours = [line["value"] for line in map(json.loads, path.read_text().splitlines()) if "row" in line]
        print("SHA-256 of the verdicts", hashlib.sha256(path.read_bytes()).hexdigest())
        learned = [f"__label__{kind} {plain(t)}\n" for kind, rows in (("good", good[:cut_good]), ("other", other[:cut_other])) for t in rows]
        # fastText learns in the order of the file.
        (top / "train.txt").write_text("".join(sorted(learned, key=lambda t: hashlib.sha256(t.encode()).digest())))
        (top / "test.txt").write_text("".join(plain(t) + "\n" for t, _ in test))
        subprocess.run([args.fasttext, "supervised", "-input", "train.txt", "-output", "model", "-dim", "16", "-wordNgrams", "2", "-epoch", "25",
                        "-lr", "0.1", "-thread", "1"], cwd=top, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
        said = subprocess.run([args.fasttext, "predict-prob", "model.bin", "test.txt", "2"], cwd=top, check=True, stdout=subprocess.PIPE, text=True)
        theirs = []
        for line in said.stdout.splitlines():
            words = line.split()
            theirs.append(dict(zip(words[::2], map(float, words[1::2])))["__label__good"])
    assert len(ours) == len(theirs) == len(test), (len(ours), len(theirs), len(test))
    mine, fast, length = (area(scores, labels) for scores in (ours, theirs, [len(t) for t, _ in test]))
    print(f"{cut_good} good and {cut_other} other texts to learn from, {len(test)} to score: area {mine:.4f}, fastText's {fast:.4f}, by length {length:.4f}")
    return abs(mine - fast) > 0.01 or abs(length - fast) <= 0.01


if __name__ == "__main__":
    sys.exit(main())
