#include "ostro/data/batch.h"

#include <span>

#include "ostro/base/sha256.h"

namespace ostro::data {
namespace {

template <typename T>
std::span<const std::byte> row_bytes(const std::vector<T>& array, int64_t row, int64_t length) {
  if (array.empty()) return {};
  return std::as_bytes(
      std::span(array).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)));
}

}  // namespace

Batch make_batch(int64_t step, int64_t rows, int64_t seq_len, bool segments) {
  const auto size = static_cast<size_t>(rows * seq_len);
  Batch batch{.step = step, .batch_size = rows, .seq_len = seq_len};
  batch.tokens.resize(size);
  batch.targets.resize(size);
  batch.loss_mask.resize(size);
  if (segments) batch.segment_ids.resize(size);
  batch.sequences.resize(static_cast<size_t>(rows), -1);
  batch.components.resize(static_cast<size_t>(rows), 0);
  return batch;
}

std::string batch_fingerprint(const Batch& batch) {
  Sha256 all;
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(&batch.seq_len, 1)));
    hash.update(row_bytes(batch.tokens, row, batch.seq_len));
    hash.update(row_bytes(batch.targets, row, batch.seq_len));
    hash.update(row_bytes(batch.loss_mask, row, batch.seq_len));
    hash.update(row_bytes(batch.segment_ids, row, batch.seq_len));
    const Sha256Digest digest = hash.finish();
    all.update(std::as_bytes(std::span(digest)));
  }
  return to_hex(all.finish());
}

}  // namespace ostro::data
