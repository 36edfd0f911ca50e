#include "ostro/models/decoder/released.h"

#include <cmath>

#include "ostro/numerics/bf16.h"
#include "ostro/trace/frame.h"

namespace ostro::models::released {
namespace {

const float kMasked = -1e30f;

// bool [batch, pos, key_pos]: the keys that a query sees.
Array visible(const Array& q, const Array& k, const LayerInputs& in) {
  const Array key_at = iota({"key_pos", k.size("key_pos")}), query = iota({"pos", q.size("pos")});
  const Array at = in.start.valid() ? query + in.start : query;
  Array text = rename(in.tokens, "pos", "key_pos") > 0;
  if (in.start.valid()) {
    const Array all = full(1, DType::i32, {{"batch", q.size("batch")}, {"key_pos", k.size("key_pos")}});
    text = dynamic_update_slice(all, "key_pos", cast(text, DType::i32), in.start) > 0;
  }
  const Array seen = (key_at <= at) & text;
  const auto& mask = in.mask;
  return mask.query_segments.valid() ? seen & (mask.query_segments == mask.key_segments) : seen;
}

}  // namespace

Array rounded(const Array& x) { return cast(x, DType::bf16); }

double multiplier(double value) { return numerics::to_f32(numerics::to_bf16(static_cast<float>(value))); }

void check_compute(const Array& parameter) {
  if (nn::read_dtype(parameter) == DType::bf16) return;
  trace_fail(
      "model.rounding is released: that program computes in bf16; set trainer.mp: p=f32,c=bfloat16, or "
      "import with --dtype bf16 or int8",
      Loc::current());
}

Array attention(const DecoderOptions& o, const Array& q, const Array& k, const Array& v,
                const LayerInputs& inputs) {
  const double scale = o.attention_scale();
  Array scores = dot(q, k, "head_dim", DType::bf16) *
                 (scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size("head_dim"))));
  if (const auto& cap = o.attn_logit_softcapping) scores = tanh(scores / *cap) * *cap;
  const Array masked = select(visible(q, k, inputs), scores, kMasked);
  return broadcast_to(dot(rounded(nn::softmax(masked, "key_pos")), v, "key_pos", DType::bf16),
                      q.shape().axes);
}

}  // namespace ostro::models::released
