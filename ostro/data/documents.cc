#include "ostro/data/documents.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::data {
namespace {

constexpr int64_t kMaxDocumentBytes = int64_t{1} << 30;
constexpr size_t kUnitBytes = 256 << 10;  // enough work to be worth handing to a thread
constexpr size_t kUnitDocuments = 1024;

// Bytes as UTF-8; says whether anything had to be replaced.
std::string as_utf8(std::string bytes, bool& repaired) {
  repaired = !tokenizer::is_valid_utf8(bytes);
  return repaired ? tokenizer::repair_utf8(bytes) : std::move(bytes);
}

}  // namespace

DocumentReader::DocumentReader(io::FileSystem& fs, const std::vector<SourceFile>& sources, int64_t file,
                               int64_t documents)
    : fs_(fs), sources_(sources), file_(file), skip_(documents) {}

Result<bool> DocumentReader::next(Unit& unit) {
  if (file_ >= static_cast<int64_t>(sources_.size())) return false;
  const bool is_text = sources_[static_cast<size_t>(file_)].format == FileFormat::kText;
  unit = Unit{.file = file_, .documents = {}, .ends_file = false};
  RETURN_IF_ERROR(is_text ? read_text(unit) : read_lines(unit));
  if (unit.ends_file) {
    ++file_;
    skip_ = 0;
    lines_.reset();
  }
  return true;
}

Status DocumentReader::read_text(Unit& unit) {
  const SourceFile& source = sources_[static_cast<size_t>(file_)];
  unit.ends_file = true;
  if (skip_ > 0) return {};
  if (source.size > kMaxDocumentBytes)
    return unsupported(
        fmt::format("{}: a document of {} bytes, at most {} are supported; split the file, or write .jsonl",
                    source.path, source.size, kMaxDocumentBytes));
  ASSIGN_OR_RETURN(std::string text, fs_.read_file(source.path, kMaxDocumentBytes));
  unit.documents.push_back({1, std::move(text)});
  return {};
}

Status DocumentReader::read_lines(Unit& unit) {
  const SourceFile& source = sources_[static_cast<size_t>(file_)];
  std::string_view line;
  if (!lines_) {
    ASSIGN_OR_RETURN(io::LineReader opened, io::LineReader::open(fs_, source.path, kMaxDocumentBytes));
    lines_ = std::move(opened);
    for (; skip_ > 0; --skip_) {
      ASSIGN_OR_RETURN(const bool more, lines_->next(line));
      if (!more) return corrupt(fmt::format("{}: shorter than when this build began", source.path));
    }
  }
  for (size_t bytes = 0; bytes < kUnitBytes && unit.documents.size() < kUnitDocuments;) {
    ASSIGN_OR_RETURN(const bool more, lines_->next(line));
    if (!more) {
      unit.ends_file = true;
      break;
    }
    bytes += line.size();
    unit.documents.push_back({lines_->line_number(), std::string(line)});
  }
  return {};
}

Result<std::optional<std::string>> text_of_line(std::string_view line, std::string_view text_key,
                                                const std::string& where) {
  if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::optional<std::string>();
  try {
    nlohmann::json object = nlohmann::json::parse(line);
    if (!object.is_object()) return invalid_argument(fmt::format("{}: not a JSON object", where));
    const auto found = object.find(text_key);
    if (found == object.end())
      return invalid_argument(fmt::format(
          "{}: has no field \"{}\"; set data.text_key to the field that holds the text", where, text_key));
    if (!found->is_string())
      return invalid_argument(fmt::format("{}: field \"{}\" is not a string", where, text_key));
    return std::optional<std::string>(std::move(found->get_ref<std::string&>()));
  } catch (const nlohmann::json::parse_error& e) {
    return invalid_argument(fmt::format("{}: not valid JSON (near byte {} of the line)", where, e.byte));
  }
}

bool is_held_out(std::string_view text, double fraction) {
  if (fraction <= 0) return false;
  const Sha256Digest digest = sha256(text);
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | digest[i];
  return value < static_cast<uint64_t>(std::ldexp(fraction, 64));  // exact: fraction < 1
}

Result<EncodedUnit> encode_unit(const EncodeContext& context, tokenizer::Encoder& encoder, Unit unit) {
  const SourceFile& source = context.sources[static_cast<size_t>(unit.file)];
  const Preprocessing& how = context.preprocessing;
  EncodedUnit out;
  out.file = unit.file;
  out.documents_read = static_cast<int64_t>(unit.documents.size());
  out.ends_file = unit.ends_file;
  std::vector<uint32_t> ids;
  for (RawDocument& document : unit.documents) {
    bool repaired = false;
    std::string text = as_utf8(std::move(document.bytes), repaired);
    if (source.format == FileFormat::kJsonl) {
      const std::string where = fmt::format("{}:{}", source.path, document.number);
      ASSIGN_OR_RETURN(std::optional<std::string> field, text_of_line(text, how.text_key, where));
      if (!field) continue;
      text = std::move(*field);
    }
    if (text.empty()) {
      ++out.empty;
      continue;
    }
    out.repaired += repaired ? 1 : 0;
    ids.clear();
    encoder.encode(text, {.add_special_tokens = false, .parse_special_tokens = true}, ids);
    if (how.eos_id >= 0) ids.push_back(static_cast<uint32_t>(how.eos_id));
    const bool held_out = source.list == Split::kValidation || is_held_out(text, how.validation_fraction);
    out.documents.push_back({document.number, held_out ? Split::kValidation : Split::kTrain,
                             static_cast<int64_t>(text.size()), static_cast<int64_t>(ids.size())});
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
  }
  if (unit.ends_file) {
    ASSIGN_OR_RETURN(out.file_sha256, file_sha256(context.fs, source.path));
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
