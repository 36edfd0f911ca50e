#!/usr/bin/env python3
"""Gives the program mutated records and models of strangers: no command may abort, be killed by a signal or hang.

A case is drawn from its number: what is handed over (a run's record, a Hugging Face directory), which file of it is
harmed and how, and the command that reads it. Chains and manifests often get hashes that fit again, so that what lies
behind these checks is reached.

    strangers_test.py --ostro BINARY [--seed N] [--count N] [--seconds S] [--each S]

OSTRO_TEST_SEED draws the cases. The full form, under sanitizers, by hand: PRESET=asan-ubsan scripts/build.sh ostro, then --each 1200:
verify, import, inspect, status and export each get so many CPU-seconds. The last lines say how many each command got, and each kind of harm.
"""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import time

import forger
from harness import Failure, Workspace, check

STEPS, EVERY, LIMIT = 4, 2, 60
EACH = ["verify", "import", "inspect", "status", "export"]
NUMBERS = [0, -1, 1, 2, 3, 2**31 - 1, 2**31, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, -2**63, 1e308, -1e308, 5e-324, 1e-310, 0.5,
           -0.0, 1e400]
TEXTS = ["", "a", "model", "../../x", "/etc/passwd", "a/../b", "x" * 5000, "\n", "\x00", "\x1b[2J", "é", "nan", "inf", "0x1p+9999",
         "0x0p+0", "-0x1p-1074", "!include /dev/zero", "{{", "%s%n", "step-00000002", "f32", "bf16", "i8", "null", "\ud800"]


SPECIAL = ["a fifo", "a socket", "a folder", "a link to itself", "empty", "a hole of 1 TiB"]


def mutated_value(rng, value):
    """Another JSON value in the place of this one."""
    how = rng.randrange(9)
    if how == 0:
        return rng.choice(NUMBERS)
    if how == 1:
        return rng.choice(TEXTS)
    if how == 2:
        return rng.choice([None, True, False, [], {}, [[]], [None], {"a": 1}])
    if how == 3 and isinstance(value, (int, float)) and not isinstance(value, bool):
        return rng.choice([value + 1, value - 1, -value, value * 2, value * 1000003])
    if how == 4 and isinstance(value, list) and not isinstance(value, Deep):
        return value * rng.randrange(4)
    if how == 5 and isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(TEXTS) + value[at + rng.randrange(3):]
    return Deep([rng.choice([1, 2, 3000, 100000]), value]) if how == 6 else rng.choice(NUMBERS)


def edit_json(rng, value, edits):
    """Changes, removes or adds values somewhere below `value`."""
    for _ in range(edits):
        places = []

        def walk(node):
            if isinstance(node, Deep) or not isinstance(node, (dict, list)):
                return
            for key, child in node.items() if isinstance(node, dict) else enumerate(node):
                places.append((node, key))
                walk(child)

        walk(value)
        if not places:
            return value
        # Of long lists of the same kind, one place as often as another kind of place.
        kinds = {}
        for node, key in places:
            kinds.setdefault(key if isinstance(key, str) else "#", []).append((node, key))
        node, key = rng.choice(kinds[rng.choice(sorted(kinds))])
        if isinstance(node, dict) and rng.random() < 0.15:
            del node[key]
        elif isinstance(node, dict) and rng.random() < 0.1:
            node[rng.choice(TEXTS)] = node[key]
        else:
            node[key] = mutated_value(rng, node[key])
    return value


class Deep(list):
    """A value below many lists: `dumped` writes their brackets, which are too many for Python's stack."""


def dumped(value, **options):
    """JSON, also of Deep values."""
    found = []

    def flat(node):
        if isinstance(node, Deep):
            found.append(node)
            return f"@deep{len(found) - 1}@"
        if isinstance(node, dict):
            return {k: flat(v) for k, v in node.items()}
        return [flat(v) for v in node] if isinstance(node, list) else node

    text = json.dumps(flat(value), ensure_ascii=True, **options)
    for i, (depth, inner) in enumerate(found):
        text = text.replace(f'"@deep{i}@"', "[" * depth + dumped(inner, **options) + "]" * depth)
    return text


