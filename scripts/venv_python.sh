#!/usr/bin/env bash
# scripts/venv_python.sh SCRIPT words...: Python with the packages that interoperability tests compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -f .venv/installed.sha256 ]] || { echo "error: .venv is not set up; run scripts/setup.sh --python" >&2; exit 1; }
exec .venv/bin/python "$@"
