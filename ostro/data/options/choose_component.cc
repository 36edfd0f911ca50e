#include "ostro/data/options/choose_component.h"

#include <fmt/format.h>

namespace ostro::data {
namespace {

std::string names_of(const std::vector<Component>& components) {
  std::vector<std::string> names;
  for (const Component& c : components) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Result<std::vector<Component>> named_components(std::vector<Component> components, const std::string& name) {
  if (name.empty()) return components;
  const std::string names = names_of(components);
  std::erase_if(components, [&](const Component& c) { return c.name != name; });
  if (!components.empty()) return components;
  return invalid_argument(
      fmt::format("--component {}: data.components names {}", name, names.empty() ? "none" : names));
}

Result<Component> only_component(const std::vector<Component>& components) {
  if (components.size() == 1) return components[0];
  return invalid_argument(
      fmt::format("--component: needed, since data.components names {}", names_of(components)));
}

}  // namespace ostro::data
