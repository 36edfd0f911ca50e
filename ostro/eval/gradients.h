// The gradient of one whole batch, outside training: for comparison with other frameworks.
#pragma once

#include <string>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/step/step.h"

namespace ostro::eval {

struct MeanGradients {
  float loss = 0;     // sum of the losses over W, as a step reports it
  double weight = 0;  // W: tokens that count
  // Of the mean loss, f32, in the order of the parameters: the step's sum over all leaves times f32(1/W),
  // before clipping.
  std::vector<runtime::Buffer> gradients;
};

// The leaf program on every leaf of the batch, joined by the step's tree. `remat` as
// runtime::CompileOptions::remat.
Result<MeanGradients> mean_gradients(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                     const std::string& remat, const std::vector<runtime::Buffer>& params,
                                     const train::BatchArrays& batch);

}  // namespace ostro::eval
