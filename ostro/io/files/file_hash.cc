#include "ostro/io/files/file_hash.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ostro/base/sha256.h"

namespace ostro::io {

Result<std::string> file_sha256(FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, fs.open(path));
  Sha256 hash;
  std::vector<std::byte> buffer(256 << 10);
  for (int64_t at = 0; at < file->size();) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(file->size() - at, static_cast<int64_t>(buffer.size())));
    const std::span<std::byte> part = std::span(buffer).first(count);
    RETURN_IF_ERROR(file->read(at, part));
    hash.update(part);
    at += static_cast<int64_t>(count);
  }
  return to_hex(hash.finish());
}

}  // namespace ostro::io
