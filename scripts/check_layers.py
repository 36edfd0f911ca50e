#!/usr/bin/env python3
"""Fails when a file includes what scripts/layers.txt does not allow, or a folder or a room holds too many lines.

A room is a folder of ostro/, a sub-room a folder of a room that has its own line in layers.txt ("data/sources"). A
folder without a line belongs to the sub-room, or else the room, above it. A line names what may be included: for a
room other rooms, for a sub-room other sub-rooms of the same room. Both may only name what stands above them in the
file, so no two can include each other. The public header ostro/ostro.h may include every room, and no room includes
it. Files that lie in the room's own folder may include all of its sub-rooms, and
no sub-room may include them. Tests (`*_test.cc`, `*_for_test.h`, `test_corpus.*`) may use everything: nothing
includes them. Lines of device text (`*.cu`, `*.cuh`) count as those of C++ do.

A line `way FROM TO: MOST` limits what a reader has to open between two places: the files of FROM's folder that its
includes lead to, where a header leads to its .cc too. TO is among them, and they are MOST at most.

Usage: scripts/check_layers.py [--root DIR] [--draw ROOM], which prints who includes whom inside a room
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"ostro/([^"]+)"', re.MULTILINE)
WAY = re.compile(r"way (\S+) (\S+): (\d+)$")
MOST_LINES = 3000  # of a folder's own files without tests and generated tables; more need sub-rooms
MOST_LINES_OF_ROOM = 10000  # of all folders of a room together; more need another room


def lines_that_count(path):
    """Lines of source, device text too; 0 for a test or a generated table."""
    if path.suffix not in {".h", ".cc", ".cu", ".cuh", ".inc"} or is_test(path) or path.stem.endswith("_tables"):
        return 0
    return len(path.read_text().splitlines())


def read_layers(path):
    """{"data": {"base", ...}, "data/store": {"arrays", ...}} and what is wrong with the file."""
    layers, errors = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name, _, allowed = line.split("#")[0].partition(":")
        name = name.strip()
        if not name or WAY.match(line):
            continue
        room, _, _ = name.rpartition("/")
        for other in allowed.split():
            if (f"{room}/{other}" if room else other) not in layers:
                errors.append(f"{path.name}:{number}: '{name}' may include only what stands above it, not '{other}'")
        layers[name] = set(allowed.split())
    return layers, errors


def is_test(path):
    return path.name.endswith(("_test.cc", "_for_test.h", "_for_test.cc")) or path.stem == "test_corpus"


def place_of(file, layers):
    """The room of a path below ostro/ ("data/store/ledger.h"), and its sub-room there ("store", or "")."""
    parts = file.split("/")[:-1]
    if not parts:
        return "", ""  # the public header
    for length in range(len(parts), 1, -1):
        if "/".join(parts[:length]) in layers:
            return parts[0], "/".join(parts[1:length])
    return parts[0], ""


def problem(source, target, layers):
    """What is wrong with a file at one place that includes one at another; None when nothing is."""
    (room, sub), (room_of_target, sub_of_target) = source, target
    if not room:
        return None
    if not room_of_target:
        return f"room '{room}' must not include the public header"
    if room != room_of_target:
        return None if room_of_target in layers[room] else f"room '{room}' must not include room '{room_of_target}'"
    if sub in ("", sub_of_target) or sub_of_target in layers[f"{room}/{sub}"]:
        return None
    return f"sub-room '{room}/{sub}' must not include '{'/'.join(filter(None, target))}'"


def files_between(root, first):
    """The files of a folder to which the includes of its file `first` lead, itself among them."""
    found = [first]
    for name in found:
        for target in INCLUDE.findall((root / "ostro" / name).read_text()):
            path = pathlib.PurePath(target)
            if path.parent == pathlib.PurePath(first).parent:
                both = (str(path), str(path.with_suffix(".cc")))
                found += [f for f in both if f not in found and (root / "ostro" / f).is_file()]
    return found


def check_ways(root):
    """What is wrong with the ways of layers.txt, and a line about each."""
    errors, lines = [], []
    for first, last, most in filter(None, (WAY.match(line) and WAY.match(line).groups()
                                           for line in (root / "scripts/layers.txt").read_text().splitlines())):
        if not (root / "ostro" / first).is_file():
            errors.append(f"scripts/layers.txt: a way begins at {first}, and there is no such file")
            continue
        found = files_between(root, first)
        if last not in found:
            errors.append(f"ostro/{first}: its includes do not lead to {last}")
        if len(found) > int(most):
            errors.append(f"ostro/{first}: {len(found)} files on the way to {last}, more than {most}: {' '.join(found)}")
        lines.append(f"{len(found)} files from {first} to {last}")
    return errors, lines


def check(root):
    layers, errors = read_layers(root / "scripts/layers.txt")
    edges = set()
    folders = {}
    for path in sorted((root / "ostro").rglob("*")):
        if not path.is_file():
            continue
        folders.setdefault(path.parent, []).append(path)
        if path.suffix not in {".h", ".cc", ".inc"} or is_test(path):
            continue
        source = place_of(str(path.relative_to(root / "ostro")), layers)
        if source[0] and source[0] not in layers:
            errors.append(f"{path.relative_to(root)}: room '{source[0]}' is not in scripts/layers.txt")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = place_of(match.group(1), layers)
            wrong = problem(source, target, layers)
            if wrong:
                errors.append(f"{path.relative_to(root)}:{number}: {wrong}")
            edges.add((source, target))
    rooms = {}
    for folder, files in folders.items():
        lines = sum(map(lines_that_count, files))
        room = "/".join(folder.relative_to(root).parts[:2])
        rooms[room] = rooms.get(room, 0) + lines
        if lines > MOST_LINES:
            errors.append(f"{folder.relative_to(root)}: {lines} lines without tests, more than {MOST_LINES}: split it")
    for room, lines in rooms.items():
        if lines > MOST_LINES_OF_ROOM:
            errors.append(f"{room}: {lines} lines without tests, more than {MOST_LINES_OF_ROOM}: make two rooms of it")
    for name in layers:
        if not (root / "ostro" / name).is_dir():
            errors.append(f"scripts/layers.txt: there is no folder ostro/{name}")
    return layers, errors, edges


def draw(room, layers, edges):
    subs = [name for name in layers if name.startswith(room + "/")] or [room]
    for name in subs:
        sub = name[len(room) + 1:]
        used = sorted({t[1] for s, t in edges if s == (room, sub) and t[0] == room and t[1] != sub})
        print(f"{name:24} {' '.join(used)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--draw", metavar="ROOM")
    args = parser.parse_args()
    layers, errors, edges = check(args.root)
    wrong_ways, ways = check_ways(args.root)
    errors += wrong_ways
    if args.draw:
        draw(args.draw, layers, edges)
    rooms = sum("/" not in name for name in layers)
    print("\n".join(errors) if errors else "; ".join(
        [f"layers: {rooms} rooms, {len(layers) - rooms} sub-rooms, no forbidden include", *ways]))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
