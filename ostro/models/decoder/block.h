// DecoderBlock, run_block: one layer of a decoder.
//
// Some weights are fused. q, k and v are one weight with an axis "qkv": indices 0 .. group - 1 are q (query
// head = kv_head * group + index), then comes k, then v. Gate and up are one weight with an axis "gate_up".
//
// Casts (numerics.md N1): every Linear casts its input to the compute dtype and returns that dtype, with the
// bias added to the rounded product and rounded again; q, k and v are cast after norm and rotation; the
// residual stream is cast once at the end of each block; norms and multipliers compute in f32. Under
// Rounding::kReleased there are more (released.h).
//
// All functions are called while tracing. Errors: TraceError for arrays whose axes or types do not fit.
#pragma once

#include <optional>
#include <string>

#include "ostro/models/decoder/decoder_options.h"
#include "ostro/models/layer_functions.h"
#include "ostro/nn/linear.h"
#include "ostro/nn/moe.h"
#include "ostro/nn/norm.h"
#include "ostro/nn/rope.h"

namespace ostro::models {

// The weights of latent attention. Queries are projections of the input or of a short vector; keys and values
// are projections of another short vector. Behind the keys of each head comes a part that all heads share and
// that is rotated.
struct LatentProjections {
  nn::Linear q_a;    // [embed, q_rank], or empty
  nn::Norm q_norm;   // [q_rank]
  nn::Linear q;      // [q_rank or embed, kv_heads, group, head_dim]; group is 1
  nn::Linear kv_a;   // [embed, kv_latent]: kv_rank, then the shared part of keys
  nn::Norm kv_norm;  // [kv_rank]
  nn::Linear kv_b;   // [kv_rank, kv_heads, kv_dim]: of each head a part of its keys, then its values
  OSTRO_FIELDS(q_a, q_norm, q, kv_a, kv_norm, kv_b)
};

// The weights of attention. Either qkv or latent is empty.
struct DecoderAttention {
  nn::Linear qkv;   // [embed, kv_heads, qkv, head_dim]; bias [kv_heads, qkv, head_dim]
  nn::Norm q_norm;  // [head_dim] or [kv_heads, group, head_dim]
  nn::Norm k_norm;  // [head_dim] or [kv_heads, head_dim]
  LatentProjections latent;
  Array sink_bias;  // [kv_heads, group] or empty
  nn::Linear o;     // [kv_heads, group, head_dim, embed], latent: value_dim for head_dim; bias [embed]
  int64_t int8_slices = 0;  // of AttentionOptions; compute() in policy.h sets it
  OSTRO_FIELDS(qkv, q_norm, k_norm, latent, sink_bias, o)
  OSTRO_STATICS(int8_slices)
};

// The weights of the MLP: down(activation(gate) * up), or down(activation(up)) without a gate.
struct DecoderMlp {
  nn::Linear gate_up;  // [embed, gate_up, mlp]; empty without a gate
  nn::Linear up;       // [embed, mlp]; empty with a gate
  nn::Linear down;     // [mlp, embed]
  OSTRO_FIELDS(gate_up, up, down)
};

// A layer has an MLP or a mixture of experts; the other one is empty. Norms that the model does not have are
// empty.
struct DecoderBlock {
  nn::Norm attention_norm;
  DecoderAttention attention;
  nn::Norm attention_post_norm;
  nn::Norm mlp_norm;
  DecoderMlp mlp;
  nn::Moe moe;
  nn::Norm mlp_post_norm;
  OSTRO_FIELDS(attention_norm, attention, attention_post_norm, mlp_norm, mlp, moe, mlp_post_norm)
};

// Keys and values of past positions: [layers, batch, key_pos, kv_heads, head_dim]; in a loop without
// "layers". Latent attention stores its projected keys and values, padded to one width.
struct KeyValues {
  Array k, v;
  OSTRO_FIELDS(k, v)
};

// The inputs that the layers of one call share.
struct LayerInputs {
  std::optional<nn::Rope> rope, local_rope;  // those that some layer has
  AttentionMask mask;  // segments [batch, pos], [batch, key_pos]; run_block() sets its window
  Array start;         // i32 scalar: the position of the first token; empty: 0
  Array tokens;        // i32 [batch, pos]; only Rounding::kReleased reads them
};

// Returns the output of a layer for x [batch, pos, embed]. With `past`, its keys and values are written there
// from inputs.start on, and attention reads them from there. With `router_loss`, f32 [batch, pos], a
// mixture's part of each token's loss is added there.
Array run_block(const DecoderOptions& options, const LayerSpec& spec, const DecoderBlock& block,
                const Array& x, const LayerInputs& inputs, KeyValues* past = nullptr,
                Array* router_loss = nullptr);

// The parts of a layer, for a program that does something between them. The first three need the weights of
// attention and norms. The first returns queries, keys and values, normalised and rotated: q [batch, pos,
// kv_heads, group, head_dim], k and v [batch, pos, kv_heads, head_dim].
struct Projected {
  Array q, k, v;
};
Projected run_projections(const DecoderOptions& options, const LayerSpec& spec, const DecoderBlock& block,
                          const Array& x, const LayerInputs& inputs);
// Queries attend to keys and values [batch, key_pos, kv_heads, head_dim]: the causal mask with inputs.start,
// i32 with no axis or [batch], as the position of the first query hides what comes after it.
Array run_attention(const DecoderOptions& options, const LayerSpec& spec, const DecoderBlock& block,
                    const Array& q, const Array& k, const Array& v, const LayerInputs& inputs);
// The same with the cache in pages (LayerFunctions::attend_pages).
Arrays run_paged_attention(const DecoderOptions& options, const LayerSpec& spec, const DecoderBlock& block,
                           const Arrays& qkv, const LayerFunctions::Paged& cache);
// Returns the residual stream after attention, f32 or the compute dtype, and the input of MLP or experts.
struct AfterAttention {
  Array h, mlp_in;  // [batch, pos, embed]
};
AfterAttention run_after_attention(const DecoderOptions& options, const DecoderBlock& block, const Array& x,
                                   const Array& attended);
// Returns the experts of the tokens of `mlp_in` [batch, pos, embed].
nn::Routed run_router(const DecoderBlock& block, const Array& mlp_in);
// The last part needs MLP or experts, of which `block` may have only those that are chosen: `routed` has
// their places. Returns the layer's output in `dtype`, in which the weights are read.
Array run_chosen(const DecoderOptions& options, const DecoderBlock& block, const AfterAttention& x,
                 const nn::Routed& routed, DType dtype);

// Returns random parameters of `layers` layers, every leaf with a leading axis "layers", drawn by their path
// in the model.
DecoderBlock init_block(const DecoderOptions& options, const LayerSpec& spec, const std::string& path,
                        int64_t layers, const Array& key);

// Returns a new norm over these axes by the options, its leaves with `leading` in front.
nn::Norm init_norm(const DecoderOptions& options, const std::vector<Axis>& leading,
                   const std::vector<Axis>& axes);

}  // namespace ostro::models
