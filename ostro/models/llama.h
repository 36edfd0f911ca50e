// Llama: RMS norm, rotary positions, grouped-query attention, SwiGLU. Some weights are fused. q, k and v are
// one weight with an axis "qkv": indices 0 .. group - 1 are q (query head = kv_head * group + index), then
// comes k, then v. Gate and up are one weight with an axis "gate_up".
//
// Casts (numerics.md N1): every Linear casts its input to the compute dtype; q, k and v are cast after
// rotation; the residual stream is cast once at the end of each block; norms compute in f32.
#pragma once

#include "ostro/models/llama_options.h"
#include "ostro/models/loss.h"
#include "ostro/nn/linear.h"
#include "ostro/nn/rope.h"

namespace ostro::models {

struct LlamaAttention {
  nn::Linear qkv;  // [embed, kv_heads, qkv, head_dim]
  nn::Linear o;    // [kv_heads, group, head_dim, embed]
  OSTRO_FIELDS(qkv, o)
};

struct LlamaMlp {
  nn::Linear gate_up;  // [embed, gate_up, mlp]
  nn::Linear down;     // [mlp, embed]
  OSTRO_FIELDS(gate_up, down)
};

struct LlamaBlock {
  nn::RmsNorm attention_norm;
  LlamaAttention attention;
  nn::RmsNorm mlp_norm;
  LlamaMlp mlp;
  OSTRO_FIELDS(attention_norm, attention, mlp_norm, mlp)
};

// Keys and values of past positions of all layers: [layers, batch, key_pos, kv_heads, head_dim].
struct LlamaCache {
  Array k, v;
  OSTRO_FIELDS(k, v)
};

struct Llama {
  nn::Embedding embedding;
  LlamaBlock layers;  // every leaf has a leading axis "layers"
  nn::RmsNorm norm;
  nn::Linear head;  // [embed, vocab]; an empty weight when tied
  LlamaOptions options;
  OSTRO_FIELDS(embedding, layers, norm, head)
  auto ostro_statics() const { return std::tuple(options.signature()); }

  static constexpr const char* kLayersAxis = "layers";

  // Random parameters, f32, a function of (options, vocab, key).
  static Llama init(const LlamaOptions& options, int64_t vocab, const Array& key);

  // f32 logits [batch, pos, vocab].
  Array logits(const Array& tokens, const Array& segments = {}) const;
  // Per-token cross-entropy (z-loss included) and weights.
  Loss loss(const Batch& batch) const;

  // Empty cache for `batch` rows and `length` positions, in the dtype of attention.
  LlamaCache cache(int64_t batch, int64_t length, DType dtype) const;
  // One step of generation with the cache: tokens i32 [batch, pos] at positions start, start + 1, ... (start:
  // i32 scalar). Returns f32 logits [batch, pos, vocab] and the cache with the new keys and values added.
  // Each row has the same bits as in logits().
  std::pair<Array, LlamaCache> decode(const Array& tokens, const LlamaCache& cache, const Array& start) const;

 private:
  Array head_logits(const Array& x) const;
};

}  // namespace ostro::models
