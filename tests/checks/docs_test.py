#!/usr/bin/env python3
"""scripts/check_docs.py notices everything that it checks, on small trees of its own: each is a good tree with one fault."""
import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_docs.py"
ROOM = """# base

What every room needs.

- `Result` (`error.h`): a value or an error.

May include: no other room.

May be included by: no other room.
"""
GOOD = {
    "README.md": "# A\n\nSee [the map](docs/README.md). It is 2.5 times as fast, takes `5 s` and `ostro/base/error.h:3`.\n",
    "HACKING.md": "| room | holds |\n|---|---|\n| base | errors |\n\n`error.h`, `base/*.h`, `ostro/base/error.{h,cc}`, `tests/<name>.py`, "
                  "`tests/tool`, `train/loss`\n",
    "scripts/layers.txt": "base:\n",
    ".gitignore": "/.venv-other\n*.pyc\n",
    ".venv-other/other.py": "# As docs/nothing.md says.\n",
    "ostro/base/README.md": ROOM,
    "ostro/base/error.h": "// As (docs/a.md, \"Part\n// one\") says.\nclass Result;\n",
    "ostro/base/error.cc": "",
    "tests/x.py": "",
    "tests/tool.cc": "",
    "docs/README.md": "# Map\n\n[a](a.md#part-one), \"Part one\", [glossary](glossary.md), [cases](notes/cases.md), [up](../README.md)\n",
    "docs/a.md": "# A\n\n## Part one\n`made.py` is made here:\n```\ncat > made.py; see nothing/of/this.py and [b](b.md)\n```\n",
    "docs/notes/cases.md": "# Cases\n| 1 | `base/cases_test.cc` \"an error is kept\"; \"two\" | |\n",
    "ostro/base/cases_test.cc": "TEST_CASE(\n    \"an error is \"\n    \"kept\") {}\n// two\n",
    "docs/glossary.md": "# Words\n- **room**: a folder (`scripts/layers.txt`).\n",
}
FIGURE = {"page": "README.md", "figures": ["2.5 times"], "command": "measure", "commit": "", "date": "2026-01-02", "paths": ["ostro/base"]}
# What takes the place of a good file (None: it is gone), how the figure's row changes, and what the script must say.
BAD = [
    ({".gitignore": ""}, {}, ".venv-other/other.py: there is no docs/nothing.md"),
    ({"README.md": GOOD["README.md"] + "`ostro/base/gone.h`\n"}, {}, "README.md:4: there is no ostro/base/gone.h"),
    ({"README.md": GOOD["README.md"] + "`gone.py`\n"}, {}, "there is no gone.py"),
    ({"docs/a.md": GOOD["docs/a.md"] + "`base/gone.h`\n"}, {}, "there is no base/gone.h"),
    ({"docs/a.md": GOOD["docs/a.md"] + "`ostro/base/error.{h,py}`\n"}, {}, "there is no ostro/base/error.{h,py}"),
    ({"docs/a.md": GOOD["docs/a.md"] + "`tests/<name>.sh`\n"}, {}, "there is no tests/<name>.sh"),
    ({"docs/a.md": GOOD["docs/a.md"] + "[b](b.md)\n"}, {}, "the link b.md leads nowhere"),
    ({"docs/a.md": GOOD["docs/a.md"] + "[b](#part-two)\n"}, {}, "docs/a.md has no section #part-two"),
    ({"docs/a.md": GOOD["docs/a.md"] + "[map](README.md), \"Part\ntwo\"\n"}, {}, "docs/README.md has no section \"Part two\""),
    ({"ostro/base/cases_test.cc": "TEST_CASE(\"an error is lost\") {}\n// two\n"}, {}, "cases.md:2: base/cases_test.cc does not have the words \"an error is kept\""),
    ({"docs/b.md": "# B\n"}, {}, "docs/b.md: no way leads here"),
    ({"docs/glossary.md": "- **room**: a folder.\n"}, {}, "no file is named: - **room**"),
    ({"ostro/base/error.h": "// docs/gone.md\nclass Result;\n"}, {}, "ostro/base/error.h: there is no docs/gone.md"),
    ({"tests/x.py": "# (docs/a.md, \"Part\n# two\")\n"}, {}, "docs/a.md has no section \"Part two\""),
    ({"ostro/base/README.md": None}, {}, "ostro/base/README.md: missing"),
    ({"ostro/base/README.md": ROOM + "x\n" * 9}, {}, "18 lines, more than 15"),
    ({"ostro/base/README.md": ROOM.replace("`Result`", "`Status`")}, {}, "error.h has no Status"),
    ({"scripts/layers.txt": "base:\nio: base\n", "ostro/io/README.md": ROOM.replace("May include: no other room", "May include: base")
      .replace("error.h", "../base/error.h"), "HACKING.md": GOOD["HACKING.md"] + "| io | files |\n"}, {},
     "ostro/base/README.md: scripts/layers.txt says \"May be included by: io.\""),
    ({"scripts/layers.txt": "base:\nbase/watch:\n"}, {}, "ostro/base/README.md: the sub-room watch is not named"),
    ({"HACKING.md": "| io | files |\n"}, {}, "HACKING.md: no line for the room base"),
    ({"HACKING.md": GOOD["HACKING.md"] + "x" * 201 + "\n"}, {}, "201 characters, more than 200"),
    ({"README.md": GOOD["README.md"] + "And 3 % more.\n"}, {}, "\"3 %\" is not in docs/notes/figures.json"),
    ({}, {"figures": ["2.6 times"]}, "the page does not say \"2.6 times\""),
    ({}, {"paths": ["ostro/gone"]}, "code that is not there: ostro/gone"),
    ({}, {"paths": []}, "code that is not there: no path"),
    ({}, {"commit": "0123456789"}, "there is no commit 0123456789"),
]


