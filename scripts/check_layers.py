#!/usr/bin/env python3
"""Fails when a room includes a room that scripts/layers.txt does not allow.

Tests (`*_test.cc`, `*_for_test.h`) may use any room: they are leaves of the graph. Usage: scripts/check_layers.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"ostro/([a-z_]+)/')


def read_layers():
    layers = {}
    for line in (ROOT / "scripts/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            room, _, allowed = line.partition(":")
            layers[room.strip()] = set(allowed.split())
    return layers


def main():
    layers = read_layers()
    errors = []
    for path in sorted((ROOT / "ostro").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inc"} or path.name.endswith(("_test.cc", "_for_test.h")):
            continue
        room = path.relative_to(ROOT / "ostro").parts[0]
        if room not in layers:
            errors.append(f"{path.relative_to(ROOT)}: room '{room}' is not in scripts/layers.txt")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1) != room and match.group(1) not in layers[room]:
                errors.append(f"{path.relative_to(ROOT)}:{number}: room '{room}' must not include room '{match.group(1)}'")
    print("\n".join(errors) if errors else f"layers: {len(layers)} rooms, no forbidden include")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
