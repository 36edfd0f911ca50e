// Choosing a component: which of a configuration's components a command is about.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/options/options.h"

namespace ostro::data {

// Of `components` the one of the name that --component gives, or with an empty name all. Errors: none has it.
Result<std::vector<Component>> named_components(std::vector<Component> components, const std::string& name);

// The only one of these. Errors: they are several, of which --component would choose one.
Result<Component> only_component(const std::vector<Component>& components);

}  // namespace ostro::data
