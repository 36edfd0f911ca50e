// merged_parameters: a model without its adapters, which are added to the weights.
#pragma once

#include <vector>

#include "ostro/context/context.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

// The parameters of the model before it got adapters, f32, with the adapters added; in the order of
// train::base_model. Of a model without adapters: the same parameters, f32.
// `make_engine` is called only when there is something to add or to convert.
Result<std::vector<runtime::Buffer>> merged_parameters(const LoadedModel& model,
                                                       const MakeEngine& make_engine);

}  // namespace ostro::trained
