// generate: continues texts with a RowRunner: prompts in chunks, then token after token, many at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ostro/infer/row_runner.h"
#include "ostro/models/layer_functions.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

struct SampleOptions {
  int64_t max_new_tokens = 64;
  double temperature = 0;  // this and the seed: ChoiceOptions (choose.h)
  uint64_t seed = 0;
  std::vector<int32_t> stops = {};  // generation stops after any of these tokens
  int64_t tokens =
      0;  // only the first so many ids are chosen, those of the tokenizer; 0: all that have logits
};

// True if generation stops after this token.
bool is_stop(const SampleOptions& options, int32_t token);

// The new tokens of each prompt, with the stop token if one was made: those that the prompt gets alone.
// `on_token` is called with the number of the prompt and each of its tokens as it is made; it returns false
// to stop all. Errors: a prompt is empty, or leaves no room for a token.
Result<std::vector<std::vector<int32_t>>> generate(
    RowRunner& runner, std::span<const std::vector<int32_t>> prompts, const SampleOptions& options,
    const std::function<bool(size_t prompt, int32_t token)>& on_token = {});

// The runner for a model in memory: LayerRows with `layers`, StepRows for a model that has none.
Result<std::unique_ptr<RowRunner>> make_runner(const models::ModelFunctions& model,
                                               const std::optional<models::LayerFunctions>& layers,
                                               std::vector<runtime::Buffer> params, runtime::Engine& engine,
                                               const RowLimits& limits, numerics::LeafTable leaves = {});

}  // namespace ostro::infer
