#include "ostro/data/pack_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ostro/base/check.h"
#include "ostro/io/atomic_file.h"
#include "ostro/io/crc32c.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "ostro pack index 1";
constexpr int64_t kRowsAtATime = 65536;
constexpr int64_t kTrailerBytes = 12;  // length of the header (u64) and its CRC-32C

// What an index is of; an index with another one is of no use.
Json identity(const TokenStream& stream, const std::string& store_hash, const PackRule& rule) {
  return {{"format", kFormat},
          {"store", store_hash},
          {"rows", stream.rows()},
          {"seq_len", rule.seq_len},
          {"keep", rule.keep == Keep::kLeft ? "left" : "right"},
          {"pack", rule.pack}};
}

int64_t page_bytes(int64_t entries) { return entries * 8 + 4; }

// Collects entries and writes full pages.
class PageWriter {
 public:
  PageWriter(io::WritableFile& file, size_t page) : file_(file), page_(page) {}
  Status add(int64_t value) {
    values_.push_back(value);
    return values_.size() == page_ ? flush() : Status();
  }
  Status flush() {
    if (values_.empty()) return {};
    const auto bytes = std::as_bytes(std::span(values_));
    const uint32_t crc = io::crc32c(bytes);
    RETURN_IF_ERROR(file_.append(bytes));
    values_.clear();
    return file_.append(std::as_bytes(std::span(&crc, 1)));
  }

 private:
  io::WritableFile& file_;
  size_t page_;
  std::vector<int64_t> values_;
};

// Calls `start` with the first row of every sequence, in order.
template <typename Start>
Result<PackCounts> for_each_start(const TokenStream& stream, const PackRule& rule, Start start) {
  PackCounts counts;
  int64_t used = rule.seq_len + 1;  // of the sequence being filled: full
  for (int64_t row = 0; row < stream.rows(); row += kRowsAtATime) {
    const int64_t count = std::min(kRowsAtATime, stream.rows() - row);
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(row, count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t tokens = ends[static_cast<size_t>(i) + 1] - ends[static_cast<size_t>(i)];
      const int64_t positions = rule.positions(tokens);
      if (positions == 0) {
        ++counts.empty_rows;
        continue;
      }
      if (tokens - 1 > rule.seq_len) {
        ++counts.cut_rows;
        counts.cut_tokens += tokens - 1 - rule.seq_len;
      }
      if (!rule.pack || used + positions > rule.seq_len) {
        RETURN_IF_ERROR(start(row + i));
        ++counts.sequences;
        used = 0;
      }
      used += positions;
    }
  }
  return counts;
}

Status make(io::FileSystem& fs, const std::string& path, const TokenStream& stream, const Json& what,
            const PackRule& rule, int64_t page) {
  return io::write_file_atomically(fs, path, [&](io::WritableFile& file) -> Status {
    PageWriter pages(file, static_cast<size_t>(page));
    ASSIGN_OR_RETURN(const PackCounts counts,
                     for_each_start(stream, rule, [&](int64_t row) { return pages.add(row); }));
    RETURN_IF_ERROR(pages.add(stream.rows()));
    RETURN_IF_ERROR(pages.flush());
    Json header = what;
    header["sequences"] = counts.sequences;
    header["cut_rows"] = counts.cut_rows;
    header["cut_tokens"] = counts.cut_tokens;
    header["empty_rows"] = counts.empty_rows;
    const std::string text = header.dump();
    const auto length = static_cast<uint64_t>(text.size());
    const uint32_t crc = io::crc32c(std::as_bytes(std::span(text)));
    RETURN_IF_ERROR(file.append(text));
    RETURN_IF_ERROR(file.append(std::as_bytes(std::span(&length, 1))));
    return file.append(std::as_bytes(std::span(&crc, 1)));
  });
}

// The header of an index, or a discarded value when there is none or it is damaged.
Result<Json> read_header(const io::RandomAccessFile& file) {
  uint64_t length = 0;
  uint32_t crc = 0;
  if (file.size() < kTrailerBytes) return Json(Json::value_t::discarded);
  RETURN_IF_ERROR(file.read(file.size() - kTrailerBytes, std::as_writable_bytes(std::span(&length, 1))));
  RETURN_IF_ERROR(file.read(file.size() - 4, std::as_writable_bytes(std::span(&crc, 1))));
  if (length > static_cast<uint64_t>(file.size() - kTrailerBytes) || length > 65536)
    return Json(Json::value_t::discarded);
  std::string text(length, '\0');
  RETURN_IF_ERROR(file.read(file.size() - kTrailerBytes - static_cast<int64_t>(length),
                            std::as_writable_bytes(std::span(text))));
  if (io::crc32c(std::as_bytes(std::span(text))) != crc) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// Whether the header says what the identity says.
bool is_of(const Json& header, const Json& what) {
  if (!header.is_object()) return false;
  for (const auto& [key, value] : what.items())
    if (!header.contains(key) || header[key] != value) return false;
  for (const char* count : {"sequences", "cut_rows", "cut_tokens", "empty_rows"})
    if (!header.contains(count) || !header[count].is_number_integer()) return false;
  return true;
}

}  // namespace

