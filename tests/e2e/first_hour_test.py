#!/usr/bin/env python3
"""Tests the way from a folder with three text files to a trained model and a sample in three commands.

Also what can go wrong on the way: a kill while the tokenizer is trained, a second start beside it, texts that change,
files that are there already.

    first_hour_test.py --ostro PROGRAM
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from program import check

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Folder:
    """Three text files, in an otherwise empty folder."""

    def __init__(self, ostro, path):
        self.ostro, self.path = str(pathlib.Path(ostro).resolve()), path
        path.mkdir()
        lines = (ROOT / "LICENSE").read_text().splitlines(keepends=True)
        third = len(lines) // 3
        for i, name in enumerate(("first.txt", "second.txt", "third.txt")):
            (path / name).write_text("".join(lines[i * third:(i + 1) * third]))

    def run(self, *words, code=0, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings
        done = subprocess.run([self.ostro, *words], cwd=self.path, env=env, capture_output=True, text=True, check=False)
        check(done.returncode == code, f"{' '.join(words)}: exit {done.returncode}, not {code}: {done.stderr}")
        return done.stdout + done.stderr


def check_three_commands(place):
    said = place.run("init")
    check(re.search(r"^vocab_size \d+: for .* of training text", said, re.M), said)
    check(re.search(r"^training: about .* \(an estimate: ", said, re.M), said)
    check("train with: ostro train --config train.yaml" in said, said)
    trained = place.run("train", "--config", "train.yaml")
    check("no tokenizer is named: training one of 320 tokens from 2 files" in trained, trained)
    check("cache/tokenizer.json: 320 tokens, trained from 2 documents" in trained, trained)
    losses = [float(x) for x in re.findall(r"held-out loss .*, ([\d.]+) bits per byte", trained)]
    check(len(losses) >= 10 and losses[-1] < 0.8 * losses[0] and losses[-1] < 5, f"held-out losses {losses}")
    sample = place.run("sample", "--checkpoint", "runs/run", "--prompt", "the ", "--max_new_tokens", "20")
    check(sample.startswith("the ") and len(sample) > 10, sample)
    run_hash = re.search(r"^run hash: [0-9a-f]{64}$", trained, re.M)[0]
    # The run is one like any other: it can be verified, also where the cache's tokenizer is gone.
    (place.path / "cache/tokenizer.json").rename(place.path / "elsewhere.json")
    check("equal" in place.run("verify", "runs/run", "--to_step", "3"), "verify")
    # The same texts give the tokenizer again.
    again = place.run("data", "build", "--config", "train.yaml")
    check("cache/tokenizer.json: 320 tokens" in again, again)
    tokenizers = [(place.path / name).read_bytes() for name in ("cache/tokenizer.json", "elsewhere.json",
                                                                "runs/run/tokenizer.json")]
    check(tokenizers[0] == tokenizers[1] == tokenizers[2], "tokenizers differ")
    return run_hash


def check_errors(place):
    refused = place.run("init", code=2)
    check("error: train.yaml: is there already; name another file with --out, or replace it with --force" in refused,
          refused)
    before = (place.path / "train.yaml").read_text()
    place.run("init", "--force")
    # The run and the cache in the folder are not taken for texts.
    urls = [text.split("train_urls:")[1].split("validation_fraction")[0] for text in
            (before, (place.path / "train.yaml").read_text())]
    check(urls[0] == urls[1], f"another list of texts: {urls}")
    check("there is no such file or folder" in place.run("init", "gone", "--out", "x.yaml", code=1), "a missing folder")
    (place.path / "pictures").mkdir()
    (place.path / "pictures/a.jpg").write_bytes(b"\xff\xd8\0\0")
    check("holds no text" in place.run("init", "pictures", "--out", "x.yaml", code=1), "a folder without text")
    check("--minutes 0: use a number above 0" in place.run("init", "--minutes", "0", "--force", code=2), "no time")
    other = place.run("train", "--config", "train.yaml", "--data.vocab_size", "300", code=2)
    check("was trained with data.vocab_size 320, and 300 is wanted" in other, other)
    both = place.run("train", "--config", "train.yaml", "--data.tokenizer", "elsewhere.json", code=2)
    check("data.vocab_size: 320 is for a tokenizer that is trained" in both, both)
    missing = place.run("data", "stats", "--config", "train.yaml", "--data.cache_dir", "other", code=1)
    check("other/tokenizer.json has not been trained yet" in missing, missing)
    (place.path / "first.txt").write_text("other text\n" * 100)
    changed = place.run("train", "--config", "train.yaml", code=2)
    check("first.txt" in changed, changed)


def check_kills(place, run_hash):
    """Killed before and after the tokenizer is in its place, the same command goes on, to the same hash."""
    place.run("init")
    place.run("train", "--config", "train.yaml", code=-9, OSTRO_FAILPOINT="tokenizer:1")
    check(not (place.path / "cache/tokenizer.json").exists(), "a tokenizer before it was whole")
    place.run("train", "--config", "train.yaml", code=-9, OSTRO_FAILPOINT="tokenizer:2")
    check((place.path / "cache/tokenizer.json").exists(), "no tokenizer")
    # Texts that change before the store is finished, too: the tokenizer is not one of these.
    place.run("data", "build", "--config", "train.yaml", code=-9, OSTRO_FAILPOINT="data_build:1")
    second = place.path / "second.txt"
    text, time = second.read_text(), second.stat().st_mtime_ns
    second.write_text(text.upper())
    changed = place.run("train", "--config", "train.yaml", code=2)
    check("cache/tokenizer.json: was trained from other content of second.txt; give data.cache_dir" in changed, changed)
    second.write_text(text)
    os.utime(second, ns=(time, time))
    trained = place.run("train", "--config", "train.yaml")
    check(run_hash in trained, f"{run_hash} is not that of {trained}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        first = Folder(args.ostro, pathlib.Path(top) / "first")
        run_hash = check_three_commands(first)
        check_errors(first)
        second = Folder(args.ostro, pathlib.Path(top) / "second")
        check_kills(second, run_hash)
    print("three commands, and the run is the same after three kills")
    return 0


if __name__ == "__main__":
    sys.exit(main())
