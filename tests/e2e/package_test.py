#!/usr/bin/env python3
"""Tests what scripts/package.sh makes: the tar runs from any folder with nothing but the C library of the machine, the
wheel holds the same program, both give the hash of a build of one's own, and other processors and systems get an error.

    package_test.py --build build/release
"""

import argparse
import base64
import csv
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from program import check

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
import elf  # noqa: E402

MOST_BYTES = 50 << 20
MOST_BYTES_OF_MODULES = 10_000_000
# Zig's C compiler in small: it takes no names of processors that it does not know.
ZIG = """#!/bin/sh
[ "$1" = cc ] || exit 4
shift
case "$*" in *-march*) exit 5 ;; esac
for word in "$@"; do
  shift
  case "$word" in -mcpu=x86_64_v*) word=-march=x86-64-v${word##*_v} ;; esac
  set -- "$@" "$word"
done
echo compiled >> "$(dirname "$0")/uses"
exec CC "$@"
"""


def run(words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)


def bare_path(folder):
    """A folder for PATH in which there are tools, but no C compiler."""
    folder.mkdir()
    for tool in ("env", "sh", "dirname"):
        (folder / tool).symlink_to(shutil.which(tool))
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))  # PATH may have a script that needs more tools
    return folder


class Machine:
    """The environment of a user who has none of what built the program."""

    def __init__(self, work):
        self.work = work
        self.environment = {"PATH": str(bare_path(work / "tools")), "HOME": str(work), "TMPDIR": str(work),
                            "OSTRO_THREADS": "2"}

    def ostro(self, program, *words, **more):
        done = run([*program, *words], cwd=self.work, env={**self.environment, **more})
        check(done.returncode == 0, f"{program} {words}: {done.returncode}: {done.stderr}")
        return done


def selftest_hash(text):
    found = re.search(r"self-test hash: ([0-9a-f]{64})", text)
    check(found, f"no hash in {text}")
    return found.group(1)


def check_tree(machine, tree, own):
    """The tree moved to a folder with a space in its name."""
    check(elf.search_path(own) == ["$ORIGIN/../lib"], f"the build looks for libraries in {elf.search_path(own)}; an empty "
          "entry would be the working folder")
    moved = machine.work / "any folder"
    tree.rename(moved)
    program = moved / "bin/ostro"
    version = machine.ostro([program], "--version").stdout
    check(version == run([own, "--version"]).stdout, f"another version than the build's: {version}")
    seen = machine.ostro([program], "--version", LD_TRACE_LOADED_OBJECTS="1").stdout
    strangers = [line.strip() for line in seen.splitlines() if "=>" in line and str(moved) not in line
                 and line.split()[0] not in elf.SYSTEM]
    check(elf.too_new(program, "2.2"), "the search for symbols of newer C libraries finds none where they are")
    check(not strangers and str(moved) in seen, f"libraries from outside of the tree: {strangers}")
    done = machine.ostro([program], "selftest")
    check("built-in loops" in done.stderr, f"no word about the missing compiler: {done.stderr}")
    check(selftest_hash(done.stdout) == selftest_hash(run([own, "selftest"]).stdout), "another hash than the build's")
    for name in ("ostro", "libcurl4", "libstdc++6"):
        check((moved / f"share/doc/ostro/licenses/{name}.txt").stat().st_size > 500, f"no licence of {name}")


