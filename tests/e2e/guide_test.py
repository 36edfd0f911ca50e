#!/usr/bin/env python3
"""Runs every command of a page of docs/guide, in order, as readme_test.py does with README.md. A YAML block that begins with
a comment "# NAME.yaml" is written to that file first. The folder has `tools` of the sources.

  python3 tests/e2e/guide_test.py --ostro build/release/ostro/cli/ostro --page docs/guide/finetune.md [--update]
"""
import argparse
import pathlib
import re
import sys
import tempfile

from readme_test import ROOT, compare, examples, run


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
        for block in re.findall(r"```yaml\n(# (\S+\.yaml)\n.*?)```", page.read_text(), re.DOTALL):
            (top / block[1]).write_text(block[0])
        outputs = run([command for _, command, _ in cases], args.ostro, top)
    return 1 if compare(page, cases, outputs, args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
