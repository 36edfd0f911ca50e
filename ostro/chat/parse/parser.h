// Parses the source of a template to a syntax tree.
#pragma once

#include <string_view>

#include "ostro/chat/parse/ast.h"

namespace ostro::chat::jinja {

struct ParsedTemplate {
  Body body;
  bool has_generation = false;  // the template contains {% generation %}
};

// Throws TemplateError. `source` must be valid UTF-8.
ParsedTemplate parse(std::string_view source);

}  // namespace ostro::chat::jinja