def check_wheel(machine, wheel, own):
    """Unpacked as pip does, with a compiler of the package ziglang beside it."""
    site = machine.work / "site"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
        modes = {entry.filename: entry.external_attr >> 16 for entry in file.infolist()}
    check(modes["ostro/bin/ostro"] & 0o111 == 0o111, "the program in the wheel is not executable")
    info = next(site.glob("ostro-*.dist-info"))
    listed = set()
    for name, digest, _ in csv.reader((info / "RECORD").read_text().splitlines()):
        listed.add(name)
        if digest:
            own_digest = base64.urlsafe_b64encode(hashlib.sha256((site / name).read_bytes()).digest()).rstrip(b"=")
            check(digest == f"sha256={own_digest.decode()}", f"RECORD: another hash of {name}")
    check(listed == set(modes), f"RECORD and the wheel differ: {listed ^ set(modes)}")
    tag = re.search(r"Tag: (\S+)", (info / "WHEEL").read_text()).group(1)
    check(wheel.name.endswith(f"-{tag}.whl") and tag == "py3-none-manylinux_2_34_x86_64", f"{wheel.name}: {tag}")
    (site / "ostro/bin/ostro").chmod(0o755)
    (site / "ziglang").mkdir()
    zig = site / "ziglang/zig"
    zig.write_text(ZIG.replace("CC", shutil.which("cc")))
    zig.chmod(0o755)
    # The compiler needs its own tools on PATH; they are found after ours, where there is no `cc`.
    done = machine.ostro(["python3", "-m", "ostro"], "selftest", PYTHONPATH=str(site),
                         COMPILER_PATH=os.environ.get("PATH", ""))
    check("built-in loops" not in done.stderr, f"the compiler beside the package was not used: {done.stderr}")
    check((site / "ziglang/uses").exists(), "the compiler beside the package was not used")
    check(selftest_hash(done.stdout) == selftest_hash(run([own, "selftest"]).stdout), "another hash than the build's")
    help_text = machine.ostro(["python3", "-c", "from ostro.program import main; main()"], "--help",
                              PYTHONPATH=str(site)).stdout
    check("selftest" in help_text, help_text)
    (site / "ostro/bin/ostro").unlink()
    gone = run(["python3", "-m", "ostro"], env={**machine.environment, "PYTHONPATH": str(site)})
    check(gone.returncode == 1 and "cannot start" in gone.stderr and "Traceback" not in gone.stderr, gone.stderr)


def check_modules(machine, wheel, build, own):
    """The Python modules of the build are in the wheel and load with its libraries alone, all of whose symbols are there."""
    built = {path.name for path in (build / "python/ostro").glob("_native*.so")}
    with zipfile.ZipFile(wheel) as file:
        added = {entry.filename: entry.compress_size for entry in file.infolist() if "native" in entry.filename
                 and entry.filename.endswith(".so")}
    check({pathlib.Path(name).name for name in added} == (built | {"libostro_native.so"} if built else set()),
          f"modules in the wheel: {sorted(added)}, in the build: {sorted(built)}")
    python = ROOT / ".venv/bin/python"
    if not built or not python.exists():
        print("not run: the Python module in the wheel (no nanobind or no .venv)")
        return
    print(f"the modules add {sum(added.values()) / 1e6:.1f} MB to the wheel")
    check(sum(added.values()) <= MOST_BYTES_OF_MODULES, f"the modules add {sum(added.values())} bytes to the wheel")
    site = machine.work / "site"
    code = "import ostro; ostro.version(); print(open('/proc/self/maps').read())"
    loaded = run([python, "-c", code], env={**machine.environment, "PYTHONPATH": str(site), "LD_BIND_NOW": "1"})
    check(loaded.returncode == 0, loaded.stderr)
    for name in ("libostro_native.so", "libstdc++.so.6", "libcurl.so.4"):
        check(f"{site}/ostro/lib/{name}" in loaded.stdout, f"{name} is not the wheel's")
    zig = site / "ziglang/uses"  # check_wheel made it
    zig.unlink()
    work = machine.work / "trained here"
    work.mkdir()
    (work / "text.txt").write_text("The work is licensed, and the licence works.\n" * 200)
    check(run([own, "init", "."], cwd=work).returncode == 0, "ostro init failed")
    code = "import ostro; print(ostro.train('train.yaml', {'trainer.num_train_steps': 2}).hash)"
    trained = run([python, "-c", code], cwd=work, env={**machine.environment, "PYTHONPATH": str(site),
                                                       "COMPILER_PATH": os.environ.get("PATH", "")})
    check(trained.returncode == 0 and re.search("^[0-9a-f]{64}$", trained.stdout, re.MULTILINE), trained.stderr)
    check(zig.exists() and "built-in loops" not in trained.stderr, f"the compiler beside the package was not used: {trained.stderr}")
    native = (site / "ostro/lib/libostro_native.so").read_bytes()
    check(b"ostro/base/error.h" in native and os.fsencode(ROOT) + b"/" not in native, "the module holds the path of its build")


