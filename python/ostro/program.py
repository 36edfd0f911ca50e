"""Starts the program that the package brings along (packaging/wheel.py)."""
import os
import pathlib
import sys


def path():
    """The program's file."""
    return pathlib.Path(__file__).resolve().parent / "bin" / "ostro"


def main():
    """Becomes the program, with the words of this command line; its signals and exit code are the program's own."""
    program = str(path())
    # `ostro launch ray` starts ostro_ray, which is in the environment of this Python, with the Ray that is there.
    os.environ.setdefault("OSTRO_PYTHON", sys.executable)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"error: cannot start {program}: {error.strerror}; install the package ostro again")
