// ModelChoices, builtin_models: the kinds of models that a configuration can name with model.type.
#pragma once

#include <memory>
#include <vector>

#include "ostro/config/open_section.h"

namespace ostro::models {

// Each is a ModelOptionsOf<T, M> with its default values; the first one is the default.
using ModelChoices = std::vector<std::shared_ptr<const config::SectionValue>>;

// The models of this repository: every family of decoders. A program with models of its own appends them and
// passes all to cli_main.
ModelChoices builtin_models();

}  // namespace ostro::models
