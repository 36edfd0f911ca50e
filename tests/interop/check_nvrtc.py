#!/usr/bin/env python3
"""Compiles all device text with NVIDIA's compiler, and compares our declarations with NVIDIA's headers; needs no GPU.

  check_nvrtc.py --helper nvrtc_helper --build build/release    (exit code 77: NVRTC's wheel is not installed)

- Every embedded text, and the fused text of the programs that a small training runs (harvested from the fake driver), compiles
  for every architecture of ARCHITECTURES with the options that keep the bits.
- What a thread and a block need stays within BOUNDS: registers, local memory, spilled bytes, static shared memory.
- The functions and numbers of ostro/gpu/driver/abi.h are those of cuda.h and nvrtc.h.

scripts/setup.sh --cuda installs both wheels into .venv.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from checks import check, summary  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
# The most of any kernel of a text whose name begins so, on any architecture: registers of a thread, bytes of its local memory (its stack, where
# arrays lie whose index is not known), spilled bytes, bytes of static shared memory.
Need = collections.namedtuple("Need", "registers local spilled shared")
BOUNDS = {
    "admission": Need(48, 0, 0, 512),
    "attention": Need(255, 2048, 512, 1024),
    "attention/paged": Need(128, 64, 512, 2304),
    "attention/sliced": Need(128, 2048, 512, 2304),
    "attention/sliced_forward": Need(255, 256, 896, 1024),  # the sums of a row of 128 numbers, and its weights
    "attention/sliced_backward": Need(255, 256, 896, 1024),
    "attention/sliced_turned": Need(128, 0, 0, 33024),
    "integers": Need(248, 0, 0, 40960),
    "losses": Need(56, 1024, 0, 512),
    "products": Need(168, 1024, 0, 34816),
    "products/strided": Need(255, 0, 0, 17408),
    "products/strided_bf16_64x128": Need(255, 144, 768, 25600),  # 192 chains a thread; nothing is spilled before sm_100
    "routines": Need(168, 2560, 0, 38912),
    "fused": Need(96, 0, 0, 33280),
}
HEADERS = """
#include <cuda.h>
#include <nvrtc.h>
#include <type_traits>
#include "ostro/gpu/driver/abi.h"
// Two parameters are the same to a caller when both are pointers, or both are integers or enumerations of one size.
template <typename A, typename B>
constexpr bool same = std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B) &&
                      (std::is_pointer_v<A> || ((std::is_integral_v<A> || std::is_enum_v<A>) &&
                                                (std::is_integral_v<B> || std::is_enum_v<B>)));
template <typename A, typename B>
constexpr bool fits = false;
template <typename R, typename S, typename... A, typename... B>
constexpr bool fits<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B)) return same<R, S> && (same<A, B> && ...);
  return false;
}();
#define SLOT(member, symbol, parameters) \\
  static_assert(fits<decltype(&symbol), decltype(ostro::gpu::SLOTS::member)>, #symbol);
#define SLOTS CudaSlots
OSTRO_CUDA_SLOTS(SLOT)
#undef SLOTS
#define SLOTS NvrtcSlots
OSTRO_NVRTC_SLOTS(SLOT)
#define VALUE(ours, theirs, number) static_assert(theirs == (number), #theirs);
OSTRO_CUDA_VALUES(VALUE)
static_assert(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT == 1);
static_assert(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT == 2);
static_assert(CU_LAUNCH_PARAM_END_AS_INT == 0);
"""


def find_wheel():
    """The library and the folder of headers of the wheels in .venv; None when they are not there."""
    for packages in sorted(ROOT.glob(".venv/lib/python3*/site-packages/nvidia")):
        for folder, include in (("cu13/lib", ["cu13/include"]),
                                ("cuda_nvrtc/lib", ["cuda_nvrtc/include", "cuda_runtime/include"])):
            for library in sorted((packages / folder).glob("libnvrtc.so.1?")):
                return library, [packages / part for part in include]
    return None


def check_headers(include):
    """Our declarations against NVIDIA's. The same check finds a parameter and a number that were changed."""
    def compiles(text):
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-w", "-x", "c++", "-", f"-I{ROOT}",
                               *[f"-I{path}" for path in include]], input=text, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stderr

    fine, said = compiles(HEADERS)
    check(fine, f"abi.h differs from NVIDIA's headers: {said}")
    abi = (ROOT / "ostro/gpu/driver/abi.h").read_text()
    for broken in (abi.replace("(int* device, int ordinal)", "(int* device)"),
                   abi.replace("CUDA_ERROR_ILLEGAL_ADDRESS, 700", "CUDA_ERROR_ILLEGAL_ADDRESS, 701"),
                   abi.replace("uint64_t* address, size_t bytes", "uint32_t* address, int bytes")):
        check(broken != abi, "a control changes abi.h")
        fine, _ = compiles(HEADERS.replace('#include "ostro/gpu/driver/abi.h"', broken.replace("#pragma once", "")))
        check(not fine, "a declaration that differs from NVIDIA's headers was not found")