def check_other_machines(build, own):
    """No instruction of the check of the processor is beyond x86-64, and CMake refuses what cannot be built. Where there
    is qemu-user, it plays an old processor."""
    qemu = shutil.which("qemu-x86_64")
    if qemu:
        old = run([qemu, "-cpu", "Nehalem", own, "--version"])
        check(old.returncode == 1 and "this processor lacks AVX;" in old.stderr and not old.stdout, f"{old}")
        new = run([qemu, "-cpu", "Haswell", own, "--version"])
        check(new.returncode == 0 and new.stdout.startswith("ostro "), f"{new}")
    else:
        print("not run: a processor without AVX2 (no qemu-x86_64)")

    def beyond(name):
        found = sorted(build.glob(f"ostro/cli/CMakeFiles/ostro_cli.dir/**/{name}"))
        check(found, f"{name}: not in {build}")
        code = elf.run("objdump", "-d", "--no-show-raw-insn", *found)
        check("ret" in code, f"{name}: no code")
        return re.findall(r"\t(v[a-z0-9]+|[as]h[lr]x|andn|bzhi|bextr|blsr|movbe|lzcnt|tzcnt|mulx|popcnt|pshufb)\s", code)

    check(not beyond("processor_check.cc.o"), f"instructions beyond x86-64: {beyond('processor_check.cc.o')}")
    check(beyond("*cxx.o"), "the search for such instructions finds none where they must be")
    for system, processor, said in (("Linux", "aarch64", "this processor is aarch64"),
                                    ("Darwin", "x86_64", "this system is Darwin"), ("Linux", "x86_64", "")):
        done = run(["cmake", f"-DCMAKE_SYSTEM_NAME={system}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}", "-P",
                    ROOT / "cmake/Platform.cmake"])
        check((done.returncode != 0) == bool(said) and said in done.stderr, f"{system} {processor}: {done.stderr}")


def check_reproducible(build, own):
    """The program holds no path of the folder that it was built in (scripts/reproducible.sh builds it twice)."""
    held = own.read_bytes()
    check(b"ostro/base/error.h" in held, "the search for names of sources finds none where they are")
    for path in (ROOT, build):
        check(os.fsencode(path) + b"/" not in held, f"{own} holds the path {path}: other folders would give another binary")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--build", required=True, type=pathlib.Path)
    build = arguments.parse_args().build.resolve()
    own = build / "ostro/cli/ostro"
    with tempfile.TemporaryDirectory(prefix="ostro package ") as folder:
        work = pathlib.Path(folder)
        made = run([ROOT / "scripts/package.sh", "--build", build, "--out", work / "dist"])
        check(made.returncode == 0, made.stderr)
        wheel, tar = (pathlib.Path(line) for line in made.stdout.splitlines())
        for path in (wheel, tar):
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")
            check(path.stat().st_size <= MOST_BYTES, f"{path.name} has {path.stat().st_size} bytes, over {MOST_BYTES}")
        machine = Machine(work)
        with tarfile.open(tar) as file:
            file.extractall(work)
        check_tree(machine, work / tar.name.removesuffix(".tar.gz"), own)
        check_wheel(machine, wheel, own)
        check_modules(machine, wheel, build, own)
    check_other_machines(build, own)
    check_reproducible(build, own)
    print("passed")


if __name__ == "__main__":
    main()
