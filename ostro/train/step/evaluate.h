// Loss on held-out text. A run reports it while it trains, and `ostro eval` prints it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/batch/eval_loader.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"

namespace ostro::train {

// The loss of one data component.
struct HeldOutPart {
  std::string component;
  double loss = 0;                      // nats per token, without z-loss
  std::optional<double> bits_per_byte;  // only if every token of its text counts in the loss
  double tokens = 0;                    // sum of the loss weights: the tokens that count
};
struct HeldOutLoss {
  double loss = 0;                      // nats per token, over all components
  std::optional<double> bits_per_byte;  // over the components that have a value
  double tokens = 0;                    // tokens that counted; 0: `loss` has no meaning
  // One entry per component with tokens that count. Empty for a configuration without components.
  std::vector<HeldOutPart> parts;
  std::vector<std::string> uncounted;  // components whose held-out text has no token that counts
};

// "the held-out text of component web has no token that counts; ...". `loss.uncounted` must not be empty.
std::string uncounted_text(const HeldOutLoss& loss);

// The held-out text of a configuration, and the compiled program that evaluates a batch of it. The engine
// must outlive it.
class HeldOut {
 public:
  // Errors: there is no held-out text (as data::EvalLoader::create); the program does not compile.
  static Result<HeldOut> create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const data::DataSet& stores);

  // Called with each batch and its losses, f32 [batch, pos]. The losses have the same bits as the training
  // loss of the same rows.
  using OnBatch = std::function<Status(const data::Batch&, const runtime::Buffer& losses)>;

  // The mean loss over all batches, in their order, with sums in f64. Text without a token that counts is not
  // an error here: see HeldOutLoss::uncounted.
  Result<HeldOutLoss> evaluate(const std::vector<runtime::Buffer>& params,
                               const OnBatch& on_batch = {}) const;

 private:
  HeldOut(std::vector<data::EvalLoader> loaders, std::unique_ptr<runtime::Executable> program)
      : loaders_(std::move(loaders)), program_(std::move(program)) {}

  std::vector<data::EvalLoader> loaders_;  // at least one
  std::unique_ptr<runtime::Executable> program_;
};

}  // namespace ostro::train
