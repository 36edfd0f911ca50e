#!/usr/bin/env bash
# scripts/sanitize.sh asan-ubsan|tsan: builds with these sanitizers and runs the rooms' tests labelled fast.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:?which preset: asan-ubsan or tsan}"
# The unit tests of the rooms: with addresses all that parse, store or step, with threads those that have any.
case "$preset" in
  asan-ubsan) rooms=(base numerics config io ir interp trace grad dist nn tokenizer data checkpoint) ;;
  tsan) rooms=(base io dist tokenizer data checkpoint) ;;
  *) echo "error: unknown preset $preset; use asan-ubsan or tsan" >&2; exit 2 ;;
esac
PRESET="$preset" scripts/build.sh "${rooms[@]/%/_test}"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Address space layouts with more random bits than TSan's shadow memory allows for make it stop at the start.
runner=()
if [[ $preset == tsan ]]; then runner=(setarch "$(uname -m)" -R); fi
"${runner[@]}" ctest --test-dir "build/$preset" -L fast -R "^($(IFS='|'; echo "${rooms[*]}"))\$" --no-tests=error --output-on-failure -j "${OSTRO_JOBS:-$(nproc)}"
