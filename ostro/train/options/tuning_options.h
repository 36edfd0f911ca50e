// AdapterOptions: the `adapter:` section of a configuration, which chooses the parameters that are trained:
// those of the model, or low-rank adapters. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"
#include "ostro/nn/adapters.h"

namespace ostro::train {

// The model's own parameters are trained.
struct NoAdapter {
  static constexpr const char* kType = "none";
  void visit_options(config::OptionTable&) {}
  Status validate() const { return {}; }
};

// Low-rank adapters are trained, and nothing else (arXiv 2106.09685; with use_rslora 2312.03732).
struct LoraOptions {
  static constexpr const char* kType = "lora";
  int64_t rank = 8;
  double alpha = 8;
  bool use_rslora = false;
  std::optional<std::vector<std::string>> target_modules;  // null: all but the head

  void visit_options(config::OptionTable& table);
  Status validate() const;
  // The factor of (x a) b.
  double scale() const;
};

using AdapterOptions = std::variant<NoAdapter, LoraOptions>;

// The adapters that the model gets; nothing for NoAdapter.
std::optional<nn::LoraSpec> lora_spec(const AdapterOptions& options);

}  // namespace ostro::train
