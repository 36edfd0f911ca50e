// merged_parameters: the parameters of a model with its adapters added to the weights.
#pragma once

#include <vector>

#include "ostro/context/context.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

// Returns the parameters of the model before it got adapters, in f32, with the adapters added, in the order
// of train::base_model; for a model without adapters, its parameters in f32. `make_engine` is called only
// when there is something to add or to convert. Errors: those of the engine.
Result<std::vector<runtime::Buffer>> merged_parameters(const LoadedModel& model,
                                                       const MakeEngine& make_engine);

}  // namespace ostro::trained
