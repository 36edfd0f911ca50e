// train_only: a model of which only some parameters are trained. A pure function.
#pragma once

#include <functional>
#include <string>

#include "ostro/models/model_functions.h"

namespace ostro::models {

// Returns the model with its trained parameters first. The others are held in the dtype in which they are
// read (`compute`, or f32 for those that are read in f32). The losses have the same bits as if they were held
// in f32, except with integer products, which quantise a matrix as it is held (docs/spec/numerics.md N20).
// When all are trained, the model is returned unchanged.
ModelFunctions train_only(ModelFunctions model,
                          const std::function<bool(const std::string& path)>& is_trained, DType compute);

}  // namespace ostro::models
