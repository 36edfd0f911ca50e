#!/usr/bin/env python3
"""Runs examples/notebooks/try_ostro.ipynb from its first cell to its last, as a user does, in a folder with the wheel: its cells hold
what they assert, the hashes of its text are those that the cells print, and it takes at most four minutes. By hand, since pip downloads
what the wheel needs:

  python3 -m venv try && try/bin/pip install nbclient nbformat ipykernel
  PATH=$PWD/try/bin:$PATH try/bin/python tests/e2e/notebook_test.py dist/ostro-0.1.0-py3-none-manylinux_2_34_x86_64.whl [--log FILE]

The kernel's Python is the first `python` of the PATH.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import time

import nbformat
from nbclient import NotebookClient

from program import check
from serve_load import Log

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MOST_SECONDS = 240
LEAST_HASHES = 5  # of the tales, the run, an answer, the state and log-probabilities
HASH = re.compile(r"\b[0-9a-f]{64}\b")


def printed(cell):
    texts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        texts.append("".join(output.get("text") or data.get("text/html") or data.get("text/plain", "")).rstrip())
    return "\n".join(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--log", type=pathlib.Path)
    given = parser.parse_args()
    log = Log(given.log, "The notebook under nbclient")
    notebook = nbformat.read(ROOT / "examples/notebooks/try_ostro.ipynb", 4)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(given.wheel, folder)
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    seconds = time.monotonic() - begun
    told = "\n".join(printed(cell) for cell in notebook.cells if cell.cell_type == "code")
    print(told)
    said = set(HASH.findall("\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")))
    seen = set(HASH.findall(told))
    check(len(said) >= LEAST_HASHES, f"the notebook's text has {len(said)} hashes; at least {LEAST_HASHES} are expected")
    check(said <= seen, f"hashes of the text that no cell prints: {sorted(said - seen)}; the cells print {sorted(seen)}")
    check(re.search(r'<a href="http://127\.0\.0\.1:\d+/"', told), "no link to the server's page")
    log.say(f"Python {sys.version.split()[0]}: {len(notebook.cells)} cells, {seconds:.0f} s; {len(said)} hashes of its text are printed by its cells")
    log.write()
    check(seconds <= MOST_SECONDS, f"it took {seconds:.0f} s, over {MOST_SECONDS}")


if __name__ == "__main__":
    main()
