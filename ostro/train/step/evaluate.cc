#include "ostro/train/step/evaluate.h"

#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"

namespace ostro::train {

ir::Program held_out_program(const TrainConfig& config, int64_t vocab) {
  return make_eval_program(config, run_model(config, vocab, ModelUse::kEvaluation));
}

Result<HeldOut> HeldOut::create(const TrainConfig& config, int64_t vocab, runtime::Engine& engine,
                                const batches::DataSet& stores) {
  ASSIGN_OR_RETURN(HeldOutText text, HeldOutText::create(config, stores));
  return create(std::move(text), held_out_program(config, vocab), engine);
}

Result<HeldOut> HeldOut::create(HeldOutText text, const ir::Program& program, runtime::Engine& engine) {
  ASSIGN_OR_RETURN(EvalResults<size_t> at, signature_of<EvalResults>(program, Side::kResults, {}));
  ASSIGN_OR_RETURN(auto compiled, engine.compile(program));
  return HeldOut(std::move(text), std::move(at), std::move(compiled), engine.memory());
}

Result<HeldOutLoss> HeldOut::evaluate(const std::vector<runtime::Buffer>& params,
                                      const OnBatch& on_batch) const {
  ASSIGN_OR_RETURN(const std::vector<runtime::Buffer> at_engine, runtime::all_to(params, *memory_));
  std::vector<BatchLoss> losses;
  for (int64_t i = 0; i < text_.batches(); ++i) {
    ASSIGN_OR_RETURN(const batches::Batch batch, text_.batch(i));
    ASSIGN_OR_RETURN(std::vector<runtime::Buffer> list,
                     program_->run(as_list(LeafParams<runtime::Buffer>{at_engine, to_arrays(batch)})));
    const EvalResults<runtime::Buffer> results = read_fields(at_, std::move(list));
    if (on_batch) {
      ASSIGN_OR_RETURN(const runtime::Buffer rows, results.rows.to_host());
      RETURN_IF_ERROR(on_batch(batch, rows));
    }
    ASSIGN_OR_RETURN(losses.emplace_back(), batch_loss(results.sums));
  }
  // A device has the memory for the steps that follow.
  if (memory_ != &runtime::host_memory()) program_->release();
  return text_.loss(losses);
}

}  // namespace ostro::train
