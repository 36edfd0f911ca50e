// What a configuration needs to know of a model's options, whichever model it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ostro/config/open_section.h"

namespace ostro::models {

// The options of some model. A model's own struct T has the same functions without `virtual`, and a
// `static constexpr const char* kType`; ModelOptionsOf<T> wraps it.
class ModelOptions : public config::SectionValue {
 public:
  // Fills in values that follow from others and checks all; errors begin with the key ("model.num_heads: ").
  virtual Status resolve() = 0;
  // Tokens in one sequence.
  virtual int64_t seq_len() const = 0;
  // Axes that numerics.leaves may cut, in the order in which the cuts nest, with their sizes
  // (0: known only when the tokenizer is).
  virtual config::IntMap leaf_axes() const = 0;
  // Axes of parameters that numerics.cells may cut, with their sizes (0 as above).
  virtual config::IntMap cell_axes() const = 0;
};

template <class T>
class ModelOptionsOf final : public ModelOptions {
 public:
  T options;

  std::string type() const override { return T::kType; }
  void visit_options(config::OptionTable& table) override { options.visit_options(table); }
  std::unique_ptr<config::SectionValue> clone() const override {
    return std::make_unique<ModelOptionsOf>(*this);
  }
  Status resolve() override { return options.resolve(); }
  int64_t seq_len() const override { return options.seq_len; }
  config::IntMap leaf_axes() const override { return options.leaf_axes(); }
  config::IntMap cell_axes() const override { return options.cell_axes(); }
};

// The model's options as T, or nullptr when another model is configured.
template <class T>
const T* model_options_as(const ModelOptions& options) {
  const auto* wrapped = dynamic_cast<const ModelOptionsOf<T>*>(&options);
  return wrapped ? &wrapped->options : nullptr;
}

}  // namespace ostro::models
