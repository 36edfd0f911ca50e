// A model without its adapters: they are added to the weights.
#pragma once

#include "ostro/eval/loaded_model.h"

namespace ostro::eval {

// The parameters of the model before it got adapters, f32, with the adapters added; in the order of
// train::base_model. Of a model without adapters: the same parameters, f32.
Result<std::vector<runtime::Buffer>> merged_parameters(const LoadedModel& model, runtime::Engine& engine);

}  // namespace ostro::eval
