// programs_of: which forward programs a model and its adapters have, found without reading their weights.
#pragma once

#include <string>
#include <vector>

#include "ostro/serve/model/adapters.h"

namespace ostro::serve {

// What ModelFacts say of it.
struct ServedProgram {
  std::string forward;
  int64_t context = 0;
};

// Those that load_with_adapters of the same model would have, in its order: the model itself, then each
// adapter. Costs reading the configuration and the tokenizer, and tracing one step. Errors: those of
// trained::describe_model and of an adapter's configuration; a model without a cached step.
Result<std::vector<ServedProgram>> programs_of(const Context& context, const std::string& checkpoint,
                                               const std::vector<NamedAdapter>& adapters,
                                               const AdapterOptions& options);

}  // namespace ostro::serve
