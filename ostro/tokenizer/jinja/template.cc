#include "ostro/tokenizer/jinja/template.h"

#include <fmt/core.h>

#include "ostro/tokenizer/jinja/interpreter.h"
#include "ostro/tokenizer/jinja/parser.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer::jinja {
namespace {

Error as_error(const std::string& name, const TemplateError& e) {
  return invalid_argument(fmt::format("{}: line {}: {}", name, e.line, e.what()));
}

}  // namespace

Template::Template(std::string name, std::unique_ptr<const ParsedTemplate> parsed)
    : name_(std::move(name)), parsed_(std::move(parsed)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source, std::string_view name) {
  if (!is_valid_utf8(source)) return invalid_argument(fmt::format("{}: not valid UTF-8", name));
  try {
    return Template(std::string(name), std::make_unique<const ParsedTemplate>(jinja::parse(source)));
  } catch (const TemplateError& e) {
    return as_error(std::string(name), e);
  }
}

bool Template::has_generation() const { return parsed_->has_generation; }

Result<Rendered> Template::render(const Mapping& context, const RenderOptions& options) const {
  try {
    return Interpreter(context, options).run(parsed_->body);
  } catch (const TemplateError& e) {
    return as_error(name_, e);
  }
}

}  // namespace ostro::tokenizer::jinja
