// LayerRows::attended: attention of the rows of a step, with keys and values in pages.
#include <algorithm>

#include "ostro/infer/layer_step.h"
#include "ostro/infer/row_arrays.h"

namespace ostro::infer {

using runtime::Buffer;

Result<Buffer> LayerRows::attended(int64_t layer, const Buffers& weights, const Step& step) {
  if (!is_in_place()) return gathered(layer, weights, step);
  PagePool& pool = cache_.pool();
  Buffers inputs = weights;
  for (const Buffer& b : {step.tokens, step.x, step.positions}) inputs.push_back(b);
  inputs.push_back(std::move(pool.keys(layer)));
  inputs.push_back(std::move(pool.values(layer)));
  for (const Buffer& b : {step.place, step.table, step.in_text}) inputs.push_back(b);
  ASSIGN_OR_RETURN(Buffers out, run({Part::kPaged, kind_of(layer), step.bucket, 1, step.adapter.valid()},
                                    layer, std::move(inputs), step.adapter));
  pool.keys(layer) = std::move(out[1]);
  pool.values(layer) = std::move(out[2]);
  return std::move(out[0]);
}

Result<Buffer> LayerRows::attend(int64_t layer, const Buffers& weights, Buffer queries,
                                 std::span<const int64_t> sequences, std::span<const int32_t> starts) {
  const auto count = std::ssize(sequences);
  const int64_t rows = queries.shape().axes[1].size, entries = cache_.entries();
  Buffer table = Buffer::empty({ir::DType::i32, {{"batch", count}, {"entry", entries}}});
  std::fill_n(table.mutable_as<int32_t>().begin(), count * entries, cache_.blank());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sequence = sequences[static_cast<size_t>(i)];
    if (sequence < 0) continue;
    const auto pages = cache_.pages(sequence);
    std::copy(pages.begin(), pages.end(), table.mutable_as<int32_t>().begin() + i * entries);
  }
  Buffers inputs = weights;
  inputs.push_back(std::move(queries));
  inputs.push_back(cache_.pool().keys(layer));
  inputs.push_back(cache_.pool().values(layer));
  inputs.push_back(std::move(table));
  inputs.push_back(Buffer::copy_of({ir::DType::i32, {{"batch", count}}}, starts.data()));
  ASSIGN_OR_RETURN(Buffers out, run({Part::kAttend, kind_of(layer), rows, count}, layer, std::move(inputs)));
  return out[0].to_host();
}

// Rows that are alone in their sequence attend together; padding is at position -1 and attends to nothing.
Result<Buffer> LayerRows::gathered(int64_t layer, const Buffers& weights, const Step& step) {
  Buffers inputs = weights;
  for (const Buffer& b : {step.tokens, step.x, step.positions}) inputs.push_back(b);
  ASSIGN_OR_RETURN(Buffers qkv, run({Part::kProject, kind_of(layer), step.bucket, 1, step.adapter.valid()},
                                    layer, std::move(inputs), step.adapter));
  ASSIGN_OR_RETURN(qkv, runtime::all_to(std::move(qkv), runtime::host_memory()));
  const Buffer& q = qkv[0];
  const size_t bytes = cache_.row_bytes();
  for (const Step::Piece& piece : step.pieces) {
    const auto first = static_cast<size_t>(piece.first) * bytes,
               size = static_cast<size_t>(piece.count) * bytes;
    RETURN_IF_ERROR(cache_.write(layer, piece.chunk.sequence, piece.start,
                                 qkv[1].bytes().subspan(first, size), qkv[2].bytes().subspan(first, size)));
  }
  Buffer out;
  const auto put = [&](const Buffer& from, int64_t first, int64_t count, int64_t at) {
    if (!out.valid()) out = Buffer::zeros(with_rows(from.shape(), 1, step.bucket));
    copy_rows(from, first, count, out, at);
  };
  std::vector<int64_t> sequences, rows;
  std::vector<int32_t> starts;
  for (const Step::Piece& piece : step.pieces) {
    const auto start = static_cast<int32_t>(piece.start);
    if (piece.count == 1) {
      sequences.push_back(piece.chunk.sequence);
      rows.push_back(piece.first);
      starts.push_back(start);
      continue;
    }
    Buffer queries = Buffer::zeros(with_rows(q.shape(), 1, padded_rows(piece.count)));
    copy_rows(q, piece.first, piece.count, queries, 0);
    ASSIGN_OR_RETURN(const Buffer made,
                     attend(layer, weights, std::move(queries), {&piece.chunk.sequence, 1}, {&start, 1}));
    put(made, 0, piece.count, piece.first);
  }
  if (rows.empty()) return out;
  const int64_t padded = padded_rows(std::ssize(rows));
  sequences.resize(static_cast<size_t>(padded), -1);
  starts.resize(static_cast<size_t>(padded), -1);
  Buffer queries = Buffer::zeros(with_rows(q.shape(), padded, 1));
  for (size_t i = 0; i < rows.size(); ++i) copy_rows(q, rows[i], 1, queries, static_cast<int64_t>(i));
  ASSIGN_OR_RETURN(const Buffer made, attend(layer, weights, std::move(queries), sequences, starts));
  for (size_t i = 0; i < rows.size(); ++i) put(made, static_cast<int64_t>(i), 1, rows[i]);
  return out;
}

}  // namespace ostro::infer
