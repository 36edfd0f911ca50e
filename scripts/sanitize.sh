#!/usr/bin/env bash
# Builds rooms with sanitizers and runs their tests labelled fast.
#
#   scripts/sanitize.sh asan-ubsan           all rooms that parse, store or step, and all below them
#   scripts/sanitize.sh tsan                 all rooms that have threads
#   scripts/sanitize.sh asan-ubsan io data   these rooms
#   scripts/sanitize.sh asan-ubsan drawn     one group of them, drawn by the seed of the tests (all when OSTRO_TEST_SIZE=full)
#
# Of named or drawn rooms, AddressSanitizer and UndefinedBehaviorSanitizer look at these alone: the others' libraries are
# build/release's. ThreadSanitizer has to see every access of memory, so all below the rooms is built for it.
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${1:?which preset: asan-ubsan or tsan}"
shift
case "$preset" in
  asan-ubsan) groups=("data" "tokenizer chat config" "base io checkpoint" "numerics ir interp trace grad dist nn") ;;
  tsan) groups=("base io dist checkpoint" "tokenizer data") ;;
  *) echo "error: unknown preset $preset; use asan-ubsan or tsan" >&2; exit 2 ;;
esac
read -ra all <<< "${groups[*]}"
rooms=("${all[@]}")
if [[ "${1:-}" == drawn ]]; then
  drawn="$(python3 tests/suite/seed.py draw "sanitize.$preset" 1 "${groups[@]}")"
  read -ra rooms <<< "${drawn//$'\n'/ }"
elif (( $# > 0 )); then
  rooms=("$@")
fi

folder="$preset"
options=""
if [[ $preset == asan-ubsan ]] && (( ${#rooms[@]} < ${#all[@]} )); then
  folder="$preset-some"
  options="-DOSTRO_LIBRARIES_FROM=$PWD/build/release -DOSTRO_BUILD_ROOMS=$(IFS=';'; echo "${rooms[*]}")"
  [[ -f build/release/ostro/data/libostro_data.a ]] ||
    { echo "error: build/release has no libraries for the other rooms; run scripts/build.sh" >&2; exit 2; }
fi
echo "sanitize.$preset: rooms ${rooms[*]}"
PRESET="$preset" FOLDER="$folder" OPTIONS="$options" scripts/build.sh "${rooms[@]/%/_test}"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Address space layouts with more random bits than TSan's shadow memory allows for make it stop at the start.
runner=()
if [[ $preset == tsan ]]; then runner=(setarch "$(uname -m)" -R); fi
"${runner[@]}" ctest --test-dir "build/$folder" -L fast -R "^($(IFS='|'; echo "${rooms[*]}"))\$" --no-tests=error \
               --output-on-failure -j "${OSTRO_JOBS:-$(nproc)}"
echo "result: ${#rooms[@]} rooms: ${rooms[*]}"
