#!/usr/bin/env python3
"""Compares our reader and writer of Grok-1's release with CPython's pickle, in both directions.

A Grok-1 of twelve layers that pickle wrote must be read as the same tensors under the same names; what ours writes must be
the same bytes, and be read by pickle. Pickles of anything else must be refused, and what is accepted of damaged ones must be
what pickle makes of them. The release's 770 files are written in their true sizes, without elements, and checked in little
memory. Usage: check_grok.py --helper build/.../grok_helper --ostro build/.../ostro
"""
import argparse
import contextlib
import hashlib
import io
import json
import os
import pathlib
import pickle
import random
import resource
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

import grok_release
from checks import check, summary
from grok_release import QuantizedWeight8bit

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed as suite

SIZES = {24727: 257, 196770: 64, 6293814: 128, 37761334: 64, 37847359: 64, 1611137347: 128, 1611399491: 64, 3221225637: 1}


def sha(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def run(*words, rc=0, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    check(rc is None or done.returncode == rc, f"{words[:3]} gave {done.returncode}: {done.stdout[-500:]}{done.stderr}")
    return done


def check_tiny(helper, ostro, root, name, version):
    tree = grok_release.make(grok_release.TINY, suite.seed())
    directory, out = root / name, root / f"{name}_out"
    grok_release.write(tree, directory / "ckpt-0", grok_release.TINY, version)
    leaves = grok_release.flatten(tree)
    check(len(leaves) == 2 + 12 * 12, "twelve layers")
    found = {line.split()[0]: line.split()[1:] for line in run(helper, "hashes", directory).stdout.splitlines()}
    check(list(found) == [leaf for leaf, _ in leaves], f"{name}: names in the order of the files")
    for leaf, tensor in leaves:
        quantized = isinstance(tensor, QuantizedWeight8bit)
        wanted = [sha(tensor.weight if quantized else tensor), sha(tensor.scales) if quantized else hashlib.sha256().hexdigest(),
                  sha(grok_release.dequantize(tensor)), sha(grok_release.dequantize(tensor, as_reference=True))]
        check(found[leaf] == wanted, f"{name}: {leaf}")
    report = json.loads(run(ostro, "check", "grok", directory, "--contents", "--json").stdout)
    check(report["whole"] == len(leaves) and report["model"] == "a Grok of 12 layers", f"{name}: all are whole")
    for file in report["files"]:
        bytes_ = (directory / "ckpt-0" / file["file"]).read_bytes()
        check(file["sha256"] == hashlib.sha256(bytes_).hexdigest() and file["bytes"] == len(bytes_), f"{name}: {file['file']}")
    run(helper, "copy", directory, out)
    for i, (leaf, tensor) in enumerate(leaves):
        file = f"tensor{i:05d}_000"
        ours, theirs = (out / file).read_bytes(), (directory / "ckpt-0" / file).read_bytes()
        if version is grok_release.numpy_1:
            check(ours == theirs, f"{name}: {leaf}: other bytes than CPython's")
    for (leaf, tensor), read in zip(leaves, grok_release.read(out, len(leaves))):
        same = (read.weight.dtype == tensor.weight.dtype and read.scales.dtype == tensor.scales.dtype
                and np.array_equal(read.weight, tensor.weight) and np.array_equal(read.scales, tensor.scales)
                if isinstance(tensor, QuantizedWeight8bit) else read.dtype == tensor.dtype and np.array_equal(read, tensor))
        check(same, f"{name}: CPython reads {leaf}")
    return out


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def hostile():
    """Pickles of other objects, in all protocols, with a word of the error that each must give."""
    f32 = np.arange(6, dtype=np.float32).reshape(2, 3)
    scales = np.ones((1, 3), ml_dtypes.bfloat16)
    int8 = np.ones((2, 3), np.int8)
    three = QuantizedWeight8bit(int8, scales)
    three.more = f32
    objects = [("Fortran", np.asfortranarray(f32)), ("byte order", f32.astype(">f4")), ("its code is", f32.astype(np.float64)),
               ("its code is", int8.astype(np.int16)), ("not a dict of weight and scales", three),
               ("without a state", QuantizedWeight8bit.__new__(QuantizedWeight8bit)),
               ("is not an array", QuantizedWeight8bit(int8, QuantizedWeight8bit(int8, scales))), ("module", Evil()), ("", [f32]), ("", {"w": f32}),
               ("", (f32, f32)), ("", "text"), ("", 7), ("", 2**70), ("", 1.5), ("", None), ("", b"bytes"), ("", {1, 2}),
               ("module", np.random.default_rng(1)), ("module", np.float32(1)), ("module", np.ma.array([1.0])),
               ("", np.array([f32, None], dtype=object)), ("module", pathlib.Path("x")), ("module", os.system)]
    swapped = QuantizedWeight8bit.__new__(QuantizedWeight8bit)
    swapped.scales, swapped.weight = scales, int8
    objects.append(("in this order", swapped))
    for word, thing in objects:
        for protocol in range(6):
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                yield (word if protocol == 4 else ""), pickle.dumps(thing, protocol=protocol)
    for protocol in (0, 1, 2, 3, 5):
        for thing in (f32, QuantizedWeight8bit(int8, scales)):
            yield "", pickle.dumps(thing, protocol=protocol)
    yield "", b"\x80\x04" + b"(" * 1_000_000 + b"."
    yield "", b"\x80\x04N" + b"\x85" * 1_000_000 + b"."
    yield "", b"\x80\x04}\x94" + b"h\x00" * 1_000_000 + b"."


class Restricted(pickle.Unpickler):
    """CPython's unpickler with the same five globals."""
    NAMES = {("__main__", "QuantizedWeight8bit"), ("numpy.core.multiarray", "_reconstruct"),
             ("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"), ("ml_dtypes", "bfloat16")}

    def find_class(self, module, name):
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def describe(thing):
    def array(a):
        dtype = {"float32": "f32", "bfloat16": "bf16", "int8": "int8"}[a.dtype.name]
        return f"{dtype} {list(a.shape)}"
    if isinstance(thing, QuantizedWeight8bit):
        return f"{array(thing.weight)} with scales {array(thing.scales)}"
    return array(thing)


def check_hostile(helper, root):
    directory = root / "hostile"
    directory.mkdir()
    words = []
    for word, bytes_ in hostile():
        (directory / f"{len(words):04d}").write_bytes(bytes_)
        words.append(word)
    files = sorted(directory.iterdir())
    done = run(helper, "read", *files, cwd=directory, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**28, 2**28)))
    lines = done.stdout.splitlines()
    check(len(lines) == len(files), "one answer for each")
    for file, word, line in zip(files, words, lines):
        check(line.startswith(f"refused: {file}: byte ") and word in line, f"{file.name}: {line}, wanted {word}")
    check(not (directory / "executed").exists(), "something was executed")
    return len(files)


