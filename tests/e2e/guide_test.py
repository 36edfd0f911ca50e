#!/usr/bin/env python3
"""Runs every command of a page of docs/guide, in order, as readme_test.py does with README.md. A YAML block that begins with
a comment "# NAME.yaml", or a Typst block that begins with "// NAME.typ", is written to that file first. The folder has `tools` of the
sources. A page with such a Typst block finds the pinned Typst, or the module in its place that lab_paper_test.py has.

  python3 tests/e2e/guide_test.py --ostro build/release/ostro/cli/ostro --page docs/guide/finetune.md [--update]
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from readme_test import ROOT, compare, examples, run


def typst_settings(top):
    """The variables with which python3 finds Typst."""
    import lab_paper_test
    place = lab_paper_test.find_typst(None)
    if place is None:
        print("NOT RUN: Typst itself; a module in its place")
        return {"PYTHONPATH": lab_paper_test.stand_in(top, lab_paper_test.TYPST)}
    done = subprocess.run([f"{place}/python3", "-c", "import os, typst; print(os.path.dirname(os.path.dirname(typst.__file__)))"],
                          check=True, capture_output=True, text=True)
    return {"PYTHONPATH": done.stdout.strip()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--page", required=True, type=pathlib.Path)
    args = parser.parse_args()
    page = ROOT / args.page
    cases = examples(page.read_text())
    if not cases:
        sys.exit(f"no command in a ```console block of {page}: nothing is tested")
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        (top / "tools").symlink_to(ROOT / "tools")
        settings = {}
        for block in re.findall(r"```(?:yaml|typst)\n((?:#|//) (\S+\.(?:yaml|typ))\n.*?)```", page.read_text(), re.DOTALL):
            (top / block[1]).write_text(block[0])
            if block[1].endswith(".typ"):
                settings = typst_settings(top)
        outputs = run([command for _, command, _ in cases], args.ostro, top, settings)
    return 1 if compare(page, cases, outputs, args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
