// Loss on held-out text: what a run reports while it trains and `ostro eval` prints.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ostro/data/loader.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/config.h"

namespace ostro::train {

struct HeldOutLoss {
  double loss = 0;  // nats a token, without z-loss
  double bits_per_byte = 0;
  double tokens = 0;  // that counted
};

// The held-out text of a configuration and the program that evaluates a batch of it. Refers to the engine.
class HeldOut {
 public:
  // Errors: no held-out text (as data::EvalLoader::create), a program that does not compile.
  static Result<HeldOut> create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                std::shared_ptr<const data::TokenStore> store);

  // Sees each batch with its losses f32 [batch, pos]: the bits of the training loss of the same rows.
  using OnBatch = std::function<Status(const data::Batch&, const runtime::Buffer& losses)>;

  // The mean over all batches, in their order; sums in f64.
  Result<HeldOutLoss> evaluate(const std::vector<runtime::Buffer>& params,
                               const OnBatch& on_batch = {}) const;

 private:
  HeldOut(data::EvalLoader loader, std::unique_ptr<runtime::Executable> program)
      : loader_(std::move(loader)), program_(std::move(program)) {}

  data::EvalLoader loader_;
  std::unique_ptr<runtime::Executable> program_;
};

}  // namespace ostro::train
