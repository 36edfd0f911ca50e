#!/usr/bin/env python3
"""scripts/check_headers.py notices headers and comments that break the rule, and nothing else, on small trees."""
import pathlib
import sys

from small_tree import run_on_tree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_headers.py"
GOOD = {
    "base/error.h": "// Error, Status: what a call that can fail returns.\n",
    "base/pool.inc.h": "// numerics::pool: keeps buffers.\n",
    "base/run.h": "// `ostro run --name NAME [--dry_run] [--quiet]`: runs.\n",
    "base/more.h": "// add, sub, ...: ops.\n//\n// It is fine if some body reads this.\n",
    "base/file.h": "// run_config.h: the options of a run: names and values.\n",
    "base/phrase.h": "// Packed B: the second operand.\n",
    "base/error.cc": 'auto a = "// nobody"; char b = \'"\'; int c = 1\'000; auto d = R"x(// whoever)x";\n',
    "base/error_test.cc": "// Which errors there are.\n",  # tests begin as they like
    "base/error_for_test.h": "#pragma once\n",
    "other/bad.h": "// What is bad.\n",  # of another room
}
# What is added to the good tree, and what the script must say.
BAD = [
    ({"base/a.h": "#pragma once\n"}, 'base/a.h:1: the first line is not "// Name: what it is for"'),
    ({"base/a.h": ""}, 'base/a.h:1: the first line is not "// Name: what it is for"'),
    ({"base/a.h": "// Reads files of rows.\n"}, 'base/a.h:1: the first line is not "// Name: what it is for"'),
    ({"base/a.h": "// Reader:\n// reads.\n"}, 'base/a.h:1: the first line is not "// Name: what it is for"'),
    ({"base/a.h": "// Reads. Files: rows.\n"}, '"Reads. Files" is no name'),
    ({"base/a.inc.h": "// What rows share: a name.\n"}, 'base/a.inc.h:1: the first line begins with "What"'),
    ({"base/a.h": "// Whose: a name.\n"}, 'base/a.h:1: the first line begins with "Whose"'),
    ({"base/a.h": "// The same: a name.\n"}, 'base/a.h:1: the first line begins with "The same"'),
    ({"base/a.h": "// Reads all files of rows in order: a name.\n"}, "has 7 words; use at most 6"),
    ({"base/a.h": "// A: it.\nint a;  // Nobody's.\n"}, 'base/a.h:2: a comment says "Nobody"'),
    ({"base/a.cc": "int a;\n/* one\n   whoever */\n"}, 'base/a.cc:3: a comment says "whoever"'),
    ({"base/a.cc": 'auto a = "\\"";  // everyone\n'}, 'base/a.cc:1: a comment says "everyone"'),
    ({"base/a_test.cc": "// Somebody.\n"}, 'base/a_test.cc:1: a comment says "Somebody"'),
    ({"base/deep/a.h": "// Where.\n"}, "base/deep/a.h:1: the first line"),
]


def run(files, *options):
    return run_on_tree(SCRIPT, {f"ostro/{name}": text for name, text in files.items()}, *options)


def main():
    good = {name: text for name, text in GOOD.items() if name.startswith("base/")}
    cases = [
        (GOOD, ["--room", "base"], 0, f"headers: {len(good)} files"),
        (good, [], 0, f"headers: {len(good)} files"),
        (GOOD, [], 1, "other/bad.h:1: the first line"),
        (GOOD, ["--room", "base", "--room", "other"], 1, "other/bad.h:1: the first line"),
        (GOOD, ["--room", "base/phrase.h"], 0, "headers: 1 files"),
        (GOOD, ["--room", "lost"], 1, "there is no ostro/lost"),
        (GOOD, ["--draw", "2", "--seed", "a"], 0, "ostro/base/"),
        *[({**GOOD, **files}, ["--room", "base"], 1, words) for files, words in BAD],
    ]
    failed = 0
    for files, options, wanted, words in cases:
        status, said = run(files, *options)
        alone = said.count("\n") == 1 or options != ["--room", "base"]  # one line, of the fault that was planted
        if status != wanted or words not in said or not alone:
            print(f"exit {status}, wanted {wanted} and: {words}\nsaid: {said}")
            failed += 1
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
