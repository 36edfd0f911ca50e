// Format preference: a prompt and two answers. The answers are the targets.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ostro/data/formats/formats.h"
#include "ostro/data/sources/pair_parts.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::data {
namespace {

using chat::Conversation;
using chat::jinja::Value;

// A text, and the bytes of it that are the answer's.
struct Side {
  std::string text;
  std::vector<std::pair<size_t, size_t>> answer;
};

// The end of the common beginning of two texts. As in TRL a space before the difference belongs to the
// answers. Never inside a character.
size_t common_beginning(const std::string& a, const std::string& b) {
  size_t end = static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  const auto continues = [](const std::string& s, size_t i) {
    return i < s.size() && (static_cast<unsigned char>(s[i]) & 0xC0) == 0x80;
  };
  while (end > 0 && (continues(a, end) || continues(b, end))) --end;
  if (end > 0 && a[end - 1] == ' ') --end;
  return end;
}

class PreferenceFormatter : public RowFormatter {
 public:
  PreferenceFormatter(const FormatContext& context, const PreferenceFormat& options,
                      std::optional<chat::ChatTemplate> chat_template)
      : context_(context), options_(options), template_(std::move(chat_template)) {}

  Result<FormattedRow> format(const Row& row, tokenizer::Encoder& encoder) const override {
    FormattedRow out;
    ASSIGN_OR_RETURN(const Value object,
                     row_object(row, "preference",
                                {options_.prompt_field, options_.chosen_field, options_.rejected_field,
                                 "tools", "documents", "chat_template_kwargs"},
                                out.repaired));
    ASSIGN_OR_RETURN(const Value chosen, answer_field(object, options_.chosen_field, "chosen_field"));
    ASSIGN_OR_RETURN(const Value rejected, answer_field(object, options_.rejected_field, "rejected_field"));
    if (chosen.is_text() != rejected.is_text())
      return invalid_argument(fmt::format(
          "field \"{}\" is a {}, but field \"{}\" is a {}; both must be texts or lists of messages",
          options_.chosen_field, chosen.type_name(), options_.rejected_field, rejected.type_name()));
    if (chat::jinja::equal(chosen, rejected))
      return invalid_argument(
          fmt::format("fields \"{}\" and \"{}\" are equal, so neither is preferred; leave the row out",
                      options_.chosen_field, options_.rejected_field));
    const bool texts = chosen.is_text();
    ASSIGN_OR_RETURN(const auto sides,
                     texts ? text_sides(object, chosen, rejected) : chat_sides(object, chosen, rejected));
    for (size_t s = 0; s < sides.size(); ++s) RETURN_IF_ERROR(append(sides[s], s, texts, encoder, out));
    out.content = sides[0].text + '\0' + sides[1].text;
    return out;
  }

  bool has_weights() const override { return true; }

  std::string identity() const override {
    nlohmann::json out{{"type", "preference"},
                       {"prompt_field", options_.prompt_field},
                       {"chosen_field", options_.chosen_field},
                       {"rejected_field", options_.rejected_field},
                       {"template", nullptr},
                       {"eos_id", context_.eos_id}};
    if (template_) out["template"] = nlohmann::json::parse(template_->identity());
    return out.dump();
  }

 private:
  Result<Value> answer_field(const Value& object, const std::string& name, const char* option) const {
    ASSIGN_OR_RETURN(Value field, row_field(object, name, fmt::format("{}.{}", context_.key, option)));
    if (field.is_text() ? !field.as_text().empty()
                        : field.is_sequence() && !field.as_sequence().items.empty())
      return field;
    return invalid_argument(
        field.is_text() || field.is_sequence()
            ? fmt::format("field \"{}\" is empty; a preference row needs both answers", name)
            : fmt::format("field \"{}\" is a {}, not a text or a list of messages ({}.{})", name,
                          field.type_name(), context_.key, option));
  }

  // Null: the row has no prompt of its own.
  const Value* prompt_field(const Value& object) const {
    const Value* prompt = object.as_mapping().find(options_.prompt_field);
    return prompt == nullptr || prompt->is_none() ? nullptr : prompt;
  }

  Error no_prompt() const {
    return invalid_argument(
        fmt::format("has no field \"{}\" ({}.prompt_field), and \"{}\" and \"{}\" have no common beginning "
                    "that could be the prompt",
                    options_.prompt_field, context_.key, options_.chosen_field, options_.rejected_field));
  }
  Error no_answer(const std::string& field) const {
    return invalid_argument(
        fmt::format("field \"{}\" holds only the beginning that both answers share", field));
  }

