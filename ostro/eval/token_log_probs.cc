#include "ostro/eval/token_log_probs.h"

#include "ostro/io/arrays/safetensors.h"

namespace ostro::eval {

void TokenLogProbs::add(const batches::Batch& batch, const runtime::Buffer& losses) {
  seq_len_ = batch.seq_len;
  const auto length = static_cast<int64_t>(batch.seq_len);
  const std::span<const float> loss = losses.as<float>();
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    if (batch.sequences[static_cast<size_t>(row)] < 0) continue;
    const auto append = [&](auto& to, const auto& from) {
      if (!from.empty()) to.insert(to.end(), from.begin() + row * length, from.begin() + (row + 1) * length);
    };
    append(tokens_, batch.tokens);
    append(targets_, batch.targets);
    append(segments_, batch.segment_ids);
    append(mask_, batch.loss_mask);
    for (const float x : loss.subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)))
      log_prob_.push_back(-x);
    ++sequences_;
  }
}

Status TokenLogProbs::write(io::FileSystem& fs, const std::string& path,
                            const std::vector<std::pair<std::string, std::string>>& metadata) const {
  const io::Extents shape = {sequences_, seq_len_};
  std::vector<io::SafetensorsEntry> entries = {
      {"tokens", "I32", shape, std::as_bytes(std::span(tokens_))},
      {"targets", "I32", shape, std::as_bytes(std::span(targets_))},
      {"log_prob", "F32", shape, std::as_bytes(std::span(log_prob_))},
      {"mask", "F32", shape, std::as_bytes(std::span(mask_))}};
  if (!segments_.empty()) entries.push_back({"segments", "I32", shape, std::as_bytes(std::span(segments_))});
  return io::write_safetensors(fs, path, entries, metadata);
}

}  // namespace ostro::eval
