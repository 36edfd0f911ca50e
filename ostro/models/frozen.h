// train_only: a model of which only some parameters are trained.
#pragma once

#include <functional>
#include <string>

#include "ostro/models/model_functions.h"

namespace ostro::models {

// Returns the model with its trained parameters first. The others are held in the dtype in which they are
// read: the losses have the same bits as if they were held in f32, except with integer products, which cut a
// matrix as it is held (docs/spec/numerics.md N20).
ModelFunctions train_only(ModelFunctions model,
                          const std::function<bool(const std::string& path)>& is_trained, DType compute);

}  // namespace ostro::models
