#!/usr/bin/env python3
"""Makes a wheel of a tree (tree.py): the program inside of the Python package ostro, with ostro_ray and ostro_lm_eval.

    wheel.py --tree FOLDER --version 0.1.0 --out DIST [--python FOLDER]

--python has the package's modules, as tree.py makes them. The wheel is of no single Python: the program runs with any, and
each Python takes its own module.

Prints the wheel's path. The packages are those of python/; a package that Python imports from the wheel goes there. Equal
trees give equal wheels: files are in the order of their names and have one date.
"""
import argparse
import base64
import hashlib
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAG = "py3-none-manylinux_2_34_x86_64"
PACKAGES = ["ostro", "ostro_lm_eval", "ostro_ray"]

METADATA = """\
Metadata-Version: 2.1
Name: ostro
Version: {version}
Summary: Trains, checks and runs open language models on CPUs; one run, one hash
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: ziglang>=0.17
Requires-Dist: numpy>=1.26; python_version >= "3.11"
Requires-Dist: ray>=2.40; extra == "ray"
Requires-Dist: lm_eval>=0.4.9; extra == "lm_eval"
Provides-Extra: ray
Provides-Extra: lm_eval
Classifier: Operating System :: POSIX :: Linux
Classifier: License :: OSI Approved :: Apache Software License
Description-Content-Type: text/markdown

"""

WHEEL = f"Wheel-Version: 1.0\nGenerator: ostro packaging/wheel.py\nRoot-Is-Purelib: false\nTag: {TAG}\n"
ENTRY_POINTS = "[console_scripts]\nostro = ostro.program:main\n"


def contents(tree, version, modules):
    """name in the wheel -> (bytes, whether it is a program)."""
    info = f"ostro-{version}.dist-info"
    files = {}
    for package in PACKAGES:
        for path in sorted((ROOT / "python" / package).rglob("*")):
            if path.suffix not in (".py", ".pyi", ".typed"):
                continue
            files[f"{package}/{path.relative_to(ROOT / 'python' / package)}"] = (path.read_bytes(), False)
    if modules and modules.exists():
        for path in sorted(modules.rglob("*.so")):
            files[path.relative_to(modules).as_posix()] = (path.read_bytes(), False)
    for folder in ("bin", "lib"):
        for path in sorted((tree / folder).iterdir()):
            files[f"ostro/{folder}/{path.name}"] = (path.read_bytes(), folder == "bin")
    for path in sorted(path for path in (tree / "share/ostro").rglob("*") if path.is_file()):
        files[f"ostro/{path.relative_to(tree)}"] = (path.read_bytes(), False)
    for path in sorted((tree / "share/doc/ostro/licenses").iterdir()):
        files[f"{info}/licenses/{path.name}"] = (path.read_bytes(), False)
    metadata = METADATA.format(version=version) + (ROOT / "packaging/description.md").read_text()
    files[f"{info}/METADATA"] = (metadata.encode(), False)
    files[f"{info}/WHEEL"] = (WHEEL.encode(), False)
    files[f"{info}/entry_points.txt"] = (ENTRY_POINTS.encode(), False)
    record = f"{info}/RECORD"
    lines = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    files[record] = ("".join([*lines, f"{record},,\n"]).encode(), False)
    return files


def write(tree, version, out, modules):
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"ostro-{version}-{TAG}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (data, is_program) in contents(tree, version, modules).items():
            entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return path


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--tree", type=pathlib.Path, required=True)
    arguments.add_argument("--version", required=True)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--python", type=pathlib.Path)
    given = arguments.parse_args()
    print(write(given.tree.resolve(), given.version, given.out, given.python))
