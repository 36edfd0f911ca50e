// DecoderOptions: the `model:` section of every decoder-only transformer.
//
// All families (Llama, Gemma 3, GPT-2, ...) are this one struct: a family is a name, default values, and the
// keys that a configuration of it may set (families.h). A key that a family does not show has the value that
// the family gives it. Values; no function changes them but visit_options() and resolve().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/config/options.h"
#include "ostro/models/decoder/families.h"
#include "ostro/models/decoder/remat.h"
#include "ostro/models/decoder/rope_options.h"
#include "ostro/models/experts_used.h"
#include "ostro/nn/moe.h"

namespace ostro::models {

enum class Activation { kSilu, kGelu, kGeluTanh, kRelu };
std::vector<std::string> option_names(Activation);  // Hugging Face's names: silu, gelu, gelu_new, relu

enum class NormKind { kRms, kLayer };
std::vector<std::string> option_names(NormKind);
// pre: x + f(norm(x)). post: x + norm(f(x)) (OLMo 2). sandwich: x + norm(f(norm(x))) (Gemma 2).
enum class NormPlace { kPre, kPost, kSandwich };
std::vector<std::string> option_names(NormPlace);
// The factor of the normalised value: the weight, or 1 + weight (Gemma).
enum class NormScale { kWeight, kOnePlusWeight };
std::vector<std::string> option_names(NormScale);
// Norm of queries and keys before they are rotated: over each head (Qwen 3), or over all heads (OLMo 2).
enum class QkNorm { kNone, kHead, kWhole };
std::vector<std::string> option_names(QkNorm);
enum class Positions { kRope, kLearned };
std::vector<std::string> option_names(Positions);
enum class LayerKind { kFull, kSliding };
std::vector<std::string> option_names(LayerKind);
enum class LayerRope { kRope, kNone };
std::vector<std::string> option_names(LayerRope);
enum class RouterScores { kSoftmax, kSoftmaxChosen, kSigmoid };
std::vector<std::string> option_names(RouterScores);
// The score of a group of experts when only some groups are chosen from: its best expert, or the sum of its
// best two.
enum class GroupScore { kBest, kBestTwo };
std::vector<std::string> option_names(GroupScore);

// The places where values are rounded to bf16: those of Ostro (numerics.md N1), or those of the released
// program of Grok-1 (released.h).
enum class Rounding { kOstro, kReleased };
std::vector<std::string> option_names(Rounding);

// The differences between layers. Parameters of all layers have the same shapes, except for `dense`.
struct LayerSpec {
  int64_t window = 0;       // keys that a query sees, itself included; 0: all before it
  bool rope = true;         // false: queries and keys are not rotated
  bool local_rope = false;  // rotates by rope_local_theta instead of `rope`
  bool dense = false;       // of a mixture: one MLP of dense_intermediate_dim for all tokens
  bool operator==(const LayerSpec&) const = default;
};

// The place of a layer's parameters: "model/layers" or "model/layers/2" or "model/lead/0" or "model/tail/0",
// at `index` of their leading axis "layers".
struct LayerPlace {
  std::string path;
  int64_t index = 0;
};

struct DecoderOptions {
  const Family* family = &family_of("llama");

  int64_t seq_len = 256;
  int64_t hidden_dim = 256;
  int64_t intermediate_dim = 688;
  int64_t num_layers = 4;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;         // a family that does not show it has num_heads
  std::optional<int64_t> head_dim;  // set by resolve()
  Activation activation_function = Activation::kSilu;
  double layer_norm_epsilon = 1e-5;
  bool tie_word_embeddings = false;
  RopeOptions rope;
  config::Alternatives<bool, std::string> gradient_checkpointing{false};
  double initializer_range = 0.02;
  std::optional<int64_t> mup_base_dim;
  std::optional<int64_t> vocab_size;  // rows of embedding and head; null: the tokenizer's tokens
  double z_loss_weight = 0.0;

  // Norms
  NormKind norm = NormKind::kRms;
  NormPlace norm_place = NormPlace::kPre;
  NormScale norm_scale = NormScale::kWeight;
  bool norm_bias = false;  // layer norm only
  bool parallel = false;   // x + attention(norm(x)) + mlp(norm'(x))

  // Attention
  bool qkv_bias = false;
  bool out_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  std::optional<int64_t> sliding_window;                      // null: no layer has a window
  std::vector<LayerKind> layer_pattern = {LayerKind::kFull};  // repeated over the layers
  std::optional<double> attn_logit_softcapping;
  std::optional<double> query_pre_attn_scalar;  // scores are divided by its root; null: head_dim
  std::optional<double> attention_multiplier;   // scores are multiplied by it; null: see above
  bool attention_sink = false;                  // a learned logit per query head that takes part in softmax

  // Latent attention (latent_options.cc)
  int64_t kv_lora_rank = 0;  // 0: keys and values are made of the layer's input
  int64_t q_lora_rank = 0;   // 0: queries are
  int64_t qk_nope_head_dim = 32, qk_rope_head_dim = 16, v_head_dim = 32;

