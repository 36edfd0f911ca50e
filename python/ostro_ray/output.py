"""Prints the messages that the user sees."""

import os
import sys

_out = sys.stdout


def hide_from_ray():
    """From now on standard output is ours alone: Ray prints there what happens on the nodes, with the last lines of
    their logs."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")


def tell(lines):
    """Results: what a worker has put on its standard output."""
    print(*lines, sep="\n", file=_out, flush=True)


def say(text):
    """What happens."""
    print(text, file=sys.stderr, flush=True)
