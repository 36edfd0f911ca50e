// Template: a Jinja template, as far as chat templates need them. It is rendered as by jinja2 with
// trim_blocks, lstrip_blocks, loop controls and {% generation %} blocks, in the immutable sandbox of
// transformers. docs/guide/chat.md lists what is supported.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/chat/value/value.h"

namespace ostro::chat::jinja {

struct RenderOptions {
  // A template that needs more than these limits is refused, because it came with a tokenizer and is
  // untrusted.
  int64_t max_steps = 20'000'000;      // evaluated expressions and statements
  size_t max_bytes = size_t{1} << 30;  // of all texts and lists made
  std::optional<int64_t> now =
      // time for strftime_now, in seconds since 1970 (UTC); without it there is no such function
      std::nullopt;
  // Printing a missing name or key is an error, as with jinja2's StrictUndefined.
  bool strict_undefined = false;
};

struct Rendered {
  std::string text;
  // The output of {% generation %} blocks: byte ranges [begin, end) of `text`, in order.
  std::vector<std::pair<size_t, size_t>> generations;
};

// Whether every template has a function of this name: range, namespace, raise_exception and the like, also
// one that `options` leave out.
bool is_function_name(std::string_view name);

struct ParsedTemplate;

// A parsed template. Immutable; threads may share one.
class Template {
 public:
  // `name` stands at the beginning of every error. Errors name the line and what is wrong there.
  static Result<Template> parse(std::string_view source, std::string_view name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // True if the template marks the assistant's text with {% generation %}.
  bool has_generation() const;

  // The text for the variables in `context`. Errors: those of the template, with its line, and a limit of
  // `options` that is exceeded.
  Result<Rendered> render(const Mapping& context, const RenderOptions& options = {}) const;

 private:
  Template(std::string name, std::unique_ptr<const ParsedTemplate> parsed);
  std::string name_;
  std::unique_ptr<const ParsedTemplate> parsed_;
};

}  // namespace ostro::chat::jinja
