// HeldOut: the loss on held-out text, in one process. A run reports it while it trains, and `ostro eval`
// prints it. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/held_out_text.h"

namespace ostro::train {

// The program that evaluates a batch of held-out text (make_eval_program), for a vocabulary of this size.
ir::Program held_out_program(const TrainConfig& config, int64_t vocab);

// The held-out text of a configuration, and the compiled program that evaluates a batch of it. The engine
// must outlive it.
class HeldOut {
 public:
  // Errors: there is no held-out text (as batches::EvalLoader::create); the program does not compile.
  static Result<HeldOut> create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const batches::DataSet& stores);
  // For text that the caller has opened. Error: the program does not compile.
  static Result<HeldOut> create(HeldOutText text, const ir::Program& program, runtime::Engine& engine);

  // Called with each batch and its losses, f32 [batch, pos]. A batch of pairs comes with its margins instead,
  // f64 [batch]. Both lie in the host's memory. The losses have the same bits as the training loss of the
  // same rows.
  using OnBatch = std::function<Status(const batches::Batch&, const runtime::Buffer& losses)>;

  // The loss of the text (HeldOutText::loss) with these parameters.
  Result<HeldOutLoss> evaluate(const std::vector<runtime::Buffer>& params,
                               const OnBatch& on_batch = {}) const;

 private:
  HeldOut(HeldOutText text, EvalResults<size_t> at, std::unique_ptr<runtime::Executable> program,
          runtime::Memory& memory)
      : text_(std::move(text)), at_(std::move(at)), program_(std::move(program)), memory_(&memory) {}

  HeldOutText text_;
  EvalResults<size_t> at_;
  std::unique_ptr<runtime::Executable> program_;
  runtime::Memory* memory_;  // the engine's
};

}  // namespace ostro::train
