#!/usr/bin/env python3
"""scripts/check_names.py notices names that two files of a room both have, and nothing else, on small trees of its own."""
import pathlib
import sys

from small_tree import run_on_tree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_names.py"


def source(text, space="data"):
    return f"namespace ostro::{space} {{\nnamespace {{\n{text}\n}}  // namespace\n}}\n"


FIRST = source("struct Row { int a; };\nconstexpr int kRows[] = {1, 2};\nusing Json = other::json;\nstruct Later;")
GOOD = {
    "a function may be an overload": source("int rows(const Row&) { struct Row { int b; }; return 0; }"),
    "an alias may be said again": source("using Json  =  other::json;"),
    "another namespace": source("struct Row { int b; };", "data::files"),
    "comments, texts": source('// struct Row {};\nconst char* const kText = "struct Row {};";'),
    "a declaration": source("struct Later;"),
}
BAD = {
    "a type": (source("class Row final : public Base {};"), "Row"),
    "a template": (source("template <class T>\nclass Row {\n};"), "Row"),
    "an enum": (source("enum class Row : int { kA };"), "Row"),
    "a constant": (source("constexpr std::pair<int, int> kRows[] = {{1, 2}};"), "kRows"),
    "an alias that differs": (source("using Json = other::ordered_json;"), "Json"),
}


def run(second):
    return run_on_tree(SCRIPT, {"ostro/data/CMakeLists.txt": "", "ostro/data/first.cc": FIRST,
                                "ostro/data/more/second.cc": second,
                                "ostro/data/more/second_test.cc": FIRST})  # tests have batches of their own


def main():
    failed = 0
    for what, text in GOOD.items():
        status, said = run(text)
        if status != 0:
            print(f"{what}: refused:\n{said}")
            failed += 1
    for what, (text, name) in BAD.items():
        status, said = run(text)
        if status != 1 or f"second.cc:3: 'ostro::data::{name}' is also in ostro/data/first.cc:" not in said.replace(
                "second.cc:4:", "second.cc:3:"):
            print(f"{what}: not noticed:\n{said}")
            failed += 1
    print(f"{len(GOOD) + len(BAD) - failed} of {len(GOOD) + len(BAD)} trees judged rightly")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
