#include "ostro/prepare/tokenizer/training_texts.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <utility>

#include "ostro/data/sources/line_parser.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/prepare/store/documents.h"

namespace ostro::prepare {

using config::option_error;

namespace {

class TrainingTexts {
 public:
  TrainingTexts(io::FileSystem& fs, const std::vector<TrainingFiles>& components, bool skip_bad_rows,
                TrainingTextsRead& read)
      : fs_(fs), components_(components), skip_bad_rows_(skip_bad_rows), read_(read) {
    read_.sha256.resize(components.size());
    for (const TrainingFiles& c : components)
      for (const data::SourceFile& file : c.files) read_.bytes_total += file.size;
  }

  Result<bool> next(std::string& document) {
    while (true) {
      while (row_ < unit_.rows.size()) {
        ASSIGN_OR_RETURN(const bool wanted, take(std::move(unit_.rows[row_++]), document));
        if (wanted) return true;
      }
      if (unit_.ends_file) RETURN_IF_ERROR(end_file());
      ASSIGN_OR_RETURN(const bool more, next_unit());
      if (!more) return false;
    }
  }

 private:
  const TrainingFiles& component() const { return components_[at_]; }

  Result<bool> next_unit() {
    row_ = 0;
    unit_ = {};
    for (; at_ < components_.size(); ++at_, reader_.reset()) {
      if (!reader_) {
        row_options_.fields = {{component().text_key}};
        reader_.emplace(fs_, component().files, row_options_, 0, data::RowPosition{});
      }
      ASSIGN_OR_RETURN(const bool more, reader_->next(unit_));
      if (!more) continue;
      read_.bytes_done += unit_.stored_end - unit_.stored_begin;
      return true;
    }
    return false;
  }

  // True if the row is a document to train on.
  Result<bool> take(data::Row row, std::string& document) {
    if (row.is_blank()) return false;
    const data::SourceFile& file = component().files[static_cast<size_t>(unit_.file)];
    const int64_t number = row.number;
    bool repaired = false;
    auto text = data::text_of_row(std::move(row), parser_, component().text_key, component().text_key_option,
                                  repaired);
    if (!text.ok()) {
      if (skip_bad_rows_) return false;
      return text.error().with_context(data::row_place(file.path, file.format, number));
    }
    if (text->empty() || is_held_out(*text, component().held_out_fraction)) return false;
    ++read_.documents;
    read_.text_bytes += static_cast<int64_t>(text->size());
    document = std::move(*text);
    return true;
  }

  Status end_file() {
    const data::SourceFile& file = component().files[static_cast<size_t>(unit_.file)];
    std::string hash = std::move(unit_.file_sha256);
    if (hash.empty()) {
      ASSIGN_OR_RETURN(hash, io::file_sha256(fs_, file.path));
    }
    ASSIGN_OR_RETURN(const io::FileInfo info, fs_.stat(file.path));
    if (info.size != file.size || info.mtime_ns != file.mtime_ns)
      return corrupt(
          fmt::format("{}: changed while the tokenizer was trained on it; start again", file.path));
    read_.sha256[at_].push_back(std::move(hash));
    return {};
  }

  io::FileSystem& fs_;
  const std::vector<TrainingFiles>& components_;
  const bool skip_bad_rows_;
  TrainingTextsRead& read_;
  data::LineParser parser_;
  data::RowOptions row_options_;
  size_t at_ = 0;                         // the component that is read ...
  std::optional<DocumentReader> reader_;  // ... by this one
  Unit unit_;
  size_t row_ = 0;  // of the unit, the next one
};

}  // namespace

Result<std::vector<TrainingFiles>> training_files(io::FileSystem& fs, const data::DataOptions& options) {
  std::vector<TrainingFiles> out;
  for (const data::Component& c : data::components_of(options)) {
    const auto* text = std::get_if<data::TextFormat>(&c.format);
    if (text == nullptr || c.is_in_place())
      return option_error(
          "data.tokenizer",
          fmt::format(
              "is null, and {} has {}: a tokenizer can be trained from texts alone. Train one with ostro "
              "tokenizer train (--special_tokens for those of conversations), and name it",
              c.key, text == nullptr ? "rows that are not texts" : "a store that exists already"));
    if (c.rows)
      return option_error(
          "data.tokenizer",
          fmt::format("is null, and {}.rows leaves out rows: train one first, and name it", c.key));
    ASSIGN_OR_RETURN(const data::FoundSources found,
                     data::find_sources(fs, data::source_places(options, c), data::SourceKeys::of(c.key)));
    ASSIGN_OR_RETURN(std::vector<data::SourceFile> files, found.all());
    std::erase_if(files, [](const data::SourceFile& file) { return file.list != data::Split::kTrain; });
    if (files.empty()) continue;  // for evaluation only
    out.push_back({std::move(files), text->text_key,
                   c.name.empty() ? "data.text_key" : c.key + ".format.text_key",
                   c.validation_urls.empty() ? c.validation_fraction : 0});
  }
  return out;
}

tokenizer::DocumentSource training_texts(io::FileSystem& fs, const std::vector<TrainingFiles>& components,
                                         bool skip_bad_rows, TrainingTextsRead& read) {
  return [texts = std::make_shared<TrainingTexts>(fs, components, skip_bad_rows, read)](
             std::string& document) { return texts->next(document); };
}

}  // namespace ostro::prepare
