#!/usr/bin/env python3
"""scripts/check_layers.py notices every kind of include that is not allowed, on small trees of its own."""
import pathlib
import sys

from small_tree import run_on_tree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_layers.py"
LAYERS = """
base:
data: base
data/files:
data/store: files
train: base data
way train/session.cc train/loop.cc: 6
"""
GOOD = {
    "base/error.h": "",
    "data/files/row.h": '#include "ostro/base/error.h"\n',
    "data/store/store.h": '#include "ostro/data/files/row.h"\n',
    "data/store/kernels/fast.h": '#include "ostro/data/store/store.h"\n',  # belongs to data/store
    "data/data.h": '#include "ostro/data/store/store.h"\n',
    "train/session.cc": '#include "ostro/train/run.h"\n#include "ostro/data/data.h"\n',
    "train/run.cc": '#include "ostro/train/loop.h"\n',
    "train/loop.h": "",
    "train/loop.cc": '#include "ostro/train/session.h"\n',
    "train/session.h": "",
    "train/run.h": '#include "ostro/data/store/store.h"\n',
    "data/files/long_test.cc": "// a line\n" * 4000,  # tests do not count
    "ostro.h": '#include "ostro/train/run.h"\n',  # the public header
    "data/files/row_test.cc": '#include "ostro/train/run.h"\n',  # tests may include everything
}
# What is added to the good tree (or to its layers), and what the script must say.
BAD = [
    ({"base/bad.h": '#include "ostro/data/data.h"\n'}, "", "room 'base' must not include room 'data'"),
    ({"data/files/bad.h": '#include "ostro/data/store/store.h"\n'}, "", "'data/files' must not include 'data/store'"),
    ({"data/files/bad.h": '#include "ostro/data/data.h"\n'}, "", "'data/files' must not include 'data'"),
    ({"data/store/kernels/bad.h": '#include "ostro/data/data.h"\n'}, "", "'data/store' must not include 'data'"),
    ({"data/store/bad.h": '#include "ostro/train/run.h"\n'}, "", "room 'data' must not include room 'train'"),
    ({"data/data.cc": '#include "ostro/ostro.h"\n'}, "", "room 'data' must not include the public header"),
    ({"lost/bad.h": ""}, "", "room 'lost' is not in scripts/layers.txt"),
    ({}, "data/check: train\n", "'data/check' may include only what stands above it, not 'train'"),
    ({}, "infer: base\n", "there is no folder ostro/infer"),
    ({"train/loop.cc": '#include "ostro/train/more.h"\n', "train/more.h": '#include "ostro/train/session.h"\n'}, "",
     "ostro/train/session.cc: 7 files on the way to train/loop.cc, more than 6"),
    ({"train/run.cc": ""}, "", "ostro/train/session.cc: its includes do not lead to train/loop.cc"),
    ({}, "way train/lost.cc train/loop.cc: 6\n", "a way begins at train/lost.cc, and there is no such file"),
    ({"data/files/long.h": "// a line\n" * 3000}, "", "ostro/data/files: 3001 lines without tests, more than 3000"),
    ({"data/files/long.cu": "// a line\n" * 1500, "data/files/long.cuh": "// a line\n" * 1500}, "",
     "ostro/data/files: 3001 lines without tests, more than 3000"),
    ({f"data/store/part{i}/long.{'cuh' if i else 'cc'}": "// a line\n" * 2500 for i in range(4)}, "",
     "ostro/data: 10004 lines without tests, more than 10000"),
]


def run(files, layers):
    return run_on_tree(SCRIPT, {**{f"ostro/{name}": text for name, text in files.items()}, "scripts/layers.txt": layers})


def main():
    failed = 0
    status, said = run(GOOD, LAYERS)
    if status != 0:
        print(f"the good tree is refused:\n{said}")
        failed += 1
    for files, more, words in BAD:
        status, said = run({**GOOD, **files}, LAYERS + more)
        if status != 1 or words not in said:
            print(f"exit {status}, wanted 1 and: {words}\nsaid: {said}")
            failed += 1
    print(f"{1 + len(BAD) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