def mutations(rng, count):
    base = []
    grok_release.install()
    for version in (grok_release.numpy_1, contextlib.nullcontext):
        with version():
            base.append(pickle.dumps(np.arange(6, dtype=np.float32).reshape(2, 3), protocol=4))
            base.append(pickle.dumps(QuantizedWeight8bit(np.ones((8, 3), np.int8), np.ones((8, 3), ml_dtypes.bfloat16)), protocol=4))
    for _ in range(count):
        data = bytearray(rng.choice(base))
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            at = rng.randrange(len(data))
            kind = rng.randrange(4)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                data[at:at] = bytes([rng.randrange(256)])
            elif kind == 2:
                del data[at:at + rng.randrange(1, 5)]
            else:
                data[at:at] = data[at:at + rng.randrange(1, 9)]
        if rng.random() < 0.8 and len(data) > 11:
            data[3:11] = (len(data) - 11).to_bytes(8, "little")
        yield bytes(data)


def check_mutations(helper, root, count):
    directory = root / "mutated"
    directory.mkdir()
    for i, data in enumerate(mutations(random.Random(suite.seed()), count)):
        (directory / f"{i:05d}").write_bytes(data)
    files = sorted(directory.iterdir())
    lines = run(helper, "read", *files).stdout.splitlines()
    check(len(lines) == len(files), "one answer for each damaged file")
    accepted = 0
    for file, line in zip(files, lines):
        if not line.startswith("read: "):
            check(line.startswith(f"refused: {file}: byte "), line)
            continue
        accepted += 1
        thing = Restricted(io.BytesIO(file.read_bytes())).load()
        check(line.startswith(f"read: {describe(thing)} at "), f"{file}: {line}, CPython reads {describe(thing)}")
    check(count // 200 < accepted < count, f"{accepted} of {count} damaged files were read")
    return accepted


def peak_memory(*words):
    """Runs a command in 512 MiB of address space; its output, and the most memory it had, in bytes."""
    # The kernel counts what a process had before exec, too: so a small Python starts it, not this one.
    script = ("import resource, subprocess, sys\n"
              "resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))\n"
              "status = subprocess.run(sys.argv[1:], check=False).returncode\n"
              "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n")
    done = subprocess.run([sys.executable, "-c", script, *map(str, words)], capture_output=True, text=True, check=False)
    *said, last = done.stderr.splitlines()
    status, kib = map(int, last.split())
    check(status == 0, f"{words[:3]} gave {status}: {done.stdout[-500:]}{said}")
    return done.stdout, kib * 1024


def check_release(helper, ostro, root):
    directory = root / "hollow"
    _, writing = peak_memory(helper, "hollow", directory)
    files = sorted(directory.iterdir())
    check([file.name for file in files] == [f"tensor{i:05d}_000" for i in range(770)], "770 files, nothing else")
    sizes, blocks = {}, 0
    for file in files:
        info = file.stat()
        sizes[info.st_size] = sizes.get(info.st_size, 0) + 1
        blocks += info.st_blocks * 512
    check(sizes == SIZES, f"eight sizes: {sizes}")
    check(sum(size * n for size, n in sizes.items()) == 318_239_886_140, "318,239,886,140 bytes")
    check(blocks < 100e6, f"files without elements take {blocks} bytes")
    out, checking = peak_memory(ostro, "check", "grok", directory, "--json")
    report = json.loads(out)
    check(report["whole"] == 770 and report["model"] == "Grok-1" and report["whole_bytes"] == 318_239_886_140, "all are whole")
    orders = [str(layer) for layer in range(64)]
    for i, file in enumerate(report["files"]):
        layer = sorted(orders)[(i - 2) // 12] if i > 1 else None
        check(file["name"].startswith(f"transformer/decoder_layer_{layer}/" if layer else "language_model/"), file["name"])
    listed = run(ostro, "check", "grok", directory, "--all").stdout.splitlines()
    check(sum(line.startswith("whole    tensor") for line in listed) == 770, "all names and shapes are listed")
    line = next(line for line in listed if "tensor00027_000" in line)
    check("transformer/decoder_layer_10/moe/linear_1/w: int8 [8, 32768, 6144] with scales bf16 [8, 8, 6144]" in line, line)
    (directory / "tensor00300_000").unlink()
    os.truncate(directory / "tensor00000_000", 2**31 + 5)
    bad = run(ostro, "check", "grok", directory, rc=1)
    check("768 whole, 1 missing, 1 short, 0 wrong" in bad.stdout and "2 of 770 files are not whole" in bad.stderr, bad.stderr)
    return writing, checking


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    helper, ostro = (pathlib.Path(path).resolve() for path in (args.helper, args.ostro))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        ours = check_tiny(helper, ostro, root, "numpy_1", grok_release.numpy_1)
        check_tiny(helper, ostro, root, "numpy_2", contextlib.nullcontext)
        run(ostro, "check", "grok", ours)
        refused = check_hostile(helper, root)
        accepted = check_mutations(helper, root, 20000 if suite.full() else 1000)
        writing, checking = check_release(helper, ostro, root)
        check(0 < writing < 64e6 and 0 < checking < 64e6, f"memory: {writing} bytes to write, {checking} to check")
    summary(f" ({refused} other pickles refused, {accepted} damaged ones read as CPython does; peak memory "
            f"{writing / 1e6:.0f} MB to write, {checking / 1e6:.0f} MB to check)")


if __name__ == "__main__":
    main()
