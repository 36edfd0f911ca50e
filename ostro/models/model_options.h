// ModelOptions: the interface to the options of any model, for the rest of a configuration.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ostro/config/open_section.h"
#include "ostro/models/experts_used.h"
#include "ostro/models/model_functions.h"

namespace ostro::models {

// The options of some model. A model's own struct T has the same functions without `virtual`, and either
// type() or a `static constexpr const char* kType`; ModelOptionsOf<T, M> wraps it, M being the model's
// struct.
class ModelOptions : public config::SectionValue {
 public:
  // Fills in values that follow from others and checks all; errors begin with the key ("model.num_heads: ").
  virtual Status resolve() = 0;
  // Tokens in one sequence.
  virtual int64_t seq_len() const = 0;
  // Axes that numerics.leaves may cut, in the order in which the cuts nest, with their sizes. 0: not known
  // before the tokenizer is.
  virtual config::IntMap leaf_axes() const = 0;
  // Axes of parameters that numerics.cells may cut, with their sizes (0 as above).
  virtual config::IntMap cell_axes() const = 0;
  // The experts of a mixture. T defines it with `ExpertsUsed experts_used() const`; a T without it is no
  // mixture.
  virtual ExpertsUsed experts_used() const = 0;
  // Whether its attention can have products of integers (nn::Precision::attention_slices). T defines it with
  // `bool integer_attention() const`; that of a T without it cannot.
  virtual bool integer_attention() const = 0;
  // The value of runtime::CompileOptions::remat: the values that the compiler may compute again in the
  // backward pass.
  virtual Result<std::string> remat() const = 0;
  // The model for a vocabulary, with parameters read in `compute`. Call outside any trace, after resolve(). A
  // run's model also has the adapters and frozen parameters of its config: train::run_model().
  virtual ModelFunctions functions(int64_t vocab, const nn::Precision& compute,
                                   const std::optional<nn::LoraSpec>& lora = {}) const = 0;
  // The model for evaluation: a loss is minus the log-probability, without terms that only training adds
  // (z-loss). T defines it with `T for_evaluation() const`; a T without it has the same functions for both.
  virtual ModelFunctions evaluation_functions(int64_t vocab, const nn::Precision& compute,
                                              const std::optional<nn::LoraSpec>& lora = {}) const = 0;
};

// ModelOptions by a model's own structs (above).
template <class T, class M>
class ModelOptionsOf final : public ModelOptions {
 public:
  T options;

  ModelOptionsOf() = default;
  explicit ModelOptionsOf(T value) : options(std::move(value)) {}

  std::string type() const override {
    if constexpr (requires(const T& o) { o.type(); })
      return options.type();
    else
      return T::kType;
  }
  void visit_options(config::OptionTable& table) override { options.visit_options(table); }
  std::unique_ptr<config::SectionValue> clone() const override {
    return std::make_unique<ModelOptionsOf>(*this);
  }
  Status resolve() override { return options.resolve(); }
  int64_t seq_len() const override { return options.seq_len; }
  config::IntMap leaf_axes() const override { return options.leaf_axes(); }
  config::IntMap cell_axes() const override { return options.cell_axes(); }
  ExpertsUsed experts_used() const override {
    if constexpr (requires(const T& o) { o.experts_used(); })
      return options.experts_used();
    else
      return {};
  }
  bool integer_attention() const override {
    if constexpr (requires(const T& o) { o.integer_attention(); })
      return options.integer_attention();
    else
      return false;
  }
  Result<std::string> remat() const override { return options.remat(); }
  ModelFunctions functions(int64_t vocab, const nn::Precision& compute,
                           const std::optional<nn::LoraSpec>& lora = {}) const override {
    return model_functions<M>(options, vocab, compute, lora);
  }
  ModelFunctions evaluation_functions(int64_t vocab, const nn::Precision& compute,
                                      const std::optional<nn::LoraSpec>& lora = {}) const override {
    if constexpr (requires(const T& o) { o.for_evaluation(); })
      return model_functions<M>(options.for_evaluation(), vocab, compute, lora);
    else
      return functions(vocab, compute, lora);
  }
};

// The model's options as T, or nullptr when another model is configured.
template <class T, class M>
const T* model_options_as(const ModelOptions& options) {
  const auto* wrapped = dynamic_cast<const ModelOptionsOf<T, M>*>(&options);
  return wrapped ? &wrapped->options : nullptr;
}

}  // namespace ostro::models
