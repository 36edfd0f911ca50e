// parse: turns the source of a template into a syntax tree. A pure function.
#pragma once

#include <string_view>

#include "ostro/chat/parse/ast.h"

namespace ostro::chat::jinja {

struct ParsedTemplate {
  Body body;
  bool has_generation = false;  // the template contains {% generation %}
};

// Returns the tree of `source`, which must be valid UTF-8. Throws TemplateError for a source that is no
// template.
ParsedTemplate parse(std::string_view source);

}  // namespace ostro::chat::jinja
