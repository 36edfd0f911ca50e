// AnswerMaker: makes the choices and right answers of a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/eval/tasks/doc_template.h"
#include "ostro/eval/tasks/options.h"
#include "ostro/eval/tasks/prompts.h"

namespace ostro::eval {

// The parsed doc_to_choice and doc_to_target of one task. Immutable, so threads may share it.
class AnswerMaker {
 public:
  static Result<AnswerMaker> create(const std::string& key, const TaskOptions& options);

  // Sets choices and gold, or answers. Errors name the key and the document: fewer than two choices, an empty
  // one; a number that no choice has; an answer that is not among the choices.
  Status fill(const Document& document, Question& out) const;

 private:
  explicit AnswerMaker(std::string key) : key_(std::move(key)) {}
  Status fill_choices(const Document& document, Question& out) const;
  Status fill_gold(const Document& document, Question& out) const;

  std::string key_;
  std::vector<DocTemplate> choices_;  // of a multiple_choice: one that gives a list, or one for each choice
  bool choices_are_one_ = false;
  std::optional<DocTemplate> target_;
  std::optional<int64_t> target_number_;
};

}  // namespace ostro::eval
