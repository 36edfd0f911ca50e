#include "ostro/corpus_check/verdicts/text_rows.h"

#include <algorithm>
#include <map>

#include "ostro/data/sources/line_parser.h"
#include "ostro/data/sources/row_reader.h"

namespace ostro::corpus_check {
namespace {

constexpr size_t kTextBatchBytes = 8 << 20, kTextBatchRows = 4096;

}  // namespace

Result<data::RowVerdicts> each_text(io::FileSystem& fs, const TextRows& rows,
                                    const std::function<Status(std::vector<TextRow>&)>& take) {
  data::RowVerdicts out;
  if (rows.before != nullptr) {
    std::vector<std::pair<std::string, std::string>> files;
    for (size_t i = 0; i < rows.files.size(); ++i) files.emplace_back(rows.names[i], rows.sha256[i]);
    RETURN_IF_ERROR(
        data::check_files_of_verdicts(*rows.before, "the verdicts of the step before", "from", files));
    out = *rows.before;
  }
  out.files.resize(rows.files.size());
  data::LineParser parser;
  std::vector<TextRow> batch;
  size_t bytes = 0;
  const auto give = [&]() -> Status {
    if (!batch.empty()) RETURN_IF_ERROR(take(batch));
    batch.clear();
    bytes = 0;
    return {};
  };
  for (size_t i = 0; i < rows.files.size(); ++i) {
    const data::SourceFile& file = rows.files[i];
    ASSIGN_OR_RETURN(const auto reader,
                     data::open_rows(fs, file.path, file.format, {.fields = {{rows.text_key}}}));
    while (true) {
      data::Row row;
      ASSIGN_OR_RETURN(const bool more, reader->next(row));
      if (!more) break;
      const int64_t number = row.number;
      if (row.is_blank() || out.files[i].drops(number)) continue;
      bool repaired = false;
      auto text = data::text_of_row(std::move(row), parser, rows.text_key, "text_key", repaired);
      if (!text.ok()) return text.error().with_context(data::row_place(rows.names[i], file.format, number));
      if (text->empty()) continue;
      bytes += text->size();
      batch.push_back({i, number, std::move(*text)});
      if (bytes >= kTextBatchBytes || batch.size() >= kTextBatchRows) RETURN_IF_ERROR(give());
    }
    const int64_t last = reader->position().rows;
    if (rows.before != nullptr)
      RETURN_IF_ERROR(data::check_rows_of_verdicts(out.files[i], rows.names[i], last));
    out.files[i].file = rows.names[i];
    out.files[i].sha256 = rows.sha256[i];
    out.files[i].rows = last;
  }
  RETURN_IF_ERROR(give());
  return out;
}

void add_verdicts(data::FileVerdicts& file, std::vector<data::RowVerdict> more) {
  std::map<int64_t, data::RowVerdict> said;
  for (data::RowVerdict& v : file.said) said[v.row] = std::move(v);
  for (data::RowVerdict& v : more) said[v.row] = std::move(v);
  file.said.clear();
  for (auto& [row, v] : said) file.said.push_back(std::move(v));
}

}  // namespace ostro::corpus_check
