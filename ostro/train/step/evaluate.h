// Loss on held-out text: what a run reports while it trains and `ostro eval` prints.
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

// Of one component.
struct HeldOutPart {
  std::string component;
  double loss = 0;                      // nats a token, without z-loss
  std::optional<double> bits_per_byte;  // when every token of its text counts
  double tokens = 0;                    // that counted
};
struct HeldOutLoss {
  double loss = 0;                      // nats a token, over all components
  std::optional<double> bits_per_byte;  // over the components that have it
  double tokens = 0;                    // 0: none counted, and the loss says nothing
  std::vector<HeldOutPart> parts;       // of a configuration with components, those with tokens that count
  std::vector<std::string> uncounted;   // those with held-out text, but without such tokens
};

// "the held-out text of component web has no token that counts; ...": of one with `uncounted`.
std::string uncounted_text(const HeldOutLoss& loss);

// The held-out text of a configuration and the program that evaluates a batch of it. Refers to the engine.
class HeldOut {
 public:
  // Errors: no held-out text (as data::EvalLoader::create), a program that does not compile.
  static Result<HeldOut> create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const data::DataSet& stores);

  // Sees each batch with its losses f32 [batch, pos]: the bits of the training loss of the same rows.
  using OnBatch = std::function<Status(const data::Batch&, const runtime::Buffer& losses)>;

  // The mean over all batches, in their order; sums in f64. Text without a token that counts is no error
  // here.
  Result<HeldOutLoss> evaluate(const std::vector<runtime::Buffer>& params,
                               const OnBatch& on_batch = {}) const;

 private:
  HeldOut(std::vector<data::EvalLoader> loaders, std::unique_ptr<runtime::Executable> program)
      : loaders_(std::move(loaders)), program_(std::move(program)) {}

  std::vector<data::EvalLoader> loaders_;  // at least one
  std::unique_ptr<runtime::Executable> program_;
};

}  // namespace ostro::train
