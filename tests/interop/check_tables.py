#!/usr/bin/env python3
"""Checks that the generated tables of ostro/tokenizer/unicode are what the libraries give: in a sampled run one of
them."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "suite"))
import seed

SCRIPTS = ("make_unicode_tables", "make_case_tables", "make_normalization_tables")
# A script that a signal ended has a negative status.
sys.exit(any([subprocess.run([sys.executable, ROOT / "scripts" / f"{script}.py", "--check"], check=False).returncode != 0
              for script in seed.draw("tables", SCRIPTS, 1)]))
