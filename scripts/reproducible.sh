#!/usr/bin/env bash
# Builds the program twice from this commit, each in its own clone: another path, another user where that is root's to
# choose, another umask, locale, time zone and date. Then packages both and compares: equal programs, tars and wheels.
#
#   scripts/reproducible.sh                        all of it; two builds, about 20 minutes of two cores each
#   scripts/reproducible.sh --with BUILD           compares one new build with build folder BUILD of this commit
#
# Both need the same compiler and libraries (docs/reference/dependencies.md); ostro --version names them. Prints the
# hashes, and exits with 1 where they differ.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 2; }
other=""
case "${1:-}" in
  "") ;;
  --with) other="$(realpath "${2:?--with needs a build folder}")" ;;
  -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) fail "$1: not one of --with, --help" ;;
esac
[[ -z $(git status --porcelain --untracked-files=no) ]] || fail "there are changes that are in no commit; commit them, since clones are built"
work="$(mktemp -d)"
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT

# build FOLDER COMMAND...: a clone in FOLDER, built and packaged there by COMMAND.
build() {
  local folder="$1"; shift
  git clone -q . "$folder"
  [[ $1 != setpriv ]] || chown -R 65534:65534 "$folder"
  [[ ! -d .venv ]] || ln -s "$PWD/.venv" "$folder/.venv"  # pyarrow, where this tree has it
  "$@" bash -c 'cd "$1" && CCACHE_DISABLE=1 scripts/build.sh ostro python_package >build.log && scripts/package.sh --build build/release' _ "$folder" \
    >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" "$folder/build.log" >&2; fail "the build in $folder failed"; }
}

hashes() {  # of a folder with build/release and dist
  (cd "$1" && sha256sum build/release/ostro/cli/ostro dist/*)
}

build "$work/a" env
if [[ -n $other ]]; then
  mkdir -p "$work/b/build"
  ln -s "$other" "$work/b/build/release"
  scripts/package.sh --build "$other" --out "$work/b/dist" >/dev/null
else
  as_user=(env)
  if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
    as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups env)
  fi
  mkdir -p "$work/another/longer/path"
  chmod -R 777 "$work/another"
  umask 077
  build "$work/another/longer/path/b" "${as_user[@]}" HOME="$work/another" LC_ALL=C.UTF-8 TZ=Pacific/Chatham
  ln -s "$work/another/longer/path/b" "$work/b"
fi
hashes "$work/a" | tee "$work/a.hashes"
hashes "$work/b" >"$work/b.hashes"
if diff "$work/a.hashes" "$work/b.hashes"; then echo "equal: $(wc -l <"$work/a.hashes") files"; else echo "differs"; exit 1; fi
