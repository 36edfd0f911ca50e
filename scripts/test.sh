#!/usr/bin/env bash
# Sets up, builds and runs the tests; the last line says how many passed and failed.
#
#   scripts/test.sh                 every test
#   scripts/test.sh fast            only those with one of the labels given: fast slow e2e fault interop
#   OSTRO_TEST_NAMES=REGEX scripts/test.sh e2e    of those, only the ones whose name matches
#
# Results go to build/release/tests.xml (JUnit) and build/release/tests.log.
set -euo pipefail
cd "$(dirname "$0")/.."

known=" fast slow e2e fault interop "
for label in "$@"; do
  [[ $known == *" $label "* ]] || { echo "error: unknown label $label; known:$known" >&2; exit 2; }
done

setup=(--dev)
if (( $# == 0 )) || [[ " $* " == *" interop "* ]]; then setup+=(--python); fi
scripts/setup.sh "${setup[@]}"
scripts/build.sh

choice=()
if (( $# > 0 )); then choice+=(-L "^($(IFS='|'; echo "$*"))\$"); fi
if [[ -n "${OSTRO_TEST_NAMES:-}" ]]; then choice+=(-R "$OSTRO_TEST_NAMES"); fi
log=build/release/tests.log
status=0
ctest --test-dir build/release --output-on-failure --no-tests=error -j "${OSTRO_JOBS:-$(nproc)}" \
      --output-junit tests.xml "${choice[@]}" 2>&1 | tee "$log" || status=$?

passed="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.* Passed ' "$log" || true)"
skipped="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*(Skipped|Not Run)' "$log" || true)"
failed="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*(Failed|Timeout|Exception)' "$log" || true)"
# What two people with different machines can compare.
if (( $# == 0 )); then build/release/ostro/cli/ostro selftest || status=1; fi
(( skipped == 0 )) || echo "$skipped skipped"
# A failure of ctest itself counts as one.
if (( status != 0 && failed == 0 )); then failed=1; fi
echo "$passed passed, $failed failed"
exit "$status"
