#!/usr/bin/env bash
# tests/e2e/selftest.sh OSTRO FAULTY: the self-test's two hashes must be the known ones on every instruction set the CPU
# has, with every number of threads and workers, and in the interpreter; README.md must show the same ones. FAULTY
# (tests/controls) flips one bit of a gradient, and both hashes must tell.
set -euo pipefail
ostro="$1"
faulty="$2"
root="$(cd "$(dirname "$0")/../.." && pwd)"
known() { sed -n "s/.* $1 = *\"\([0-9a-f]*\)\".*/\1/p" <(tr -d '\n' < "$root/ostro/run/loop/selftest.h"); }
floats="$(known kSelftestHash)" integers="$(known kSelftestIntegersHash)"
[[ ${#floats} == 64 && ${#integers} == 64 && $floats != "$integers" ]] || { echo "no two hashes in selftest.h" >&2; exit 1; }
lines="self-test hash: $floats"$'\n'"of integer products: $integers"
[[ "$(cat "$root/README.md")" == *"$lines"* ]] || { echo "README.md does not show the self-test's hashes" >&2; exit 1; }

run() {
  if ! out="$(env "$@" "$ostro" selftest 2>&1)"; then
    if [[ $out == *"this machine has only"* ]]; then echo "skipped $*: $out"; return; fi
    echo "FAILED $*: $out" >&2
    exit 1
  fi
  # Built-in loops give the same hash: where they stood in for generated code, its compiler was not tried.
  if [[ $out != *"$lines"* || $out == *"built-in loops"* ]]; then echo "FAILED $*: $out" >&2; exit 1; fi
  echo "equal   $*"
}

run OSTRO_EXECUTOR=interpreter
for isa in generic avx2 avx512 avx512bf16 amx; do run OSTRO_ISA=$isa; done
for threads in 1 2 5; do run OSTRO_THREADS=$threads; done
for workers in 2 3 5; do run OSTRO_SIM_WORKERS=$workers; done
run OSTRO_CC_OPT=-O1
if command -v clang-19 > /dev/null; then
  run OSTRO_CC=clang-19 OSTRO_ISA= OSTRO_SIM_WORKERS=2
else
  echo "skipped OSTRO_CC=clang-19: it is not installed"
fi

status=0
out="$(OSTRO_TEST_FAULT=gradient_bit "$faulty" selftest 2>&1)" || status=$?
if [[ $status != 1 || $out != *"self-test hash: "* || $out == *"$floats"$'\n'"of integer"* || $out == *"of integer products: $integers"* ]]; then
  echo "FAILED: a flipped bit of a gradient is not told, exit $status: $out" >&2
  exit 1
fi
echo "other hashes with a flipped bit of a gradient"
