#include "ostro/init/survey.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/config/utf8.h"
#include "ostro/data/sources/text_source.h"
#include "ostro/init/folder_globs.h"
#include "ostro/io/files/path.h"
#include "ostro/prepare/tokenizer/training_texts.h"

namespace ostro::init {
namespace {

constexpr size_t kSampleBytes = size_t{1} << 20;
constexpr size_t kSampleFiles = 64;
constexpr int64_t kMostDocument = int64_t{1} << 30;  // as the token store has it

double place_of(const std::string& text) {
  const Sha256Digest digest = sha256(text);
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | digest[i];
  return std::ldexp(static_cast<double>(value), -64);
}

// Keeps some of every document, so that the sample is of all the text and not of its beginning.
void add_sample(const std::string& text, double share, Survey& out) {
  auto bytes = static_cast<size_t>(std::ceil(static_cast<double>(text.size()) * std::min(share, 1.0)));
  while (bytes < text.size() && (text[bytes] & 0xc0) == 0x80) ++bytes;
  if (bytes > 0) out.sample.push_back(text.substr(0, bytes));
}

Status read_whole(io::FileSystem& fs, Survey& out) {
  const std::vector<prepare::TrainingFiles> files = {{out.files, out.text_key, "data.text_key", 0}};
  prepare::TrainingTextsRead read;
  const auto texts = prepare::training_texts(fs, files, /*skip_bad_rows=*/false, read);
  const double share =
      static_cast<double>(kSampleBytes) / static_cast<double>(std::max<int64_t>(1, out.stored_bytes));
  for (std::string document;;) {
    ASSIGN_OR_RETURN(const bool more, texts(document));
    if (!more) break;
    out.sizes.push_back({place_of(document), static_cast<int64_t>(document.size())});
    add_sample(document, share, out);
  }
  out.is_whole = true;
  out.documents = read.documents;
  out.text_bytes = read.text_bytes;
  return {};
}

// The beginning of some files; what is counted there stands for all.
Status read_some(io::FileSystem& fs, Survey& out) {
  const size_t stride = (out.files.size() - 1) / kSampleFiles + 1;
  const size_t chosen = (out.files.size() - 1) / stride + 1;
  const int64_t budget = kReadWhole / static_cast<int64_t>(chosen);
  int64_t row_files_bytes = 0, text_files = 0, text_files_bytes = 0;
  for (const data::SourceFile& file : out.files)
    if (file.format == data::FileFormat::kText) {
      ++text_files;
      text_files_bytes += file.size;
    } else {
      row_files_bytes += file.size;
    }
  double rows = 0, row_bytes = 0, stored = 0;
  for (size_t i = 0; i < out.files.size(); i += stride) {
    const data::SourceFile& file = out.files[i];
    data::TextProgress progress;
    const auto texts = data::texts_of_sources(fs, {file}, out.text_key, "data.text_key", &progress);
    int64_t bytes = 0, count = 0, sampled = 0;
    for (std::string document; bytes < budget;) {
      ASSIGN_OR_RETURN(const bool more, texts(document));
      if (!more) break;
      bytes += static_cast<int64_t>(document.size());
      ++count;
      const auto want = static_cast<int64_t>(kSampleBytes / chosen) - sampled;
      if (want <= 0) continue;
      add_sample(document, static_cast<double>(want) / static_cast<double>(document.size()), out);
      sampled += static_cast<int64_t>(document.size());
    }
    if (file.format == data::FileFormat::kText) continue;
    rows += static_cast<double>(count);
    row_bytes += static_cast<double>(bytes);
    stored += static_cast<double>(std::max<int64_t>(1, progress.bytes_done));
  }
  const double scale = stored > 0 ? static_cast<double>(row_files_bytes) / stored : 0;
  out.documents = text_files + std::llround(rows * scale);
  out.text_bytes = text_files_bytes + std::llround(row_bytes * scale);
  return {};
}

// The field of the rows, the same in all files.
Status choose_text_key(io::FileSystem& fs, Survey& out) {
  for (const data::SourceFile& file : out.files) {
    if (file.format == data::FileFormat::kText) continue;
    auto field = text_field(fs, file);
    if (!field.ok()) return field.error().with_context(file.path);
    out.text_key = std::move(*field);
    return {};
  }
  return {};
}

Error not_utf8(const std::string& path) {
  return invalid_argument(
      fmt::format("{}: {}, and a configuration cannot name it; rename it", path, kNotUtf8));
}

Status add_place(io::FileSystem& fs, const std::string& place, const SurveyPlaces& places, Survey& out) {
  if (!config::is_utf8(place)) return not_utf8(place);
  // First as the name of what is there: that may hold a wildcard, too.
  const auto info = fs.stat(place);
  if (!info.ok()) {
    if (io::has_wildcard(place)) {
      out.urls.push_back(place);
      return {};
    }
    if (info.error().code() == ErrorCode::kNotFound)
      return not_found(fmt::format("{}: there is no such file or folder", place));
    return info.error();
  }
  if (!info->is_directory) {
    out.urls.push_back(io::glob_literal(place));
    return {};
  }
  ASSIGN_OR_RETURN(FolderTexts texts, folder_texts(fs, place, places.outputs));
  out.urls.insert(out.urls.end(), texts.globs.begin(), texts.globs.end());
  out.left_out.insert(out.left_out.end(), texts.left_out.begin(), texts.left_out.end());
  out.left_out_count += texts.left_out_count;
  return {};
}

}  // namespace

bool Survey::has_rows() const {
  return std::any_of(files.begin(), files.end(),
                     [](const auto& file) { return file.format != data::FileFormat::kText; });
}

bool Survey::is_all_text_files() const { return !has_rows(); }

Result<Survey> survey(io::FileSystem& fs, const SurveyPlaces& places) {
  Survey out;
  for (const std::string& place : places.places) RETURN_IF_ERROR(add_place(fs, place, places, out));
  if (out.urls.empty()) {
    std::string names, rest;
    for (const std::string& place : places.places) names += (names.empty() ? "" : ", ") + place;
    for (const std::string& file : out.left_out) rest += (rest.empty() ? "" : "; ") + file;
    return not_found(fmt::format(
        "{}: holds no text; put .txt, .md, .jsonl or .parquet files there{}", names,
        out.left_out_count == 0 ? " (it is empty)"
                                : fmt::format(" ({} files are left out: {})", out.left_out_count, rest)));
  }
  ASSIGN_OR_RETURN(const data::FoundSources found,
                   data::find_sources(fs, {out.urls, {}}, {.train = "ostro init"}));
  ASSIGN_OR_RETURN(out.files, found.all());
  bool has_rows = false;
  for (const data::SourceFile& file : out.files) {
    if (!config::is_utf8(file.path)) return not_utf8(file.path);
    out.stored_bytes += file.size;
    has_rows = has_rows || file.format != data::FileFormat::kText;
    if (file.format == data::FileFormat::kText && file.size > kMostDocument)
      return unsupported(
          fmt::format("{}: {} bytes, and a document may have {}; split it, or write a .jsonl with a "
                      "document a line",
                      file.path, file.size, kMostDocument));
  }
  if (has_rows) RETURN_IF_ERROR(choose_text_key(fs, out));
  RETURN_IF_ERROR(out.stored_bytes <= kReadWhole ? read_whole(fs, out) : read_some(fs, out));
  return out;
}

}  // namespace ostro::init
