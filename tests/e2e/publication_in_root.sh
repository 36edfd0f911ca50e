#!/usr/bin/env bash
# tests/e2e/publication_in_root.sh ROOT TAR PUBLICATION [LOG]: checks a publication of `ostro lab publish` on a system that has
# nothing but the tar of Ostro: the root file system ROOT of a distribution, without compiler, Python and network, and not as root.
# A copy with one changed byte must be found there, too. The last line, which LOG gets, says what was checked.
#
# By hand, since it needs root here. ROOT is made by, for instance:
#   debootstrap --variant=minbase trixie ROOT
# TAR is made by scripts/package.sh, PUBLICATION by `ostro lab publish`; it must have a bundle.
set -euo pipefail
root="$(cd "$1" && pwd)" tar="$2" publication="$3" log="${4:-/dev/null}"

cleanup() {
  umount "$root/dev" "$root/proc"
}
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev" || { umount "$root/proc"; exit 1; }
trap cleanup EXIT
chroot "$root" id visitor >/dev/null 2>&1 || chroot "$root" useradd --create-home --shell /bin/bash visitor
home="$root/home/visitor"
rm -rf "${home:?}"/{published,forged,ostro-*,ostro.tar.gz}
cp "$tar" "$home/ostro.tar.gz"
cp -r "$publication" "$home/published"
chmod -R a+rX "$home/published"

cat > "$home/try.sh" <<'TRY'
set -euo pipefail
cd "$HOME"
(( EUID != 0 )) || { echo "error: this is root"; exit 1; }
for program in cc gcc clang python3; do
  if command -v $program; then echo "error: there is $program"; exit 1; fi
done
tar -xzf ostro.tar.gz
ostro="$(echo "$PWD"/ostro-*/bin/ostro)"
"$ostro" verify published | tee said.txt
head -n 1 said.txt | grep -q '^equal' || { echo "error: the publication is not equal"; exit 1; }
bundles=0
for bundle in published/bundles/*; do
  "$ostro" verify "$bundle" | head -n 1 | grep -q '^equal' || { echo "error: $bundle is not equal"; exit 1; }
  bundles=$((bundles + 1))
done
(( bundles > 0 )) || { echo "error: no bundle"; exit 1; }
cp -r published forged
file="$(find forged/bundles -name '*.safetensors' | head -n 1)"
size="$(stat -c %s "$file")"
byte="$(tail -c 1 "$file" | od -An -tu1 | tr -d ' ')"
printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$file" bs=1 seek=$((size - 1)) conv=notrunc status=none
if "$ostro" verify forged > forged.txt; then echo "error: a changed byte was not found"; exit 1; fi
grep -q "$(basename "$file")" forged.txt || { echo "error: the changed file is not named"; cat forged.txt; exit 1; }
echo "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), ostro alone: a publication with $bundles bundles is equal; a changed byte of $(basename "$file") is found"
TRY
unshare --net chroot "$root" su --login visitor -s /bin/bash -c 'exec bash /home/visitor/try.sh' |
  tee "$root/tmp/said.txt"
tail -n 1 "$root/tmp/said.txt" >> "$log"
