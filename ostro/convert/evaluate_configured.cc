#include "ostro/convert/evaluate_configured.h"

#include "ostro/base/log.h"

namespace ostro::convert {

Result<HeldOutEvaluation> evaluate_configured(const ConfiguredModel& of,
                                              const train::HeldOut::OnBatch& on_batch) {
  ASSIGN_OR_RETURN(
      const train::HeldOut held_out,
      train::HeldOut::create(of.config, of.data.tokenizer->vocab_size(), *of.engine, *of.data.stores));
  HeldOutEvaluation out{{}, of.parameters.step, of.parameters.path, of.parameters.name};
  ASSIGN_OR_RETURN(out.loss, counted_loss(held_out, of.parameters.values, on_batch));
  return out;
}

Result<train::HeldOutLoss> counted_loss(const train::HeldOut& held_out,
                                        const std::vector<runtime::Buffer>& parameters,
                                        const train::HeldOut::OnBatch& on_batch) {
  ASSIGN_OR_RETURN(train::HeldOutLoss loss, held_out.evaluate(parameters, on_batch));
  if (loss.tokens == 0) return invalid_argument(train::uncounted_text(loss));
  if (!loss.uncounted.empty()) log_warning(train::uncounted_text(loss));
  return loss;
}

}  // namespace ostro::convert
