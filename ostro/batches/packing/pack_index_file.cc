#include "ostro/batches/packing/pack_index_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::batches {
namespace {

using Json = nlohmann::json;

// Format 2 says that rows that are cut were looked at for targets. An index without such rows has format 1.
constexpr const char *kPackFormat1 = "ostro pack index 1", *kPackFormat2 = "ostro pack index 2";

const char* format_of(const PackCounts& counts) {
  return counts.cut_rows + counts.lost_rows > 0 ? kPackFormat2 : kPackFormat1;
}

constexpr int64_t kTrailerBytes = 12;  // length of the header (u64) and its CRC-32C
constexpr int64_t kMaxHeaderBytes = 65536;

// Collects entries and writes full pages.
class PageWriter {
 public:
  explicit PageWriter(io::WritableFile& file) : file_(file) {}
  Status add(int64_t value) {
    values_.push_back(value);
    return values_.size() == kPackPageEntries ? flush() : Status();
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
  std::vector<int64_t> values_;
};

Json to_json(const PackHeader& header) {
  Json json = {{"format", header.format},
               {"store", header.store},
               {"rows", header.rows},
               {"seq_len", header.rule.seq_len},
               {"keep", header.rule.keep == Keep::kLeft ? "left" : "right"},
               {"pack", header.rule.pack},
               {"sequences", header.counts.sequences},
               {"cut_rows", header.counts.cut_rows},
               {"cut_tokens", header.counts.cut_tokens},
               {"empty_rows", header.counts.empty_rows}};
  if (header.counts.lost_rows > 0) {
    json["lost_rows"] = header.counts.lost_rows;
    json["lost_tokens"] = header.counts.lost_tokens;
  }
  return json;
}

// Missing fields, as in a header of another format, keep their defaults.
PackHeader header_of(const Json& json) {
  PackHeader header;
  const auto number = [&json](const char* key, int64_t& out) {
    if (json.contains(key) && json[key].is_number_integer()) out = json[key];
  };
  const auto text = [&json](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  header.format = text("format");
  header.store = text("store");
  number("rows", header.rows);
  number("seq_len", header.rule.seq_len);
  header.rule.keep = text("keep") == "right" ? Keep::kRight : Keep::kLeft;
  header.rule.pack = json.value("pack", Json(true)) != Json(false);
  number("sequences", header.counts.sequences);
  number("cut_rows", header.counts.cut_rows);
  number("cut_tokens", header.counts.cut_tokens);
  number("empty_rows", header.counts.empty_rows);
  number("lost_rows", header.counts.lost_rows);
  number("lost_tokens", header.counts.lost_tokens);
  return header;
}

}  // namespace

bool PackHeader::is_of(const data::TokenStream& stream, const std::string& store_hash,
                       const PackRule& wanted) const {
  return !is_stale(store_hash) && rows == stream.rows() && rule == wanted;
}

bool PackHeader::is_stale(const std::string& store_hash) const {
  return format != format_of(counts) || store != store_hash;
}

std::string pack_folder(const std::string& cache_dir, data::Split split) {
  return io::join_path(cache_dir, fmt::format("packs/{}", data::split_name(split)));
}

std::string pack_index_name(const PackRule& rule) {
  return fmt::format("{}-{}{}.idx", rule.pack ? "packed" : "single", rule.seq_len,
                     rule.keep == Keep::kLeft ? "" : "-right");
}

std::optional<PackRule> rule_of_pack_index(const std::string& name) {
  PackRule rule;
  rule.pack = name.starts_with("packed-");
  rule.keep = name.ends_with("-right.idx") ? Keep::kRight : Keep::kLeft;
  const size_t digits = std::min(name.find('-'), name.size() - 1) + 1;
  std::from_chars(name.data() + digits, name.data() + name.size(), rule.seq_len);
  if (rule.seq_len < 1 || pack_index_name(rule) != name) return std::nullopt;
  return rule;
}

Status write_pack_index(io::WritableFile& file, const data::TokenStream& stream,
                        const std::string& store_hash, const PackRule& rule) {
  PageWriter pages(file);
  PackHeader header{"", store_hash, stream.rows(), rule, {}};
  ASSIGN_OR_RETURN(header.counts,
                   for_each_sequence(stream, rule, [&](int64_t row) { return pages.add(row); }));
  header.format = format_of(header.counts);
  RETURN_IF_ERROR(pages.add(stream.rows()));
  RETURN_IF_ERROR(pages.flush());
  const std::string text = to_json(header).dump();
  const auto length = static_cast<uint64_t>(text.size());
  const uint32_t crc = io::crc32c(std::as_bytes(std::span(text)));
  RETURN_IF_ERROR(file.append(text));
  RETURN_IF_ERROR(file.append(std::as_bytes(std::span(&length, 1))));
  return file.append(std::as_bytes(std::span(&crc, 1)));
}

Result<std::optional<PackHeader>> read_pack_header(const io::RandomAccessFile& file) {
  using Header = std::optional<PackHeader>;
  uint64_t length = 0;
  uint32_t crc = 0;
  if (file.size() < kTrailerBytes) return Header();
  RETURN_IF_ERROR(file.read(file.size() - kTrailerBytes, std::as_writable_bytes(std::span(&length, 1))));
  RETURN_IF_ERROR(file.read(file.size() - 4, std::as_writable_bytes(std::span(&crc, 1))));
  if (length > static_cast<uint64_t>(std::min(file.size() - kTrailerBytes, kMaxHeaderBytes))) return Header();
  std::string text(length, '\0');
  RETURN_IF_ERROR(file.read(file.size() - kTrailerBytes - static_cast<int64_t>(length),
                            std::as_writable_bytes(std::span(text))));
  if (io::crc32c(std::as_bytes(std::span(text))) != crc) return Header();
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? Header(header_of(json)) : Header();
}

}  // namespace ostro::batches
