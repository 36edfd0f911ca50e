// The `model:` section with `type: llama`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::models {

// Rotary position embedding with frequencies theta^(-2i/head_dim).
struct RopeDefaultOptions {
  static constexpr const char* kType = "default";
  double theta = 10000;
  void visit_options(config::OptionTable& table);
};

// The same, with long wavelengths stretched as in Llama 3.1, for contexts longer than those of pretraining.
struct RopeLlama3Options {
  static constexpr const char* kType = "llama3";
  double theta = 500000;
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
  void visit_options(config::OptionTable& table);
};

using RopeOptions = std::variant<RopeDefaultOptions, RopeLlama3Options>;

enum class Activation { kSilu, kGelu, kGeluTanh };
std::vector<std::string> option_names(Activation);  // Hugging Face's names: silu, gelu, gelu_new

// Which values of a layer are kept for the backward pass. Never changes bits.
struct RematPolicy {
  enum class Kind { kDear, kEverything, kNothing, kNamed } kind = Kind::kDear;
  std::vector<std::string> names;  // kNamed: the named values that are kept, the rest is computed again
};

// The values of a layer that have a name; gradient_checkpointing may list these names.
inline constexpr const char* kCheckpointNames[] = {"qkv", "attention", "attention_out", "gate_up", "mlp_out"};

struct LlamaOptions {
  static constexpr const char* kType = "llama";

  int64_t seq_len = 256;
  int64_t hidden_dim = 256;
  int64_t intermediate_dim = 688;
  int64_t num_layers = 4;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  std::optional<int64_t> head_dim;  // set by resolve()
  Activation activation_function = Activation::kSilu;
  double layer_norm_epsilon = 1e-5;
  bool tie_word_embeddings = false;
  RopeOptions rope;
  config::Alternatives<bool, std::string> gradient_checkpointing{false};
  double initializer_range = 0.02;
  double z_loss_weight = 0.0;

  void visit_options(config::OptionTable& table);
  // head_dim: null becomes hidden_dim / num_heads; then checks all values.
  Status resolve();
  // The same model without the z-loss.
  LlamaOptions for_evaluation() const;
  // gradient_checkpointing as a policy; an error names the words and names that are known.
  Result<RematPolicy> remat_policy() const;
  // The same policy as text for runtime::CompileOptions::remat.
  Result<std::string> remat() const;
  // Every option in one line of text. It is part of the jit key: two models with different options never
  // share a compiled function.
  std::string signature() const;
  config::IntMap leaf_axes() const;  // kv_heads, mlp, vocab, pos
  config::IntMap cell_axes() const;  // vocab, embed, kv_heads, head_dim, mlp
};

}  // namespace ostro::models
