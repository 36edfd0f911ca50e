#include "ostro/models/decoder/decoder.h"

#include <utility>

#include "ostro/models/decoder/positions.h"
#include "ostro/models/decoder/released.h"
#include "ostro/nn/init.h"
#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"

namespace ostro::models {
namespace {

// One loop over the layers of some blocks; block j of an iteration has the kind of layer first + j.
Array run_layers(const DecoderOptions& o, const std::vector<DecoderBlock>& blocks, int64_t first,
                 const Array& x, const LayerInputs& inputs) {
  if (blocks.empty()) return x;
  return fold(
      Decoder::kLayersAxis,
      [&](const Array& in, const std::vector<DecoderBlock>& p) {
        Scope scope("layers");
        Array h = in;
        for (size_t j = 0; j < p.size(); ++j)
          h = run_block(o, o.layer(first + static_cast<int64_t>(j)), p[j], h, inputs);
        return h;
      },
      x, blocks);
}

// A token's residual stream and the routers' part of its loss.
struct Routed {
  Array x, loss;
  OSTRO_FIELDS(x, loss)
};

// run_layers() with that loss.
Routed run_layers(const DecoderOptions& o, const std::vector<DecoderBlock>& blocks, int64_t first,
                  const Routed& x, const LayerInputs& inputs) {
  if (blocks.empty()) return x;
  return fold(
      Decoder::kLayersAxis,
      [&](const Routed& in, const std::vector<DecoderBlock>& p) {
        Scope scope("layers");
        Routed h = in;
        for (size_t j = 0; j < p.size(); ++j)
          h.x = run_block(o, o.layer(first + static_cast<int64_t>(j)), p[j], h.x, inputs, nullptr, &h.loss);
        return h;
      },
      x, blocks);
}

// run_layers() with a cache, whose new state it returns.
std::pair<Array, std::vector<KeyValues>> run_layers(const DecoderOptions& o,
                                                    const std::vector<DecoderBlock>& blocks, int64_t first,
                                                    const Array& x, const LayerInputs& inputs,
                                                    const std::vector<KeyValues>& cache) {
  if (blocks.empty()) return {x, {}};
  struct Iteration {
    std::vector<DecoderBlock> blocks;
    std::vector<KeyValues> cache;
    OSTRO_FIELDS(blocks, cache)
  };
  return scan(
      Decoder::kLayersAxis,
      [&](const Array& in, const Iteration& p) {
        std::pair<Array, std::vector<KeyValues>> out{in, p.cache};
        for (size_t j = 0; j < p.blocks.size(); ++j)
          out.first = run_block(o, o.layer(first + static_cast<int64_t>(j)), p.blocks[j], out.first, inputs,
                                &out.second[j]);
        return out;
      },
      x, Iteration{blocks, cache});
}

}  // namespace

// Layers lie in three parts: lead, the loop, tail (DecoderOptions::layer). A block of the loop holds the
// parameters of all its iterations in one draw.
Decoder Decoder::init(const DecoderOptions& o, int64_t vocab, const Array& key) {
  const Axis embed{"embed", o.hidden_dim}, v{"vocab", o.vocab_rows(vocab)};
  const auto draw = [&](const char* path, const std::vector<Axis>& axes, double narrower = 1) {
    return nn::trunc_normal(key, path, axes, o.initializer_range / narrower);
  };
  Decoder m;
  m.options = o;
  m.embedding.weight = draw("model/embedding/weight", {v, embed});
  if (o.positions == Positions::kLearned)
    m.position_embedding.weight =
        draw("model/position_embedding/weight", {{"position", o.max_position_embeddings}, embed});
  const int64_t period = o.period(), iterations = o.iterations();
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const auto init = [&](int64_t count) {
      return init_block(o, o.layer(i), o.layer_place(i).path, count, key);
    };
    if (i < o.lead())
      m.lead.push_back(init(1));
    else if (period == 1 && i == o.lead())
      m.layers.alike = init(iterations);
    else if (period > 1 && i < o.lead() + period)
      m.layers.period.push_back(init(iterations));
    else if (i >= o.tail_begin())
      m.tail.push_back(init(1));
  }
  m.norm = init_norm(o, {}, {embed});
  m.head.in = {"embed"};
  m.head.fused = {"", {{"lm_head"}}};
  if (!o.tie_word_embeddings) m.head.weight = draw("model/head/weight", {embed, v}, o.width_ratio());
  if (o.head_bias) m.head.bias = zeros({v});
  return m;
}

const DecoderBlock& Decoder::block(int64_t i) const {
  if (i < options.lead()) return lead[static_cast<size_t>(i)];
  if (i >= options.tail_begin()) return tail[static_cast<size_t>(i - options.tail_begin())];
  if (layers.alike) return *layers.alike;
  return layers.period[static_cast<size_t>((i - options.lead()) % options.period())];
}

