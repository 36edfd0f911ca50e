#!/usr/bin/env bash
# tests/e2e/other_program.sh OUT: makes a second program, whose source differs in one line that every training logs, for
# lab_edits_test.py --other: a file is compiled and the program linked. Source and build folder are afterwards as before. It must
# be given a build folder that is up to date (scripts/build.sh ostro); nobody else may build there meanwhile. OUT lies beside the
# program, since it looks for Apache Arrow from there.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="$1" build=build/release file=ostro/run/loop/reporter.cc
saved="$(mktemp)"
cp "$file" "$saved"
restore() {
  cp "$saved" "$file"  # with a new time, so that its object is made again
  rm -f "$saved"
  ninja -C "$build" ostro > /dev/null
}
trap restore EXIT
sed -i 's/MFLOP a token"/MFLOP for each token"/' "$file"
cmp -s "$file" "$saved" && { echo "error: $file no longer has the line; name another one here" >&2; exit 1; }
ninja -C "$build" ostro > /dev/null
cp "$build/ostro/cli/ostro" "$out"
grep -q "MFLOP for each token" "$out" || { echo "error: $out does not log the other line" >&2; exit 1; }
echo "$out: logs another line"
