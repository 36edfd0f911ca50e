#include "ostro/batches/loader/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ostro/data/options/choose_component.h"

namespace ostro::batches {
namespace {

// The source files that have this name.
Result<size_t> files_named(const DataSet::Part& part, const std::string& file) {
  ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, part.store->files());
  return static_cast<size_t>(std::count_if(files->begin(), files->end(), [&](const data::FileLedger& f) {
    return f.source.path == file || f.source.path.ends_with("/" + file);
  }));
}

}  // namespace

Result<FoundRow> row_of_document(const DataSet::Part& part, const std::string& file, int64_t document) {
  ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, part.store->files());
  if (files->empty())
    return invalid_argument(
        fmt::format("{}: a Levanter cache holds ids alone and names no files, so its documents have no "
                    "names; name its row",
                    part.folder));
  std::array<int64_t, 2> begin{};
  std::vector<std::pair<const data::FileLedger*, std::array<int64_t, 2>>> found;
  for (const data::FileLedger& f : *files) {
    if (f.source.path == file || f.source.path.ends_with("/" + file)) found.emplace_back(&f, begin);
    for (size_t s = 0; s < 2; ++s) begin[s] += f.rows[s];
  }
  if (found.size() != 1)
    return invalid_argument(fmt::format("{}: {} of the {} source files of {} {} this name", file,
                                        found.empty() ? "none" : std::to_string(found.size()), files->size(),
                                        part.folder, found.size() > 1 ? "have" : "has"));
  for (const data::Split split : data::kSplits) {
    const auto s = static_cast<size_t>(split);
    const data::TokenStream& stream = part.store->split(split);
    int64_t low = found[0].second[s], high = low + found[0].first->rows[s];
    const int64_t end = high;
    while (low < high) {  // documents ascend
      const int64_t middle = low + (high - low) / 2;
      ASSIGN_OR_RETURN(const data::RowSource source, stream.source(middle));
      if (source.document < document)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == end) continue;
    ASSIGN_OR_RETURN(const data::RowSource source, stream.source(low));
    if (source.document == document) return FoundRow{split, low};
  }
  return invalid_argument(fmt::format("{}: its document {} is not in {}: the file has {} documents with text",
                                      found[0].first->source.path, document, part.folder,
                                      found[0].first->documents));
}

Result<std::vector<ComponentRow>> rows_of_document(const DataSet& stores, const data::DocumentName& name,
                                                   const std::string& component) {
  std::vector<data::Component> all;
  for (const DataSet::Part& part : stores.parts()) all.push_back(part.component);
  ASSIGN_OR_RETURN(const auto chosen, data::named_components(all, component));
  std::vector<ComponentRow> rows;
  std::vector<std::string> reasons;
  for (size_t c = 0; c < all.size(); ++c) {
    const DataSet::Part& part = stores.parts()[c];
    if (std::none_of(chosen.begin(), chosen.end(), [&](const auto& one) { return one.name == all[c].name; }))
      continue;
    const auto found = row_of_document(part, name.file, name.number);
    if (found.ok()) {
      rows.push_back({c, *found});
      continue;
    }
    if (found.error().code() != ErrorCode::kInvalidArgument) return found.error();
    ASSIGN_OR_RETURN(const size_t named, files_named(part, name.file));
    if (named > 1) return found.error();
    reasons.push_back(found.error().message());
  }
  if (rows.empty()) return invalid_argument(fmt::format("{}", fmt::join(reasons, "; ")));
  return rows;
}

Result<std::vector<ComponentRow>> training_rows(const DataSet& stores, const data::DocumentName& name,
                                                const std::string& component) {
  ASSIGN_OR_RETURN(std::vector<ComponentRow> rows, rows_of_document(stores, name, component));
  const ComponentRow held_out = rows[0];
  std::erase_if(rows, [](const ComponentRow& row) { return row.found.split != data::Split::kTrain; });
  if (!rows.empty()) return rows;
  return invalid_argument(fmt::format(
      "{} is held out: it is row {} of {}, which is evaluated and never trained on", name.text(),
      held_out.found.row, stores.parts()[held_out.component].store->split(data::Split::kValidation).name()));
}

}  // namespace ostro::batches
