#!/usr/bin/env python3
"""Fails when the code reads an environment variable that no table of docs/reference/environment.md or docs/reference/sources.md names, or
when one of these tables names one that the code does not read. Usage: scripts/check_environment.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("docs/reference/environment.md", "docs/reference/sources.md")
# Read by name, or handed to a function that reads: names with these beginnings are nothing else.
READ = re.compile(r'(?:getenv|variable)\(\s*"([A-Z][A-Z0-9_]*)"|"((?:OSTRO|AWS|XDG)_[A-Z0-9_]+)"')
NAME = re.compile(r"`([A-Z][A-Z0-9_]*)`")


def names_in_code():
    found = {}
    for path in sorted((ROOT / "ostro").rglob("*")):
        if path.suffix in {".h", ".cc", ".inc"} and not path.name.endswith(("_test.cc", "_for_test.h")):
            for match in READ.finditer(path.read_text()):
                found.setdefault(match[1] or match[2], path.relative_to(ROOT))
    return found


def names_in_tables():
    """Of the first cells of tables whose first head is "variable"."""
    found = {}
    for page in PAGES:
        inside = False
        for line in (ROOT / page).read_text().splitlines():
            first = line.split("|")[1].strip() if line.startswith("|") else None
            inside = first is not None and (inside or first == "variable")
            for name in NAME.findall(first) if inside else ():
                found.setdefault(name, page)
    return found


def main():
    code, tables = names_in_code(), names_in_tables()
    errors = [f"{path}: reads {name}, which no table of {' or '.join(PAGES)} names"
              for name, path in code.items() if name not in tables]
    errors += [f"{page}: names {name}, which no code reads" for name, page in tables.items() if name not in code]
    print("\n".join(errors) if errors else f"environment: {len(code)} variables, all of them documented")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
