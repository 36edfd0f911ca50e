#include "ostro/chat/run/parameters.h"

#include <fmt/core.h>

#include <algorithm>

namespace ostro::chat::jinja {

Parameters::Parameters(const Arguments& arguments, std::string_view what,
                       std::initializer_list<std::string_view> names, size_t required)
    : what_(what), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size())
    throw TemplateError(fmt::format("{} takes at most {} arguments, {} were given", what_, names_.size(),
                                    arguments.positional.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) throw TemplateError(fmt::format("{} has no parameter '{}'", what_, name));
    const Value*& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot != nullptr) throw TemplateError(fmt::format("{} got '{}' twice", what_, name));
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr) throw TemplateError(fmt::format("{} needs '{}'", what_, names_[i]));
}

const std::string& Parameters::text(size_t i) const {
  const Value& v = value(i);
  if (v.is_undefined()) throw TemplateError(v.undefined_message());
  if (!v.is_text())
    throw TemplateError(fmt::format("{}: '{}' must be a text, not {}", what_, names_[i], v.type_name()));
  return v.as_text();
}

int64_t Parameters::integer(size_t i) const {
  const Value& v = value(i);
  if (v.is_undefined()) throw TemplateError(v.undefined_message());
  if (!v.is_int() && !v.is_bool())
    throw TemplateError(
        fmt::format("{}: '{}' must be a whole number, not {}", what_, names_[i], v.type_name()));
  return v.as_int();
}

}  // namespace ostro::chat::jinja
