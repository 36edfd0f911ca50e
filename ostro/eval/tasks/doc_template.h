// DocTemplate: the value of doc_to_text and similar keys: the name of a field of a document, or a Jinja
// template over its fields.
#pragma once

#include <optional>
#include <string>

#include "ostro/chat/run/template.h"
#include "ostro/eval/tasks/documents.h"

namespace ostro::eval {

// Templates are rendered as chat templates are (docs/guide/chat.md), but a missing field is an error, and a
// line end at the end stays.
class DocTemplate {
 public:
  // `key` begins errors: "tasks.arc.doc_to_text".
  static Result<DocTemplate> parse(std::string source, std::string key);

  // The text for a document. Errors: a field that is missing, or whose value is not a text or a number.
  Result<std::string> text(const Document& document) const;
  // The value for a document with its type: that of a field or of a single {{expression}}; of other
  // templates, a text. Errors: as text().
  Result<chat::jinja::Value> value(const Document& document) const;
  bool is_field(const Document& document) const;
  // True if the source has no tag of a template.
  bool is_plain() const { return source_.find("{{") == source_.npos && source_.find("{%") == source_.npos; }
  const std::string& source() const { return source_; }

 private:
  DocTemplate(std::string source, std::string key) : source_(std::move(source)), key_(std::move(key)) {}
  Result<std::string> render(const chat::jinja::Template& what, const Document& document) const;

  std::string source_, key_;
  std::optional<chat::jinja::Template> template_;    // of the whole text
  std::optional<chat::jinja::Template> expression_;  // of a single {{expression}}: prints its value as JSON
};

}  // namespace ostro::eval
