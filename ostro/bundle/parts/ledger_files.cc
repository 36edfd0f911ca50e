#include "ostro/bundle/parts/ledger_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ostro/base/merkle.h"
#include "ostro/base/parallel.h"
#include "ostro/base/sha256.h"
#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::bundle {
namespace {

using io::JsonFields;

constexpr int64_t kMostListBytes = int64_t{1} << 28;  // some millions of source files

Result<std::vector<LedgerSource>> parse_sources(std::string_view text, const std::string& path) {
  std::vector<LedgerSource> out;
  while (!text.empty()) {
    const std::string where = fmt::format("{}: line {}", path, out.size() + 1);
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return corrupt(fmt::format("{}: does not end in a line feed", where));
    ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text.substr(0, end), where));
    const JsonFields fields(json, where);
    LedgerSource source;
    ASSIGN_OR_RETURN(source.file, fields.string("file"));
    ASSIGN_OR_RETURN(source.sha256, fields.sha256("sha256"));
    ASSIGN_OR_RETURN(source.first, data::read_pair(fields, "first_row"));
    ASSIGN_OR_RETURN(source.rows, data::read_pair(fields, "rows"));
    out.push_back(std::move(source));
    text.remove_prefix(end + 1);
  }
  return out;
}

// Of a Levanter cache there are no files.
Status parse_content(const std::string& text, const std::string& path, std::vector<ContentFile>& files,
                     std::array<int64_t, 2>& rows) {
  ASSIGN_OR_RETURN(const nlohmann::json json, io::parse_json(text, path));
  const JsonFields fields(json, path);
  ASSIGN_OR_RETURN(const JsonFields splits, fields.object("splits"));
  for (const data::Split split : data::kSplits) {
    ASSIGN_OR_RETURN(const JsonFields one, splits.object(data::split_name(split)));
    ASSIGN_OR_RETURN(rows[static_cast<size_t>(split)], one.integer("rows", 0, INT64_MAX / kRowBytes / 2));
  }
  if (!fields.has("files")) return {};
  ASSIGN_OR_RETURN(const nlohmann::json* list, fields.array("files"));
  for (const nlohmann::json& item : *list) {
    const JsonFields file(item, fmt::format("{}: files[{}]", path, files.size()));
    ContentFile out;
    ASSIGN_OR_RETURN(out.sha256, file.sha256("sha256"));
    ASSIGN_OR_RETURN(out.rows, data::read_pair(file, "rows"));
    ASSIGN_OR_RETURN(out.tokens, data::read_pair(file, "tokens"));
    files.push_back(out);
  }
  return {};
}

struct ReadRow {
  Sha256Digest hash;
  int64_t tokens;
};

Result<std::vector<ReadRow>> read_rows(const io::RandomAccessFile& file, int64_t first, int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count * kRowBytes));
  RETURN_IF_ERROR(file.read(first * kRowBytes, bytes));
  std::vector<ReadRow> rows(static_cast<size_t>(count));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::byte* from = bytes.data() + i * kRowBytes;
    std::memcpy(rows[i].hash.data(), from, rows[i].hash.size());
    std::memcpy(&rows[i].tokens, from + rows[i].hash.size(), sizeof(int64_t));
  }
  return rows;
}

}  // namespace

Result<LedgerFiles> LedgerFiles::open(io::FileSystem& fs, const std::string& folder,
                                      const std::string& name) {
  const std::string path = io::join_path(folder, name);
  LedgerFiles out;
  ASSIGN_OR_RETURN(const std::string sources, fs.read_file(path + ".sources", kMostListBytes));
  ASSIGN_OR_RETURN(out.sources_, parse_sources(sources, path + ".sources"));
  ASSIGN_OR_RETURN(const std::string content, fs.read_file(path + ".content.json", kMostListBytes));
  RETURN_IF_ERROR(parse_content(content, path + ".content.json", out.files_, out.rows_));
  out.hash_ = sha256_hex(content);
  ASSIGN_OR_RETURN(out.file_, fs.open(path + ".rows"));
  if (out.file_->size() % kRowBytes != 0)
    return corrupt(
        fmt::format("{}.rows: {} bytes are no whole rows of {}", path, out.file_->size(), kRowBytes));
  return out;
}

Result<std::string> LedgerFiles::root(int threads) const {
  data::RowTree tree;
  tree.rows = rows_;
  int64_t before = 0;
  for (size_t s = 0; s < 2; ++s) {
    constexpr int64_t kBlock = data::RowTree::kBlockRows;
    auto& blocks = tree.blocks[s];
    blocks.resize(static_cast<size_t>((rows_[s] + kBlock - 1) / kBlock));
    RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(blocks.size()), threads, [&](int64_t b) -> Status {
      ASSIGN_OR_RETURN(const auto rows,
                       read_rows(*file_, before + b * kBlock, std::min(kBlock, rows_[s] - b * kBlock)));
      std::vector<Sha256Digest> leaves;
      for (const ReadRow& row : rows) leaves.push_back(data::row_leaf(row.hash, row.tokens));
      blocks[static_cast<size_t>(b)] = merkle_root(leaves);
      return {};
    }));
    before += rows_[s];
  }
  return data::store_root(tree);
}

Result<int64_t> LedgerFiles::tokens(int64_t first, int64_t count) const {
  constexpr int64_t kAtOnce = 1 << 14;
  int64_t sum = 0;
  for (int64_t at = 0; at < count; at += kAtOnce) {
    ASSIGN_OR_RETURN(const auto rows, read_rows(*file_, first + at, std::min(kAtOnce, count - at)));
    for (const ReadRow& row : rows) sum += row.tokens;
  }
  return sum;
}

}  // namespace ostro::bundle
