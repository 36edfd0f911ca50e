// ChatPrompts: prompts for a model that was trained on conversations, written by its chat template as
// transformers writes them (apply_chat_template). Used by `ostro sample --chat`, `ostro score` and tasks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/chat/chat_template.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::eval {

// Immutable, so threads may share one. For a model without a chat template every call of of_user and
// of_messages is an error (kNotFound) that says so.
class ChatPrompts {
 public:
  // No model, no template.
  ChatPrompts() = default;
  // The template beside the tokenizer (chat/chat_template.h). Errors: a template that cannot be read.
  static Result<ChatPrompts> load(io::FileSystem& fs, const std::string& tokenizer_path,
                                  const tokenizer::Tokenizer& tokenizer);

  // The prompt for one message of a user: a conversation of this message, and the beginning of an answer.
  // Errors: those of the template.
  Result<std::string> of_user(std::string_view text) const;
  // The prompt for a conversation. `messages` is the JSON text of a list of messages, `tools` that of a list
  // of tools, `more` that of an object of further variables for the template; "": none. With
  // `add_generation_prompt` the prompt ends with the beginning of an answer. Without it, the prompt ends with
  // the last message, which the model continues. Errors: JSON that cannot be read, those of the template, and
  // a last message that cannot be continued (kInvalidArgument).
  Result<std::string> of_messages(std::string_view messages, std::string_view tools,
                                  bool add_generation_prompt, std::string_view more = {}) const;
  // ChatTemplate::mentions; false without a template.
  bool mentions(std::string_view variable) const { return template_ && template_->mentions(variable); }
  // ChatTemplate::gives; false without a template.
  bool gives(std::string_view name) const { return template_ && template_->gives(name); }
  // Canonical JSON of the template and its special tokens; "" without a template.
  std::string identity() const { return template_ ? template_->identity() : ""; }

 private:
  Result<std::string> render(const chat::Conversation& conversation, bool add_generation_prompt) const;

  std::shared_ptr<const chat::ChatTemplate> template_;
  std::string missing_ = "the model has no chat template";
};

}  // namespace ostro::eval
