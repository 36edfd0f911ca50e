// merged_parameters: a model without its adapters, which are added to the weights.
#pragma once

#include <functional>
#include <memory>

#include "ostro/trained/loaded_model.h"

namespace ostro::trained {

// The parameters of the model's base, f32, with the adapters added; in the order of train::base_model. For a
// model without adapters: its parameters in f32. `make_engine` is called only when there is something to add
// or to convert.
Result<std::vector<runtime::Buffer>> merged_parameters(
    const LoadedModel& model, const std::function<Result<std::unique_ptr<runtime::Engine>>()>& make_engine);

}  // namespace ostro::trained
