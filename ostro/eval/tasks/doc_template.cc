#include "ostro/eval/tasks/doc_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ostro/chat/value/from_json.h"
#include "ostro/chat/value/text.h"
#include "ostro/config/options.h"

namespace ostro::eval {

using chat::jinja::Template;
using chat::jinja::Value;

namespace {

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// The expression of "{{ expression }}"; empty where there is more.
std::string single_expression(const std::string& source) {
  const std::string_view text = chat::jinja::strip(source, chat::jinja::Side::kBoth);
  if (!text.starts_with("{{") || !text.ends_with("}}") || text.size() < 5) return "";
  std::string_view inner = text.substr(2, text.size() - 4);
  if (inner.find("{{") != inner.npos || inner.find("}}") != inner.npos || inner.find("{%") != inner.npos)
    return "";
  if (inner.starts_with('-')) inner.remove_prefix(1);
  if (inner.ends_with('-')) inner.remove_suffix(1);
  return std::string(inner);
}

std::vector<std::string> field_names(const Document& document) {
  std::vector<std::string> names;
  for (const auto& [name, value] : document.fields.as_mapping().items()) names.push_back(to_text(name));
  return names;
}

}  // namespace

Result<DocTemplate> DocTemplate::parse(std::string source, std::string key) {
  DocTemplate out(source, key);
  // jinja2 drops the line end at the end of a template.
  ASSIGN_OR_RETURN(out.template_, Template::parse(source.ends_with('\n') ? source + "{{''}}" : source, key));
  if (const std::string inner = single_expression(source); !inner.empty()) {
    ASSIGN_OR_RETURN(out.expression_, Template::parse("{{ (" + inner + ") | tojson }}", key));
  }
  return out;
}

bool DocTemplate::is_field(const Document& document) const {
  return document.fields.as_mapping().find(Value(source_)) != nullptr;
}

Result<std::string> DocTemplate::render(const Template& what, const Document& document) const {
  auto rendered = what.render(document.fields.as_mapping(), {.strict_undefined = true});
  if (!rendered.ok())
    return rendered.error().with_context(document.place + ": document with the fields " +
                                         fmt::format("{}", fmt::join(field_names(document), ", ")));
  return std::move(rendered->text);
}

Result<Value> DocTemplate::value(const Document& document) const {
  if (const Value* field = document.fields.as_mapping().find(Value(source_))) return *field;
  if (is_name(source_))
    return invalid_argument(
        fmt::format("{}: {} has no field \"{}\"; the nearest is \"{}\" (a template has {{{{field}}}} in it)",
                    key_, document.place, source_, config::nearest_name(source_, field_names(document))));
  if (expression_) {
    ASSIGN_OR_RETURN(const std::string json, render(*expression_, document));
    return chat::jinja::from_json(json);
  }
  ASSIGN_OR_RETURN(const std::string rendered, render(*template_, document));
  return Value(rendered);
}

Result<std::string> DocTemplate::text(const Document& document) const {
  if (!is_field(document) && !is_name(source_)) return render(*template_, document);
  ASSIGN_OR_RETURN(const Value found, value(document));
  if (found.is_text()) return found.as_text();
  if (found.is_int() || found.is_float()) return to_text(found);
  return invalid_argument(fmt::format("{}: {}: field \"{}\" is a {}, not a text or a number", key_,
                                      document.place, source_, found.type_name()));
}

}  // namespace ostro::eval
