// evaluate_tasks: the work of `ostro eval --tasks`: measures checkpoints on the corpora and tasks of a task
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/eval/report/report.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::eval {

struct EvalTasksRequest {
  std::vector<std::string> checkpoints;
  std::string tasks, tokenizer, out, samples;
  std::vector<std::string> only;
  std::optional<int64_t> limit;
  int64_t batch_tokens = 4096;
  bool all_checkpoints = false;
  trained::Trust trust = trained::Trust::kChain;
  trained::UseOptions use;
};

// Measures the checkpoints, and writes the files that the request names: the report as JSON, and a line of
// JSON for each document. Errors: options that contradict each other, and files that are missing or cannot be
// read.
Result<Report> evaluate_tasks(const Context& context, const EvalTasksRequest& request);

}  // namespace ostro::eval
