// named_components, only_component: find the components of a configuration that a command works on.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/options/options.h"

namespace ostro::data {

// The component called `name` (the value of --component), or all components when `name` is empty. Error:
// kInvalidArgument when no component has this name.
Result<std::vector<Component>> named_components(std::vector<Component> components, const std::string& name);

// The component of a list that has only one. Error: kInvalidArgument when there are several; the message says
// that --component chooses one.
Result<Component> only_component(const std::vector<Component>& components);

}  // namespace ostro::data
