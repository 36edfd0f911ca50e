"""Prints the messages that the user sees."""

import os
import sys

_out = sys.stdout


def hide_from_ray():
    """From now on standard output is ours alone: Ray prints there what happens on the nodes, with the last lines of
    their logs."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")


def _print(lines, file):
    """A terminal or a pipe that is gone ends no run."""
    try:
        print(*lines, sep="\n", file=file, flush=True)
    except OSError:
        pass


def tell(lines):
    """Results: what a worker has put on its standard output."""
    _print(lines, _out)


def say(text):
    """What happens."""
    _print([text], sys.stderr)
