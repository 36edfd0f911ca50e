// Chat templates: a conversation as the text that a model was (or is to be) trained on, and which part of it
// the assistant wrote. The rules are those of transformers' apply_chat_template.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/chat/run/template.h"
#include "ostro/chat/value/value.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::chat {

// What a template is rendered over.
struct Conversation {
  jinja::Value messages;   // a list of dicts
  jinja::Value tools;      // a list, or None
  jinja::Value documents;  // a list, or None
  jinja::Value more;       // a dict of further names for the template, or None
};

struct RenderedChat {
  std::string text;
  std::vector<std::pair<size_t, size_t>> assistant;  // [begin, end) in bytes of the text, in order
};

// Immutable; threads may share one.
class ChatTemplate {
 public:
  // The template of a tokenizer, looked for in this order: `given` (a template, or the path of a file that
  // holds one), chat_template.jinja and additional_chat_templates/ beside the tokenizer.json at
  // `tokenizer_path` (a file or directory), "chat_template" in tokenizer_config.json (a text, or a list of
  // {name, template}). Of several, "tool_use" serves conversations with tools and "default" all others.
  // kNotFound when there is none.
  static Result<ChatTemplate> load(io::FileSystem& fs, const std::string& tokenizer_path,
                                   const tokenizer::Tokenizer& tokenizer,
                                   const std::optional<std::string>& given);

  // The conversation as text. Errors: no messages, messages that are no dicts, what the template raises.
  // `add_generation_prompt` ends it with what makes the assistant speak.
  Result<RenderedChat> render(const Conversation& conversation, bool add_generation_prompt = false) const;

  // The same with `assistant` filled in: from {% generation %} blocks, or, when the template has none, from
  // what every assistant message adds to the text before it, where that can be told exactly (docs/chat.md).
  // An error says what to do where it cannot.
  Result<RenderedChat> render_with_spans(const Conversation& conversation) const;

  // Canonical JSON of the templates and the special tokens that they see.
  std::string identity() const;

  // Writes chat_template.jinja (and additional_chat_templates/tool_use.jinja) into a directory, where load()
  // and Hugging Face transformers look for them.
  Status save(io::FileSystem& fs, const std::string& directory) const;

 private:
  struct Named {
    std::string name, source;
    jinja::Template parsed;
  };
  Status add(std::string name, std::string source, const std::string& place);
  const jinja::Template& choose(const Conversation& conversation) const;
  Result<RenderedChat> spans_by_prefixes(const Conversation& conversation) const;

  std::vector<Named> templates_;  // the default first
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace ostro::chat
