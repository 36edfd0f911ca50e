#!/usr/bin/env python3
"""Runs every command of README.md's ```console blocks, in order, in one shell, and compares what they print.

A line "..." in the README stands for any number of lines. With --update, the README gets what the commands printed,
"..." lines kept where they were the whole output or its beginning.

  python3 tests/e2e/readme_test.py --ostro build/release/ostro/cli/ostro [--update]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MARK = "@@@@"


def examples(text):
    """(first line, command, expected lines) of every command; lines count from 0 in the text."""
    found, inside = [], False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, line[2:], []))
        elif inside and found:
            found[-1][2].append(line)
    return found


def run(commands, ostro, top, settings=None):
    """What each command printed in the folder `top`, both streams, as lists of lines; stops the test when one fails.
    `settings` are OSTRO_ variables."""
    bin_ = top / "bin"
    bin_.mkdir()
    (bin_ / "ostro").symlink_to(pathlib.Path(ostro).resolve())
    script = "".join(f"{c}\necho '{MARK}' $?\n" for c in commands)
    path = f"{bin_}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # so python3 is the one that runs this test
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | {"PATH": path}
    done = subprocess.run(["bash", "-c", script], cwd=top, env=env | (settings or {}), text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    outputs, lines = [], []
    for line in done.stdout.split("\n"):
        if MARK not in line:
            lines.append(line)
            continue
        before, _, code = line.partition(MARK)  # a command's last line may lack its newline
        if before:
            lines.append(before)
        if code.strip() != "0":
            sys.exit(f"$ {commands[len(outputs)]}\nexit code {code.strip()}:\n" + "\n".join(lines))
        outputs.append(lines)
        lines = []
    return outputs


def matches(expected, got):
    """Whether the lines are the same, "..." in `expected` standing for any number of lines."""
    if not expected:
        return not got
    if expected[0] == "...":
        return any(matches(expected[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and expected[0] == got[0] and matches(expected[1:], got[1:])


def compare(page, cases, outputs, update):
    """How many commands printed something else than the page says; with `update`, the page gets what they printed."""
    wrong = 0
    lines = page.read_text().split("\n")
    for (number, command, expected), got in reversed(list(zip(cases, outputs, strict=True))):
        if matches(expected, got):
            continue
        wrong += 1
        print(f"$ {command}\n-- {page.name} says\n" + "\n".join(expected) + "\n-- it prints\n" + "\n".join(got))
        kept = 1 + max((i for i, line in enumerate(expected) if line == "..."), default=-1)
        tail = got[len(got) - (len(expected) - kept):] if kept else got
        lines[number + 1:number + 1 + len(expected)] = expected[:kept] + tail
    if not update:
        print(f"{len(cases) - wrong} of {len(cases)} commands print what {page.name} says")
        return wrong
    page.write_text("\n".join(lines))
    print(f"{page.name}: {wrong} of {len(cases)} outputs rewritten")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()
    readme = ROOT / "README.md"
    cases = examples(readme.read_text())
    if not cases:
        sys.exit(f"no command in a ```console block of {readme}: nothing is tested")
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("LICENSE", "configs"):
            (top / name).symlink_to(ROOT / name)
        outputs = run([command for _, command, _ in cases], args.ostro, top)
    return 1 if compare(readme, cases, outputs, args.update) else 0


if __name__ == "__main__":
    sys.exit(main())
