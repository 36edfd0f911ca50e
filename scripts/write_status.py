#!/usr/bin/env python3
"""Writes docs/status.md, one page of promises, and docs/notes/results.md, the results behind it.

  scripts/write_status.py                      from tests/results/*.json and bench/RESULTS*.json
  scripts/write_status.py --collect [FOLDER]   takes in first what the tests left there (build/release/results)
  scripts/write_status.py --check [--build FOLDER]
                                               writes nothing; fails when the pages are not what it would write, or when
                                               ctest has a test there that no promise names

tests/results/promises.json has the promises: the tests that show each, rows of measured.json, sections of the
benchmarks ("goals"), the code that it covers, and how to repeat it. What no row or section has is *not run*. tests.json has the last result of every test in each size, as tests/suite/run_test.py left
it. measured.json has what was measured by hand and no test repeats: add a row there. Both are lists of rows, one a line:
what, command, result, commit, date, machine.

A promise is shown in full when every test of it passed with OSTRO_TEST_SIZE=full or exhaustive; the date is that of the
oldest of these runs. It is *stale* when a commit after one of these runs has changed the code that it covers, counted up
to the commit at which the page was written, which the page names. At most LIMIT commits later it must be written again.
"""
import argparse
import bisect
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "tests" / "results"
PAGE, RAW = ROOT / "docs" / "status.md", ROOT / "docs" / "notes" / "results.md"
LIMIT = 300
FIELDS = ("what", "command", "result", "commit", "date", "machine")
HEAD = """# What is shown

Written by `scripts/write_status.py` at commit {commit}; change `tests/results`, not this page. *In full* means every case, not a
sample. *Stale*: the code that a promise covers has changed since. All results are in [notes/results.md](notes/results.md).

"""
RAW_HEAD = """# Results

Written by `scripts/write_status.py` from `tests/results` and `bench/RESULTS*.json`; change those, not this page. A row says
what was seen last, at which commit and on which machine; earlier results are in git's history. [status.md](../status.md)
says what they show.
"""


def read(name):
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def collect(folder):
    """The rows that tests left in `folder` take the places of older ones of the same size; those of tests that are gone go."""
    known = {(row["what"], row["size"]): row for row in read("tests.json")}
    left = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    if not left:
        sys.exit(f"error: no test left a result in {folder}; run scripts/test.sh first")
    for row in left:
        known[row["what"], row["size"]] = row
    names = tests_of(folder.parent)
    rows = [known[key] for key in sorted(known) if key[0] in names]
    refuse([*problems(rows, "tests.json")])
    write(RESULTS / "tests.json", "[\n" + ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    print(f"collected {len(left)} results; {len({row['what'] for row in rows})} of {len(names)} tests have one")


def tests_of(build):
    listed = subprocess.run(["ctest", "--test-dir", str(build), "-N"], capture_output=True, text=True, check=True)
    return set(re.findall(r"Test +#\d+: (\S+)", listed.stdout))


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
        elif not is_in_history(row["commit"]):
            yield (f"{place}, row {number} ({row['what']}): commit {row['commit']} is no ancestor of HEAD, so no clone of it knows the commit; "
                   "name the commit of this history that has the code")


def refuse(wrong):
    if wrong:
        sys.exit("\n".join(f"error: tests/results/{text}" for text in wrong))


def test_row(row):
    """A test's result with the size of its sample and what it said of itself."""
    words = [row["result"], f"{row['cpu']:g} s of CPU time", row["size"]] + ([row["detail"]] if row["detail"] else [])
    return {**row, "result": "; ".join(words)}


def bench_sections():
    """Each section of the results files of all machines: file, machine, title, section."""
    for path in sorted((ROOT / "bench").glob("RESULTS*.json"), key=lambda p: (len(p.name), p.name)):
        data = json.loads(path.read_text(encoding="utf-8"))
        for title, section in data["sections"].items():
            yield path, data["machine"], title, section


def bench_rows():
    """The goals of the benchmarks."""
    for path, machine, title, section in bench_sections():
        made = re.match(r"(\d{4}-\d\d-\d\d), commit ([0-9a-f]+), `([^`]*)`", section["made"])
        if made is None:
            sys.exit(f"error: {path}: section {title} does not begin with its date, commit and command: {section['made']}")
        for case, goal, seen, held, _ in section["goals"]:
            yield dict(title=title, what=case, command=made[3], result=f"{seen}; goal {goal}: {held}", commit=made[2], date=made[1],
                       machine=machine)


def table(rows):
    def cell(field, row):
        text = str(row[field]).replace("|", "\\|")
        return f"`{text}`" if field == "command" else text[:10] if field == "commit" else text

    lines = ["| " + " | ".join(FIELDS) + " |", "|" + "---|" * len(FIELDS)]
    return lines + ["| " + " | ".join(cell(field, row) for field in FIELDS) + " |" for row in rows]


def raw_page(tests, measured):
    parts = [RAW_HEAD, f"## Tests: {sum(row['result'] == 'pass' for row in tests)} of {len(tests)} results are a pass", ""]
    parts += table(map(test_row, tests))
    parts += ["", "## Measured by hand", ""] + table(measured)
    parts += ["", "## Benchmarks: every goal", ""] + table(bench_rows())
    return "\n".join(parts) + "\n"


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), "-c", "safe.directory=*", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


