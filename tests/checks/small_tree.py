"""Runs a check of the sources on a small tree of its own, so that a test can plant one fault."""
import pathlib
import subprocess
import sys
import tempfile


def write_tree(root, files):
    """Writes files, a text by its path below root, with the folders they need."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run_on_tree(script, files, *options):
    """(exit status, what it printed) of the script with --root, a temporary folder that holds the files."""
    with tempfile.TemporaryDirectory() as folder:
        write_tree(pathlib.Path(folder), files)
        done = subprocess.run([sys.executable, script, "--root", folder, *options], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr
