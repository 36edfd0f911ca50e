// ostro eval --tasks: checkpoints on the corpora and tasks of a task file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/trained/loaded_model.h"

namespace ostro::cli {

struct EvalTasksRequest {
  std::vector<std::string> checkpoints;
  std::string tasks, tokenizer, out, samples;
  std::vector<std::string> only;
  std::optional<int64_t> limit;
  int64_t batch_tokens = 4096;
  bool all_checkpoints = false, json = false;
  trained::Trust trust = trained::Trust::kChain;
};

// Prints the report, and writes the files that were asked for.
Status evaluate_tasks(const EvalTasksRequest& request, const models::ModelChoices& models);

}  // namespace ostro::cli