def edit_bytes(rng, data):
    """Changes bytes, or words of a text."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5, 20])):
        at, how = rng.randrange(len(data) + 1), rng.randrange(8)
        if how == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            data[at:at + rng.choice([1, 4, 100])] = b""
        elif how == 2:
            data[at:at] = str(rng.choice(NUMBERS)).encode()
        elif how == 3:
            data[at:at] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
        elif how == 4:
            del data[at:]
        elif how == 5:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin:begin + rng.choice([10, 200, 4000])]
        else:  # a number of the text becomes another one
            digits = [i for i in range(len(data)) if 48 <= data[i] <= 57]
            if digits:
                begin = end = rng.choice(digits)
                while end < len(data) and 48 <= data[end] <= 57:
                    end += 1
                data[begin:end] = str(abs(int(rng.choice(NUMBERS[:13])))).encode()
    if rng.random() < 0.02:
        data = b"[" * 200000 + data
    return bytes(data)


def special_file(rng, path):
    """Something else than a file of bytes in the place of `path`."""
    path.unlink()
    how = rng.randrange(6)
    if how == 0:
        os.mkfifo(path)
    elif how == 1:
        here = os.getcwd()
        os.chdir(path.parent)  # a socket's path is short
        socket.socket(socket.AF_UNIX).bind(path.name)
        os.chdir(here)
    elif how == 2:
        path.mkdir()
    elif how == 3:
        path.symlink_to(path.name)
    elif how == 4:
        path.write_bytes(b"")
    else:
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    return SPECIAL[how]


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kinds_of(done, words):
    """The kinds of what was done to a case: files by their names, special files, and folders whose names are no plain UTF-8."""
    kinds = {"special files" if how.split(": ", 1)[1] in SPECIAL else pathlib.Path(how.split(": ", 1)[0]).name for how in done}
    return kinds | ({"names"} if any("\udcff" in word or "\x1b" in word for word in words) else set())


class Fuzz:
    def __init__(self, ostro):
        self.w = w = Workspace(ostro)
        config = w.config("good", STEPS, EVERY, model__seq_len=8, trainer__train_batch_size=3)
        w.train(config)
        w.good("export", "--checkpoint", "runs/good", "--to", "hf", "--out", "hf")
        self.config = config
        self.top = w.root / "case"
        self.counts, self.spent, self.cpu = {}, {}, {}
        # What a sound file says of its size is asked for; so much memory is not there. A sanitizer needs addresses of its own.
        self.limit = ["prlimit", f"--as={6 << 30}"]
        if b"__asan_init" in pathlib.Path(ostro).read_bytes():
            self.limit = ["env", "ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=6144:detect_leaks=0"]

    def close(self):
        self.w.close()

    def harm(self, rng, folder, names):
        """Harms one file of the folder; what was done."""
        path = folder / rng.choice(names)
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or path.stat().st_size > 1 << 30:
            return f"{name}: harmed before"
        data = path.read_bytes()
        how = rng.random()
        try:
            return f"{name}: {self.harm_text(rng, path, data, how)}"
        except (ValueError, RecursionError):  # harmed before: no JSON any more, or too deep for Python
            path.write_bytes(edit_bytes(rng, data))
            return f"{name}: bytes"

    def harm_text(self, rng, path, data, how):
        if how < 0.08:
            return special_file(rng, path)
        if path.suffix == ".jsonl" and how < 0.75:
            lines = [json.loads(line) for line in data.splitlines()]
            at = rng.randrange(len(lines))
            lines[at] = edit_json(rng, lines[at], rng.choice([1, 1, 2, 4]))
            if rng.random() < 0.2:
                lines.insert(rng.randrange(len(lines) + 1), lines[rng.randrange(len(lines))])
            head, out = "", []
            for entry in lines:
                if isinstance(entry, dict):
                    entry.pop("h", None)
                    text = dumped(entry, sort_keys=True, separators=(",", ":"))
                    head = forger.sha((head + text).encode())
                    text = dumped(entry | {"h": head}, sort_keys=True, separators=(",", ":"))
                else:
                    text = dumped(entry)
                out.append(text)
            path.write_text("\n".join(out) + "\n")
            return f"entry {at}, hashed again"
        if path.suffix == ".json" and how < 0.8:
            value = edit_json(rng, json.loads(data), rng.choice([1, 1, 2, 4]))
            text = dumped(value, indent=2)
            if path.name == "manifest.json" and isinstance(value, dict) and rng.random() < 0.9:
                value.pop("checksum", None)
                body = dumped(value, indent=2)[: -len("\n}")]
                text = f'{body}{forger.CHECKSUM}{forger.sha(body.encode())}"\n}}\n'
            path.write_text(text)
            return "values, sealed"
        path.write_bytes(edit_bytes(rng, data))
        return "bytes"

    def record(self, rng, wanted):
        run = self.top / rng.choice(["run", "run", "run", "r\udcff\udcfe", "r\n\x1b[2J"])
        shutil.copytree(self.w.root / "runs" / "good", run, symlinks=True)
        names = ["chain.jsonl", "chain.jsonl", "program.ir", "program.ir", "config.yaml", "tokenizer.json", "run.json",
                 "metrics.jsonl", "goodput.json", "tokenizer_config.json", "checkpoints/step-00000002/manifest.json",
                 "checkpoints/step-00000004/manifest.json", "checkpoints/step-00000004/model/norm/weight/zarr.json"]
        names = [n for n in names if (run / n).exists()]
        done = [self.harm(rng, run, names) for _ in range(rng.choice([1, 1, 1, 2]))]
        if rng.random() < 0.3:  # of another version: its programs are replayed as they are stored
            record = run / "run.json"
            record.rmdir() if record.is_dir() and not record.is_symlink() else record.unlink(missing_ok=True)
        step = str(run / "checkpoints" / "step-00000004")
        commands = [
            ["verify", str(run)], ["verify", str(run), "--stored_program"], ["verify", str(run), "--no_replay", "--json"],
            ["verify", str(run), "--from_step", "3"], ["inspect", str(run)], ["inspect", str(run), "--json"],
            ["inspect", str(run), "--plot"], ["inspect", str(run), "--html", str(self.top / "page.html")], ["inspect", step],
            ["status", str(run)], ["status", str(run), "--json"], ["hash", str(run)],
            ["export", "--checkpoint", str(run), "--to", "hf", "--out", str(self.top / "out")],
            ["export", "--checkpoint", step, "--to", "hf", "--out", str(self.top / "out"), "--unchecked"],
            ["sample", "--checkpoint", step, "--prompt", "a", "--max_new_tokens", "2", "--unchecked"],
            ["diff", str(run), str(self.w.root / "runs" / "good")],
        ]
        return done, rng.choice([words for words in commands if wanted in (None, words[0])])

    def model(self, rng, wanted):
        model = self.top / "model"
        shutil.copytree(self.w.root / "hf", model)
        names = [p.name for p in sorted(model.iterdir()) if p.is_file()]
        done = [self.harm(rng, model, ["config.json", "config.json", "tokenizer.json", *names])
                for _ in range(rng.choice([1, 1, 2]))]
        return done, ["import", "--from", "hf", str(model), "--out", str(self.top / "imported")]

    def case(self, seed, wanted):
        """The case of this number; `wanted`: the command that reads it, None for any."""
        rng = random.Random(seed)
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir()
        makers = [self.record, self.record, self.model] if wanted is None else [self.model if wanted == "import" else self.record]
        done, words = rng.choice(makers)(rng, wanted)
        command = [*self.limit, "timeout", "-s", "KILL", str(LIMIT), self.w.ostro, *words]
        begin, used = time.monotonic(), children_seconds()
        process = subprocess.run(command, cwd=self.w.root, env=self.w.env, stdin=subprocess.DEVNULL, capture_output=True,
                                 check=False)
        seconds = time.monotonic() - begin
        status, text = process.returncode, (process.stdout + process.stderr).decode(errors="replace")
        self.counts[words[0]] = self.counts.get(words[0], 0) + 1
        spent = children_seconds() - used
        self.spent[words[0]] = self.spent.get(words[0], 0) + spent
        for kind in kinds_of(done, words):
            self.cpu[kind] = self.cpu.get(kind, 0) + spent
        where = f"case {seed}{f' of {wanted}' if wanted else ''}: {' '.join(words)}\n  {done}\n  exit status {status} after {seconds:.1f} s\n{text[-2000:]}"
        check(0 <= status < 128 and "broken invariant" not in text, where)
        # Where memory cannot be had, operator new throws; AddressSanitizer's ends the process with a report of its own.
        check(not re.search(r"(ERROR|WARNING): \w+Sanitizer(?! failed to allocate|: (allocator is )?out.of.memory)", text) and "runtime error: " not in text, where)
        check(status == 0 or text.strip(), f"{where}\nnothing is said")
        check("terminate called" not in text, where)

    def least(self, each):
        """The command that got the least CPU time so far; None when all have their share."""
        command = min(EACH, key=lambda name: self.spent.get(name, 0))
        return command if self.spent.get(command, 0) < each else None

    def run(self, seed, count, seconds, each):
        end, failures, i = time.monotonic() + seconds, [], 0
        while self.least(each) if each else (i < count) if not seconds else (time.monotonic() < end):
            try:
                self.case(seed + i, self.least(each) if each else None)
            except Failure as failure:
                failures.append(str(failure))
                print(f"FAILED: {failure}", flush=True)
            i += 1
        rounded = [{name: round(spent) for name, spent in sorted(of.items())} for of in (self.spent, self.cpu)]
        print(f"{i} cases from seed {seed}: {len(failures)} failed; {self.counts}\nCPU-seconds of commands {rounded[0]}, "
              f"of kinds {rounded[1]}")
        return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    parser.add_argument("--seed", type=int, default=1000 * int(os.environ.get("OSTRO_TEST_SEED", "1")))
    parser.add_argument("--count", type=int, default=600 if full else 40)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--each", type=float, default=0)
    args = parser.parse_args()
    fuzz = Fuzz(args.ostro)
    try:
        return fuzz.run(args.seed, args.count, args.seconds, args.each)
    finally:
        fuzz.close()


if __name__ == "__main__":
    sys.exit(main())
