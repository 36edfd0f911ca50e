#include "ostro/grok/release/contents.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

constexpr int64_t kBlockBytes = 8 << 20, kMaxMemoryBytes = 64 << 20;
// No such part of a trained matrix is zeros alone; nor is a whole array of this many bytes.
constexpr int64_t kHoleBytes = 1 << 20, kHoleArrayBytes = 4096;

// Looks at the blocks of a file in order, and keeps the first damage.
class Damage {
 public:
  explicit Damage(const StoredTensor& stored) : stored_(stored) {}

  void look(int64_t at, std::span<const std::byte> block) {
    look_at_array(stored_.weight, at, block, "weight");
    if (stored_.scales) look_at_array(*stored_.scales, at, block, "scales");
  }
  const std::string& error() const { return error_; }

 private:
  void look_at_array(const StoredArray& array, int64_t at, std::span<const std::byte> block,
                     const char* what) {
    const int64_t begin = std::max(at, array.begin);
    const int64_t end = std::min(at + static_cast<int64_t>(block.size()), array.begin + array.bytes);
    if (begin >= end || !error_.empty()) return;
    const auto part = block.subspan(static_cast<size_t>(begin - at), static_cast<size_t>(end - begin));
    if (begin == array.begin) zeros_from_ = begin;
    find_zeros(array, begin, part, what);
    const int64_t item = item_size(array.dtype);
    if (array.dtype == Dtype::kInt8 || !error_.empty()) return;
    for (int64_t i = 0; i < static_cast<int64_t>(part.size());
         ++i) {  // an element may begin in the block before
      element_[static_cast<size_t>((begin + i - array.begin) % item)] = part[static_cast<size_t>(i)];
      if ((begin + i - array.begin) % item == item - 1) look_at_element(array, begin + i + 1 - item, what);
      if (!error_.empty()) return;
    }
  }

  // Finds a run of zero bytes that is too long for a trained array, across blocks. The limit is 1 MiB, or the
  // whole array if that is smaller, but at least 4096 bytes.
  void find_zeros(const StoredArray& array, int64_t begin, std::span<const std::byte> part,
                  const char* what) {
    const int64_t hole = std::min(kHoleBytes, std::max(kHoleArrayBytes, array.bytes));
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == std::byte{0}) continue;
      const int64_t here = begin + static_cast<int64_t>(i);
      if (here - zeros_from_ >= hole) return hole_found(here, what);
      zeros_from_ = here + 1;
    }
    const int64_t end = begin + static_cast<int64_t>(part.size());
    if (end - zeros_from_ >= hole && end == array.begin + array.bytes) hole_found(end, what);
  }
  void hole_found(int64_t end, const char* what) {
    error_ = fmt::format("bytes {} to {} of its {} are zeros: a part that a download has not filled",
                         zeros_from_, end, what);
  }

  void look_at_element(const StoredArray& array, int64_t at, const char* what) {
    float value = 0;
    if (array.dtype == Dtype::kF32) {
      std::memcpy(&value, element_, sizeof(value));
    } else {
      numerics::Bf16 half;
      std::memcpy(&half, element_, sizeof(half));
      value = to_f32(half);
    }
    const bool is_scale = stored_.scales && &array == &*stored_.scales;
    if (!std::isfinite(value) || (is_scale && value < 0))
      error_ = fmt::format("byte {}: an element of its {} is {}", at, what, value);
  }

  const StoredTensor& stored_;
  int64_t zeros_from_ = 0;  // where the zeros before the current byte begin
  std::byte element_[4] = {};
  std::string error_;
};

}  // namespace

Result<Contents> read_contents(const io::RandomAccessFile& file, const StoredTensor& stored,
                               const std::function<void(int64_t)>& progress) {
  Sha256 hash;
  Damage damage(stored);
  std::vector<std::byte> block;
  for (int64_t at = 0; at < file.size();) {
    block.resize(static_cast<size_t>(std::min(kBlockBytes, file.size() - at)));
    RETURN_IF_ERROR(file.read(at, block));
    hash.update(std::span<const std::byte>(block));
    damage.look(at, block);
    at += static_cast<int64_t>(block.size());
    if (progress) progress(static_cast<int64_t>(block.size()));
  }
  return Contents{to_hex(hash.finish()), damage.error()};
}

RememberedContents::RememberedContents(io::FileSystem& fs, const std::string& directory,
                                       const std::string& memory)
    : fs_(fs) {
  if (memory.empty()) return;
  path_ = io::join_path(memory, fmt::format("check-{}.json", sha256_hex(io::absolute_path(directory))));
  const auto text = fs.read_file(path_, kMaxMemoryBytes);
  const auto parsed = text.ok() ? io::parse_json(*text, path_) : text.error();
  if (!parsed.ok() || !parsed->is_object()) return;
  for (const auto& [name, value] : parsed->items()) {
    const io::JsonFields fields(value, path_);
    const auto bytes = fields.integer("bytes", 0, INT64_MAX),
               mtime = fields.integer("mtime_ns", INT64_MIN, INT64_MAX);
    const auto sha256 = fields.string("sha256"), error = fields.string("error");
    if (bytes.ok() && mtime.ok() && sha256.ok() && error.ok())
      entries_[name] = {*bytes, *mtime, {*sha256, *error}};
  }
}

const Contents* RememberedContents::find(const std::string& file, const io::FileInfo& info) const {
  const auto found = entries_.find(file);
  if (found == entries_.end() || found->second.bytes != info.size || found->second.mtime_ns != info.mtime_ns)
    return nullptr;
  return &found->second.contents;
}

void RememberedContents::add(const std::string& file, const io::FileInfo& info, Contents contents) {
  entries_[file] = {info.size, info.mtime_ns, std::move(contents)};
}

Status RememberedContents::save() const {
  if (path_.empty()) return {};
  RETURN_IF_ERROR(fs_.make_dirs(io::parent_path(path_)));
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, entry] : entries_)
    object[name] = {{"bytes", entry.bytes},
                    {"mtime_ns", entry.mtime_ns},
                    {"sha256", entry.contents.sha256},
                    {"error", entry.contents.error}};
  return io::write_file_atomically(fs_, path_, object.dump(1) + "\n");
}

}  // namespace ostro::grok
