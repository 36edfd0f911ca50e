// answer_requests: requests to a model as JSON, one object each, and their answers: the input and output of
// `ostro score` (docs/guide/evaluate.md).
#pragma once

#include <string>
#include <vector>

#include "ostro/eval/score/text_model.h"

namespace ostro::eval {

// Returns the answers to these lines, as lines, in their order. A request that cannot be answered gets
// {"error":
// ...}; their number is added to `failed`. An answer does not depend on the other requests. Not thread-safe,
// since the model is not.
std::vector<std::string> answer_requests(TextModel& model, const std::vector<std::string>& lines,
                                         int64_t& failed);

}  // namespace ostro::eval
