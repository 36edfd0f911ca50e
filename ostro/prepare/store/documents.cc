#include "ostro/prepare/store/documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "ostro/base/sha256.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/formats/formats.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_hash.h"

namespace ostro::prepare {
namespace {

constexpr size_t kUnitBytes = 256 << 10;  // enough work for one hand-over to a thread
constexpr size_t kUnitRows = 1024;

}  // namespace

std::vector<const data::FileVerdicts*> verdicts_by_source(const std::vector<data::SourceFile>& sources,
                                                          const data::RowVerdicts* verdicts) {
  std::vector<const data::FileVerdicts*> out(sources.size(), nullptr);
  if (verdicts == nullptr) return out;
  size_t next = 0;
  for (size_t i = 0; i < sources.size() && next < verdicts->files.size(); ++i)
    if (sources[i].list == data::Split::kTrain) out[i] = &verdicts->files[next++];
  return out;
}

Result<bool> DocumentReader::next(Unit& unit) {
  if (file_ >= static_cast<int64_t>(sources_.size())) return false;
  const data::SourceFile& source = sources_[static_cast<size_t>(file_)];
  unit = Unit{.file = file_, .rows = {}, .row_bytes = 0, .ends_file = false, .file_sha256 = {}};
  const data::FileVerdicts* verdicts = verdicts_[static_cast<size_t>(file_)];
  if (rows_ == nullptr) {
    ASSIGN_OR_RETURN(rows_, data::open_rows(fs_, source.path, source.format, options_, start_));
  }
  unit.stored_begin = rows_->stored_bytes();
  for (size_t bytes = 0; bytes < kUnitBytes && unit.rows.size() < kUnitRows;) {
    data::Row row;
    ASSIGN_OR_RETURN(const bool more, rows_->next(row));
    if (!more) {
      if (verdicts != nullptr)
        RETURN_IF_ERROR(data::check_rows_of_verdicts(*verdicts, source.path, rows_->position().rows));
      unit.ends_file = true;
      unit.file_sha256 = rows_->file_sha256();
      rows_.reset();
      start_ = {};
      ++file_;
      unit.stored_end = source.size;
      return true;
    }
    bytes += row.bytes.size();
    if (verdicts != nullptr && verdicts->drops(row.number))
      ++unit.left_out;
    else
      unit.rows.push_back(std::move(row));
    unit.row_bytes = rows_->position().bytes;
  }
  unit.stored_end = rows_->stored_bytes();
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

// Checks that these weights can be stored as this kind.
Status check_weights(data::WeightKind kind, std::span<const float> weights) {
  if (kind == data::WeightKind::kLossWeights || kind == data::WeightKind::kPairParts) return {};
  const auto is_loss = [](float weight) { return weight == 1.0f; };
  const auto loss = std::find_if(weights.begin(), weights.end(), is_loss);
  const bool fits =
      kind == data::WeightKind::kSourcesLen
          ? std::all_of(weights.begin(), loss, [](float w) { return w == 0.0f; }) &&
                std::all_of(loss, weights.end(), is_loss)
          : std::all_of(weights.begin(), weights.end(), [](float w) { return w == 0.0f || w == 1.0f; });
  if (fits) return {};
  return unsupported("has loss weights that the store of its format cannot hold");
}

// A long row is alone in its unit, and its ids are moved, not copied.
template <typename T>
void append_row(std::vector<T> row, std::vector<T>& out) {
  if (out.empty())
    out = std::move(row);
  else
    out.insert(out.end(), row.begin(), row.end());
}

// Encodes a plain text.
Result<data::FormattedRow> format_text(const EncodeContext& context, tokenizer::Encoder& encoder,
                                       data::LineParser& parser, data::Row& row) {
  data::FormattedRow out{.skip = data::RowSkip::kEmpty};
  ASSIGN_OR_RETURN(out.content, data::text_of_row(std::move(row), parser, context.text_key,
                                                  context.text_key_option, out.repaired));
  if (out.content.empty()) return out;
  out.skip = data::RowSkip::kNone;
  // Growing the vector would hold the ids of a long text twice.
  if (out.content.size() > kUnitBytes) out.ids.reserve(out.content.size() / 2);
  encoder.encode(out.content, {.add_special_tokens = false, .parse_special_tokens = true}, out.ids);
  data::put_ends(context.ends, context.preprocessing.eos_id, out);
  return out;
}

// Adds a row to the unit. Errors are about the row.
Status encode_row(const EncodeContext& context, const data::SourceFile& source, tokenizer::Encoder& encoder,
                  data::LineParser& parser, data::Row row, EncodedUnit& out) {
  const data::Preprocessing& how = context.preprocessing;
  if (!row.problem.empty()) return unsupported(row.problem);
  if (row.is_blank()) return {};
  ASSIGN_OR_RETURN(data::FormattedRow formatted, context.formatter != nullptr
                                                     ? context.formatter->format(row, encoder)
                                                     : format_text(context, encoder, parser, row));
  if (formatted.skip != data::RowSkip::kNone) {
    ++(formatted.skip == data::RowSkip::kNoLoss ? out.no_loss : out.empty);
    return {};
  }
  out.repaired += formatted.repaired ? 1 : 0;
  const bool held_out =
      source.list == data::Split::kValidation || is_held_out(formatted.content, how.validation_fraction);
  EncodedUnit::Document document{.number = row.number,
                                 .split = held_out ? data::Split::kValidation : data::Split::kTrain,
                                 .bytes = static_cast<int64_t>(formatted.content.size()),
                                 .tokens = static_cast<int64_t>(formatted.ids.size()),
                                 .begin = row.begin,
                                 .end = row.end};
  if (how.row_arrays() == data::RowArrays::kAll)
    document.hash = data::hash_row(formatted.ids, formatted.weights);
  if (how.fields.weights != data::WeightKind::kNone) {
    if (formatted.weights.empty()) formatted.weights.assign(formatted.ids.size(), 1.0f);
    RETURN_IF_ERROR(check_weights(how.fields.weights, formatted.weights));
    append_row(std::move(formatted.weights), out.weights);
  }
  out.documents.push_back(document);
  append_row(std::move(formatted.ids), out.tokens);
  return {};
}

}  // namespace

Result<EncodedUnit> encode_unit(const EncodeContext& context, tokenizer::Encoder& encoder,
                                data::LineParser& parser, Unit unit) {
  const data::SourceFile& source = context.sources[static_cast<size_t>(unit.file)];
  EncodedUnit out;
  out.file = unit.file;
  out.documents_read = static_cast<int64_t>(unit.rows.size()) + unit.left_out;
  out.row_bytes = unit.row_bytes;
  out.stored_begin = unit.stored_begin;
  out.stored_end = unit.stored_end;
  out.ends_file = unit.ends_file;
  for (data::Row& row : unit.rows) {
    const int64_t number = row.number;
    const Status added = encode_row(context, source, encoder, parser, std::move(row), out);
    if (added.ok()) continue;
    const Error error = added.error().with_context(data::row_place(source.path, source.format, number));
    if (!context.skip_bad_rows) return error;
    if (out.skipped++ == 0) out.first_skipped = error.message();
  }
  if (unit.ends_file) {
    out.file_sha256 = std::move(unit.file_sha256);
    if (out.file_sha256.empty()) {
      ASSIGN_OR_RETURN(out.file_sha256, io::file_sha256(context.fs, source.path));
    }
    ASSIGN_OR_RETURN(const io::FileInfo info, context.fs.stat(source.path));
    if (info.size != source.size || info.mtime_ns != source.mtime_ns)
      return corrupt(
          fmt::format("{}: changed while it was read; start again when it is complete", source.path));
  }
  return out;
}

}  // namespace ostro::prepare