@functools.cache
def history():
    """The commits of HEAD, sorted; None where they are not all here."""
    return sorted(git("rev-list", "HEAD").split()) if git("rev-parse", "--is-shallow-repository") == "false" else None


def is_in_history(commit):
    commits = history()
    at = bisect.bisect_left(commits, commit) if commits else 0
    return commits is None or (at < len(commits) and commits[at].startswith(commit))


@functools.cache
def changed(commit, at, *code):
    """Whether a commit after `commit`, up to `at`, changed the code; None where the history is not known or lacks the commit,
    which this clone may have all the same."""
    if not is_in_history(commit):
        return None
    count = git("rev-list", "--count", f"{commit}..{at}", "--", *code) if at else None
    return None if count is None else int(count) > 0


def goal_words(promise, when):
    """Of each section of the benchmarks that a promise names how many goals were reached where it was measured last, and those not run."""
    seen, missing = [], []
    for title in promise.get("goals", ()):
        found = [{**row, "held": row["result"].endswith(": yes")} for row in bench_rows() if row["title"] == title]
        last = max((row["date"] for row in found), default="")
        rows = [row for row in found if row["date"] == last and not row["result"].endswith(": not run")]
        if rows:
            seen.append(f"{title}: {sum(row['held'] for row in rows)} of {len(rows)} goals {when(rows)}")
        else:
            missing.append(title)
    return seen, missing


def promise_row(promise, tests, measured, at):
    """A line of the table of promises, and the names of its tests that have no full run that passed."""
    full, lacking, failed = [], [], []
    for name in promise["tests"]:
        rows = [row for row in tests if row["what"] == name]
        best = [row for row in rows if row["size"] != "sample" and row["result"] == "pass"]
        failed += [name for row in rows if row["result"].startswith("FAIL")]
        full += best[:1]
        lacking += [] if best else [name]
    drawn = [next((row for row in tests if row["what"] == name and row["result"] == "pass"), None) for name in lacking]
    drawn, hand = [row for row in drawn if row], [row for row in measured if row["what"] in promise.get("measured", ())]

    def when(rows):
        ages = [changed(row["commit"], at, *promise["code"]) for row in rows]
        mark = " *stale*" if True in ages else " *age unknown*" if None in ages else ""
        return min(row["date"] for row in rows) + mark

    words = [when(full) if not lacking else f"{len(full)} of {len(promise['tests'])} tests"] if promise["tests"] else []
    words += [f"{len(drawn)} on samples {when(drawn)}"] if drawn else []
    words += [f"by hand {when(hand)}"] if hand else []
    goals, missing = goal_words(promise, when)
    missing += [name for name in promise.get("measured", ()) if name not in {row["what"] for row in hand}]
    words += goals + ([f"*not run*: {', '.join(missing)}"] if missing else [])
    words += [f"**failed: {', '.join(failed)}**"] if failed else []
    on = sorted({row["machine"].split(", ")[1] for row in full + hand if row["machine"].count(",") > 1})
    shown_by = promise["tests"] or [promise["by"]]
    names = shown_by[0] + (f" and {len(shown_by) - 1} more" if len(shown_by) > 1 else "")
    command = promise["repeat"].replace("|", "\\|")
    return f"| {promise['promise']} | {names} | {'; '.join(words)} | {', '.join(on) or '-'} | `{command}` |", lacking


