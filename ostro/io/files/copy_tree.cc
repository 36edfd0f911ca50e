#include "ostro/io/files/copy_tree.h"

#include <algorithm>

#include "ostro/io/files/path.h"

namespace ostro::io {

Status copy_file(FileSystem& fs, const std::string& from, const std::string& to) {
  constexpr int64_t kBlock = int64_t{4} << 20;
  ASSIGN_OR_RETURN(const auto source, fs.open(from));
  ASSIGN_OR_RETURN(const auto copy, fs.create(to));
  std::vector<std::byte> block;
  for (int64_t at = 0; at < source->size(); at += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, source->size() - at)));
    RETURN_IF_ERROR(source->read(at, block));
    RETURN_IF_ERROR(copy->append(block));
  }
  return copy->close();
}

Status copy_tree(FileSystem& fs, const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::vector<DirEntry> entries, fs.list(from));
  RETURN_IF_ERROR(fs.make_dirs(to));
  for (const DirEntry& entry : entries) {
    const std::string inside = join_path(from, entry.name), copy = join_path(to, entry.name);
    RETURN_IF_ERROR(entry.is_directory ? copy_tree(fs, inside, copy) : copy_file(fs, inside, copy));
  }
  return {};
}

}  // namespace ostro::io
