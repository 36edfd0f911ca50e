#!/usr/bin/env python3
"""Tests the steps `run` of a lab: any program, in a sandbox where that works. What it may see, write and repeat; what is done again
when its files change; and the same without a sandbox, which is recorded.

    lab_commands_test.py --ostro PROGRAM
"""
import argparse
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
from lab_test import Lab, check  # noqa: E402

CLEAN = """BEGIN {RS = ""} NF >= least {print > "out/rows.txt"}
"""
PLAN = """
lab: small
question: Do short paragraphs matter?
steps:
  pages: {source: {files: [texts], licence: GPL-3.0-only}}
  clean:
    sweep: {least: [5, 20]}
    run: {program: [sh, clean.sh, $least], files: [clean.sh, clean.awk], inputs: {pages: $pages}, outputs: [rows.txt]}
  words: {tokenizer: {from: $clean, vocab_size: 300}}
  lines: {run: {program: [sh, -c, "wc -l < in/made/rows.txt > out/n; cp out/n out/log.txt"], inputs: {made: $clean}, outputs: [n, log.txt]}}
queries: {bytes: "SELECT sum(bytes) FROM outputs WHERE file = 'rows.txt'"}
"""
STEPS = ["clean[least=5]", "clean[least=20]", "words[least=5]", "words[least=20]", "lines[least=5]", "lines[least=20]"]
# Programs that are errors, with what the error says; and those that only a sandbox stops.
WRONG = {
    "twice": ("date +%N > out/a", "was run twice, and out/a has the SHA-256"),
    "undeclared": ("echo x > out/b; echo y > out/a", "wrote out/b, which outputs do not have"),
    "link": ("ln -s /usr out/a", "is a link; an output has its files itself"),
    "outside": ("ln -s /etc/passwd out/a", "is a link; an output has its files itself"),  # it dangles in a sandbox, and leads out of it
    "inside": ("mkdir out/a; echo x > out/a/b; ln -s b out/a/c", "is a link; an output has its files itself"),
    "pipe": ("mkfifo out/a", "is a pipe; a file is needed here"),
    "missing": ("true", "without writing out/a"),
    "fails": ("echo why >&2; exit 3", "ended with status 3: why"),
    "elsewhere": ("set -e; echo y > out/a; echo x > b", "b"),
}
SANDBOXED = {
    "reads": ("cat /etc/passwd > out/a", "No such file"),
    "hidden": ("cat tiny.yaml > out/a", "No such file"),
    "changes": ("set -e; echo y > out/a; echo x >> in/t/texts/GPL-2.txt", "Read-only"),
    "usr": ("set -e; echo y > out/a; echo x > /usr/x", "Read-only"),
}


def bwrap_works():
    try:
        return subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], check=False).returncode == 0
    except FileNotFoundError:
        return False


def make_lab(ostro, top):
    lab = Lab(ostro, top)
    (top / "clean.awk").write_text(CLEAN)
    (top / "clean.sh").write_text('cat in/pages/texts/*.txt | awk -v least="$1" -f clean.awk\n')
    lab.write(PLAN)
    return lab


