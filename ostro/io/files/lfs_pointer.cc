#include "ostro/io/files/lfs_pointer.h"

#include <array>

#include "ostro/io/files/path.h"

namespace ostro::io {
namespace {

// What every version of the pointer's format begins with.
constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
constexpr int64_t kMaxPointerBytes = 1024;  // a pointer is shorter, by its specification

}  // namespace

Status refuse_lfs_pointer(const RandomAccessFile& file) {
  if (file.size() < static_cast<int64_t>(kBegin.size()) || file.size() >= kMaxPointerBytes) return {};
  std::array<char, kBegin.size()> begin{};
  RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(begin))));
  if (std::string_view(begin.data(), begin.size()) != kBegin) return {};
  return corrupt(fmt::format(
      "{}: is a Git LFS pointer of {} bytes, not the file itself; `git lfs pull` in {} fetches the "
      "file, or download it again",
      file.path(), file.size(), parent_path(file.path())));
}

}  // namespace ostro::io
