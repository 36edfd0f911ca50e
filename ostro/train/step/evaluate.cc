#include "ostro/train/step/evaluate.h"

#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

ir::Program held_out_program(const TrainConfig& config, int64_t vocab) {
  return make_eval_program(config, run_model(config, vocab, ModelUse::kEvaluation));
}

Result<HeldOut> HeldOut::create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const data::DataSet& stores) {
  ASSIGN_OR_RETURN(HeldOutText text, HeldOutText::create(config, stores));
  return create(std::move(text), held_out_program(config, vocab), engine);
}

Result<HeldOut> HeldOut::create(HeldOutText text, const ir::Program& program, runtime::Engine& engine) {
  ASSIGN_OR_RETURN(auto compiled, engine.compile(program));
  return HeldOut(std::move(text), std::move(compiled), engine.memory());
}

Result<HeldOutLoss> HeldOut::evaluate(const std::vector<runtime::Buffer>& params,
                                      const OnBatch& on_batch) const {
  ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> at_engine, runtime::all_to(params, *memory_));
  std::vector<BatchLoss> losses;
  for (int64_t i = 0; i < text_.batches(); ++i) {
    ASSIGN_OR_RETURN(const data::Batch batch, text_.batch(i));
    std::vector<runtime::Buffer> inputs = at_engine;
    for (runtime::Buffer& b : to_arrays(batch)) inputs.push_back(std::move(b));
    ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> results, program_->run(std::move(inputs)));
    if (on_batch) {
      ASSIGN_OR_RETURN(const runtime::Buffer of_tokens, results[0].to_host());
      RETURN_IF_ERROR(on_batch(batch, of_tokens));
    }
    ASSIGN_OR_RETURN(losses.emplace_back(), batch_loss(std::span(results).subspan(1)));
  }
  return text_.loss(losses);
}

}  // namespace ostro::train
