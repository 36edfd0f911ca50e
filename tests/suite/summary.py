#!/usr/bin/env python3
"""Prints what the tests cost and drew, from the files that run_test.py left in DIR: summary.py DIR.

Prints the seed and size, the CPU time of each family of tests beside its budget, and the tests that took more than
twice theirs, which is a warning and no failure: machines differ.
"""
import collections
import json
import pathlib
import sys


def main():
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json"))]
    if not rows:
        print("no test left a result")
        return
    families = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        family = families[row["what"].split(".")[0]]
        for i, value in enumerate((1, row["cpu"], row["budget"])):
            family[i] += value
    for name, (count, cpu, budget) in sorted(families.items(), key=lambda item: -item[1][1]):
        print(f"{name:20} {count:3} tests {cpu:7.1f} s of CPU time, budget {budget:g} s")
    print(f"{sum(row['cpu'] for row in rows):.0f} s of CPU time in all")
    if rows[0]["size"] == "sample":
        for row in rows:
            if row["cpu"] > 2 * row["budget"]:
                print(f"warning: {row['what']} took {row['cpu']:.0f} s of CPU time, its budget is {row['budget']:g} s")
    print(f"again: OSTRO_TEST_SEED={rows[0]['seed']} OSTRO_TEST_SIZE={rows[0]['size']}")


if __name__ == "__main__":
    main()
