#!/usr/bin/env bash
# Builds the program twice from this commit, each in its own clone: another path, another user where that is root's to
# choose, another umask, locale, time zone and date. Then packages both and compares: equal programs, tars and wheels.
#
#   scripts/reproducible.sh                        all of it; two builds, about 20 minutes of two cores each
#   scripts/reproducible.sh --with BUILD           compares one new build with build folder BUILD of this commit
#
# Both need the same compiler and libraries (docs/reference/dependencies.md). Those of Python lie in one environment that the
# script makes, from a Python that both users can run. Prints the hashes, and exits with 1 where they differ, with 2 where the
# two builds did not find the same libraries: then nothing is compared.
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

as_user=(env)
if [[ -z $other && $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
  as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups env)
fi

# Folders of the PATH that the other user can enter, and the first Python there that can make an environment and has headers.
path="$("${as_user[@]}" bash -c 'IFS=:; for d in $PATH; do [[ -x $d ]] && printf %s: "$d"; done; true')"
export PATH="${path%:}"
python="$("${as_user[@]}" bash -c 'for p in $(type -ap python3); do
  "$p" -c "import ensurepip, os, sysconfig, venv; assert os.path.exists(sysconfig.get_paths()[\"include\"] + \"/Python.h\")" 2>/dev/null && echo "$p" && break
done; true')"
[[ -n $python ]] || fail "no python3 with venv and headers on the PATH that the other user can run; on Debian: apt-get install python3-venv python3-dev"
"$python" -m venv "$work/python"
mapfile -t wanted < <(grep -E '^(pyarrow|nanobind|numpy)==' python/requirements-test.txt)
"$work/python/bin/python" -m pip install -q --disable-pip-version-check "${wanted[@]}"
chmod -R a+rX "$work/python"

# build FOLDER COMMAND...: a clone in FOLDER, built and packaged there by COMMAND.
build() {
  local folder="$1"; shift
  git clone -q --no-hardlinks . "$folder"
  [[ $1 != setpriv ]] || chown -R 65534:65534 "$folder"
  ln -s "$work/python" "$folder/.venv"
  "$@" bash -c 'cd "$1" && CCACHE_DISABLE=1 scripts/build.sh ostro python_package >build.log && scripts/package.sh --build build/release' _ "$folder" \
    >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" "$folder/build.log" >&2; fail "the build in $folder failed"; }
  # What the build found: the libraries of the program, and the modules for Python.
  (cd "$folder/build/release" && ostro/cli/ostro --version && readelf -d ostro/cli/ostro | grep NEEDED && find python -name '*.so*' | sort) >"$folder.found"
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
  mkdir -p "$work/another/longer/path"
  chmod -R 777 "$work/another"
  umask 077
  build "$work/another/longer/path/b" "${as_user[@]}" HOME="$work/another" LC_ALL=C.UTF-8 TZ=Pacific/Chatham
  ln -s "$work/another/longer/path/b" "$work/b"
  diff "$work/a.found" "$work/another/longer/path/b.found" || fail "the two builds found different libraries (above: of the first <, of the second >)"
fi
hashes "$work/a" | tee "$work/a.hashes"
hashes "$work/b" >"$work/b.hashes"
if diff "$work/a.hashes" "$work/b.hashes"; then echo "equal: $(wc -l <"$work/a.hashes") files"; else echo "differs"; exit 1; fi
