#include "ostro/data/batch_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ostro::data {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json row_json(const std::vector<T>& array, int64_t row, int64_t length) {
  Json out = Json::array();
  for (int64_t i = row * length; i < (row + 1) * length; ++i) out.push_back(array[static_cast<size_t>(i)]);
  return out;
}

Json mask_json(const Batch& batch, int64_t row) {
  Json out = Json::array();
  for (int64_t i = row * batch.seq_len; i < (row + 1) * batch.seq_len; ++i)
    out.push_back(batch.loss_mask[static_cast<size_t>(i)] != 0 ? 1 : 0);
  return out;
}

Result<Json> source_json(int64_t sequence, const SequenceReader& reader) {
  if (sequence < 0) return Json();  // padding
  ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, reader.documents(sequence));
  Json documents = Json::array();
  for (const DocumentSpan& span : spans)
    documents.push_back({{"file", span.file},
                         {"document", span.document},
                         {"begin", span.begin},
                         {"end", span.end},
                         {"first_token", span.first_token}});
  return Json{{"sequence", sequence},
              {"file", spans.front().file},
              {"document", spans.front().document},
              {"documents", std::move(documents)}};
}

}  // namespace

Result<std::string> batch_json(const Batch& batch, const SequenceReader& reader) {
  Json sequences = Json::array();
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    Json entry = {{"tokens", row_json(batch.tokens, row, batch.seq_len)},
                  {"targets", row_json(batch.targets, row, batch.seq_len)},
                  {"loss_mask", mask_json(batch, row)}};
    if (!batch.segment_ids.empty()) entry["segment_ids"] = row_json(batch.segment_ids, row, batch.seq_len);
    ASSIGN_OR_RETURN(entry["source"], source_json(batch.sequences[static_cast<size_t>(row)], reader));
    sequences.push_back(std::move(entry));
  }
  const Json json = {
      {"step", batch.step}, {"fingerprint", batch_fingerprint(batch)}, {"sequences", std::move(sequences)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> batch_summary(const Batch& batch, const SequenceReader& reader) {
  std::string out = fmt::format("step {}: {} sequences of {} tokens, fingerprint {}\n", batch.step,
                                batch.batch_size, batch.seq_len, batch_fingerprint(batch));
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const int64_t sequence = batch.sequences[static_cast<size_t>(row)];
    out += fmt::format("[{}] sequence {}\n", row, sequence);
    ASSIGN_OR_RETURN(const std::vector<DocumentSpan> spans, reader.documents(sequence));
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

}  // namespace ostro::data
