#include "ostro/eval/score/chat_prompts.h"

#include <fmt/format.h>

#include "ostro/chat/value/from_json.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/chat/value/text.h"

namespace ostro::eval {

using chat::jinja::Value;

namespace {

// A prompt fits into a context, so its template needs less than one that formats rows for training; and while
// it runs, requests of a server wait for it. These take some tenths of a second.
constexpr int64_t kPromptSteps = 2'000'000;

}  // namespace

Result<ChatPrompts> ChatPrompts::load(io::FileSystem& fs, const std::string& tokenizer_path,
                                      const tokenizer::Tokenizer& tokenizer) {
  ChatPrompts out;
  auto found = chat::ChatTemplate::load(fs, tokenizer_path, tokenizer, std::nullopt);
  if (found.ok())
    out.template_ = std::make_shared<chat::ChatTemplate>(std::move(*found));
  else if (found.error().code() == ErrorCode::kNotFound)
    out.missing_ = found.error().message();
  else
    return found.error();
  return out;
}

Result<std::string> ChatPrompts::render(const chat::Conversation& conversation,
                                        bool add_generation_prompt) const {
  if (!template_) return not_found(missing_);
  ASSIGN_OR_RETURN(chat::RenderedChat chat,
                   template_->render(conversation, add_generation_prompt, {.max_steps = kPromptSteps}));
  return std::move(chat.text);
}

Result<std::string> ChatPrompts::of_user(std::string_view text) const {
  auto message = std::make_shared<chat::jinja::Mapping>();
  message->set("role", Value("user"));
  message->set("content", Value(std::string(text)));
  return render({.messages = Value::list({Value(std::shared_ptr<const chat::jinja::Mapping>(message))})},
                true);
}

// Without a generation prompt the text is cut behind the content of the last message, as transformers does
// with continue_final_message: what the template writes there would end the message.
Result<std::string> ChatPrompts::of_messages(std::string_view messages, std::string_view tools,
                                             bool add_generation_prompt, std::string_view more) const {
  chat::Conversation conversation;
  ASSIGN_OR_RETURN(conversation.messages, chat::jinja::from_json(messages));
  if (!tools.empty()) {
    ASSIGN_OR_RETURN(conversation.tools, chat::jinja::from_json(tools));
  }
  if (!more.empty()) {
    ASSIGN_OR_RETURN(conversation.more, chat::jinja::from_json(more));
  }
  ASSIGN_OR_RETURN(std::string text, render(conversation, add_generation_prompt));
  if (add_generation_prompt) return text;
  const Value& last = conversation.messages.as_sequence().items.back();
  const Value* content = last.as_mapping().find("content");
  if (content == nullptr || !content->is_text())
    return invalid_argument("the last message has no \"content\" that is a text, so that it cannot go on");
  const std::string_view end = chat::jinja::strip(content->as_text(), chat::jinja::Side::kBoth);
  const size_t at = text.rfind(end);
  if (at == std::string::npos)
    return invalid_argument(
        "the chat template does not write the last message as it is, so that it cannot go on");
  // White space at its end stays if the template writes it.
  const std::string_view whole = chat::jinja::strip(content->as_text(), chat::jinja::Side::kLeft);
  text.resize(at + (std::string_view(text).substr(at).starts_with(whole) ? whole : end).size());
  return text;
}

}  // namespace ostro::eval
