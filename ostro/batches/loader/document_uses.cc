#include "ostro/batches/loader/document_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace ostro::batches {

Result<UsedRow> row_uses(const Loader& loader, size_t component, int64_t row, int64_t first, int64_t end) {
  const SequenceReader& reader = loader.reader(component);
  UsedRow out{.component = component, .row = row, .source = {}, .uses = {}};
  ASSIGN_OR_RETURN(out.source, reader.stream().source(row));
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, reader.stream().row_ends(row, 1));
  out.tokens = ends[1] - ends[0];
  out.trained = loader.is_trained(component);
  ASSIGN_OR_RETURN(const std::vector<RowPart> parts, reader.parts_of(row));
  out.kept = !parts.empty();
  constexpr int64_t kMostUses = 10'000'000;
  const int64_t epochs = loader.epochs(component, first, end);
  if (!parts.empty() && epochs > kMostUses / std::ssize(parts))
    return invalid_argument(fmt::format(
        "row {} is used in {} epochs of these steps, in {} parts: more than {} places; name fewer steps", row,
        epochs, parts.size(), kMostUses));
  for (const RowPart& part : parts)
    for (const Loader::Use& use : loader.uses(component, part.sequence, first, end))
      out.uses.push_back({use.step, use.row, use.epoch, part});
  std::sort(out.uses.begin(), out.uses.end(), [](const DocumentUse& a, const DocumentUse& b) {
    return std::tie(a.step, a.row, a.part.begin) < std::tie(b.step, b.row, b.part.begin);
  });
  return out;
}

Result<std::vector<UsedRow>> document_uses(const DataSet& stores, const Loader& loader,
                                           const data::DocumentName& name, const std::string& component,
                                           int64_t first, int64_t end) {
  ASSIGN_OR_RETURN(const std::vector<ComponentRow> rows, training_rows(stores, name, component));
  std::vector<UsedRow> out;
  for (const ComponentRow& row : rows) {
    ASSIGN_OR_RETURN(UsedRow used, row_uses(loader, row.component, row.found.row, first, end));
    out.push_back(std::move(used));
  }
  return out;
}

}  // namespace ostro::batches