def needs(log):
    """{kernel: Need} of what the compiler says."""
    out, kernel = {}, None
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            kernel, stack, spilled = found[1], 0, 0
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(found[1]), int(found[2]) + int(found[3])
        elif (found := re.search(r"Used (\d+) registers", line)) and kernel:
            shared = re.search(r"(\d+) bytes smem", line)
            out[kernel] = Need(int(found[1]), stack, spilled, int(shared[1]) if shared else 0)
    return out


def harvest(build, folder):
    """The texts that a small training compiles, from the cache that the fake driver fills."""
    fake = build / "tests/cuda/fake"
    if not (fake / "libcuda.so.1").exists():
        return []
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "OSTRO_CACHE_DIR": str(folder / "cache"),
                   "LD_LIBRARY_PATH": str(fake), "OSTRO_NVRTC": str(fake)}
    (folder / "text").mkdir()
    (folder / "text/a.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 400)
    (folder / "c.yaml").write_text(json.dumps({
        "data": {"train_urls": ["text/*.txt"], "cache_dir": "store"},
        "model": {"type": "llama", "seq_len": 8, "hidden_dim": 8, "intermediate_dim": 8, "num_layers": 1, "num_heads": 2,
                  "num_kv_heads": 1},
        "trainer": {"train_batch_size": 2, "num_train_steps": 1, "steps_per_eval": 0},
        "numerics": {"leaf_examples": 1, "cells": {}}}))
    done = subprocess.run([build / "ostro/cli/ostro", "train", "--config", "c.yaml", "--device", "cuda"], cwd=folder, env=environment,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"a step of training on the fake driver: {done.stderr}")
    texts = []
    for number, entry in enumerate(sorted((folder / "cache/cuda").glob("*.cubin"))):
        content = entry.read_bytes()
        head = re.search(rb"FAKE CUBIN (\d+)\n", content)
        if head is None:  # a note of the device, no text
            continue
        text = content[head.end():head.end() + int(head[1])]
        if re.search(rb"KERNEL\(k\d+,", text):  # of a program: fused ops
            texts.append(folder / f"fused{number}.cu")
            texts[-1].write_bytes(text)
    check(texts, "the programs of a step have fused text")
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--helper", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    wheel = find_wheel()
    if wheel is None:
        print("skipped: NVRTC's wheel is not in .venv; scripts/setup.sh --cuda installs it")
        sys.exit(77)
    library, include = wheel
    architectures = ARCHITECTURES
    if seed.size() == "sample":
        architectures = (random.Random(seed.seed()).choice(ARCHITECTURES),)
    check_headers(include)
    with tempfile.TemporaryDirectory() as name:
        fused = harvest(arguments.build, pathlib.Path(name))
        done = subprocess.run([arguments.helper, library, *architectures, "--", *fused], capture_output=True, text=True,
                              check=False)
        check(done.stdout, f"the helper runs: {done.stderr}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [f"{line['text']} for {line['architecture']}: {line['error']}" for line in lines if line["error"] is not None]
    check(not errors, "\n".join(errors))
    check(done.returncode == 0, f"the helper ends well: {done.stderr}")
    worst = collections.defaultdict(lambda: Need(0, 0, 0, 0))
    kernels = collections.defaultdict(set)
    above = []
    for line in lines:
        text = line["text"] if not line["text"].startswith("/") else "fused"
        room = max((start for start in BOUNDS if text.startswith(start)), key=len, default="")
        check(room, f"{text} has bounds")
        found = needs(line["log"])
        check(found, f"{line['text']} for {line['architecture']} has kernels: {line['log']}")
        for kernel, need in found.items():
            if any(a > b for a, b in zip(need, BOUNDS[room])):
                above.append(f"{line['text']}: {kernel} on {line['architecture']} needs {need}; the bounds of {room} are {BOUNDS[room]}")
            kernels[room].add((line["text"], kernel))
            worst[room, line["architecture"]] = Need(*map(max, need, worst[room, line["architecture"]]))
    check(not above, "\n".join(above))
    print(f"{'text':<18}{'kernels':>8}  most registers / local / shared bytes on " + ", ".join(architectures))
    for room in sorted(kernels):
        cells = [worst[room, architecture] for architecture in architectures]
        print(f"{room:<18}{len(kernels[room]):>8}  " + "  ".join(f"{c.registers}/{c.local}/{c.shared}" for c in cells))
    seconds = sum(line["milliseconds"] for line in lines) / 1000
    print(f"{len(lines)} compilations in {seconds:.1f} s")
    summary()


if __name__ == "__main__":
    main()
