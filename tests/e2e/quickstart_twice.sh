#!/usr/bin/env bash
# tests/e2e/quickstart_twice.sh: a short quickstart in two folders, the second with other kernels compiled afresh,
# another number of threads and of workers, gives one hash. Sampled, of less text than the quickstart's own.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

text=()
if [[ "${OSTRO_TEST_SIZE:-sample}" == sample ]]; then text=(/usr/include/linux); fi

"$root/scripts/quickstart.sh" "${text[@]}" --steps 8 --out "$work/first" | tee "$work/first.log"
cd "$work"
OSTRO_CACHE_DIR="$work/kernels" OSTRO_THREADS=3 OSTRO_SIM_WORKERS=2 \
  "$root/scripts/quickstart.sh" "${text[@]}" --steps 8 --out second | tee "$work/second.log"

first="$(tail -n 1 "$work/first.log")" second="$(tail -n 1 "$work/second.log")"
[[ $first =~ ^run\ hash:\ [0-9a-f]{64}$ ]] || { echo "no run hash at the end: $first" >&2; exit 1; }
[[ $first == "$second" ]] || { echo "two hashes: $first, $second" >&2; exit 1; }
echo "both: $first"
