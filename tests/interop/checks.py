"""Counts checks; the first that does not hold ends the program with its text."""
import pathlib
import sys

NAME = pathlib.Path(sys.argv[0]).stem
passed = 0


def check(condition, what):
    global passed
    if not condition:
        sys.exit(f"{NAME}: FAILED: {what}")
    passed += 1


def summary(more=""):
    print(f"result: {NAME}: {passed} checks passed{more}")
