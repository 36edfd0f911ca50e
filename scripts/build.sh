#!/usr/bin/env bash
# Builds build/PRESET: everything, or only the targets named.
#
#   scripts/build.sh                       all, preset release
#   scripts/build.sh ostro                 only the program
#   PRESET=debug scripts/build.sh          another preset of CMakePresets.json
#   FOLDER=some OPTIONS="-DX=Y ..." scripts/build.sh   build/some instead of build/PRESET, with options for CMake
#   OSTRO_JOBS=1 scripts/build.sh          compilers at a time; default: one a core, a GiB of memory each
set -euo pipefail
cd "$(dirname "$0")/.."

preset="${PRESET:-release}"
gibibytes="$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)"
jobs="${OSTRO_JOBS:-$(nproc)}"
(( jobs <= gibibytes )) || jobs=$(( gibibytes > 1 ? gibibytes : 1 ))

folder="build/${FOLDER:-$preset}"
read -ra options <<< "${OPTIONS:-}"
if [[ ! -f $folder/build.ninja ]] && [[ -z "${CCACHE_DISABLE:-}" ]] && command -v ccache >/dev/null; then
  options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi
# Configuring again is ninja's business once there is something to build.
if [[ ! -f $folder/build.ninja ]] || (( ${#options[@]} > 0 )); then
  cmake --preset "$preset" -B "$folder" "${options[@]}" >/dev/null
fi
exec ninja -C "$folder" -j "$jobs" "$@"
