// From a template's text to its tree.
#pragma once

#include <string_view>

#include "ostro/chat/parse/ast.h"

namespace ostro::chat::jinja {

struct ParsedTemplate {
  Body body;
  bool has_generation = false;  // it holds {% generation %}
};

// Throws TemplateError. `source` must be valid UTF-8.
ParsedTemplate parse(std::string_view source);

}  // namespace ostro::chat::jinja
