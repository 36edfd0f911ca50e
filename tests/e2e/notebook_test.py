#!/usr/bin/env python3
"""Runs examples/notebooks/try_ostro.ipynb from its first cell to its last, as a user does, in a folder with the wheel. By
hand, since pip downloads what the wheel needs:

  python3 -m venv try && try/bin/pip install nbclient nbformat ipykernel
  try/bin/python tests/e2e/notebook_test.py dist/ostro-0.1.0-py3-none-manylinux_2_34_x86_64.whl
"""
import pathlib
import shutil
import sys
import tempfile
import time

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    notebook = nbformat.read(ROOT / "examples/notebooks/try_ostro.ipynb", 4)
    begun = time.time()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(sys.argv[1], folder)
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            print((output.get("text") or output.get("data", {}).get("text/plain", "")).rstrip())
    print(f"{len(notebook.cells)} cells, {time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
