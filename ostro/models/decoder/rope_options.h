// The section `rope:` of a decoder: frequencies of rotary position embedding, chosen by `type:`.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "ostro/config/options.h"

namespace ostro::models {

// Frequencies theta^(-2i/n), n being the part of head_dim that turns.
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

// YaRN: frequencies that turn often within the original context stay, those that turn seldom are divided by
// the factor, a ramp between; cos and sin are multiplied by attention_factor.
struct RopeYarnOptions {
  static constexpr const char* kType = "yarn";
  double theta = 10000;
  double factor = 4;
  int64_t original_max_position_embeddings = 4096;
  double beta_fast = 32;  // turns within the original context: from this many on nothing is stretched
  double beta_slow = 1;   // up to this many the whole factor applies
  std::optional<double> attention_factor;  // null: 0.1 ln(factor) + 1
  bool truncate = true;                    // the ends of the ramp are whole indices
  void visit_options(config::OptionTable& table);
};

using RopeOptions = std::variant<RopeDefaultOptions, RopeLinearOptions, RopeLlama3Options, RopeYarnOptions>;

double rope_theta(const RopeOptions& rope);
// All values; errors begin with the key ("model.rope.factor: ").
Status check_rope(const RopeOptions& rope);

}  // namespace ostro::models
