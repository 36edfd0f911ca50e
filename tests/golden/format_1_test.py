"""A run that an earlier version began, whose chain has format 1: it resumes, goes on in its format, and verifies.

format_1.jsonl is the chain of that run, as the program wrote it before there was format 2: six steps, checkpoints after
steps 3 and 6. A new run of the same config must have the same entries behind its genesis, so neither data nor
arithmetic moved. The program in docs/reference/formats/chain.md, which anybody may use, must accept both chains.

If program or numerics change on purpose, --update writes the chain again, from the entries of a new run.

  python3 tests/golden/format_1_test.py --ostro build/release/ostro/cli/ostro [--update]
"""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "matrix"))
import runs

STORED = HERE / "format_1.jsonl"
CHANGES = {"trainer.num_train_steps": 6, "trainer.checkpointer.keep": [{"every": 3}]}
ONLY_FORMAT_2 = ["data_roots", "fork", "initial", "maker", "numerics_options", "origin", "reference"]


def canonical(entry):
    return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_format_1(entries):
    """The text of the chain that has these entries with a genesis of format 1."""
    head, text = "", ""
    for entry in entries:
        entry = {k: v for k, v in entry.items() if k != "h"}
        if entry["kind"] == "genesis":
            entry = {**{k: v for k, v in entry.items() if k not in ONLY_FORMAT_2}, "format": 1}
        head = hashlib.sha256((head + canonical(entry)).encode()).hexdigest()
        text += canonical({**entry, "h": head}) + "\n"
    return text


def documented_check(folder):
    """The program in docs/reference/formats/chain.md that checks a chain."""
    text = (HERE.parents[1] / "docs/reference/formats/chain.md").read_text(encoding="utf-8")
    program = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "sys.argv" in block]
    assert len(program) == 1, f"{len(program)} programs"
    path = folder / "check_chain.py"
    path.write_text(program[0], encoding="utf-8")
    return path


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--ostro", required=True)
    ap.add_argument("--update", action="store_true")
    a = ap.parse_args()
    failed = []

    def check(what, equal):
        print(f"{'equal   ' if equal else 'FAILED  '} {what}")
        if not equal:
            failed.append(what)

    with tempfile.TemporaryDirectory(prefix="ostro_format_1_") as folder:
        work = runs.Workspace(a.ostro, folder)
        new = work.run("format_1", CHANGES, {})
        if a.update:
            STORED.write_text(as_format_1(new.entries()), encoding="utf-8")
        stored = STORED.read_text(encoding="utf-8")
        head = json.loads(stored.splitlines()[-1])["h"]
        new_text = (new.directory / "chain.jsonl").read_text(encoding="utf-8")
        check("a new run has format 2 and another run hash", new.entries()[0]["format"] == 2 and new.hash != head)
        check("its steps and checkpoints are those of the run of format 1", as_format_1(new.entries()) == stored)

        checker = documented_check(pathlib.Path(folder))
        for name, text, hash_ in [("1", stored, head), ("2", new_text, new.hash)]:
            chain = pathlib.Path(folder) / f"chain-{name}.jsonl"
            chain.write_text(text, encoding="utf-8")
            words = [sys.executable, checker, chain]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            check(f"the documented program gives the hash of format {name}", done.stdout == hash_ + "\n")
            chain.write_text(text.replace('"tokens":576', '"tokens":577', 1), encoding="utf-8")
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            check(f"and finds a change in it ({name})", done.returncode == 1 and "was altered" in done.stderr)

        # The run as it was left right after its beginning: it has no checkpoint.
        chain, checkpoints = new.directory / "chain.jsonl", new.directory / "checkpoints"
        shutil.rmtree(checkpoints)
        chain.write_text(stored.splitlines(keepends=True)[0], encoding="utf-8")
        check("from its beginning on, it gets its chain", work.run("format_1", CHANGES, {}).hash == head)
        check("byte for byte", chain.read_text(encoding="utf-8") == stored)
        # Killed between two checkpoints.
        shutil.rmtree(checkpoints / "step-00000006")
        chain.write_text("".join(stored.splitlines(keepends=True)[:6]), encoding="utf-8")
        check("from a checkpoint on, it gets its chain", work.run("format_1", CHANGES, {}).hash == head)
        check("byte for byte, too", chain.read_text(encoding="utf-8") == stored)

        for options in [], ["--from_step", "3"]:
            done = work.command([a.ostro, "verify", "runs/format_1", *options])
            check(f"verify {' '.join(options)}: {done.stdout.strip().splitlines()[-1]}", "equal: steps" in done.stdout)
        # A step that was changed, with hashes that fit.
        entries = [json.loads(line) for line in stored.splitlines()]
        entries[5]["tokens"] += 1
        chain.write_text(as_format_1(entries), encoding="utf-8")
        done = work.command([a.ostro, "verify", "runs/format_1"], check=False)
        check(f"a changed step is found: exit {done.returncode}", done.returncode == 1)
    return 1 if failed else 0


sys.exit(main())
