#include "ostro/corpus_check/batch_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ostro::corpus_check {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson row_json(const std::vector<T>& array, int64_t row, int64_t length) {
  OrderedJson out = OrderedJson::array();
  for (int64_t i = row * length; i < (row + 1) * length; ++i) out.push_back(array[static_cast<size_t>(i)]);
  return out;
}

OrderedJson mask_json(const batches::Batch& batch, int64_t row) {
  OrderedJson out = OrderedJson::array();
  for (int64_t i = row * batch.seq_len; i < (row + 1) * batch.seq_len; ++i)
    if (const float weight = batch.loss_mask[static_cast<size_t>(i)]; weight == 0 || weight == 1)
      out.push_back(static_cast<int>(weight));
    else
      out.push_back(weight);
  return out;
}

OrderedJson source_json(const batches::Batch& batch, int64_t row, const batches::SequenceSource& from) {
  if (from.documents.empty()) return OrderedJson();  // padding
  OrderedJson list = OrderedJson::array();
  for (const auto& [span, place] : from.documents) {
    list.push_back({{"file", span.source.file},
                    {"document", span.source.document},
                    {"begin", span.begin},
                    {"end", span.end},
                    {"first_token", span.first_token}});
    add_place(place, list.back());
  }
  OrderedJson source;
  if (!from.component.empty()) source["component"] = from.component;
  source["sequence"] = batch.sequences[static_cast<size_t>(row)];
  source["file"] = from.documents.front().span.source.file;
  source["document"] = from.documents.front().span.source.document;
  source["documents"] = std::move(list);
  return source;
}

std::string head_line(const batches::Batch& batch) {
  const std::string length = batch.pairs ? fmt::format("pairs of sequences of {}", batch.seq_len / 2)
                                         : fmt::format("sequences of {}", batch.seq_len);
  return fmt::format("step {}: {} {} tokens, fingerprint {}\n", batch.step, batch.batch_size, length,
                     batches::batch_fingerprint(batch));
}

// "[0] component web, sequence 17", "[3] padding".
std::string row_text(const batches::Batch& batch, int64_t row, const batches::SequenceSource& from) {
  if (from.documents.empty()) return fmt::format("[{}] padding", row);
  return fmt::format("[{}] {}sequence {}", row,
                     from.component.empty() ? "" : fmt::format("component {}, ", from.component),
                     batch.sequences[static_cast<size_t>(row)]);
}

}  // namespace

void add_place(const batches::RowPlace& place, nlohmann::ordered_json& out) {
  if (place.has_bytes()) out["bytes"] = {place.begin, place.end};
  if (!place.columns.empty()) out["columns"] = place.columns;
  if (place.row_group >= 0) {
    out["row_group"] = place.row_group;
    out["row_in_group"] = place.row_in_group;
  }
  if (place.cell_bytes > 0) out["cell_bytes"] = {0, place.cell_bytes};
  if (!place.page.empty())
    out["page"] = {
        {"file", place.page}, {"bytes", {place.page_begin, place.page_end}}, {"sha256", place.page_sha256}};
  if (!place.unknown.empty()) out["unknown"] = place.unknown;
}

std::string place_text(const batches::RowPlace& place) {
  std::string out;
  if (place.has_bytes()) out += fmt::format(", bytes {} to {}", place.begin, place.end - 1);
  if (!place.columns.empty()) out += fmt::format(", columns {}", fmt::join(place.columns, " "));
  if (place.row_group >= 0)
    out += fmt::format(", row {} of row group {}", place.row_in_group, place.row_group);
  if (place.cell_bytes > 0) out += fmt::format(", bytes 0 to {} of its text", place.cell_bytes - 1);
  if (!place.page.empty())
    out += fmt::format(", made from bytes {} to {} of {}", place.page_begin, place.page_end - 1, place.page);
  if (!place.unknown.empty()) out += fmt::format(" ({})", place.unknown);
  return out;
}

std::string batch_json(const batches::Batch& batch, std::span<const batches::SequenceSource> sources) {
  OrderedJson sequences = OrderedJson::array();
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    OrderedJson entry = {{"tokens", row_json(batch.tokens, row, batch.seq_len)},
                         {"targets", row_json(batch.targets, row, batch.seq_len)},
                         {"loss_mask", mask_json(batch, row)}};
    if (!batch.segment_ids.empty()) entry["segment_ids"] = row_json(batch.segment_ids, row, batch.seq_len);
    entry["source"] = source_json(batch, row, sources[static_cast<size_t>(row)]);
    sequences.push_back(std::move(entry));
  }
  const OrderedJson json = {{"step", batch.step},
                            {"fingerprint", batches::batch_fingerprint(batch)},
                            {"sequences", std::move(sequences)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string batch_summary(const batches::Batch& batch, std::span<const batches::SequenceSource> sources) {
  std::string out = head_line(batch);
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const batches::SequenceSource& from = sources[static_cast<size_t>(row)];
    out += row_text(batch, row, from) + "\n";
    if (from.documents.empty()) continue;
    for (const auto& [span, place] : from.documents)
      out += fmt::format("  positions {}..{}: {} document {}, from its token {}\n", span.begin, span.end - 1,
                         span.source.file, span.source.document, span.first_token);
    const auto tokens =
        std::span(batch.tokens)
            .subspan(static_cast<size_t>(row * batch.seq_len), static_cast<size_t>(batch.seq_len));
    out += fmt::format("  tokens {}\n", fmt::join(tokens, " "));
  }
  return out;
}

std::string batch_explained(const batches::Batch& batch, std::span<const batches::SequenceSource> sources) {
  std::string out = head_line(batch);
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const batches::SequenceSource& from = sources[static_cast<size_t>(row)];
    double weight = 0;
    for (int64_t i = row * batch.seq_len; i < (row + 1) * batch.seq_len; ++i)
      weight += static_cast<double>(batch.loss_mask[static_cast<size_t>(i)]);
    out += row_text(batch, row, from) + fmt::format(", loss weight {}\n", weight);
    for (const auto& [span, place] : from.documents)
      out += fmt::format("  {} document {}{}: tokens {} to {} at positions {} to {}\n", span.source.file,
                         span.source.document, place_text(place), span.first_token,
                         span.first_token + span.end - span.begin - 1, span.begin, span.end - 1);
  }
  return out;
}

}  // namespace ostro::corpus_check
