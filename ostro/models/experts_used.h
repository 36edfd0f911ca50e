// ExpertsUsed, active_parameters: the part of a mixture of experts that a token uses. Pure functions.
#pragma once

#include <cstdint>

#include "ostro/models/model_functions.h"

namespace ostro::models {

// The number of experts in each layer, and of those that a token goes to.
struct ExpertsUsed {
  int64_t experts = 0;  // of each layer; 0: the model is no mixture
  int64_t per_token = 0;
};

// Returns the number of elements of a model's parameters that the computation of one token uses: all but
// those of the experts that it does not go to. A model with experts needs used.experts above 0.
int64_t active_parameters(const ModelFunctions& model, const ExpertsUsed& used);

}  // namespace ostro::models
