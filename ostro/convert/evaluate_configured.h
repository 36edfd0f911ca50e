// evaluate_configured, counted_loss: the loss of a checkpoint on the held-out text of a configuration.
#pragma once

#include <string>
#include <vector>

#include "ostro/convert/configured_model.h"
#include "ostro/train/step/evaluate.h"

namespace ostro::convert {

struct HeldOutEvaluation {
  train::HeldOutLoss loss;
  int64_t step = 0;        // of the checkpoint
  std::string path, name;  // of the checkpoint and of its state
};

// `on_batch`, if not empty, sees every batch. A warning names components whose text does not count. Errors:
// those of compiling and running; there is no held-out text, or no token of it counts.
Result<HeldOutEvaluation> evaluate_configured(const ConfiguredModel& of,
                                              const train::HeldOut::OnBatch& on_batch = {});

// The loss of parameters on held-out texts, with that warning and the last of these errors.
Result<train::HeldOutLoss> counted_loss(const train::HeldOut& held_out,
                                        const std::vector<runtime::Buffer>& parameters,
                                        const train::HeldOut::OnBatch& on_batch = {});

}  // namespace ostro::convert
