// LayerRows::head, give_normed: what is wanted of the rows of a step, behind the last layer.
#include <algorithm>

#include "ostro/infer/layer_step.h"
#include "ostro/infer/row_arrays.h"

namespace ostro::infer {

using runtime::Buffer;

Result<Buffer> LayerRows::wanted_rows(const Step& step, bool normed) {
  const int64_t count = normed ? step.normed : step.logits, bucket = padded_rows(count);
  if (count == step.rows && bucket == step.bucket) return step.x;
  ASSIGN_OR_RETURN(const Buffer x, step.x.to_host());
  Buffer out = Buffer::zeros(with_rows(x.shape(), 1, bucket));
  int64_t at = 0;
  for (const Step::Piece& piece : step.pieces) {
    const int64_t wanted = normed ? piece.chunk.wanted - piece.chunk.logits() : piece.chunk.logits();
    copy_rows(x, piece.first + piece.count - wanted, wanted, out, at);
    at += wanted;
  }
  return out;
}

Buffer LayerRows::head_adapters(const Step& step) const {
  if (!has_adapted_head_ || !step.adapter.valid()) return {};
  Buffer out = Buffer::empty({ir::DType::i32, {{"batch", 1}, {"pos", padded_rows(step.logits)}}});
  auto next = out.mutable_as<int32_t>().begin();
  for (const Step::Piece& piece : step.pieces)
    next = std::fill_n(next, piece.chunk.logits(), adapter_of_.at(piece.chunk.sequence));
  std::fill(next, out.mutable_as<int32_t>().end(), kNoAdapter);
  return out;
}

Result<Buffer> LayerRows::head(Buffers weights, const Step& step) {
  if (step.logits == 0) return Buffer();
  ASSIGN_OR_RETURN(Buffer in, wanted_rows(step, false));
  const Buffer adapter = head_adapters(step);
  const int64_t bucket = padded_rows(step.logits);
  weights.push_back(std::move(in));
  ASSIGN_OR_RETURN(const Buffers out,
                   run({Part::kHead, 0, bucket, 1, adapter.valid()}, 0, std::move(weights), adapter));
  ASSIGN_OR_RETURN(const Buffer logits, out[0].to_host());
  const int64_t vocab = logits.shape().axes.back().size;
  return logits.with_shape({ir::DType::f32, {{"pos", bucket}, {"vocab", vocab}}}).rows(0, step.logits);
}

Status LayerRows::give_normed(const Step& step) {
  if (step.normed == 0) return {};
  ASSIGN_OR_RETURN(Buffers inputs, whole(model_.layers.norm_reads));
  ASSIGN_OR_RETURN(Buffer in, wanted_rows(step, true));
  inputs.push_back(std::move(in));
  ASSIGN_OR_RETURN(const Buffers out,
                   run({Part::kNormed, 0, padded_rows(step.normed)}, 0, std::move(inputs)));
  ASSIGN_OR_RETURN(const Buffer rows, out[0].to_host());
  auto next = rows.as<float>().begin();
  for (const Step::Piece& piece : step.pieces) {
    if (piece.chunk.normed == nullptr) continue;
    const auto end = next + piece.chunk.wanted * width();
    piece.chunk.normed->insert(piece.chunk.normed->end(), next, end);
    next = end;
  }
  return {};
}

}  // namespace ostro::infer
