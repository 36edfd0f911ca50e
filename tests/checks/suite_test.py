#!/usr/bin/env python3
"""The suite's own tools: the seed, the runner, the status page, and the table of suites in docs/inside/testing.md.

  suite_test.py --build build/release

Each check has a case in which the tool has to say no.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = ROOT / "tests" / "suite"
sys.path.insert(0, str(SUITE))
import choose  # noqa: E402
import run_test  # noqa: E402

failures = []


def check(holds, text):
    if not holds:
        failures.append(text)


def run(*words, **env):
    known = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_TEST_")}
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, env={**known, **env}, check=False)


def draws():
    items = [str(i) for i in range(40)]

    def draw(**env):
        return run("python3", SUITE / "seed.py", "draw", "a test", 5, *items, **env)

    one, again, other = draw(OSTRO_TEST_SEED="1"), draw(OSTRO_TEST_SEED="1"), draw(OSTRO_TEST_SEED="2")
    check(len(one.stdout.split()) == 5 and one.stdout == again.stdout, "a seed draws the same items twice")
    check(one.stdout != other.stdout, "another seed draws others")
    check(all(item in one.stderr for item in ["seed 1", *one.stdout.split()]), f"the draw is printed: {one.stderr}")
    check(draw(OSTRO_TEST_SIZE="full").stdout.split() == items, "a full run takes all")
    check(draw(OSTRO_TEST_SIZE="ful").returncode != 0, "an unknown size is refused")
    check(draw(OSTRO_TEST_SEED="x").returncode != 0, "a seed that is no number is refused")
    check(run("python3", SUITE / "seed.py").stdout.strip().isdigit(), "the commit gives a seed")


def choices(build):
    budgets = choose.expensive(build)
    check(budgets and all(budget >= 8 for budget in budgets.values()), f"the expensive tests have budgets of 8 s or more: {budgets}")
    seen = set()
    for key in range(200):
        taken = choose.taken(budgets, 450, key)
        left = 450 - sum(budgets[name] for name in taken)
        check(left >= 0, f"seed {key}: what is taken fits: {taken}")
        check(all(budgets[name] > left for name in budgets if name not in taken), f"seed {key}: nothing that fits is left out: {taken}")
        check(taken == choose.taken(budgets, 450, key), f"seed {key} takes the same tests twice")
        seen.update(taken)
    check(seen == set(budgets), f"a test that no seed takes: {sorted(set(budgets) - seen)}")
    def names(**env):
        return run("python3", SUITE / "choose.py", "--build", build, "--seconds", 450, **env).stdout.split()

    check(set(names(OSTRO_TEST_SEED="7")) == set(budgets) - set(choose.taken(budgets, 450, 7)), "the program prints those left out")
    check(names(OSTRO_TEST_SIZE="full") == [], "a full run leaves none out")


def seeds(folder):
    def seed_of(tree, **env):
        return run("python3", tree / "tests" / "suite" / "seed.py", GIT_CEILING_DIRECTORIES=str(folder), **env).stdout

    tree = folder / "copy"
    for path in ("tests/suite/seed.py", "ostro/room/a.cc"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SUITE / "seed.py", tree / "tests/suite")
    (tree / "ostro/room/a.cc").write_text("one")
    first = seed_of(tree)
    (tree / "ostro/__pycache__").mkdir()
    (tree / "ostro/__pycache__/a.pyc").write_text("x")
    check(first.strip().isdigit() and first == seed_of(tree), f"a tree without history has one seed: {first}")
    (tree / "ostro/room/a.cc").write_text("two")
    check(first != seed_of(tree), "other sources without history have another seed")
    names = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    run("git", "-C", tree, "init", "-q")
    run("git", "-C", tree, *names, "commit", "-q", "--allow-empty", "-m", "a")
    name = run("git", "-C", tree, "rev-parse", "HEAD").stdout[:8]
    check(name and seed_of(tree).strip() == str(int(name, 16)), f"the seed follows from the commit {name}")
    # What git believes of a folder that another user owns.
    check(seed_of(tree, GIT_TEST_ASSUME_DIFFERENT_OWNER="1") == seed_of(tree), "the owner of the tree does not matter")


def runner(folder):
    def test(command, timeout=20):
        done = run("python3", SUITE / "run_test.py", "--name", "t", "--budget", 1, "--timeout", timeout, "--results",
                   folder, "--", "bash", "-c", command, OSTRO_TEST_SEED="5")
        return done, json.loads((folder / "t.json").read_text())

    done, row = test("echo result: $OSTRO_TEST_SEED of $OSTRO_TEST_SIZE")
    check(done.returncode == 0 and row["result"] == "pass" and row["detail"] == "5 of sample", f"a test that passes: {row}")
    done, row = test("exit 3")
    check(done.returncode == 1 and row["result"] == "FAIL, status 3", f"a test that fails: {row}")
    done, row = test("sleep 60 & sleep 60", timeout=1)
    check(done.returncode == 1 and row["wall"] < 20, f"a test that hangs, with a program it started: {row}")
    done, row = test("set -m; sleep 60 & exit 0", timeout=1)
    check(done.returncode == 1 and row["wall"] < 20, f"a program with a process group of its own outlives its test: {row}")
    done, row = test("for i in $(seq $(nproc)); do while :; do :; done & done; wait", timeout=2)
    check(done.returncode == 1 and f"s of CPU time, of {2 * os.cpu_count()} s" in done.stdout, f"a test that uses too much CPU time: {row}")
    limit = run_test.Limit(timeout=3, cores=2, now=0)
    seen = [limit.reached(used, now) for used, now in [(0.5, 2), (0.6, 5), (1.2, 9), (1.5, 12), (2.9, 20)]]
    check(seen == [None] * 5, f"a test that is slow by the clock alone is not ended: {seen}")
    check(limit.reached(2.95, 24) == "3 s without work", "a test that does nothing for three seconds hangs")
    check(limit.reached(6.1, 24) == "6 s of CPU time, of 6 s", "a test that needs too much on two cores is ended")
    done, row = test("trap 'echo result: cleaned up; exit 0' TERM; sleep 60 & wait", timeout=1)
    check(done.returncode == 1 and row["detail"] == "cleaned up", f"a test that hangs may clean up: {row}")
    done, row = test("trap '' TERM; sleep 60", timeout=1)
    check(done.returncode == 1 and row["wall"] < 20, f"a test that hangs and ignores SIGTERM: {row}")
    done, row = test("i=0; while (( i < 200000 )); do i=$((i + 1)); done")
    check(0 < row["cpu"] < 20, f"the CPU time of its processes: {row}")
    (folder / "t.json").write_text(json.dumps({**row, "cpu": 0.5}))  # on a slow machine it took more
    shutil.copy(folder / "t.json", folder / "u.json")
    summary = run("python3", SUITE / "summary.py", folder).stdout
    check("OSTRO_TEST_SEED=5" in summary and "warning" not in summary, f"summary: {summary}")
    (folder / "u.json").write_text(json.dumps({**row, "what": "u", "cpu": 2.5}))
    check("warning: u took" in run("python3", SUITE / "summary.py", folder).stdout, "a test far over its budget is named")


def status(folder):
    for path in ("scripts/write_status.py", "tests/results/measured.json", "tests/results/promises.json", "bench/RESULTS.json",
                 "docs/status.md", "docs/notes/results.md"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    page, raw, script = folder / "docs/status.md", folder / "docs/notes/results.md", folder / "scripts/write_status.py"
    kept = folder / "tests/results/tests.json"
    kept.write_text("[]")
    git = ("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com")

    def commit(name):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
        run(*git, "add", "-A")
        run(*git, "commit", "-q", "-m", name)

    run(*git, "init", "-q")
    commit("ostro/a.cc")
    head = run(*git, "rev-parse", "HEAD").stdout.strip()
    for path in ("tests/results/measured.json", "bench/RESULTS.json"):  # their commits are those of another history
        (folder / path).write_text(re.sub(r'("commit": "|, commit )[0-9a-f]{7,40}', rf"\g<1>{head}", (folder / path).read_text()))
    check(run("python3", script).returncode == 0 and run("python3", script, "--check").returncode == 0, "what it wrote is fine")
    for path in (page, raw):
        text = path.read_text()
        path.write_text(text + "\n")
        check("not what" in run("python3", script, "--check").stderr, f"{path.name}, changed by hand, is refused")
        path.write_text(text)
    page.write_text(re.sub(r"at commit \w+;", "at commit 0123456789;", page.read_text()))
    done = run("python3", script, "--check")
    check(done.returncode == 0 and "not checked: what is stale" in done.stdout, f"a commit that is not there: {done.stdout}{done.stderr}")

    rows = json.loads((folder / "tests/results/measured.json").read_text())
    (folder / "build/results").mkdir(parents=True)
    (folder / "build/CTestTestfile.cmake").write_text('add_test(sanitize "true")\n')

    def collect(name, commit, size, result="pass"):
        row = {**rows[0], "what": name, "commit": commit, "cpu": 1, "size": size, "detail": "", "date": "2026-01-02", "result": result}
        (folder / "build/results/t.json").write_text(json.dumps(row))
        return run("python3", script, "--collect", folder / "build/results")

    def row_of_page():
        return next(line for line in page.read_text().splitlines() if "| sanitize |" in line)

    unmeasured(folder, script, page, head)
    collect("sanitize", head, "sample")
    check("0 of 1 tests; 1 on samples 2026-01-02 |" in row_of_page(), f"a sample is not in full: {row_of_page()}")
    collect("sanitize", head, "full")
    check("| 2026-01-02 |" in row_of_page(), f"a full run: {row_of_page()}")
    collect("sanitize", head, "sample", "FAIL, status 1")
    check("2026-01-02; **failed: sanitize**" in row_of_page(), f"a sample that failed beside a full run: {row_of_page()}")
    collect("sanitize", head, "sample")
    commit("ostro/b.cc")
    run("python3", script)
    check("| 2026-01-02 *stale* |" in row_of_page(), f"the code changed after the run: {row_of_page()}")
    check(run("python3", script, "--check", "--build", folder / "build").returncode == 0, "every test is in a promise")
    (folder / "build/CTestTestfile.cmake").write_text('add_test(sanitize "true")\nadd_test(t "true")\n')
    check("names the tests t;" in run("python3", script, "--check", "--build", folder / "build").stderr, "a test without promise")

    check("no commit" in collect("sanitize", "unknown", "full").stderr, "a result of no commit is refused")
    check(head in kept.read_text() and "unknown" not in kept.read_text(), "what is refused is not written")
    for field, value in (("commit", "main"), ("commit", "0123456789"), ("date", "today"), ("result", " ")):
        (folder / "tests/results/measured.json").write_text(json.dumps([{**rows[0], field: value}]))
        done = run("python3", script)
        check(done.returncode != 0 and "measured.json, row 1" in done.stderr, f"{field} {value} is refused: {done.stderr}")


def unmeasured(folder, script, page, head):
    """A promise of goals and of a row by hand: both are not run until they are there."""
    promises, bench, measured = (folder / name for name in ("tests/results/promises.json", "bench/RESULTS.json", "tests/results/measured.json"))
    kept = {path: path.read_text() for path in (promises, bench, measured)}
    promise = {"promise": "a speed", "tests": [], "by": "bench", "goals": ["A section"], "measured": ["a row"], "code": ["ostro"], "repeat": "bench.sh"}
    promises.write_text(json.dumps({"promises": [promise], "never_seen": []}))

    def said():
        done = run("python3", script)
        return next((line for line in page.read_text().splitlines() if "| a speed |" in line), done.stderr)

    check("| a speed | bench | *not run*: A section, a row |" in said(), f"what is not there was not run: {said()}")
    data = json.loads(kept[bench])
    data["sections"]["A section"] = dict(made=f"2026-01-02, commit {head}, `bench.sh`; a machine", lines=[], failed=[], quick=False,
                                         goals=[["a", ">= 1x", "2x", "yes", ""], ["b", ">= 1x", "0x", "no", ""], ["c", ">= 1x", "", "not run", ""]])
    bench.write_text(json.dumps(data))
    check("| bench | A section: 1 of 2 goals 2026-01-02; *not run*: a row |" in said(), f"a section that is there: {said()}")
    row = {**json.loads(kept[measured])[0], "what": "a row", "commit": head, "date": "2026-01-03"}
    measured.write_text(json.dumps([row]))
    check("| bench | by hand 2026-01-03; A section: 1 of 2 goals 2026-01-02 |" in said(), f"both are there: {said()}")
    for path, text in kept.items():
        path.write_text(text)


def table(build):
    """docs/inside/testing.md names every family of tests, with the sum of the budgets that CMake gives its tests."""
    listed = json.loads(run("ctest", "--test-dir", build, "--show-only=json-v1").stdout)
    budgets = collections.Counter()
    for test in listed["tests"]:
        words = test.get("command", [])
        check("--budget" in words, f"{test['name']} is not added by ostro_test (cmake/Tests.cmake)")
        if "--budget" in words:
            budgets[family(test["name"])] += float(words[words.index("--budget") + 1])
    page = (ROOT / "docs/inside/testing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w`., ]+) \| (\d+) \|", page, re.MULTILINE))
    said = {name.strip("`"): int(budget) for name, budget in rows.items()}
    check(said == budgets, f"the table of suites in docs/inside/testing.md and CMake differ: {sorted(said.items() ^ budgets.items())}")


def family(name):
    """What the table calls a test: "rooms" and "rooms.slow" for the rooms' own."""
    first, _, rest = name.partition(".")
    if next((ROOT / "ostro" / first).rglob("*_test.cc"), None):
        return "rooms.emulated" if rest == "emulated" else "rooms.slow" if rest == "slow" else "rooms"
    return f"{first}.emulated" if rest.startswith("emulated") else first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-suite-") as folder:
        draws()
        choices(options.build)
        seeds(pathlib.Path(folder))
        (pathlib.Path(folder) / "results").mkdir()
        runner(pathlib.Path(folder) / "results")
        status(pathlib.Path(folder) / "tree")
    table(options.build)
    for text in failures:
        print(f"FAILED {text}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