def missed_goals():
    """One line for each section of the benchmarks that missed goals."""
    for _, machine, title, section in bench_sections():
        missed = [goal for goal in section["goals"] if goal[3] != "yes"]
        if missed:
            case, goal, seen = max(missed, key=lambda row: len(row[2]) < 12)[:3]
            yield f"{title}, {machine}: {len(missed)} of {len(section['goals'])}", f"{case}: {seen}, goal {goal}"


def page(tests, measured, at):
    promises = json.loads((RESULTS / "promises.json").read_text(encoding="utf-8"))
    lines, lacking = [], []
    for promise in promises["promises"]:
        line, missing = promise_row(promise, tests, measured, at)
        lines.append(line)
        lacking += missing
    have = {row["what"] for row in tests if row["result"] == "pass"}
    sampled, unseen = [n for n in lacking if n in have], [n for n in lacking if n not in have]
    goals = list(missed_goals())
    text = [HEAD.format(commit=at or "unknown") + "| promise | shown by | in full, last | on | how to repeat |", "|---|---|---|---|---|",
            *lines, "", "## Not shown yet", "",
            f"- Passed on samples, no full run on record ({len(sampled)} tests): {', '.join(sampled) or 'none'}.",
            f"- No run on record ({len(unseen)} tests): {', '.join(unseen) or 'none'}.",
            f"- Never seen: {'; '.join(promises['never_seen'])}.", "",
            "## Goals missed", "",
            "Goals of the benchmarks, by section, each with one of those that were missed; [notes/results.md]"
            "(notes/results.md#benchmarks-every-goal) has all, [inside/performance.md](inside/performance.md#what-limits-it) the reasons.", "",
            *(f"- {section} ({example})" for section, example in goals)]
    return "\n".join(text) + "\n"


def check(tests, measured, build):
    """Exits with an error when a page is not what would be written, or a test is in no promise."""
    have = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    at = next(iter(re.findall(r"at commit ([0-9a-f]+|unknown);", have)), None)
    note, known = "", at and git("cat-file", "-e", at + "^{commit}") is not None
    want = page(tests, measured, at if known else None)
    if not known:
        note = "; not checked: what is stale, for the page's commit is not in this clone"
        have, want = (re.sub(r"at commit \w+;| \*(stale|age unknown)\*", "", text) for text in (have, want))
    elif (later := int(git("rev-list", "--count", at + "..HEAD"))) > LIMIT:
        sys.exit(f"error: docs/status.md was written {later} commits ago, more than {LIMIT}; run scripts/write_status.py")
    raw = RAW.read_text(encoding="utf-8") if RAW.exists() else ""
    for path, is_same in ((PAGE, have == want), (RAW, raw == raw_page(tests, measured))):
        if not is_same:
            sys.exit(f"error: {path.relative_to(ROOT)} is not what scripts/write_status.py writes; run it, or change tests/results instead")
    promises = json.loads((RESULTS / "promises.json").read_text(encoding="utf-8"))["promises"]
    named = {name for promise in promises for name in promise["tests"]}
    unknown = sorted(tests_of(build) - named) if build else []
    if unknown:
        sys.exit(f"error: no promise of tests/results/promises.json names the tests {', '.join(unknown)}; add them to one")
    print(f"status: {len(promises)} promises, {len(tests)} results of tests and {len(measured)} measured rows, as written{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collect", nargs="?", type=pathlib.Path, const=ROOT / "build" / "release" / "results", metavar="FOLDER")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.collect:
        collect(options.collect.resolve())
    tests, measured = read("tests.json"), read("measured.json")
    refuse([*problems(tests, "tests.json"), *problems(measured, "measured.json")])
    if options.check:
        check(tests, measured, options.build)
        return
    write(RAW, raw_page(tests, measured))
    write(PAGE, page(tests, measured, (git("rev-parse", "HEAD") or "")[:10] or None))


if __name__ == "__main__":
    main()
