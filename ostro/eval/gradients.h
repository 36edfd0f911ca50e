// mean_gradients: the gradient of one whole batch, computed outside of training. Used to compare with other
// frameworks.
#pragma once

#include <string>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/step.h"

namespace ostro::eval {

struct MeanGradients {
  float loss = 0;     // sum of the losses / W, as a step reports it
  double weight = 0;  // W: sum of the loss weights (tokens that count)
  // Gradients of the mean loss, f32, in the order of the parameters. They are the step's sums over all leaves
  // times f32(1/W), before clipping.
  std::vector<runtime::Buffer> gradients;
};

// Runs the leaf program on every leaf (microbatch) and sums the results with the training step's tree.
// `remat` is as in runtime::CompileOptions::remat, `groups` is numerics.slice_partials. Error: no token of
// the batch counts.
Result<MeanGradients> mean_gradients(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                     const std::string& remat, const std::vector<runtime::Buffer>& params,
                                     const train::BatchArrays& batch, int64_t groups = 0);

}  // namespace ostro::eval
