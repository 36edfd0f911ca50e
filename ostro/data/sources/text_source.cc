#include "ostro/data/sources/text_source.h"

#include <memory>
#include <utility>

#include "ostro/data/sources/line_parser.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::data {
namespace {

class TextsOfSources {
 public:
  TextsOfSources(io::FileSystem& fs, std::vector<SourceFile> sources, std::string text_key,
                 std::string option, TextProgress* progress, std::shared_ptr<const RowVerdicts> verdicts)
      : fs_(fs),
        sources_(std::move(sources)),
        text_key_(std::move(text_key)),
        option_(std::move(option)),
        progress_(progress),
        verdicts_(std::move(verdicts)) {
    row_options_.fields = {{text_key_}};
    for (const SourceFile& source : sources_) report(0, source.size);
  }

  Result<bool> next(std::string& document) {
    for (;; close()) {
      if (!parts_ && rows_ == nullptr) {
        if (next_ == sources_.size()) return false;
        RETURN_IF_ERROR(open());
      }
      ASSIGN_OR_RETURN(const bool more, parts_ ? next_part(document) : next_row(document));
      const int64_t at = !more ? source_->size : parts_ ? offset_ : rows_->stored_bytes();
      report(at - in_file_, 0);
      in_file_ = more ? at : 0;
      if (more) return true;
    }
  }

 private:
  Status open() {
    source_ = &sources_[next_++];
    said_ = verdicts_ != nullptr && next_ <= verdicts_->files.size() ? &verdicts_->files[next_ - 1] : nullptr;
    if (source_->format == FileFormat::kText) {
      parts_ = said_ != nullptr && said_->drops(1) ? tokenizer::documents_of_files(fs_, {})
                                                   : tokenizer::documents_of_files(fs_, {source_->path});
      offset_ = 0;
      return {};
    }
    ASSIGN_OR_RETURN(rows_, open_rows(fs_, source_->path, source_->format, row_options_));
    return {};
  }

  void report(int64_t done, int64_t total) {
    if (progress_ == nullptr) return;
    progress_->bytes_done += done;
    progress_->bytes_total += total;
  }

  void close() {
    parts_ = nullptr;
    rows_.reset();
  }

  Result<bool> next_part(std::string& document) {
    ASSIGN_OR_RETURN(const bool more, parts_(document));
    if (!more) return false;
    if (const size_t nul = document.find('\0'); nul != std::string::npos)
      return unsupported(not_a_text(offset_ + static_cast<int64_t>(nul))).with_context(source_->path);
    offset_ += static_cast<int64_t>(document.size());
    return true;
  }

  Result<bool> next_row(std::string& document) {
    while (true) {
      Row row;
      ASSIGN_OR_RETURN(const bool more, rows_->next(row));
      if (!more) return false;
      if (row.is_blank() || (said_ != nullptr && said_->drops(row.number))) continue;
      const int64_t number = row.number;
      auto text = text_of_row(std::move(row), parser_, text_key_, option_, repaired_);
      if (!text.ok()) return text.error().with_context(row_place(source_->path, source_->format, number));
      if (text->empty()) continue;
      document = std::move(*text);
      return true;
    }
  }

  io::FileSystem& fs_;
  std::vector<SourceFile> sources_;
  std::string text_key_, option_;
  RowOptions row_options_;
  LineParser parser_;
  size_t next_ = 0;
  const SourceFile* source_ = nullptr;  // the open file, read through one of the next two
  tokenizer::DocumentSource parts_;
  std::unique_ptr<RowReader> rows_;
  int64_t offset_ = 0;   // bytes of the text so far
  int64_t in_file_ = 0;  // of it that are reported
  TextProgress* progress_;
  std::shared_ptr<const RowVerdicts> verdicts_;
  const FileVerdicts* said_ = nullptr;  // of the open file
  bool repaired_ = false;
};

}  // namespace

tokenizer::DocumentSource texts_of_sources(io::FileSystem& fs, std::vector<SourceFile> sources,
                                           std::string text_key, std::string option, TextProgress* progress,
                                           std::shared_ptr<const RowVerdicts> verdicts) {
  return [texts = std::make_shared<TextsOfSources>(fs, std::move(sources), std::move(text_key),
                                                   std::move(option), progress, std::move(verdicts))](
             std::string& document) { return texts->next(document); };
}

}  // namespace ostro::data
