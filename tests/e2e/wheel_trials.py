#!/usr/bin/env python3
"""The wheel in clean environments, one for each Python that is found: pip installs it, a tour (import, training, load, score, logits, a
text) has the hash, the scores and the texts of the program and the same logits everywhere and in the interpreter; what the import costs;
what the modules add to the wheel; which C library auditwheel says it needs; whether mypy and its stubtest take the types. Pythons older
than 3.11 get the command line, and an error that says so where a function is named.

By hand, since pip downloads what the wheel needs, and auditwheel and mypy:

    wheel_trials.py --wheel dist/*.whl --ostro BINARY [--python python3.12]... [--log FILE]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from program import check
from serve_load import ROOT, Log

MOST_IMPORT_SECONDS = 0.3
MOST_BYTES_OF_MODULES = 10_000_000
STEPS = "12"
TEXTS = ["The licensor grants a licence.", "the ", "Work shall mean the work\n\nof authorship. " * 20]
IMPORT = """
import time
cpu, clock = time.process_time(), time.perf_counter()
import ostro
package = time.perf_counter() - clock
ostro.load
print(package, time.process_time() - cpu, time.perf_counter() - clock)
"""
TOUR = f"""
import hashlib, json, sys
import ostro
run = ostro.train("nano.yaml", {{"trainer.id": sys.argv[1], "trainer.num_train_steps": {STEPS}}})
model = ostro.load(run.path)
scores = model.score({TEXTS!r})
ids = model.tokenizer.encode({TEXTS[0]!r})
answer = model.generate("the ", max_tokens=20, temperature=0.8, seed=1)
print(json.dumps({{"run hash": run.hash, "state": model.state, "scores": [[s.log_prob, s.tokens, s.bytes] for s in scores], "text": "".join(answer),
                  "ids": answer.ids, "logits": hashlib.sha256(model.logits(ids).tobytes()).hexdigest(),
                  "equal": bool(ostro.verify(run)), "module": ostro.module._native.__file__.rsplit("/", 1)[1]}}))
"""
USER = """\
import ostro
model: ostro.Model = ostro.load("runs/nano")
one: ostro.Score = model.score("a")
several: list[ostro.Score] = model.score(["a", "b"])
pieces: list[str] = list(model.generate("a", max_tokens=3, stop="b"))
losses: list[float] = [step.loss for step in ostro.train("nano.yaml", {"trainer.id": "a"})]
verdict: ostro.Verdict = ostro.verify("runs/nano", from_step=1)
with ostro.serve(model) as url:
    print(url.upper(), model.arrays["a"].shape, model.logits([1]).dtype)
