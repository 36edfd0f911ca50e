// RopeOptions: the section `rope:` of a decoder: frequencies of rotary position embedding, chosen by `type:`.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::models {

// Frequencies theta^(-2i/n), where n is the number of elements of head_dim that are rotated.
struct RopeDefaultOptions {
  static constexpr const char* kType = "default";
  double theta = 10000;
  void visit_options(config::OptionTable& table);
};

// All positions divided by a factor ("position interpolation").
struct RopeLinearOptions {
  static constexpr const char* kType = "linear";
  double theta = 10000;
  double factor = 8;
  void visit_options(config::OptionTable& table);
};

// Long wavelengths stretched as in Llama 3.1, for contexts longer than those of pretraining.
struct RopeLlama3Options {
  static constexpr const char* kType = "llama3";
  double theta = 500000;
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 8192;
  void visit_options(config::OptionTable& table);
};

// YaRN: frequencies that turn often within the original context are unchanged, those that turn seldom are
// divided by the factor, a ramp between; cos and sin are multiplied by attention_factor.
struct RopeYarnOptions {
  static constexpr const char* kType = "yarn";
  double theta = 10000;
  double factor = 4;
  int64_t original_max_position_embeddings = 4096;
  double beta_fast = 32;  // turns within the original context: from this many on nothing is stretched
  double beta_slow = 1;   // up to this many the whole factor applies
  std::optional<double> attention_factor;  // null: 0.1 ln(factor) + 1
  bool truncate = true;                    // the ends of the ramp are whole indices
  // Scores are multiplied by (0.1 mscale_all_dim ln(factor) + 1)^2 (DeepSeek-V2); null: they are not.
  std::optional<double> mscale_all_dim;
  void visit_options(config::OptionTable& table);
};

// Another base for contexts longer than those of pretraining, by model.seq_len ("dynamic NTK"). Up to the
// original length it is the default rope.
struct RopeDynamicOptions {
  static constexpr const char* kType = "dynamic";
  double theta = 10000;
  double factor = 2;
  int64_t original_max_position_embeddings = 2048;
  void visit_options(config::OptionTable& table);
};

// LongRoPE (Phi-3, Phi-4-mini): each frequency divided by a factor of its own, from one of two lists by
// model.seq_len: the short one up to the original length. cos and sin are multiplied by attention_factor.
struct RopeLongOptions {
  static constexpr const char* kType = "longrope";
  double theta = 10000;
  std::vector<double> short_factor = {1}, long_factor = {1};  // one for each frequency, or one for all
  int64_t original_max_position_embeddings = 4096;
  double attention_factor = 1;
  void visit_options(config::OptionTable& table);
};

using RopeOptions = std::variant<RopeDefaultOptions, RopeLinearOptions, RopeLlama3Options, RopeYarnOptions,
                                 RopeDynamicOptions, RopeLongOptions>;

// The `theta` of any type.
double rope_theta(const RopeOptions& rope);
// Checks all values; errors begin with the key ("model.rope.factor: "). `rotary_dim`: the elements of a head
// that are rotated.
Status check_rope(const RopeOptions& rope, int64_t rotary_dim);

}  // namespace ostro::models
