#!/usr/bin/env bash
# tests/e2e/quickstart_twice.sh: a short quickstart in two folders, the second with other kernels compiled afresh,
# another number of threads and of workers, gives one hash. Its text is the one that needs no network. In full, the script
# then compares the hash of the whole run with the one that README.md shows.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

"$root/scripts/quickstart.sh" --offline --steps 8 --out "$work/first" | tee "$work/first.log"
cd "$work"
OSTRO_CACHE_DIR="$work/kernels" OSTRO_THREADS=3 OSTRO_SIM_WORKERS=2 \
  "$root/scripts/quickstart.sh" --offline --steps 8 --out second | tee "$work/second.log"

first="$(tail -n 1 "$work/first.log")" second="$(tail -n 1 "$work/second.log")"
[[ $first =~ ^run\ hash:\ [0-9a-f]{64}$ ]] || { echo "no run hash at the end: $first" >&2; exit 1; }
[[ $first == "$second" ]] || { echo "two hashes: $first, $second" >&2; exit 1; }
echo "both: $first"

tales="$(sed -n 's/^    .*known="\([0-9a-f]*\)"$/\1/p' "$root/scripts/quickstart.sh" | head -n 1)"
grep -q "^| the tales .* | \`$tales\` |$" "$root/README.md" || { echo "README.md and scripts/quickstart.sh name different hashes" >&2; exit 1; }
if [[ "${OSTRO_TEST_SIZE:-sample}" != sample ]]; then "$root/scripts/quickstart.sh" --offline --out "$work/whole"; fi