"""
WRONG = "one.log_prob.upper()\n"
# What stubtest says of everything that nanobind makes: its functions and types are none of Python's own.
OF_NANOBIND = re.compile(r"is not a function|metaclass differs|disjoint base|is inconsistent, stub does not have \*args|ostro\.share\.|Found \d+ error")


def clean():
    """The environment of a user who has nothing set."""
    return {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG") or name.startswith(("PIP_", "SSL_", "http", "HTTP"))}


def run(words, code=0, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, env=clean() | more)
    check(code is None or done.returncode == code, f"{words}: {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def pythons():
    """Version -> interpreter: of the PATH and of pyenv, the first of each."""
    found = {}
    root = run(["pyenv", "root"]).stdout.strip() if shutil.which("pyenv") else ""
    for path in [*sorted(pathlib.Path(root, "versions").glob("*/bin/python3") if root else ()), *(shutil.which(f"python3.{n}") for n in range(9, 16))]:
        said = run([path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], code=None).stdout.strip() if path else ""
        if said and tuple(map(int, said.split("."))) >= (3, 9):
            found.setdefault(said, str(path))
    return dict(sorted(found.items(), key=lambda one: tuple(map(int, one[0].split(".")))))


def environment(python, name, *packages):
    """A new environment's Python, and how long pip took."""
    run([python, "-m", "venv", name])
    begun = time.monotonic()
    run([f"{name}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    return pathlib.Path(name).resolve() / "bin/python", time.monotonic() - begun


def expected(ostro):
    """What the program says of the tour."""
    pathlib.Path("corpus").mkdir()
    lines = (ROOT / "LICENSE").read_text().splitlines(keepends=True)
    for i in range(0, len(lines), 6):
        pathlib.Path(f"corpus/{i:03}.txt").write_text("".join(lines[i:i + 6]))
    shutil.copy(ROOT / "configs/nano_test.yaml", "nano.yaml")
    run([ostro, "tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", 512, "--out", "tokenizer.json"])
    told = run([ostro, "train", "--config", "nano.yaml", "--trainer.num_train_steps", STEPS]).stdout
    pathlib.Path("texts").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    with open("texts", encoding="utf-8") as texts:
        scored = subprocess.run([ostro, "score", "--checkpoint", "runs/nano"], stdin=texts, capture_output=True, text=True, check=True, env=clean()).stdout
    sampled = json.loads(run([ostro, "sample", "--checkpoint", "runs/nano", "--prompt", "the ", "--max_new_tokens", 20, "--json", "--temperature", 0.8,
                              "--seed", 1]).stdout)
    scores = [[one["log_prob"], one["tokens"], one["bytes"]] for one in map(json.loads, scored.splitlines())]
    return {"run hash": re.search(r"run hash: (\w+)", told).group(1), "scores": scores, "text": sampled["text"], "ids": sampled["ids"], "equal": True}


def tour(version, python, want, seconds, log):
    """One Python's tour. Returns the hash of its logits, and what the import took."""
    got = json.loads(run([python, "-c", TOUR, f"by{version}"]).stdout.splitlines()[-1])
    for name, value in want.items():
        check(got[name] == value, f"Python {version}: {name}: {got[name]}, the program's {value}")
    check(run([python, "-m", "ostro", "--version"]).stdout.startswith("ostro "), f"Python {version}: python -m ostro")
    times = [[float(word) for word in run([python, "-c", IMPORT]).stdout.split()] for _ in range(7)]
    package, cpu, clock = (statistics.median(column) for column in zip(*times))
    log.say(f"Python {version}, {got['module']}: pip {seconds:.0f} s; the tour has the program's run hash {got['run hash'][:12]}, scores and text; import ostro "
            f"{1000 * package:.1f} ms, with its module and numpy {cpu:.2f} s of CPU time, {clock:.2f} s by the clock (medians of 7)")
    return got["logits"], cpu


def older(version, python, log):
    check(run([python.parent / "ostro", "--version"]).stdout.startswith("ostro "), f"Python {version}: the command ostro")
    said = run([python, "-c", "import ostro; ostro.load"], code=1).stderr
    check(f"this is Python {version}; the functions of ostro need Python 3.11" in said, f"Python {version}: {said}")
    log.say(f"Python {version}: the command runs; a function says that it needs Python 3.11")


def size(wheel, log):
    with zipfile.ZipFile(wheel) as file:
        added = [entry for entry in file.infolist() if "native" in entry.filename and entry.filename.endswith(".so")]
    packed, unpacked = sum(one.compress_size for one in added), sum(one.file_size for one in added)
    log.say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, of which modules and their library {packed / 1e6:.1f} MB (unpacked {unpacked / 1e6:.1f})")
    check(packed <= MOST_BYTES_OF_MODULES, f"the modules add {packed} bytes to the wheel, over {MOST_BYTES_OF_MODULES}")


def tools(newest, wheel, log):
    """auditwheel, mypy and stubtest, in an environment of their own."""
    python, _ = environment(newest, "tools", "auditwheel", "mypy", "numpy", wheel)
    said = " ".join(run([python, "-m", "auditwheel", "show", wheel]).stdout.split())
    tag = re.search(r'is consistent with the following platform tag: "(\w+)"', said)
    check(tag and tag[1] == "manylinux_2_34_x86_64", f"auditwheel: {said[:500]}")
    pathlib.Path("user.py").write_text(USER)
    run([python, "-m", "mypy", "--strict", "user.py"])
    pathlib.Path("wrong.py").write_text(USER + WRONG)
    check("has no attribute" in run([python, "-m", "mypy", "--strict", "wrong.py"], code=1).stdout, "mypy does not find a wrong type")
    found = run([python, "-m", "mypy.stubtest", "ostro"], code=None)
    errors = [line for line in found.stdout.splitlines() if line.startswith(("error:", "Found"))]
    check("Found" in found.stdout and not found.stderr.strip(), f"stubtest: {found.stdout[-500:]}{found.stderr[-500:]}")
    differ = [line for line in errors if not OF_NANOBIND.search(line)]
    check(not differ, f"stubtest: {differ}")
    log.say(f"auditwheel: {tag[1]}; mypy --strict takes a file that uses the package and finds a wrong type; stubtest names {len(errors) - 1} things, all of them "
            "nanobind's kinds of function and type")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", required=True, type=pathlib.Path)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--log", type=pathlib.Path)
    given = parser.parse_args()
    log = Log(given.log and given.log.resolve(), "The wheel in clean environments")
    wheel, ostro = given.wheel.resolve(), str(pathlib.Path(given.ostro).resolve())
    found = {run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip(): path for path in given.python} or pythons()
    size(wheel, log)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        want, logits, imports, newest = expected(ostro), {}, {}, None
        for version, path in found.items():
            python, seconds = environment(path, f"venv{version}", wheel)
            if tuple(map(int, version.split("."))) < (3, 11):
                older(version, python, log)
                continue
            newest = path
            logits[version], imports[version] = tour(version, python, want, seconds, log)
        check(newest, f"no Python 3.11 or newer among {list(found)}")
        ids = "model.tokenizer.encode(" + repr(TEXTS[0]) + ")"
        interpreted = run([python, "-c", f"import ostro, hashlib; model = ostro.load('runs/nano'); print(hashlib.sha256(model.logits({ids}).tobytes()).hexdigest())"],
                          OSTRO_EXECUTOR="interpreter").stdout.strip()
        check(set(logits.values()) == {interpreted}, f"logits: {logits}, the interpreter's {interpreted}")
        log.say(f"logits of {len(logits)} Pythons and of the interpreter: SHA-256 {interpreted[:12]}")
        tools(newest, wheel, log)
        os.chdir("/")
    log.write()
    slow = {version: cpu for version, cpu in imports.items() if cpu > MOST_IMPORT_SECONDS}
    check(not slow, f"imports over {MOST_IMPORT_SECONDS} s of CPU time: {slow}")


if __name__ == "__main__":
    main()
