#!/usr/bin/env bash
# Builds the benchmarks, compares training with PyTorch turn by turn, and writes bench/RESULTS.md.
# Exit 1 when a goal is missed: losses equal to 4 digits, half of PyTorch eager's tokens/s, no more memory.
#
#   scripts/bench.sh                 7 pairs of processes a size (an idle machine: about half an hour)
#   scripts/bench.sh --quick         3 pairs
#   scripts/bench.sh --out FILE      another file
#   scripts/bench.sh --sizes nano    these sizes only (nano small58 base125 micro)
set -euo pipefail
cd "$(dirname "$0")/.."
out=bench/RESULTS.md
words=()
while (( $# > 0 )); do
  case "$1" in
    --quick) words+=(--quick); shift ;;
    --out) out="${2:?--out needs a file}"; shift 2 ;;
    --sizes) words+=(--sizes); shift; while (( $# > 0 )) && [[ $1 != --* ]]; do words+=("$1"); shift; done ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "error: unknown option $1 (see $0 --help)" >&2; exit 2 ;;
  esac
done
scripts/setup.sh --python
scripts/build.sh benches
scripts/venv_python.sh bench/compare.py --benches build/release/bench --out "$out" "${words[@]}"