Result<PackCounts> count_packs(const TokenStream& stream, const PackRule& rule) {
  return for_each_start(stream, rule, [](int64_t) { return Status(); });
}

std::string left_out_text(const PackCounts& counts) {
  std::string out;
  if (counts.cut_rows > 0)
    out = fmt::format("rows longer than a sequence: {}, which lose {} tokens", counts.cut_rows,
                      counts.cut_tokens);
  if (counts.empty_rows > 0)
    out += fmt::format("{}rows without a target: {}", out.empty() ? "" : "; ", counts.empty_rows);
  return out;
}

int64_t PackRule::positions(int64_t tokens) const {
  return std::min(std::max<int64_t>(tokens - 1, 0), seq_len);
}

int64_t PackRule::first_token(int64_t tokens) const {
  return keep == Keep::kLeft ? 0 : std::max<int64_t>(tokens - 1 - seq_len, 0);
}

Result<std::shared_ptr<const PackIndex>> PackIndex::open(io::FileSystem& fs, const std::string& folder,
                                                         const TokenStream& stream,
                                                         const std::string& store_hash,
                                                         const PackRule& rule) {
  OSTRO_CHECK(rule.seq_len >= 1, "sequences of {} tokens", rule.seq_len);
  const Json what = identity(stream, store_hash, rule);
  const std::string path =
      io::join_path(folder, fmt::format("{}-{}{}.idx", rule.pack ? "packed" : "single", rule.seq_len,
                                        rule.keep == Keep::kLeft ? "" : "-right"));
  for (bool made = false;; made = true) {
    ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
    if (exists) {
      std::shared_ptr<PackIndex> index(new PackIndex());
      ASSIGN_OR_RETURN(index->file_, fs.open(path));
      ASSIGN_OR_RETURN(const Json header, read_header(*index->file_));
      if (is_of(header, what)) {
        index->rule_ = rule;
        index->counts_ = {header["sequences"], header["cut_rows"], header["cut_tokens"],
                          header["empty_rows"]};
        return std::shared_ptr<const PackIndex>(std::move(index));
      }
    }
    if (made) return corrupt(fmt::format("{}: cannot be read back as it was written", path));
    RETURN_IF_ERROR(fs.make_dirs(folder));
    ASSIGN_OR_RETURN(const auto lock, fs.lock(io::join_path(folder, "build.lock"), "packing"));
    RETURN_IF_ERROR(make(fs, path, stream, what, rule, kPageEntries));
  }
}

Result<int64_t> PackIndex::entry(int64_t number) const {
  const int64_t page = number / kPageEntries, at = number % kPageEntries;
  auto& slot = cache_->pages[static_cast<size_t>(page) % cache_->pages.size()];
  {
    const std::lock_guard lock(cache_->mutex);
    if (slot.second != nullptr && slot.first == page) return (*slot.second)[static_cast<size_t>(at)];
  }
  const int64_t entries = std::min(kPageEntries, counts_.sequences + 1 - page * kPageEntries);
  Page values(static_cast<size_t>(entries));
  uint32_t crc = 0;
  const int64_t offset = page * page_bytes(kPageEntries);
  RETURN_IF_ERROR(file_->read(offset, std::as_writable_bytes(std::span(values))));
  RETURN_IF_ERROR(file_->read(offset + entries * 8, std::as_writable_bytes(std::span(&crc, 1))));
  if (io::crc32c(std::as_bytes(std::span(values))) != crc)
    return corrupt(
        fmt::format("{}: page {} is damaged; delete the file to make it again", file_->path(), page));
  auto held = std::make_shared<const Page>(std::move(values));
  const int64_t value = (*held)[static_cast<size_t>(at)];
  const std::lock_guard lock(cache_->mutex);
  slot = {page, std::move(held)};
  return value;
}

Result<std::pair<int64_t, int64_t>> PackIndex::rows(int64_t sequence) const {
  OSTRO_CHECK(sequence >= 0 && sequence < counts_.sequences, "{}: sequence {} of {}", file_->path(), sequence,
              counts_.sequences);
  ASSIGN_OR_RETURN(const int64_t first, entry(sequence));
  ASSIGN_OR_RETURN(const int64_t end, entry(sequence + 1));
  return std::pair(first, end);
}

}  // namespace ostro::data
