// expand_steps: steps as declared, with sweeps, to one Step for each choice. Private to the sub-room.
#pragma once

#include <vector>

#include "ostro/lab/plan/plan.h"

namespace ostro::lab {

// `steps` is the map of the plan's key of that name. Errors: as read_plan.
Result<std::vector<Step>> expand_steps(const config::Node& steps);

// "FILE:LINE: message", an invalid argument.
Error plan_error(const config::Node& at, const std::string& message);
// The error about a word that is none of `known`, with the nearest of them.
Error unknown_word(const config::Node& at, const std::string& what, const std::string& word,
                   const std::vector<std::string>& known);
// An error unless the word can name a step or a query: letters, digits, "_" and "-".
Status check_name(const config::Node& at, const std::string& name);
// An error where a map has a key twice, or one that is none of `known`.
Status check_keys(const config::Node& map, const std::string& what, const std::vector<std::string>& known);

}  // namespace ostro::lab
