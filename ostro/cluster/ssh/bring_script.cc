// The other machine's side of bring.h: a script that needs a POSIX shell, tar, sha256sum and df.
#include <fmt/format.h>

#include "ostro/base/sha256.h"
#include "ostro/base/text_parts.h"
#include "ostro/cluster/ssh/bring.h"
#include "ostro/cluster/ssh/remote_command.h"
#include "ostro/io/files/path.h"

namespace ostro::cluster {
namespace {

constexpr size_t kDigitsOfCopy = 16;

// It says lines: machine, folder, lacks (for each path), free, then there, or need with the numbers of files;
// at the end done. Or else error or wrong, and ends. A lost connection ends its input, and then it. A copy
// gets its name when it is whole, and loses it before it is removed; one that is there is mended in its
// place, since workers may run in it. Where another call has made the same copy meanwhile, mv puts this one
// into that.
constexpr const char* kTake = R"sh(
umask 077
LC_ALL=C; export LC_ALL
say() { printf '%s\n' "$*"; }
fail() { say "error $(printf '%s' "$*" | tr '\n' ' ')"; exit 1; }
lines() { while IFS= read -r line; do [ -n "$line" ] || return 0; printf '%s\n' "$line"; done; return 1; }
in_use() {
  for exe in /proc/[0-9]*/exe; do case $(readlink "$exe" 2>/dev/null) in "$base/$1/"*) return 0;; esac; done
  [ -z "$(find "$1/list" -mtime +$days 2>/dev/null)" ]
}
say "machine $(uname -s -m)"
for tool in tar sha256sum df; do command -v $tool >/dev/null || fail "there is no program $tool; install it"; done
problem=$(mkdir -p "$base" 2>&1) && cd "$base" || fail "$problem"
base=$(pwd -P)
say "folder $base/$id"
new=$base/.new-$nonce
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM PIPE
problem=$(mkdir "$new" "$new/parts" 2>&1) || fail "$problem"
lines > "$new/list" || exit 1
lines > "$new/elsewhere" || exit 1
[ "$(sha256sum < "$new/list" | cut -c1-16)" = "$id" ] || fail "the list of files did not arrive whole; is $base full?"
while IFS= read -r path; do [ -e "$path" ] || say "lacks $path"; done < "$new/elsewhere"
set -- $(df -P -k . | tail -n 1)
say "free $4"
if cmp -s "$id/list" "$new/list" && (cd "$id" && sha256sum -c list) >/dev/null 2>&1; then
  say there
else
  number=0; need=
  while IFS= read -r line; do
    number=$((number + 1)); sum=${line%% *}; part=$new/parts/$sum
    [ ! -e "$part" ] || continue
    for list in ????????????????/list; do
      [ -f "$list" ] || continue
      old=$(sed -n "s/^$sum  //p" "$list" | head -n 1)
      [ -n "$old" ] && ln "${list%list}$old" "$part" 2>/dev/null || continue
      if printf '%s  %s\n' "$sum" "$part" | sha256sum -c >/dev/null 2>&1; then continue 2; fi
      rm -f "$part"
    done
    need="$need $number"
  done < "$new/list"
  say "need$need"
  problem=$(tar -x -f - -C "$new/parts" 2>&1) || fail "$problem"
  while IFS= read -r line; do sum=${line%% *}; printf '%s  parts/%s\n' "$sum" "$sum"; done < "$new/list" > "$new/sums"
  wrong=$(cd "$new" && sha256sum -c sums 2>/dev/null | grep -v ': OK$' | head -n 1)
  if [ -n "$wrong" ]; then wrong=${wrong#parts/}; say "wrong ${wrong%%:*}"; exit 1; fi
  copy=$id; [ -e "$id" ] || copy=$new/copy
  while IFS= read -r line; do
    sum=${line%% *}; name=${line#*  }; folder=$copy/$name
    problem=$(mkdir -p "${folder%/*}" 2>&1) || fail "$problem"
    ! cmp -s "$new/parts/$sum" "$copy/$name" || continue
    rm -f "$new/one"
    ln "$new/parts/$sum" "$new/one" 2>/dev/null || problem=$(cp -p "$new/parts/$sum" "$new/one" 2>&1) || fail "$problem"
    problem=$(mv -f "$new/one" "$copy/$name" 2>&1) || fail "$problem"
  done < "$new/list"
  problem=$(mv -f "$new/list" "$copy/list" 2>&1) || fail "$problem"
  [ "$copy" = "$id" ] || problem=$(mv "$copy" "$id" 2>&1) || fail "$problem"
  rm -rf "$id/copy"
fi
problem=$(mkdir -p "$id/$work" 2>&1) || fail "$problem"
problem=$("$id/$program" --version 2>&1 </dev/null) || fail "$id/$program does not run there: $problem"
touch "$id/list"
number=0
for list in $(ls -1t ????????????????/list 2>/dev/null); do
  number=$((number + 1)); old=${list%/list}
  [ $number -gt $kept ] && [ "$old" != "$id" ] || continue
  in_use "$old" || { mv "$old" ".old-$nonce-$old" && rm -rf ".old-$nonce-$old" && say "removed $old"; }
done
rm -rf .old-*
find . -maxdepth 1 -name '.new-*' -mtime +0 -exec rm -rf {} + 2>/dev/null
say done)sh";

}  // namespace

std::string BroughtCopy::list() const {
  std::string out;
  for (const BroughtFile& file : files) out += fmt::format("{}  {}\n", file.sha256, file.name);
  return out;
}

std::string BroughtCopy::place() const {
  return io::join_path(folder, sha256_hex(list()).substr(0, kDigitsOfCopy));
}

Status check_copy(const BroughtCopy& copy) {
  for (const BroughtFile& file : copy.files) {
    if (file.name.find_first_of("\n\r\\") != std::string::npos)
      return invalid_argument(fmt::format(
          "{}: a name with a line feed or a backslash cannot be carried to other machines; rename the file",
          file.name));
    if (file.size >= kMostOfBroughtFile)
      return invalid_argument(
          fmt::format("{}: {} bytes; a file of {} or more cannot be carried to other machines", file.name,
                      file.size, kMostOfBroughtFile));
  }
  for (const std::string& path : copy.elsewhere)
    if (path.find_first_of("\n\r") != std::string::npos)
      return invalid_argument(fmt::format("{}: a name with a line feed; rename it", path));
  return {};
}

std::string bring_script(const BroughtCopy& copy, const std::string& nonce) {
  return "exec sh -c " +
         shell_word(fmt::format("base={}\nid={}\nnonce={}\nprogram={}\nwork={}\nkept={}\ndays={}{}",
                                home_word(copy.folder), io::base_name(copy.place()), nonce,
                                shell_word(copy.program), kWorkOfCopy, kKeptCopies, kDaysOfCopy - 1, kTake));
}

}  // namespace ostro::cluster
