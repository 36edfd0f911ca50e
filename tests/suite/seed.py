"""The seed and the size of a run of the tests: the one place that says what samples are drawn from, for every language.

  python3 tests/suite/seed.py                          prints the seed
  python3 tests/suite/seed.py draw WHAT COUNT ITEM...  prints COUNT of the items, one a line (all in a full run)

The seed is OSTRO_TEST_SEED, or else follows from the commit, so that every commit tries other samples and each can be
tried again. Where no commit is known, it follows from the sources themselves. tests/suite/run_test.py gives it to every
test as OSTRO_TEST_SEED, which C++ tests read (ostro/base/test_size.h). OSTRO_TEST_SIZE is "sample" (the default), "full",
or "exhaustive", which takes hours.
"""
import contextlib
import hashlib
import os
import pathlib
import random
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SIZES = ("sample", "full", "exhaustive")


def commit():
    """The full name of the commit, or None in a copy of the tree without its history or on a machine without git."""
    try:
        # A tree that another user owns is read as well: git refuses that by itself.
        done = subprocess.run(["git", "-C", str(REPOSITORY), "-c", "safe.directory=*", "rev-parse", "HEAD"],
                              capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def sources_hash():
    """SHA-256 over what is tested and the tests, by path."""
    hasher = hashlib.sha256()
    files = (path for room in ("ostro", "tests") for path in (REPOSITORY / room).rglob("*") if path.is_file())
    for path in sorted(path.relative_to(REPOSITORY).as_posix() for path in files):
        if "__pycache__" not in path:
            hasher.update(path.encode() + b"\0" + (REPOSITORY / path).read_bytes())
    return hasher.hexdigest()


def seed():
    """An integer below 2^32."""
    given = os.environ.get("OSTRO_TEST_SEED", "")
    if given:
        if not given.isdigit():
            sys.exit(f"error: OSTRO_TEST_SEED={given}: not a number")
        return int(given) % 2**32
    return int((commit() or sources_hash())[:8], 16)


def size():
    given = os.environ.get("OSTRO_TEST_SIZE", "") or "sample"
    if given not in SIZES:
        sys.exit(f"error: OSTRO_TEST_SIZE={given}: use one of {', '.join(SIZES)}")
    return given


def full():
    """Whether everything is asked for, not a sample."""
    return size() != "sample"


def draw(what, items, count):
    """`count` of the items by the seed, in their order, and says which; all of them in a full run."""
    items = list(items)
    if full() or count >= len(items):
        return items
    rng = random.Random(f"{seed()} {what}")
    chosen = sorted(rng.sample(range(len(items)), count))
    print(f"seed {seed()}: {what}: {count} of {len(items)}: " + ", ".join(str(items[i]) for i in chosen), flush=True)
    return [items[i] for i in chosen]


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        with contextlib.redirect_stdout(sys.stderr):
            chosen = draw(sys.argv[2], sys.argv[4:], int(sys.argv[3]))
        print("\n".join(chosen))
    else:
        print(seed())
