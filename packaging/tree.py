#!/usr/bin/env python3
"""Makes the tree that every package holds: the program, all libraries that it needs, and their licences.

    tree.py --build build/release --out FOLDER [--glibc 2.34] [--python FOLDER]

The program is the one of the build folder: it is not compiled again, so its bits are those of a build of one's own. It
looks for libraries in ../lib, seen from itself, so the tree can lie anywhere. Only what belongs to the C library and to
gcc's run time comes from the machine; nothing in the tree needs a newer C library than --glibc.

    bin/ostro    lib/*.so*    share/bash-completion/completions/ostro    share/doc/ostro/licenses/
    share/ostro/scripts/quickstart.sh    share/ostro/scripts/gpu_check*    share/ostro/configs/

With --python, the modules of the Python package (python/module) go to that folder, if the build has them: files to be laid
over the package, whose folder lib is that of the tree.

Debian's libstdc++ asks for one function of glibc 2.36, arc4random. The program has it, too (ostro/cli/main/arc4random.cc),
and the loader takes a program's own first; libostro_native.so has it as well. So the tree's copy of the library asks for an
older version instead.

A module of Python gets the libstdc++ that the process has already, which may be the machine's. With glibc 2.34 that is gcc 11's,
GLIBCXX_3.4.29. The only later symbol that is asked for is condition_variable::wait of 3.4.30, which every libstdc++ has as
3.4.11, too, with the same code; packages ask for that.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

import elf

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEARCH_PATH = ["$ORIGIN/../lib"]
GLIBCXX = "3.4.29"  # of the libstdc++ that comes with glibc 2.34
WAIT = {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE": "3.4.30"}


def fail(text):
    raise SystemExit(f"error: {text}")


def licence_of(library):
    """The name of the package that a library came with, and the files that hold its licence."""
    if "pyarrow" in library.parts:
        folders = sorted(library.parent.parent.glob("pyarrow-*.dist-info/licenses"))
        if folders:
            return "pyarrow", sorted(folders[0].iterdir())
    for path in (library, pathlib.Path("/lib") / library.relative_to("/usr/lib") if library.is_relative_to("/usr/lib")
                 else library):
        found = subprocess.run(["dpkg-query", "-S", str(path)], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            package = found.stdout.split(":")[0]
            copyright_file = pathlib.Path("/usr/share/doc") / package / "copyright"
            if copyright_file.exists():
                return package, [copyright_file]
    fail(f"{library}: the licence of this library is not known: it belongs to no package of Debian or of pyarrow")


def add_libraries(program, out, glibc):
    """Copies all that the program needs and the machine need not have; their licences go beside."""
    own = elf.defined(program)
    (out / "lib").mkdir()
    licences = out / "share/doc/ostro/licenses"
    licences.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", licences / "ostro.txt")
    for name, path in sorted(elf.libraries(program).items()):
        if name in elf.SYSTEM:
            continue
        path, target = path.resolve(), out / "lib" / name
        shutil.copyfile(path, target)
        newer = elf.too_new(target, glibc)
        if newer and newer.keys() <= own:
            for version in set(newer.values()):
                elf.ask_for_older(target, f"GLIBC_{version}", f"GLIBC_{glibc}")
        package, files = licence_of(path)
        for file in files:
            suffix = "" if len(files) == 1 else "-" + file.stem.lower()
            shutil.copyfile(file, licences / f"{package}{suffix}.txt")


def ask_for_older_wait(path):
    if elf.too_new(path, GLIBCXX, "GLIBCXX") == WAIT:
        elf.ask_for_older(path, "GLIBCXX_3.4.30", "GLIBCXX_3.4.11")


def check_versions(path, glibc):
    for library, limit in (("GLIBC", glibc), ("GLIBCXX", GLIBCXX)):
        newer = elf.too_new(path, limit, library)
        if newer:
            fail(f"{path.name} needs {library} newer than {limit}, for {', '.join(sorted(newer))}")


def add_scripts(out):
    """The quickstart and what it reads, in the folders that it expects; the check of a GPU."""
    for path in [*ROOT.glob("scripts/quickstart*"), *ROOT.glob("scripts/gpu_check*"), *ROOT.glob("configs/**/*")]:
        target = out / "share/ostro" / path.relative_to(ROOT)
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def check(out, glibc):
    """Ends with an error unless the tree runs by itself with that C library."""
    program = out / "bin/ostro"
    if elf.search_path(program) != SEARCH_PATH:
        fail(f"{program} looks for libraries in {elf.search_path(program)}, not in {SEARCH_PATH}: configure the build "
             "with CMAKE_INSTALL_LIBDIR=lib")
    here = {path.name for path in (out / "lib").iterdir()}
    for path in [program, *sorted((out / "lib").iterdir())]:
        check_versions(path, glibc)
        missing = set(elf.needed(path)) - here - elf.SYSTEM
        if missing:
            fail(f"{path.name} needs {', '.join(sorted(missing))}, which the tree does not have")
        if path != program and elf.search_path(path) not in ([], ["$ORIGIN"]):
            fail(f"{path.name} looks for libraries in {elf.search_path(path)}, which may be another's on other machines")


def make_python(build, out, tree, glibc):
    """The modules; nothing where the build has none."""
    if out.exists():
        shutil.rmtree(out)
    built = build / "python/ostro"
    if not any(built.glob("_native*.so")):
        print("no Python module: the build has none (docs/reference/dependencies.md, nanobind)", file=sys.stderr)
        return
    elf.run("cmake", "--install", build, "--component", "python", "--prefix", out, "--strip")
    native = out / "ostro/lib/libostro_native.so"
    here = {path.name for path in (tree / "lib").iterdir()} | {native.name}
    for path in [native, *sorted((out / "ostro").glob("_native*.so"))]:
        expected = ["$ORIGIN"] if path == native else ["$ORIGIN/lib"]
        if elf.search_path(path) != expected:
            fail(f"{path} looks for libraries in {elf.search_path(path)}, not in {expected}")
        ask_for_older_wait(path)
        check_versions(path, glibc)
        missing = set(elf.needed(path)) - here - elf.SYSTEM
        if missing:
            fail(f"{path.name} needs {', '.join(sorted(missing))}, which the tree does not have")
    if "arc4random" not in elf.defined(native):
        fail(f"{native.name} does not have arc4random, which the tree's libstdc++ asks for")


def make(build, out, glibc):
    if out.exists():
        shutil.rmtree(out)
    elf.run("cmake", "--install", build, "--component", "program", "--prefix", out, "--strip")
    add_libraries(build / "ostro/cli/ostro", out, glibc)
    for path in [out / "bin/ostro", *sorted((out / "lib").iterdir())]:
        ask_for_older_wait(path)
    add_scripts(out)
    check(out, glibc)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--build", type=pathlib.Path, required=True)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--glibc", default="2.34", help="the oldest C library that the tree runs with")
    arguments.add_argument("--python", type=pathlib.Path, help="where the modules of the Python package go")
    given = arguments.parse_args()
    make(given.build.resolve(), given.out.resolve(), given.glibc)
    if given.python:
        make_python(given.build.resolve(), given.python.resolve(), given.out.resolve(), given.glibc)
