#include "ostro/eval/tasks/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ostro::eval {

using chat::jinja::Value;

namespace {

std::optional<int64_t> as_number(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> index_of(const std::vector<std::string>& choices, const std::string& text) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found == choices.end()) return std::nullopt;
  return found - choices.begin();
}

// The items of a list as texts.
Result<std::vector<std::string>> texts_of(const Value& list, const std::string& where) {
  if (!list.is_sequence())
    return invalid_argument(fmt::format("{}: is a {}, not a list of texts", where, list.type_name()));
  std::vector<std::string> out;
  for (const Value& item : list.as_sequence().items) {
    if (!item.is_text() && !item.is_int() && !item.is_float())
      return invalid_argument(
          fmt::format("{}: item {} of the list is a {}, not a text", where, out.size(), item.type_name()));
    out.push_back(to_text(item));
  }
  return out;
}

}  // namespace

Result<AnswerMaker> AnswerMaker::create(const std::string& key, const TaskOptions& options) {
  AnswerMaker out(key);
  std::string target;
  if (const auto* task = std::get_if<MultipleChoiceOptions>(&options)) {
    if (const auto* one = std::get_if<std::string>(&task->doc_to_choice.value)) {
      ASSIGN_OR_RETURN(DocTemplate list, DocTemplate::parse(*one, key + ".doc_to_choice"));
      out.choices_.push_back(std::move(list));
      out.choices_are_one_ = true;
    } else {
      for (const std::string& source : std::get<std::vector<std::string>>(task->doc_to_choice.value)) {
        ASSIGN_OR_RETURN(
            DocTemplate choice,
            DocTemplate::parse(source, fmt::format("{}.doc_to_choice[{}]", key, out.choices_.size())));
        out.choices_.push_back(std::move(choice));
      }
    }
    if (const auto* number = std::get_if<int64_t>(&task->doc_to_target.value)) {
      out.target_number_ = *number;
      return out;
    }
    target = std::get<std::string>(task->doc_to_target.value);
  } else if (const auto* scored = std::get_if<LoglikelihoodOptions>(&options)) {
    target = scored->doc_to_target;
  } else {
    target = std::get<GenerateOptions>(options).doc_to_target;
  }
  ASSIGN_OR_RETURN(out.target_, DocTemplate::parse(target, key + ".doc_to_target"));
  return out;
}

Status AnswerMaker::fill_choices(const Document& document, Question& out) const {
  const std::string where = fmt::format("{}.doc_to_choice: {}", key_, document.place);
  if (choices_are_one_) {
    ASSIGN_OR_RETURN(const Value list, choices_[0].value(document));
    ASSIGN_OR_RETURN(out.choices, texts_of(list, where));
  } else {
    for (const DocTemplate& choice : choices_) {
      // A list may name fields, or be the choices themselves, as [yes, no].
      const bool is_plain = !choice.is_field(document) && choice.is_plain();
      ASSIGN_OR_RETURN(std::string text,
                       is_plain ? Result<std::string>(choice.source()) : choice.text(document));
      out.choices.push_back(std::move(text));
    }
  }
  if (out.choices.size() < 2)
    return invalid_argument(fmt::format("{}: {} choices; at least 2 are needed", where, out.choices.size()));
  for (size_t i = 0; i < out.choices.size(); ++i)
    if (out.choices[i].empty()) return invalid_argument(fmt::format("{}: choice {} is empty", where, i));
  return {};
}

Status AnswerMaker::fill_gold(const Document& document, Question& out) const {
  const std::string where = fmt::format("{}.doc_to_target: {}", key_, document.place);
  std::optional<int64_t> gold = target_number_;
  std::string given = gold ? std::to_string(*gold) : "";
  if (!gold) {
    ASSIGN_OR_RETURN(const Value value, target_->value(document));
    if (!value.is_text() && !value.is_int() && !value.is_bool())
      return invalid_argument(
          fmt::format("{}: is a {}, not the number or the text of a choice", where, value.type_name()));
    given = to_text(value);
    if (!value.is_text()) {
      gold = value.as_int();
    } else {
      // The output of a template is tried as a number first, as in lm-evaluation-harness; the text of a field
      // is a choice.
      const auto number = as_number(given), index = index_of(out.choices, given);
      gold = target_->is_field(document) ? (index ? index : number) : (number ? number : index);
    }
  }
  if (!gold)
    return invalid_argument(fmt::format("{}: \"{}\" is none of the choices (\"{}\")", where, given,
                                        fmt::join(out.choices, "\", \"")));
  if (*gold < 0 || *gold >= static_cast<int64_t>(out.choices.size()))
    return invalid_argument(fmt::format("{}: {} is not the number of a choice; there are {}, from 0", where,
                                        *gold, out.choices.size()));
  out.gold = *gold;
  return {};
}

Status AnswerMaker::fill(const Document& document, Question& out) const {
  if (!choices_.empty()) {
    RETURN_IF_ERROR(fill_choices(document, out));
    return fill_gold(document, out);
  }
  const std::string where = fmt::format("{}.doc_to_target: {}", key_, document.place);
  ASSIGN_OR_RETURN(const Value value, target_->value(document));
  if (value.is_sequence()) {
    ASSIGN_OR_RETURN(out.answers, texts_of(value, where));
  } else {
    ASSIGN_OR_RETURN(std::string text, target_->text(document));
    out.answers.push_back(std::move(text));
  }
  if (out.answers.empty()) return invalid_argument(where + ": an empty list; at least one answer is needed");
  for (const std::string& answer : out.answers)
    if (answer.empty()) return invalid_argument(where + ": the answer is empty");
  return {};
}

}  // namespace ostro::eval
