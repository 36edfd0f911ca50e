#!/usr/bin/env python3
"""Writes docs/status.md from files of results.

  scripts/write_status.py                      from tests/results/*.json and bench/RESULTS.json
  scripts/write_status.py --collect [FOLDER]   takes in first what the tests left there (build/release/results)
  scripts/write_status.py --check              writes nothing; fails when the page is not what it would write

tests/results/tests.json has the last result of every test, as tests/suite/run_test.py left it. measured.json has what
was measured by hand and no test repeats: add a row there. Both are lists of rows, one a line: what, command, result,
commit, date, machine.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "tests" / "results"
PAGE = ROOT / "docs" / "status.md"
FIELDS = ("what", "command", "result", "commit", "date", "machine")
HEAD = """# Status

Written by `scripts/write_status.py` from `tests/results` and `bench/RESULTS.json`; change those, not this page. A row says
what was seen last, at which commit and on which machine; what was seen before is in git's history.
"""


def read(name):
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def collect(folder):
    """The rows that tests left in `folder` take the places of older ones; those of tests that are no more go."""
    known = {row["what"]: row for row in read("tests.json")}
    left = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    if not left:
        sys.exit(f"error: no test left a result in {folder}; run scripts/test.sh first")
    for row in left:
        known[row["what"]] = row
    listed = subprocess.run(["ctest", "--test-dir", str(folder.parent), "-N"], capture_output=True, text=True, check=True)
    names = set(re.findall(r"Test +#\d+: (\S+)", listed.stdout))
    rows = [known[name] for name in sorted(names & set(known))]
    refuse([*problems(rows, "tests.json")])
    write(RESULTS / "tests.json", "[\n" + ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    print(f"collected {len(left)} results; {len(rows)} of {len(names)} tests have one")


def problems(rows, place):
    """What is wrong with rows: a field missing, a commit or a date that is none."""
    for number, row in enumerate(rows, 1):
        missing = [field for field in FIELDS if not str(row.get(field, "")).strip()]
        if missing:
            yield f"{place}, row {number} ({row.get('what')}): no {', '.join(missing)}"
        elif not re.fullmatch(r"[0-9a-f]{7,40}", row["commit"]):
            yield f"{place}, row {number} ({row['what']}): {row['commit']} is no commit"
        elif not re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]):
            yield f"{place}, row {number} ({row['what']}): {row['date']} is no date"


def refuse(wrong):
    if wrong:
        sys.exit("\n".join(f"error: tests/results/{text}" for text in wrong))


def test_row(row):
    """A test's result with the size of its sample and what it said of itself."""
    words = [row["result"], f"{row['cpu']:g} s of CPU time", row["size"]] + ([row["detail"]] if row["detail"] else [])
    return {**row, "result": "; ".join(words)}


def bench_rows():
    """The goals of the benchmarks' results file."""
    path = ROOT / "bench" / "RESULTS.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    for title, section in data["sections"].items():
        made = re.match(r"(\d{4}-\d\d-\d\d), commit ([0-9a-f]+), `([^`]*)`", section["made"])
        if made is None:
            sys.exit(f"error: {path}: section {title} does not begin with its date, commit and command: {section['made']}")
        for case, goal, seen, held, _ in section["goals"]:
            yield dict(what=case, command=made[3], result=f"{seen}; goal {goal}: {held}", commit=made[2], date=made[1],
                       machine=data["machine"])


def table(rows):
    def cell(field, row):
        text = str(row[field]).replace("|", "\\|")
        return f"`{text}`" if field == "command" else text[:10] if field == "commit" else text

    lines = ["| " + " | ".join(FIELDS) + " |", "|" + "---|" * len(FIELDS)]
    return lines + ["| " + " | ".join(cell(field, row) for field in FIELDS) + " |" for row in rows]


def page(tests, measured):
    parts = [HEAD, f"## Tests: {sum(row['result'] == 'pass' for row in tests)} of {len(tests)} passed when they last ran", ""]
    parts += table(map(test_row, tests))
    parts += ["", "## Measured by hand", ""] + table(measured)
    parts += ["", "## Benchmarks: every goal", ""] + table(bench_rows())
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", nargs="?", type=pathlib.Path, const=ROOT / "build" / "release" / "results", metavar="FOLDER")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.collect:
        collect(options.collect.resolve())
    tests, measured = read("tests.json"), read("measured.json")
    refuse([*problems(tests, "tests.json"), *problems(measured, "measured.json")])
    text = page(tests, measured)
    if options.check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("error: docs/status.md is not what scripts/write_status.py writes; run it, or change tests/results instead")
        print(f"status: {len(tests)} tests and {len(measured)} measured rows, as written")
        return
    write(PAGE, text)


if __name__ == "__main__":
    main()
