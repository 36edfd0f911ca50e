#!/usr/bin/env python3
"""Runs everything that docs/guide/python.md shows, in order: ```console blocks by bash, as readme_test.py does, and ```pycon
blocks by doctest in one process, "..." standing for any text.

  python_guide_test.py --ostro BINARY --package build/release/python
"""
import argparse
import doctest
import os
import pathlib
import re
import sys
import tempfile

from readme_test import ROOT, compare, examples, run

PAGE = ROOT / "docs/guide/python.md"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(args.package.resolve()))
    for name in [name for name in os.environ if name.startswith("OSTRO_")]:
        del os.environ[name]
    cases = examples(PAGE.read_text())
    sessions = re.findall(r"```pycon\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if not cases or not sessions:
        sys.exit(f"no command or no session of Python in {PAGE}: nothing is tested")
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("LICENSE", "configs"):
            (top / name).symlink_to(ROOT / name)
        wrong = compare(PAGE, cases, run([command for _, command, _ in cases], args.ostro, top), args.update)
        os.chdir(top)
        test = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, PAGE.name, str(PAGE), 0)
        found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        os.chdir("/")
    print(f"{found.attempted - found.failed} of {found.attempted} lines of Python print what {PAGE.name} says")
    return 1 if wrong or found.failed else 0


if __name__ == "__main__":
    sys.exit(main())
