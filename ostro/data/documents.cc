#include "ostro/data/documents.h"

#include <fmt/core.h>

#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/data/token_store.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::data {
namespace {

constexpr size_t kUnitBytes = 256 << 10;  // enough work to be worth handing to a thread
constexpr size_t kUnitRows = 1024;

// Bytes as UTF-8; says whether anything had to be replaced.
std::string as_utf8(std::string bytes, bool& repaired) {
  repaired = !tokenizer::is_valid_utf8(bytes);
  return repaired ? tokenizer::repair_utf8(bytes) : std::move(bytes);
}

}  // namespace

Result<bool> DocumentReader::next(Unit& unit) {
  if (file_ >= static_cast<int64_t>(sources_.size())) return false;
  const SourceFile& source = sources_[static_cast<size_t>(file_)];
  unit = Unit{.file = file_, .rows = {}, .row_bytes = 0, .ends_file = false, .file_sha256 = {}};
  if (rows_ == nullptr) {
    ASSIGN_OR_RETURN(rows_, open_rows(fs_, source.path, source.format, options_, start_));
  }
  for (size_t bytes = 0; bytes < kUnitBytes && unit.rows.size() < kUnitRows;) {
    Row row;
    ASSIGN_OR_RETURN(const bool more, rows_->next(row));
    if (!more) {
      unit.ends_file = true;
      unit.file_sha256 = rows_->file_sha256();
      rows_.reset();
      start_ = {};
      ++file_;
      break;
    }
    bytes += row.bytes.size();
    unit.rows.push_back(std::move(row));
    unit.row_bytes = rows_->position().bytes;
  }
  return true;
}

bool is_held_out(std::string_view text, double fraction) {
  if (fraction <= 0) return false;
  const Sha256Digest digest = sha256(text);
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | digest[i];
  return value < static_cast<uint64_t>(std::ldexp(fraction, 64));  // exact: fraction < 1
}

namespace {

// Adds a row to the unit. Errors are the row's.
Status encode_row(const EncodeContext& context, const SourceFile& source, tokenizer::Encoder& encoder,
                  LineParser& parser, Row row, std::vector<uint32_t>& ids, EncodedUnit& out) {
  const Preprocessing& how = context.preprocessing;
  if (!row.problem.empty()) return unsupported(row.problem);
  bool repaired = false;
  std::string text = as_utf8(std::move(row.bytes), repaired);
  if (!row.is_text) {
    ASSIGN_OR_RETURN(std::optional<std::string> field,
                     parser.text(text, context.text_key, context.text_key_option));
    if (!field) return {};
    text = std::move(*field);
  }
  if (text.empty()) {
    ++out.empty;
    return {};
  }
  out.repaired += repaired ? 1 : 0;
  ids.clear();
  encoder.encode(text, {.add_special_tokens = false, .parse_special_tokens = true}, ids);
  if (how.eos_id >= 0) ids.push_back(static_cast<uint32_t>(how.eos_id));
  const bool held_out = source.list == Split::kValidation || is_held_out(text, how.validation_fraction);
  EncodedUnit::Document document{.number = row.number,
                                 .split = held_out ? Split::kValidation : Split::kTrain,
                                 .bytes = static_cast<int64_t>(text.size()),
                                 .tokens = static_cast<int64_t>(ids.size()),
                                 .begin = row.begin,
                                 .end = row.end};
  if (how.row_arrays() == RowArrays::kAll) document.hash = hash_row(ids, {});
  out.documents.push_back(document);
  out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
  return {};
}

}  // namespace

Result<EncodedUnit> encode_unit(const EncodeContext& context, tokenizer::Encoder& encoder, LineParser& parser,
                                Unit unit) {
  const SourceFile& source = context.sources[static_cast<size_t>(unit.file)];
  EncodedUnit out;
  out.file = unit.file;
  out.documents_read = static_cast<int64_t>(unit.rows.size());
  out.row_bytes = unit.row_bytes;
  out.ends_file = unit.ends_file;
  std::vector<uint32_t> ids;
  for (Row& row : unit.rows) {
    const int64_t number = row.number;
    const Status added = encode_row(context, source, encoder, parser, std::move(row), ids, out);
    if (added.ok()) continue;
    const Error error = added.error().with_context(row_place(source.path, source.format, number));
    if (!context.skip_bad_rows) return error;
    if (out.skipped++ == 0) out.first_skipped = error.message();
  }
  if (unit.ends_file) {
    out.file_sha256 = std::move(unit.file_sha256);
    if (out.file_sha256.empty()) {
      ASSIGN_OR_RETURN(out.file_sha256, file_sha256(context.fs, source.path));
    }
    ASSIGN_OR_RETURN(const io::FileInfo info, context.fs.stat(source.path));
    if (info.size != source.size || info.mtime_ns != source.mtime_ns)
      return corrupt(
          fmt::format("{}: changed while it was read; start again when it is complete", source.path));
  }
  return out;
}

Result<std::string> file_sha256(io::FileSystem& fs, const std::string& path) {
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

}  // namespace ostro::data