  // Positions
  Positions positions = Positions::kRope;
  int64_t max_position_embeddings = 1024;  // learned: rows of the table
  double partial_rotary_factor = 1.0;      // the first part of head_dim, which is rotated
  bool rope_interleaved = false;           // pairs are (0, 1), (2, 3), ... instead of (i, i + n/2)
  std::optional<double> rope_local_theta;  // theta in layers with a window, never scaled; null: `rope`
  std::vector<LayerRope> rope_pattern = {LayerRope::kRope};  // repeated over the layers

  // MLP
  bool gated_mlp = true;  // down(activation(gate(x)) * up(x)), else down(activation(up(x)))
  bool mlp_bias = false;

  // Embedding, residual stream and head
  bool scale_embedding = false;  // embeddings times sqrt(hidden_dim) (Gemma)
  double embedding_multiplier = 1.0;
  double residual_multiplier = 1.0;  // of the outputs of attention and MLP
  double logits_scaling = 1.0;       // logits are divided by it
  std::optional<double> final_logit_softcapping;
  bool head_bias = false;
  Rounding rounding = Rounding::kOstro;

  // Mixture of experts (mixture_options.cc)
  int64_t num_experts = 0;  // 0: one MLP for all tokens
  int64_t num_experts_per_tok = 2;
  RouterScores router_scores = RouterScores::kSoftmax;
  bool norm_topk_prob = false;
  double routed_scaling_factor = 1.0;
  double router_z_loss_coef = 0;
  bool track_expert_load = false;
  double router_aux_loss_coef = 0;      // needs track_expert_load
  double router_bias_update_rate = 0;   // above 0, the router has a bias; needs track_expert_load
  int64_t n_group = 1, topk_group = 1;  // experts are chosen from the best topk_group of n_group groups
  GroupScore group_score = GroupScore::kBest;
  bool router_bias = false;             // the router has a bias even if no step changes it
  int64_t shared_intermediate_dim = 0;  // of the MLP beside the experts that every token goes to; 0: none
  bool shared_expert_gate = false;
  int64_t first_k_dense_replace = 0;     // this many of the first layers have no experts
  int64_t dense_intermediate_dim = 688;  // of their MLP
  bool for_training = true;              // no key: the loss includes the terms that only training adds
  // No key, because an import sets it: the matrices of layers are i8 with scales, those of attention's output
  // and of down in this many groups of rows, the others in one. 0: they are not i8.
  int64_t int8_row_groups = 0;

  DecoderOptions() = default;
  // The family's default values.
  explicit DecoderOptions(std::string_view family_name);

  std::string type() const { return std::string(family->name); }
  void visit_options(config::OptionTable& table);
  // Sets head_dim to hidden_dim / num_heads where it is null; then checks all values. Errors begin with the
  // key.
  Status resolve();
  // These options without the terms of the loss that only training adds.
  DecoderOptions for_evaluation() const;
  // The value of runtime::CompileOptions::remat; an error names the words and names that are known.
  Result<std::string> remat() const { return remat_text(gradient_checkpointing); }
  // Every option in one line of text. It is part of the jit key: two models with different options never
  // share a compiled function.
  std::string signature() const;
  config::IntMap leaf_axes() const;  // kv_heads, mlp, vocab, pos; of a mixture: experts
  // vocab, embed, kv_heads, head_dim, mlp; of a mixture: experts and more; of latent attention: q_rank,
  // kv_rank
  config::IntMap cell_axes() const;

  int64_t vocab_rows(int64_t tokens) const { return vocab_size.value_or(tokens); }
  bool released() const { return rounding == Rounding::kReleased; }
  int64_t group() const { return num_heads / num_kv_heads; }
  int64_t latent_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  int64_t cache_dim() const;       // width of keys and values in attention
  int64_t rotary_dim() const;      // the elements of head_dim that are rotated
  double attention_scale() const;  // 0: 1 / sqrt(head_dim)
  double embedding_scale() const;  // both multipliers
  double width_ratio() const;      // hidden_dim / mup_base_dim, 1 without muP
  nn::MoeRouting routing() const;  // of a mixture
  // True when a token's loss has terms beside its cross-entropy that balance experts or count their rows.
  bool router_has_loss() const {
    return num_experts > 0 && for_training && (router_z_loss_coef > 0 || track_expert_load);
  }
  ExpertsUsed experts_used() const { return {num_experts, num_experts_per_tok}; }
  bool integer_attention() const { return !released(); }

  // The first lead() layers are of another kind, each a block of its own. The layers behind them repeat after
  // period() layers, the least number for which this is true. They are stacked: the i-th of them is the (i
  // mod period)-th block of iteration i / period of one loop. Each of the last layers, which fill no period,
  // is a block of its own.
  LayerSpec layer(int64_t i) const;
  int64_t lead() const { return num_experts > 0 ? first_k_dense_replace : 0; }
  int64_t period() const;
  int64_t iterations() const { return (num_layers - lead()) / period(); }
  int64_t tail_begin() const { return lead() + period() * iterations(); }
  LayerPlace layer_place(int64_t i) const;
};

}  // namespace ostro::models
