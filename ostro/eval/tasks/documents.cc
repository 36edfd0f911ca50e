#include "ostro/eval/tasks/documents.h"

#include <fmt/format.h>

#include "ostro/data/sources/row_reader.h"
#include "ostro/data/sources/row_values.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/data/sources/text_source.h"

namespace ostro::eval {
namespace {

Result<std::vector<data::SourceFile>> find_files(io::FileSystem& fs, const std::vector<std::string>& files,
                                                 const std::string& key) {
  data::SourcePlaces places;
  places.validation = files;
  ASSIGN_OR_RETURN(const data::FoundSources found, data::find_sources(fs, places, {key, key}));
  return found.all();
}

bool is_full(size_t count, const std::optional<int64_t>& limit) {
  return limit && static_cast<int64_t>(count) >= *limit;
}

}  // namespace

Result<std::vector<Document>> read_documents(io::FileSystem& fs, const std::vector<std::string>& files,
                                             std::optional<int64_t> limit, const std::string& key) {
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> sources, find_files(fs, files, key));
  std::vector<Document> out;
  for (const data::SourceFile& source : sources) {
    if (source.format != data::FileFormat::kJsonl)
      return invalid_argument(fmt::format("{}: {} is a {} file; documents of tasks are rows of .jsonl files",
                                          key, source.path, data::file_format_name(source.format)));
    ASSIGN_OR_RETURN(const auto rows, data::open_rows(fs, source.path, source.format, {}));
    data::Row row;
    while (!is_full(out.size(), limit)) {
      ASSIGN_OR_RETURN(const bool more, rows->next(row));
      if (!more) break;
      if (row.is_blank()) continue;
      const std::string place = data::row_place(source.path, source.format, row.number);
      if (!row.problem.empty()) return invalid_argument(fmt::format("{}: {}", place, row.problem));
      bool repaired = false;
      auto fields = data::row_object(row, "of tasks", {}, repaired);
      if (!fields.ok()) return fields.error().with_context(place);
      if (repaired) return invalid_argument(fmt::format("{}: is not valid UTF-8", place));
      out.push_back({place, std::move(*fields)});
    }
  }
  if (out.empty())
    return invalid_argument(fmt::format("{}: there is no document in {}", key, fmt::join(files, ", ")));
  return out;
}

Result<std::vector<std::string>> read_texts(io::FileSystem& fs, const std::vector<std::string>& files,
                                            const std::string& text_key, std::optional<int64_t> limit,
                                            const std::string& key) {
  ASSIGN_OR_RETURN(const std::vector<data::SourceFile> sources, find_files(fs, files, key + ".files"));
  const auto next = data::texts_of_sources(fs, sources, text_key, key + ".text_key");
  std::vector<std::string> out;
  std::string text;
  while (!is_full(out.size(), limit)) {
    ASSIGN_OR_RETURN(const bool more, next(text));
    if (!more) break;
    if (!text.empty()) out.push_back(std::move(text));
  }
  if (out.empty())
    return invalid_argument(fmt::format("{}.files: there is no text in {}", key, fmt::join(files, ", ")));
  return out;
}

}  // namespace ostro::eval
