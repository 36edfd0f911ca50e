// Declared: a step as a plan's file has it, checked by the table of kinds; and what is said of mistakes in a
// plan. Private to the sub-room.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

// A step as the plan declares it.
struct Declared {
  const config::Node* node = nullptr;        // the map of the step
  const config::Node* parameters = nullptr;  // the map behind the kind
  const StepKind* kind = nullptr;
  // For each sweep variable, its choices: label and value.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, config::Node>>>> sweep;
  std::map<std::string, std::string> inputs;  // parameter -> declared name
  std::vector<std::string> families;          // declared names, of all whose steps are inputs
  bool is_expanded = false;
};

// Reads the step `node`, one of `steps`, which must outlive it. Errors: as read_plan.
Result<Declared> read_step(const config::Node& node, const config::Node& steps);
// Whether a value is "$NAME".
bool is_variable(const config::Node& node);

// "FILE:LINE: message", an invalid argument.
Error plan_error(const config::Node& at, const std::string& message);
// The error about a word that is none of `known`, with the nearest of them.
Error unknown_word(const config::Node& at, const std::string& what, const std::string& word,
                   const std::vector<std::string>& known);
// An error unless the word can name a step or a query: letters, digits, "_" and "-".
Status check_name(const config::Node& at, const std::string& name);
// An error where a map has a key that is none of `known`.
Status check_keys(const config::Node& map, const std::string& what, const std::vector<std::string>& known);

}  // namespace ostro::lab
