#!/usr/bin/env bash
# tests/e2e/package_in_root.sh ROOT DIST [WORDS]: tries the wheel and the tar of the folder DIST as a new user would, in the
# root file system ROOT of a distribution, without compiler and not as root; the last lines say how long it took.
#
# By hand, since it needs root here, and the network for pip. ROOT is made by, for instance:
#   debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie ROOT
# WORDS go to the quickstart.
set -euo pipefail
root="$(cd "$1" && pwd)" dist="$(cd "$2" && pwd)"
shift 2

cleanup() {
  umount "$root/dev" "$root/proc"
}
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev" || { umount "$root/proc"; exit 1; }
trap cleanup EXIT
cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
if [[ -n ${PIP_CERT:-} ]]; then install -m 644 "$PIP_CERT" "$root/etc/pip_cert.pem"; fi
chroot "$root" id visitor >/dev/null 2>&1 || chroot "$root" useradd --create-home --shell /bin/bash visitor
home="$root/home/visitor"
rm -rf "${home:?}"/{venv,quickstart,dist,.cache,ostro-*}
mkdir "$home/dist"
cp "$dist"/*.whl "$dist"/*.tar.gz "$home/dist"

cat > "$home/try.sh" <<'TRY'
set -euo pipefail
cd "$HOME"
(( EUID != 0 )) || { echo "error: this is root"; exit 1; }
for compiler in cc gcc clang; do
  if command -v $compiler; then echo "error: there is a compiler"; exit 1; fi
done
[[ ! -f /etc/pip_cert.pem ]] || export PIP_CERT=/etc/pip_cert.pem
sed -n 's/^PRETTY_NAME=//p' /etc/os-release
python3 -c 'import platform; print("Python", platform.python_version(), *platform.libc_ver())'
echo "== tar"
tar -xzf dist/*.tar.gz
"$PWD"/ostro-*/bin/ostro --version
"$PWD"/ostro-*/bin/ostro selftest
echo "== wheel"
SECONDS=0
python3 -m venv venv
. venv/bin/activate
pip install -q dist/*.whl
echo "installed after $SECONDS s"
ostro selftest
python -m ostro.quickstart --out "$HOME/quickstart" "$@"
echo "a verified run after $SECONDS s"
TRY
chroot "$root" su --login visitor -s /bin/bash -c 'exec bash /home/visitor/try.sh "$@"' -- visitor "$@"
