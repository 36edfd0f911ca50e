#include "ostro/batches/packing/batch.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ostro/batches/packing/row_digest.h"

namespace ostro::batches {
namespace {

template <typename T>
std::span<const std::byte> row_bytes(const std::vector<T>& array, int64_t row, int64_t length) {
  if (array.empty()) return {};
  return std::as_bytes(
      std::span(array).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)));
}

}  // namespace

Batch make_batch(int64_t step, int64_t rows, const BatchShape& shape, Batch memory) {
  const auto size = static_cast<size_t>(rows * shape.seq_len);
  Batch batch = std::move(memory);
  batch.step = step;
  batch.batch_size = rows;
  batch.seq_len = shape.seq_len;
  batch.pairs = shape.pairs;
  batch.tokens.resize(size);
  batch.targets.resize(size);
  batch.loss_mask.resize(size);
  batch.segment_ids.resize(shape.segments ? size : 0);
  batch.reference.assign(shape.reference ? static_cast<size_t>(2 * rows) : 0, 0.0);
  batch.sequences.assign(static_cast<size_t>(rows), -1);
  batch.components.assign(static_cast<size_t>(rows), 0);
  return batch;
}

void pad_row(Batch& batch, int64_t row, int64_t position, int32_t segment) {
  const int64_t begin = row * batch.seq_len + position, count = batch.seq_len - position;
  std::fill_n(batch.tokens.begin() + begin, count, 0);
  std::fill_n(batch.targets.begin() + begin, count, 0);
  std::fill_n(batch.loss_mask.begin() + begin, count, 0.0f);
  if (!batch.segment_ids.empty()) std::fill_n(batch.segment_ids.begin() + begin, count, segment);
}

Sha256Digest row_digest(const Batch& batch, int64_t row) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(&batch.seq_len, 1)));
  hash.update(row_bytes(batch.tokens, row, batch.seq_len));
  hash.update(row_bytes(batch.targets, row, batch.seq_len));
  hash.update(row_bytes(batch.loss_mask, row, batch.seq_len));
  hash.update(row_bytes(batch.segment_ids, row, batch.seq_len));
  return hash.finish();
}

std::string batch_fingerprint(const Batch& batch) {
  Sha256 all;
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    const Sha256Digest digest = row_digest(batch, row);
    all.update(std::as_bytes(std::span(digest)));
  }
  return to_hex(all.finish());
}

}  // namespace ostro::batches
