// Format chat: a chat template turns messages into text. The assistant's parts are the targets.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::data {
namespace {

using chat::Conversation;
using chat::RenderedChat;
using chat::jinja::Value;

class ChatFormatter : public RowFormatter {
 public:
  ChatFormatter(const FormatContext& context, const ChatFormat& options, chat::ChatTemplate chat_template)
      : context_(context), options_(options), template_(std::move(chat_template)) {}

  Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const override {
    RenderedChat chat;
    ASSIGN_OR_RETURN(FormattedRow out, rendered(row, chat));
    if (out.skip != RowSkip::kNone) return out;
    if (options_.mask_user_turns) {
      RETURN_IF_ERROR(encode_with_spans(context_.tokenizer, encoder, out.content, chat.assistant, out));
    } else {
      encoder.encode(out.content, {.add_special_tokens = false, .parse_special_tokens = true}, out.ids);
    }
    settle_weights(out);
    return out;
  }

  bool has_weights() const override { return options_.mask_user_turns; }

  std::string identity() const override {
    return nlohmann::json{{"type", "chat"},
                          {"messages_field", options_.messages_field},
                          {"mask_user_turns", options_.mask_user_turns},
                          {"template", nlohmann::json::parse(template_.identity())}}
        .dump();
  }

 private:
  Result<FormattedRow> rendered(const Row& row, RenderedChat& chat) const {
    FormattedRow out;
    ASSIGN_OR_RETURN(
        const Value object,
        row_object(row, "chat", {options_.messages_field, "tools", "documents", "chat_template_kwargs"},
                   out.repaired));
    Conversation conversation;
    ASSIGN_OR_RETURN(conversation.messages,
                     row_field(object, options_.messages_field, context_.key + ".messages_field"));
    if (conversation.messages.is_sequence() && conversation.messages.as_sequence().items.empty()) {
      out.skip = RowSkip::kEmpty;
      return out;
    }
    const auto optional = [&](const char* name) {
      const Value* found = object.as_mapping().find(name);
      return found == nullptr ? Value() : *found;
    };
    conversation.tools = optional("tools");
    conversation.documents = optional("documents");
    conversation.more = optional("chat_template_kwargs");
    ASSIGN_OR_RETURN(chat, options_.mask_user_turns ? template_.render_with_spans(conversation)
                                                    : template_.render(conversation));
    out.content = chat.text;
    if (out.content.empty()) out.skip = RowSkip::kEmpty;
    return out;
  }

  FormatContext context_;
  ChatFormat options_;
  chat::ChatTemplate template_;
};

}  // namespace

std::unique_ptr<RowFormatter> make_chat_formatter(const FormatContext& context, const ChatFormat& options,
                                                  chat::ChatTemplate chat_template) {
  return std::make_unique<ChatFormatter>(context, options, std::move(chat_template));
}

}  // namespace ostro::data
