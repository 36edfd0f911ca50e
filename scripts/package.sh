#!/usr/bin/env bash
# Makes what users install, from build/release, and puts it into dist/: a wheel, a relocatable tar, an image.
#
#   scripts/package.sh                     wheel and tar
#   scripts/package.sh tar                 one of them: tar, wheel, image (docker, or what DOCKER names, has to run)
#   scripts/package.sh --build FOLDER      from a build folder that is built already
#   scripts/package.sh --out FOLDER        to another folder than dist/
#
# All hold the same tree (packaging/tree.py): the program of the build, every library that it needs, and licences. It
# runs on Linux with glibc 2.34 or newer on x86-64-v3, without root. Equal builds give equal files.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 2; }
kinds=() build="" out=dist
while (( $# > 0 )); do
  case "$1" in
    tar|wheel|image) kinds+=("$1"); shift ;;
    --build) build="${2:?--build needs a folder}"; shift 2 ;;
    --out) out="${2:?--out needs a folder}"; shift 2 ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) fail "$1: not one of tar, wheel, image, --build, --out (see $0 --help)" ;;
  esac
done
(( ${#kinds[@]} > 0 )) || kinds=(wheel tar)
if [[ -z $build ]]; then
  scripts/build.sh ostro python_package
  build=build/release
fi
[[ -x $build/ostro/cli/ostro ]] || fail "$build has no program ostro; build it with scripts/build.sh ostro"

version="$("$build/ostro/cli/ostro" --version | sed -n '1s/^ostro //p')"
name="ostro-$version-linux-x86_64"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 packaging/tree.py --build "$build" --out "$work/$name" --python "$work/python"

# The order, dates, owners and permissions of the files are the same wherever it is made.
make_tar() {
  tar -C "$work" --sort=name --mtime=@1577836800 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - "$name" |
    gzip -6n > "$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
}
for kind in "${kinds[@]}"; do
  case "$kind" in
    tar) make_tar ;;
    wheel) python3 packaging/wheel.py --tree "$work/$name" --python "$work/python" --version "$version" --out "$out" ;;
    image) make_tar >/dev/null
           "${DOCKER:-docker}" build --tag "ostro:$version" --build-arg "TREE=$name" --file Dockerfile "$out"
           echo "image ostro:$version" ;;
  esac
done