def check_graph(lab, sandboxed):
    """What programs make is used by other steps; only what depends on a change is done again."""
    ran, wanted = lab.ran()
    check(ran == STEPS, f"the first run did {ran}")
    check(lab.ran() == ([], wanted), "a second run did steps")
    out = lab.run("--audit", "1").stdout
    check(out.count("was done again, and has the content") == 6, out)
    rows = {step: (folder / "rows.txt").read_bytes() for step, folder in lab.outputs("run").items() if step.startswith("clean")}
    paragraphs = [p for name in ("GPL-2", "MPL-1.1") for p in (lab.top / f"texts/{name}.txt").read_text().split("\n\n")]
    for least in (5, 20):
        lines = rows[f"clean[least={least}]"].decode()
        check(abs(sum(len(p.split()) >= least for p in paragraphs) - lines.count("\n\n")) < lines.count("\n") and lines, "rows.txt")
    check(rows["clean[least=5]"] != rows["clean[least=20]"], "the sweep reached no program")
    # A comment in the program: it runs again, gives the same, and the wave stops there.
    (lab.top / "clean.awk").write_text("# a comment\n" + CLEAN)
    check(lab.ran()[0] == STEPS[:2], "a comment")
    (lab.top / "clean.awk").write_text(CLEAN.replace(">=", ">"))
    check(lab.ran()[0][:2] == STEPS[:2], "another program")
    (lab.top / "clean.awk").write_text(CLEAN)
    check(lab.ran() == ([], wanted), "back again")
    (lab.top / "clean.awk").unlink()
    check("clean.awk" in lab.run(status=1).stderr, "a file that is gone")
    (lab.top / "clean.awk").write_text(CLEAN)
    done = lab.start("report", "plan.yaml", "--out", "report")
    check(done.returncode == 0, done.stderr)
    value = json.loads((lab.top / "report/values.json").read_text())["values"]["bytes"]
    check(value["class"] == "declared" and value["value"] == str(sum(len(text) for text in rows.values())), value)
    with sqlite3.connect(lab.top / "report/record.sqlite") as db:
        check(db.execute("SELECT count(*) FROM outputs").fetchone() == (6,), "the table outputs")
    journal = (lab.top / "small.lab/journal.jsonl").read_text()
    check(('"unsandboxed"' in journal) == (not sandboxed), "whether there was a sandbox is recorded")
    output = lab.outputs("run")["lines[least=5]"] / "n"
    before = output.read_bytes()
    output.write_bytes(b"7\n")
    check("n: was changed" in lab.run(status=1).stderr, "an output that was changed")
    output.write_bytes(before)
    log = output.parent / "log.txt"  # a name that the folder of a run has for what is no result
    log.write_bytes(b"7\n")
    check("log.txt: was changed" in lab.run(status=1).stderr, "an output whose name is that of a run's log")
    log.write_bytes(before)
    return wanted


def check_wrong(lab, programs):
    lab.write("lab: wrong\nquestion: Which?\nsteps:\n  texts: {source: {files: [texts], licence: MIT}}\n" + "".join(
        f"  {name}: {{run: {{program: [sh, -c, '{text}'], inputs: {{t: $texts}}, outputs: [a]}}}}\n"
        for name, (text, _) in programs.items()) + "  right: {run: {program: [sh, -c, 'env | sort > out/a'], outputs: [a]}}\n"
        "  up: {run: {program: [ls], outputs: [../a]}}\n")
    done = lab.run("-j", "2", status=1)
    errors = {line.split("step ")[1].split(":")[0]: line for line in done.stderr.splitlines() if "plan.yaml:" in line}
    check(set(errors) == set(programs) | {"up"}, f"{sorted(errors)}\n{done.stdout}{done.stderr}")
    for name, (_, error) in programs.items():
        check(error in errors[name], f"{name}: {errors[name]}")
    check("use a path without" in errors["up"], errors["up"])
    done = [line for line in done.stdout.splitlines() if line.startswith("done    right")]
    check(len(done) == 1, "the step that makes no mistake")
    kept = [(p / "a").read_text() for p in (lab.top / "wrong.lab/out").iterdir() if p.suffix == "" and (p / "a").is_file()]
    check(any(text.splitlines()[:3] == ["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"] for text in kept), kept)
    check((lab.top / "texts/GPL-2.txt").read_bytes() == pathlib.Path("/usr/share/common-licenses/GPL-2").read_bytes(), "a source")
    shutil.rmtree(lab.top / "wrong.lab")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-commands-") as folder:
        top = pathlib.Path(folder)
        wanted = None
        if bwrap_works():
            lab = make_lab(args.ostro, top / "lab")
            wanted = check_graph(lab, True)
            check_wrong(lab, WRONG | SANDBOXED)
        else:
            print("NOT RUN: the sandbox; bubblewrap is missing or cannot run here")
        # A bwrap that cannot run: the same outputs, and the journal says it.
        (top / "bin").mkdir()
        (top / "bin/bwrap").write_text("#!/bin/sh\necho no namespaces >&2\nexit 1\n")
        (top / "bin/bwrap").chmod(0o755)
        lab = make_lab(args.ostro, top / "without")
        start = lab.start
        lab.start = lambda *words, **variables: start(*words, PATH=f"{top}/bin:/usr/bin:/bin", **variables)
        without = check_graph(lab, False)
        check(wanted in (None, without), "the sandbox changed the lab hash")
        why = lab.start("why", "plan.yaml", "lines[least=5]").stdout
        check("it was made without a sandbox" in why, why)
        check_wrong(lab, WRONG)
    print("equal: programs give what they gave, with a sandbox and without, and each mistake is an error")


if __name__ == "__main__":
    main()
