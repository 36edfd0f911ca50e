#!/usr/bin/env bash
# Sets up, builds and runs the tests; the last line says how many passed and failed.
#
#   scripts/test.sh                 the tests, those that take long on samples that the commit draws, and of the expensive
#                                   ones (label drawn) as many as fit; the last lines name those that were not run
#   scripts/test.sh all             every test, in full
#   scripts/test.sh fast            only those with one of the labels given, in full: fast slow e2e fault interop
#   OSTRO_TEST_NAMES=REGEX scripts/test.sh e2e    of those, only the ones whose name matches
#   OSTRO_TEST_SEED=N scripts/test.sh             other samples; each test prints what it drew
#   OSTRO_TEST_SIZE=sample scripts/test.sh slow   sample, full, or exhaustive, which takes hours
#
# Results go to build/release/tests.xml (JUnit), tests.log, and results/NAME.json, a file for each test: from these
# scripts/write_status.py --collect writes docs/status.md and docs/notes/results.md.
set -euo pipefail
cd "$(dirname "$0")/.."

known=" all fast slow e2e fault interop "
labels=()
for label in "$@"; do
  [[ $known == *" $label "* ]] || { echo "error: unknown label $label; known:$known" >&2; exit 2; }
  if [[ $label != all ]]; then labels+=("$label"); fi
done
if (( $# > 0 )); then export OSTRO_TEST_SIZE="${OSTRO_TEST_SIZE:-full}"; fi

# Packages of Python that only tests use come while the compilers run.
python_setup=""
if (( ${#labels[@]} == 0 )) || [[ " ${labels[*]} " == *" interop "* ]]; then
  scripts/setup.sh --dev --pyarrow
  mkdir -p build
  scripts/setup.sh --python --cuda > build/setup_python.log 2>&1 &
  python_setup=$!
else
  scripts/setup.sh --dev
fi
build_status=0
# A folder that was configured before pyarrow was there has to look for it again.
OPTIONS="${OPTIONS:--DOSTRO_WITH_PARQUET=AUTO}" scripts/build.sh || build_status=$?
if [[ -n $python_setup ]]; then
  wait "$python_setup" || { tail -n 20 build/setup_python.log; echo "error: scripts/setup.sh --python failed" >&2; exit 1; }
fi
(( build_status == 0 )) || exit "$build_status"

choice=()
if (( ${#labels[@]} > 0 )); then choice+=(-L "^($(IFS='|'; echo "${labels[*]}"))\$"); fi
if [[ -n "${OSTRO_TEST_NAMES:-}" ]]; then choice+=(-R "$OSTRO_TEST_NAMES"); fi
left=()
if (( $# == 0 )) && [[ -z "${OSTRO_TEST_NAMES:-}" && "${OSTRO_TEST_SIZE:-sample}" == sample ]]; then
  found="$(python3 tests/suite/choose.py --build build/release --seconds 450)"
  [[ -z $found ]] || mapfile -t left <<< "$found"
fi
if (( ${#left[@]} > 0 )); then choice+=(-E "^($(IFS='|'; echo "${left[*]//./\\.}"))\$"); fi
log=build/release/tests.log
status=0
rm -rf build/release/results
# Many tests wait for timers and sockets, so one more runs than there are cores.
ctest --test-dir build/release --output-on-failure --no-tests=error -j "${OSTRO_JOBS:-$(( $(nproc) + 1 ))}" \
      --output-junit tests.xml "${choice[@]}" 2>&1 | tee "$log" || status=$?

passed="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.* Passed ' "$log" || true)"
skipped="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*(Skipped|Not Run)' "$log" || true)"
failed="$(grep -cE '^ *[0-9]+/[0-9]+ Test +#.*\*\*\*(Failed|Timeout|Exception)' "$log" || true)"
# What two people with different machines can compare.
if (( $# == 0 )); then build/release/ostro/cli/ostro selftest || status=1; fi
python3 tests/suite/summary.py build/release/results
(( ${#left[@]} == 0 )) || echo "not run, for the seed drew others (scripts/test.sh all runs all): ${left[*]}"
(( skipped == 0 )) || echo "$skipped skipped"
# A failure of ctest itself counts as one.
if (( status != 0 && failed == 0 )); then failed=1; fi
echo "$passed passed, $failed failed"
exit "$status"
