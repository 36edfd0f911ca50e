"""Which of the expensive tests a sampled run leaves out, so that the whole suite fits into CI's time whatever is added to it.

  python3 tests/suite/choose.py --build FOLDER --seconds S

Tests with the label `drawn` (cmake/Tests.cmake) are put into an order that the seed draws, and each is taken whose budget
still fits into S seconds. The names of the others are printed, one a line. A full run leaves none out.
"""
import argparse
import json
import random
import subprocess

import seed


def expensive(build):
    """The budget of each test with the label, by name."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True,
                                       text=True).stdout)
    budgets = {}
    for test in listed["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        if "drawn" in properties.get("LABELS", []):
            budgets[test["name"]] = properties["COST"]
    return budgets


def taken(budgets, seconds, key):
    """The names that fit, in the order in which `key` draws them."""
    order = sorted(budgets)
    random.Random(f"{key} tests").shuffle(order)
    chosen = []
    for name in order:
        if budgets[name] <= seconds:
            seconds -= budgets[name]
            chosen.append(name)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    args = parser.parse_args()
    budgets = expensive(args.build)
    chosen = list(budgets) if seed.full() else taken(budgets, args.seconds, seed.seed())
    print("\n".join(name for name in sorted(budgets) if name not in chosen))


if __name__ == "__main__":
    main()
