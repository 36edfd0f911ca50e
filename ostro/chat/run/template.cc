#include "ostro/chat/run/template.h"

#include <fmt/core.h>

#include "ostro/chat/parse/parser.h"
#include "ostro/chat/run/interpreter.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::chat::jinja {
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
  if (!tokenizer::is_valid_utf8(source)) return invalid_argument(fmt::format("{}: not valid UTF-8", name));
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

}  // namespace ostro::chat::jinja
