// ChatTemplate: turns a conversation into the text that a model is trained on, and marks the parts of it that
// the assistant wrote. The rules are those of apply_chat_template in Hugging Face transformers.
#pragma once

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

// The input of a template.
struct Conversation {
  jinja::Value messages;   // a list of dicts
  jinja::Value tools;      // a list of dicts, the JSON text of one, or None
  jinja::Value documents;  // the same
  jinja::Value more;       // a dict of further variables for the template, or None
};

struct RenderedChat {
  std::string text;
  // the assistant's text: byte ranges [begin, end) of `text`, in order
  std::vector<std::pair<size_t, size_t>> assistant;
};

// The chat templates of one tokenizer. Immutable; threads may share one.
class ChatTemplate {
 public:
  // Finds the template of a tokenizer. Places, in this order: `given` (a template, or the path of a file that
  // holds one); chat_template.jinja and additional_chat_templates/ beside the tokenizer.json at
  // `tokenizer_path` (a file or directory); "chat_template" in tokenizer_config.json (a text, or a list of
  // {name, template}). If there are several templates, "tool_use" is used for conversations with tools and
  // "default" for all others. kNotFound when there is none.
  static Result<ChatTemplate> load(io::FileSystem& fs, const std::string& tokenizer_path,
                                   const tokenizer::Tokenizer& tokenizer,
                                   const std::optional<std::string>& given);

  // Renders the conversation as text. With `add_generation_prompt` the text ends with the beginning of an
  // answer of the assistant. Errors: no messages; messages that are not dicts; errors that the template
  // raises; a limit of `options` that is exceeded.
  Result<RenderedChat> render(const Conversation& conversation, bool add_generation_prompt = false,
                              const jinja::RenderOptions& options = {}) const;

  // Renders the conversation without a generation prompt, with `assistant` filled in. The spans come from
  // {% generation %} blocks. If the template has none, the span of an assistant message is the text that the
  // message adds, where this is exact (docs/guide/chat.md); otherwise the error says what to do.
  Result<RenderedChat> render_with_spans(const Conversation& conversation) const;

  // Canonical JSON of the templates and of the special tokens that are passed to them.
  std::string identity() const;

  // Whether the text of a template has the word `name`: without it a variable of this name changes nothing.
  bool mentions(std::string_view name) const;

  // Whether a template gets `name` from the tokenizer or from the program, so that its text follows from
  // identity() and the conversation alone: a special token, also one that this tokenizer has not; a function;
  // "messages", "tools", "documents" or "add_generation_prompt". A conversation's `more` would replace it.
  bool gives(std::string_view name) const;

  // Writes chat_template.jinja (and additional_chat_templates/tool_use.jinja) into a directory, at the paths
  // that load() and Hugging Face transformers read.
  Status save(io::FileSystem& fs, const std::string& directory) const;

 private:
  struct Named {
    std::string name, source;
    jinja::Template parsed;
  };
  Status add(std::string name, std::string source, const std::string& place);
  const jinja::Template& choose(const Conversation& conversation) const;
  Result<RenderedChat> spans_by_prefixes(const Conversation& conversation) const;

  std::vector<Named> templates_;  // the default one is first
  std::vector<std::pair<std::string, std::string>> special_tokens_;
};

}  // namespace ostro::chat