  Result<std::array<Side, 2>> text_sides(const Value& object, const Value& chosen,
                                         const Value& rejected) const {
    std::array<Side, 2> out{Side{chosen.as_text(), {}}, Side{rejected.as_text(), {}}};
    size_t prompt = 0;
    if (const Value* own = prompt_field(object)) {
      if (!own->is_text())
        return invalid_argument(fmt::format("field \"{}\" is a {}, but \"{}\" is a text",
                                            options_.prompt_field, own->type_name(), options_.chosen_field));
      if (own->as_text().empty())
        return invalid_argument(fmt::format("field \"{}\" is empty", options_.prompt_field));
      for (Side& side : out) side.text = own->as_text() + side.text;
      prompt = own->as_text().size();
    } else {
      prompt = common_beginning(out[0].text, out[1].text);
      if (prompt == 0) return no_prompt();
    }
    for (size_t s = 0; s < out.size(); ++s) {
      if (out[s].text.size() == prompt)
        return no_answer(s == 0 ? options_.chosen_field : options_.rejected_field);
      out[s].answer = {{prompt, out[s].text.size()}};
    }
    return out;
  }

  Result<std::array<Side, 2>> chat_sides(const Value& object, const Value& chosen,
                                         const Value& rejected) const {
    if (!template_)
      return invalid_argument(fmt::format(
          "is a conversation, and the tokenizer has no chat template; set {}.chat_template", context_.key));
    std::vector<Value> prompt, answers[2] = {chosen.as_sequence().items, rejected.as_sequence().items};
    if (const Value* own = prompt_field(object)) {
      if (!own->is_sequence())
        return invalid_argument(fmt::format("field \"{}\" is a {}, but \"{}\" is a list of messages",
                                            options_.prompt_field, own->type_name(), options_.chosen_field));
      prompt = own->as_sequence().items;
      if (prompt.empty())
        return invalid_argument(fmt::format("field \"{}\" is empty", options_.prompt_field));
    } else {
      const auto end = std::mismatch(answers[0].begin(), answers[0].end(), answers[1].begin(),
                                     answers[1].end(), chat::jinja::equal)
                           .first;
      prompt.assign(answers[0].begin(), end);
      if (prompt.empty()) return no_prompt();
      for (auto& answer : answers)
        answer.erase(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
    }
    std::array<Side, 2> out;
    for (size_t s = 0; s < out.size(); ++s) {
      const std::string& field = s == 0 ? options_.chosen_field : options_.rejected_field;
      if (answers[s].empty()) return no_answer(field);
      ASSIGN_OR_RETURN(out[s], rendered(object, prompt, answers[s], field));
    }
    return out;
  }

  // The text of the prompt's messages and the answer's. The assistant's text after the prompt counts.
  Result<Side> rendered(const Value& object, std::vector<Value> messages, const std::vector<Value>& answer,
                        const std::string& field) const {
    const auto optional = [&](const char* name) {
      const Value* found = object.as_mapping().find(name);
      return found == nullptr ? Value() : *found;
    };
    Conversation conversation{Value::list(messages), optional("tools"), optional("documents"),
                              optional("chat_template_kwargs")};
    ASSIGN_OR_RETURN(const chat::RenderedChat prompt, template_->render(conversation));
    messages.insert(messages.end(), answer.begin(), answer.end());
    conversation.messages = Value::list(std::move(messages));
    ASSIGN_OR_RETURN(chat::RenderedChat whole, template_->render_with_spans(conversation));
    if (!whole.text.starts_with(prompt.text))
      return invalid_argument(
          fmt::format("the chat template writes the prompt in another way when \"{}\" follows it; use a "
                      "template that does not rewrite earlier messages",
                      field));
    Side side{std::move(whole.text), {}};
    for (const auto& [begin, end] : whole.assistant)
      if (end > begin && begin >= prompt.text.size()) side.answer.emplace_back(begin, end);
    if (side.answer.empty())
      return invalid_argument(
          fmt::format("field \"{}\" has no message of the assistant after the prompt", field));
    return side;
  }

  // Tokenizes one text and adds it to the row.
  Status append(const Side& side, size_t which, bool ends, tokenizer::Encoder& encoder,
                FormattedRow& out) const {
    FormattedRow one;
    RETURN_IF_ERROR(encode_with_spans(context_.tokenizer, encoder, side.text, side.answer, one));
    if (ends) put_ends(context_.ends, context_.eos_id, one);
    // Nothing comes before the first token, so it is never a target, and it is where the text begins.
    if (!one.weights.empty()) one.weights[0] = 0;
    if (std::find(one.weights.begin(), one.weights.end(), 1.0f) == one.weights.end())
      return invalid_argument(fmt::format("field \"{}\" has no token that follows another",
                                          which == 0 ? options_.chosen_field : options_.rejected_field));
    out.ids.insert(out.ids.end(), one.ids.begin(), one.ids.end());
    for (const float weight : one.weights)
      out.weights.push_back(weight + static_cast<float>(which == 0 ? kChosenPrompt : kRejectedPrompt));
    return {};
  }

  FormatContext context_;
  PreferenceFormat options_;
  std::optional<chat::ChatTemplate> template_;
};

}  // namespace

std::unique_ptr<RowFormatter> make_preference_formatter(const FormatContext& context,
                                                        const PreferenceFormat& options,
                                                        std::optional<chat::ChatTemplate> chat_template) {
  return std::make_unique<PreferenceFormatter>(context, options, std::move(chat_template));
}

}  // namespace ostro::data
