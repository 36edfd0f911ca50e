#!/usr/bin/env bash
# Builds rooms with sanitizers and runs their tests labelled fast.
#
#   scripts/sanitize.sh asan-ubsan           all rooms that parse, store or step, and all below them
#   scripts/sanitize.sh tsan                 all rooms that have threads
#   scripts/sanitize.sh asan-ubsan io data   these rooms
#   scripts/sanitize.sh fuzz [SECONDS]       what strangers send to `ostro serve`, for so much CPU time of each kind (1800), with
#                                            AddressSanitizer and UndefinedBehaviorSanitizer in the rooms that read it
#   scripts/sanitize.sh drawn                one group of rooms with one of the two, drawn by the seed of the tests; all of
#                                            both where OSTRO_TEST_SIZE is not sample
#
# AddressSanitizer and UndefinedBehaviorSanitizer look at named or drawn rooms alone: the libraries of the others are
# build/release's. ThreadSanitizer has to see every access of memory, so all below the rooms is built for it.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A groups=(
  [asan-ubsan]="data prepare batches page;tokenizer chat config init grok drawn scaling sql attest experiment lab lab_commands paper site publication board without;base io objects tls cluster checkpoint http monitor serve;numerics ir interp trace grad dist nn"
  [tsan]="base io objects tls dist http;cluster;checkpoint;tokenizer data prepare batches")
export LSAN_OPTIONS=suppressions=$PWD/scripts/leaks.supp:print_suppressions=0
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

# sanitize PRESET ROOM...: builds and runs the rooms' tests.
sanitize() {
  local preset="$1" folder="$1" options="" runner=()
  shift
  if [[ $preset == asan-ubsan && "$*" != "${groups[$preset]//;/ }" ]]; then
    folder="$preset-some"
    options="-DOSTRO_LIBRARIES_FROM=$PWD/build/release -DOSTRO_BUILD_ROOMS=$(IFS=';'; echo "$*")"
    [[ -f build/release/ostro/data/libostro_data.a ]] ||
      { echo "error: build/release has no libraries for the other rooms; run scripts/build.sh" >&2; exit 2; }
  fi
  echo "$preset: rooms $*"
  PRESET="$preset" FOLDER="$folder" OPTIONS="$options" scripts/build.sh "${@/%/_test}"
  # Address space layouts with more random bits than TSan's shadow memory allows for make it stop at the start.
  if [[ $preset == tsan ]]; then runner=(setarch "$(uname -m)" -R); fi
  "${runner[@]}" ctest --test-dir "build/$folder" -L fast -R "^($(IFS='|'; echo "$*"))\$" --no-tests=error \
                 --output-on-failure -j "${OSTRO_JOBS:-$(nproc)}"
  echo "result: $preset on $*"
}

# Each kind stops at its first case whose reader is wrong, with its seed. A connection mostly waits, so those have ten processes.
fuzz() {
  local rooms="base;config;chat;http;serve" program=build/asan-ubsan-fuzz/tests/fuzz/serve/fuzz_serve kind part pid seed status=0
  pids=()
  [[ -f build/release/ostro/serve/libostro_serve.a ]] ||
    { echo "error: build/release has no libraries for the other rooms; run scripts/build.sh" >&2; exit 2; }
  PRESET=asan-ubsan FOLDER=asan-ubsan-fuzz OPTIONS="-DOSTRO_LIBRARIES_FROM=$PWD/build/release -DOSTRO_BUILD_ROOMS=$rooms" \
    scripts/build.sh fuzz_serve
  seed="$(python3 tests/suite/seed.py)"
  trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT  # an interrupt does not reach what runs in the background
  for kind in bodies receipts calls; do
    "$program" --target "$kind" --seed "$seed" --seconds "$1" & pids+=($!)
  done
  for part in {0..9}; do
    "$program" --target http --seed $(( seed + part * 10000000 )) --seconds $(( ($1 + 9) / 10 )) & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  return $status
}

preset="${1:?which preset: asan-ubsan, tsan, drawn or fuzz}"
shift
if [[ $preset == fuzz ]]; then
  fuzz "${1:-1800}"
elif [[ $preset == drawn ]]; then
  choices=()
  for name in asan-ubsan tsan; do
    IFS=';' read -ra some <<< "${groups[$name]}"
    choices+=("${some[@]/#/$name }")
  done
  if [[ "${OSTRO_TEST_SIZE:-sample}" == sample ]]; then
    read -ra words <<< "$(python3 tests/suite/seed.py draw sanitize 1 "${choices[@]}")"
    sanitize "${words[@]}"
  else
    for name in asan-ubsan tsan; do sanitize "$name" ${groups[$name]//;/ }; done
  fi
elif [[ -z "${groups[$preset]:-}" ]]; then
  echo "error: unknown preset $preset; use asan-ubsan, tsan or drawn" >&2
  exit 2
elif (( $# > 0 )); then
  sanitize "$preset" "$@"
else
  sanitize "$preset" ${groups[$preset]//;/ }
fi
