#include "ostro/batches/loader/row_places.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ostro/data/sources/parquet_rows.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"

namespace ostro::batches {
namespace {

// A row to look for, and what is known about its place.
struct WantedRow {
  const data::RowSource* source = nullptr;
  RowPlace* place = nullptr;
};

// Takes from a row the page that it was made from, if it says so.
void note_page(const std::string& json, RowPlace& place) {
  if (json.find("\"page_sha256\"") == std::string::npos) return;
  const auto row = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object()) return;
  const auto page = row.find("page"), sum = row.find("page_sha256"), bytes = row.find("bytes");
  const auto is_place = [](const nlohmann::json& number) {
    return number.is_number_unsigned() && number.get<uint64_t>() <= uint64_t{INT64_MAX};
  };
  const bool fits = page != row.end() && page->is_string() && sum != row.end() && sum->is_string() &&
                    bytes != row.end() && bytes->is_array() && bytes->size() == 2 && is_place((*bytes)[0]) &&
                    is_place((*bytes)[1]) && (*bytes)[0] <= (*bytes)[1];
  if (!fits) return;
  place.page = page->get<std::string>();
  place.page_sha256 = sum->get<std::string>();
  place.page_begin = (*bytes)[0].get<int64_t>();
  place.page_end = (*bytes)[1].get<int64_t>();
}

// Finds the byte ranges of some lines. `rows` are sorted by number; a number may occur several times.
Status find_lines(io::FileSystem& fs, const data::FileLedger& file, const std::vector<WantedRow>& rows) {
  ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs, file.source.path, file.source.format, {}));
  data::Row row;
  for (auto wanted = rows.begin(); wanted != rows.end();) {
    ASSIGN_OR_RETURN(const bool more, reader->next(row));
    if (!more)
      return corrupt(fmt::format("{}: ends at line {}, and the store has line {} of it", file.source.path,
                                 row.number, wanted->source->document));
    for (; wanted != rows.end() && wanted->source->document == row.number; ++wanted) {
      wanted->place->begin = row.begin, wanted->place->end = row.end;
      note_page(row.bytes, *wanted->place);
    }
  }
  return {};
}

// The page of a row whose bytes the store knows. Nothing where it cannot be read.
void find_page(io::FileSystem& fs, const data::RowSource& row, SourceCheck& files, RowPlace& place) {
  constexpr int64_t kMost = int64_t{64} << 20;
  if (!io::has_extension(row.file, ".jsonl") || place.begin < 0 || place.end - place.begin > kMost) return;
  const auto file = fs.open(row.file);
  std::string bytes(static_cast<size_t>(place.end - place.begin), '\0');
  if (!file.ok() || !(*file)->read(place.begin, std::as_writable_bytes(std::span(bytes))).ok()) return;
  RowPlace found = place;
  note_page(bytes, found);
  // A file with another time is hashed whole, so it is compared only where a row names a page.
  if (!found.page.empty() && files.difference(*row.ledger).empty()) place = std::move(found);
}

Status find_groups(io::FileSystem& fs, const data::FileLedger& file, const std::vector<WantedRow>& rows) {
  const auto groups = data::parquet_row_groups(fs, file.source.path);
  if (!groups.ok()) return groups.error();
  int64_t first = 0;  // row of the group
  auto group = groups->begin();
  for (const WantedRow& row : rows) {
    const int64_t number = row.source->document - 1;
    while (group != groups->end() && number >= first + *group) first += *group++;
    if (group == groups->end())
      return corrupt(fmt::format("{}: has {} rows, and the store has row {} of it", file.source.path, first,
                                 number + 1));
    row.place->row_group = group - groups->begin();
    row.place->row_in_group = number - first;
  }
  return {};
}

}  // namespace

std::string SourceCheck::difference(const data::FileLedger& was) {
  const std::string& path = was.source.path;
  const auto info = fs_.stat(path);
  if (!info.ok() && info.error().code() == ErrorCode::kNotFound)
    return fmt::format("{} is not there any more", path);
  if (!info.ok()) return info.error().message();
  if (info->size == was.source.size) {
    if (info->mtime_ns == was.source.mtime_ns) return "";
    if (info->size > max_hashed_)
      return fmt::format(
          "{} has another time than when the store was built, and {} bytes are not hashed for "
          "one row; `ostro data batch --explain` does",
          path, info->size);
    auto hash = hashes_.find(path);
    if (hash == hashes_.end()) hash = hashes_.emplace(path, io::file_sha256(fs_, path)).first;
    if (!hash->second.ok()) return hash->second.error().message();
    if (*hash->second == was.sha256) return "";
  }
  return fmt::format("{} changed since the store was built", path);
}

RowPlace stored_place(const data::RowSource& row) {
  RowPlace place{.begin = row.begin, .end = row.end};
  if (row.ledger == nullptr)
    place.unknown = "a Levanter cache holds ids, not the texts that they were made from";
  return place;
}

std::vector<RowPlace> find_rows(io::FileSystem& fs, std::span<const data::RowSource> rows,
                                const std::vector<data::RowField>& fields, SourceCheck& files) {
  std::vector<RowPlace> places(rows.size());
  std::map<const data::FileLedger*, std::vector<WantedRow>> wanted;  // rows to look for, by file
  for (size_t i = 0; i < rows.size(); ++i) {
    const data::RowSource& row = rows[i];
    RowPlace& place = places[i] = stored_place(row);
    if (row.ledger != nullptr && place.has_bytes()) find_page(fs, row, files, place);
    if (row.ledger == nullptr || place.has_bytes()) continue;
    if (row.ledger->source.format == data::FileFormat::kParquet) {
      for (const data::RowField& field : fields) place.columns.push_back(field.name);
      if (fields.size() == 1 && fields[0].type == data::RowField::Type::kText) place.cell_bytes = row.bytes;
    }
    wanted[row.ledger].push_back({&row, &place});
  }
  for (auto& [file, list] : wanted) {
    std::stable_sort(list.begin(), list.end(), [](const WantedRow& a, const WantedRow& b) {
      return a.source->document < b.source->document;
    });
    std::string why = files.difference(*file);
    if (why.empty()) {
      const bool parquet = file->source.format == data::FileFormat::kParquet;
      const Status found = parquet ? find_groups(fs, *file, list) : find_lines(fs, *file, list);
      if (!found.ok()) why = found.error().message();
    }
    for (const WantedRow& row : list)
      if (!row.place->has_bytes() && row.place->row_group < 0) row.place->unknown = why;
  }
  return places;
}

}  // namespace ostro::batches
