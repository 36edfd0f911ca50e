#include "ostro/batches/loader/withheld.h"

#include <algorithm>

#include "ostro/batches/loader/documents.h"

namespace ostro::batches {

Result<Withheld> Withheld::create(const DataSet& stores, const data::DataOptions& options,
                                  const std::vector<std::shared_ptr<const SequenceReader>>& readers) {
  Withheld out;
  if (options.without.empty()) return out;
  out.blank_ = options.without_as == data::WithoutAs::kBlank;
  out.parts_.resize(readers.size());
  for (const std::string& text : options.without) {
    const auto name = data::parse_document_name(text);
    if (!name.ok()) return config::option_error("data.without", name.error().message());
    const auto rows = training_rows(stores, *name);
    if (!rows.ok() && rows.error().code() != ErrorCode::kInvalidArgument) return rows.error();
    if (!rows.ok()) return config::option_error("data.without", rows.error().message());
    for (const ComponentRow& row : *rows) {
      ASSIGN_OR_RETURN(const std::vector<RowPart> parts, readers[row.component]->parts_of(row.found.row));
      for (const RowPart& part : parts) out.parts_[row.component][part.sequence].push_back(part);
    }
  }
  return out;
}

bool Withheld::touches(size_t component, int64_t sequence) const {
  return !parts_.empty() && parts_[component].contains(sequence);
}

void Withheld::apply(size_t component, int64_t sequence, Batch& batch, int64_t row) const {
  if (!touches(component, sequence)) return;
  const auto clear = [&](auto& array, int64_t begin, int64_t end) {
    std::fill(array.begin() + row * batch.seq_len + begin, array.begin() + row * batch.seq_len + end, 0);
  };
  for (const RowPart& part : parts_[component].at(sequence)) {
    clear(batch.loss_mask, part.target_begin, part.target_end);
    if (!blank_) continue;
    clear(batch.tokens, part.begin, part.end);
    clear(batch.targets, part.target_begin, part.target_end);
  }
}

}  // namespace ostro::batches
