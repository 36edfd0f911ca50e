// Jinja templates, as far as chat templates need them: what jinja2 renders with trim_blocks, lstrip_blocks,
// loop controls and {% generation %} blocks, in transformers' immutable sandbox. docs/chat.md lists what is
// there.
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
  // A template that needs more is refused: it came with a tokenizer and may be anything.
  int64_t max_steps = 20'000'000;      // expressions and statements evaluated
  size_t max_bytes = size_t{1} << 30;  // texts and lists made
  std::optional<int64_t> now =
      std::nullopt;  // strftime_now's seconds since 1970 (UTC); without, no such function
};

struct Rendered {
  std::string text;
  // What {% generation %} blocks printed: [begin, end) in bytes of the text, in order.
  std::vector<std::pair<size_t, size_t>> generations;
};

struct ParsedTemplate;

// Immutable; threads may share one.
class Template {
 public:
  // `name` begins every error. Errors name the line and what is wrong there.
  static Result<Template> parse(std::string_view source, std::string_view name);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // Whether it says with {% generation %} what the assistant wrote.
  bool has_generation() const;

  Result<Rendered> render(const Mapping& context, const RenderOptions& options = {}) const;

 private:
  Template(std::string name, std::unique_ptr<const ParsedTemplate> parsed);
  std::string name_;
  std::unique_ptr<const ParsedTemplate> parsed_;
};

}  // namespace ostro::chat::jinja