def git(root, *words):
    done = subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com", *words], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip()


def check(root):
    done = subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def tree(root, files, figure):
    """Writes the tree below `root` and commits it; the figure was measured at that commit."""
    for name, text in files.items():
        if text is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "a")
    row = {**FIGURE, "commit": git(root, "rev-parse", "HEAD"), **figure}
    (root / "docs/notes").mkdir(parents=True, exist_ok=True)
    (root / "docs/notes/figures.json").write_text(json.dumps([row]))


def ages(root):
    """A figure grows too old by changes of its code, and by no others; in a shallow clone it is not checked."""
    def commits(count, name):
        stream = "".join(f"commit refs/heads/main\ncommitter a <a@b> {i} +0000\ndata 1\na\n"
                         + ("from refs/heads/main^0\n" if i == 0 else "") + f"M 100644 inline {name}\ndata {len(str(i))}\n{i}\n"
                         for i in range(count))
        subprocess.run(["git", "-C", root, "fast-import", "--quiet", "--force"], input=stream, text=True, check=True)

    tree(root, GOOD, {})
    git(root, "branch", "-M", "main")
    commits(301, "tests/x.py")
    yield "changes elsewhere", check(root), 0, "1 figures checked, 0 not checked"
    commits(300, "ostro/base/error.cc")
    yield "300 changes of its code", check(root), 0, "1 figures checked"
    commits(1, "ostro/base/more.cc")
    yield "301 changes of its code", check(root), 1, "301 commits have changed ostro/base since"
    shallow = root.parent / "shallow"
    git(root, "clone", "-q", "--depth", "1", root.as_uri(), shallow)
    (shallow / "docs/notes").mkdir(parents=True, exist_ok=True)
    (shallow / "docs/notes/figures.json").write_text((root / "docs/notes/figures.json").read_text())
    said = check(shallow)
    yield "a shallow clone", said, 0, "0 figures checked, 1 not checked"
    yield "a shallow clone", said, 0, "not checked: docs/notes/figures.json"


def main():
    failed = count = 0

    def expect(what, said, status, words):
        nonlocal failed, count
        count += 1
        if said[0] != status or words not in said[1]:
            print(f"{what}: exit {said[0]}, wanted {status} and: {words}\nsaid: {said[1]}")
            failed += 1

    for files, figure, words in [({}, {}, None), *BAD]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            tree(root, {**GOOD, **files}, figure)
            expect(words or "the good tree", check(root), 1 if words else 0, words or "docs: 7 documents, 1 figures checked")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "whole").mkdir()
        for case in ages(pathlib.Path(folder) / "whole"):
            expect(*case)
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
