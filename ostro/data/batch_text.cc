#include "ostro/data/batch_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ostro::data {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson row_json(const std::vector<T>& array, int64_t row, int64_t length) {
  OrderedJson out = OrderedJson::array();
  for (int64_t i = row * length; i < (row + 1) * length; ++i) out.push_back(array[static_cast<size_t>(i)]);
  return out;
}

OrderedJson mask_json(const Batch& batch, int64_t row) {
  OrderedJson out = OrderedJson::array();
  for (int64_t i = row * batch.seq_len; i < (row + 1) * batch.seq_len; ++i)
    if (const float weight = batch.loss_mask[static_cast<size_t>(i)]; weight == 0 || weight == 1)
      out.push_back(static_cast<int>(weight));
    else
      out.push_back(weight);
  return out;
}

Result<std::vector<DocumentSpan>> documents(const Batch& batch, int64_t row, const Loader& loader) {
  const auto i = static_cast<size_t>(row);
  return loader.reader(batch.components[i]).documents(batch.sequences[i]);
}

// "component web, ", or nothing when there is one without a name.
std::string component_text(const Batch& batch, int64_t row, const Loader& loader) {
  const std::string& name = loader.component_name(batch.components[static_cast<size_t>(row)]);
  return name.empty() ? "" : fmt::format("component {}, ", name);
}

Result<OrderedJson> source_json(const Batch& batch, int64_t row, const Loader& loader) {
  const int64_t sequence = batch.sequences[static_cast<size_t>(row)];
  if (sequence < 0) return OrderedJson();  // padding
  ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, documents(batch, row, loader));
  OrderedJson list = OrderedJson::array();
  for (const DocumentSpan& span : spans) {
    list.push_back({{"file", span.file},
                    {"document", span.document},
                    {"begin", span.begin},
                    {"end", span.end},
                    {"first_token", span.first_token}});
    if (span.has_bytes()) list.back()["bytes"] = {span.first_byte, span.end_byte};
  }
  OrderedJson source;
  if (const std::string& name = loader.component_name(batch.components[static_cast<size_t>(row)]);
      !name.empty())
    source["component"] = name;
  source["sequence"] = sequence;
  source["file"] = spans.front().file;
  source["document"] = spans.front().document;
  source["documents"] = std::move(list);
  return source;
}

}  // namespace

Result<std::string> batch_json(const Batch& batch, const Loader& loader) {
  OrderedJson sequences = OrderedJson::array();
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    OrderedJson entry = {{"tokens", row_json(batch.tokens, row, batch.seq_len)},
                         {"targets", row_json(batch.targets, row, batch.seq_len)},
                         {"loss_mask", mask_json(batch, row)}};
    if (!batch.segment_ids.empty()) entry["segment_ids"] = row_json(batch.segment_ids, row, batch.seq_len);
    ASSIGN_OR_RETURN(entry["source"], source_json(batch, row, loader));
    sequences.push_back(std::move(entry));
  }
  const OrderedJson json = {
      {"step", batch.step}, {"fingerprint", batch_fingerprint(batch)}, {"sequences", std::move(sequences)}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<std::string> batch_summary(const Batch& batch, const Loader& loader) {
  std::string out = fmt::format("step {}: {} sequences of {} tokens, fingerprint {}\n", batch.step,
                                batch.batch_size, batch.seq_len, batch_fingerprint(batch));
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const int64_t sequence = batch.sequences[static_cast<size_t>(row)];
    out += fmt::format("[{}] {}sequence {}\n", row, component_text(batch, row, loader), sequence);
    ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, documents(batch, row, loader));
    for (const DocumentSpan& span : spans)
      out += fmt::format("  positions {}..{}: {} document {}, from its token {}\n", span.begin, span.end - 1,
                         span.file, span.document, span.first_token);
    const auto tokens =
        std::span(batch.tokens)
            .subspan(static_cast<size_t>(row * batch.seq_len), static_cast<size_t>(batch.seq_len));
    out += fmt::format("  tokens {}\n", fmt::join(tokens, " "));
  }
  return out;
}

Result<std::string> batch_sources(const Batch& batch, const Loader& loader) {
  std::string out = fmt::format("step {}: {} sequences of {} tokens, fingerprint {}\n", batch.step,
                                batch.batch_size, batch.seq_len, batch_fingerprint(batch));
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    double weight = 0;
    for (int64_t i = row * batch.seq_len; i < (row + 1) * batch.seq_len; ++i)
      weight += static_cast<double>(batch.loss_mask[static_cast<size_t>(i)]);
    out += fmt::format("[{}] {}sequence {}, loss weight {}\n", row, component_text(batch, row, loader),
                       batch.sequences[static_cast<size_t>(row)], weight);
    ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, documents(batch, row, loader));
    for (const DocumentSpan& span : spans)
      out += fmt::format(
          "  {} document {}{}: tokens {} to {} at positions {} to {}\n", span.file, span.document,
          span.has_bytes() ? fmt::format(", bytes {} to {}", span.first_byte, span.end_byte - 1) : "",
          span.first_token, span.first_token + span.end - span.begin - 1, span.begin, span.end - 1);
  }
  return out;
}

}  // namespace ostro::data
