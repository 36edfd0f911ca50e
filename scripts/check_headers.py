#!/usr/bin/env python3
"""Checks how headers of ostro/ begin and which words comments use.

The first line of a header (*.h, tests excluded) is a comment "// Name: what it is for" or "// Name, Name: what it is
for". A name is an identifier, a file, a command in backquotes or a phrase of at most six words, and does not begin
with a question word or "The same". No comment of a header or source file says nobody, somebody, whoever or everyone:
it names the thread, worker, caller or reader that is meant. Reports FILE:LINE and the reason.

Usage: scripts/check_headers.py [--root DIR] [--room NAME]..., which checks these rooms,
folders or files alone
       scripts/check_headers.py --draw N [--seed TEXT], which prints the paths of N headers that the seed draws (the
hash of HEAD by default): a person reads them against the whole rule, of which the script checks only the first line
"""
import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

QUESTIONS = ("what", "which", "how", "who", "whose", "where", "whether", "the same")
RIDDLES = re.compile(r"\b(nobody|somebody|whoever|everyone)\b", re.IGNORECASE)
MOST_WORDS = 6  # of a header's name
FIRST = re.compile(r"// ((?:`[^`]+`|[^`])*?):(?: (.*))?$")
COMMAND = re.compile(r"`[^`]+`")
WORD = re.compile(r"(\.\.\.|\w(?:[\w:.*/<>'-]*[\w>*])?),?")
# Comments, and what may hold their signs without being one: strings, characters and numbers (1'000).
PIECE = re.compile(
    r'R"(?P<end>[^()\\ ]{0,16})\([\s\S]*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\b\d[\w.\']*'
    r"|(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)")


def is_test(path):
    return path.name.endswith(("_test.cc", "_for_test.h", "_for_test.cc")) or path.stem == "test_corpus"


def wrong_beginning(line):
    """What is wrong with the first line of a header; None when nothing is."""
    match = FIRST.match(line)
    if not match or not match.group(2):
        return 'the first line is not "// Name: what it is for"'
    name = match.group(1)
    question = re.match(rf"({'|'.join(QUESTIONS)})\b", name, re.IGNORECASE)
    if question:
        return f'the first line begins with "{question.group()}", not with the name of what the header declares'
    words = COMMAND.sub("command", name).split()
    bad = [word for word in words if not WORD.fullmatch(word)]
    if bad or not words:
        return f'the first line is not "// Name: what it is for": "{name}" is no name'
    if len(words) > MOST_WORDS:
        return f'the name of the first line, "{name}", has {len(words)} words; use at most {MOST_WORDS}'
    return None


def riddles(text):
    """(line, word) of each word that comments do not use."""
    found = []
    for piece in PIECE.finditer(text):
        for word in RIDDLES.finditer(piece["comment"] or ""):
            found.append((text.count("\n", 0, piece.start("comment") + word.start()) + 1, word.group()))
    return found


def check(root, rooms):
    """(errors, number of files) of the rooms, folders or files `rooms` below root/ostro."""
    errors, files = [], set()
    for room in rooms:
        place = root / "ostro" / room
        if not place.exists():
            errors.append(f"scripts/check_headers.py: there is no ostro/{room}")
        files.update([place] if place.is_file() else place.rglob("*"))
    files = sorted(path for path in files if path.suffix in {".h", ".cc"})
    for path in files:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(root)
        wrong = wrong_beginning(text.split("\n")[0]) if path.suffix == ".h" and not is_test(path) else None
        if wrong:
            errors.append(f"{name}:1: {wrong}")
        for line, word in riddles(text):
            errors.append(f'{name}:{line}: a comment says "{word}"; name the thread, worker, caller or reader')
    return errors, len(files)


def draw(root, count, seed):
    """`count` headers of root/ostro: those with the least SHA-256 of the seed and their path."""
    paths = [path.relative_to(root).as_posix() for path in root.glob("ostro/**/*.h") if not is_test(path)]
    return sorted(sorted(paths, key=lambda path: hashlib.sha256(f"{seed} {path}".encode()).digest())[:count])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--room", metavar="NAME", action="append", help="a room, folder or file below ostro/")
    parser.add_argument("--draw", type=int, metavar="N", help="print the paths of N headers to read")
    parser.add_argument("--seed", help="draws the headers (default: the hash of HEAD)")
    args = parser.parse_args()
    if args.draw:
        head = ["git", "-C", args.root, "rev-parse", "HEAD"]
        seed = args.seed or subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
        print("\n".join(draw(args.root, args.draw, seed)))
        return 0
    errors, files = check(args.root, args.room or [""])
    print("\n".join(errors) if errors else f"headers: {files} files begin with their name, and no comment is a riddle")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
