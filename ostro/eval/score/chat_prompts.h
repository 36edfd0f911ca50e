// ChatPrompts: prompts for a model that was trained on conversations, written by its chat template as
// transformers writes them (apply_chat_template). Used by `ostro sample --chat`, `ostro score` and tasks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/chat_template.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::eval {

// Immutable. A model without a template has none, and every call is then an error that says so.
class ChatPrompts {
 public:
  // No model, no template.
  ChatPrompts() = default;
  // The template beside the tokenizer (chat/chat_template.h). Errors: a template that cannot be read.
  static Result<ChatPrompts> load(io::FileSystem& fs, const std::string& tokenizer_path,
                                  const tokenizer::Tokenizer& tokenizer);

  // What a user's message becomes: the conversation of it alone, and the beginning of an answer.
  Result<std::string> of_user(std::string_view text) const;
  // A conversation, the JSON text of a list of messages. With `add_generation_prompt` the text ends with the
  // beginning of an answer; without it, it ends with the last message, which the model goes on with. `tools`:
  // the JSON text of a list; "": none.
  Result<std::string> of_messages(std::string_view messages, std::string_view tools,
                                  bool add_generation_prompt) const;
  // Canonical JSON of the template and its special tokens; "" without a template.
  std::string identity() const { return template_ ? template_->identity() : ""; }

 private:
  Result<std::string> render(const chat::Conversation& conversation, bool add_generation_prompt) const;

  std::shared_ptr<const chat::ChatTemplate> template_;
  std::string missing_ = "the model has no chat template";
};

}  // namespace ostro::eval