LayerInputs Decoder::inputs(const Array& positions) const {
  LayerInputs in;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const LayerSpec spec = options.layer(i);
    std::optional<nn::Rope>& rope = spec.local_rope ? in.local_rope : in.rope;
    if (spec.rope && !rope) rope = rope_at(options, positions, spec.local_rope);
  }
  return in;
}

Array Decoder::embed(const Array& tokens, const Array& positions) const {
  Scope scope("embedding");
  if (options.released()) released::check_compute(embedding);
  Array x = embedding(tokens);
  if (const double scale = options.embedding_scale(); scale != 1)
    x = nn::cast_like(x * (options.released() ? released::multiplier(scale) : scale), embedding.weight);
  if (position_embedding.weight.valid())
    x = nn::cast_like(x + gather(position_embedding.weight, "position", positions), embedding.weight);
  return x;
}

Array Decoder::head_logits(const Array& x) const {
  Scope scope("head");
  const Array h = norm(x);
  Array y = options.tie_word_embeddings ? embedding.attend(h) : head.to(DType::f32, h);
  if (options.tie_word_embeddings && head.bias.valid()) y = y + head.bias;
  if (options.released())
    return cast(released::rounded(released::rounded(y) * released::multiplier(1 / options.logits_scaling)),
                DType::f32);
  if (options.logits_scaling != 1) y = y / options.logits_scaling;
  if (const auto& cap = options.final_logit_softcapping) y = tanh(y / *cap) * *cap;
  return y;
}

Array Decoder::logits(const Array& tokens, const Array& segments) const {
  return logits(tokens, segments, nullptr);
}

Array Decoder::logits(const Array& tokens, const Array& segments, Array* router_loss) const {
  const Array positions = iota({"pos", tokens.size("pos")});
  LayerInputs in = inputs(positions);
  in.tokens = tokens;
  if (segments.valid()) {
    in.mask.query_segments = segments;
    in.mask.key_segments = rename(segments, "pos", "key_pos");
  }
  const auto run = [&](const auto& begin) {
    const auto x = run_layers(options, lead, 0, begin, in);
    const auto y = run_layers(options, layers.blocks(), options.lead(), x, in);
    return run_layers(options, tail, options.tail_begin(), y, in);
  };
  const Array e = embed(tokens, positions);
  if (router_loss == nullptr) return head_logits(run(e));
  const Routed y = run(Routed{e, zeros(tokens.shape().axes)});
  *router_loss = y.loss;
  return head_logits(y.x);
}

Loss Decoder::loss(const Batch& batch) const {
  Array of_router;
  const bool routed = options.router_has_loss();
  const Array scores = logits(batch.tokens, batch.segments, routed ? &of_router : nullptr);
  Scope scope("loss");
  const Array entropy = cross_entropy(scores, batch.targets, "vocab", options.z_loss_weight);
  return {routed ? entropy + of_router : entropy, batch.loss_mask};
}

DecoderCache Decoder::cache(int64_t batch, int64_t length, DType dtype) const {
  const auto of = [&](const std::vector<DecoderBlock>& blocks, int64_t iterations) {
    std::vector<KeyValues> out;
    for (size_t j = 0; j < blocks.size(); ++j) {
      const std::vector<Axis> axes = {{kLayersAxis, iterations},
                                      {"batch", batch},
                                      {"key_pos", length},
                                      {"kv_heads", options.num_kv_heads},
                                      {"head_dim", options.cache_dim()}};
      out.push_back({zeros(axes, dtype), zeros(axes, dtype)});
    }
    return out;
  };
  return {of(lead, 1), of(layers.blocks(), options.iterations()), of(tail, 1)};
}

std::pair<Array, DecoderCache> Decoder::decode(const Array& tokens, const DecoderCache& cache,
                                               const Array& start) const {
  const Array positions = iota({"pos", tokens.size("pos")}) + start;
  LayerInputs in = inputs(positions);
  in.start = start;
  in.tokens = tokens;
  DecoderCache filled;
  const auto run = [&](const std::vector<DecoderBlock>& blocks, int64_t first, const Array& x,
                       const std::vector<KeyValues>& past, std::vector<KeyValues>& out) {
    auto [y, now] = run_layers(options, blocks, first, x, in, past);
    out = std::move(now);
    return y;
  };
  Array x = run(lead, 0, embed(tokens, positions), cache.lead, filled.lead);
  x = run(layers.blocks(), options.lead(), x, cache.layers, filled.layers);
  x = run(tail, options.tail_begin(), x, cache.tail, filled.tail);
  return {head_logits(x), filled};
}

}  // namespace ostro::models
