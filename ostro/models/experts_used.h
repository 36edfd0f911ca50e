// How much of a mixture of experts a token uses.
#pragma once

#include <cstdint>

#include "ostro/models/model_functions.h"

namespace ostro::models {

struct ExpertsUsed {
  int64_t experts = 0;  // of each layer; 0: the model is no mixture
  int64_t per_token = 0;
};

// How many of a model's parameters take part in computing one token: all but those of the experts that it
// does not go to.
int64_t active_parameters(const ModelFunctions& model, const ExpertsUsed& used);

}  // namespace ostro::models
