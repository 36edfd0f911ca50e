#include "ostro/models/decoder/released.h"

#include <cmath>

#include "ostro/numerics/bf16.h"
#include "ostro/trace/frame.h"

namespace ostro::models::released {
namespace {

const float kMasked = -1e30f;

// f32 [batch, key_pos, kv_heads]: the first number of each key, NaN for padding.
Array mark_of(const Array& k) { return cast(index(k, "head_dim", 0), DType::f32); }

// bool [batch, pos, key_pos, kv_heads]: the keys that a query attends to.
Array visible(const Array& q, const Array& k, const LayerInputs& in) {
  const Array key_at = iota({"key_pos", k.size("key_pos")}), query = iota({"pos", q.size("pos")});
  const Array at = in.start.valid() ? query + in.start : query;
  const Array seen = (key_at <= at) & is_finite(mark_of(k));
  const auto& mask = in.mask;
  return mask.query_segments.valid() ? seen & (mask.query_segments == mask.key_segments) : seen;
}

}  // namespace

Array rounded(const Array& x) { return cast(x, DType::bf16); }

double multiplier(double value) { return numerics::to_f32(numerics::to_bf16(static_cast<float>(value))); }

void check_compute(const nn::Embedding& embedding) {
  if (nn::read_dtype(embedding.weight) == DType::bf16 && !embedding.integers &&
      embedding.rule == ProductRule::kN7)
    return;
  trace_fail(
      "model.rounding is released: that program computes in bf16; set trainer.mp: p=f32,c=bfloat16, or "
      "import with --dtype bf16 or int8",
      Loc::current());
}

Array without_padding(const Array& k, const Array& tokens) {
  const Array of_keys = k.has("key_pos") ? rename(tokens, "pos", "key_pos") : tokens;
  return select(of_keys > 0, k, full(NAN, DType::bf16, {}));
}

Array attention(const DecoderOptions& o, const Array& q, const Array& k, const Array& v,
                const LayerInputs& inputs) {
  const double scale = o.attention_scale();
  const Array seen = visible(q, k, inputs);
  const Array keys = select(is_finite(mark_of(k)), k, full(0, DType::bf16, {}));
  Array scores = dot(q, keys, "head_dim", DType::bf16) *
                 (scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size("head_dim"))));
  if (const auto& cap = o.attn_logit_softcapping) scores = tanh(scores / *cap) * *cap;
  const Array p = nn::softmax(select(seen, scores, kMasked), "key_pos");
  // Masked once more, for a query that attends to no key at all.
  return broadcast_to(dot(rounded(select(seen, p, 0.0f)), v, "key_pos", DType::bf16), q.shape().axes);
}

}  // namespace ostro::models::released
