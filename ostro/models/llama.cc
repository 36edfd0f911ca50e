#include "ostro/models/llama.h"

#include <cmath>

#include "ostro/nn/init.h"
#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"

namespace ostro::models {
namespace {

Array activate(Activation activation, const Array& x) {
  switch (activation) {
    case Activation::kSilu:
      return silu(x);
    case Activation::kGelu:
      return gelu_erf(x);
    case Activation::kGeluTanh:
      return gelu_tanh(x);
  }
  return x;
}

nn::RopeScaling scaling(const RopeOptions& rope, double* theta) {
  if (const auto* r = std::get_if<RopeDefaultOptions>(&rope)) {
    *theta = r->theta;
    return {};
  }
  const auto& r = std::get<RopeLlama3Options>(rope);
  *theta = r.theta;
  return {r.factor, r.low_freq_factor, r.high_freq_factor,
          static_cast<double>(r.original_max_position_embeddings)};
}

std::vector<float> frequencies(const LlamaOptions& o) {
  double theta = 0;
  const nn::RopeScaling s = scaling(o.rope, &theta);
  return nn::rope_frequencies(*o.head_dim, theta, s);
}

struct Qkv {
  Array q, k, v;
};

// Projects, rotates and casts: q [batch, pos, kv_heads, group, head_dim], k and v [batch, key_pos, kv_heads,
// head_dim].
Qkv project(const LlamaAttention& p, const Array& x, const nn::Rope& rope) {
  const Array qkv = checkpoint_name(p.qkv(x), "qkv");
  const int64_t group = qkv.size("qkv") - 2;
  const auto parts = split(qkv, "qkv", {group, 1, 1});
  Qkv out;
  out.q = nn::cast_like(rope(rename(parts[0], "qkv", "group")), p.qkv.weight);
  out.k = nn::cast_like(rope(unstack(parts[1], "qkv")[0]), p.qkv.weight);
  out.v = unstack(parts[2], "qkv")[0];
  return out;
}

Array to_keys(const Array& x) { return rename(x, "pos", "key_pos"); }

Array mlp(const LlamaMlp& p, const Array& x, Activation activation) {
  Scope scope("mlp");
  const Array gate_up = checkpoint_name(p.gate_up(x), "gate_up");
  const auto [gate, up] = unstack<2>(gate_up, "gate_up");
  return checkpoint_name(p.down(activate(activation, gate) * up), "mlp_out");
}

// The rest of a block, from the attention's output [batch, pos, kv_heads, group, head_dim] on.
Array finish(const LlamaBlock& p, const Array& x, const Array& attended, Activation activation) {
  Array h;
  {
    Scope scope("attention");
    h = x + checkpoint_name(p.attention.o(checkpoint_name(attended, "attention")), "attention_out");
  }
  return nn::cast_like(h + mlp(p.mlp, p.mlp_norm(h), activation), p.mlp.down.weight);
}

}  // namespace

Llama Llama::init(const LlamaOptions& o, int64_t vocab, const Array& key) {
  const Axis layers{kLayersAxis, o.num_layers}, embed{"embed", o.hidden_dim}, kv{"kv_heads", o.num_kv_heads},
      head_dim{"head_dim", *o.head_dim}, mlp{"mlp", o.intermediate_dim}, v{"vocab", vocab};
  const int64_t group = o.num_heads / o.num_kv_heads;
  auto draw = [&](const char* path, const std::vector<Axis>& axes) {
    return nn::trunc_normal(key, std::string("model/") + path, axes, o.initializer_range);
  };
  Llama m;
  m.options = o;
  m.embedding.weight = draw("embedding/weight", {v, embed});
  LlamaBlock& b = m.layers;
  b.attention_norm = {ones({layers, embed}), o.layer_norm_epsilon};
  b.attention.qkv = {
      draw("layers/attention/qkv/weight", {layers, embed, kv, {"qkv", group + 2}, head_dim}), {}, {"embed"}};
  b.attention.qkv.fused = {"qkv", {group, 1, 1}};
  b.attention.o = {draw("layers/attention/o/weight", {layers, kv, {"group", group}, head_dim, embed}),
                   {},
                   {"kv_heads", "group", "head_dim"}};
  b.mlp_norm = {ones({layers, embed}), o.layer_norm_epsilon};
  b.mlp.gate_up = {draw("layers/mlp/gate_up/weight", {layers, embed, {"gate_up", 2}, mlp}), {}, {"embed"}};
  b.mlp.gate_up.fused = {"gate_up", {1, 1}};
  b.mlp.down = {draw("layers/mlp/down/weight", {layers, mlp, embed}), {}, {"mlp"}};
  m.norm = {ones({embed}), o.layer_norm_epsilon};
  m.head.in = {"embed"};
  if (!o.tie_word_embeddings) m.head.weight = draw("head/weight", {embed, v});
  return m;
}

Array Llama::head_logits(const Array& x) const {
  Scope scope("head");
  const Array h = norm(x);
  if (options.tie_word_embeddings) return embedding.attend(h);
  return dot(nn::cast_like(h, head.weight), head.weight, "embed", DType::f32);
}

Array Llama::logits(const Array& tokens, const Array& segments) const {
  const nn::Rope rope = nn::Rope::at(iota({"pos", tokens.size("pos")}), frequencies(options));
  AttentionMask mask;
  if (segments.valid()) {
    mask.query_segments = segments;
    mask.key_segments = to_keys(segments);
  }
  const Array x = [&] {
    Scope scope("embedding");
    return embedding(tokens);
  }();
  const Array y = fold(
      kLayersAxis,
      [&](const Array& h, const LlamaBlock& p) {
        Scope scope("layers");
        Array attended;
        {
          Scope inner("attention");
          const Qkv a = project(p.attention, p.attention_norm(h), rope);
          attended = flash_attention(a.q, to_keys(a.k), to_keys(a.v), mask);
        }
        return finish(p, h, attended, options.activation_function);
      },
      x, layers);
  return head_logits(y);
}

Loss Llama::loss(const Batch& batch) const {
  const Array scores = logits(batch.tokens, batch.segments);
  Scope scope("loss");
  return {cross_entropy(scores, batch.targets, "vocab", options.z_loss_weight), batch.loss_mask};
}

LlamaCache Llama::cache(int64_t batch, int64_t length, DType dtype) const {
  const std::vector<Axis> axes = {{kLayersAxis, options.num_layers},
                                  {"batch", batch},
                                  {"key_pos", length},
                                  {"kv_heads", options.num_kv_heads},
                                  {"head_dim", *options.head_dim}};
  return {zeros(axes, dtype), zeros(axes, dtype)};
}

std::pair<Array, LlamaCache> Llama::decode(const Array& tokens, const LlamaCache& cache,
                                           const Array& start) const {
  const nn::Rope rope = nn::Rope::at(iota({"pos", tokens.size("pos")}) + start, frequencies(options));
  AttentionOptions attention;
  attention.query_origin = start;
  struct Layer {
    LlamaBlock block;
    LlamaCache cache;
    OSTRO_FIELDS(block, cache)
  };
  auto [y, filled] = scan(
      kLayersAxis,
      [&](const Array& h, const Layer& layer) {
        const LlamaBlock& p = layer.block;
        const Qkv a = project(p.attention, p.attention_norm(h), rope);
        // Cache slots after the tokens fed so far hold zeros or padding. Their positions come after every
        // query that counts, so the causal mask excludes them.
        const LlamaCache next{dynamic_update_slice(layer.cache.k, "key_pos", to_keys(a.k), start),
                              dynamic_update_slice(layer.cache.v, "key_pos", to_keys(a.v), start)};
        const Array attended = flash_attention(a.q, next.k, next.v, AttentionMask{}, attention);
        return std::pair<Array, LlamaCache>(finish(p, h, attended, options.activation_function), next);
      },
      embedding(tokens), Layer{layers, cache});
  return {head_logits(y), filled};
}

}  // namespace ostro::models
