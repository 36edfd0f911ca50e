#!/usr/bin/env bash
# tests/e2e/selftest.sh OSTRO: the self-test's hash must be the known one on every instruction set the CPU has, with
# every number of threads and workers, and in the interpreter; README.md must show the same one.
set -euo pipefail
ostro="$1"
root="$(cd "$(dirname "$0")/../.." && pwd)"
hash="$(sed -n 's/.*kSelftestHash = *"\([0-9a-f]*\)".*/\1/p' <(tr -d '\n' < "$root/ostro/run/loop/selftest.h"))"
[[ ${#hash} == 64 ]] || { echo "no hash in selftest.h" >&2; exit 1; }
grep -q "$hash" "$root/README.md" || { echo "README.md does not show the self-test hash $hash" >&2; exit 1; }

run() {
  if ! out="$(env "$@" "$ostro" selftest 2>&1)"; then
    if [[ $out == *"this machine has only"* ]]; then echo "skipped $*: $out"; return; fi
    echo "FAILED $*: $out" >&2
    exit 1
  fi
  # Built-in loops give the same hash: where they stood in for generated code, its compiler was not tried.
  if [[ $out != *"$hash"* || $out == *"built-in loops"* ]]; then echo "FAILED $*: $out" >&2; exit 1; fi
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
