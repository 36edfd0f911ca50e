#!/usr/bin/env bash
# Fails when a C++ file is not as clang-format writes it; with --fix, rewrites it.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
if [[ "${1:-}" == --fix ]]; then mode=(-i); fi
mapfile -t files < <(find ostro tests bench examples cmake python -name '*.cc' -o -name '*.h' | sort)
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 40 clang-format-19 "${mode[@]}" ||
  { echo "not formatted; run scripts/check_format.sh --fix" >&2; exit 1; }
echo "format: ${#files[@]} files are as clang-format writes them"
